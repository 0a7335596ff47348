"""Whether a scale is fit to judge: known facts as positive controls, from the same runs that are judged.

A claim about trained models is judged at a small scale only if the controls of its kind (:data:`NEEDS`) pass. A control that was not
measured has not passed. The thresholds are constants of this module, fixed before any run that they judge. On 2026-11-23 an independent
reading found rules that could pass by chance or on other models' runs. They were made stricter; no scale had passed all controls then. Since
2026-11-27, 18:00, a control also reads the trained runs of tables and figures that could not be built. Figures 2 and 11 to 14 of night scale, which
this lets judge, were being trained then. Their results were recorded at 19:03; a record does not say when its run ended. Since
2026-11-30 the controls of rates read trials of the run's own length (before, those of the full length for longer runs of a row, too); no result turned.
Paper scale needs no controls, since the claims are about that scale.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suite.claim import Kind
from suite.grounds import Grounds, Subject
from suite.statistics import paired_interval

#: The gain from AdamW's second learning rate has to be below this, in nats.
SECOND_RATE = 0.05
#: A difference has to keep its sign in runs that are this many times as long.
LONGER = 3
#: The standard deviation over seeds has to be below this share of the effect's distance from the end of its region.
SCATTER = 1 / 3
#: The rows that stand for full training, low-rank training, and POET in the controls.
FULL, TWO_RATES, LOW_RANK, POET = "adamw", "adamw-two-rates", "lora-r64", "poet-fs-1_2"
#: The parameters of POET without R and P, which trains embeddings, norms and head alone.
WITHOUT_ROTATIONS = {"budget_r": 0.0, "budget_p": 0.0}

Outcome = Literal["passed", "failed", "not measured"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a control: its outcome, and its numbers in words."""

    outcome: Outcome
    measured: str


@dataclass(frozen=True, slots=True)
class Control:
    """A known fact that a scale has to reproduce before it judges.

    Attributes:
        name: the fact; verdicts name it.
        rule: when it passes.
        read: gives the result for a subject; None for the control that each claim reads from its own evidence.
    """

    name: str
    rule: str
    read: Callable[[Grounds, Subject], Reading] | None


def _together(parts: dict[str, tuple[bool | None, str]]) -> Reading:
    """The result of a control from those of its parts, by name: (whether it passed, or None if it was not measured; its numbers in words)."""
    measured = "; ".join(f"{name} {said}" for name, (_, said) in parts.items())
    passed = [found for found, _ in parts.values()]
    if False in passed:
        return Reading("failed", measured)
    return Reading("not measured" if None in passed or not passed else "passed", measured)


def _all(parts: dict[str, tuple[bool | None, str]], words: str) -> Reading:
    """:func:`_together` for many parts; only parts that did not pass are named."""
    left = {name: part for name, part in parts.items() if not part[0]}
    return _together(left or parts) if left or len(parts) < 2 else Reading("passed", f"all {len(parts)} {words}")


def _interval(
    measure: Callable[[Sequence, Sequence], list[float]], ours: Sequence | None, theirs: Sequence | None, passes: Callable[[float, float], bool], digits: int = 2
) -> tuple[bool | None, str]:
    """Whether the 95% interval of a paired difference, ours minus theirs, passes (None: not measured), and its numbers in words."""
    if not ours or not theirs or len(ours) < 2:
        return None, "not among these runs" if not ours or not theirs else "one seed: no interval"
    differences = measure(ours, theirs)
    if not all(map(math.isfinite, differences)):
        return False, "diverged"
    mean, low, high = paired_interval(differences)
    return passes(low, high), f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


# Rules for the ends of a 95% interval. The ladder's controls of a length (analyses/ladder/controls.py) use them, too.
def below_zero(low: float, high: float) -> bool:
    return high < 0


def leaves_out_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


def second_rate_is_little(low: float, high: float) -> bool:
    return high < SECOND_RATE


def on_one_side(now: tuple[float, float, float], later: tuple[float, float, float]) -> bool:
    """Whether two intervals (mean, low, high) lie on the same side of zero. False if an end is NaN, as after a run diverged."""
    return (now[1] > 0 and later[1] > 0) or (now[2] < 0 and later[2] < 0)


def _low_rank(grounds: Grounds, subject: Subject) -> Reading:
    rows = ((model, grounds.row(model, FULL), grounds.row(model, LOW_RANK)) for model in subject.models)
    return _together({model: _interval(grounds.differences, full, low_rank, below_zero) for model, full, low_rank in rows})


def _size(grounds: Grounds, subject: Subject) -> Reading:
    models, found = grounds.scale.models, {}
    for model in subject.models:
        place = models.index(model)
        beside = [pair for pair in (models[place : place + 2], models[max(place - 1, 0) : place + 1]) if len(pair) == 2]
        trained = [pair for pair in beside if all(grounds.row(name, FULL) for name in pair)]
        if not trained:
            found[model] = None, "no model beside it is among these runs"
            continue
        for smaller, larger in trained:
            found[f"{larger} against {smaller}"] = _interval(grounds.differences, grounds.row(larger, FULL), grounds.row(smaller, FULL), below_zero)
    return _together(found)


def _rotations(grounds: Grounds, subject: Subject) -> Reading:
    rows = ((model, grounds.row(model, POET)) for model in subject.models)
    return _together({model: _interval(grounds.differences, row, row and grounds.like(row, **WITHOUT_ROTATIONS), leaves_out_zero) for model, row in rows})


def _second_rate(grounds: Grounds, subject: Subject) -> Reading:
    rows = ((model, grounds.row(model, FULL)) for model in subject.models)
    return _together({model: _interval(grounds.log_ratios, row, row and grounds.other_method(row, TWO_RATES), second_rate_is_little, 3) for model, row in rows})


def _grids(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for spec in subject.settings:
        chosen = grounds.sweep.chosen(spec)
        if chosen is None:
            found[f"{spec.model}/{spec.variant}"] = None, "not swept"
        else:  # changed settings have the rates of their row
            length = "" if spec.steps == grounds.scale.settings.models[spec.model].steps else f" for {spec.steps:,} steps"
            found[f"{spec.model}/{chosen.row}{length}"] = not chosen.open_sides, f"at the end of {' '.join(chosen.open_sides)}" if chosen.open_sides else "inside"
    reading, changed = _all(found, "inside"), sum(map(grounds.changed, filter(grounds.sweep.chosen, subject.settings)))
    return replace(reading, measured=f"{reading.measured}; settings without a search of their own: {changed}") if changed else reading


def _horizon(grounds: Grounds, subject: Subject) -> Reading:
    model = grounds.scale.models[0]  # the cheapest model stands for all
    poet, full = grounds.row(model, POET), grounds.row(model, FULL)
    longer = poet and full and (grounds.longer(poet, LONGER), grounds.longer(full, LONGER))
    if not longer or None in longer:
        return Reading("not measured", f"{model}: runs of {LONGER} times the steps are not among these")
    if len(full) < 2:
        return Reading("not measured", f"{model}: one seed: no interval")
    now, later = (paired_interval(grounds.log_ratios(*pair)) for pair in ((full, poet), longer[::-1]))
    leads = "POET's lead {:+.3f} nats ({:+.3f} to {:+.3f})".format(*now) + f", after {LONGER} times the steps " + "{:+.3f} ({:+.3f} to {:+.3f})".format(*later)
    return _together({model: (on_one_side(now, later), leads)})


def _neighbours(grounds: Grounds, subject: Subject) -> Reading:
    found = {}
    for one, other in subject.pairs:
        name, differences = f"{one.model}: {one.variant} against {other.variant}", grounds.sweep.differences(one, other)
        if differences is None:
            chosen = [grounds.sweep.chosen(spec) for spec in (one, other)]
            found[name] = None, "one row's rates, tried for none of the two alone" if chosen[0] and chosen[0] is chosen[1] else "not swept"
            continue
        at, turned = differences[0], [d for d in differences[1:] if d * differences[0] <= 0]
        found[name] = not turned, f"{at:+.2f} at the chosen rates, turns at {len(turned)} of {len(differences) - 1} neighbours"
    return _all(found, "signs hold")


_BELOW_ZERO = "The mean paired difference of perplexities has its whole 95% interval below zero."
CONTROLS = (
    Control("full training beats LoRA", _BELOW_ZERO, _low_rank),
    Control("a larger model beats a smaller one", _BELOW_ZERO, _size),
    Control("R and P move perplexity by more than its scatter", "The 95% interval of the mean paired difference leaves out zero.", _rotations),
    Control("AdamW's second rate is worth little", f"The whole 95% interval of its mean gain is below {SECOND_RATE:g} nats.", _second_rate),
    Control("chosen rates lie inside their grids", "No rate of a row that is judged was chosen at the end of its grid, and none is censored.", _grids),
    Control("a longer run keeps the sign", "Of POET-FS (b=1/2) against AdamW on the smallest model, which stand for all: the 95% intervals of the mean difference at both lengths lie on one side of zero.", _horizon),
    Control(
        "neighbouring rates keep the sign",
        "The difference of two rows that are compared has one sign at the chosen rates and where either has a neighbour of one rate.",
        _neighbours,
    ),
    Control(
        "seeds scatter less than a third of the difference",
        "The standard deviation over seeds is below a third of the distance from the effect to where the claim's region ends.",
        None,
    ),
)
_ALL = tuple(control.name for control in CONTROLS)
FULL_BEATS_LORA, LARGER_BEATS_SMALLER, ROTATIONS_MOVE, SECOND_RATE_IS_LITTLE, RATES_INSIDE, LONGER_KEEPS, NEIGHBOURS_KEEP, LITTLE_SCATTER = _ALL
_OWN = (ROTATIONS_MOVE, RATES_INSIDE)
#: The controls that a claim of each kind needs.
NEEDS: dict[Kind, tuple[str, ...]] = {
    "ordering": _ALL,
    "rank agreement": tuple(name for name in _ALL if name != LITTLE_SCATTER),  # its p-value comes from permuted orders, not from seeds
    "number": _OWN,
    "trend": _OWN,
    "phase": _OWN,
    "bound": _OWN,
    "invariance": _OWN,
    "divergence": (),  # controls do not help: suite.judging decides by the length of runs
    "convergence": (),
    "finetuning": (LITTLE_SCATTER,),  # Tables 4 and 12 have their own control: analyses/common/learned.py
    "timing": (),
}


def readings(grounds: Grounds, subject: Subject, names: Sequence[str]) -> dict[str, Reading]:
    """The results of the named controls, by name, without the control that each claim reads from its own evidence.

    :data:`ROTATIONS_MOVE` is left out where the subject has no row of POET.
    """
    chosen = [control for control in CONTROLS if control.name in names and control.read]
    return {control.name: control.read(grounds, subject) for control in chosen if control.name != ROTATIONS_MOVE or subject.has_poet}


def scatter_passes(deviation: float, distance: float) -> bool:
    """Whether the standard deviation over seeds is below :data:`SCATTER` of an effect's distance from the end of its region."""
    return math.isfinite(deviation) and deviation < SCATTER * abs(distance)
