"""An archive of runs: a Parquet file with a row for each run, sorted by name. Equal runs give equal bytes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from poet.launch.sources import ROOT
from poet.system.files import atomic_path
from suite.recorded.run import FILES, RecordedError, RecordedRun, checked, sha256

_TEXT = ("name", "scale", "model", "variant", "spec_digest", "training_digest", "commit", "device", "machine", "torch", "origin")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXT),
        ("seed", pa.int64()),
        *((f"{file}_sha256", pa.string()) for file in FILES),
        *((file, pa.binary()) for file in FILES),
    ]
)
#: Smallest and largest page. Large pages compress what runs have in common. Content decides where a page begins: when runs are added
#: most pages keep their bytes, and git stores them once.
_PAGE_BYTES = 2**20, 2**23


def archive_path(scale: str, root: Path = ROOT) -> Path:
    """The archive with the recorded runs of a scale."""
    return root / "analyses" / "recorded" / scale / "runs.parquet"


def row(run: RecordedRun) -> dict[str, Any]:
    """A run's row in the archive. All columns but ``origin`` and the files themselves are derived from the files."""
    spec, record = run.spec, run.record
    where = record["provenance"]
    return {
        "name": spec.name,
        "scale": spec.scale,
        "model": spec.model,
        "variant": spec.variant,
        "seed": spec.seed,
        "spec_digest": spec.digest,
        "training_digest": record["training_digest"],
        "commit": where["commit"],
        "device": where["device"],
        "machine": where["machine"]["cpu"],
        "torch": where["versions"]["torch"],
        "origin": run.origin,
        **{f"{file}_sha256": sha256(run.files[file]) if file in run.files else None for file in FILES},
        **{file: run.files.get(file) for file in FILES},
    }


def write(path: Path, runs: Iterable[RecordedRun]) -> None:
    """Write an archive; an older one is replaced as a whole.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    rows = [row(run) for run in sorted(runs, key=lambda run: run.name)]
    smallest, largest = _PAGE_BYTES
    with atomic_path(path) as temporary:
        pq.write_table(
            pa.Table.from_pylist(rows, SCHEMA),
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=False,
            write_statistics=False,
            data_page_size=largest,
            use_content_defined_chunking={"min_chunk_size": smallest, "max_chunk_size": largest},
            write_page_checksum=True,
        )


def read(path: Path, only: str | None = None) -> dict[str, RecordedRun]:
    """The runs of an archive, or the one of a name, each checked.

    Raises:
        RecordedError: the archive does not exist, is damaged, has another format, or has a run twice or with files that do not
            belong together.
    """
    try:
        # No threads: a forked process does not have those of its parent.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise RecordedError(f"{path} is no archive of runs in today's format: remove it, then pack the runs from their results folder with `python -m suite.recorded pack`")
            table = file.read(use_threads=False)
    except FileNotFoundError:
        raise RecordedError(f"there are no recorded runs in {path}: keep those of a results folder with `make record`") from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    names = table["name"].to_pylist()
    if only is not None:
        table = table.filter(pa.array([name == only for name in names], pa.bool_()))
    runs: dict[str, RecordedRun] = {}
    for stored in table.to_pylist():
        run = _run(stored, path)
        if run.name in runs:
            raise RecordedError(f"{path} has run {run.name} twice: remove it, then pack the runs from one results folder")
        runs[run.name] = run
    return runs


def digests(path: Path) -> dict[str, tuple[str, str]]:
    """Spec digest and training digest of every run of an archive, by name, without checking the files; empty if there is no archive."""
    if not path.exists():
        return {}
    try:
        table = pq.read_table(path, columns=["name", "spec_digest", "training_digest"], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    return {row["name"]: (row["spec_digest"], row["training_digest"]) for row in table.to_pylist()}


def _unreadable(path: Path, error: Exception) -> RecordedError:
    first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return RecordedError(f"{path} cannot be read ({first}): it was cut short or damaged; get it again")


def _run(stored: dict[str, Any], path: Path) -> RecordedRun:
    try:
        run = checked({file: stored[file] for file in FILES if stored[file] is not None}, stored["origin"] or "")
    except RecordedError as error:
        raise RecordedError(f"{path}: {error}: get the archive again from where it was packed") from None
    wrong = [name for name, value in row(run).items() if stored[name] != value]
    if wrong:
        raise RecordedError(f"{path}: row {stored['name']!r} says another {wrong[0]} than its record: get the archive again")
    return run
