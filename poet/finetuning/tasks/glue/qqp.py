"""QQP: do two questions ask the same?"""

from poet.finetuning.tasks.articles import usable
from poet.finetuning.tasks.contract import Example, Tsv
from poet.finetuning.tasks.drawing import balanced, draw, pick
from poet.finetuning.tasks.glue.benchmark import GlueTask
from poet.finetuning.tasks.pairing import another
from poet.finetuning.tasks.standins import MOST, PER_ARTICLE, stand_in


class Qqp(GlueTask):
    name = "qqp"
    label = "QQP"
    class_names = ("not_duplicate", "duplicate")
    columns = ("question1", "question2")
    tsv = Tsv("QQP", ("question1", "question2"), "is_duplicate")

    def offline(self, cache):
        """Two sentences of one paragraph (1), or of two (0), half of each.

        Of class 0, half are from two paragraphs of one article and half from two articles: so the subject alone gives three
        quarters of the labels, not all. Each sentence is drawn from all usable sentences of its paragraph. The texts are not
        questions; as in the real task, the label says whether two texts belong together. The real set has 37% duplicates.
        """
        return stand_in(self, "two sentences of the same paragraph or of different ones", cache, _examples)


def _examples(articles, split):
    groups = [_paragraphs(article) for article in articles]
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2:
        return []
    found = []
    for number, group in enumerate(groups):
        for index, paragraph in enumerate(group[: PER_ARTICLE[split]]):
            first = draw(len(paragraph), "first", paragraph[0])
            kind = draw(4, "qqp", paragraph[0])
            if kind < 2:
                second = paragraph[another(paragraph, first, paragraph[0])]
            elif kind == 2:
                second = pick(group[another(group, index, paragraph[0])], "second", paragraph[0])
            else:
                other = groups[another(groups, number, paragraph[0])]
                second = pick(pick(other, "paragraph", paragraph[0]), "second", paragraph[0])
            found.append(Example((paragraph[first], second), int(kind < 2)))
    return balanced(found, 2, MOST[split])


def _paragraphs(article):
    """Paragraphs with two usable sentences or more, no sentence twice."""
    usables = (tuple(dict.fromkeys(filter(usable, paragraph))) for paragraph in article.paragraphs)
    return [paragraph for paragraph in dict.fromkeys(usables) if len(paragraph) > 1]


TASK = Qqp()
