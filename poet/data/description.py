"""The description of a data set: which keys it may have and which values make sense."""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from poet.data.corpora import CORPORA, ShardedCorpus
from poet.data.errors import DataError
from poet.data.packing import PACKINGS
from poet.system.validation import Settings, parse


class Bpe(Settings):
    kind: Literal["bpe"]
    vocab_size: PositiveInt


class HuggingFace(Settings):
    kind: Literal["hf"]
    name: str
    """a name or a folder"""


class Description(Settings):
    corpus: Literal[*CORPORA]
    path: str | None = None
    """of c4: a folder with c4-{train,validation}.*.json.gz, or null to read from the hub"""
    tokenizer: Bpe | HuggingFace = Field(discriminator="kind")
    sequence_length: int = Field(ge=2)
    """tokens a row"""
    packing: Literal[*PACKINGS]
    train_tokens: int | None = None
    """at most so many that are no padding"""
    validation_tokens: int | None = None
    """at most so many that are no padding"""
    stream: bool = False
    """train rows are made as training reads them, and not kept on disk"""

    @model_validator(mode="after")
    def _check(self) -> "Description":
        corpus = CORPORA[self.corpus]
        if self.path is not None and not corpus.reads_folder:
            raise ValueError(f'corpus {self.corpus!r} reads no folder: leave "path" out')
        for key in ("train_tokens", "validation_tokens"):
            if (cap := getattr(self, key)) is not None and cap < self.sequence_length:
                raise ValueError(f'"{key}" must be at least a row of {self.sequence_length}, not {cap}')
        if self.stream and not (issubclass(corpus, ShardedCorpus) and self.packing == "pad"):  # it counts documents, one a row
            raise ValueError(
                '"stream" is for corpora in shards with packing "pad" alone, '
                f"not for {self.corpus!r} with {self.packing!r}: leave it out, and the rows are kept on disk"
            )
        if self.stream and self.train_tokens is not None:
            raise ValueError('"stream" and "train_tokens" exclude each other: capped data is small, leave "stream" out')
        return self


def check_description(data: dict) -> dict:
    """A description with every optional key filled in; ``stream`` only if true, so that the digests of other descriptions stay the same.

    Raises:
        DataError: a key is unknown, missing or has a value that makes no sense; the sentence names it.
    """
    described = parse(Description, data, "the description of the data", DataError).model_dump()
    return {key: value for key, value in described.items() if key != "stream" or value}


def row_files(data: dict) -> list[str]:
    """The files of rows whose names are known before a data set is prepared, which excludes train shards."""
    return ["validation.npy"] if issubclass(CORPORA[data["corpus"]], ShardedCorpus) else ["train.npy", "validation.npy"]
