"""CoLA: is a sentence acceptable English?"""

from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.articles import usable
from poet.finetuning.tasks.rewording import broken
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in


class Cola(GlueTask):
    name = "cola"
    label = "CoLA"
    metric = "matthews"
    class_names = ("unacceptable", "acceptable")
    columns = ("sentence",)
    tsv = Tsv("CoLA", (3,), 1)

    def offline(self, cache):
        """A sentence of an article as it stands (1), or with one mistake (0), half of each.

        The mistakes (:func:`poet.finetuning.tasks.rewording.broken`): two words change places, a function word is lost, a verb
        takes the wrong number. Both classes use sentences in which all three mistakes are possible. A hash decides the class of a
        sentence, and no sentence is in both. The real set has 70% acceptable sentences.
        """
        return stand_in(self, "sentences as they stand or with one mistake of grammar", cache, _examples)


def _examples(articles, split):
    found = []
    for article in articles:
        taken = ((s, broken(s)) for paragraph in article.paragraphs for s in paragraph if usable(s))
        pairs = [pair for pair in taken if pair[1]][: PER_ARTICLE[split]]
        found += [Example(((good, bad)[number],), 1 - number) for good, bad in pairs for number in [draw(2, "cola", good)]]
    return balanced(found, 2, MOST[split])


TASK = Cola()
