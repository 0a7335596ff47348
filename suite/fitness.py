"""Whether a scale is fit to judge: known facts as positive controls, from the same runs that are judged.

A claim about trained models is judged at a small scale only where the controls of its kind (:data:`NEEDS`) come out as known. A
control that was not measured has not passed. Thresholds stand here, as constants, and were fixed before any run that they judge.
Paper scale needs no controls: it is what the claims are about.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from suite.claim import Kind
from suite.grounds import Grounds, Subject
from suite.statistics import paired_interval

#: AdamW's second learning rate may be worth less than this, in nats.
SECOND_RATE = 0.05
#: R and P have to move perplexity by more than this many standard deviations of the paired differences.
MOVED = 1.0
#: How much longer the sign of a difference has to hold.
LONGER = 3
#: The standard deviation over seeds has to be below this share of a difference that is judged.
SCATTER = 1 / 3
#: The rows that stand for full training, low-rank training, and POET in the controls.
FULL, LOW_RANK, POET = "adamw", "lora-r64", "poet-fs-1_2"

Outcome = Literal["passed", "failed", "not measured"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a control showed: the outcome, and the numbers in words."""

    outcome: Outcome
    measured: str


@dataclass(frozen=True, slots=True)
class Control:
    """A known fact.

    Attributes:
        name: the fact; verdicts name it.
        runs: what it is read from.
        rule: when it passes.
        read: the outcome for a subject; None for the control that each claim reads from its own evidence.
    """

    name: str
    runs: str
    rule: str
    read: Callable[[Grounds, Subject], Reading] | None


def _together(parts: dict[str, tuple[bool | None, str]]) -> Reading:
    """One reading of several parts by name: (whether it passed, None where it was not measured; its numbers)."""
    measured = "; ".join(f"{name} {said}" for name, (_, said) in parts.items())
    passed = [found for found, _ in parts.values()]
    if False in passed:
        return Reading("failed", measured)
    return Reading("not measured" if None in passed or not passed else "passed", measured)


def _all(parts: dict[str, tuple[bool | None, str]], words: str) -> Reading:
    """As :func:`_together` of many parts, which are named only where they did not pass."""
    left = {name: part for name, part in parts.items() if not part[0]}
    return _together(left) if left or not parts else Reading("passed", f"all {len(parts)} {words}")


def _below(grounds: Grounds, ours: Sequence | None, theirs: Sequence | None) -> tuple[bool | None, str]:
    """Whether the paired difference of perplexities, ours minus theirs, has its whole interval below zero."""
    if not ours or not theirs or len(ours) < 2:
        return None, "not trained" if not ours or not theirs else "one seed: no interval"
    differences = grounds.differences(ours, theirs)
    if not all(map(math.isfinite, differences)):
        return False, "diverged"
    mean, low, high = paired_interval(differences)
    return high < 0, f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _low_rank(grounds: Grounds, subject: Subject) -> Reading:
    rows = ((model, grounds.row(model, FULL), grounds.row(model, LOW_RANK)) for model in subject.models)
    return _together({model: _below(grounds, full, low_rank) for model, full, low_rank in rows})


def _size(grounds: Grounds, subject: Subject) -> Reading:
    models, found = grounds.scale.models, {}
    for model in subject.models:
        place = models.index(model)
        beside = [pair for pair in (models[place : place + 2], models[max(place - 1, 0) : place + 1]) if len(pair) == 2]
        trained = [pair for pair in beside if all(grounds.row(name, FULL) for name in pair)]
        if not trained:
            found[model] = None, "no model beside it was trained"
            continue
        smaller, larger = trained[0]
        found[f"{larger} against {smaller}"] = _below(grounds, grounds.row(larger, FULL), grounds.row(smaller, FULL))
    return _together(found)


def _rotations(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for model in subject.models:
        whole = grounds.row(model, POET)
        without = whole and grounds.like(whole, budget_r=0, budget_p=0)
        if not without or len(without) < 2:
            found[model] = None, "not trained" if not without else "one seed: no scatter"
            continue
        differences = grounds.differences(whole, without)
        mean, scatter = statistics.fmean(differences), statistics.stdev(differences)
        found[model] = abs(mean) > MOVED * scatter, f"{mean:+.2f}, scatter {scatter:.2f}"
    return _together(found)


def _second_rate(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for model in subject.models:
        one = grounds.row(model, FULL)
        two = one and grounds.other_method(one, "adamw-two-rates")
        if not two:
            found[model] = None, "not trained"
            continue
        gain = statistics.fmean(grounds.log_ratios(one, two))
        found[model] = gain < SECOND_RATE, f"{gain:.3f} nats"
    return _together(found)


def _grids(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for model, setting in subject.settings:
        chosen = grounds.sweep.chosen(model, setting)
        if chosen is None:
            found[f"{model}/{setting}"] = None, "not swept"
        elif ends := grounds.sweep.ends(chosen):
            found[f"{model}/{setting}"] = False, f"at the end of {ends}"
        else:
            found[f"{model}/{setting}"] = True, "inside"
    return _all(found, "inside")


def _horizon(grounds: Grounds, subject: Subject) -> Reading:
    model = grounds.scale.models[0]  # tokens for each parameter are alike at all models of a scale: the cheapest stands for them
    poet, full = grounds.row(model, POET), grounds.row(model, FULL)
    longer = poet and full and (grounds.longer(poet, LONGER), grounds.longer(full, LONGER))
    if not longer or None in longer:
        return Reading("not measured", f"{model}: {LONGER} times the steps were not trained")
    now, later = (statistics.fmean(grounds.log_ratios(*pair)) for pair in ((full, poet), longer[::-1]))
    said = f"POET's lead {now:+.3f} nats, after {LONGER} times the steps {later:+.3f}"
    return _together({model: (now * later > 0, said)})


def _neighbours(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for model, one, other in subject.pairs:
        name, differences = f"{model}: {one} against {other}", grounds.sweep.differences(model, one, other)
        if differences is None:
            found[name] = None, "not swept"
            continue
        at, turned = differences[0], [d for d in differences[1:] if d * differences[0] <= 0]
        found[name] = not turned, f"{at:+.2f} at the chosen rates, turns at {len(turned)} of {len(differences) - 1} neighbours"
    return _all(found, "signs hold")


CONTROLS = (
    Control(
        "full training beats LoRA",
        f"{FULL} and {LOW_RANK} on each model",
        "The mean paired difference of perplexities has its whole 95% interval below zero.",
        _low_rank,
    ),
    Control(
        "a larger model beats a smaller one",
        f"{FULL} on each model and its neighbour in size",
        "The mean paired difference of perplexities has its whole 95% interval below zero.",
        _size,
    ),
    Control(
        "R and P move perplexity by more than its scatter",
        f"{POET} with and without R and P on each model",
        f"The mean paired difference exceeds {MOVED:g} standard deviation of the differences.",
        _rotations,
    ),
    Control(
        "AdamW's second rate is worth little",
        f"{FULL} and AdamW with two learning rates on each model",
        f"Its mean gain is below {SECOND_RATE:g} nats.",
        _second_rate,
    ),
    Control(
        "chosen rates lie inside their grids",
        "the scale's sweep",
        "No rate of a row that is judged was chosen at the end of its grid, and none is censored.",
        _grids,
    ),
    Control(
        "a longer run keeps the sign",
        f"{POET} and {FULL} on the smallest model, {LONGER} times as long",
        "The mean difference has the same sign as at the scale's own length.",
        _horizon,
    ),
    Control(
        "neighbouring rates keep the sign",
        "the scale's sweep",
        "The difference of two rows that are compared has one sign at the chosen rates and where either has a neighbour of one rate.",
        _neighbours,
    ),
    Control(
        "seeds scatter less than a third of the difference",
        "the runs of each claim",
        "The standard deviation over seeds is below a third of the distance from the effect to where the claim's region ends.",
        None,
    ),
)
FULL_BEATS_LORA, LARGER_BEATS_SMALLER, ROTATIONS_MOVE, SECOND_RATE_IS_LITTLE, RATES_INSIDE, LONGER_KEEPS, NEIGHBOURS_KEEP, LITTLE_SCATTER = (
    control.name for control in CONTROLS
)
#: The controls that a claim of each kind needs.
_ALL = tuple(control.name for control in CONTROLS)
_OWN = (ROTATIONS_MOVE, RATES_INSIDE)
NEEDS: dict[Kind, tuple[str, ...]] = {
    "ordering": _ALL,
    "rank agreement": tuple(name for name in _ALL if name != LITTLE_SCATTER),  # its p-value is of orders, not of seeds
    "number": _OWN,
    "trend": _OWN,
    "phase": _OWN,
    "bound": _OWN,
    "invariance": _OWN,
    "divergence": (),  # no tuning makes a run of another length: see suite.judging
    "convergence": (),
    "finetuning": (LITTLE_SCATTER,),  # Tables 4 and 12 have a control of their own: analyses/common/learned.py
    "timing": (),
}


def readings(grounds: Grounds, subject: Subject, names: Sequence[str]) -> dict[str, Reading]:
    """What the controls of some names show; those that each claim reads from its own evidence are left out.

    :data:`ROTATIONS_MOVE` is left out where the subject has no row of POET.
    """
    chosen = [control for control in CONTROLS if control.name in names and control.read]
    return {control.name: control.read(grounds, subject) for control in chosen if control.name != ROTATIONS_MOVE or subject.has_poet}


def scatter_passes(deviation: float, distance: float) -> bool:
    """Whether the standard deviation over seeds is small beside an effect's distance from the end of its region."""
    return math.isfinite(deviation) and deviation < SCATTER * abs(distance)
