"""The regression check: what moved, what left its tolerance, and what is never judged in silence."""

import csv
import re
import math

import pytest

from poet.system.errors import UserError
from suite.check.compare import compare, recorded_folder
from suite.check.report import SHOWN, failed, moved, report, to_csv
from tests.tables import write_lines

TRAINED = {
    **{"published": 20.0, "n": 3, "diverged": 0, "collapsed": 0, "unit": "perplexity", "scale": "mini"},
    **{"corpus": "enwik8", "verdict": "inconclusive"},
}
#: Nine rows whose spreads are 0.5 to 1.5% of 100.
SPREADS = (1.0, 0.5, 0.8, 1.2, 1.5, 0.9, 1.1, 0.7, 1.3)


def perplexities(**changes):
    """A table of trained rows; ``changes`` to the row of the second method."""
    rows = [
        {"method": f"method {i}", **TRAINED, "measured": 100.0 + i, "std": spread}
        for i, spread in enumerate(SPREADS)
    ]
    rows[1] |= changes
    return rows


@pytest.fixture
def check(tmp_path):
    """``check(recorded, fresh)``: what comparing two tables finds, by the name of ``table``."""

    def _check(recorded, fresh, table="table2"):
        for folder, rows in (("recorded", recorded), ("fresh", fresh)):
            if rows:
                write_lines(tmp_path / folder / f"{table}.csv", rows)
        return compare(tmp_path / "recorded", tmp_path / "fresh", [f"{table}.csv"])

    return _check


def of(findings, row, column="measured"):
    (one,) = (one for one in findings if one.row == row and one.column == column)
    return one


def test_what_did_not_change_is_equal(check):
    found = check(perplexities(), perplexities())
    assert [one.status for one in found] == ["equal"] * 9
    assert report(found) == (
        "9 numbers compared: 9 equal, 0 moved within their tolerance, 0 outside of it, 0 moved and not judged.\n"
        "Nothing left its tolerance."
    )


def test_where_a_run_was_trained_is_no_number(check):
    assert {one.status for one in check(perplexities(), perplexities(foreign="1 of 3 from lab-b"))} == {"equal"}


@pytest.mark.parametrize("direction", (-1, 1))
def test_a_number_leaves_its_tolerance_in_either_direction(check, direction):
    tolerance = of(check(perplexities(), perplexities()), "method 1").tolerance
    assert 1.5 < tolerance < 5  # a few standard deviations of about 1, of means of three
    inside = check(perplexities(), perplexities(measured=101.0 + 0.95 * direction * tolerance))
    assert of(inside, "method 1").status == "within" and not failed(inside)
    outside = check(perplexities(), perplexities(measured=101.0 + 1.05 * direction * tolerance))
    assert [one.row for one in failed(outside)] == ["method 1"]
    assert "OUTSIDE: 1 left their tolerance, in table2 (1)." in report(outside)


def test_the_table_names_the_row_the_change_and_the_tolerance(check):
    text = report(check(perplexities(), perplexities(measured=111.1, n=2))).splitlines()
    assert text[0].split() == ["table", "row", "number", "recorded", "fresh", "change", "tolerance"]
    cells = re.split(" {2,}", text[1])
    assert cells[:6] == ["table2", "method 1", "perplexity", "101 (n=3)", "111.1 (n=2)", "+10.1 (+10.0%)"]
    assert text[1].endswith("  OUTSIDE")
    assert text[2] == ""
    assert text[3].startswith("9 numbers compared: 8 equal, 0 moved within their tolerance, 1 outside of it,")


def test_outside_comes_first_then_what_used_up_most_of_its_tolerance_and_the_rest_is_counted(check):
    old = repeated(perplexities(), 8)
    new = [{**row, "measured": row["measured"] + 0.01 * (i + 1)} for i, row in enumerate(old)]
    new[3]["measured"] += 50
    lines = report(check(old, new)).splitlines()
    assert lines[1].split()[2] == "3.0" and lines[1].endswith("OUTSIDE")
    strains = [one.strain for one in moved(check(old, new))]
    assert strains == sorted(strains, reverse=True) and len(strains) == 72
    assert lines[SHOWN + 1] == f"... and {72 - SHOWN} more, which moved less"


def repeated(rows, times):
    """The rows several times over, each time under names of their own and with spreads a little different."""
    return [
        {**row, "method": f"{row['method']}.{k}", "std": (1 + k / 100) * row["std"]}
        for k in range(times)
        for row in rows
    ]


def test_a_row_that_spreads_more_than_the_others_has_a_wider_tolerance_and_theirs_stays(check):
    plain = [{**row, "measured": -row["measured"]} for row in repeated(perplexities(), 8)]  # no logarithms
    wide = [{**plain[0], "std": 50.0}, *plain[1:]]
    before, after = (check(rows, rows) for rows in (plain, wide))
    assert of(after, "method 0.0").tolerance > 30 * of(before, "method 0.0").tolerance
    # A plain mean of squares would make it sqrt(50^2 / 72) = 6 times as wide.
    assert of(after, "method 2.3").tolerance < 2 * of(before, "method 2.3").tolerance


def test_three_seeds_that_agree_by_luck_do_not_make_a_narrow_tolerance(check):
    lucky = perplexities(std=1e-6)
    assert of(check(lucky, lucky), "method 1").tolerance > 1


def test_fewer_fresh_seeds_have_a_wider_tolerance(check):
    one, three = (of(check(perplexities(), perplexities(n=n)), "method 1").tolerance for n in (1, 3))
    # Of 101, in logarithms.
    assert math.log1p(one / 101) / math.log1p(three / 101) == pytest.approx(math.sqrt((1 + 1 / 3) / (1 / 3 + 1 / 3)))


@pytest.mark.parametrize(
    ("recorded", "fresh", "status"),
    (
        ((101.0, 3, 0), ("", 2, 1), "outside"),
        ((101.0, 3, 0), ("", 0, 3), "outside"),
        (("", 0, 3), (101.0, 3, 0), "outside"),
        (("", 0, 3), ("", 1, 2), "outside"),
        (("", 2, 1), (101.0, 3, 0), "not judged"),
        (("", 2, 1), ("", 0, 3), "not judged"),
        (("", 2, 1), ("", 1, 2), "not judged"),
        (("", 2, 1), ("", 2, 1), "equal"),
        (("", 0, 3), ("", 0, 3), None),
    ),
)
def test_a_row_that_diverges_or_no_longer_does(check, recorded, fresh, status):
    old, new = (dict(zip(("measured", "n", "diverged"), cells, strict=True)) for cells in (recorded, fresh))
    found = check(perplexities(**old), perplexities(**new))
    assert [one.status for one in found if one.row == "method 1"] == ([status] if status else [])
    if old != new:
        words = f"diverged: {fresh[2]} of 3, recorded {recorded[2]} of 3"
        assert of(found, "method 1").reason == words and words in report(found)


def test_a_collapse_is_shown_and_judged_by_its_perplexity_or_alone_where_that_has_no_tolerance(check):
    found = check(perplexities(), perplexities(measured=1000.0, collapsed=3))
    one = of(found, "method 1")
    assert one.status == "outside" and one.reason.startswith("collapsed: 3 of 3, recorded 0")
    changes = {}, {"measured": 1000.0, "collapsed": 1}
    old, new = ([{**row, "n": 1, "std": ""} for row in perplexities(**change)] for change in changes)
    assert [one.row for one in failed(check(old, new))] == ["method 1"]


def test_one_seed_without_a_spread_is_shown_and_not_judged(check):
    old, new = ([{**row, "n": 1, "std": ""} for row in perplexities(measured=value)] for value in (101.0, 150.0))
    found = check(old, new)
    assert of(found, "method 1").status == "not judged" and not failed(found)
    text = report(found)
    assert "not judged; no spread recorded" in text
    assert "8 equal, 0 moved within their tolerance, 0 outside of it, 1 moved and not judged." in text
    assert "9 of them have no tolerance" in text


def test_what_is_not_judged_comes_last_the_largest_change_first(check):
    old = [{**row, "n": 1, "std": ""} for row in perplexities()] + repeated(perplexities(), 1)
    new = [{**row, "measured": row["measured"] * (1.1 + i / 100)} for i, row in enumerate(old)]
    for lines in (old, new):
        for row in lines[:9]:
            row["unit"] = "tokens"
    rows = [one.row for one in moved(check(old, new))]
    assert rows[9:] == [f"method {i}" for i in range(8, -1, -1)]


def test_what_spreads_by_factors_is_shown_and_not_judged(check):
    old, new = ([{**row, "std": row["measured"]} for row in perplexities(measured=value)] for value in (101.0, 500.0))
    found = check(old, new)
    assert of(found, "method 1").status == "not judged" and not failed(found)
    assert "not judged; spreads by factors" in report(found)
    assert "9 of them have no tolerance, as they spread by factors" in report(found)


def test_what_was_the_same_for_every_seed_is_held_against_others_of_its_unit_or_not_judged(check):
    """Three shares of exactly 1 do not say that a fourth is; a cosine that starts at 1 may move as far as others do."""
    constant = [{"step": 0, **row, "std": 1e-9, "measured": 1.0} for row in perplexities()]
    moved_on = [{**row, "measured": 1.5} for row in constant]
    assert {one.status for one in check(constant, moved_on)} == {"not judged"}
    later = [{"step": 8, **row, "std": 0.01, "measured": 1.0} for row in perplexities()]
    found = check(constant + later, moved_on + later)
    assert {one.status for one in found if one.row.startswith("step 0")} == {"outside"}


def test_one_seed_among_rows_with_a_spread_is_judged_by_theirs(check):
    assert of(check(perplexities(n=1, std=""), perplexities(n=1, measured=103.0)), "method 1").status == "within"
    assert of(check(perplexities(n=1, std=""), perplexities(n=1, measured=130.0)), "method 1").status == "outside"


def test_rows_are_found_by_name_and_missing_ones_fail(check):
    assert not failed(check(perplexities(), perplexities()[::-1]))
    found = check(perplexities(), perplexities()[:-1])
    assert [(one.row, one.reason) for one in failed(found)] == [("method 8", "no longer there")]
    assert "1 rows are no longer there: table2." in report(found)


def test_a_table_that_is_not_there_fails_in_every_row(check):
    assert len(failed(check(perplexities(), []))) == 9


def test_a_row_is_named_by_no_more_than_it_needs(check):
    """What else stands before the numbers may change, and is said to have changed."""
    line = {**TRAINED, "measured": 1.0, "std": 0.1}
    old = [{"model": "60m", "method": method, "where": "Section 4", **line} for method in "ab"]
    found = check(old, [old[0], {**old[1], "where": "Section 5"}])
    assert [(one.row, one.column) for one in failed(found)] == [("60m, b", "where")]


def test_numbers_in_a_row_s_name_say_what_they_count(check):
    old = [{"model": "60m", "step": step, "block": "", **TRAINED, "measured": 1.0, "std": 0.1} for step in (0, 8)]
    assert [one.row for one in check(old, old)] == ["60m, step 0", "60m, step 8"]


@pytest.mark.parametrize(("variant", "wide"), (("adamw-lr={}", True), ("poet-fs-1_2-lr={}", False)))
def test_rows_of_one_method_are_taken_to_spread_alike(check, variant, wide):
    calm = [{**row, "variant": f"poet-fs-1_{i}"} for i, row in enumerate(repeated(perplexities(), 2))]
    wild = [{**row, "variant": variant.format(i), "std": 5.0} for i, row in enumerate(perplexities())]
    for i, row in enumerate(wild):
        row["method"] = f"other {i}"
    found = check(calm + wild, calm + wild)
    others = of(check(calm, calm), "method 1.0").tolerance
    assert (of(found, "method 1.0").tolerance < 2 * others) == wide


@pytest.mark.parametrize("column", ("step", "terms", "quantity"))
def test_points_of_a_curve_have_tolerances_of_their_own(check, column):
    """Numbers that a run has before it learns spread less than those after: one spread for both would be neither's."""
    rows = [{column: value, **row, "std": (value + 1) * row["std"]} for value in (0, 9) for row in perplexities()]
    found = check(rows, rows)
    assert of(found, f"{column} 9, method 1").tolerance > 6 * of(found, f"{column} 0, method 1").tolerance


def test_new_rows_and_tables_are_listed_and_do_not_fail(check):
    found = check(perplexities()[:-1], perplexities())
    assert not failed(found) and "1 rows are not recorded yet: table2." in report(found)
    assert "9 rows are not recorded yet: figure99." in report(check([], perplexities(), table="figure99"))


def test_a_verdict_of_trained_numbers_may_turn_with_them_and_no_other_text_may(check):
    found = check(perplexities(), perplexities(measured=101.2, verdict="reproduced"))
    assert not failed(found)
    assert of(found, "method 1", "verdict").fresh == "reproduced"
    assert "follows from numbers that are judged" in report(found)
    (alone,) = failed(check(perplexities(), perplexities(verdict="reproduced")))
    assert (alone.column, alone.reason) == ("verdict", "no number moved")
    found = check(perplexities(), perplexities(measured=201.2, verdict="reproduced"))
    assert [one.column for one in failed(found)] == ["measured", "verdict"]
    assert [one.column for one in failed(check(perplexities(), perplexities(corpus="C4")))] == ["corpus"]
    assert [one.column for one in failed(check(perplexities(), perplexities(measured=101.2, corpus="C4")))] == ["corpus"], "whatever number moved"


def test_a_column_of_numbers_that_is_gone_fails_in_every_row(check):
    recorded = [{"setting": "a", "measured": 1.0, "n": 3, "std": 0.1, "unit": "perplexity", "scale": "mini"}]
    for fresh in ({"setting": "a", "other": 1.0}, {"setting": "a", "effect": 1.0, "n": 3}):
        (one,) = check(recorded, [fresh])
        assert (one.column, one.status, one.reason) == ("row", "outside", "no column measured")


def test_what_follows_from_a_number_may_turn_with_it(check):
    found = check(perplexities(learned="no", gap_adamw=0.1), perplexities(learned="yes", gap_adamw=0.2, measured=101.2))
    assert not failed(found)


def test_an_exact_claim_is_equal_or_fails_at_every_scale(check):
    counts = {"claim": "table2-counts-baselines", "effect": 0.0, "low": 0.0, "high": 0.0, "n": 12, "unit": "cells", "scale": "mini", "scope": "exact", "result": "confirmed"}
    found = failed(check([counts], [counts | {"effect": 1.0, "low": 1.0, "high": 1.0, "result": "refuted"}], "claims"))
    assert [one.column for one in found] == ["effect", "result"]


def computed(**changes):
    line = {"published": 1.0, "measured": 0.5, "n": 10, "scale": "any", "verdict": "reproduced"}
    return [{"setting": "a", **line}, {"setting": "b", **line, **changes}]


@pytest.mark.parametrize(
    ("recorded", "fresh", "status"),
    (
        ({}, {"measured": 0.5 + 1e-8}, "within"),
        ({}, {"measured": 0.5 + 1e-5}, "outside"),
        ({"measured": 7}, {"measured": 8}, "outside"),
        ({"measured": 123456789}, {"measured": 123456790}, "outside"),
        ({"low": 0.4, "high": 0.7}, {"measured": 0.69}, "within"),
        ({"low": 0.4, "high": 0.7}, {"measured": 0.41}, "within"),
        ({"low": 0.4, "high": 0.7}, {"measured": 0.39}, "outside"),
        ({"low": 0.4, "high": 0.7}, {"measured": 0.71}, "outside"),
    ),
)
def test_what_no_seed_moves_is_equal_to_rounding_or_within_its_interval(check, recorded, fresh, status):
    assert of(check(computed(**recorded), computed(**{**recorded, **fresh})), "b").status == status


def test_a_verdict_of_what_no_seed_moves_fails(check):
    assert [one.column for one in failed(check(computed(), computed(verdict="contradicted")))] == ["verdict"]


@pytest.mark.parametrize("fresh", (1025, 1024.0005))
def test_counts_are_exact_at_every_scale(check, fresh):
    old, new = (perplexities(measured=value, unit="elements", std=0.0) for value in (1024, fresh))
    assert [one.row for one in failed(check(old, new))] == ["method 1"]


@pytest.mark.parametrize("mark", ({"device": "CPU"}, {"cost_unit": "s"}, {"unit": "e_orth in bfloat16"}))
def test_what_depends_on_the_machine_is_left_out_and_said_so(check, mark):
    found = check(perplexities(**mark), perplexities(**mark, measured=500.0))
    assert not failed(found) and "1 rows left out, which depend on the machine" in report(found)


def claims(effect, low, high, verdict="reproduced", **changes):
    line = {"claim": "table2-x", "artifact": "table2", "rule": "r", "effect": effect, "low": low, "high": high, "n": 3}
    return [{**line, "unit": "perplexity", "verdict": verdict, "note": "a", "scale": "mini", **changes}]


def test_a_claim_is_judged_by_the_interval_of_its_effect(check):
    # t at 97.5% with 2 degrees of freedom is 4.303: so s is sqrt(3), and the level of a single claim is the interval's.
    old = claims(-10.0, -10.0 - 4.3027, -10.0 + 4.3027)
    moved = check(old, claims(-6.0, -20.0, 8.0, "inconclusive", note="b"), "claims")
    assert of(moved, "table2-x", "effect").tolerance == pytest.approx(4.3027 * math.sqrt(2), rel=1e-3)
    assert not failed(moved)
    left = check(old, claims(0.0, -1, 1, "inconclusive"), "claims")
    assert [one.column for one in failed(left)] == ["effect", "verdict"]
    assert [one.column for one in failed(check(old, claims(-10.0, -14.3, -5.7, rule="another"), "claims"))] == ["rule"]


@pytest.mark.parametrize(("fresh", "status"), ((3e-15, "within"), (1e-3, "outside")))
def test_an_effect_that_is_a_rounding_error_may_be_another_one(check, fresh, status):
    old, new = (claims(effect, effect, effect, scale="any") for effect in (1e-15, fresh))
    assert of(check(old, new, "claims"), "table2-x", "effect").status == status


def test_a_verdict_without_a_number_that_could_have_turned_it_fails(check):
    old, new = (claims("", "", "", verdict, n=0) for verdict in ("not at this scale", "inconclusive"))
    assert [one.column for one in failed(check(old, new, "claims"))] == ["verdict"]


def test_every_line_of_the_csv_says_where_it_is(check):
    lines = list(csv.DictReader(to_csv(check(perplexities(), perplexities(measured=111.1))).splitlines()))
    assert len(lines) == 9 and {line["table"] for line in lines} == {"table2"}
    (moved,) = (line for line in lines if line["status"] != "equal")
    assert (moved["row"], moved["recorded"], moved["fresh"], moved["recorded_n"]) == ("method 1", "101.0", "111.1", "3")
    assert float(moved["strain"]) == pytest.approx(float(moved["change"]) / float(moved["tolerance"]))


@pytest.mark.parametrize(("scale", "files", "lines"), [("mini", 30, 5000), ("night", 12, 3000)])
def test_every_recorded_table_is_equal_to_itself_and_names_its_rows(repository, scale, files, lines):
    folder = repository / "analyses" / "recorded" / scale
    tables = [path.name for path in folder.glob("*.csv") if path.name != "finetuning_rates.csv"]
    found = compare(folder, folder, tables)
    assert len(tables) > files and {one.status for one in found} <= {"equal", "left out"}
    rows = [(one.table, one.row) for one in found]
    assert len(set(rows)) == len(rows) > lines
    # The names of lr_sweep go on behind its numbers.
    assert not [row for row in rows if ", no. " in row[1] and row[0] != "lr_sweep"]
    assert {f"{one.table}.csv" for one in found if one.kind == "number"} >= set(tables) - {"table11.csv"}


def test_nothing_recorded_is_said_in_one_sentence():
    with pytest.raises(UserError, match="nothing is recorded at scale unknown: .*`make record SCALE=unknown`"):
        recorded_folder("unknown")
