"""The report as text: nothing is missing, nothing is loaded from elsewhere, and no text becomes HTML."""

import base64
import json
import re
from html.parser import HTMLParser

import pytest

from analyses.ladder.quoted import RECORDED
from analyses.ladder.orders import LENGTHS
from analyses.report.cards import SEPARATE
from analyses.report.markup import LONG
from analyses.report.provenance import core_hours, settings
from analyses.report.sources import left_out, on_the_page
from poet.launch.records import write_record
from poet.training.errors import RunError
from suite.check.tables import read
from suite.collection import RESULTS, load_suite
from suite.context import Context
from suite.discovery import find
from suite.recorded.marking import caption
from suite.recorded.origin import write_note
from suite.scale import load_scale
from tests.analyses.report.small_results import HOSTILE, png, record, write_results

REPORT = find("report")
ORDERS = ("ordering", "rank agreement")


class Page(HTMLParser):
    """The tags of a page, each with its attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]

    def values(self, attribute):
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


def build(folder, scale="mini", seeds=(0,)):
    context = Context(load_scale({"scale": scale, "seeds": list(seeds)}), folder)
    write_results(context)
    REPORT.build(context)
    return context, (folder / "report.html").read_text()


def words(html):
    """The text of a piece of HTML, with single spaces."""
    return " ".join(" ".join(Page(html).text).split())


def article(text, name):
    """The HTML of an artifact's card."""
    return re.search(rf'<article class="card" id="{name}">.*?</article>', text, re.S)[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("results"), seeds=(0, 1))


@pytest.fixture(scope="module")
def page(built):
    return Page(built[1])


def test_it_begins_with_the_longest_runs_that_were_recorded(built):
    full = {line["variant"]: line for line in read(RECORDED) if (line["model"], line["length"]) == ("60m", "1")}["poet-fs-1_2"]
    first = words(re.search(r'<ul class="findings">\s*<li>.*?</li>', built[1], re.S)[0])
    for baseline in ("adamw", "adamw-two-rates"):
        assert all(f"{float(full[f'gap_{baseline}{end}']):+.3f}" in first for end in ("", "_low", "_high"))
    order = next(line for line in read(RECORDED) if (line["model"], line["variant"], line["against"]) == ("60m", "poet-fs-1_2", "adamw"))
    (p,) = (part.removesuffix(" at 1") for part in order["holm_p"].split("; ") if part.endswith(" at 1"))
    (kind,) = (kind for kind, column in LENGTHS.items() if "1" in order[column].split())
    assert f"is {kind} (p = {p})" in first


def test_every_artifact_figure_claim_erratum_and_run_is_there_once(built, page):
    context, _ = built
    artifacts = on_the_page(context.scale)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert len(artifacts) > 30 and set(artifacts) | {f"from-{name}" for name in artifacts} <= set(ids)
    pictures = [output for a in artifacts.values() for output in a.outputs if output.endswith(".png")]
    shown = [base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) for image in page.all("img")]
    assert sorted(shown) == sorted((context.results / output).read_bytes() for output in pictures)
    assert all(image["alt"] and int(image["height"]) > 3 for image in page.all("img"))
    for name, prefix, key in (("claims", "claim-", "claim"), ("errata", "erratum-", "id")):
        assert {prefix + line[key] for line in read(context.results / f"{name}.csv")} == {i for i in ids if i.startswith(prefix)}
    assert sorted(page.values("data-run")) == sorted({spec.name for artifact in artifacts.values() for spec in artifact.runs(context.scale)})


def test_tables_and_figures_stand_in_the_paper_s_order(page):
    labels = [i for i in page.values("id") if re.fullmatch(r"(table|figure)\d+", i)]
    assert labels == sorted(labels, key=lambda i: (i.startswith("figure"), int(re.sub(r"\D", "", i))))


def test_the_page_asks_for_nothing_but_itself(built, page):
    context, text = built
    for source in page.values("src"):
        assert source.startswith("data:image/png;base64,")
    for target in page.values("href"):
        assert target.startswith(("#", "data:")), target
    assert not re.search(r"@import|url\(", (style := re.search("<style>(.*?)</style>", text, re.S)[1])) and len(style) > 1000
    (policy,) = (m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_every_table_of_numbers_is_in_the_page(built, page):
    context, _ = built
    files = {output for a in [*on_the_page(context.scale).values(), find("claims")] for output in a.outputs if output.endswith(".csv")}
    downloads = {link["download"]: base64.b64decode(link["href"].removeprefix("data:text/csv;base64,")) for link in page.all("a") if "download" in link}
    assert downloads == {RECORDED.name: RECORDED.read_bytes(), **{name: (context.results / name).read_bytes() for name in files}}


def test_every_artifact_stands_below_its_title(built):
    """In the contents too: a bare number says nothing."""
    context, text = built
    contents = words(re.search("<nav.*?</nav>", text, re.S)[0])
    for name, artifact in on_the_page(context.scale).items():
        title = artifact.caption.partition(". ")[0].removesuffix(".")
        if name not in SEPARATE:
            (heading,) = re.findall("<h3>.*?</h3>", article(text, name))
            assert words(heading) == f"{artifact.label} {title}" and f"{artifact.label} {title}" in contents


def test_no_caption_stands_twice(built):
    context, text = built
    for name, artifact in on_the_page(context.scale).items():
        if name not in SEPARATE:
            said = words(article(text, name))
            for sentence in re.split(r"(?<=\.) ", artifact.caption):
                assert said.count(sentence.removesuffix(".")) == 1, (name, sentence)
            assert "Scale: mini" not in said  # the top of the page says it


def test_long_tables_and_tables_of_prose_are_folded(built):
    _, text = built
    table2 = article(text, "table2")
    assert re.search(rf"<details><summary>Table, {LONG + 1} rows: row, value</summary>\s*<div class=\"scroll\"", table2)
    assert re.search(r"<details><summary>Table, 1 row: known fact, passes if</summary>\s*<div class=\"scroll\"", table2)
    unfolded = re.sub(r"<details>.*?</details>", "", table2, flags=re.S)
    assert "133.98" in unfolded and "It does." not in unfolded and f"<td>{LONG}</td>" not in unfolded


def test_the_first_screen_says_what_was_found_with_the_numbers_of_its_files(built):
    context, text = built
    head = words(text[text.index("<header") : text.index("</header>")])
    for name, orders in (("The order of methods and settings", True), ("Other claims about trained models and times", False)):
        results = [line["result"] for line in read(context.results / "claims.csv") if (line["kind"] in ORDERS) == orders]
        said = head.partition(f"{name}: ")[2].partition(".")[0]
        assert sorted(said.split(", ")) == sorted(f"{results.count(result)} {result}" for result in set(results))
    assert "Parameter counts: 1 of 2 equal the printed digits. table2.csv" in head
    verdicts = [line["verdict"] for line in read(context.results / "errata.csv")]
    assert f"Errata: {verdicts.count('confirmed error')} of {len(verdicts)} entries are confirmed errors" in head
    assert "POET against AdamW" not in head  # there are no such claims in these results


def test_links_within_the_page_lead_somewhere(page):
    ids = {*page.values("id"), ""}
    for target in page.values("href"):
        if target.startswith("#"):
            assert target[1:].partition("?")[0] in ids, target


def test_texts_stay_texts(built, page):
    assert not page.all("script")
    assert all("onerror" not in attributes for _, attributes in page.tags)
    assert HOSTILE in "".join(page.text)
    assert "https://example.org/" in "".join(page.text)  # written, and no link


def test_marks_have_words_and_cells_their_lines(built):
    _, text = built
    mark = '<span class="mark opposite"><span aria-hidden="true">-</span> opposite</span>'
    assert f'<td class="number">1.00 / <strong>2.00</strong> ± 0.10{mark}(1.21B)</td>' in text
    assert re.search(r'<td class="number">26\.68 / <strong>133\.98</strong><br ?/?>\s*\(25\.30M\)</td>', text)
    # No measured number is before it, so this is no mark.
    assert '<td class="number"><code>&lt;https://example.org/&gt;</code> -</td>' in text


def test_the_page_says_where_the_numbers_come_from(built):
    context, text = built
    runs = {spec.name for artifact in on_the_page(context.scale).values() for spec in artifact.runs(context.scale)}
    assert f"{len(runs)} runs on enwik8 (stand-in for C4), seeds 0, 1." in words(text[text.index("<header") : text.index("</header>")])
    head = words(text[text.index('<section id="provenance"') :])
    assert f"{len(runs)} runs, {len(runs) * 36 * 2 / 3600:,.2f} core-hours" in head  # 36 seconds on two threads
    assert "aaaaaaaaa" in head and "bbbbbbbbb" in head and "some with uncommitted changes" in head


@pytest.mark.parametrize(("device", "devices", "hours"), [("cpu (2 threads)", {}, 2), ("cpu (2 threads)", {"devices": 3}, 6), ("A GPU", {"devices": 8}, 8)])
def test_a_run_costs_the_hours_of_all_its_devices(device, devices, hours):
    assert core_hours({"provenance": {"device": device, **devices}, "cost": {"train_seconds": 3600.0}}) == hours


def test_finetuning_runs_are_counted_too_and_foreign_ones_are_called_so(tmp_path):
    context = Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path)
    write_results(context)
    runs = {name: {spec.name: spec for spec in find(name).specs(context.scale)} for name in ("table4", "table12")}
    foreign = next(spec for spec in runs["table12"].values() if spec.base)
    folder = tmp_path / "runs" / foreign.name
    strange = record(foreign) | {"training_digest": "0" * 64}
    write_record(folder / "record.json", strange)
    write_note(folder, "lab-b", strange)
    (tmp_path / "figures" / "table12.txt").write_text(caption(context, find("table12")) + "\n")
    REPORT.build(context)
    text = (tmp_path / "report.html").read_text()
    assert "Recorded runs" not in article(text, "table12")  # the top of the page says it
    for name, own in runs.items():
        assert len(own) > 2 and f"from {len(own)} runs" in article(text, name)
        assert f'<td class="number">{len(own)}</td><td>0' in re.search(rf'<tr id="from-{name}">.*?</tr>', text, re.S)[0]
    assert f"foreign: 1 of {len(runs['table12'])} from lab-b" in words(article(text, "table12")) and "lab-b" not in article(text, "table4")
    (recorded,) = re.findall("Recorded runs, not trained here: 1 of .*? from lab-b.*?</p>", text)
    assert "training code changed since" in recorded and recorded in text[: text.index("</header>")]


def test_results_are_counted_and_lead_to_their_claims(built):
    context, text = built
    for result in ("same direction", "opposite direction", "undecided", "not at this scale"):
        keys = [line["claim"] for line in read(context.results / "claims.csv") if line["result"] == result]
        (part,) = re.findall(rf'<details class="result"(?: open)?><summary><span class="verdict [\w-]+">{result}</span> <strong>{len(keys)}</strong>.*?</details>', text, re.S)
        assert keys and sorted(re.findall('href="#claim-(.*?)"', part)) == sorted(keys)


def test_nothing_is_called_reproduced_but_the_project_s_name(built):
    _, text = built
    assert not re.search(r"\b(reproduced|contradicted)\b", text[text.index("<body>") :].replace("POET, reproduced", ""))


def test_the_page_says_whether_the_scale_is_fit(built):
    _, text = built
    assert "not fit to judge orders" in text and "full training beats LoRA" in text


def test_only_the_smoke_scale_disowns_its_numbers(built, tmp_path):
    banner = "The numbers on this page mean nothing."
    assert banner not in built[1]
    assert banner in build(tmp_path, "smoke")[1]


def test_a_scale_without_a_model_says_what_it_leaves_out(tmp_path):
    context, text = build(tmp_path, "gpu")
    assert "table3" in left_out(context.scale) and "table3" not in Page(text).values("id")
    assert "Table 3 needs 3b, which this scale has no model for." in text


def test_a_record_that_is_gone_is_named_in_one_sentence(tmp_path):
    context = Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path)
    write_results(context)
    (tmp_path / "runs" / "smoke" / "60m" / "adamw" / "seed0" / "record.json").unlink()
    with pytest.raises(RunError, match="run smoke/60m/adamw/seed0 has no record") as raised:
        REPORT.build(context)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "report.html").exists()


def run(spec):
    return {"spec": spec, "record": record(spec), "environment": "E1", "data": "D1"}


def test_runs_that_differ_in_their_seed_alone_are_one_setting_with_their_whole_spec(make_spec):
    specs = [make_spec(seed=0), make_spec(seed=1), make_spec(variant="probed", probes={"energy": tuple(range(0, 13, 3))})]
    (found,) = settings(list(map(run, specs))).values()
    both, probed = found.values()
    assert [r["spec"].seed for r in both] == [0, 1] and [r["spec"] for r in probed] == specs[2:]
    for spec, runs in found.items():
        first = runs[0]["spec"]
        assert json.loads(spec) | {"seed": first.seed} == json.loads(json.dumps(first.to_dict()))


def test_a_picture_is_as_large_as_its_file_says(tmp_path, built):
    _, text = built
    assert png(4, 9)[16:24] == bytes([0, 0, 0, 4, 0, 0, 0, 9])
    assert 'width="4" height="10" alt="Figure 2:' in text  # see write_results: 3 and the length of the name


def test_the_report_is_built_from_every_other_artifact():
    suite = load_suite({"scale": "mini", "seeds": [0]})
    needed = {output for name in (*on_the_page(suite.scale), "claims") for output in suite.outputs(name)}
    assert set(suite.sources("report")) == needed and RESULTS / "report.html" in suite.default_targets()
