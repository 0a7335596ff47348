"""The page: templates, style and script put together into one file that asks nothing of a network."""

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

import jinja2
from markupsafe import Markup

from analyses.common.controls import grounds_of_all, scale_section
from analyses.errata.erratum import VERDICTS as ERRATA_VERDICTS
from analyses.report.cards import card, groups
from analyses.report.findings import errata, theory
from analyses.report.markup import to_html
from analyses.report.numbers import number
from analyses.report.provenance import provenance
from analyses.report.sources import left_out, on_the_page
from analyses.report.verdicts import RESULTS, claims, overview
from suite.claim import UNJUDGED_SCALES
from suite.context import Context
from suite.discovery import find

FOLDER = Path(__file__).parent


def environment() -> jinja2.Environment:
    """Templates whose values are all escaped, and where a name that does not exist is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )
    found.filters["number"] = number
    return found


def _choices(values: Iterable[str]) -> dict[str, str]:
    """Options of a filter that are called what they are, each once."""
    return {value: value for value in dict.fromkeys(values)}


def page(context: Context) -> str:
    """The whole page.

    Raises:
        RunError: an input is missing, unreadable or of another scale.
    """
    artifacts = {name: artifact for name, artifact in on_the_page(context.scale).items() if name not in context.left_out}
    beyond, unbuilt = left_out(context.scale), {name: find(name).label for name in context.left_out}
    labels = {name: a.label for name, a in artifacts.items()} | {name: label for name, (label, _) in beyond.items()} | unbuilt
    cards = {name: card(context, name, artifact) for name, artifact in artifacts.items()}
    found, entries = claims(context, labels), errata(context)
    claimed = {claim["artifact"] for claim in found}
    script = (FOLDER / "script.js").read_text()
    return environment().get_template("page.html").render(
        # Written by us, and the only HTML, CSS and script that is not escaped beside the tables' own.
        style=Markup((FOLDER / "style.css").read_text()), script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(), scale=context.scale,
        unjudged=context.scale.name in UNJUDGED_SCALES, left_out=beyond,
        unbuilt={label: context.left_out[name] for name, label in unbuilt.items()}, cards=cards,
        groups=groups(cards, artifacts), claims=found, results=[result for result in RESULTS if any(claim["result"] == result for claim in found)],
        every_result=RESULTS, overview=overview(found, labels), controls=to_html(scale_section(context, grounds_of_all(context)), "Controls"),
        claim_choices={
            "result": _choices(claim["result"] for claim in found),
            "scope": _choices(sorted(claim["scope"] for claim in found)),
            "kind": _choices(sorted(claim["kind"] for claim in found)),
            "artifact": {name: label for name, label in labels.items() if name in claimed},
        },
        errata=entries,
        errata_choices={
            "verdict": _choices(entry.row["verdict"] for entry in entries),
            "kind": _choices(sorted(entry.row["kind"] for entry in entries)),
            "check": _choices(sorted(entry.row["check"] for entry in entries)),
        },
        errata_verdicts=ERRATA_VERDICTS, theory=theory(context), provenance=provenance(context, artifacts),
    )
