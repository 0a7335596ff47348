"""Which seeds of the recorded runs are built from, and what is refused."""

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from analyses.common.controls import grounds_of_all
from analyses.report.report import page
from poet.system.files import write_text
from suite.collection import load_suite
from suite.context import Context
from suite.discovery import find
from suite.recorded import archive, build as builder, marking
from suite.recorded.marking import build_artifact, caption, runs_behind
from tests.analyses.report.small_results import write_results
from suite.recorded.run import RecordedError
from suite.tuning.protocol import load_protocol


@pytest.fixture
def recorded(recorded_run, specs, tmp_path, monkeypatch):
    """Two runs of seed 0 and one of seed 1, and what would be built with which seeds."""
    runs = [recorded_run(spec) for spec in (specs["60m/adamw"], specs["130m/adamw"], replace(specs["60m/adamw"], seed=1))]
    archive.write(tmp_path / "runs.parquet", runs)
    monkeypatch.setattr(builder, "archive_path", lambda scale: tmp_path / "runs.parquet")
    monkeypatch.setattr(builder, "RESULTS", tmp_path)
    asked = []
    monkeypatch.setattr(builder, "_in_order", lambda suite, names, context: asked.append(list(suite.scale.seeds)) or [])
    return asked


def test_runs_of_an_earlier_archive_do_not_count(recorded, tmp_path):
    runs = tmp_path / "recorded" / "smoke" / "runs" / "smoke"
    write_text(runs / "60m" / "lora-r64" / "seed0" / "record.json", "{}")
    builder.build("smoke")
    assert {path.parent.parent.name for path in runs.rglob("record.json")} == {"adamw"}


def test_a_seed_that_is_recorded_in_part_is_left_out_with_a_word(recorded):
    lines, failed = builder.build("smoke")
    assert failed and any(line.startswith("not built: table2: 34 of its 36 runs are missing, such as smoke/1.3b/") for line in lines)
    assert recorded == [[0]] and lines[0] == "seed 1 is left out: 1 runs of it are recorded, and 2 of seed 0"
    lines, _ = builder.build("smoke", [0, 1])
    assert recorded == [[0], [0, 1]] and not any("left out" in line for line in lines)


def test_a_setting_with_fewer_or_more_seeds_changes_no_other():
    assert builder.usual(Counter({0: 83, 1: 83, 2: 81, 3: 4, 4: 4, 5: 4})) == [0, 1, 2]
    assert builder.usual(Counter({0: 4, 1: 2, 2: 2})) == [0]


@pytest.mark.parametrize("seeds", [None, [0]])
@pytest.mark.parametrize("change", [{"seed": load_protocol().seed}, {"variant": "renamed"}], ids=["trial", "renamed"])
def test_runs_that_nothing_uses_are_nothing_to_build_from(recorded, recorded_run, specs, tmp_path, change, seeds):
    (table := tmp_path / "recorded" / "smoke" / "table2.csv").parent.mkdir(parents=True)
    table.write_text("of before")
    archive.write(tmp_path / "runs.parquet", [recorded_run(replace(specs["60m/adamw"], **change))])
    with pytest.raises(RecordedError, match="no table and no figure of scale smoke uses any of the recorded runs"):
        builder.build("smoke", seeds)
    assert recorded == [] and table.read_text() == "of before"


def test_a_seed_that_nobody_recorded_is_refused_and_what_was_made_stays(recorded, tmp_path):
    (table := tmp_path / "recorded" / "smoke" / "table2.csv").parent.mkdir(parents=True)
    table.write_text("of before")
    with pytest.raises(RecordedError, match="no run of seed 7 is recorded at scale smoke: ask for some of 0, 1"):
        builder.build("smoke", [0, 7])
    assert recorded == [] and table.read_text() == "of before"


def part(suite, name, there):
    """The models and seeds at which an artifact is built from the runs that are there; None where it is not."""
    found = builder._part(suite, name, there)
    return found and (found.models, found.seeds)


def test_an_artifact_is_built_at_the_models_that_lack_none_of_its_runs(smoke):
    every, whole = smoke.specs.keys(), (smoke.scale.models, (0,))
    assert part(smoke, "table2", every) == part(smoke, "claims", set()) == whole
    one = "smoke/350m/poet-fs-1_2/seed0"
    assert one in every and part(smoke, "table2", every - {one}) == (("60m", "130m", "1.3b", "3b"), (0,))
    assert part(smoke, "table2", set()) is None


def test_an_artifact_of_one_model_is_built_with_the_seeds_that_lack_none_of_its_runs():
    suite = load_suite({"scale": "smoke", "seeds": [0, 1, 2]})
    lost = {spec.name for spec in suite.artifacts["figure5"].specs(suite.scale) if spec.seed == 2}
    assert part(suite, "figure5", suite.specs.keys() - lost) == (suite.scale.models, (0, 1))


def test_an_artifact_is_not_built_without_a_model_that_it_needs_or_takes_another_for(smoke):
    for name in ("controls", "figure1"):  # controls needs 60m; figure1 is of one model, the deepest that there is up to its own
        specs = smoke.artifacts[name].specs(smoke.scale)
        lost = next(spec for spec in specs if spec.model == ("60m" if name == "controls" else specs[0].model))
        assert part(smoke, name, smoke.specs.keys() - {lost.name}) is None


LOST = "smoke/350m/galore/seed0"


@pytest.fixture
def narrowed(tmp_path, smoke):
    """Results without one run of Table 2, as a build from recorded runs has them."""
    parts = {name: builder._part(smoke, name, smoke.specs.keys() - {LOST}) for name in smoke.artifacts}
    left_out = {name: "a run is missing" for name, part in parts.items() if not part}
    context = Context(smoke.scale, tmp_path, left_out, {name: part for name, part in parts.items() if part and part is not smoke.scale})
    assert "table2" in context.narrowed
    write_results(Context(smoke.scale, tmp_path))
    (tmp_path / "runs" / LOST / "record.json").unlink()
    return context


def test_a_table_without_a_model_says_so(narrowed, monkeypatch):
    plain = replace(find("table2"), outputs=("table2.md",), build=lambda context: write_text(context.results / "table2.md", "A table.\n"))
    monkeypatch.setattr(marking, "find", lambda name: plain)
    build_artifact("table2", narrowed.of("table2"))
    assert (narrowed.results / "table2.md").read_text() == "A table.\n\nBuilt without 350m, whose runs are not all recorded.\n"
    assert caption(narrowed.of("table2"), plain).endswith("enwik8 (stand-in for C4), without 350m, whose runs are not all recorded.")
    assert "without" not in caption(narrowed, plain)


def test_what_is_gathered_reads_no_run_that_is_missing(narrowed):
    kept = LOST.replace("350m", "60m")
    behind = {spec.name for spec in runs_behind(find("claims"), narrowed)}
    assert kept in behind and LOST not in behind
    assert grounds_of_all(narrowed).trained([narrowed.scale.run("60m", "galore", 0)])
    assert not grounds_of_all(narrowed).trained([narrowed.scale.run("350m", "galore", 0)])
    text = page(narrowed)
    assert f'data-run="{kept}"' in text and f'data-run="{LOST}"' not in text


def test_a_file_that_is_gone_is_a_reason(narrowed):
    (path := narrowed.results / "claims.csv").unlink()
    assert builder._build_one("report", narrowed)[1] == f"{path} is missing"


def test_times_are_the_recorded_ones_and_never_taken_again(recorded, tmp_path, smoke):
    lines, _ = builder.build("smoke")
    assert "not built: table11: its numbers are times, and none are recorded at this scale" in lines
    for suffix in ("csv", "md"):
        (tmp_path / f"table11.{suffix}").write_text("recorded\n")
    lines, _ = builder.build("smoke")
    assert not any("table11" in line for line in lines)
    assert builder._build_one("table11", Context(smoke.scale, tmp_path / "built"))[1] == ""
    assert (tmp_path / "built" / "table11.csv").read_text() == "recorded\n"
    assert (tmp_path / "built" / "table11.md").read_text() == "recorded\n\nRecorded times, not measured here.\n"


ENDLESS = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from suite.recorded.build import _ended_with_its_processes
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool, _ended_with_its_processes():
        print(pool.submit(os.getpid).result(), flush=True)
        for _ in range(1000):
            pool.submit(time.sleep, 60)
        time.sleep(600)
"""


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_build_that_is_told_to_end_leaves_no_process_behind(repository, number):
    running = subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=repository, stdout=subprocess.PIPE, text=True)
    worker = int(running.stdout.readline())
    os.kill(worker, 0)  # it is there
    running.send_signal(number)
    assert running.wait(timeout=30) == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
