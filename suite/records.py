"""Reading the record of a run, and whether today's code would train the same."""

import json
import platform
from pathlib import Path
from typing import Any

from poet.finetuning.sources import finetuning_digest
from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import check_record
from poet.launch.sources import training_digest
from poet.training.errors import RunError
from poet.training.spec import RunSpec


def whole_record(path: Path) -> dict[str, Any] | None:
    """The record in a file, after checking that nobody edited it; None if there is no file.

    Raises:
        RunError: the record cannot be read, or was edited.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        check_record(record)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise RunError(f"{path} cannot be read as a record, or was edited: remove it, and the run is trained again") from None
    return record


def changed_code(spec: RunSpec | FinetuningSpec, record: dict[str, Any], device: str) -> str:
    """What differs between today's training code and that of a record; empty if nothing. Code that prepares data is not compared.

    The digest is of code as Python's ``ast`` prints it, which may depend on the Python version.
    """
    today = finetuning_digest(spec, device) if isinstance(spec, FinetuningSpec) else training_digest(spec.method, device)
    if record.get("training_digest") == today:
        return ""
    then, now = record.get("provenance", {}).get("versions", {}).get("python", ""), platform.python_version()
    same = not then or then.split(".")[:2] == now.split(".")[:2]
    return "training code" if same else f"training code or Python ({then} then, {now} now)"
