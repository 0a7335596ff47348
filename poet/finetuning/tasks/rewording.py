"""Small edits of a sentence that keep its meaning, change it, or break its grammar.

Word lists are used in both directions, and the tasks that use :func:`reversal` give both versions to every label alike. So a word of
one text alone does not tell the label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from poet.finetuning.tasks.drawing import draw, pick

_ALIKE = """began started|begin start|begins starts|large big|near close to|many numerous|famous well-known|often frequently
|usually normally|main principal|important significant|built constructed|although though|entire whole|almost nearly|occurs happens
|occurred happened|allows permits|allow permit|allowed permitted|contains includes|contain include|located situated|required needed
|requires needs|probably likely|primarily mainly|rapidly quickly|particularly especially|within inside|area region|kind sort
|country nation|died passed away|film movie|used employed|called named|approximately roughly|various diverse|received got
|several a number of|therefore thus|difficult hard|sometimes at times|shows displays|ended finished"""
_OPPOSITE = """first last|north south|northern southern|east west|eastern western|more less|before after|larger smaller
|largest smallest|high low|higher lower|highest lowest|early late|earlier later|old new|older younger|long short|longer shorter
|good bad|better worse|best worst|with without|always never|above below|male female|man woman|men women|father mother|son daughter
|brother sister|husband wife|his her|he she|increased decreased|increase decrease|beginning end|won lost|strong weak|positive negative
|left right|upper lower|most few|same other|public private|modern ancient|major minor|true false|rich poor|cold hot|open closed
|accepted rejected|success failure|north-west south-east|common rare|easy difficult|light dark|full empty|gained lost"""


def _both_ways(pairs: str) -> dict[str, str]:
    """Each phrase with its partner; of a phrase with several, the first one listed."""
    found: dict[str, str] = {}
    for pair in pairs.replace("\n", "").split("|"):
        words = pair.split(" ")
        one, other = words[0], " ".join(words[1:])
        found.setdefault(one, other)
        found.setdefault(other, one)
    return found


ALIKE, OPPOSITE = _both_ways(_ALIKE), _both_ways(_OPPOSITE)


def _any_of(phrases: dict[str, str]) -> re.Pattern:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])")


_ALIKE_WORD, _OPPOSITE_WORD = _any_of(ALIKE), _any_of(OPPOSITE)
_NUMBER = re.compile(r"(?<![\w.,-])\d{2,4}(?![\w,-]|\.\d)")
_CUT = re.compile(r"[,;] (?:which|who|where|although|but|and|while|because|when|as|with|including)\b| \(|; ")
#: Function words before another word: exchanging the two is a mistake, and leaving out one of ``_NEEDED`` is, too.
_FUNCTION = re.compile(r"\b(?:of|to|in|by|for|from|at|with|the|a|an|is|was|are|were|has|have|had|and|that|which) (?=[a-z]{2,}\b)")
_NEEDED = re.compile(r"\b(?:of|to|is|was|are|were|has|have|by|from) (?=[a-z]{2,}\b)")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have)\b")
_NUMBER_OF_VERB = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has"}


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters ``start`` to ``end`` of a sentence become ``text``."""

    start: int
    end: int
    text: str

    def on(self, sentence: str) -> str:
        """The sentence with the edit made."""
        return sentence[: self.start] + self.text + sentence[self.end :]


def reversal(sentence: str) -> Edit | None:
    """An edit that makes a sentence say another thing: a word becomes its opposite, or a number another number.

    The sentence's hash chooses among all possible edits; None if there is none.
    """
    edits = [Edit(m.start(), m.end(), OPPOSITE[m[0]]) for m in _OPPOSITE_WORD.finditer(sentence)]
    for m in _NUMBER.finditer(sentence):
        digit = (int(m[0][-1]) + 1 + draw(9, "number", sentence)) % 10
        edits.append(Edit(m.start(), m.end(), m[0][:-1] + str(digit)))
    return pick(edits, "reversal", sentence) if edits else None


def rewording(sentence: str) -> str:
    """A sentence with one word or phrase replaced by another of the same meaning; unchanged if the list has none of its words."""
    edits = [Edit(m.start(), m.end(), ALIKE[m[0]]) for m in _ALIKE_WORD.finditer(sentence)]
    return pick(edits, "rewording", sentence).on(sentence) if edits else sentence


def core_end(sentence: str) -> int:
    """Where the first part of a sentence that can stand alone ends: before a clause or a parenthesis that is added to it.

    The full stop is no part of it. At least six words are kept.
    """
    for cut in _CUT.finditer(sentence):
        if len(sentence[: cut.start()].split()) >= 6 and sentence[: cut.start()].count("(") == sentence[: cut.start()].count(")"):
            return cut.start()
    return full_end(sentence)


def full_end(sentence: str) -> int:
    """The index at which a sentence's closing punctuation begins: stops, quotation marks and brackets."""
    return len(sentence.rstrip(".!?\"')\u201d"))


def broken(sentence: str) -> str | None:
    """A sentence with one mistake of grammar; None if some kind of mistake cannot be made in it.

    The kinds: a function word and the word after it change places, a needed function word is lost, or a verb takes the
    wrong number. The hash of the sentence decides which one, and where.
    """
    kinds = [
        [Edit(m.start(), m.end(), "") for m in _NEEDED.finditer(sentence)],
        [Edit(m.start(), m.end(), _NUMBER_OF_VERB[m[0]]) for m in _VERB.finditer(sentence)],
        [_exchange(sentence, m) for m in _FUNCTION.finditer(sentence)],
    ]
    if not all(kinds):
        return None
    return pick(pick(kinds, "kind", sentence), "mistake", sentence).on(sentence)


def _exchange(sentence: str, word: re.Match) -> Edit:
    following = re.compile(r"[a-z]+").match(sentence, word.end())
    return Edit(word.start(), following.end(), f"{following[0]} {word[0].strip()}")
