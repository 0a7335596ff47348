"""Entries of the errata, and the check of an entry's verdict by its computation.

A computation returns numbers and ``holds``: whether they support the verdict of the entry. If they do not, the build stops,
so an explanation cannot disagree with its numbers. Explanations take their numbers from the computation
(``"{computed:.3f}"``). The numbers that the paper prints come from ``analyses/published``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from analyses.common.published import printed_number, read_published

#: Every verdict, with its meaning.
VERDICTS = {
    "confirmed error": "what is printed does not hold as it stands",
    "inconsistent": "two places, or a place and what is known from elsewhere, disagree, and nothing printed settles it",
    "explained": "it looks like a contradiction, and has a resolution",
    "not an error": "it was suspected, and holds",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """The result of a computation."""

    published: float = math.nan  # the printed number to compare with; NaN if the paper states it in words
    computed: float  # the computed number
    unit: str  # of both numbers
    holds: bool  # whether the numbers support the verdict
    values: dict[str, Any] = field(default_factory=dict)  # further numbers for the sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Erratum:
    """One entry of the errata."""

    id: str  # unique name
    where: str  # the place or the two places in the paper
    kind: str  # kind of error
    quotation: str  # a few words of the paper, formulas in plain text
    second_quotation: str = ""  # from another place
    verdict: str  # one of :data:`VERDICTS`
    explanation: str  # what is right, or what the conflict is; numbers as fields of ``str.format``
    consequence: str = "None."  # what it means for a reproduction, and what this suite does
    compute: Callable[[], Computed] | None = None  # computes the numbers; None where quotations are enough

    def line(self) -> dict[str, Any]:
        """The entry's line of the table; runs the computation.

        Raises:
            ValueError: the numbers do not support the verdict.
        """
        found = self.compute() if self.compute else Computed(computed=math.nan, unit="", holds=True)
        if not found.holds:
            raise ValueError(f"erratum {self.id}: {self.verdict!r} does not follow from what is computed: {found}")
        values = {"published": found.published, "computed": found.computed, **found.values}
        return {
            "id": self.id, "where": self.where, "kind": self.kind, "quotation": self.quotation, "second_quotation": self.second_quotation,
            "published": found.published, "measured": found.computed, "n": 1 if self.compute else None, "std": math.nan,
            "unit": found.unit, "scale": "any", "check": "computation" if self.compute else "quotation", "verdict": self.verdict,
            "explanation": self.explanation.format(**values), "consequence": self.consequence.format(**values),
        }


def checked(**entry: str) -> Callable[[Callable[[], Computed]], Erratum]:
    """A decorator that makes an entry of its computation."""
    return lambda compute: Erratum(compute=compute, **entry)


def printed(erratum: str) -> dict[str, float]:
    """Printed numbers of an entry, by name, from ``analyses/published/errata.csv``, which has those that no other table has."""
    rows = read_published("errata").query("erratum == @erratum")
    return dict(zip(rows.quantity, rows.value.map(printed_number), strict=True))
