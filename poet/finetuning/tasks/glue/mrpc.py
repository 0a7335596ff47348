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

        Half of the second texts of class 0 are a reworded copy with one word replaced by its opposite, or one number by another. The
        other half are another sentence of the same article, reworded too. So the number of shared words gives three quarters of the
        labels, not all. A hash decides whether the first text is the reversed version; so reversed sentences are in both texts of
        both classes alike. The real set has 68% equivalent pairs.
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
    """Whether rewording changes both versions of the sentence; otherwise the copy would be identical."""
    return all(rewording(text) != text for text in map(statement.whole, (False, True)))


TASK = Mrpc()
