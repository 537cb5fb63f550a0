"""Runs and messages as moving pictures, for the page and for files that play by themselves.

Python makes *documents*: plain lists, texts and numbers of limited size, all from the engines' own rounds,
events and books. `player.js` draws them on a canvas and knows nothing about bandits; it needs no other script.
"""

from .documents import as_json, message_document
from .files import PLAYER, Animation, animate, as_html
from .gallery import GALLERY, Case
from .journeys import Journey, follow
from .loads import load_document
from .recorder import Recorder, side_by_side
from .stories import Story, story
from .traces import result_document, trace_document

__all__ = [
    "GALLERY",
    "PLAYER",
    "Animation",
    "Case",
    "Journey",
    "Recorder",
    "Story",
    "animate",
    "as_html",
    "as_json",
    "follow",
    "load_document",
    "message_document",
    "result_document",
    "side_by_side",
    "story",
    "trace_document",
]
