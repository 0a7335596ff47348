"""The report in headless Chromium: nothing complains, nothing is missing, links open what is folded, and a phone is wide enough.

One browser for all tests. Where none is installed they are skipped: the page's text is tested without one.
"""

import re

import pytest

from analyses.report.cards import SEPARATE
from analyses.report.sources import on_the_page
from suite.check.tables import read
from suite.context import Context
from suite.discovery import find
from suite.scale import load_scale
from tests.analyses.report.browser import Browser, find_chromium
from tests.analyses.report.small_results import write_results

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install chromium or google-chrome to test the report in it")
PHONE, PHONE_HEIGHT = 390, 844
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
    titles = {f"{a.label} {a.caption.partition('. ')[0].removesuffix('.')}" for name, a in artifacts.items() if name not in SEPARATE}
    assert titles <= set(headings)
    assert browser.evaluate("[...document.querySelectorAll('.entries [data-claim], .result li')].filter((e) => e.checkVisibility()).length") < 10


def test_the_first_screen_of_a_phone_has_all_that_was_found(context, browser):
    browser.open(context.results / "report.html", width=PHONE, height=PHONE_HEIGHT)
    found = browser.evaluate("[...document.querySelectorAll('.findings li')].map((e) => e.getBoundingClientRect().bottom)")
    assert len(found) >= 4 and max(found) < PHONE_HEIGHT
    assert float(browser.evaluate("parseFloat(getComputedStyle(document.querySelector('.findings li')).fontSize)")) >= 16


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_nothing_is_cut_off_and_what_scrolls_shows_it(context, browser, width):
    """Opened details and all: a box either holds what is in it, or scrolls, with a shadow where there is more."""
    browser.open(context.results / "report.html", width=width)
    browser.evaluate("for (const e of document.querySelectorAll('details')) e.open = true")
    browser.evaluate(FRAME)
    cut = browser.evaluate(
        "[...document.querySelectorAll('body *:not(svg *)')].filter((e) => e.checkVisibility() && !e.matches('.scroll') && e.clientWidth"
        " && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible').map((e) => e.outerHTML.slice(0, 80))"
    )
    beyond = browser.evaluate(
        "[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .skip')"
        f" && e.getBoundingClientRect().right > {width + 1}).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert cut == [] and beyond == []
    boxes = browser.evaluate("[...document.querySelectorAll('.scroll')].map((e) => [getComputedStyle(e).backgroundImage, e.tabIndex])")
    assert len(boxes) > 30 and all(image.count("linear-gradient") == 4 and index == 0 for image, index in boxes)
    wide = browser.evaluate("[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length")
    assert wide or width > PHONE


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("</main>", "<script>document.title = 1</script></main>", "the console says: .*Content Security Policy"),
        ("</main>", '<img src="figure1.png" alt="gone"></main>', "does not show the picture: gone"),
        ("</main>", '<img src="https://example.org/a.png" alt="far"></main>', "the console says: .*https://example.org/a.png"),
        ("</main>", '<p style="width: 700px">wide</p></main>', "reaches beyond the window: <p style"),
        ("</main>", '<div style="margin-left: 300px; white-space: nowrap">long and in one line</div></main>', "beyond|sideways"),
    ],
)
def test_a_fault_of_the_page_is_seen(altered, browser, old, new, fault):
    assert any(re.search(fault, found) for found in faults(browser, altered(old, new), PHONE))


def test_a_link_to_what_is_folded_opens_it(context, browser):
    """Without a script, which the page has not: Chromium follows the HTML standard."""
    key, wrong = read(context.results / "claims.csv")[20]["claim"], read(context.results / "errata.csv")[1]["id"]
    for anchor in (f"claim-{key}", f"erratum-{wrong}", "from-table2", "runs-60m"):
        browser.open(context.results / "report.html", f"#{anchor}")
        assert browser.evaluate(f"document.getElementById('{anchor}').checkVisibility()"), anchor


def test_paper_has_what_is_folded(context, browser):
    browser.open(context.results / "report.html")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.evaluate(FRAME)
        seen = browser.evaluate(
            "Object.fromEntries(['.entries dl', '#provenance td', 'nav'].map((selector) =>"
            " [selector, [...document.querySelectorAll(selector)].every((e) => e.checkVisibility())]))"
        )
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    assert seen == {".entries dl": True, "#provenance td": True, "nav": False}
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
