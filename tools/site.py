"""A hook of MkDocs (``mkdocs.yml``): the site has the pages of the repository under their own paths, and the reports that were built.

So a relative link works on the site as in the repository. The site also gets the files that pages link to.
"""

import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.links import documents, is_local, links, resolve

#: Where reports from recorded runs lie, each in the folder of its scale.
REPORTS = ROOT / "results" / "recorded"


def on_files(files: Files, config) -> Files:
    """The theme's files, the pages, the files that they link to (also through linked pages), and the reports."""
    theme = [file for file in files if not file.abs_src_path or not Path(file.abs_src_path).is_relative_to(ROOT / "docs")]
    waiting, found = documents(ROOT), {}
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
        if path.suffix == ".md":
            waiting += [resolve(path, target)[0] for target in links(path.read_text()) if is_local(target)]
    style = File.generated(config, "site.css", abs_src_path=str(ROOT / "docs" / "site.css"))
    reports = [File.generated(config, f"docs/{name}", abs_src_path=str(path)) for name, path in _reports().items()]
    return Files([*theme, *found.values(), *reports, style])


def on_page_markdown(markdown: str, page, **_) -> str:
    """Show the reports of the site on the report page, or a sentence if there is none."""
    if page.file.src_uri != "docs/report.md":
        return markdown
    shown = [
        f"**[The report at {path.parent.name} scale, on a page of its own]({name})**\n\n<iframe src=\"{name}\" title=\"{path.parent.name} scale\" loading=\"lazy\"></iframe>"
        for name, path in _reports().items()
    ]
    said = shown or ["This site was built without a report. `make docs RECORDED=1` builds it with one."]
    return "\n\n".join([markdown, *said])


def _reports() -> dict[str, Path]:
    """Every report from recorded runs, by its name on the site."""
    return {f"report-{path.parent.name}.html": path for path in sorted(REPORTS.glob("*/report.html"))}
