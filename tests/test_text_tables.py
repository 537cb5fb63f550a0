from banditmesh.text_tables import as_html, as_text

ROWS = [["name", "a", "remark"], ["x", "100", ""], ["longer", "1", "here"]]


def test_columns_are_as_wide_as_their_widest_cell():
    assert as_text(ROWS).splitlines() == ["name      a  remark", "x       100", "longer    1    here"]


def test_any_column_can_be_aligned_to_the_left():
    assert as_text(ROWS, left=(0, 2)).splitlines() == ["name      a  remark", "x       100", "longer    1  here"]
    assert as_text(ROWS, left=None).splitlines() == ["name    a    remark", "x       100", "longer  1    here"]


def test_columns_have_at_least_the_width_that_is_asked_for():
    assert as_text([["a", "b"]], widths=(3, 4)) == "a       b"


def test_indented_rows_stay_indented_in_notebooks():
    assert "<td>&nbsp;&nbsp;log T &amp; more</td>" in as_html("bounds", [["row"], ["  log T & more"]])
