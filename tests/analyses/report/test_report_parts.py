"""Numbers, regions, comparisons and intervals of the report."""

import itertools
import math
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from analyses.report.interval import MARGIN, WIDTH, interval_drawing
from analyses.report.markup import to_html
from analyses.report.numbers import between, comparison, number
from analyses.report.opening import findings
from analyses.tables.table2.table2 import markdown
from suite.claim import NEGATIVE, POSITIVE, Evidence
from suite.judging import side_of

INFINITY = math.inf


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (133.98321, "134"),
        (26.68, "26.68"),
        (0.000123456, "0.000123"),
        (1234567.0, "1,234,567"),
        (12345.678, "12,346"),
        (-0.5, "-0.5"),
        (0.0, "0"),
        (5e-324, "0"),
        (math.nan, ""),
        (-INFINITY, "-∞"),
        ("", ""),
        ("2.50", "2.5"),
        ("POET FS", "POET FS"),
    ],
)
def test_numbers_have_four_digits(value, written):
    assert number(value) == written


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (NEGATIVE, "below 0"),
        (POSITIVE, "above 0"),
        ((-INFINITY, 0.0), "at most 0"),
        ((0.5, INFINITY), "at least 0.5"),
        ((0.25, 0.35), "0.25 to 0.35"),
        ((1.0, 1.0), "exactly 1"),
        ((-INFINITY, INFINITY), "anything"),
    ],
)
def test_regions_in_words_keep_their_open_ends(region, words):
    assert between(*region) == words


def test_a_comparison_shows_printed_values_with_no_more_columns_than_tell_them_apart():
    shared = {"model": "60m", "measured": "2.0", "std": "", "unit": "perplexity", "published_low": "", "published_high": ""}
    lines = [
        {"model": "60m", "budget": budget, "h": h, "allocation": a, "published": p, **shared}
        for budget, h in (("small", "8"), ("large", "2"))
        for a, p in (("1:0", "36.5"), ("0:1", "35.25"), ("1:1", ""))
    ]
    found = comparison(lines)
    assert found["settings"] == ["budget", "allocation"] and found["about"] == "model 60m" and found["unit"] == "perplexity"
    assert [line[0] for line in found["lines"]] == [("small", "1:0"), ("small", "0:1"), ("large", "1:0"), ("large", "0:1")]
    assert found["lines"][1][1:] == ("35.25", "2", "", "perplexity") and not found["spread"]
    assert comparison([{"published": "", "measured": "1.0"}]) is None and comparison([{"measured": "1.0"}]) is None


def test_a_comparison_says_what_diverged_and_what_was_read_off():
    line = {"step": "600", "published": "0.63", "published_low": "0.6", "published_high": "0.66", "measured": "", "diverged": "1"}
    (found,) = comparison([line])["lines"]
    assert found[1:3] == ("0.63 (0.6 to 0.66)", "diverged")
    crossings = [{"step": "600", "published": "0.85", "measured": value, "crossed": crossed} for value, crossed in (("0.75", "yes"), ("", "no"), ("0.0", "below throughout"))]
    assert [line[2] for line in comparison(crossings)["lines"]] == ["0.75", "no crossing", "below throughout"]


def test_the_opening_counts_every_claim_of_perplexity_against_adamw():
    keys = (("table2", "table2-poet-fs-1_2-below-adamw-60m"), ("table3", "table3-poet-below-adamw"), ("figure9", "figure9-poet-below-adamw-2x"), ("figure7", "figure7-poet-below-adamw"))
    claims = [{"artifact": artifact, "key": key, "scope": "measured", "kind": "ordering", "result": "undecided"} for artifact, key in keys]
    context = SimpleNamespace(scale=SimpleNamespace(name="mini"))
    said = [sentence for sentence, *_ in findings(context, (), claims, ())]
    assert said[:2] == ["POET against AdamW: 3 undecided.", "The order of methods and settings: 4 undecided."]


def drawn(svg):
    """(region, line, dot) of a drawing, in pixels."""
    start, width = map(float, re.search(r'class="region" x="([\d.]+)" y="1" width="([\d.]+)"', svg).groups())
    begin, stop = map(float, re.search(r'class="line" d="M([\d.]+) [\d.]+H([\d.]+)"', svg).groups())
    return (start, start + width), (begin, stop), float(re.search(r'circle cx="([\d.]+)"', svg)[1])


def test_a_drawing_shows_the_verdict():
    regions = (NEGATIVE, POSITIVE, (-1.0, 1.0), (0.4, INFINITY), (2.0, 3.0))
    for case in itertools.product(regions, (-1.5, -0.2, 0.3, 2.5), (0.0, 0.1, 4.0)):
        region, centre, half = case
        low, high = centre - half, centre + half
        band, line, dot = drawn(interval_drawing(centre, low, high, region))
        inside = band[0] <= line[0] and line[1] <= band[1]
        apart = line[1] < band[0] or band[1] < line[0]
        shown = "inside" if inside else "outside" if apart else "neither"
        assert shown == side_of(Evidence(effect=centre, low=low, high=high, n=3), region), case
        assert line[0] <= dot <= line[1] and 0 <= band[0] < band[1] <= WIDTH, case
        assert math.isinf(region[0]) or band[0] > MARGIN, case  # the ends of the region are in the drawing
        assert math.isinf(region[1]) or band[1] < WIDTH - MARGIN, case


def test_an_endless_interval_has_arrows_and_nothing_is_drawn_of_nothing():
    endless = interval_drawing(0.5, -INFINITY, INFINITY, POSITIVE)
    assert endless.count("v8z") == 2 and drawn(endless)[1] == (2, WIDTH - 2)
    assert "v8z" not in interval_drawing(0.5, 0.2, 0.8, POSITIVE)
    assert interval_drawing(math.nan, math.nan, math.nan, POSITIVE) == ""


def test_every_mark_of_the_paper_s_layout_gets_its_word():
    cells = [("as published", -2.0, -1.0), ("opposite", 1.0, 2.0), ("opposite", -1.0, 2.0), ("", math.nan, math.nan)]
    shared = {"model": "60m", "published": 1.5, "measured": 2.0, "n": 2, "std": 0.1, "diverged": 0, "collapsed": 0}
    lines = [
        {"method": f"row {i}", **shared, "scale": "mini", "corpus": "text", "direction": direction, "difference_low": low, "difference_high": high,
         "counted_trainable": "1M"}
        for i, (direction, low, high) in enumerate(cells)
    ]
    page = to_html(markdown(pd.DataFrame(lines), "Fit. Nothing - at all +", ["A sentence -"]), "Table 2")
    words = re.findall(r'<span class="mark ([\w-]+)"><span aria-hidden="true">.</span> ([\w ]+)</span>', page)
    assert words == [("as-published", "as published"), ("opposite",) * 2]
    assert "<h1" not in page and page.count("<table>") == 1 and 'class="scroll" tabindex="0"' in page


def test_headings_of_an_artifact_s_parts_lie_below_the_card_s():
    assert to_html("# Table 4\n\n## Tuned alike\n\nText with h2> in it.\n", "Table 4") == "<h4>Tuned alike</h4>\n<p>Text with h2&gt; in it.</p>\n"
