"""``python -m poet.training JOB``: one process of a run, as ``poet.training.launch`` starts it through ``torchrun``."""

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path

from poet.errors import UserError
from poet.training.launch import error_of
from poet.training.loop import train
from poet.training.spec import RunSpec


def main(path: str) -> int:
    """0: the run is done; 2: the user must put something right, and a sentence in the job's error file says what; 1: a bug,
    whose traceback is printed; 128 and more: a signal, and the progress is saved."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    folders = {key: Path(job.pop(key)) for key in ("data", "folder", "checkpoints")}
    try:
        train(RunSpec.from_dict(job.pop("spec")), **folders, **job)
    except UserError as error:
        with contextlib.suppress(FileExistsError), open(error_of(Path(path)), "x", encoding="utf-8") as file:
            file.write(str(error))  # the first one: what the others meet is that this process is gone
        return 2
    except SystemExit as end:
        return end.code
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # see poet.training.distribution.join
