"""Protocols as people write them, read and printed."""

import pytest

import banditmesh as bm
from banditmesh.protocols import notation

WRITTEN = {
    "none": bm.NoCooperation(),
    "irs": bm.IRS(),
    "irs+growth(0.1)": bm.IRS(emission=bm.Growth(0.1)),
    "fwa(4)": bm.FwA(4),
    "fwa(4)+contested": bm.FwA(4, emission=bm.Contested()),
    "flooding(8)+growth(0.25)": bm.Flooding(8, emission=bm.Growth(0.25)),
    "flooding(2)+growth(0.1234567890123)": bm.Flooding(2, emission=bm.Growth(0.1234567890123)),
    "flooding(2)+growth(1e-09)": bm.Flooding(2, emission=bm.Growth(1e-9)),
    "flooding(2)+growth(1e+09)": bm.Flooding(2, emission=bm.Growth(1e9)),
    "probabilistic(4)": bm.ProbabilisticFlooding(4, stop=0.5),
    "probabilistic(4, stop=0.3)": bm.ProbabilisticFlooding(4, stop=0.3),
    "flooding(8)+growth(0.25, echoes=1)": bm.Flooding(8, emission=bm.Growth(0.25, echoes=1)),
    "gossip(3, fanout=2)+growth(1)": bm.Gossip(3, fanout=2, emission=bm.Growth(1.0)),
    "centralised": bm.Centralised(),
    "tree+growth(0.05)": bm.TreeAggregation(),
    "tree(pause=16)+growth(0.1)": bm.TreeAggregation(16, emission=bm.Growth(0.1)),
    "tree+every-pull": bm.TreeAggregation(emission=bm.EveryPull()),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_written_is_read_again(text):
    assert notation.write(WRITTEN[text]) == text
    assert notation.read(text) == WRITTEN[text]


def test_reading_forgives_blanks_and_takes_parameters_by_place_or_name():
    assert notation.read(" gossip( 4 ,2 ) + growth( factor = 0.5 ) ") == bm.Gossip(4, fanout=2, emission=bm.Growth(0.5))
    assert notation.read("fwa()", ttl=3) == notation.read("fwa(ttl=3)") == bm.FwA(3)


def test_ttl_in_the_text_goes_before_the_given_one():
    assert notation.read("flooding(8)+contested", ttl=2).ttl == 8


def test_lists_are_split_at_commas_outside_parentheses():
    assert notation.split("irs,gossip(4, fanout=2)+growth(1) , fwa") == ["irs", "gossip(4, fanout=2)+growth(1)", "fwa"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("fwa", ["fwa needs a ttl", "fwa(4)"]),
        ("fwa(4", ["must be written like", "'fwa(4'"]),
        ("irs+", ["must be written like"]),
        ("fwa(4)+growth(1)+contested", ["must be written like"]),
        ("", ["protocols must be among", "''"]),
        ("shout(3)", ["protocols must be among centralised, flooding,", "'shout'"]),
        ("irs+shout", ["emissions must be among contested, every-pull, growth", "'shout'"]),
        ("fwa(4, 5)", ["fwa takes ttl", "'4, 5'"]),
        ("none(1)", ["none takes no parameters"]),
        ("fwa(far)", ["ttl of fwa must be a number", "'far'"]),
        ("fwa(4, ttl=4)", ["ttl once"]),
        ("fwa(stop=0.5)", ["fwa takes ttl", "'stop'"]),
        ("fwa(0)", ["ttl must be an integer of at least 1"]),
        ("fwa(4.5)", ["ttl must be an integer"]),
        ("irs(2)", ["ttl must be 1"]),
        ("irs+growth(-1)", ["factor must be a number of at least 0"]),
    ],
)
def test_what_cannot_be_read_is_refused(text, words):
    with pytest.raises(bm.InputError) as error:
        notation.read(text)
    for word in words:
        assert word in str(error.value)


def test_emissions_are_read_alone():
    assert notation.read_emission("growth(0.5)") == bm.Growth(0.5)
    assert notation.read_emission("contested") == bm.Contested()
    for text in ("growth(0.5", "growth(1)+contested", "irs"):
        with pytest.raises(bm.InputError):
            notation.read_emission(text)


def test_plain_names_are_labels_only_while_they_say_all():
    assert list(notation.labels([bm.IRS(), bm.FwA(4)])) == ["irs", "fwa"]
    assert list(notation.labels([bm.FwA(2), bm.FwA(4), bm.Flooding(4)])) == ["fwa(2)", "fwa(4)", "flooding"]
    assert list(notation.labels([bm.Flooding(4, emission=bm.Growth(1.0))])) == ["flooding(4)+growth(1)"]


def test_labels_differ_even_if_two_classes_share_a_name():
    class One(bm.Flooding):
        name = "mine"

    class Two(bm.FwA):
        name = "mine"

    assert len(notation.labels([One(3), Two(3)])) == 2
    with pytest.raises(bm.InputError, match="must differ"):
        notation.labels([bm.FwA(3), bm.FwA(3)])
