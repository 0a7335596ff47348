"""How rows are drawn."""

from analyses.common.looks import look
from analyses.common.published import read_published
from poet.methods import all_rows


def test_rows_of_the_paper_are_told_apart_with_colour_and_without():
    looks = [look(row) for row in read_published("table2").variant.unique()]
    assert len({(one["marker"], one["linestyle"]) for one in looks}) == len({tuple(one["color"]) for one in looks}) == len(looks)


def test_rows_that_somebody_adds_have_a_look_of_their_own(monkeypatch):
    rows = {**all_rows(), **dict.fromkeys(("acme", "mine", "sgd-again", "lion-again", "poet-givens", "poet-fs-1_16"))}
    monkeypatch.setattr("analyses.common.looks.all_rows", lambda: rows)
    assert len({(look(row)["marker"], look(row)["linestyle"]) for row in rows}) == len(rows)
