"""MNLI: does the first text entail the second, leave it open, or contradict it?"""

from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.pairing import statement_pairs
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in


class Mnli(GlueTask):
    name = "mnli"
    label = "MNLI"
    classes = 3
    class_names = ("entailment", "neutral", "contradiction")
    columns = ("premise", "hypothesis")
    validation = "validation_matched"
    tsv = Tsv("MNLI", ("sentence1", "sentence2"), "gold_label", "dev_matched.tsv")

    def offline(self, cache):
        """A sentence with its own first clause (0), with that of another sentence of the article (1), or with its own reversed (2).

        The classes have a third each. Reversed means that one word is replaced by its opposite, or one number by another. A hash
        decides whether a text starts from the written or from the reversed version, alike in all classes: so a reversed word in one
        text alone does not tell the label. For the real set, the metric is measured on the matched validation split.
        """
        return stand_in(self, "a sentence with its own first clause, another sentence's, or its own reversed", cache, _examples)


def _examples(articles, split):
    found = []
    for article in articles:
        for sentence, neighbour in statement_pairs(article, PER_ARTICLE[split], lambda statement: statement.is_longer):
            kind, version = draw(3, "mnli", sentence.text), bool(draw(2, "version", sentence.text))
            neighbours = neighbour.short(bool(draw(2, "version", neighbour.text)))
            clause = (sentence.short(version), neighbours, sentence.short(not version))[kind]
            found.append(Example((sentence.whole(version), clause), kind))
    return balanced(found, 3, MOST[split])


TASK = Mnli()
