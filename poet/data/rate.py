"""How many documents a core tokenizes in a second, measured on real text."""

import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tokenizers

from poet.data.corpora.enwik8 import Enwik8
from poet.data.description import check_description
from poet.data.errors import DataError
from poet.data.estimate import TIMED_BYTES
from poet.data.packing import PACKINGS
from poet.data.tokenizer import EOS, PAD, SPECIAL_TOKENS, UNK, Tokenizer, load_hf, train_bpe
from poet.data.writing import encoded
from poet.system.progress import say

#: Numbers of texts: those that are timed, and those before them, which train a tokenizer.
TIMED, TRAINING = 2000, 2000


def measure(description: dict, cache: Path) -> tuple[float, str]:
    """Texts of C4's mean length that one core of this machine turns into rows in a second, and what was measured.

    The text is enwik8's (fetched to ``cache``), cut to C4's mean length. C4's own texts have different lengths; they take no longer
    with packing "pad", which encodes only the start of a long text. If the description's tokenizer cannot be loaded, a tokenizer of
    T5's kind and size is timed instead.

    Raises:
        DataError: enwik8 cannot be fetched.
    """
    data = check_description(description)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    texts = _texts(cache)
    training = list(itertools.islice(texts, TRAINING))
    tokenizer, name = _tokenizer(data["tokenizer"], training)
    timed = list(itertools.islice(texts, TIMED))
    started = time.process_time()
    blocks = PACKINGS[data["packing"]](encoded(timed, tokenizer, data), tokenizer, data["sequence_length"])
    n_rows = sum(len(rows) for rows, *_ in blocks)
    rate = len(timed) / (time.process_time() - started)
    return rate, f"{name}, {n_rows:,} rows of {len(timed):,} texts of {TIMED_BYTES:,} characters of enwik8"


def _texts(cache: Path) -> Iterator[str]:
    for _, prose in Enwik8(cache=cache).articles():
        for start in range(0, len(prose) - TIMED_BYTES, TIMED_BYTES):
            yield prose[start : start + TIMED_BYTES]


def _tokenizer(description: dict, training: list[str]) -> tuple[Tokenizer, str]:
    if description["kind"] == "bpe":
        with tempfile.TemporaryDirectory() as folder:
            size = description["vocab_size"]
            return train_bpe(training, size, Path(folder) / "tokenizer.json"), f"a BPE of {size:,} tokens"
    try:
        return load_hf(description["name"]), description["name"]
    except DataError as error:
        say(f"a stand-in is timed: {error}")
    backend = tokenizers.Tokenizer(tokenizers.models.Unigram())
    splitters = [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace()]
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(splitters)
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=32_000, special_tokens=list(SPECIAL_TOKENS), unk_token=UNK, show_progress=False
    )
    backend.train_from_iterator(training, trainer)
    ids = [backend.token_to_id(token) for token in (PAD, EOS, UNK)]
    size = backend.get_vocab_size()
    return Tokenizer(backend, size, *ids), f"a stand-in of T5's kind with {size:,} tokens"
