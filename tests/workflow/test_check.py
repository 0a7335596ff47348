"""The rule ``check``, in a project that has one artifact which needs no runs."""

import csv

from suite.discovery import locate

KEPT = "table8"


def test_a_number_that_left_its_tolerance_fails_with_a_table_and_without_a_traceback(project, repository):
    for name, path in locate(project.folder).items():
        if name != KEPT:
            path.unlink()
    recorded = project.folder / "analyses" / "recorded" / "smoke" / f"{KEPT}.csv"
    recorded.parent.mkdir(exist_ok=True)
    with open(repository / "analyses" / "recorded" / "mini" / f"{KEPT}.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    lines[0]["measured"] = str(int(lines[0]["measured"]) + 1)
    with open(recorded, "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    done = project.snakemake("check", "--config", "scale=smoke")
    assert done.returncode == 1, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if line.endswith("OUTSIDE"))
    assert row.split()[0] == KEPT and lines[0]["parameter"] in row and " -1 " in row
    assert f"OUTSIDE: 1 left their tolerance, in {KEPT} (1)." in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    with open(project.folder / "results" / "smoke" / "check.csv", newline="") as file:
        assert [line["status"] for line in csv.DictReader(file)] == ["outside", *["equal"] * (len(lines) - 1)]
