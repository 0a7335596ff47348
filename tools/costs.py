"""What recorded runs cost, by the records in their archives."""

from collections.abc import Iterable
from pathlib import Path

from poet.finetuning.spec import FinetuningSpec
from poet.methods import table_rows
from poet.training.spec import RunSpec
from suite.collection import load_suite
from suite.recorded.archive import archive_path, read
from suite.recorded.build import runs_of_seeds, usual
from suite.recorded.run import RecordedRun


def costs(root: Path) -> dict[str, str]:
    """The costs that pages quote, by part name: at mini scale pretraining, finetuning and its search for rates; at night scale
    those of Table 2, all runs but trials, and the trials. Also how many commits trained the runs of each scale, without trials."""
    archives = {scale: read(archive_path(scale, root)) for scale in ("mini", "night")}
    mini, night = ({n: run for n, run in runs.items() if isinstance(run.spec, RunSpec)} for runs in archives.values())
    seeds = usual(runs_of_seeds(mini.values()))
    suite = load_suite({"scale": "mini", "seeds": seeds})
    table2, everything = suite.artifacts["table2"].runs(suite.scale), [s for a in suite.artifacts.values() if a.in_all for s in a.runs(suite.scale)]
    trials = suite.scale.protocol.seed
    return {
        "cost-table2": _sentence(_recorded(mini, table2)),
        "cost-all": _sentence(_recorded(mini, everything)),
        **{f"cost-{name}": _finetuning(_recorded(archives["mini"], suite.artifacts[name].finetunings(suite.scale))) for name in ("table4", "table12")},
        "cost-night-table2": _sentence([run for run in night.values() if run.spec.variant in table_rows() and run.spec.seed in seeds]),
        "cost-rungs": _sentence([run for run in night.values() if run.spec.seed != trials]),
        "cost-trials": _sentence([run for run in night.values() if run.spec.seed == trials]),
        **{f"commits-{scale}": _commits([run for run in runs.values() if run.spec.seed != trials]) for scale, runs in archives.items()},
        "cost-finetuning-rates": _finetuning([run for run in archives["mini"].values() if isinstance(run.spec, FinetuningSpec) and run.spec.seed == trials]),
    }


def _commits(runs: list[RecordedRun]) -> str:
    sources = [run.record["provenance"] for run in runs]
    dirty = sum(bool(source["dirty"]) for source in sources)  # None outside a checkout
    commits = len({source["commit"] for source in sources})
    return f"{len(runs)} runs of {commits} commit{'s' * (commits > 1)}, {dirty or 'none'} of them trained with uncommitted changes"


def _finetuning(runs: list[RecordedRun]) -> str:
    return f"{len(runs)} runs, {sum(run.record['cost']['train_seconds'] for run in runs) / 60:,.1f} core-minutes"


def _recorded(runs: dict[str, RecordedRun], specs: Iterable[RunSpec | FinetuningSpec]) -> list[RecordedRun]:
    return [runs[name] for name in dict.fromkeys(spec.name for spec in specs) if name in runs]


def _sentence(runs: list[RecordedRun]) -> str:
    cost = [run.record["cost"] for run in runs]
    seeds = " ".join(map(str, sorted({run.spec.seed for run in runs})))
    minutes, memory = sum(one["train_seconds"] for one in cost) / 60, max(one["peak_memory_bytes"] for one in cost)
    return f"{len(runs)} runs (seed{'s' if ' ' in seeds else ''} {seeds}), {minutes:,.1f} core-minutes, {memory / 1e9:.2f} GB a run"
