"""What the recorded horizon ladder says of the full length, in words that pages and the report quote."""

import csv
from pathlib import Path

from suite.scale import ROOT

#: The ladder of the longest runs that were recorded.
RECORDED = ROOT / "analyses" / "recorded" / "night" / "ladder.csv"
MODEL, FULL = "60m", "1"


def gap_at_full_length(row: str, baseline: str, ladder: Path = RECORDED) -> str:
    """How far a row is above another, in nats: the mean over the seeds that both have, its 95% interval, and how many seeds these are."""
    with open(ladder, newline="") as file:
        full = {line["variant"]: line for line in csv.DictReader(file) if (line["model"], line["length"]) == (MODEL, FULL) and line["n"]}
    mean, low, high = (float(full[row][f"gap_{baseline}{end}"]) for end in ("", "_low", "_high"))
    shared = set(full[row]["seeds"].split()) & set(full[baseline]["seeds"].split())
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f}, {len(shared)} seeds)"
