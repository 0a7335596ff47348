"""The report in headless Chromium: nothing complains, nothing is missing, filters follow the URL, and a phone is wide enough.

One browser for all tests. Where none is installed they are skipped: the page's text is tested without one.
"""

import csv
import re

import pytest

from analyses.report.sources import on_the_page
from suite.context import Context
from suite.discovery import find
from suite.scale import load_scale
from tests.analyses.report.browser import Browser, find_chromium
from tests.analyses.report.small_results import write_results

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install chromium or google-chrome to test the report in it")
PHONE = 390
#: What the page shows of a filtered section: keys of the entries, the count that is written, and the hash.
SHOWN = """(section) => ({
  keys: [...document.querySelectorAll(`#${section} [data-item]`)].filter((e) => e.checkVisibility()).map((e) => e.querySelector("details").id),
  said: document.querySelector(`#${section} .count`).textContent,
  hash: location.hash,
})"""

#: Until what was changed is drawn.
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => null)"


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    context = Context(load_scale({"scale": "mini", "seeds": [0]}), tmp_path_factory.mktemp("results"))
    write_results(context)
    find("report").build(context)
    return context


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def altered(context, tmp_path):
    """``altered(old, new)``: a copy of the page with one piece of text changed."""

    def _altered(old, new):
        text = (context.results / "report.html").read_text()
        assert old in text
        (tmp_path / "report.html").write_text(text.replace(old, new, 1))
        return tmp_path / "report.html"

    return _altered


def lines(context, name):
    with open(context.results / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def faults(browser, page, width):
    """What is wrong with a page at a width, in words."""
    browser.open(page, width=width)
    broken = browser.evaluate("[...document.images].filter((image) => !image.naturalWidth).map((image) => image.alt)")
    beyond = browser.evaluate(
        "[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .skip')"
        f" && e.getBoundingClientRect().right > {width + 1}).map((e) => e.outerHTML.slice(0, 80))"
    )
    across = browser.evaluate(f"document.documentElement.scrollWidth - {width}")
    return [
        *(f"the console says: {text}" for text in browser.complaints),
        *(f"asks for {url}" for url in browser.requests if url != page.as_uri()),
        *(f"does not show the picture: {alt}" for alt in broken),
        *(f"reaches beyond the window: {tag}" for tag in beyond),
        *([f"scrolls sideways by {across}"] if across > 0 else []),
    ]


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_nothing_is_wrong_with_the_page(context, browser, width):
    assert faults(browser, context.results / "report.html", width) == []
    assert browser.evaluate("innerWidth") == width
    artifacts = on_the_page(context.scale)
    assert browser.evaluate("document.images.length") == sum(output.endswith(".png") for a in artifacts.values() for output in a.outputs)
    headings = browser.evaluate("[...document.querySelectorAll('h3')].filter((e) => e.checkVisibility()).map((e) => e.textContent)")
    assert {a.label for name, a in artifacts.items() if name not in ("errata", "theory")} <= set(headings)
    assert browser.evaluate("[...document.forms].filter((form) => form.checkVisibility()).length") == 2
    assert browser.evaluate(f"({SHOWN})('claims').keys.length") == len(lines(context, "claims"))
    assert browser.evaluate(f"({SHOWN})('errata').keys.length") == len(lines(context, "errata"))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('addEventListener("hashchange", follow);', "", "the console says: .*Content Security Policy"),  # another script than ours
        ("</main>", '<img src="figure1.png" alt="gone"></main>', "does not show the picture: gone"),
        ("</main>", '<img src="https://example.org/a.png" alt="far"></main>', "the console says: .*https://example.org/a.png"),
        ("</main>", '<p style="width: 700px">wide</p></main>', "reaches beyond the window: <p style"),
        ("</main>", '<div style="margin-left: 300px; white-space: nowrap">long and in one line</div></main>', "beyond|sideways"),
    ],
)
def test_a_fault_of_the_page_is_seen(altered, browser, old, new, fault):
    assert any(re.search(fault, found) for found in faults(browser, altered(old, new), PHONE))


def test_an_error_of_the_script_is_seen(altered, browser):
    page = altered("script-src 'sha256-", "script-src 'unsafe-inline' 'unhashed-")
    page.write_text(page.read_text().replace("const panels =", "const panels = nothing.here ?? "))
    assert any("nothing is not defined" in found for found in faults(browser, page, PHONE))


def expected(context, name, **wanted):
    prefix, key = {"claims": ("claim", "claim"), "errata": ("erratum", "id")}[name]
    found = [line for line in lines(context, name) if all(line[k] == v for k, v in wanted.items())]
    return {f"{prefix}-{line[key]}" for line in found}


@pytest.mark.parametrize(
    ("section", "query", "wanted"),
    [
        ("claims", "result=opposite+direction&kind=trend", {"result": "opposite direction", "kind": "trend"}),
        ("claims", "result=not+at+this+scale", {"result": "not at this scale"}),
        ("claims", "result=not%20at%20this%20scale&artifact=table7", {"result": "not at this scale", "artifact": "table7"}),
        ("claims", "text=SAYS7.", {"says": "Says7. <script>document.title = 'broken'</script><img src=x onerror=alert(1)>"}),
        ("claims", "kind=no+such+kind", {"kind": "no such kind"}),
        ("claims", "text=says7.+no+such", {"says": "every word has to be there"}),
        ("errata", "verdict=inconsistent&check=quotation", {"verdict": "inconsistent", "check": "quotation"}),
    ],
)
def test_the_url_filters(context, browser, section, query, wanted):
    browser.open(context.results / "report.html", f"#{section}?{query}")
    shown = browser.evaluate(f"({SHOWN})('{section}')")
    rows = expected(context, section, **wanted)
    assert set(shown["keys"]) == rows and len(shown["keys"]) == len(rows)
    assert shown["said"].startswith(f"{len(rows)} of {len(lines(context, section))} ")
    assert rows or "no+such" in query
    other = {"claims": "errata", "errata": "claims"}[section]
    assert len(browser.evaluate(f"({SHOWN})('{other}')")["keys"]) == len(lines(context, other))
    assert abs(browser.evaluate(f"document.getElementById('{section}').getBoundingClientRect().top")) < 100


def test_a_filter_that_shows_the_wrong_rows_is_seen(altered, browser, context):
    page = altered("script-src 'sha256-", "script-src 'unsafe-inline' 'unhashed-")
    page.write_text(page.read_text().replace("item.dataset[name] !== value", "item.dataset[name] === value"))
    browser.open(page, "#claims?result=opposite+direction")
    assert set(browser.evaluate(f"({SHOWN})('claims')")["keys"]) != expected(context, "claims", result="opposite direction")


def test_what_is_chosen_stands_in_the_url_and_can_be_taken_back(context, browser):
    browser.open(context.results / "report.html")
    choose = (
        "(name, value) => { const control = document.querySelector(`#claims [name=${name}]`);"
        " control.value = value; control.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    browser.evaluate(f"({choose})('kind', 'trend')")
    browser.evaluate(f"({choose})('text', 'says the rule')")
    shown = browser.evaluate(f"({SHOWN})('claims')")
    assert shown["hash"] == "#claims?kind=trend&text=says+the+rule"
    assert set(shown["keys"]) == expected(context, "claims", kind="trend")
    browser.evaluate("document.querySelector('#claims button').click()")
    shown = browser.evaluate(f"({SHOWN})('claims')")
    assert shown["hash"] == "#claims" and len(shown["keys"]) == len(lines(context, "claims"))
    browser.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => done(), {once: true}); location.hash = '#claims?result=same+direction'; })"
    )
    shown = browser.evaluate(f"({SHOWN})('claims')")
    assert set(shown["keys"]) == expected(context, "claims", result="same direction")
    assert browser.evaluate("document.querySelector('#claims [name=result]').value") == "same direction" and not browser.complaints


def test_a_link_to_a_claim_opens_it(context, browser):
    key = lines(context, "claims")[20]["claim"]
    browser.open(context.results / "report.html", f"#claim-{key}")
    assert browser.evaluate(f"document.getElementById('claim-{key}').open")
    assert browser.evaluate("document.querySelectorAll('#claims details[open]').length") == 1


def test_without_the_script_everything_is_there_but_the_filters(context, browser):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(context.results / "report.html", "#claims?result=same+direction")
        shown = browser.evaluate(f"({SHOWN})('claims')")
        forms = browser.evaluate("[...document.forms].filter((form) => form.checkVisibility()).length")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(shown["keys"]) == len(lines(context, "claims")) and forms == 0


def test_paper_has_what_is_folded_and_no_filters(context, browser):
    browser.open(context.results / "report.html")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.evaluate(FRAME)
        seen = browser.evaluate(
            "Object.fromEntries(['#claims dl', '#runs-60m td', 'nav', '.filters'].map((selector) =>"
            " [selector, [...document.querySelectorAll(selector)].every((e) => e.checkVisibility())]))"
        )
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    assert seen == {"#claims dl": True, "#runs-60m td": True, "nav": False, ".filters": False}
    assert browser.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_page_in_either_scheme(context, browser, scheme):
    """WCAG's contrast of at least 4.5 for every colour of text."""
    browser.open(context.results / "report.html")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        colours = browser.evaluate(
            "[document.body, ...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && [...e.childNodes]"
            ".some((n) => n.nodeType === 3 && n.data.trim())).map((e) => getComputedStyle(e).color)"
        )
        paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])
    assert len(set(colours)) >= 4
    for colour in set(colours):
        lighter, darker = sorted((luminance(colour), luminance(paper)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, colour


def luminance(colour):
    """Relative luminance of "rgb(r, g, b)"."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
