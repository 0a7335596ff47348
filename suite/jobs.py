"""Training jobs: which runs are finished, code that changed meanwhile, and finished runs that outlive a stopped job or pipeline."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import check_weights
from poet.system.progress import say
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from suite.collection import RESULTS, Suite
from suite.recorded.restore import changed
from suite.records import whole_record
from suite.targets import made
from suite.verify import fault

#: Where finished runs are kept until the pipeline has succeeded.
FINISHED = RESULTS / "finished"


def finished(suite: Suite) -> Callable[[str], bool]:
    """A function that says whether the run of a name is finished: its record and history exist and match today's spec and code.

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


def keep(spec: RunSpec | FinetuningSpec, folder: Path) -> None:
    """Keep the files of a run that has just finished, its record last, under a second name that Snakemake does not know.

    Snakemake deletes every output of a job that fails or is stopped, and of one whose end it did not live to see. A run is finished whether or
    not it can be kept: a disk that is full or a folder of another user fails no job.
    """
    kept = FINISHED / spec.name
    try:
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("record.json"), copy_function=_link, dirs_exist_ok=True)
        _link(folder / "record.json", kept / "record.json")
    except OSError as error:
        say(f"{spec.name}: finished, but no second copy could be kept in {kept} ({error}): if its job or its pipeline is stopped now, it is trained again")


def take_back(
    spec: RunSpec | FinetuningSpec, folder: Path, *, known: list[str], device: str, data: Path, base: Path | None = None
) -> bool:
    """Put a kept run back if its spec, code (unless ``known`` is empty) and inputs are today's; see :func:`suite.recorded.restore.changed`. Returns whether it was."""
    kept = FINISHED / spec.name
    try:
        if fault(kept, spec.name):
            return False
        record = whole_record(kept / "record.json")
        check_weights(record, kept / "weights")
    except (OSError, RunError):  # such as a folder of another user
        return False
    if record["spec_digest"] != spec.digest or changed(spec, record, device, data, base, code=bool(known)):
        return False
    shutil.rmtree(folder, ignore_errors=True)  # Snakemake leaves files there that are no output of their own, such as weights
    shutil.copytree(kept, folder, copy_function=_link, dirs_exist_ok=True)
    say(f"{spec.name}: finished before its job or its pipeline was stopped")
    return True


def forget_finished(outputs: Iterable[str]) -> None:
    """Delete what :func:`keep` kept of the runs that a pipeline asked for, once it succeeded.

    ``outputs`` are those of its jobs, also of jobs that ``--until`` or the like left out: these have made nothing yet.
    """
    for output in filter(Path.exists, map(Path, outputs)):
        _forget(output)
    if not any(FINISHED.rglob("record.json")):
        shutil.rmtree(FINISHED, ignore_errors=True)


def forget_forced(dag: Any) -> None:
    """Delete what :func:`keep` kept of the runs that a call is to make by force: :func:`take_back` would put it back.

    ``dag`` is Snakemake's, of a call with ``--forcerun`` or the like. Without such an option it forces only what a
    killed pipeline left incomplete.
    """
    for output in (output for job in dag.needrun_jobs() if dag.reason(job).forced for output in job.output):
        _forget(Path(output))


def _forget(output: Path) -> None:
    """Delete the second copy of a run that has this output, if it is a run's."""
    if output.name == "record.json" and output.is_relative_to(RESULTS / "runs"):
        shutil.rmtree(FINISHED / output.parent.relative_to(RESULTS / "runs"), ignore_errors=True)


def _link(source: str | Path, target: str | Path) -> None:
    """A second name for a file, or a copy where the file system has none. Files are replaced whole, never written in place."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def check_code(known: list[str], digest: str) -> None:
    """Refuse to train with code that changed since the pipeline began: the run would count as one of the old code.

    ``known``: the training digests when the pipeline began; empty at a scale with ``retrain: false``.

    Raises:
        RunError: the code changed.
    """
    if known and digest not in known:
        raise RunError("the code was changed since this pipeline began: call it again, and it trains with the code as it is now")
