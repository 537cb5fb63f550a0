"""Runs and messages as moving pictures, for the page and for files that play by themselves.

Python makes *documents*: plain lists, texts and numbers of limited size, all from the reference engine's own rounds and
events. `player.js` draws them on a canvas and knows nothing about bandits; it needs no other script.
"""

from .documents import as_json, message_document
from .files import PLAYER, animate, as_html
from .gallery import GALLERY, Case
from .journeys import Journey, follow
from .loads import LoadRecorder
from .recorder import Recorder
from .traces import result_document, trace_document

__all__ = [
    "GALLERY",
    "PLAYER",
    "Case",
    "Journey",
    "LoadRecorder",
    "Recorder",
    "animate",
    "as_html",
    "as_json",
    "follow",
    "message_document",
    "result_document",
    "trace_document",
]
