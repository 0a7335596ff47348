"""RTE: does the first text entail the second?"""

from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.pairing import statement_pairs
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in


class Rte(GlueTask):
    name = "rte"
    label = "RTE"
    class_names = ("entailment", "not_entailment")
    columns = ("sentence1", "sentence2")
    tsv = Tsv("RTE", ("sentence1", "sentence2"), "label")

    def offline(self, cache):
        """A sentence and its own first clause (0), or a clause that it does not entail (1), half of each.

        Half of the clauses of class 1 are its own with one word replaced by its opposite, or one number by another. The other half
        are the first clause of another sentence of the same article. A hash decides whether a text starts from the written or from
        the reversed version, alike in both classes.
        """
        return stand_in(self, "a sentence with its own first clause, this reversed, or another sentence's", cache, _examples)


def _examples(articles, split):
    found = []
    for article in articles:
        for sentence, neighbour in statement_pairs(article, PER_ARTICLE[split], lambda statement: statement.is_longer):
            kind, version = draw(4, "rte", sentence.text), bool(draw(2, "version", sentence.text))
            if kind < 2:
                clause = sentence.short(version)
            elif kind == 2:
                clause = sentence.short(not version)
            else:
                clause = neighbour.short(bool(draw(2, "version", neighbour.text)))
            found.append(Example((sentence.whole(version), clause), int(kind >= 2)))
    return balanced(found, 2, MOST[split])


TASK = Rte()
