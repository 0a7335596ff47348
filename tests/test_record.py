"""``tools/record.py``: what moved is shown before it is kept."""

import shutil
import sys

import pandas as pd
import pytest

from suite.check.tables import read
from suite.sources import artifact_files, note_path, write_note
from tests.tables import write_lines
from tools import record as tool


@pytest.fixture
def record(repository, tmp_path, monkeypatch):
    """``record(*options)`` keeps ``tmp_path / "results"`` in a copy of what is recorded, and gives the exit code."""
    root = tmp_path / "root"
    shutil.copytree(repository / "analyses" / "recorded", root / "analyses" / "recorded", ignore=shutil.ignore_patterns("*.parquet"))
    shutil.copy(repository / "README.md", root)
    monkeypatch.setattr(tool, "ROOT", root)
    monkeypatch.setattr(tool, "written", lambda root: {})  # test_docs.py looks at that
    (tmp_path / "results").mkdir()

    def _record(*options):
        monkeypatch.setattr(sys, "argv", ["record.py", "--results", str(tmp_path / "results"), *options])
        return tool.main()

    return _record


def test_what_moved_is_shown_and_then_kept(record, tmp_path, capsys):
    kept = tmp_path / "root" / "analyses" / "recorded" / "mini"
    lines = read(kept / "table8.csv")
    before = lines[3]["measured"]
    lines[3]["measured"] = str(int(before) + 5)
    write_lines(tmp_path / "results" / "mini" / "table8.csv", lines)
    assert record() == 0
    shown = capsys.readouterr().out
    (row,) = (line for line in shown.splitlines() if line.endswith("OUTSIDE"))
    assert f" {before} (n=1) {int(before) + 5} (n=1) +5 (" in " ".join(row.split())
    assert "OUTSIDE: 1 left their tolerance" in shown
    assert (kept / "table8.csv").read_text() == (tmp_path / "results" / "mini" / "table8.csv").read_text()
    assert record() == 0 and "Nothing left its tolerance." in capsys.readouterr().out


def test_the_first_results_of_a_scale_are_listed_and_kept(record, tmp_path, capsys):
    line = {"scheme": "Xavier", "published": 1, "measured": 2, "n": 1, "std": "", "scale": "gpu"}
    write_lines(tmp_path / "results" / "gpu" / "table5.csv", [line])
    assert record("--scale", "gpu") == 0
    assert "1 rows are not recorded yet: table5." in capsys.readouterr().out
    assert (tmp_path / "root" / "analyses" / "recorded" / "gpu" / "table5.csv").exists()


def test_fewer_seeds_do_not_replace_more(record, tmp_path, capsys):
    kept = tmp_path / "root" / "analyses" / "recorded" / "mini" / "table5.csv"
    before = kept.read_text()
    write_lines(tmp_path / "results" / "mini" / "table5.csv", [{**line, "n": 1} for line in read(kept)])
    assert record() == 2 and kept.read_text() == before
    assert "table5.csv has at most n = 1 for a number, and the recorded one 3: " in capsys.readouterr().err


def test_a_table_that_lacks_recorded_rows_is_refused(record, tmp_path, capsys):
    kept = tmp_path / "root" / "analyses" / "recorded" / "mini" / "table2.csv"
    before = kept.read_text()
    write_lines(tmp_path / "results" / "mini" / "table2.csv", read(kept)[:19])
    assert record("--seeds", "[0,1,2]") == 2 and kept.read_text() == before
    assert f"table2.csv lacks {len(read(kept)) - 19} of the recorded rows: make it again, or remove " in capsys.readouterr().err
    kept.unlink()
    assert record("--seeds", "[0,1,2]") == 0 and len(read(kept)) == 19


def test_a_table_that_was_altered_is_refused(record, tmp_path, capsys):
    kept, made = tmp_path / "root" / "analyses" / "recorded" / "mini" / "table8.csv", tmp_path / "results" / "mini"
    made.mkdir(parents=True)
    shutil.copy(kept, table := made / "table8.csv")
    write_note(note_path(made, "table8"), artifact_files("table8"), [table], seeds=[0], specs=[])
    assert record() == 0
    write_lines(table, [{**line, "measured": 7} for line in read(table)])
    assert record() == 2 and f"{table} is not as it was made: remove it" in capsys.readouterr().err


def test_rates_of_one_row_stand_beside_the_recorded_ones_of_others(record, tmp_path):
    kept = tmp_path / "root" / "analyses" / "recorded" / "night" / "lr_sweep.csv"
    before = pd.read_csv(kept, dtype=str, keep_default_na=False)
    again = before[(before.variant == "adamw") & (before.length == "1/100")].assign(perplexity="7")
    new = again.assign(variant="sgd")
    write_lines(tmp_path / "results" / "night" / "lr_sweep.csv", pd.concat([again, new]).to_dict("records"))
    assert record("--scale", "night") == 0
    after = pd.read_csv(kept, dtype=str, keep_default_na=False)
    assert len(after) == len(before) + len(new)
    assert set(after[after.perplexity == "7"].variant) == {"adamw", "sgd"}
    old = (before.variant != "adamw") | (before.length != "1/100")
    pd.testing.assert_frame_equal(after[(after.perplexity != "7")].reset_index(drop=True), before[old].reset_index(drop=True))


def test_a_search_that_goes_on_does_not_replace_one_that_ended(record, tmp_path):
    kept = tmp_path / "root" / "analyses" / "recorded" / "night" / "lr_sweep.csv"
    before = pd.read_csv(kept, dtype=str, keep_default_na=False)
    part = before[(before.variant == "adamw") & (before.length == "1")].head(1).assign(chosen="", state="searching")
    write_lines(tmp_path / "results" / "night" / "lr_sweep.csv", part.to_dict("records"))
    assert record("--scale", "night") == 0
    pd.testing.assert_frame_equal(pd.read_csv(kept, dtype=str, keep_default_na=False), before)


def test_tables_of_other_seeds_than_are_packed_are_refused(record, tmp_path, capsys):
    made, kept = tmp_path / "results" / "mini", tmp_path / "root" / "analyses" / "recorded" / "mini" / "table5.csv"
    made.mkdir(parents=True)
    shutil.copy(kept, made)
    write_note(note_path(made, "table5"), artifact_files("table5"), seeds=[0, 1, 2], specs=["a digest"])
    assert record() == 2
    assert "table5.csv was made with seeds [0, 1, 2], and [0] are to be packed: give SEEDS='[0, 1, 2]'" in capsys.readouterr().err
    write_note(note_path(made, "lr_sweep"), [], seeds=[0], specs=["a trial's"])
    shutil.copy(kept.with_name("lr_sweep.csv"), made)
    assert record("--seeds", "[0,1,2]") == 0


def test_a_table_that_other_code_made_is_refused(record, repository, tmp_path, capsys):
    made = tmp_path / "results" / "mini"
    made.mkdir(parents=True)
    shutil.copy(tmp_path / "root" / "analyses" / "recorded" / "mini" / "table8.csv", made)
    first, *others = sorted(artifact_files("table8"))
    missing = first.relative_to(repository)
    write_note(note_path(made, "table8"), others, [made / "table8.csv"], seeds=[0], specs=[])
    assert record() == 2 and f"{made / 'table8.csv'} was made before {missing} changed: make it again" in capsys.readouterr().err


def test_claims_are_kept_and_the_report_is_not(record, tmp_path):
    results, kept = tmp_path / "results" / "mini", tmp_path / "root" / "analyses" / "recorded" / "mini"
    write_lines(results / "claims.csv", [{"claim": "table2-x", "effect": 1, "low": 0, "high": 2, "n": 3, "scale": "mini"}])
    for name in ("claims.md", "report.html"):
        (results / name).write_text(name)
    assert record() == 0
    assert (kept / "claims.csv").read_text().startswith("claim,effect")
    assert (kept / "claims.md").read_text() == "claims.md"
    assert not (kept / "report.html").exists()


def test_figures_that_a_page_links_to_are_kept_and_no_others(record, tmp_path):
    figures, kept = tmp_path / "results" / "mini" / "figures", tmp_path / "root" / "analyses" / "recorded" / "mini"
    figures.mkdir(parents=True)
    for name in ("table2.png", "figure2.png"):
        (figures / name).write_text("new")
    with (tmp_path / "root" / "README.md").open("a") as page:
        page.write("![](analyses/recorded/mini/table2.png)\n")
    assert record() == 0
    assert (kept / "table2.png").read_text() == "new" and not (kept / "figure2.png").exists()


def test_what_is_recorded_is_renewed_from_recorded_runs_and_nothing_is_added(record, tmp_path):
    made, kept = tmp_path / "results" / "recorded" / "night", tmp_path / "root" / "analyses" / "recorded" / "night"
    made.mkdir(parents=True)
    (kept / "table11.md").write_text("of another machine")
    for name in ("table5.md", "table8.md", "table11.md"):
        (made / name).write_text("# A table\n\n- A finding.\n\nRecorded runs, not trained here: 3 of 3 (on A CPU).\n")
    assert record("--scale", "night", "--recorded") == 0
    assert (kept / "table5.md").read_text() == "# A table\n\n- A finding.\n" and not (kept / "table8.md").exists()
    assert (kept / "table11.md").read_text() == "of another machine"  # times are not renewed from runs


def test_a_partial_benchmark_is_never_recorded(record, tmp_path, capsys):
    (tmp_path / "results" / "bench.csv").write_text("operation,shape,tokens,dtype,variant,rounds\nlayer,1x1,1,fp32,linear,5\n")
    assert record() == 2
    assert "of the recorded cases: run the whole of make bench" in capsys.readouterr().err
