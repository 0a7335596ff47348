"""Which rows moved, and whether they left their tolerance; the rule is at the top of :mod:`suite.check`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from suite.check.spread import ROUNDING, RecordedNumber, Tolerance, tolerances
from suite.check.tables import NOT_COMPARED, CONCLUSIONS, VALUES, Line, Number, Pair, as_float, interval, measurement, method, value_column

#: The reason of a finding about a recorded row that the fresh table lacks.
GONE = "no longer there"
Status = Literal["equal", "within", "outside", "not judged", "new", "left out"]

#: Rows of one method form a pool if they agree in these columns. So a pool joins models, settings and matrices, but not
#: the points of one curve: they come from the same runs and are not independent.
POOLED_BY = ("quantity", "step", "terms")


#: Why numbers of two scales are not judged: no tolerance holds between them.
ANOTHER_SCALE = "another scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the check found about a number, a changed text, or a row that is new, gone or left out.

    Attributes:
        table, row, column: place in the tables; the column is "row" for a finding about a whole row.
        status: "within": it moved, and stayed within its tolerance; "new": nothing is recorded; "left out": it
            depends on the machine.
        unit: of the number.
        recorded, fresh: the two cells as written; empty where there is none.
        recorded_n, recorded_std, fresh_n: seeds and standard deviation of the number.
        change: fresh minus recorded; NaN for texts and missing numbers.
        tolerance: the largest allowed change in the direction of the change; NaN if there is none.
        freedom: degrees of freedom of the recorded spread; NaN if there is none.
        reason: explanation in words; may be empty.
    """

    table: str
    row: str
    column: str
    status: Status
    unit: str = ""
    recorded: str = ""
    fresh: str = ""
    recorded_n: int = 0
    recorded_std: float = math.nan
    fresh_n: int = 0
    change: float = math.nan
    tolerance: float = math.nan
    freedom: float = math.nan
    reason: str = ""

    @property
    def kind(self) -> Literal["row", "number", "text"]:
        """Whether the finding is about a whole row, a number or a text."""
        return "row" if self.column == "row" else "number" if self.column in VALUES else "text"

    @property
    def relative_change(self) -> float:
        """The change as a share of the recorded number; infinite if that is zero, NaN if the change is NaN."""
        old = abs(as_float(self.recorded))
        return self.change / old if old else math.copysign(math.inf, self.change)

    @property
    def strain(self) -> float:
        """The change as a multiple of its tolerance; infinite where nothing was allowed to change."""
        if self.status == "outside" and not self.tolerance > 0:
            return math.inf
        return abs(self.change) / self.tolerance if self.tolerance > 0 else 0.0


def findings(pairs: Sequence[Pair]) -> list[Finding]:
    """One finding for each number, changed text, and new, missing or machine-dependent row. A changed text fails if no number moved."""
    found: list[Finding] = []
    spreads = recorded_spreads(pairs)
    allowed = dict(zip(spreads, tolerances(list(spreads.values())), strict=True))
    for i, pair in enumerate(pairs):
        of_row = partial(Finding, table=pair.table, row=pair.row, column="row")
        if pair.recorded is None:
            found.append(of_row(status="new", reason="not recorded"))
        elif pair.fresh is None:
            found.append(of_row(status="outside", reason=GONE))
        elif pair.source == "of the machine":
            found.append(of_row(status="left out"))
        elif (column := value_column(pair.recorded)) and column not in pair.fresh:
            found.append(of_row(status="outside", reason=f"no column {column}"))
        else:
            one = _judge_number(pair, allowed.get(i))
            found += [*([one] if one else []), *_texts(pair, one)]
    if all(one.status == "equal" for one in found if one.kind == "number"):
        return [replace(one, status="outside", reason="no number moved") if one.kind == "text" else one for one in found]
    return found


def recorded_spreads(pairs: Sequence[Pair]) -> dict[int, RecordedNumber]:
    """The recorded spread of each trained number that all recorded and all fresh runs have, by the index of its pair."""
    spreads: dict[int, RecordedNumber] = {}
    for i, pair in enumerate(pairs):
        if pair.recorded is None or pair.fresh is None or pair.source != "trained":
            continue
        old, new = measurement(pair.recorded), measurement(pair.fresh)
        if old is None or old.found != "all" or new is None or new.found != "all":
            continue
        kind = (value_column(pair.recorded), pair.recorded.get("unit", ""))
        pool = (kind, method(pair.recorded), *(pair.recorded.get(column, "") for column in POOLED_BY))
        spreads[i] = RecordedNumber(old.value, old.std, old.n, new.n, kind, pool, pair.table)
    return spreads


def _judge_number(pair: Pair, spread: Tolerance | None) -> Finding | None:
    """The finding about a row's number; None if the row has none, or neither side has a value."""
    old, new = measurement(pair.recorded), measurement(pair.fresh)
    if old is None or new is None or old.found == new.found == "none":
        return None
    column = value_column(pair.recorded)
    one = Finding(
        table=pair.table, row=pair.row, column=column, status="equal", unit=pair.recorded.get("unit", ""),
        recorded=pair.recorded[column], fresh=pair.fresh[column], recorded_n=old.n, recorded_std=old.std, fresh_n=new.n,
        change=new.value - old.value if old.value != new.value else 0.0, reason="; ".join(_counts(pair)),
    )  # fmt: skip
    if old.found != "all" or new.found != "all":
        return _judge_missing(one, old, new)
    if pair.source == "trained":
        if spread:
            one = replace(one, tolerance=spread.up if one.change >= 0 else spread.down, freedom=spread.freedom)
    else:
        one = replace(one, tolerance=_exact_tolerance(pair, old.value, new.value))
    if old.value == new.value:
        return one
    if not math.isnan(one.tolerance):
        return replace(one, status="within" if abs(one.change) <= one.tolerance else "outside")
    if _collapse_turned(pair):
        return replace(one, status="outside")
    why = "spreads by factors" if one.freedom > 0 else "no spread recorded"
    return replace(one, status="not judged", reason="; ".join(filter(None, (one.reason, why))))


def _judge_missing(one: Finding, old: Number, new: Number) -> Finding:
    """The finding about a number without a recorded or fresh mean, judged by which runs have a value."""
    if old.found == new.found and one.recorded_n == one.fresh_n:
        return one
    if old.found == "some":
        return replace(one, status="not judged", reason=one.reason or "recorded from some of its seeds alone")
    return replace(one, status="outside", reason=one.reason or "no value")


def _exact_tolerance(pair: Pair, old: float, new: float) -> float:
    """The largest allowed change, in the direction of the change, of a number that no seed moves."""
    if pair.source == "counted" or (old.is_integer() and new.is_integer()):
        return 0.0
    # An effect is a difference or a share of numbers, which may be larger than it: so is the rounding error.
    size = max(abs(old), 1.0) if "effect" in pair.recorded else abs(old)
    rounding, ends = ROUNDING * size, interval(pair.recorded)
    return rounding if ends is None else rounding + max(0.0, ends[1] - old if new > old else old - ends[0])


def _counts(pair: Pair) -> Iterator[str]:
    """Sentences on how many runs diverged or collapsed, if that changed."""
    for what in ("diverged", "collapsed"):
        old, new = (int(float(line.get(what) or 0)) for line in (pair.recorded, pair.fresh))
        if old != new:
            yield f"{what}: {new} of {_runs(pair.fresh)}, recorded {old} of {_runs(pair.recorded)}"


def _runs(line: Line) -> int:
    return int(float(line.get("n") or 0)) + int(float(line.get("diverged") or 0))


def _collapse_turned(pair: Pair) -> bool:
    """Whether none of the recorded runs collapsed and all of the fresh ones did, or the other way round."""
    shares = [float(line.get("collapsed") or 0) / max(_runs(line), 1) for line in (pair.recorded, pair.fresh)]
    return sorted(shares) == [0.0, 1.0]


def _texts(pair: Pair, about: Finding | None) -> Iterator[Finding]:
    """Findings on the recorded row's other cells that the fresh row does not repeat; ``about``: the finding on its number."""
    for column, old in pair.recorded.items():
        new = pair.fresh.get(column, "")
        if old == new or column in NOT_COMPARED or column in VALUES or _same_number(old, new):
            continue
        status, reason = "outside", ""
        if about and column in CONCLUSIONS and pair.source == "trained":
            status = about.status if about.status in ("outside", "not judged") else "within"
            reason = f"follows from numbers that are {'not ' if status == 'not judged' else ''}judged"
        yield Finding(table=pair.table, row=pair.row, column=column, status=status, recorded=old, fresh=new, reason=reason)


def _same_number(old: str, new: str) -> bool:
    a, b = as_float(old), as_float(new)
    if a == b or not (math.isfinite(a) and math.isfinite(b)) or (a.is_integer() and b.is_integer()):
        return a == b
    return abs(a - b) <= ROUNDING * abs(a)
