"""Where every number comes from: the runs of each artifact, and each run's spec, source, machine and cost."""

import datetime
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyses.report.numbers import number
from analyses.report.sources import output_of, read_bytes
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.collection import collect_finetunings, collect_runs
from suite.context import Context
from suite.recorded.origin import foreign, origins, sentence

#: Fields of a spec that identify the run; the page shows them in headings and columns.
_IDENTITY = ("scale", "model", "variant", "method", "seed")
#: A longer list of steps (in characters) is written once for a model, and an id stands for it elsewhere.
LONG = 60


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A pretraining run on the page: its spec, its record, and the ids of its environment and data."""

    spec: RunSpec
    record: dict[str, Any]
    environment: str
    data: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Runs that differ in their seed alone."""

    variant: str  # as in the spec
    method: str
    differences: str  # from the usual values of the model and of the method on it, in words; empty if there are none
    runs: list[ReportedRun]  # by seed


@dataclass(frozen=True, slots=True)
class ReportedModel:
    """The runs of one model."""

    name: str  # as in the scale
    usual: str  # the most frequent value of every field of their specs, in words
    methods: dict[str, str]  # the most frequent values of the parameters of each method, in words
    steps: dict[str, str]  # long lists of steps at which runs were probed, by the id that stands for them
    settings: list[Setting]  # the runs by setting

    @property
    def runs(self) -> list[ReportedRun]:
        """Every run of the model."""
        return [run for setting in self.settings for run in setting.runs]


def core_hours(record: Mapping[str, Any]) -> float:
    """Hours of training times the number of CPU threads and of devices."""
    provenance = record["provenance"]
    threads = re.fullmatch(r"cpu \((\d+) threads\)", provenance["device"])
    # Older records do not have the number of devices: their runs had one.
    return record["cost"]["train_seconds"] * (int(threads[1]) if threads else 1) * provenance.get("devices", 1) / 3600


def words(value: Any) -> str:
    """A value of a spec as text, exactly; evenly spaced steps are shortened."""
    if isinstance(value, (list, tuple)):
        return ", ".join(_steps(value))
    return value if isinstance(value, str) else json.dumps(value)


def _steps(steps: Sequence[int]) -> Iterator[str]:
    """Ascending steps, four or more with one gap as "0 to 480 by 60"."""
    start = 0
    while start < len(steps):
        end = start + 1
        while end + 1 < len(steps) and steps[end + 1] - steps[end] == steps[start + 1] - steps[start]:
            end += 1
        if end - start < 3:
            end = start
        yield f"{steps[start]} to {steps[end]} by {steps[start + 1] - steps[start]}" if end > start else str(steps[start])
        start = end + 1


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a spec in words, by its dotted name."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", words(value)


def _fields(spec: RunSpec) -> dict[str, str]:
    """The fields of a spec in words, without :data:`_IDENTITY` and the method's parameters."""
    return dict(flat({key: value for key, value in spec.to_dict().items() if key not in (*_IDENTITY, "parameters")}))


def _usual(described: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The most frequent value of every key, probes aside."""
    keys = dict.fromkeys(key for each in described for key in each if not key.startswith("probes."))
    return {key: Counter(each[key] for each in described if key in each).most_common(1)[0][0] for key in keys}


def _listed(pairs: Mapping[str, str], usual: Mapping[str, str] | None = None) -> str:
    """Keys and values as text, without values that are the usual ones."""
    return ", ".join(f"{key} {value}" for key, value in pairs.items() if (usual or {}).get(key) != value)


def _model(name: str, runs: Sequence[ReportedRun]) -> ReportedModel:
    usual = _usual([_fields(run.spec) for run in runs])
    by_method: dict[str, list[dict[str, str]]] = {}
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        by_method.setdefault(run.spec.method, []).append(dict(flat(run.spec.parameters)))
        groups.setdefault(json.dumps({**run.spec.to_dict(), "seed": None}, sort_keys=True), []).append(run)
    methods = {method: _usual(described) for method, described in by_method.items()}
    listed = dict.fromkeys(text for run in runs for key, text in _fields(run.spec).items() if key.startswith("probes."))
    short = {text: f"S{i}" for i, text in enumerate((t for t in listed if len(t) > LONG), start=1)}
    settings = []
    for group in groups.values():
        spec = group[0].spec
        fields = {key: short.get(text, text) for key, text in _fields(spec).items()}
        differing = (_listed(dict(flat(spec.parameters)), methods[spec.method]), _listed(fields, usual))
        settings.append(Setting(spec.variant, spec.method, ", ".join(filter(None, differing)), group))
    return ReportedModel(
        name=name, usual=_listed(usual), methods={method: _listed(values) for method, values in methods.items()},
        steps={id: text for text, id in short.items()}, settings=settings,
    )


def models(runs: Sequence[ReportedRun]) -> list[ReportedModel]:
    """The runs by model and setting."""
    names = dict.fromkeys(run.spec.model for run in runs)
    return [_model(name, [run for run in runs if run.spec.model == name]) for name in names]


def _numbered(keys: Sequence[str], letter: str) -> dict[str, str]:
    """A short id for each distinct key, the most frequent first."""
    return {key: f"{letter}{i}" for i, (key, _) in enumerate(Counter(keys).most_common(), start=1)}


def source(context: Context, name: str, artifact: Artifact, records: Mapping[str, dict[str, Any]], made_on: Mapping[str, str]) -> dict[str, Any]:
    """The sources of an artifact: variants of its runs by model, their seeds, time and environments, which are foreign, and its CSV's digest.

    Args:
        context, name, artifact: the artifact and what it is built from.
        records, made_on: record and environment id of every run, by the run's name.

    Raises:
        RunError: its CSV is missing.
    """
    own = {spec.name: spec for spec in artifact.specs(context.scale)}
    by_model: dict[str, dict[str, None]] = {}
    for spec in artifact.runs(context.scale):
        by_model.setdefault(spec.model, {})[spec.variant] = None
    csv = output_of(artifact, ".csv")
    return {
        "name": name, "label": artifact.label, "scale_free": artifact.scale_free,
        "csv": csv, "digest": hashlib.sha256(read_bytes(context, csv)).hexdigest()[:12],
        "models": {model: list(variants) for model, variants in by_model.items()},
        "finetunings": list(dict.fromkeys(spec.variant for spec in artifact.finetunings(context.scale))),
        "seeds": sorted({spec.seed for spec in own.values()}), "runs": len(own),
        "core_minutes": 60 * sum(core_hours(records[run]) for run in own),
        "environments": sorted({made_on[run] for run in own}), "foreign": foreign(context.home, own.values()),
    }


def _hours(records: Mapping[str, dict[str, Any]], names: Iterable[str]) -> str:
    return f"{sum(core_hours(records[name]) for name in names):,.2f}"


def provenance(context: Context, artifacts: dict[str, Artifact]) -> dict:
    """All that the page shows about runs, by the names that the template uses.

    Raises:
        RunError: a record is missing, unreadable or of another spec; the sentence has the command that makes it again.
    """
    pretrained, finetuned = collect_runs(artifacts, context.scale), collect_finetunings(artifacts, context.scale)
    specs = pretrained | finetuned
    records = {name: context.record(spec) for name, spec in specs.items()}
    restored = origins(context.home, specs.values())
    environments = {
        name: json.dumps({**record["provenance"], "origin": restored.get(name, ("",))[0]}, sort_keys=True) for name, record in records.items()
    }
    environment_ids = _numbered(list(environments.values()), "E")
    made_on = {name: environment_ids[environment] for name, environment in environments.items()}
    data_ids = _numbered([records[name]["data_sha256"] for name in pretrained], "D")
    runs = [ReportedRun(spec, records[name], made_on[name], data_ids[records[name]["data_sha256"]]) for name, spec in pretrained.items()]
    machines = list(dict.fromkeys((e["machine"]["cpu"], e["device"]) for e in map(json.loads, environment_ids)))
    costs = [run.record["cost"] for run in runs]
    newest = max(((context.home / "runs" / name / "record.json").stat().st_mtime for name in specs), default=0.0)
    order = {model: i for i, model in enumerate(context.scale.models)}
    return {
        "models": models(sorted(runs, key=lambda run: order[run.spec.model])),
        "sources": {name: source(context, name, artifact, records, made_on) for name, artifact in artifacts.items()},
        "environments": [{"id": id, "runs": list(made_on.values()).count(id), **json.loads(key)} for key, id in environment_ids.items()],
        "machines": machines, "recorded": sentence(context.home, specs.values()),
        "data": {name: key for key, name in data_ids.items()},
        "newest": datetime.datetime.fromtimestamp(newest, tz=datetime.UTC).date().isoformat(),
        "cost": {
            "runs": len(runs), "hours": _hours(records, pretrained),
            "finetunings": len(finetuned), "finetuning_hours": _hours(records, finetuned),
            "longest_seconds": number(max((cost["train_seconds"] for cost in costs), default=0.0)),
            "peak_gb": f"{max((cost['peak_memory_bytes'] for cost in costs), default=0) / 1e9:.2f}",
            "tokens": number(sum(run.record["tokens"] for run in runs)),
            "unit": "core-hours" if all(device.startswith("cpu") for _, device in machines) else "device-hours",
        },
    }
