"""What every script of the workflow does around its work."""

import contextlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def job(snakemake):
    """Send output to the rule's log, keep to the rule's threads, and show a user's error as one sentence.

    Everything heavy is imported inside: the number of threads has to be set before torch is loaded.
    """
    sys.path.insert(0, str(ROOT))
    os.environ["OMP_NUM_THREADS"] = str(snakemake.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if snakemake.threads > 1 else "false"
    from poet.errors import UserError

    Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
    with open(snakemake.log[0], "a", buffering=1) as log, contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
        try:
            yield
        except UserError as error:
            print(f"error: {error}", file=sys.__stderr__)
            print(f"error: {error}")
            raise SystemExit(2) from None
