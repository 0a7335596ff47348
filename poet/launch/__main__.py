"""``python -m poet.launch JOB``: one process of a run, as ``poet.launch.start`` starts it through ``torchrun``."""

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path

from poet.system.errors import UserError
from poet.launch.start import end_of
from poet.launch.loop import train
from poet.training.spec import RunSpec


def main(path: str) -> int:
    """The exit code: 0 if the run is done; 1 for a bug, whose traceback is printed; 2 for an error that the user can correct;
    128 or more after a signal, with the progress saved. Errors and signals are noted for ``launch``."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    folders = {key: Path(job.pop(key)) for key in ("data", "folder", "checkpoints")}
    try:
        train(RunSpec.from_dict(job.pop("spec")), **folders, **job)
    except UserError as error:
        _note(path, error=str(error))
        return 2
    except SystemExit as end:
        _note(path, code=end.code)
        return end.code
    except Exception as error:
        traceback.print_exc()
        _note(path, error=f"{type(error).__name__}: {str(error).partition(chr(10))[0]} (the traceback is in the run's log)")
        return 1
    return 0


def _note(path: str, **end: object) -> None:
    """Write why this process ended, unless another process did so first: later ones only fail because the first is gone."""
    with contextlib.suppress(FileExistsError), open(end_of(Path(path)), "x", encoding="utf-8") as file:
        json.dump(end, file)


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # see poet.training.distribution.join
