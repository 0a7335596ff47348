"""ROUGE of summaries by ``rouge-score``, with both metrics that are called ROUGE-L, and the lead-sentence baseline.

ROUGE-L is the longest common subsequence of two whole texts. ROUGE-Lsum is the union of the longest common subsequences of
their sentences, so the order of sentences does not count: on one sentence the two are equal, on several ROUGE-Lsum is near
ROUGE-1. Texts are lower-cased and stemmed (Porter), and every character but the letters a to z and digits separates words, as in
the original script with ``-m``.
"""

import re
from collections.abc import Sequence

METRICS = ("rouge1", "rouge2", "rougeL", "rougeLsum")

# A sentence ends at ., ! or ? before white space, with the quotation marks and brackets that close there.
_END = re.compile("(?<=[.!?])([\"')\\]\u2019\u201d]*)\\s+")


def sentences(text: str) -> list[str]:
    """Split a text after ``.``, ``!`` or ``?`` before white space, and at line breaks.

    The rule knows no abbreviations: "Mr. Smith" is split. Summaries and references are split alike.
    """
    return [line.strip() for line in _END.sub("\\1\n", text).split("\n") if line.strip()]


def lead(document: str, count: int = 1) -> str:
    """The first ``count`` sentences of a document: the baseline that needs no model.

    Raises:
        ValueError: ``count`` is below 1.
    """
    if count < 1:
        raise ValueError(f"the lead of a document has 1 sentence or more, not {count}")
    return " ".join(sentences(document)[:count])


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Mean F-measures in percent, by the names in :data:`METRICS`. A prediction without words scores 0.

    Raises:
        ValueError: there are no predictions, or not one for each reference.
    """
    if not predictions or len(predictions) != len(references):
        raise ValueError(f"ROUGE needs one prediction for each reference, got {len(predictions)} for {len(references)}")
    from rouge_score.rouge_scorer import RougeScorer  # here, because it imports nltk, which takes half a second

    scorer = RougeScorer(METRICS, use_stemmer=True)  # for rougeLsum, each line is a sentence
    scores = [scorer.score("\n".join(sentences(reference)), "\n".join(sentences(prediction)))
              for prediction, reference in zip(predictions, references, strict=True)]
    return {metric: 100 * sum(score[metric].fmeasure for score in scores) / len(scores) for metric in METRICS}
