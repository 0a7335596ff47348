"""What the recorded horizon ladder says of the full length, in words that pages and the report quote."""

import csv
from pathlib import Path

from analyses.ladder.orders import LENGTHS
from suite.scale import ROOT

#: The ladder of the longest runs that were recorded.
RECORDED = ROOT / "analyses" / "recorded" / "night" / "ladder.csv"
MODEL, FULL = "60m", "1"


def gap_at_full_length(row: str, baseline: str, ladder: Path = RECORDED, model: str = MODEL) -> str:
    """How far a row is above another, in nats: the mean over the seeds that both have, its 95% interval, and how many seeds these are."""
    full = {line["variant"]: line for line in _lines(ladder) if (line["model"], line["length"]) == (model, FULL) and line["n"]}
    mean, low, high = (float(full[row][f"gap_{baseline}{end}"]) for end in ("", "_low", "_high"))
    shared = set(full[row]["seeds"].split()) & set(full[baseline]["seeds"].split())
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f}, {len(shared)} seeds)"


def order_at_full_length(row: str, ladder: Path = RECORDED) -> str:
    """How a row stands to AdamW with one rate, as the ladder decided it, with the p-value that is corrected for all of its tests."""
    (line,) = (line for line in _lines(ladder) if (line["model"], line["variant"], line["against"]) == (MODEL, row, "adamw"))
    p = dict(reversed(part.split(" at ")) for part in line["holm_p"].split("; "))[FULL]
    return f"{next(kind for kind, column in LENGTHS.items() if FULL in line[column].split())} (p = {p})"


def _lines(ladder: Path) -> list[dict[str, str]]:
    with open(ladder, newline="") as file:
        return list(csv.DictReader(file))
