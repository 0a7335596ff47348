"""The top of the report: sentences on the results."""

from collections import Counter
from collections.abc import Collection, Sequence

from analyses.controls.cells import POET_FS
from analyses.ladder.quoted import LONGEST, MODEL, gap, order_at_full_length
from analyses.report.entries import Shown, reason_of
from suite.check.tables import Line, read
from suite.context import Context
from suite.judging import tally


def findings(context: Context, shown: Collection[str], claims: Sequence[Shown], errata: Sequence[Line]) -> list[tuple[str, str, str]]:
    """The results: (sentence, anchor of the section that shows more, file that has the numbers) of each.

    ``shown`` are the names of the artifacts on the page.
    """
    exact = [claim for claim in claims if claim["scope"] == "exact"]
    orders = [claim for claim in claims if claim["scope"] != "exact" and claim["kind"] in ("ordering", "rank agreement")]
    others = [claim for claim in claims if claim not in exact and claim not in orders]
    leads = [claim for claim in orders if claim["artifact"] in ("table2", "table3", "figure9") and "below-adamw" in claim["key"]]
    about = (
        ("POET against AdamW", leads), ("The order of methods and settings", orders), ("Other claims about trained models and times", others),
        ("Exact claims (counts, theorems, transcription)", exact),
    )  # fmt: skip
    found = [(_sentence(what, some, context.scale.name), "claims", "claims.csv") for what, some in about if some]
    if "table2" in shown:
        counts = [row["trainable_agrees"] for row in read(context.results / "table2.csv") if row["trainable_agrees"]]
        found.append((f"Parameter counts: {counts.count('yes')} of {len(counts)} equal the printed digits.", "table2", "table2.csv"))
    wrong = sum(entry["verdict"] == "confirmed error" for entry in errata)
    return [*found, (f"Errata: {wrong} of {len(errata)} entries are confirmed errors of the paper.", "errata", "errata.csv")]


def longest() -> str:
    """Sentences on POET against AdamW at the paper's tokens for each matrix parameter, from the recorded ladder of night scale."""
    one, two = (gap("poet-fs-1_2", baseline) for baseline in ("adamw", "adamw-two-rates"))
    tripled = gap("poet-fs-1_2", "adamw", length=LONGEST)
    order = order_at_full_length("poet-fs-1_2")
    return (
        f"{POET_FS} at the paper's tokens for each matrix parameter ({MODEL} proxy, night scale, recorded): {one} nats from AdamW with one rate, {two} with two. "
        f"At {LONGEST} times that length: {tripled} from AdamW with one rate. Plus is worse. "
        f"The 95% intervals are not corrected for their number. Corrected for all tests of the ladder, the order to AdamW with one rate at the paper's tokens is {order}."
    )


def _sentence(what: str, some: Sequence[Shown], scale: str) -> str:
    """A sentence on the results of a group of claims; if none was judged, with the most frequent reason."""
    results = [claim["result"] for claim in some]
    if set(results) != {"not at this scale"}:
        return f"{what}: {tally(results)}."
    reason, count = Counter(reason_of(claim) for claim in some).most_common(1)[0]
    why = reason if count == len(some) else f"{count} of them: {reason}"
    return f"{what}: none of {len(some)} claims is judged at {scale} scale ({why})."
