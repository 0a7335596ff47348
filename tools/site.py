"""A hook of MkDocs (``mkdocs.yml``): the site has the pages of the repository under their own paths.

So a relative link means the same on the site as in the repository. Besides the pages, the site gets whatever files they link to.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.links import documents, is_local, links, resolve


def on_files(files: Files, config) -> Files:
    """The theme's files, the pages, and what pages link to, followed through linked pages."""
    theme = [file for file in files if not _in_docs(file)]
    waiting, found = documents(ROOT), {}
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
        if path.suffix == ".md":
            waiting += [resolve(path, target)[0] for target in links(path.read_text()) if is_local(target)]
    style = File.generated(config, "site.css", abs_src_path=str(ROOT / "docs" / "site.css"))
    return Files([*theme, *found.values(), style])


def _in_docs(file: File) -> bool:
    return bool(file.abs_src_path) and Path(file.abs_src_path).is_relative_to(ROOT / "docs")
