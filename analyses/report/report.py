"""The report: all results on one page that needs no network and no other file.

It is built from the files of the other artifacts, from the records of their runs and, for some sentences, from the recorded horizon ladder:

- :mod:`analyses.report.sources`: which artifacts are on the page;
- :mod:`analyses.report.opening`: what was found, for the first screen;
- :mod:`analyses.report.cards`: each table and figure, :mod:`analyses.report.markup` for the Markdown of tables;
- :mod:`analyses.report.entries`: claims, errata and theory, :mod:`analyses.report.interval` for the drawings of claims;
- :mod:`analyses.report.provenance`: runs, their specs, machines and cost.

``templates/`` and ``style.css`` put them together. The page has no script.
"""

from pathlib import Path

import jinja2
from markupsafe import Markup

from analyses.common.controls import grounds_of_all, scale_section
from analyses.errata.erratum import VERDICTS as ERRATA_VERDICTS
from analyses.ladder.quoted import RECORDED
from analyses.report.cards import card, data_uri, groups
from analyses.report.entries import by_result, claims, errata, theory
from analyses.report.markup import to_html
from analyses.report.numbers import number
from analyses.report.opening import findings, longest
from analyses.report.provenance import provenance
from analyses.report.sources import left_out, on_the_page
from poet.system.files import write_text
from suite.artifact import EVERY, Artifact
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
