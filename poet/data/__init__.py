"""Data: corpora, tokenizers and packing on the one side, rows for training on the other.

`poet.data.prepare.prepare` makes a folder of memory-mapped rows once; `TrainingBatches` and `TokenRows` read it.
The names here are loaded on first use, so that training, which only reads, imports no tokenizer library.
"""

import importlib

_HOMES = {
    "BatchOrder": "poet.data.order",
    "DataError": "poet.data.errors",
    "TokenRows": "poet.data.rows",
    "TrainingBatches": "poet.data.rows",
    "epoch_order": "poet.data.order",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
