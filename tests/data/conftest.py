"""Small texts, a word-level tokenizer that stands in for T5's, and shards in C4's layout."""

import numpy as np
import pytest
import tokenizers
import transformers

from tests.data.shards import write_shards

WORDS = ["cat", "sat", "on", "the", "mat", "while", "rain", "fell", "outside", "quietly"]


def _words(seed: int, n: int = 120) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, n)) + "."


@pytest.fixture(scope="session")
def words():
    """`words(seed, n)`: a sentence of `n` words."""
    return _words


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """A word-level tokenizer in a local Hugging Face folder that stands in for T5: pad 0, end 1, unknown 2."""
    names = ["<pad>", "</s>", "<unk>", *sorted(WORDS), "<extra_id_0>"]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    backend.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path_factory.mktemp("stand-in")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    return folder


#: Documents of each train shard; one shard has none.
SIZES = (7, 1, 0, 12, 5)


@pytest.fixture
def shards(tmp_path):
    """A folder of five train shards and one of validation, with documents of 1 to 20 words."""
    texts = [[_words(100 * i + j, 1 + (7 * i + 5 * j) % 20) for j in range(n)] for i, n in enumerate(SIZES)]
    write_shards(tmp_path / "c4", {"train": texts, "validation": [["the cat", "rain fell", "on the mat"]]})
    return tmp_path / "c4"


@pytest.fixture
def description(shards, stand_in):
    """The description of `shards` in padded rows of eight tokens."""
    tokenizer = {"kind": "hf", "name": str(stand_in)}
    return {"corpus": "c4", "path": str(shards), "tokenizer": tokenizer, "sequence_length": 8, "packing": "pad"}
