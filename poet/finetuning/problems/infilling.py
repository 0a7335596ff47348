"""Text infilling, by which BART is pretrained (arXiv 1910.13461, Section 2.2).

Spans with lengths from Poisson(3), together 30% of a text's tokens, are each replaced by one mask token; for a span of no tokens, a
mask token is inserted. The decoder writes the whole text. BART's other noise, shuffled sentences, is left out, because sentences are
not marked in these texts.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from poet.data.rows import TokenRows, read_meta
from poet.data.tokenizer import load_prepared
from poet.finetuning.problems.bart import build_bart, in_batches, mean_loss, seq2seq_batch, weights_digest
from poet.finetuning.problems.contract import Problem
from poet.training.errors import RunError
from poet.training.seeds import derive

SHARE = 0.3
MEAN_SPAN = 3.0


def infill(text: np.ndarray, mask: int, rng: np.random.Generator) -> np.ndarray:
    """A text in which mask tokens replace some spans.

    Args:
        text: tokens, int64 (length,).
        mask: the mask token.
        rng: draws lengths and places.
    """
    left, spans = round(SHARE * len(text)), []
    while left:
        spans.append(min(int(rng.poisson(MEAN_SPAN)), left))
        left -= spans[-1]
    # A sequence of units, each a kept token (-1) or a span (its length). Which units are spans is drawn without replacement.
    kept = len(text) - sum(spans)
    lengths = np.full(kept + len(spans), -1)
    lengths[rng.choice(len(lengths), len(spans), replace=False)] = spans
    found, place = [], 0
    for length in lengths:
        found.append(text[place] if length < 0 else mask)
        place += 1 if length < 0 else length
    return np.array(found, dtype=np.int64)


class Texts:
    """Neighbouring rows of a split, joined to texts that end in the end token.

    Args:
        rows: folder of the tokenized rows.
        split: "train" or "validation".
        length: tokens of a text, the end token included; where rows are padded, texts are shorter.
        most: the largest number of texts; 0: all.
    """

    def __init__(self, rows: Path, split: str, length: int, most: int) -> None:
        self.rows = TokenRows(rows, split)
        self.sha256, self.length = self.rows.meta["splits"][split]["sha256"], length
        self.joined = math.ceil((length - 1) / self.rows.sequence_length)
        self.count = min(len(self.rows) // self.joined, most or len(self.rows))
        if not self.count:
            raise RunError(f"{rows} has too few rows ({len(self.rows)}) for one text of {length} tokens: prepare more, or take a smaller sequence_length")
        self.end = self.rows.meta["tokenizer"]["eos_id"]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> np.ndarray:
        tokens = self.rows.read(np.arange(index * self.joined, (index + 1) * self.joined)).reshape(-1)
        tokens = tokens[tokens != self.rows.pad_id][: self.length - 1]
        return np.append(tokens, self.end).astype(np.int64)


class Infilling(Problem):
    def __init__(self, spec, weights, data, rows):
        self.seed = spec.seed
        self.train, self.validation = (Texts(rows, split, spec.sequence_length, spec.data[split]) for split in ("train", "validation"))
        tokenizer = load_prepared(rows, read_meta(rows))
        self.pad, self.mask = tokenizer.pad_id, tokenizer.vocab_size
        self.model = build_bart(spec.architecture, tokenizer, spec.sequence_length, derive("initialization", spec.seed))

    def inputs(self, indices, step):
        return self._noised(self.train, indices, "infilling", self.seed, step)

    def _noised(self, texts, indices, *axes):
        """A batch with noise that is a function of the axes; the end token stays."""
        rng, targets = np.random.default_rng(derive(*axes)), [texts[index] for index in indices]
        sources = [np.append(infill(text[:-1], self.mask, rng), text[-1]) for text in targets]
        return seq2seq_batch(sources, targets, self.pad)

    def evaluate(self, forward):
        """The loss on the validation texts, whose noise is always the same."""
        return mean_loss(forward, (self._noised(self.validation, part, "infilling validation", part.start) for part in in_batches(len(self.validation))))

    def finish(self, model, method, folder, check, diverged):
        """Save the weights in the Hugging Face format, and return their digest."""
        if diverged:
            return {"weights_sha256": None}
        try:
            model.save_pretrained(folder / "weights")
        except OSError as error:
            raise RunError(f"cannot write {folder / 'weights'} ({error.strerror}): free some space and run again") from None
        return {"weights_sha256": weights_digest(model)}


PROBLEM = Infilling
