"""The report: everything that was found, on one page that needs no network and no other file.

Built from what the other artifacts wrote and from the records of their runs, and from nothing else:

- :mod:`analyses.report.sources`: which artifacts are on the page, and their files;
- :mod:`analyses.report.opening`: what was found, for the first screen;
- :mod:`analyses.report.cards`: each table and figure, :mod:`analyses.report.markup` for the Markdown of tables;
- :mod:`analyses.report.verdicts`: the claims, :mod:`analyses.report.interval` for their drawings;
- :mod:`analyses.report.findings`: errata and theory;
- :mod:`analyses.report.provenance`: runs, their specs, machines and cost;
- :mod:`analyses.report.page`: the page from ``templates/`` and ``style.css``.
"""

from analyses.report.page import page
from poet.system.files import write_text
from suite.artifact import EVERY, Artifact
from suite.context import Context


def build(context: Context) -> None:
    write_text(context.results / "report.html", page(context))


ARTIFACT = Artifact(
    label="Report",
    caption="Every table, figure, claim and erratum, and where each number comes from, on one page that needs no network.",
    outputs=("report.html",),
    build=build, reads=(EVERY, "claims"),
)
