"""What every script of the workflow does around its work."""

import contextlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def logged(path):
    """Send output to a log, behind what stands there."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", buffering=1) as log, contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
        yield


@contextlib.contextmanager
def job(snakemake):
    """Send output to the rule's log, keep to the rule's threads, and show a user's error as one sentence.

    Everything heavy is imported inside: the number of threads has to be set before torch is loaded.
    """
    sys.path.insert(0, str(ROOT))
    os.environ["OMP_NUM_THREADS"] = str(snakemake.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if snakemake.threads > 1 else "false"
    from poet.errors import UserError

    with logged(snakemake.log[0]):
        try:
            yield
        except UserError as error:
            print(f"error: {error}", file=sys.__stderr__)
            print(f"error: {error}")
            raise SystemExit(2) from None
