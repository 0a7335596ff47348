"""CNN/DailyMail: the highlights of a news article."""

import itertools

from poet.finetuning.tasks.articles import usable
from poet.finetuning.tasks.contract import Example, Task
from poet.finetuning.tasks.layouts import ordered
from poet.finetuning.tasks.standins import MOST, stand_in

#: Fewest and most words of a document: a shorter one has too little to summarize, and no model here reads further.
FEWEST, MOST_WORDS = 100, 800
#: Most words of a sentence of the summary: encyclopedias begin with long ones.
LONGEST_LEAD = 60


class CnnDailymail(Task):
    name = "cnn_dailymail"
    label = "CNN/DailyMail"
    metric = "rouge"
    classes = 0
    columns = ("article",)
    target = "highlights"
    repository = "abisee/cnn_dailymail"
    configuration = "3.0.0"

    def offline(self, cache):
        """The first two sentences of an article, a line each as highlights are, as the summary of what follows them.

        Where the first paragraph has one sentence, or its second is damaged, the summary is the first sentence alone.

        An encyclopedia's first sentences say what its article is about. The document is the text after them, up to 800 words; it has
        at least 100. Unlike in news, copying the beginning of the document does not give the summary.
        """
        rule = "the first one or two sentences of an article, from what follows them"
        return stand_in(self, rule, cache, _pairs, train_articles=None)


def _pairs(articles, split):
    return ordered(filter(None, map(_pair, articles)), MOST[split])


def _pair(article):
    first, *others = article.paragraphs
    lead = tuple(itertools.takewhile(lambda sentence: usable(sentence, LONGEST_LEAD), first[:2]))
    rest = (" ".join(first[len(lead) :]), *(" ".join(paragraph) for paragraph in others))
    words = sum(len(paragraph.split()) for paragraph in rest)
    if not lead or words < FEWEST:
        return None
    kept, count = [], 0
    for paragraph in filter(None, rest):
        kept.append(" ".join(paragraph.split()[: MOST_WORDS - count]))
        count += len(paragraph.split())
        if count >= MOST_WORDS:
            break
    return Example(("\n".join(kept),), "\n".join(lead))


TASK = CnnDailymail()
