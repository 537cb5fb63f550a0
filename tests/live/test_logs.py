"""One line an event, whatever it holds."""

import io
import json
import logging
import re

import pytest

from banditmesh.errors import InputError
from banditmesh.live.logs import LOG, Json, Plain, note, set_up


@pytest.fixture
def written():
    """Set up the log of a style, and give what was written; everything is as before afterwards."""
    root = logging.getLogger()
    handlers, levels = list(root.handlers), (root.level, LOG.level)
    stream = io.StringIO()

    def begin(style, **options):
        set_up(style, stream=stream, **options)
        return lambda: stream.getvalue().splitlines()

    yield begin
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    LOG.setLevel(levels[1])


def test_plain_lines(written):
    lines = written("plain")
    note(LOG, logging.INFO, "link up", peer="b", n=3)
    note(LOG, logging.WARNING, "link down", reason='no "byte" came', name="a\nb\x1b[31m", empty="")
    first, second = lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO link up peer=b n=3", first)
    assert second.endswith(r'WARNING link down reason="no \"byte\" came" name="a\nb\x1b[31m" empty=""')


def test_json_lines(written):
    lines = written("json")
    note(LOG, logging.INFO, "link up", peer="b\nc", n=3, event="cannot be overwritten", where=InputError("an object"))
    [line] = map(json.loads, lines())
    assert line.pop("time").endswith("Z")
    assert line == {"level": "INFO", "event": "link up", "peer": "b\nc", "n": 3, "where": "an object"}


@pytest.mark.parametrize("style", ["plain", "json"])
def test_a_traceback_is_one_field(written, style):
    lines = written(style)
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    [line] = lines()
    assert "ZeroDivisionError" in line
    assert "uvicorn.error" in line


def test_others_are_heard_from_warnings_on_and_levels_are_kept(written):
    lines = written("plain", level=logging.DEBUG)
    logging.getLogger("uvicorn.error").info("Started server process")
    note(LOG, logging.DEBUG, "detail")
    assert [line.split(" ", 1)[1] for line in lines()] == ["DEBUG detail"]


def test_setting_up_again_replaces_the_first(written):
    lines = written("plain")
    written("json")
    note(LOG, logging.INFO, "once")
    assert len(lines()) == 1
    kinds = [type(handler.formatter) for handler in logging.getLogger().handlers]
    assert kinds.count(Json) == 1
    assert Plain not in kinds


def test_unknown_styles_are_refused():
    with pytest.raises(InputError, match="log must be one of plain, json, got 'xml'"):
        set_up("xml")
