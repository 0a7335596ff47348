"""Data: corpora, tokenizers and packing on the one side, rows for training on the other.

``poet.data.prepare.prepare`` makes a folder of memory-mapped rows once; ``TrainingBatches`` and ``TokenRows`` of
``poet.data.rows`` read it, and import no tokenizer library.
"""
