"""Checks of training jobs: finished runs, code that changed meanwhile, and the finished runs of a job that was stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from poet.finetuning.spec import FinetuningSpec
from poet.system.progress import say
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.collection import RESULTS, Suite
from suite.recorded.restore import changed
from suite.recorded.run import whole_record
from suite.targets import made


def finished(suite: Suite) -> Callable[[str], bool]:
    """A function that says whether the run of a name is finished: its files exist and match today's spec and code.

    A finetuning run also needs a finished base. An edited record counts as finished, so that it is not overwritten before somebody looks at it.
    """
    is_current, specs = suite.is_current(), suite.all_specs

    def is_finished(name: str) -> bool:
        spec = specs.get(name)
        if spec is None:  # a BART from elsewhere, which is not trained
            return True
        if not all(path.exists() for path in made(suite, name)):
            return False
        try:
            record = whole_record(RESULTS / "runs" / name / "record.json")
        except RunError:
            return True
        stays = record is not None and record["spec_digest"] == spec.digest and is_current(spec, record)
        return stays and (not isinstance(spec, FinetuningSpec) or not spec.base or is_finished(spec.base))

    return is_finished


class Aside:
    """Copies of the finished runs of one job: Snakemake deletes every output of a job that fails or is stopped.

    Args:
        results: the results folder.
        shared: whether several runs share the job; a single run needs no copy, since it ends with its job.
    """

    def __init__(self, results: Path, shared: bool) -> None:
        self.folder, self.shared, self.kept = results / "finished", shared, []

    def take_back(self, spec: RunSpec | FinetuningSpec, folder: Path, device: str, data: Path, base: Path | None = None) -> bool:
        """Copy a finished run back if its spec, code and inputs are today's; see :func:`suite.recorded.restore.changed`. Returns whether it was."""
        kept = self.folder / spec.name
        if not self.shared or not kept.exists():
            return False
        self.kept.append(kept)
        try:
            record = whole_record(kept / "record.json")
        except RunError:
            return False
        if record is None or record["spec_digest"] != spec.digest or changed(spec, record, device, data, base):
            return False
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        say(f"{spec.name}: finished before its job was stopped")
        return True

    def keep(self, spec: RunSpec | FinetuningSpec, folder: Path) -> None:
        """Copy a run that has just finished, its record last."""
        if self.shared:
            kept = self.folder / spec.name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("record.json"))
            shutil.copy(folder / "record.json", kept)
            self.kept.append(kept)

    def forget(self) -> None:
        """Delete the copies, once the job has succeeded."""
        for kept in self.kept:
            shutil.rmtree(kept, ignore_errors=True)


def check_code(known: list[str], digest: str) -> None:
    """Refuse to train with code that changed since the pipeline began: the run would count as one of the old code.

    Args:
        known: the training digests when the pipeline began; empty at a scale with ``retrain: false``.
        digest: the training digest now.

    Raises:
        RunError: the code changed.
    """
    if known and digest not in known:
        raise RunError("the code was changed since this pipeline began: call it again, and it trains with the code as it is now")
