"""Data: the preparation of rows from corpora, tokenizers and packing, and the reading of rows for training.

``poet.data.prepare.prepare`` makes a folder of rows once. ``TrainingBatches`` and ``TokenRows`` of ``poet.data.rows`` map its files
into memory, and import no tokenizer library.
"""
