"""The report: all results on one page that needs no network and no other file.

It is built from the files of the other artifacts, from the records of their runs and, for some sentences, from the recorded horizon ladder.
``templates/`` and ``style.css`` put the parts together, which the modules beside this one make. The page has no script.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from analyses.common.controls import grounds_of_all, scale_section
from analyses.controls.cells import POET_FS
from analyses.errata.erratum import VERDICTS as ERRATA_VERDICTS
from analyses.ladder.quoted import LONGEST, MODEL, RECORDED, gap, order_at_full_length
from analyses.report.cards import card, data_uri, groups
from analyses.report.entries import Shown, by_result, claims, errata, reason_of, theory
from analyses.report.markup import to_html
from analyses.report.numbers import number
from analyses.report.provenance import provenance
from analyses.report.sources import left_out, on_the_page
from poet.system.files import write_text
from suite.artifact import EVERY, Artifact
from suite.check.tables import Line, read
from suite.claim import UNJUDGED_SCALES
from suite.context import Context
from suite.discovery import find
from suite.judging import LEANING, RESULT_NAMES, tally

FOLDER = Path(__file__).parent


def environment() -> jinja2.Environment:
    """The environment of the templates: it escapes all values, and an undefined name is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )
    found.filters.update(number=number, tally=tally)
    return found


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


def page(context: Context) -> str:
    """The whole page.

    Raises:
        RunError: the record of a run is missing or unreadable.
    """
    artifacts = {name: artifact for name, artifact in on_the_page(context.scale).items() if name not in context.left_out}
    beyond, unbuilt = left_out(context.scale), {name: find(name).label for name in context.left_out}
    labels = {name: a.label for name, a in artifacts.items()} | {name: label for name, (label, _) in beyond.items()} | unbuilt
    shown, entries = claims(context, labels), errata(context)
    cards = {name: card(context.of(name), name, artifact, [c for c in shown if c["artifact"] == name]) for name, artifact in artifacts.items()}
    return environment().get_template("page.html").render(
        # Our own file, not escaped. Nothing else is unescaped but the HTML of :mod:`markup` and the drawings of :mod:`entries`.
        style=Markup((FOLDER / "style.css").read_text()), scale=context.scale, unjudged=context.scale.name in UNJUDGED_SCALES, left_out=beyond,
        unbuilt={label: context.left_out[name] for name, label in unbuilt.items()}, cards=cards, groups=groups(cards, artifacts),
        longest=longest(), ladder=data_uri("text/csv", RECORDED.read_bytes()),
        findings=findings(context, artifacts, shown, entries),
        claims=shown, leaning=LEANING, results=by_result(shown), every_result=RESULT_NAMES, elsewhere=[claim for claim in shown if claim["artifact"] not in artifacts],
        claims_data=data_uri("text/csv", (context.results / "claims.csv").read_bytes()),
        controls=to_html(scale_section(context, grounds_of_all(context)), "Controls"),
        errata={verdict: [entry for entry in entries if entry["verdict"] == verdict] for verdict in ERRATA_VERDICTS},
        errata_verdicts=ERRATA_VERDICTS, theory=theory(context), provenance=provenance(context, artifacts),
    )


def build(context: Context) -> None:
    write_text(context.results / "report.html", page(context))


ARTIFACT = Artifact(
    label="Report",
    caption="Every table, figure, claim and erratum, and where each number comes from, on one page that needs no network.",
    outputs=("report.html",),
    build=build, reads=(EVERY, "claims"),
)
