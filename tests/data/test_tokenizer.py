"""Long texts are encoded in part where that changes nothing."""

import pickle

import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers, pre_tokenizers

from poet.data.tokenizer import SPECIAL_TOKENS, Tokenizer, load_hf, train_bpe

NEEDED = 4
TEXT = "The cats' rain can't fall: 12 dogs, 3.5 mats and\nquiet ﬁsh — naïve  cafés sat outside, don't they? "


def t5_like():
    """A unigram model whose words are split as T5's are, on normalized text."""
    backend = tokenizers.Tokenizer(tokenizers.models.Unigram())
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    splitters = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    backend.pre_tokenizer = pre_tokenizers.Sequence(splitters)
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=80, special_tokens=list(SPECIAL_TOKENS), unk_token="<unk>", show_progress=False
    )
    backend.train_from_iterator([TEXT] * 4, trainer)
    return backend


def through_a_folder(backend, folder):
    special = dict(zip(("pad_token", "eos_token", "unk_token"), SPECIAL_TOKENS, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(folder)
    return load_hf(str(folder))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    bpe = train_bpe([TEXT] * 4, 300, tmp_path_factory.mktemp("bpe") / "t.json")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 2, "cat": 3, "12": 4}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    metaspace = t5_like()
    metaspace.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    unigrams = [through_a_folder(each, tmp_path_factory.mktemp("hf")) for each in (t5_like(), metaspace)]
    return [bpe, *unigrams, Tokenizer(words, 5, 0, 1, 2)]


PIECES = ["cat", "12", "don't", "a", "I", "'s", "ﬁsh", "e\u0301", "\u0301", "—", ".", "日本", "</s>", "<unk>", "🙂"]
GAPS = [" ", " ", " ", "  ", "\n", "\r\n", "\u00a0", "\u3000", ""]
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), max_size=40)


@settings(max_examples=150, deadline=None)
@given(pieces=texts)
def test_the_start_of_a_text_has_its_first_tokens(kinds, pieces):
    text = "".join(piece + gap for piece, gap in pieces)
    for tokenizer in kinds:
        (whole,), (start,) = tokenizer.encode_batch([text]), tokenizer.encode_documents([text], NEEDED)
        assert start.ids[:NEEDED].tolist() == whole.ids[:NEEDED].tolist()
        assert len(start.ids) >= min(NEEDED, len(whole.ids))
        kept = min(NEEDED, len(whole.ids))
        assert start.bytes_of_first(kept) == whole.bytes_of_first(kept)


def test_a_long_text_is_cut(kinds):
    for tokenizer in kinds:
        (start,) = tokenizer.encode_documents(["cat sat on 12 mats " * 500], NEEDED)
        assert NEEDED < len(start.ids) < 60


def test_a_start_with_too_few_tokens_is_read_on(kinds):
    text = "a" + " " * 100 + "cat 12 cat 12 cat 12"
    for tokenizer in kinds:
        (whole,), (start,) = tokenizer.encode_batch([text]), tokenizer.encode_documents([text], NEEDED)
        assert start.ids[:NEEDED].tolist() == whole.ids[:NEEDED].tolist()


def with_changes(**changes):
    backend = t5_like()
    for name, value in changes.items():
        setattr(backend, name, value)
    return backend


def with_a_token_of_two_words():
    backend = t5_like()
    backend.add_tokens(["the cat"])
    return backend


@pytest.mark.parametrize(
    "backend",
    [
        with_changes(pre_tokenizer=pre_tokenizers.Metaspace(split=False)),
        with_changes(pre_tokenizer=pre_tokenizers.ByteLevel(use_regex=False)),
        with_changes(pre_tokenizer=pre_tokenizers.Digits()),
        with_changes(pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Digits()])),
        with_changes(normalizer=normalizers.Replace("t s", "x")),
        with_changes(normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])),
        with_a_token_of_two_words(),
    ],
)
def test_what_may_reach_over_a_space_is_encoded_whole(backend):
    tokenizer = Tokenizer(backend, 100, 0, 1, 2)
    text = "cat sat on 12 mats " * 50
    (whole,), (start,) = tokenizer.encode_batch([text]), tokenizer.encode_documents([text], NEEDED)
    assert start.ids.tolist() == whole.ids.tolist()


def test_a_tokenizer_is_the_same_in_another_process(kinds):
    for tokenizer in kinds:
        other = pickle.loads(pickle.dumps(tokenizer))
        assert other.sha256 == tokenizer.sha256
        text = "a </s> b<pad>é " + TEXT
        assert other.encode_batch([text])[0].ids.tolist() == tokenizer.encode_batch([text])[0].ids.tolist()
