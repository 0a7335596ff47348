"""``python -m suite compare``: every number of two folders or tables, its difference, and whether it left its tolerance."""

import shutil

import pytest

from suite.__main__ import main
from suite.check.tables import read
from tests.tables import write_lines


@pytest.fixture
def mini(repository):
    return repository / "analyses" / "recorded" / "mini"


def edited(source, target, edit):
    """A copy of a table with ``edit`` done to its lines."""
    lines = read(source)
    edit(lines)
    return write_lines(target, lines)


def compared(capsys, *arguments):
    """Exit code and lines of a comparison."""
    code = main(["compare", *map(str, arguments)])
    return code, capsys.readouterr().out.splitlines()


def factor(by):
    def edit(lines):
        lines[0]["measured"] = str(float(lines[0]["measured"]) * by)

    return edit


@pytest.mark.parametrize(("by", "status", "code"), [(1.001, "within", 0), (0.999, "within", 0), (2.0, "OUTSIDE", 1), (0.5, "OUTSIDE", 1)])
def test_each_number_has_its_difference_and_whether_it_left_its_tolerance(mini, tmp_path, capsys, by, status, code):
    other = edited(mini / "table2.csv", tmp_path / "table2.csv", factor(by))
    found, lines = compared(capsys, mini / "table2.csv", other)
    rows = [line.split("  ") for line in lines if line.startswith("table2 ")]
    assert found == code and len(rows) == len(read(mini / "table2.csv"))
    assert [row[-1].strip() for row in rows] == [status, *["equal"] * (len(rows) - 1)]
    before = float(read(mini / "table2.csv")[0]["measured"])
    assert f"{before * by - before:+.3g} ({by - 1:+.1%})" in " ".join(rows[0])
    assert f"Recorded: {mini / 'table2.csv'}. Fresh: {other}." in lines


def test_folders_are_compared_where_both_have_a_table_and_the_others_are_named(mini, tmp_path, capsys):
    for name in ("table8", "errata"):
        shutil.copy(mini / f"{name}.csv", tmp_path)
    (tmp_path / "table2.md").write_text("no table of numbers")
    code, lines = compared(capsys, tmp_path, mini)
    assert code == 0 and {line.split()[0] for line in lines if line.endswith(" equal")} == {"table8", "errata"}
    (note,) = (line for line in lines if line.startswith("Note: only in "))
    assert str(mini) in note and "table2" not in note and "claims, controls" in note


def test_between_two_scales_differences_are_shown_and_not_judged(mini, tmp_path, capsys):
    def smoke(lines):
        for line in lines:
            line |= {"scale": "smoke", "measured": str(float(line["measured"]) * 3)}

    edited(mini / "table2.csv", tmp_path / "table2.csv", smoke)
    shutil.copy(mini / "table8.csv", tmp_path)  # of formulas: the same at every scale
    code, lines = compared(capsys, mini, tmp_path)
    assert code == 0 and "Note: table2 is of scale mini and of scale smoke: no tolerance holds between them." in lines
    rows = {name: [line for line in lines if line.startswith(f"{name} ")] for name in ("table2", "table8")}
    assert all(line.endswith("not judged; another scale") and "(+200.0%)" in line for line in rows["table2"])
    assert all(line.endswith(" equal") for line in rows["table8"]) and rows["table8"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("mini", "none", "none is not there: name two results folders"),
        ("mini", "mini/table2.csv", "is a folder, the other a table"),
        ("mini/table2.csv", "mini/table8.csv", "have no number in common"),
        ("mini", "empty", "empty has no tables: name a folder such as results/mini"),
        ("mini", "other", "have no table in common"),
        ("mini", "night", "have no number in common"),
        ("mini/table2.csv", "broken/cut.csv", "line 3 has more or fewer cells"),
        ("mini/table2.csv", "broken/word.csv", "n in line 2 is 'three'"),
        ("mini/table2.csv", "broken/binary.csv", "cannot be read as a table of the suite"),
        ("mini/table2.csv", "broken/text.csv", "no lines with a column measured, effect or perplexity"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(mini, tmp_path, capsys, first, second, words):
    shutil.copytree(mini, tmp_path / "mini")
    for folder in ("empty", "other", "broken", "night"):
        (tmp_path / folder).mkdir()
    shutil.copy(mini.parent / "night" / "lr_sweep.csv", tmp_path / "night")  # searches of runs of other lengths than mini's
    (tmp_path / "mini" / "figure1.csv").rename(tmp_path / "other" / "figure1.csv")
    (tmp_path / "broken" / "cut.csv").write_text("model,measured,n\n60m,1.5,3\n130m\n")
    (tmp_path / "broken" / "word.csv").write_text("model,measured,n\n60m,1.5,three\n")
    (tmp_path / "broken" / "binary.csv").write_bytes(b"\x89PNG\r\n\x00")
    (tmp_path / "broken" / "text.csv").write_text("model,words\n60m,many\n")
    assert main(["compare", str(tmp_path / first), str(tmp_path / second)]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.startswith("error: ") and said.err.count("\n") == 1 and not said.out
