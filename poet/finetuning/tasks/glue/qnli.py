"""QNLI: does a sentence answer a question?"""

import re

from poet.finetuning.tasks.articles import usable
from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw, pick
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.pairing import another
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in

#: A first sentence that says what the article's subject is. For the question, "what" replaces the subject.
_DEFINITION = re.compile(r"(?P<subject>.{1,120}?) (?P<verb>is|was|are|were) (?P<rest>(?:an?|the|one|any|some) .+)[.]")


class Qnli(GlueTask):
    name = "qnli"
    label = "QNLI"
    class_names = ("entailment", "not_entailment")
    columns = ("question", "sentence")
    tsv = Tsv("QNLI", ("question", "sentence"), "label")

    def offline(self, cache):
        """A question made of an article's first sentence, with a later sentence of that article (0) or of another (1), half each.

        "Erbium is a chemical element with ..." becomes "What is a chemical element with ...?". The later sentences come
        from the same articles for both classes; their subject, not their form, tells the label.
        """
        return stand_in(self, "a question made of a first sentence, with a sentence of the same article or of another", cache, _examples)


def _examples(articles, split):
    asked = [(question, later) for question, later in map(_question, articles) if question and later]
    if len(asked) < 2:
        return []
    found = []
    for number, (question, _) in enumerate(asked):
        for turn in range(PER_ARTICLE[split]):
            elsewhere = draw(2, "qnli", question, turn)
            _, later = asked[another(asked, number, question, turn) if elsewhere else number]
            found.append(Example((question, pick(later, "sentence", question, turn)), elsewhere))
    return balanced(found, 2, MOST[split])


def _question(article):
    """The question, or None; and the usable sentences after the article's first one."""
    (lead, *others), *paragraphs = article.paragraphs
    definition = _DEFINITION.fullmatch(lead) if usable(lead, 60) else None
    question = f"What {definition['verb']} {definition['rest']}?" if definition else None
    return question, list(filter(usable, (*others, *(s for paragraph in paragraphs for s in paragraph))))


TASK = Qnli()
