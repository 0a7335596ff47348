"""A plan as text."""

from collections import Counter, defaultdict
from dataclasses import asdict

from humanfriendly import format_size
from tabulate import tabulate

from suite.plan.order import RULE
from suite.plan.plan import Plan, PlannedFinetuning, PlannedRun
from suite.status import duration


def _number(value: float) -> str:
    """A number rounded to two significant digits, as text: 0.031, 4.2, 120, 5,400."""
    return f"{float(f'{value:.2g}'):,.12g}"


def page(plan: Plan) -> str:
    """The text that ``make plan`` prints."""
    unit = "core" if plan.device == "cpu" else "GPU"
    if not plan.runs:
        alone = _finetunings(plan.finetunings, unit) if plan.finetunings else "Nothing to train."
        return f"Scale {plan.suite.scale.name}: {alone}"
    return "\n\n".join([_totals(plan, unit), _order(plan, unit), _runs(plan, unit), _disk(plan)])


def _totals(plan: Plan, unit: str) -> str:
    left, scale = plan.left, plan.suite.scale
    hours, tokens = sum(run.device_hours for run in left), sum(run.spec.tokens for run in left)
    operations = sum(run.operations for run in left)
    lines = [
        f"Scale {scale.name}, seeds {list(scale.seeds)}: {len(plan.runs)} runs, {len(plan.runs) - len(left)} done, {len(left)} left. "
        f"Left are {tokens:.3g} tokens (padding included), {operations:.3g} FLOP and {_number(hours)} {unit}-hours; a run that "
        "several artifacts share is counted once, and one that is under way is counted whole.",
    ]
    for source, number in Counter(run.rate.source for run in left).items():
        rates = [run.rate.per_second for run in left if run.rate.source == source]
        between = f"{min(rates):.3g}" if max(rates) < 1.01 * min(rates) else f"{min(rates):.3g} to {max(rates):.3g}"
        lines.append(
            f"Time of {number} runs, {source}: {between} FLOP/s for each {unit}. "
            "Evaluation and saving are not in the operations, and only in times that were measured."
        )
    if plan.finetunings:
        lines.append(_finetunings(plan.finetunings, unit))
    if len(scale.seeds) == 1:
        lines.append(
            "With one seed an interval has no end, and most claims about differences stay undecided (suite/judging.py): "
            "SEEDS=[0,1,2] is three times the cost."
        )
    return "\n".join(lines)


def _finetunings(runs: list[PlannedFinetuning], unit: str) -> str:
    left = [run.hours for run in runs if not run.done]
    measured = [hours for hours in left if hours is not None]
    text = f"Finetuning runs of Tables 4 and 12, with the pretraining of a small BART where the scale has one: {len(runs)}, of which {len(left)} are left."
    if measured:
        text += f" {len(measured)} of these take {_number(sum(measured))} {unit}-hours, as finished runs of their model, task and method measured them; starting and writing summaries are not in that."
    unmeasured = len(left) - len(measured)
    return text + (f" {unmeasured} are of a kind that has no finished run here, and are not estimated." if unmeasured else "")


def _order(plan: Plan, unit: str) -> str:
    table, hours, claims = [], 0.0, 0
    for place, step in enumerate(plan.steps, start=1):
        hours, claims, new = hours + step.hours, claims + step.claims, [plan.runs[name] for name in step.runs]
        table.append(
            {
                "": place,
                "artifact": step.artifact,
                "runs": len(plan.needs[step.artifact]),
                "done": sum(plan.runs[name].done for name in plan.needs[step.artifact]),
                "new": len(step.runs),
                "tokens": f"{sum(run.spec.tokens for run in new):.2g}" if new else "",
                "FLOP": f"{sum(run.operations for run in new):.2g}" if new else "",
                f"{unit}-hours": _number(step.hours) if new else "",
                "in all": _number(hours),
                "longest": duration(3600 * max(run.hours for run in new)) if new else "",
                "claims": step.claims,
                "claims in all": claims,
            }
        )
    free = [name for name, found in plan.suite.artifacts.items() if found.in_all and not found.reads and not plan.suite.asked[name]]
    text = f"Artifacts in the order in which to run them. {RULE}\n\n" + tabulate(table, "keys", "plain", disable_numparse=True)
    return text + (f"\n\nWithout any training: {', '.join(free)}." if free and len(plan.needs) > 1 else "")


def _runs(plan: Plan, unit: str) -> str:
    groups: dict[tuple[str, str], list[PlannedRun]] = defaultdict(list)
    for run in sorted(plan.runs.values(), key=lambda run: plan.suite.scale.models.index(run.spec.model)):
        groups[run.spec.model, run.spec.method].append(run)
    table = []
    for (model, method), runs in groups.items():
        largest, hours = max(runs, key=lambda run: run.cost.memory.total), [run.hours for run in runs]
        memory, limit = largest.cost.memory, plan.limit(largest)
        table.append(
            {
                "model": model,
                "method": method,
                "runs": len(runs),
                "left": sum(not run.done for run in runs),
                f"{unit}s": largest.devices,
                "a run takes": " to ".join(dict.fromkeys(duration(3600 * value) for value in (min(hours), max(hours)))),
                "jobs": max(run.jobs for run in runs),
                **{part: format_size(size) for part, size in asdict(memory).items()},
                "in all": format_size(memory.total),
                "of": format_size(limit),
                "fits": "yes" if memory.total <= limit else "no",
            }
        )
    text = f"Time of a run, the jobs that its time limit makes of it, and memory on each {unit} (of the run of a group that needs most):"
    return text + "\n\n" + tabulate(table, "keys", "plain", disable_numparse=True)


def _disk(plan: Plan) -> str:
    data, checkpoints = plan.data, [run.checkpoint_bytes for run in plan.left]
    there = " (there already)" if (plan.suite.dataset / "meta.json").exists() else ""
    return (
        f"Disk: prepared data {format_size(data.prepared_bytes)}{there}, from {format_size(data.source_bytes)} that are read and {_number(data.core_hours)} "
        f"core-hours of tokenizing; the longest run goes through it about {data.passes:.1f} times. Checkpoints (two of a run, and a third "
        f"while it is written): {format_size(max(checkpoints, default=0))} for the largest run, {format_size(sum(checkpoints))} were all that are left trained at "
        f"once. Kept weights and records: {format_size(sum(run.kept_bytes for run in plan.left))}."
    )
