"""The frame of every script of the workflow: log, threads and errors."""

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def logged(path):
    """Append output to a log, and the traceback of what is no user's error. Notes in the error which log has it, the innermost one."""
    from poet.system.errors import UserError

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", buffering=1) as log, contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            if not hasattr(error, "log"):
                error.log = path
                traceback.print_exc()
            raise


def bring_back(inputs):
    """Set input dates that lie in the future, from a clock that was ahead, to now. If a job's output is older than its input,
    Snakemake takes the job for failed and deletes the output, even if it took days to make."""
    now = time.time()
    for path in map(Path, inputs):
        with contextlib.suppress(OSError):  # somebody else's file, or gone: Snakemake reports the problem
            if path.stat().st_mtime > now:
                os.utime(path, (now, now))
                print(f"{path} was dated in the future: its date is now; check the clocks of the machines that share this folder")


@contextlib.contextmanager
def job(snakemake):
    """Send output to the rule's log, keep to the rule's threads, and show a user's error as one sentence.

    Scripts import heavy modules inside the block: the number of threads has to be set before torch is loaded.
    """
    sys.path.insert(0, str(ROOT))
    os.environ["OMP_NUM_THREADS"] = str(snakemake.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if snakemake.threads > 1 else "false"
    from poet.system.errors import UserError
    from suite.pipeline import note_error

    try:
        with logged(snakemake.log[0]):
            try:
                yield
                bring_back(snakemake.input)
            except UserError as error:
                print(f"error: {error}")
                raise
    except UserError as error:
        print(f"error: {error}", file=sys.__stderr__)
        note_error(str(error))
        raise SystemExit(2) from None
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # by name: torch is not always loaded
            what = "does not fit into the GPU's memory: raise accumulation or gpus of the model in the scale's file, or lower batch_rows of finetuning;"
        else:
            what = f"met a fault of this suite ({type(error).__name__}: {error}):"
        note_error(f"rule {snakemake.rule} {what} {getattr(error, 'log', snakemake.log[0])} has all of it")
        raise
