"""What a data set costs before it is made: rows, bytes on disk, bytes to read, hours of tokenizing.

The numbers of a whole corpus are its ``Corpus.size``. For a folder that holds some of its shards, they are scaled by the bytes
of the shards.
"""

from dataclasses import dataclass
from pathlib import Path

from poet.data.corpora import CORPORA, Corpus, Shard, ShardedCorpus
from poet.data.description import check_description

#: Bytes of the texts whose tokenizing is timed: the mean of C4.
TIMED_BYTES = CORPORA["c4"].size.text_bytes
#: Share of the tokens of rows of 256 that are not padding, from the paper's token counts, steps and batch sizes.
FULL_SHARE = 0.76
#: Texts of C4's mean length that one core turns into rows of 256 tokens in a second, for a stand-in for T5's tokenizer on
#: an AMD EPYC. `python -m poet.data '<description>' --estimate --cache <cache>` measures it; see `poet.data.rate`.
ROWS_PER_CORE_SECOND = 900.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a data set costs.

    Attributes:
        rows: rows of the train split.
        passes: passes over these rows that the longest run makes; above 1, documents are repeated.
        prepared_bytes: on disk when the data is prepared, both splits.
        source_bytes: compressed text that is read and not kept: once, by the preparation; for a stream, by every run.
        core_hours: hours that one core needs to tokenize the text of ``source_bytes``.
    """

    rows: int
    passes: float
    prepared_bytes: int
    source_bytes: int
    core_hours: float


def estimate(description: dict, rows: int | None = None, rows_per_core_second: float = ROWS_PER_CORE_SECOND) -> Estimate:
    """The costs of the data set of a description.

    A folder of shards that does not exist counts as the whole corpus.

    Args:
        description: see :mod:`poet.data.description`.
        rows: rows that the longest run reads; None for one pass.
        rows_per_core_second: as ``poet.data.rate`` measures it.

    Raises:
        DataError: the description is wrong.
    """
    data = check_description(description)
    corpus = CORPORA[data["corpus"]](data["path"])
    documents = dict(corpus.size.documents)
    if isinstance(corpus, ShardedCorpus) and corpus.path is not None and Path(corpus.path).is_dir():
        documents = {split: _documents(corpus, split, corpus.shards(split)) for split in documents}
    made = {split: _rows(data, split, corpus, count) for split, count in documents.items()}
    passes = (rows or made["train"]) / made["train"]
    read = sum(documents[split] * made[split] / _rows(data, None, corpus, documents[split]) for split in made)
    if data.get("stream"):
        read += (passes - 1) * documents["train"]
        made_bytes = made["validation"] * _row_bytes(data)
    else:
        made_bytes = sum(made.values()) * _row_bytes(data)
    return Estimate(
        rows=made["train"],
        passes=passes,
        prepared_bytes=made_bytes,
        source_bytes=round(read * corpus.size.source_bytes),
        core_hours=read * corpus.size.text_bytes / TIMED_BYTES / rows_per_core_second / 3600,
    )


def shard_bytes(data: dict, corpus: ShardedCorpus, shards: list[Shard], itemsize: int) -> int:
    """Bytes on disk of the rows of some train shards; ``itemsize`` is the bytes of a token."""
    return _rows(data, "train", corpus, _documents(corpus, "train", shards)) * data["sequence_length"] * itemsize


def _documents(corpus: ShardedCorpus, split: str, shards: list[Shard]) -> float:
    """Number of documents of some shards, estimated: by their bytes if they are local, else equal shares of the split."""
    size = corpus.size
    return sum(s.bytes / size.source_bytes if s.bytes else size.documents[split] / (s.siblings or len(shards)) for s in shards)


def _rows(data: dict, split: str | None, corpus: Corpus, documents: float) -> int:
    """Number of rows that some documents of a split give; with None for the split, without its cap."""
    length, cap = data["sequence_length"], data[f"{split}_tokens"] if split else None
    of_documents = documents if data["packing"] == "pad" else documents * corpus.size.tokens / length
    of_cap = cap / length / (FULL_SHARE if data["packing"] == "pad" else 1) if cap else of_documents
    return max(1, round(min(of_documents, of_cap)))


def _row_bytes(data: dict) -> int:
    """Bytes of a row. A tokenizer that is given by name counts as one of at most 65,536 tokens, since its size is not known here."""
    return data["sequence_length"] * (4 if data["tokenizer"].get("vocab_size", 0) > 1 << 16 else 2)
