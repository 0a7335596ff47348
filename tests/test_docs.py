"""README.md and docs/: code runs, links lead somewhere, commands exist, generated parts say what is recorded."""

import argparse
import collections
import dataclasses
import re
import runpy
import shlex
import types

import pytest

from poet.system.errors import UserError
from suite.collection import load_suite
from suite.scale import load_scale
from suite.targets import files
from poet.optim import poet_parameters
from tools import pages
from tools.links import MARKDOWN, anchors, documents, is_local, links, resolve

#: Files that pages show whole. Tests of methods, artifacts, corpora, primitives, adapters and the support matrix run them.
SHOWN = (*(f"docs/examples/{name}.py" for name in ("sgd", "lion", "table99", "gpt2", "files", "adapter", "export")), "tests/primitives/givens.py")


def dead_links(root):
    """``page: target`` for each link of the documents below ``root`` whose file or anchor is not there."""
    found = []
    for page in documents(root):
        for target in filter(is_local, links(page.read_text())):
            path, anchor = resolve(page, target)
            alive = path.is_file() and path.is_relative_to(root)
            if not alive or (anchor and (path.suffix != ".md" or anchor not in anchors(path.read_text()))):
                found.append(f"{page.relative_to(root)}: {target}")
    return found


def blocks(repository, language):
    """Every fenced block of a language, in all documents; of no language for commands."""
    tokens = (token for page in documents(repository) for token in MARKDOWN.parse(page.read_text()))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def test_runs_that_pages_compare_follow_their_rates(monkeypatch):
    """Names of runs have learning rates in them: written down, they would be of runs that no table has any more."""
    night = load_scale({"scale": "night", "seeds": [0, 1]})
    doubled = (dataclasses.replace(trial, rates={name: 2 * rate for name, rate in trial.rates.items()}) for trial in night.rate_table.trials)
    moved = dataclasses.replace(night, rate_table=dataclasses.replace(night.rate_table, trials=tuple(doubled)))
    monkeypatch.setattr(pages, "load_scale", lambda config: moved, raising=False)

    class Recorded(collections.defaultdict):
        def values(self):
            return [types.SimpleNamespace(spec=moved.run("60m", "adamw", seed)) for seed in moved.seeds]

    asked = Recorded(lambda: types.SimpleNamespace(record={"validation_perplexity": 40.0}))
    assert set(pages._paired(asked).values()) == {"+0.000 (+0.000 to +0.000, 2 seeds)"}
    rates = {float(name.partition("-lr=")[2].partition("-")[0].partition("/")[0]) for name in asked if "/60m/adamw-lr=" in name}
    assert rates == {night.tuned("60m", "adamw").rates["lr"]}, "half of twice the chosen rate"


def test_every_link_and_anchor_leads_somewhere(repository):
    assert dead_links(repository) == []
    assert "docs/artifacts.md" in links((repository / "README.md").read_text())


DEAD = {
    "[a](docs/gone.md)": "docs/gone.md",
    "![a](gone.png)": "gone.png",
    "| a |\n| --- |\n| [`x`](gone.csv) |": "gone.csv",
    "[a](#not-here)": "#not-here",
    "[a](CHANGELOG.md#here)": "CHANGELOG.md#here",
    "[a](docs)": "docs",
    "[a](../outside.md)": "../outside.md",
    "## Twice\n\n## Twice\n\n[a](#twice)": "#twice",
}


@pytest.mark.parametrize("text", DEAD)
def test_a_dead_link_is_found(text, tmp_path):
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "workflow" / "profiles").mkdir(parents=True)
    for page in ("CHANGELOG.md", "CONTRIBUTING.md", "workflow/profiles/README.md", "../outside.md"):
        (root / page).write_text("# Page\n")
    (root / "docs" / "a.md").write_text("# Here, *there*\n\n[up](../README.md#here) and [here](#here-there), <https://example.org>\n")
    (root / "README.md").write_text("# Here\n\n[a](docs/a.md#here-there) `[b](code.md)`\n")
    assert dead_links(root) == []
    (root / "README.md").write_text(f"# Here\n\n{text}\n")
    assert dead_links(root) == [f"README.md: {DEAD[text]}"]


def test_every_python_example_is_run(repository, llama, tokens):
    shown = [(repository / name).read_text() for name in SHOWN]
    examples = [block for block in blocks(repository, "python") if block not in shown]
    assert len(blocks(repository, "python")) == len(examples) + len(SHOWN)
    assert examples
    for example in examples:
        small = example.replace("block_size=256, merge_every=400", "block_size=8, merge_every=3")
        assert small != example
        names = {"model": llama(), "batches": [{"input_ids": tokens, "labels": tokens}] * 7}
        exec(small, names)
        model = names["model"]
        assert not poet_parameters(model)
        assert model(input_ids=tokens, labels=tokens).loss < 4.16  # ln 64: what knowing nothing costs


def test_every_command_exists(repository):
    commands = "\n".join(blocks(repository, ""))
    makefile = (repository / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    texts = [commands, *(page.read_text() for page in documents(repository))]
    named = {name for text in texts for name in re.findall(r"(?:^|`|&& )make ([\w-]+)(?![\w/.-])", text, re.M)}
    assert {"test", "verify"} <= named <= targets
    options = {name for text in texts for name in re.findall(r"(?:^|`|&& )make [^`#\n]*?\b([A-Z]+)=", text, re.M)}
    assert "SCALE" in options and options <= set(re.findall(r"\$\(([A-Z]+)\)", makefile))
    outputs = set(files(load_suite({"scale": "mini", "seeds": [0]})))
    asked = {name for text in texts for name in re.findall(r"(?:make|all) (results/[\w./]+\.\w+)", text)}
    assert "results/table2.csv" in asked and asked <= outputs


class Parsed(Exception):
    """A command line was understood; nothing is done."""


def calls(repository, start):
    """The words of every call that begins as ``start``, a regular expression, in text or in a block; optional ones as if they were given."""
    text = "\n".join(page.read_text() for page in documents(repository) if page.name != "CHANGELOG.md")  # which has what is gone
    found = re.findall(rf"(?:^|`|&& |: ){start} ([^`#\n]+)", text, re.M)
    return [shlex.split(re.sub(r"(?<= )\[|\](?= |$)", "", words)) for words in dict.fromkeys(found)]


def test_every_call_of_python_is_understood(repository, monkeypatch):
    """A flag that is renamed, or a module that moves, leaves a line in the documents that does nothing."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, *arguments):
        parse(self, *arguments)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    monkeypatch.chdir(repository)
    found = calls(repository, r"(?:\.venv/bin/)?python(?= -m| \w+/)")
    assert ["-m", "suite.tuning", "--scale", "night", "--status"] in found and ["tools/rereading.py", "night"] in found
    for words in found:
        name, given = (words[1], words[2:]) if words[0] == "-m" else (words[0], words[1:])
        if name == "pytest":
            continue
        monkeypatch.setattr("sys.argv", [name, *given])
        with pytest.raises(Parsed):
            runpy.run_module(name, run_name="__main__") if words[0] == "-m" else runpy.run_path(name, run_name="__main__")


def test_every_call_of_snakemake_is_understood(repository):
    from snakemake.cli import get_argument_parser

    found = calls(repository, "snakemake")
    assert ["--profile", "workflow/profiles/slurm", "results/table2.csv", "--config", "scale=paper"] in found
    parser = get_argument_parser([])
    for words in found:
        parser.parse_args(words)


def test_the_readme_is_one_page(repository):
    assert len((repository / "README.md").read_text().splitlines()) <= 150


def test_generated_parts_are_up_to_date(repository):
    stale = [page.name for page, text in pages.written(repository).items() if page.read_text() != text]
    assert not stale, "run make record"


def test_a_part_within_a_sentence_begins_no_line(repository):
    """A comment at the beginning of a line ends the list or paragraph that it stands in."""
    for page in pages.pages(repository):
        for match in pages.MARK.finditer(text := page.read_text()):
            if "\n" not in match[2]:
                assert text[: match.start()].rpartition("\n")[2].strip(" >-*"), f"{page.name}: {match[1]}"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """``written(text)``: README.md of that text with the parts ``number`` and ``table`` filled in."""
    monkeypatch.setattr(pages, "_parts", lambda root: {"number": "7", "table": "[x](@/x.csv)"})
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("<!-- table:begin -->\nold\n<!-- table:end -->")

    def _written(text):
        page = tmp_path / "docs" / "a.md"
        page.write_text(text)
        return pages.written(tmp_path)[page]

    return _written


def test_parts_are_written_between_their_marks(written, tmp_path):
    found = written("a <!-- number:begin -->6<!-- number:end --> b\n<!-- table:begin -->\n<!-- table:end -->\n")
    assert found == "a <!-- number:begin -->7<!-- number:end --> b\n<!-- table:begin -->\n\n[x](../x.csv)\n\n<!-- table:end -->\n"
    assert pages.written(tmp_path)[tmp_path / "README.md"] == "<!-- table:begin -->\n\n[x](./x.csv)\n\n<!-- table:end -->"


def test_a_part_that_nobody_knows_or_shows_is_refused(written):
    with pytest.raises(UserError, match="docs/a.md: no part is called 'nummer'; there are number, table"):
        written("<!-- nummer:begin --><!-- nummer:end -->")
    with pytest.raises(UserError, match="neither README.md nor docs/ shows number"):
        written("nothing")


def test_the_site_has_the_reports_that_were_built_and_says_where_it_has_none(repository, tmp_path, monkeypatch):
    pytest.importorskip("mkdocs", reason="no MkDocs: `make docs` installs it")
    from mkdocs.config import load_config
    from mkdocs.structure.files import Files

    config = load_config(str(repository / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
    monkeypatch.setattr(config.hooks["tools/site.py"], "REPORTS", tmp_path)

    def written(path, text):
        page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=path))
        return config.plugins.on_page_markdown(text, page=page, config=config, files=Files([]))

    assert "`make docs RECORDED=1` builds it with one" in written("docs/report.md", "# The report\n\nText.")
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "report.html").write_text("<p>everything</p>")
    said = written("docs/report.md", "# The report\n\nText.")
    assert "](report-mini.html)" in said and '<iframe src="report-mini.html"' in said and "without a report" not in said
    (file,) = (file for file in config.plugins.on_files(Files([]), config=config) if file.src_uri == "docs/report-mini.html")
    assert file.content_bytes == b"<p>everything</p>"
    assert written("README.md", "# Other") == "# Other"
