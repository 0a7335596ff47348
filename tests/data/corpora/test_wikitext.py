"""The cleaner: each kind of markup goes, the sentence around it stays."""

import io

import pytest

from poet.data.corpora.wikitext import articles, clean_page, clean_text, pages

LONG = "The quick brown fox jumps over the lazy dog. " * 8


def page(title: str, text: str) -> str:
    body = f'<text xml:space="preserve">{text}</text>'
    return f"<page>\n<title>{title}</title>\n<revision>{body}</revision>\n</page>\n"


@pytest.mark.parametrize(
    ("wikitext", "prose"),
    [
        ("A {{box|x={{inner|{{deep}}}}|y=1}}cat sat.", "A cat sat."),
        ("A {{a|b={c}}}cat sat.", "A cat sat."),
        ("A cat.\n{| class=x\n| cell {| inner\n|}\n|}\nIt sat.", "A cat.\nIt sat."),
        ("A cat.\n{| never closed\n|-\n| cell\nIt sat.", "A cat.\nIt sat."),
        ("A cat<ref name=x>Book, <i>p. 1</i></ref> sat<ref name=x/> here.", "A cat sat here."),
        ("A <!-- not\nthis -->cat.", "A cat."),
        ("The [[cat (animal)|tom cat]]s [[sit]].", "The tom cats sit."),
        ("A cat. [[Image:Cat.jpg|thumb|A [[cat]] in a [[box|crate]]]]It sat.", "A cat. It sat."),
        ("A cat.\n[[Category:Cats]]\n[[de:Katze]]\n[[zh-min-nan:Niau]]", "A cat."),
        ("See [http://example.org/x the cat page] and [http://example.org].", "See the cat page and."),
        ("A '''bold''' and ''slanted'' '''''cat'''''.", "A bold and slanted cat."),
        (
            "== Cats ==\nThey sit.\n== Empty ==\n== External links ==\n* [http://x.org Cats].",
            "Cats\nThey sit.",
        ),
        ("== References ==\nA book.\n=== More ===\nAnother.\n== Diet ==\nFish.", "Diet\nFish."),
        ("* One cat sat.\n** Two cats sat.\n* Tom, 1940\n:A cat", "One cat sat.\nTwo cats sat.\nA cat"),
        ("Cats&nbsp;sit &mdash; often<br/>They <sub>do</sub>.", "Cats sit — often\nThey do."),
        ("Cat ({{IPA|kat}}; {{lang|x}}) sat.", "Cat sat."),
        ("The area <math>x^2</math> is known.", "The area is known."),
    ],
)
def test_markup_is_removed(wikitext, prose):
    assert clean_text(wikitext) == prose


def test_entities_are_escaped_twice_in_a_dump():
    found = clean_page(
        page("Q &amp; A", f"Salt &amp;amp; pepper, &quot;x&quot; &amp;ndash; y&lt;br&gt;{LONG}")
    )
    assert found[0] == "Q & A"
    assert found[1].startswith('Salt & pepper, "x" – y\nThe quick')


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Cat", "#REDIRECT [[Felis]] " + LONG),
        ("Cat", "#redirect [[Felis]] " + LONG),
        ("Talk:Cat", LONG),
        ("Wikipedia:Cats", LONG),
        ("User talk:Cat", LONG),
        ("Cat", "Too short."),
    ],
)
def test_what_is_no_article_is_skipped(title, text):
    assert clean_page(page(title, text)) is None


def test_a_colon_in_a_title_is_no_namespace():
    assert clean_page(page("Cats: A History", LONG)) is not None


@pytest.mark.parametrize("processes", [1, 2])
def test_articles_keep_the_order_of_the_dump_and_leave_out_a_cut_page(processes):
    dump = (
        "<mediawiki>" + "".join(page(f"A{i}", f"Number{i} " + LONG) for i in range(200)) + "<page><title>Cut"
    )
    found = list(articles(io.BytesIO(dump.encode()), processes))
    assert [title for title, _ in found] == [f"A{i}" for i in range(200)]


def test_pages_do_not_depend_on_the_chunks_read():
    dump = "".join(page(f"Ä{i}", LONG) for i in range(5)).encode()
    assert list(pages(io.BytesIO(dump), 7)) == list(pages(io.BytesIO(dump)))
