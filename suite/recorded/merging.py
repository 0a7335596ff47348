"""Packing the runs of a results folder into an archive, and importing another machine's archive."""

from collections.abc import Iterable
from pathlib import Path

from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.collection import load_suite
from suite.recorded.archive import archive_path, read, write
from suite.recorded.origin import read_origin
from suite.recorded.run import RecordedError, RecordedRun, checked, files_of, spec_of
from suite.records import whole_record
from suite.scale import Scale
from suite.tuning import cells, finetuning
from suite.tuning.protocol import load_protocol


def _asked_today(scale: str, runs: Iterable[RecordedRun]) -> set[str]:
    """The names of the runs whose specs today's code and configuration may ask for.

    A trial counts if the protocol may ask for it at any rates: the search cannot be replayed without its results folder.
    """
    runs = list(runs)
    of_trials = load_protocol().seed
    pretrained = {run.spec.seed for run in runs if isinstance(run.spec, RunSpec)} - {of_trials}  # not those of finetuning, which starts from the first of these
    suite = load_suite({"scale": scale, "seeds": sorted(pretrained) or [0]})
    today = suite.specs
    return {
        run.name
        for run in runs
        if (_is_trial(suite.scale, run.spec) if run.spec.seed == of_trials else run.name in today and run.spec.digest == today[run.name].digest)
    }


def _is_trial(scale: Scale, spec: RunSpec | FinetuningSpec) -> bool:
    return finetuning.is_trial(scale, spec) if isinstance(spec, FinetuningSpec) else cells.is_trial(scale, spec)


def _trials(results: Path, scale: Scale) -> list[RunSpec | FinetuningSpec]:
    """The specs of all trials that have a record in a results folder, also of searches that are not finished.

    Raises:
        RunError: a record cannot be read, or was edited.
        RecordedError: a record has no valid spec.
    """
    found = []
    runs, record = results / "runs" / scale.name, f"seed{scale.protocol.seed}/record.json"
    for path in sorted([*runs.glob(f"*/*/{record}"), *runs.glob(f"finetuned/*/*/*/{record}")]):
        try:
            spec = spec_of(whole_record(path))
        except (ValueError, TypeError, KeyError):
            raise RecordedError(f"{path} says no run: remove this folder and train the run again") from None
        if _is_trial(scale, spec):
            found.append(spec)
    return found


def gather(results: Path, specs: dict[str, RunSpec | FinetuningSpec]) -> tuple[list[RecordedRun], list[str]]:
    """The finished runs of a results folder that have all their files and today's specs, and sentences on those left out.

    Raises:
        RecordedError: a record was edited, or a run's files do not belong together.
    """
    runs: list[RecordedRun] = []
    left: dict[str, list[str]] = {}
    for name, spec in specs.items():
        folder = results / "runs" / name
        if not (folder / "record.json").exists():
            continue
        wanted = files_of(spec)
        if missing := [file for file in wanted if not (folder / file).exists()]:
            left.setdefault(f"have no {missing[0]}", []).append(name)
            continue
        origin = read_origin(folder)
        try:
            run = checked({file: (folder / file).read_bytes() for file in wanted}, origin[0] if origin else "")
        except RecordedError as error:
            raise RecordedError(f"{folder}: {error}: remove this folder and train the run again") from None
        if run.spec.digest == spec.digest:
            runs.append(run)
        else:
            left.setdefault("are of another spec than today's", []).append(name)
    return runs, [f"{len(names)} runs {why}, such as {names[0]}: left out" for why, names in left.items()]


def pack(results: Path, scale: str, seeds: Iterable[int], archive: Path | None = None, *, drop: bool = False) -> list[str]:
    """Add the runs of a results folder to the scale's archive, whose other runs stay.

    Args:
        archive: None takes the scale's.
        drop: drop recorded runs whose specs nothing asks for today.

    Returns:
        A sentence for each reason why runs were left out or dropped, and last how many the archive has.

    Raises:
        RecordedError: there are such runs, and ``drop`` is False; or see :func:`gather` and :func:`suite.recorded.archive.read`.
        ConfigError: there is no such scale.
        DiskError: the archive cannot be written.
    """
    archive = archive or archive_path(scale)
    suite = load_suite({"scale": scale, "seeds": sorted(set(seeds))})
    found, notes = gather(results, suite.specs | {spec.name: spec for spec in _trials(results, suite.scale)})
    before = read(archive) if archive.exists() else {}
    today = _asked_today(scale, before.values())
    kept = {name: run for name, run in before.items() if name in today}
    if dropped := sorted(set(before) - set(kept) - {run.name for run in found}):
        said = f"{len(dropped)} recorded runs are of specs that nothing asks for any more, such as {dropped[0]}"
        if not drop:
            raise RecordedError(f"{said}: put config/ and the code back as they were, or give DROP=1 (--drop) to lose them")
        notes.append(f"{said}: dropped")
    after = kept | {run.name: run for run in found}
    if after != before:
        write(archive, after.values())
    new = sum(before.get(run.name) != run for run in found)
    return [*notes, f"{archive}: {len(after)} runs, {new} of them new"]


def take_in(file: Path, label: str, archive: Path | None = None) -> str:
    """Add the runs of another machine's archive to this project's, marked as foreign.

    Args:
        label: where it comes from; shown by every table that uses one of its runs.
        archive: this project's archive; None takes that of the runs' scale.

    Returns:
        A sentence on how many runs this project's archive has.

    Raises:
        RecordedError: the label is not plain text, or the file is damaged or has no runs, is of several scales, has a run that nothing asks
            for today, or a run that is recorded here with other bytes. This project's archive stays as it was.
        ConfigError: there is no such scale.
        DiskError: the archive cannot be written.
    """
    if not label.strip() or not label.isprintable() or set(label) & set("|<>`*"):
        raise RecordedError("a foreign run needs a name of where it comes from, on one line and without markup: give one with --origin")
    if not file.exists():
        raise RecordedError(f"{file} is not there: name the runs.parquet that another machine packed")
    theirs = read(file)
    scales = sorted({run.spec.scale for run in theirs.values()})
    if len(scales) != 1:
        raise RecordedError(f"{file} has runs of {len(scales)} scales ({', '.join(scales)}): pack one scale at a time")
    today = _asked_today(scales[0], theirs.values())
    for name in theirs:
        if name not in today:
            raise RecordedError(f"{file}: run {name} is of a spec that nothing asks for today: train it with this version, and pack it again")
    archive = archive or archive_path(scales[0])
    ours = read(archive) if archive.exists() else {}
    for name, run in theirs.items():
        if name in ours and ours[name].files != run.files:
            raise RecordedError(f"{file} and {archive} both have run {name}, with different bytes: keep one of the two")
    new = [RecordedRun(run.spec, run.record, run.files, run.origin or label) for name, run in theirs.items() if name not in ours]
    if new:
        write(archive, [*ours.values(), *new])
    return f"{archive}: {len(ours) + len(new)} runs, {len(new)} of them new"
