"""What an entry of the errata is, and how its computation is held against its verdict.

A computation returns numbers and ``holds``: whether they bear out the verdict that stands beside them. One that does
not stops the build, so that no sentence outlives the numbers that it was written for. Sentences take their numbers
from the computation (``"{computed:.3f}"``), and what the paper prints comes from ``analyses/published``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from analyses.common.published import printed_number, printed_text, read_published

#: Every verdict, and what it says.
VERDICTS = {
    "confirmed error": "what is printed does not hold as it stands",
    "inconsistent": "two places disagree, and nothing printed says which one is right",
    "explained": "it looks like a contradiction, and has a resolution",
    "not an error": "it was suspected, and holds",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What a computation found."""

    published: float = math.nan  # the printed number that it is about; NaN if the paper states it in words
    computed: float  # what comes out
    unit: str  # of both
    holds: bool  # whether the numbers bear out the verdict
    values: dict[str, Any] = field(default_factory=dict)  # further numbers for the sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Erratum:
    """One entry."""

    id: str  # its name
    where: str  # the place or the two places in the paper
    kind: str  # what sort of slip it is
    quotation: str  # a few words of the paper, formulas in plain text
    second_quotation: str = ""  # of another place
    verdict: str  # one of :data:`VERDICTS`
    explanation: str  # what is right, or what the conflict is; numbers as fields of ``str.format``
    consequence: str  # what it means for a reproduction, and what this suite does
    compute: Callable[[], Computed] | None = None  # computes the numbers; None where two quotations are enough

    def line(self) -> dict[str, Any]:
        """Its line of the table; runs the computation.

        Raises:
            ValueError: the numbers do not bear out the verdict.
        """
        found = self.compute() if self.compute else None
        if found is not None and not found.holds:
            raise ValueError(f"erratum {self.id}: {self.verdict!r} does not follow from what is computed: {found}")
        values = {"published": found.published, "computed": found.computed, **found.values} if found else {}
        return {
            "id": self.id, "where": self.where, "kind": self.kind, "quotation": self.quotation,
            "second_quotation": self.second_quotation, "published": found.published if found else math.nan,
            "measured": found.computed if found else math.nan, "n": 1 if found else None, "std": math.nan,
            "unit": found.unit if found else "", "scale": "any", "check": "computation" if found else "quotation",
            "verdict": self.verdict, "explanation": self.explanation.format(**values),
            "consequence": self.consequence.format(**values),
        }


def checked(**entry: str) -> Callable[[Callable[[], Computed]], Erratum]:
    """Make an entry of the function below it, which is its computation."""
    return lambda compute: Erratum(compute=compute, **entry)


def printed_cell(table: str, column: str, **where: str) -> float:
    """A printed number; see :func:`analyses.common.published.printed_text`, and ValueError where the cell has none."""
    return printed_number(printed_text(table, column, **where))


def printed(erratum: str) -> dict[str, float]:
    """The numbers of an entry that no other table has, by name, from ``analyses/published/errata.csv``."""
    rows = read_published("errata").query("erratum == @erratum")
    return dict(zip(rows.quantity, rows.value.map(printed_number), strict=True))
