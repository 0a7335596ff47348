"""The description of a data set: which keys it may have and which values make sense."""

from poet.data.errors import DataError
from poet.data.packing import PACKINGS

_KEYS = {"corpus", "path", "tokenizer", "sequence_length", "packing", "train_tokens", "validation_tokens"}
_STREAM = "stream"
_TOKENIZER_KEYS = {"bpe": {"kind", "vocab_size"}, "hf": {"kind", "name"}}


def check_description(data: dict) -> dict:
    """`data` with every optional key filled in (`path`, `train_tokens`, `validation_tokens`: None), and with
    `stream` only where it is true, so that a description that does without means what it always meant.

    Raises DataError that names the key where one is unknown, missing or has a value that makes no sense.
    """
    _check_keys(data, _KEYS | {_STREAM}, "the description of the data")
    if data.get("corpus") not in ("enwik8", "c4"):
        raise DataError(f'"corpus" must be "enwik8" or "c4", not {data.get("corpus")!r}')
    if data.get("packing") not in PACKINGS:
        raise DataError(f'"packing" must be one of {", ".join(PACKINGS)}, not {data.get("packing")!r}')
    path = data.get("path")
    if path is not None and (data["corpus"] != "c4" or not isinstance(path, str)):
        raise DataError(f'"path" is a folder of C4 shards and belongs to corpus "c4" alone, not {path!r}')
    _check_count(data, "sequence_length", 2)
    for key in ("train_tokens", "validation_tokens"):
        if data.get(key) is not None:
            _check_count(data, key, data["sequence_length"])
    tokenizer = data.get("tokenizer")
    if not isinstance(tokenizer, dict) or tokenizer.get("kind") not in _TOKENIZER_KEYS:
        raise DataError(f'"tokenizer" must be an object whose "kind" is "bpe" or "hf", not {tokenizer!r}')
    _check_keys(tokenizer, _TOKENIZER_KEYS[tokenizer["kind"]], '"tokenizer"')
    if tokenizer["kind"] == "bpe":
        _check_count(tokenizer, "vocab_size", 1)
    elif not isinstance(tokenizer.get("name"), str):
        raise DataError(f'"name" of the tokenizer must be a name or a folder, not {tokenizer.get("name")!r}')
    streamed = _check_stream(data)
    return {key: data.get(key) for key in sorted(_KEYS)} | ({_STREAM: True} if streamed else {})


def row_files(data: dict) -> list[str]:
    """The files of rows whose names are known before a data set is prepared: C4's train shards are not among them."""
    return ["validation.npy"] if data["corpus"] == "c4" else ["train.npy", "validation.npy"]


def _check_stream(data: dict) -> bool:
    """Whether the train split is streamed. A stream finds its place by counting documents, one a row."""
    streamed = data.get(_STREAM, False)
    if not isinstance(streamed, bool):
        raise DataError(f'"stream" must be true or false, not {streamed!r}')
    if streamed and (data["corpus"] != "c4" or data["packing"] != "pad"):
        raise DataError(
            '"stream" is for corpus "c4" with packing "pad" alone, '
            f"not for {data['corpus']!r} with {data['packing']!r}: leave it out, and the rows are kept on disk"
        )
    if streamed and data.get("train_tokens") is not None:
        raise DataError('"stream" and "train_tokens" exclude each other: capped data is small, leave "stream" out')
    return streamed


def _check_keys(value: object, known: set[str], where: str) -> None:
    if not isinstance(value, dict):
        raise DataError(f"{where} must be an object, not {value!r}")
    for key in value:
        if key not in known:
            raise DataError(f"unknown key {key!r} in {where}: it may have {', '.join(sorted(known))}")


def _check_count(data: dict, key: str, least: int) -> None:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DataError(f"{key!r} must be a whole number of at least {least}, not {value!r}")
