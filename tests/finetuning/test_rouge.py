"""ROUGE against cases worked out by hand."""

import pytest

from poet.finetuning.rouge import lead, rouge, sentences


@pytest.mark.parametrize(
    ("prediction", "reference", "one", "two", "longest", "summary"),
    [
        # 5 of 6 words; of 5 pairs of words the ones with "sat" are missed
        ("The cat lay on the mat.", "The cat sat on the mat.", 5 / 6, 3 / 5, 5 / 6, 5 / 6),
        # Precision 1, recall 2/4; of pairs 1 and 1/3
        ("a b", "a b c d", 2 / 3, 1 / 2, 2 / 3, 2 / 3),
        # Sentences in another order: one pair of words is lost, and half of the subsequence, but none of a sentence
        ("Four five six. One two three.", "One two three. Four five six.", 1, 4 / 5, 1 / 2, 1),
        # Line breaks end sentences too
        ("four five six\none two three", "one two three\nfour five six", 1, 4 / 5, 1 / 2, 1),
        # A word that is said twice counts twice only if the reference has it twice: precision 1/2, recall 1
        ("a a", "a", 2 / 3, 0, 2 / 3, 2 / 3),
        # Stems
        ("dogs running", "dog runs", 1, 1, 1, 1),
        ("nothing alike", "some words", 0, 0, 0, 0),
        ("", "some words", 0, 0, 0, 0),
        (" ...", "some words", 0, 0, 0, 0),
    ],
)
def test_scores_by_hand(prediction, reference, one, two, longest, summary):
    expected = {"rouge1": 100 * one, "rouge2": 100 * two, "rougeL": 100 * longest, "rougeLsum": 100 * summary}
    assert rouge([prediction], [reference]) == pytest.approx(expected)


def test_the_score_of_a_set_is_the_mean_over_its_pairs():
    assert rouge(["a b", "x"], ["a b", "y"])["rouge1"] == pytest.approx(50)


@pytest.mark.parametrize(("predictions", "references"), [([], []), (["a"], ["a", "b"]), (["a", "b"], ["a"])])
def test_pairs_have_to_be_whole(predictions, references):
    with pytest.raises(ValueError, match="one prediction for each reference"):
        rouge(predictions, references)


def test_where_sentences_end():
    text = 'He said: "Go!" (Twice?) It is 3.5 km.\nAnd so on...  A last one without a stop'
    assert sentences(text) == ['He said: "Go!"', "(Twice?)", "It is 3.5 km.", "And so on...", "A last one without a stop"]
    assert sentences(" \n ") == []


def test_the_lead_is_the_first_sentences():
    document = "One. Two!  Three?\nFour."
    assert [lead(document, count) for count in (1, 3, 9)] == ["One.", "One. Two! Three?", "One. Two! Three? Four."]
    assert lead(document) == "One."
    with pytest.raises(ValueError, match="1 sentence or more"):
        lead(document, 0)
