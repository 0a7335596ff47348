"""Checks of a Snakemake call, before Snakemake builds its DAG."""

import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from poet.system.validation import ConfigError
from suite import pipeline
from suite.check.compare import recorded_folder
from suite.collection import RESULTS, Suite
from suite.recorded.archive import archive_path, read
from suite.targets import check_targets, unmake_data, unmake_lost

#: Options with which Snakemake makes and removes no target (--report writes its page).
_LOOKS = (
    *("dryrun", "lint", "list_target_rules", "list_rules", "print_compilation", "dag", "rulegraph", "filegraph", "d3dag", "summary"),
    *("detailed_summary", "list_changes", "list_input_changes", "list_params_changes", "list_untracked", "list_conda_envs", "report"),
)


def looks(given: Namespace) -> bool:
    """Whether a command line only looks: with one of its options Snakemake makes and removes no target."""
    return any(getattr(given, name, None) for name in _LOOKS)


def works(given: Namespace) -> bool:
    """Whether a command line may run jobs or remove files, and so needs the lock."""
    return not (given.unlock or given.nolock or looks(given))


def begin(suite: Suite, config: dict[str, Any], arguments: Namespace) -> None:
    """Refuse a call that cannot succeed. For one that runs jobs, lock the folder and have deleted files made again.

    Raises:
        UserError: the target is unknown, the folder cannot be written, another pipeline is at work in it, or
            recorded runs are asked for and missing.
    """
    targets = tuple(map(str, arguments.targets or ()))
    check_targets(suite, targets)  # Snakemake's own message about a missing rule names no remedy
    if "check" in targets:
        recorded_folder(suite.scale.name)  # refused now, and not after days of training
    if config.get("resume"):
        read(archive_path(suite.scale.name))  # refused now, and not by every run
    if not looks(arguments):
        _check_writable(RESULTS if RESULTS.exists() else Path("."))
    if sentence := suite.untuned():
        print(sentence, file=sys.stderr)
    if works(arguments):
        pipeline.lock_folder()
        for note in (*unmake_data(suite), *unmake_lost(suite, targets)):
            print(note, file=sys.stderr)
    if arguments.unlock:
        pipeline.unlock()


def _check_writable(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"nothing can be written to {RESULTS.absolute()} ({error.strerror}): make it writable, or free space") from None
