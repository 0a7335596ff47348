"""A recorded run: the exact bytes of its files, and the check that they belong together."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import Altered, check_file, check_record
from poet.system.errors import UserError
from poet.training.spec import RunSpec

#: The files of a run that are recorded, the record first. Weights are not recorded: runs whose weights are needed are trained.
FILES = ("record.json", "history.csv", "probes.npz", "summaries.jsonl")


def files_of(spec: RunSpec | FinetuningSpec) -> list[str]:
    """The files of :data:`FILES` that a run of this spec writes."""
    if isinstance(spec, FinetuningSpec):
        return ["record.json", "summaries.jsonl"] if spec.decoding else ["record.json"]
    return ["record.json", "history.csv", *(["probes.npz"] if spec.probes else [])]


def spec_of(record: dict[str, Any]) -> RunSpec | FinetuningSpec:
    """The spec in a record.

    Raises:
        ValueError, TypeError, KeyError: the record has no valid spec.
    """
    return (FinetuningSpec if "task" in record["spec"] else RunSpec).from_dict(record["spec"])


class RecordedError(UserError):
    """An archive of runs, or a run in it, cannot be used."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run whose files belong together; :func:`checked` makes one.

    Attributes:
        spec: what was trained.
        record: the record, parsed.
        files: bytes by name of the :data:`FILES` that the run has.
        origin: where a foreign run comes from; empty for a run of this project.
    """

    spec: RunSpec | FinetuningSpec = field(compare=False)  # derived from the files, so not compared
    record: dict[str, Any] = field(compare=False)
    files: dict[str, bytes]
    origin: str = ""

    @property
    def name(self) -> str:
        """The spec's name."""
        return self.spec.name


def device_of(record: dict[str, Any]) -> str:
    """Where a run was trained: "cpu" or "cuda"."""
    return "cpu" if record["provenance"]["device"].startswith("cpu") else "cuda"


def sha256(content: bytes) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def checked(files: dict[str, bytes], origin: str = "") -> RecordedRun:
    """The run that the given files (bytes by name) make up, after checking that they belong together.

    Raises:
        RecordedError: the record is unreadable, was edited, or does not match its spec or the other files. The message names
            neither path nor remedy: the caller adds them.
    """
    try:
        record = json.loads(files["record.json"])
        spec = spec_of(record)
        name = spec.name
        _ = record["training_digest"], record["record_sha256"], record["provenance"]["commit"]
        _ = record["provenance"]["device"], record["provenance"]["machine"]["cpu"], record["provenance"]["versions"]["torch"]
        _ = record["probes_sha256"] if record["spec"].get("probes") else None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        lacks = f"lacks {error}" if isinstance(error, KeyError) else "cannot be read"
        raise RecordedError(f"{_named(files)} {lacks}") from None
    try:
        check_record(record)
    except Altered as error:
        raise RecordedError(f"the record of run {name} {error}") from None
    if (record["spec_digest"], record["name"]) != (spec.digest, name):
        raise RecordedError(f"record and spec of run {name} do not belong together")
    for file in FILES[1:]:
        try:
            check_file(record, file, files.get(file))
        except Altered:
            raise RecordedError(f"record and {file.partition('.')[0]} of run {name} do not belong together") from None
    return RecordedRun(spec, record, {file: files[file] for file in FILES if file in files}, origin)


def _named(files: dict[str, bytes]) -> str:
    """A name for an unreadable record: its run's name if it has one."""
    try:
        return f"the record of run {json.loads(files['record.json'])['name']}"
    except (ValueError, TypeError, KeyError):
        return "a run's record"
