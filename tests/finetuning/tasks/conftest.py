"""A small corpus in the cleaned layout, small packages, and files in the layout of the real sets."""

import gzip
import hashlib
import io
import json
import tarfile

import pytest

from poet.data.corpora.enwik8 import MD5, is_validation
from poet.data.corpora.wikitext import CLEANER_VERSION
from poet.finetuning.tasks.glue import sst2, stsb
from poet.finetuning.tasks.packages import Package
from poet.finetuning.tasks.summaries import xsum

#: Each has a mark of its article and paragraph, words to reverse and to reword, a clause to cut off, and every kind of mistake to make.
SENTENCES = (
    "The northern gate of {mark} was built in {year} by the first mayor, who lived within the walls.",
    "A large market in {mark} began before the war, although the older roads of the area were closed.",
    "The people of {mark} are often found in the upper town, which has {year} houses and many inns.",
    "In winter the lake near {mark} is almost always cold and the boats of the village have to wait, because the wind is strong.",
)


def paragraph(mark: str, turn: int) -> str:
    """Four sentences that no other article or paragraph has."""
    return " ".join(s.format(mark=mark, year=1100 + 7 * turn + n) for n, s in enumerate(SENTENCES))


@pytest.fixture(scope="session")
def titles():
    """Train titles and held-out ones, by the corpus's own rule."""
    names = [f"Town{number}" for number in range(1500)]
    return {"train": [n for n in names if not is_validation(n)][:90], "validation": [n for n in names if is_validation(n)][:24]}


@pytest.fixture(scope="session")
def write_corpus(titles):
    """`write_corpus(cache)` writes the articles as the corpus keeps them."""

    def write(cache):
        cache.mkdir(parents=True, exist_ok=True)
        names = sorted(titles["train"] + titles["validation"], key=lambda name: hashlib.sha256(name.encode()).digest())
        with gzip.open(cache / f"enwik8-articles-{MD5[:8]}-v{CLEANER_VERSION}.jsonl.gz", "wt", encoding="utf-8") as file:
            for name in names:
                lead = f"{name} is a small town in the north of the country with a long history. It was named after the river."
                lines = [lead, "History", *(paragraph(f"{name}P{turn}", turn) for turn in range(5)), "a list entry"]
                file.write(json.dumps([name, "\n".join(lines)]) + "\n")
        return cache

    return write


@pytest.fixture(scope="session")
def corpus(write_corpus, tmp_path_factory):
    """A cache that holds the corpus."""
    return write_corpus(tmp_path_factory.mktemp("cache"))


def stsb_lines(numbers: range) -> str:
    rows = (f"main\tnews\t2012\t{n:04d}\t{n % 6}.000\tA \"dog {n} runs.\tA cat {n} sits." + "\thttp\tx" * (n % 2) for n in numbers)
    return "".join(row + "\n" for row in rows)


def reviews() -> bytes:
    """Snippets with mean ratings from -2 to 2, and a few near 0."""
    means = [(number % 9 - 4) / 2 * 0.99 for number in range(2700)]
    text = "".join(f"{number}\t{mean}\tfilm {number} was seen\r\n" for number, mean in enumerate(means))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def pairs() -> str:
    return "".join(json.dumps({"id": n, "document": f"Document {n}.\nMore.", "summary": f"Summary {n}."}) + "\n" for n in range(250))


@pytest.fixture
def offline(corpus, monkeypatch):
    """The cache, with small files in the place of those that packages carry."""
    contents = {
        stsb: {"sts-train.csv": stsb_lines(range(40)).encode(), "sts-dev.csv": stsb_lines(range(40, 60)).encode()},
        sst2: {"hutto_ICWSM_2014.tar.gz": reviews()},
        xsum: {"test.jsonl": pairs().encode()},
    }
    for module, files in contents.items():
        real = module.PACKAGE
        checksums = {}
        for path in real.files:
            content = files[path.rpartition("/")[2]]
            checksums[path] = hashlib.sha256(content).hexdigest()
            target = corpus / "packages" / real.requirement / path.rpartition("/")[2]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        monkeypatch.setattr(module, "PACKAGE", Package(real.requirement, real.archive, checksums))
    return corpus
