"""Where every number comes from: the runs of each artifact, and each run's spec, source, machine and cost."""

import datetime
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analyses.report.numbers import number
from analyses.report.sources import output_of
from suite.artifact import Artifact
from suite.collection import distinct
from suite.context import Context
from suite.recorded.origin import foreign, origins, sentence


#: A pretraining run on the page: its ``spec`` and ``record``, and the ids of its ``environment`` and ``data``.
Run = dict[str, Any]


def core_hours(record: Mapping[str, Any]) -> float:
    """Hours of training times the number of CPU threads and of devices."""
    provenance = record["provenance"]
    threads = re.fullmatch(r"cpu \((\d+) threads\)", provenance["device"])
    # Older records do not have the number of devices: their runs had one.
    return record["cost"]["train_seconds"] * (int(threads[1]) if threads else 1) * provenance.get("devices", 1) / 3600


def settings(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """The runs by model and by setting, which is their spec as JSON without the seed."""
    by_model: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        spec = json.dumps({key: value for key, value in run["spec"].to_dict().items() if key != "seed"}, sort_keys=True)
        by_model.setdefault(run["spec"].model, {}).setdefault(spec, []).append(run)
    return by_model


def _numbered(keys: Sequence[str], letter: str) -> dict[str, str]:
    """A short id for each distinct key, the most frequent first."""
    return {key: f"{letter}{i}" for i, (key, _) in enumerate(Counter(keys).most_common(), start=1)}


def source(context: Context, name: str, artifact: Artifact, records: Mapping[str, dict[str, Any]], made_on: Mapping[str, str]) -> dict[str, Any]:
    """The sources of an artifact: variants of its runs by model, their seeds, time and environments, which are foreign, and its CSV's digest.

    ``records`` and ``made_on`` have the record and the environment's id of every run, by the run's name.
    """
    own = {spec.name: spec for spec in artifact.specs(context.scale)}
    by_model: dict[str, dict[str, None]] = {}
    for spec in artifact.runs(context.scale):
        by_model.setdefault(spec.model, {})[spec.variant] = None
    csv = output_of(artifact, ".csv")
    return {
        "name": name, "label": artifact.label, "scale_free": artifact.scale_free,
        "csv": csv, "digest": hashlib.sha256((context.results / csv).read_bytes()).hexdigest()[:12],
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
    pretrained = distinct({name: artifact.runs(context.of(name).scale) for name, artifact in artifacts.items()})
    finetuned = distinct({name: artifact.finetunings(context.of(name).scale) for name, artifact in artifacts.items()})
    specs = pretrained | finetuned
    records = {name: context.record(spec) for name, spec in specs.items()}
    restored = origins(context.home, specs.values())
    environments = {
        name: json.dumps({**record["provenance"], "origin": restored.get(name, ("",))[0]}, sort_keys=True) for name, record in records.items()
    }
    environment_ids = _numbered(list(environments.values()), "E")
    made_on = {name: environment_ids[environment] for name, environment in environments.items()}
    data_ids = _numbered([records[name]["data_sha256"] for name in pretrained], "D")
    runs = [
        {"spec": spec, "record": records[name], "environment": made_on[name], "data": data_ids[records[name]["data_sha256"]]}
        for name, spec in pretrained.items()
    ]
    machines = list(dict.fromkeys((e["machine"]["cpu"], e["device"]) for e in map(json.loads, environment_ids)))
    costs = [run["record"]["cost"] for run in runs]
    newest = max(((context.home / "runs" / name / "record.json").stat().st_mtime for name in specs), default=0.0)
    order = {model: i for i, model in enumerate(context.scale.models)}
    return {
        "settings": settings(sorted(runs, key=lambda run: order[run["spec"].model])),
        "sources": {name: source(context.of(name), name, artifact, records, made_on) for name, artifact in artifacts.items()},
        "environments": [{"id": id, "runs": list(made_on.values()).count(id), **json.loads(key)} for key, id in environment_ids.items()],
        "machines": machines, "recorded": sentence(context.home, specs.values()),
        "data": {name: key for key, name in data_ids.items()},
        "newest": datetime.datetime.fromtimestamp(newest, tz=datetime.UTC).date().isoformat(),
        "cost": {
            "runs": len(runs), "hours": _hours(records, pretrained),
            "finetunings": len(finetuned), "finetuning_hours": _hours(records, finetuned),
            "longest_seconds": number(max((cost["train_seconds"] for cost in costs), default=0.0)),
            "peak_gb": f"{max((cost['peak_memory_bytes'] for cost in costs), default=0) / 1e9:.2f}",
            "tokens": number(sum(run["record"]["tokens"] for run in runs)),
            "unit": "core-hours" if all(device.startswith("cpu") for _, device in machines) else "device-hours",
        },
    }
