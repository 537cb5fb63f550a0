"""Charts of the page look as the pictures of the library do."""

import pytest

from banditmesh.plots import palette
from banditmesh.web import charts

NAMES = ["none", "irs", "gossip(4)", "probabilistic(4)", "fwa(2)", "fwa(4)", "flooding(4)", "centralised", "tree"]


@pytest.mark.parametrize("name", NAMES)
def test_protocol_has_the_colour_and_the_line_of_the_pictures(name):
    colour, line = palette.style_of(name, NAMES)
    assert charts.colour_of(name, NAMES, is_dark=False) == colour
    # Black could not be seen on a dark page.
    assert charts.colour_of(name, NAMES, is_dark=True) == ("#FFFFFF" if colour == "#000000" else colour)
    dash = charts.dash_of(name, NAMES)
    assert (dash == "solid") == (line == "-")


def test_markers_are_different_ones():
    symbols = [charts.symbol_of(name) for name in palette._MARKERS]
    assert len(set(symbols)) == len(palette._MARKERS)


def test_colours_of_what_is_no_protocol_are_those_of_protocols():
    known = {colour for colour, _ in palette._STYLES.values()}
    assert set(charts.OTHERS) <= known | {"#7F7F7F"}


def test_what_is_no_protocol_can_be_told_apart_where_colours_begin_again():
    looks = [charts.other(place) for place in range(3 * len(charts.OTHERS))]
    assert len(set(looks)) == len(looks)


def test_legend_of_a_narrow_chart_has_room_for_its_lines():
    names = [f"node {number}" for number in range(12)]
    chart = charts.with_legend(charts.frame("x", "y", False), names)
    tops = [one["option"]["grid"]["top"] for one in chart["media"]]
    assert all(one["option"]["legend"]["data"] == names for one in chart["media"])
    assert tops == sorted(tops)
    assert tops[0] < tops[1]
    assert "media" not in charts.with_legend(charts.frame("x", "y", False), ["fwa", "irs"])
