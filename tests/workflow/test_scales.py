"""What belongs to a scale stays under it: two scales in turn, in a project that has one artifact, which needs no runs."""

import shutil

KEPT, TABLE = "table8", "results/table8.csv"


def make(project, scale, *targets):
    """The rules that ran, in order."""
    done = project.snakemake(*targets, "--config", f"scale={scale}")
    assert done.returncode == 0, done.stderr[-2000:]
    words = (line.strip().split() for line in (done.stdout + done.stderr).splitlines())
    return [line[1].rstrip(":") for line in words if line[:1] in (["rule"], ["localrule"])]


def test_going_back_to_a_scale_builds_nothing(project):
    project.keep(KEPT)
    scales = project.folder / "config" / "scales"
    shutil.copy(scales / "smoke.yaml", scales / "other.yaml")
    results = project.folder / "results"

    assert make(project, "smoke", TABLE) == [KEPT, f"show_{KEPT}"]
    assert make(project, "other", TABLE) == [KEPT, f"show_{KEPT}"]
    made = {scale: results / scale / "table8.csv" for scale in ("smoke", "other")}
    dates = {scale: path.stat().st_mtime_ns for scale, path in made.items()}
    made["smoke"].write_text(made["smoke"].read_text() + "smoke's own\n")  # the numbers of this table are those of any scale
    shown = project.folder / TABLE
    assert shown.read_bytes() == made["other"].read_bytes()

    assert make(project, "smoke", TABLE) == [f"show_{KEPT}"]
    assert shown.read_bytes() == made["smoke"].read_bytes() != made["other"].read_bytes()
    assert made["other"].stat().st_mtime_ns == dates["other"]
