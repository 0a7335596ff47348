"""Summaries by BART: Table 12.

In training the decoder is given the reference up to each word (teacher forcing), and the loss is the plain cross entropy; BART's authors smooth
labels by 0.1. Each epoch ends with the loss on validation examples. ROUGE is measured once, at the end, on summaries from beam search.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from poet.data.tokenizer import Tokenizer
from poet.finetuning.examples import read_split
from poet.finetuning.problems.bart import in_batches, load_bart, mean_loss, seq2seq_batch, tokenizer_of
from poet.finetuning.problems.contract import Problem
from poet.finetuning.rouge import METRICS, lead, rouge
from poet.finetuning.spec import Decoding
from poet.system.files import write_text
from poet.system.progress import Progress
from poet.training.errors import RunError

#: Sentences of the baseline that copies a document's beginning, as in BART's paper (its Tables 3 and 4).
LEAD = {"xsum": 1, "cnn_dailymail": 3}


class Pairs:
    """Documents and summaries of one split of a prepared task, tokenized; each ends in the end token.

    Args:
        folder: as ``poet.finetuning.examples.prepare_task`` wrote it.
        split: "train" or "validation".
        tokenizer: of the pretrained model.
        first: tokens that every text begins with.
        length: tokens of a document or a summary at most.

    Raises:
        RunError: the folder does not hold the task.
    """

    def __init__(self, folder: Path, split: str, tokenizer: Tokenizer, first: list[int], length: int) -> None:
        self.meta, rows = read_split(folder, split)
        self.sha256, self.pad = self.meta["splits"][split]["sha256"], tokenizer.pad_id
        self.documents, self.references = ([row[i] for row in rows] for i in (0, 1))
        room = length - len(first) - 1

        def tokens(texts: list[str]) -> list[np.ndarray]:
            return [np.array([*first, *e.ids[:room], tokenizer.eos_id]) for e in tokenizer.encode_documents(texts, needed=room)]

        self.sources, self.targets = tokens(self.documents), tokens(self.references)

    def __len__(self) -> int:
        return len(self.sources)

    def batch(self, indices) -> dict[str, torch.Tensor]:
        """The examples with these indices, as the arguments of a call of BART."""
        return seq2seq_batch([self.sources[i] for i in indices], [self.targets[i] for i in indices], self.pad)


class Summarization(Problem):
    def __init__(self, spec, weights, data, rows):
        self.spec, self.model = spec, load_bart(weights)
        config = self.model.config
        if spec.sequence_length > config.max_position_embeddings:
            raise RunError(f"run {spec.name}: sequence_length is {spec.sequence_length}, and {weights} reads {config.max_position_embeddings} tokens at most")
        self.tokenizer = tokenizer_of(weights, rows)
        first = [] if config.bos_token_id is None else [config.bos_token_id]
        self.train, self.validation = (Pairs(data, split, self.tokenizer, first, spec.sequence_length) for split in ("train", "validation"))

    def inputs(self, indices, step):
        return self.train.batch(indices)

    def evaluate(self, forward):
        """The loss on the validation examples."""
        return mean_loss(forward, map(self.validation.batch, in_batches(len(self.validation))))

    def finish(self, model, method, folder, check, diverged):
        """ROUGE of the model's summaries, which are written to a file beside the record, and of the documents' leads."""
        documents, references = self.validation.documents, self.validation.references
        summaries = [] if diverged else self._search(model, method, check)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in zip(summaries, references, strict=not diverged))
        write_text(folder / "summaries.jsonl", text)
        return {
            "origin": self.validation.meta["origin"],
            "rouge": dict.fromkeys(METRICS, math.nan) if diverged else rouge(summaries, references),
            "lead": rouge([lead(document, LEAD[self.spec.task]) for document in documents], references),
            "lead_sentences": LEAD[self.spec.task],
            "summaries": len(summaries),
            "summaries_sha256": hashlib.sha256(text.encode()).hexdigest(),
        }

    def _search(self, model, method, check) -> list[str]:
        """A summary of each validation document."""
        # Exported to plain layers: POET and adapters would build the weights again at every token.
        setattr(model, model.base_model_prefix, method.export(model.base_model))
        model.eval()
        summaries = []
        with Progress(f"{self.spec.name}: beam search", len(self.validation), "summaries") as progress:
            for part in in_batches(len(self.validation)):
                check()
                batch = self.validation.batch(part)
                summaries += write_summaries(model, batch["input_ids"], batch["attention_mask"], self.spec.decoding, self.tokenizer.decode)
                progress.add(len(part))
        return summaries


def write_summaries(
    model: nn.Module, tokens: torch.Tensor, mask: torch.Tensor, decoding: Decoding, decode: Callable[[list[int]], str]
) -> list[str]:
    """Summaries of some documents by beam search.

    Args:
        model: a BART.
        tokens, mask: int64 (documents, length).
        decoding: the settings of the search.
        decode: returns the text of tokens.
    """
    from transformers import GenerationConfig

    config = model.config
    special = {"pad_token_id": config.pad_token_id, "bos_token_id": config.bos_token_id, "eos_token_id": config.eos_token_id}
    # This replaces the configuration of a downloaded model, which would supply every option that is not set here.
    model.generation_config = GenerationConfig(
        num_beams=decoding.beams, length_penalty=decoding.length_penalty, min_new_tokens=decoding.shortest, max_new_tokens=decoding.longest,
        no_repeat_ngram_size=decoding.no_repeat, early_stopping=True, do_sample=False, decoder_start_token_id=config.decoder_start_token_id,
        forced_bos_token_id=config.bos_token_id, **special,
    )  # fmt: skip
    written = model.generate(tokens.to(model.device), attention_mask=mask.to(model.device))
    unsaid = {config.decoder_start_token_id, config.vocab_size - 1, *special.values()}
    return [decode([token for token in row if token not in unsaid]).strip() for row in written.tolist()]


PROBLEM = Summarization
