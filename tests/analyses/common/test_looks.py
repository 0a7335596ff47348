"""How rows are drawn."""

from analyses.common.looks import look
from poet.methods import all_rows


def test_rows_are_told_apart_with_colour_and_without():
    looks = [look(row) for row in all_rows()]
    assert len({(one["marker"], one["linestyle"]) for one in looks}) == len({tuple(one["color"]) for one in looks}) == len(looks)


def test_a_row_that_somebody_adds_has_a_look_of_its_own(monkeypatch):
    rows = {**all_rows(), "mine": None, "poet-givens": None}
    monkeypatch.setattr("analyses.common.looks.all_rows", lambda: rows)
    assert len({(look(row)["marker"], look(row)["linestyle"]) for row in rows}) == len(rows)
