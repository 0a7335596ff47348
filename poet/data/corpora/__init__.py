"""Corpora. Each file that defines ``CORPUS`` is one; :data:`CORPORA` holds them by name."""

from poet.data.corpora.contract import Corpus, Shard, ShardedCorpus, Size
from poet.system.registry import discover

CORPORA: dict[str, type[Corpus]] = discover(__name__, "CORPUS")

__all__ = ["CORPORA", "Corpus", "Shard", "ShardedCorpus", "Size"]
