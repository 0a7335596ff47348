"""The rule ``check``, in a project that has one artifact which needs no runs."""

from suite.check.tables import read
from tests.tables import write_lines

KEPT = "table8"


def test_a_number_that_left_its_tolerance_fails_with_a_table_and_without_a_traceback(project, repository):
    project.keep(KEPT)
    lines = read(repository / "analyses" / "recorded" / "mini" / f"{KEPT}.csv")
    lines[0]["measured"] = str(int(lines[0]["measured"]) + 1)
    write_lines(project.folder / "analyses" / "recorded" / "smoke" / f"{KEPT}.csv", lines)
    done = project.snakemake("check", "--config", "scale=smoke")
    assert done.returncode == 1, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if line.endswith("OUTSIDE"))
    assert row.split()[0] == KEPT and lines[0]["parameter"] in row and " -1 " in row
    assert f"OUTSIDE: 1 left their tolerance, in {KEPT} (1)." in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    found = read(project.folder / "results" / "smoke" / "check.csv")
    assert [line["status"] for line in found] == ["outside", *["equal"] * (len(lines) - 1)]
