"""BART: building a small one, loading a pretrained one, and making batches for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from poet.data.errors import DataError
from poet.data.rows import IGNORED_LABEL, read_meta
from poet.data.tokenizer import Tokenizer, load_hf, load_prepared
from poet.finetuning.examples import padded
from poet.finetuning.problems.contract import Forward
from poet.finetuning.spec import BartArchitecture
from poet.launch.records import write_record
from poet.training.errors import RunError

#: Examples of one forward pass of evaluation.
EVALUATION_ROWS = 32


def build_bart(architecture: BartArchitecture, tokenizer: Tokenizer, positions: int, seed: int) -> nn.Module:
    """A BART with random weights, fp32. Its last token is the mask; as in BART, the decoder starts with the end token.

    Args:
        architecture: its sizes.
        tokenizer: the tokenizer of the texts that it reads and writes.
        positions: tokens of a text at most.
        seed: of the weights.
    """
    from transformers import BartConfig, BartForConditionalGeneration, logging

    logging.disable_progress_bar()  # it would show when the weights are written
    a = architecture
    sizes = {f"{part}_{name}": value for part in ("encoder", "decoder")
             for name, value in (("layers", a.layers), ("ffn_dim", a.intermediate_size), ("attention_heads", a.heads))}  # fmt: skip
    config = BartConfig(
        vocab_size=tokenizer.vocab_size + 1, d_model=a.hidden_size, **sizes, max_position_embeddings=positions, pad_token_id=tokenizer.pad_id,
        bos_token_id=None, eos_token_id=tokenizer.eos_id, decoder_start_token_id=tokenizer.eos_id, forced_eos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BartForConditionalGeneration(config)


def load_bart(source: Path | str) -> nn.Module:
    """A pretrained BART in fp32, from a folder or by its name on the hub.

    Raises:
        RunError: the source has no BART that can be read.
    """
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        return transformers.BartForConditionalGeneration.from_pretrained(source, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise RunError(f"{source} holds no BART that can be read ({str(error).splitlines()[0]}): make it again") from None


def fetch_bart(source: str, folder: Path) -> None:
    """Save a BART from the hub or a local folder in the form that a run leaves: ``weights`` and ``record.json``.

    Raises:
        RunError: it cannot be read; the sentence says how to use the hub or a folder.
    """
    import transformers

    try:
        model, tokenizer = load_bart(source), load_hf(source)
    except (RunError, DataError) as error:
        raise RunError(
            f"the BART that Table 12 starts from cannot be read ({error}): connect to the network and name it as on the hub (facebook/bart-large), "
            "or name a local folder that holds its weights and tokenizer, as `base` under `summarization` in the scale's file"
        ) from None
    model.save_pretrained(folder / "weights")
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder / "weights")
    write_record(folder / "record.json", {"source": source, "tokenizer_sha256": tokenizer.sha256, "weights_sha256": weights_digest(model)})


def tokenizer_of(weights: Path, rows: Path | None) -> Tokenizer:
    """The tokenizer beside a model's weights; if there is none, that of the rows that the model was pretrained on."""
    tokenizer = load_hf(str(weights)) if (weights / "tokenizer_config.json").exists() else load_prepared(rows, read_meta(rows))
    tokenizer.backend.encode_special_tokens = True  # "</s>" in a text does not end the text
    return tokenizer


def seq2seq_batch(sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], pad: int) -> dict[str, torch.Tensor]:
    """The arguments of a call of BART. The loss ignores padding, and the model itself shifts the labels to the right."""
    tokens, mask = padded(sources, pad)
    return {"input_ids": tokens, "attention_mask": mask, "labels": padded(targets, IGNORED_LABEL)[0]}


def mean_loss(forward: Forward, batches: Iterable[dict[str, torch.Tensor]]) -> float:
    """Cross entropy over all tokens of the labels, in nats a token."""
    total, tokens = 0.0, 0
    for batch in batches:
        count = int((batch["labels"] != IGNORED_LABEL).sum())
        total, tokens = total + forward(batch).loss.item() * count, tokens + count
    return total / tokens


def in_batches(count: int) -> Iterable[range]:
    """The indices of ``count`` examples, :data:`EVALUATION_ROWS` at a time."""
    return (range(start, min(start + EVALUATION_ROWS, count)) for start in range(0, count, EVALUATION_ROWS))


def weights_digest(model: nn.Module) -> str:
    """sha256 over all weights, by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
