"""Tokenizers: a byte-level BPE trained on the corpus, or a Hugging Face tokenizer by name or folder."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tokenizers

from poet.data.errors import DataError
from poet.system.files import write_text

PAD, EOS, UNK = "<pad>", "</s>", "<unk>"
SPECIAL_TOKENS = (PAD, EOS, UNK)  # ids 0, 1, 2, as in T5
SMALLEST_BPE = len(SPECIAL_TOKENS) + 256  # the special tokens and every byte
# BPE merges settle long before the corpus ends; 10 MB of a fair sample train in seconds.
BPE_TRAINING_BYTES = 10_000_000
# T5's placeholders for its denoising task come after the 32,000 pieces of its text, and no text should contain them.
_SENTINEL = re.compile(r"<extra_id_\d+>")
# Characters per needed token that are encoded of a long text. English has four to five characters per token.
CHARACTERS_PER_TOKEN = 6
# How many texts are in memory at a time.
BATCH_DOCUMENTS = 256
# A single space between letters or digits: no normalizer joins anything across it.
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z0-9]) (?=[A-Za-z0-9])")


class EncodedText:
    """The tokens of one text, and how much of it they cover.

    Attributes:
        ids: int64 (tokens,), without special ones at the ends.
    """

    __slots__ = ("ids", "_encoding", "_text")

    def __init__(self, ids: np.ndarray, encoding: tokenizers.Encoding, text: str):
        self.ids, self._encoding, self._text = ids, encoding, text

    def bytes_of_first(self, n_tokens: int) -> int:
        """Bytes (UTF-8) of the text that the first ``n_tokens`` tokens cover; more tokens than there are mean all."""
        if n_tokens >= len(self.ids):
            return len(self._text.encode("utf-8"))
        end = self._encoding.token_to_chars(n_tokens - 1)[1] if n_tokens > 0 else 0
        return len(self._text[:end].encode("utf-8"))


class Tokenizer:
    """A tokenizer, with the methods that the rest of the package needs.

    Attributes:
        vocab_size: every id that ``encode_batch`` gives is below it.
        pad_id, eos_id, unk_id: ids of the special tokens.
    """

    def __init__(self, backend: tokenizers.Tokenizer, vocab_size: int, pad_id: int, eos_id: int, unk_id: int):
        self.backend = backend
        self.vocab_size, self.pad_id, self.eos_id, self.unk_id = vocab_size, pad_id, eos_id, unk_id
        backend.no_truncation()
        backend.no_padding()
        self._cuts_between_words = _cuts_between_words(json.loads(backend.to_str()))

    def __getstate__(self) -> dict:
        # The backend's own state leaves this setting out.
        return self.__dict__ | {"encode_special_tokens": self.backend.encode_special_tokens}

    def __setstate__(self, state: dict) -> None:
        encode_special_tokens = state.pop("encode_special_tokens")
        self.__dict__.update(state)
        self.backend.encode_special_tokens = encode_special_tokens

    @property
    def sha256(self) -> str:
        """sha256 of the backend's JSON."""
        return hashlib.sha256(self.backend.to_str().encode("utf-8")).hexdigest()

    def encode_batch(self, texts: list[str]) -> list[EncodedText]:
        """Encodes in parallel, without special tokens. Ids from ``vocab_size`` on become ``unk_id``."""
        encoded = []
        for encoding, text in zip(self.backend.encode_batch(texts, add_special_tokens=False), texts, strict=True):
            ids = np.array(encoding.ids, np.int64)
            encoded.append(EncodedText(np.where(ids < self.vocab_size, ids, self.unk_id), encoding, text))
        return encoded

    def encode_documents(self, texts: Iterable[str], needed: int | None = None) -> Iterator[EncodedText]:
        """Encodes a stream of texts, keeping one batch in memory.

        Args:
            texts: the texts.
            needed: number of first tokens that are needed of each text. More may follow; the rest of a longer text may be left out. None: all.
        """
        texts = iter(texts)
        while batch := list(itertools.islice(texts, BATCH_DOCUMENTS)):
            yield from self.encode_batch(batch) if needed is None else self._encode_starts(batch, needed)

    def _encode_starts(self, texts: list[str], needed: int) -> list[EncodedText]:
        starts = [self._start(text, needed) for text in texts]
        encoded = self.encode_batch(starts)
        short = [i for i, e in enumerate(encoded) if len(e.ids) <= needed and len(starts[i]) < len(texts[i])]
        for i, whole in zip(short, self.encode_batch([texts[i] for i in short]), strict=True):
            encoded[i] = whole
        return encoded

    def _start(self, text: str, needed: int) -> str:
        """A first part of ``text`` that very likely has ``needed`` tokens; they are the first tokens of the whole text."""
        if self._cuts_between_words and (gap := _BETWEEN_WORDS.search(text, CHARACTERS_PER_TOKEN * needed)):
            return text[: gap.start()]
        return text

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, special tokens included."""
        return self.backend.decode(list(map(int, ids)), skip_special_tokens=False)


def _cuts_between_words(backend: dict) -> bool:
    """Whether the tokens of a text up to a space between two words are the first tokens of the whole text.

    True if the pre-tokenizer splits there, so that the model sees the words one by one, and no normalizer and no added
    token reaches across the space. For unknown kinds of pre-tokenizer and normalizer it is False.

    Args:
        backend: the content of a tokenizer.json.
    """
    splitter = backend["pre_tokenizer"] or {"type": None}
    if splitter["type"] == "Sequence":
        splitter = splitter["pretokenizers"][0]
    splits = splitter["type"] in _WORD_SPLITTERS and splitter.get("split", True) and splitter.get("use_regex", True)
    normalizer = backend["normalizer"] or {"type": "Sequence", "normalizers": []}
    normalizers = normalizer["normalizers"] if normalizer["type"] == "Sequence" else [normalizer]
    local = all(n["type"] in _LOCAL_NORMALIZERS or n.get("pattern") == _SEVERAL_SPACES for n in normalizers)
    return splits and local and not any(" " in token["content"] for token in backend["added_tokens"])


_WORD_SPLITTERS = {"WhitespaceSplit", "Whitespace", "BertPreTokenizer", "Metaspace", "ByteLevel"}
_LOCAL_NORMALIZERS = {"Precompiled", "NFC", "NFD", "NFKC", "NFKD", "Lowercase"}
_SEVERAL_SPACES = {"Regex": " {2,}"}


def train_bpe(texts: Iterable[str], vocab_size: int, path: Path) -> Tokenizer:
    """Trains a byte-level BPE on the first 10 MB of ``texts`` and saves it to ``path`` (tokenizer.json).

    The result depends on the texts and the vocabulary size alone.

    Raises:
        DataError: ``vocab_size`` cannot hold the 256 bytes and the special tokens, or the texts are too few for it.
    """
    if vocab_size < SMALLEST_BPE:
        raise DataError(f"a byte-level BPE needs vocab_size of at least {SMALLEST_BPE}, not {vocab_size}")
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=UNK))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_first_bytes(texts, BPE_TRAINING_BYTES), trainer)
    if (found := backend.get_vocab_size()) != vocab_size:
        raise DataError(f"the training text gives {found} tokens, not the {vocab_size} asked for")
    write_text(path, backend.to_str(pretty=False))
    return load_bpe(path)


def load_bpe(path: Path) -> Tokenizer:
    """The tokenizer that ``train_bpe`` saved.

    Raises:
        DataError: the file is missing or no tokenizer.
    """
    backend = _read(path)
    # "</s>" in the text of an article is encoded as its letters, not as the end of a document.
    backend.encode_special_tokens = True
    ids = [backend.token_to_id(token) for token in SPECIAL_TOKENS]
    return Tokenizer(backend, backend.get_vocab_size(), *ids)


def load_prepared(folder: Path, meta: dict) -> Tokenizer:
    """The tokenizer of a prepared folder, loaded without a network.

    Raises:
        DataError: the file is missing or no tokenizer.
    """
    described = meta["tokenizer"]
    path = folder / described["file"]
    if meta["data"]["tokenizer"]["kind"] == "bpe":
        return load_bpe(path)
    return Tokenizer(_read(path), *(described[key] for key in ("vocab_size", "pad_id", "eos_id", "unk_id")))


def load_hf(name: str) -> Tokenizer:
    """A Hugging Face tokenizer by name (from the hub or its cache) or local folder.

    Raises:
        DataError: it cannot be loaded, is not a fast tokenizer, or lacks a pad, end or unknown token.
    """
    import transformers  # here, because importing it takes seconds and training never needs it

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise DataError(f"cannot load the tokenizer {name!r} ({reason}): connect to the network or give a local folder") from error
    if not isinstance(getattr(tokenizer, "backend_tokenizer", None), tokenizers.Tokenizer):
        raise DataError(f"the tokenizer {name!r} has no fast version: choose one that has")
    special = {"pad": tokenizer.pad_token_id, "eos": tokenizer.eos_token_id, "unk": tokenizer.unk_token_id}
    if missing := ", ".join(key for key, value in special.items() if value is None):
        raise DataError(f"the tokenizer {name!r} lacks special tokens that padding needs: {missing}")
    text_ids = [i for token, i in tokenizer.get_vocab().items() if not _SENTINEL.fullmatch(token)]
    # A copy, so that the padding and truncation of the loaded object stay as they are.
    backend = _settled(tokenizer.backend_tokenizer)
    return Tokenizer(backend, max(text_ids) + 1, *special.values())


def _settled(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A copy that is the same to the last bit in a file or in another process.

    Reading a tokenizer's JSON may round the scores of a unigram model like T5's. It is repeated until nothing changes any more.
    """
    content, copied = None, backend.to_str()
    while copied != content:
        content, backend = copied, tokenizers.Tokenizer.from_str(copied)
        copied = backend.to_str()
    return backend


def _read(path: Path) -> tokenizers.Tokenizer:
    try:
        content = path.read_text(encoding="utf-8")
        json.loads(content)
        return tokenizers.Tokenizer.from_str(content)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the tokenizer {path}: {error}") from error


def _first_bytes(texts: Iterable[str], limit: int) -> Iterator[str]:
    total = 0
    for text in texts:
        yield text
        total += len(text.encode("utf-8"))
        if total >= limit:
            return
