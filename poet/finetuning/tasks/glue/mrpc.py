"""MRPC: do two sentences say the same?"""

from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.pairing import statement_pairs
from poet.finetuning.tasks.rewording import rewording
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in


class Mrpc(GlueTask):
    name = "mrpc"
    label = "MRPC"
    class_names = ("not_equivalent", "equivalent")
    columns = ("sentence1", "sentence2")
    tsv = Tsv("MRPC", ("#1 String", "#2 String"), "Quality")

    def offline(self, cache):
        """A sentence and a reworded copy of it (1), or a sentence that says another thing (0), half of each.

        Of those that say another thing half are a reworded copy in which one word became its opposite or one number another,
        and half another sentence of the same article: how many words the two share tells three quarters of the labels, not
        all. A hash decides whether the reversed version is used in the first text; so a reversed sentence stands in either
        text of either class alike. The real set has 68% equivalent pairs.
        """
        return stand_in(self, "a sentence with a reworded copy, a reversed copy or another sentence", cache, _examples)


def _examples(articles, split):
    found = []
    for article in articles:
        for sentence, neighbour in statement_pairs(article, PER_ARTICLE[split], _can_be_reworded):
            kind, version = draw(4, "mrpc", sentence.text), bool(draw(2, "version", sentence.text))
            if kind < 2:
                second = sentence.whole(version)
            elif kind == 2:
                second = sentence.whole(not version)
            else:
                second = neighbour.whole(bool(draw(2, "version", neighbour.text)))
            found.append(Example((sentence.whole(version), rewording(second)), int(kind < 2)))
    return balanced(found, 2, MOST[split])


def _can_be_reworded(statement):
    """Else the copy would be the same, to the letter."""
    return all(rewording(text) != text for text in map(statement.whole, (False, True)))


TASK = Mrpc()
