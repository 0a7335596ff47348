"""The description of a data set: which keys it may have and which values make sense."""

from poet.data.errors import DataError
from poet.data.packing import PACKINGS

_KEYS = {"corpus", "path", "tokenizer", "sequence_length", "packing", "train_tokens", "validation_tokens"}
_TOKENIZER_KEYS = {"bpe": {"kind", "vocab_size"}, "hf": {"kind", "name"}}


def check_description(data: dict) -> dict:
    """`data` with every optional key filled in (`path`, `train_tokens`, `validation_tokens`: None).

    Raises DataError that names the key where one is unknown, missing or has a value that makes no sense.
    """
    _check_keys(data, _KEYS, "the description of the data")
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
    return {key: data.get(key) for key in sorted(_KEYS)}


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
