"""Numbers of the recorded horizon ladder, as text that pages and the report quote."""

from analyses.ladder.orders import LENGTHS
from suite.check.tables import read
from suite.fitness import LONGER
from suite.scale import ROOT

#: The ladder of the longest runs that were recorded.
RECORDED = ROOT / "analyses" / "recorded" / "night" / "ladder.csv"
MODEL, FULL, LONGEST = "60m", "1", str(LONGER)


def gap(row: str, baseline: str, model: str = MODEL, length: str = FULL) -> str:
    """The gap of a row to another in nats at one length: the mean over shared seeds, its 95% interval, and the number of seeds."""
    found = {line["variant"]: line for line in read(RECORDED) if (line["model"], line["length"]) == (model, length) and line["n"]}
    mean, low, high = (float(found[row][f"gap_{baseline}{end}"]) for end in ("", "_low", "_high"))
    shared = set(found[row]["seeds"].split()) & set(found[baseline]["seeds"].split())
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f}, {len(shared)} seeds)"


def order_at_full_length(row: str) -> str:
    """The order of a row and AdamW with one rate ("as printed", "opposite" or "undecided"), with its corrected p-value."""
    (line,) = (line for line in read(RECORDED) if (line["model"], line["variant"], line["against"]) == (MODEL, row, "adamw"))
    p = dict(reversed(part.split(" at ")) for part in line["holm_p"].split("; "))[FULL]
    return f"{next(kind for kind, column in LENGTHS.items() if FULL in line[column].split())} (p = {p})"
