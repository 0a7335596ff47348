"""Equal runs give equal bytes, and an archive that is damaged is refused in one sentence."""

import dataclasses
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suite.recorded import archive
from suite.recorded.run import RecordedError, RecordedRun


@pytest.fixture
def runs(recorded_run, specs):
    return [recorded_run(specs[name]) for name in ("60m/adamw", "60m/poet-fs-1_2", "130m/adamw")]


@pytest.fixture
def path(runs, tmp_path):
    archive.write(tmp_path / "runs.parquet", runs)
    return tmp_path / "runs.parquet"


def refusal(path):
    with pytest.raises(RecordedError) as caught:
        archive.read(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_equal_runs_give_equal_bytes_in_whatever_order(path, runs, tmp_path):
    archive.write(tmp_path / "again.parquet", reversed(runs))
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


def test_runs_are_read_back_by_name_and_one_alone(path, runs):
    assert archive.read(path) == {run.name: run for run in runs}
    assert list(archive.read(path, only=runs[1].name).values()) == [runs[1]]
    assert archive.read(path, only="smoke/60m/none/seed0") == {}


@pytest.mark.parametrize("share", (0.0, 0.3, 0.99))
def test_an_archive_that_was_cut_short_is_refused(path, share):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "it was cut short or damaged; get it again" in refusal(path)
    with pytest.raises(RecordedError, match="^[^\n]*it was cut short or damaged; get it again$"):
        archive.digests(path)


@pytest.mark.parametrize("scale", ("mini", "night"))
def test_the_archives_that_are_kept_here_are_whole(scale):
    assert archive.read(archive.archive_path(scale))


def test_a_byte_that_was_turned_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 255
    path.write_bytes(content)
    assert refusal(path)


def test_another_table_is_no_archive(path):
    pq.write_table(pa.table({"name": ["a"]}), path)
    assert "is no archive of runs" in refusal(path)


def test_a_missing_archive_is_named_with_the_command_that_makes_it(tmp_path):
    assert "keep those of a results folder with `make record`" in refusal(tmp_path / "none.parquet")


def test_one_run_twice_is_refused(path, runs):
    archive.write(path, [*runs, runs[0]])
    assert f"has run {runs[0].name} twice" in refusal(path)


@pytest.mark.parametrize(("column", "value"), [("training_digest", "0" * 64), ("record.json", b"{}"), ("commit", "b" * 40)])
def test_a_row_that_says_other_than_its_record_is_refused(path, column, value):
    rows = pq.read_table(path).to_pylist()
    rows[0][column] = value
    pq.write_table(pa.Table.from_pylist(rows, archive.SCHEMA), path)
    assert ("lacks" if column == "record.json" else f"says another {column} than its record") in refusal(path)


def test_history_of_another_run_is_refused_though_its_column_says_its_digest(path, recorded_run, specs):
    other = archive.row(recorded_run(specs["60m/adamw"], loss=1.0))
    rows = pq.read_table(path).to_pylist()
    rows[0] |= {key: other[key] for key in ("history.csv", "history.csv_sha256")}
    pq.write_table(pa.Table.from_pylist(rows, archive.SCHEMA), path)
    assert "record and history of run" in refusal(path)


def test_new_runs_leave_most_bytes_as_they_were(recorded_run, specs, tmp_path, monkeypatch):
    """Git keeps equal bytes of two versions once. Histories are hexadecimal digits here, and written shorter: their bytes depend on where a page begins."""
    monkeypatch.setattr(archive, "_PAGE_BYTES", (2**15, 2**18))
    digits = random.Random(0)
    seeds = [recorded_run(dataclasses.replace(specs["60m/adamw"], seed=seed)) for seed in range(200)]
    runs = sorted((RecordedRun(run.spec, run.record, {"history.csv": b"%x" % digits.getrandbits(2**15)}) for run in seeds), key=lambda run: run.name)
    archive.write(tmp_path / "before.parquet", runs[1:])
    archive.write(tmp_path / "after.parquet", runs)  # every other run lies elsewhere now
    before, after = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("before", "after"))
    probes = range(0, len(before) - 16, len(before) // 100)
    assert sum(before[at : at + 16] in after for at in probes) > 0.6 * len(probes)
