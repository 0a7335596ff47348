"""The small BART: pretrained by text infilling, finetuned on summaries, and measured by ROUGE."""

import dataclasses
import hashlib
import json
import os
import signal

import numpy as np
import pytest
import torch
import transformers

from poet.data.files import write_json
from poet.data.tokenizer import SMALLEST_BPE, train_bpe
from poet.finetuning.loop import finetune
from poet.finetuning.problems import bart, summarization
from poet.finetuning.problems.infilling import SHARE, infill
from poet.finetuning.rouge import lead, rouge
from poet.finetuning.run import FinetuningRun
from poet.finetuning.spec import BartArchitecture, Decoding, FinetuningSpec
from poet.launch.records import check_record, check_weights
from poet.system import progress
from poet.system.validation import ConfigError
from poet.training.errors import RunError
from suite.summarization import check_base
from tests.finetuning.conftest import METHODS, write_task

LENGTH, POSITIONS = 16, 33
ARCHITECTURE = BartArchitecture(hidden_size=16, intermediate_size=32, layers=1, heads=2)
DECODING = Decoding(beams=3, length_penalty=2.0, shortest=4, longest=9, no_repeat=3)
WORDS = [f"The word number {n} is here. It is a good one." for n in range(30)]
PRETRAINING = FinetuningSpec(
    scale="smoke", model="bart", base="", base_digest="", task="infilling", data={"train": 0, "validation": 0}, method="full", parameters={}, lr=3e-3, epochs=3,
    batch_rows=8, sequence_length=POSITIONS, weight_decay=0.01, clip_norm=1.0, precision="fp32", seed=0, architecture=ARCHITECTURE,
)  # fmt: skip


def summaries(method: str = "full", **changes) -> FinetuningSpec:
    given = {"base": PRETRAINING.name, "task": "xsum", "data": {}, "method": method, "parameters": METHODS[method], "architecture": None, "decoding": DECODING}
    return dataclasses.replace(PRETRAINING, **{**given, "epochs": 2, **changes})


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """Packed rows of real words, as ``poet.data.prepare`` leaves them."""
    folder = tmp_path_factory.mktemp("rows")
    tokenizer = train_bpe(WORDS, SMALLEST_BPE + 20, folder / "tokenizer.json")
    stream = np.concatenate([np.append(e.ids, tokenizer.eos_id) for e in tokenizer.encode_batch(WORDS)])
    tokens = stream[: len(stream) // LENGTH * LENGTH].reshape(-1, LENGTH).astype(np.uint16)
    splits = {}
    for split, part in (("train", tokens), ("validation", tokens[:9])):
        np.save(folder / f"{split}.npy", part)
        splits[split] = {"rows": len(part), "sha256": f"of {split}"}
    described = {"file": "tokenizer.json", "vocab_size": tokenizer.vocab_size, "pad_id": 0, "eos_id": 1, "unk_id": 2}
    write_json(folder / "meta.json", {"data": {"tokenizer": {"kind": "bpe"}}, "tokenizer": described, "sequence_length": LENGTH, "splits": splits})
    return folder


@pytest.fixture(scope="session")
def pretrained(rows, tmp_path_factory):
    """(folder of the pretrained BART's run, its record)."""
    folder = tmp_path_factory.mktemp("bart") / "run"
    return folder, finetune(PRETRAINING, base=None, data=rows, rows=rows, folder=folder, checkpoints=folder.parent / "checkpoints")


@pytest.fixture
def pairs(tmp_path):
    """A prepared task of pairs, whose summaries differ in length."""
    lines = [[" ".join(WORDS[n : n + 2]), WORDS[n].partition(".")[0] + "."] for n in range(20)]
    return write_task(tmp_path / "xsum", "xsum", lines, lines[5:15])


@pytest.fixture
def summarize(pretrained, pairs, rows, tmp_path):
    """Finetune on the pairs to the end; (folder, record)."""

    def _summarize(spec, where="here"):
        folder = tmp_path / where / "run"
        paths = {"folder": folder, "checkpoints": tmp_path / where / "checkpoints"}
        return folder, finetune(spec, base=pretrained[0] / "record.json", data=pairs, rows=rows, **paths)

    return _summarize


def aligned(noised: np.ndarray, text: np.ndarray, mask: int) -> list[int]:
    """The spans' lengths: what stands unmasked has to be the text without its spans, in order. Texts have distinct tokens."""
    spans, place = [], 0
    for token in noised:
        if token == mask:
            spans.append(None)
        else:
            gap = int(np.flatnonzero(text == token)[0]) - place
            if gap:
                assert spans and spans[-1] is None
                spans[-1] = gap
            place += gap + 1
    if place < len(text):
        assert spans[-1] is None
        spans[-1] = len(text) - place
    return [span or 0 for span in spans]


def test_noise_has_the_share_and_the_spans_of_bart():
    text, mask = np.arange(200), 1000
    noised = [infill(text, mask, np.random.default_rng(seed)) for seed in range(200)]
    kept = np.array([(row != mask).sum() for row in noised])
    assert (kept == 200 - round(SHARE * 200)).all() and SHARE == 0.3
    spans = [span for row in noised for span in aligned(row, text, mask)]
    # Some masks stand side by side, and what is behind two of them is counted as one's: lengths in sum over masks have Poisson's mean,
    # the last span of a text, which is cut, included.
    assert sum(spans) / len(spans) == pytest.approx(3.0, abs=0.1)
    assert 0.03 < np.mean(np.array(spans) == 0) < 0.3 and max(spans) < 20
    starts = np.concatenate([np.flatnonzero(row == mask) / len(row) for row in noised])
    assert starts.mean() == pytest.approx(0.5, abs=0.02)  # everywhere alike


def test_noise_is_a_function_of_seed_and_step_and_labels_are_the_text(rows):
    run = FinetuningRun(PRETRAINING, None, rows, rows, "cpu")
    one, same, later = (run.problem.inputs([0, 3], step) for step in (5, 5, 6))
    assert all(torch.equal(one[key], same[key]) for key in one) and not torch.equal(one["input_ids"], later["input_ids"])
    other = FinetuningRun(dataclasses.replace(PRETRAINING, seed=1), None, rows, rows, "cpu").problem.inputs([0, 3], 5)
    assert not torch.equal(one["input_ids"], other["input_ids"])
    plain = np.load(rows / "train.npy")
    for line, index in enumerate((0, 3)):
        text = [*plain[2 * index : 2 * index + 2].reshape(-1).tolist(), 1]
        assert one["labels"][line].tolist() == later["labels"][line].tolist() == text
    mask = run.model.config.vocab_size - 1
    assert (one["input_ids"] == mask).any() and not (one["labels"] == mask).any()
    assert run.evaluate() == run.evaluate()


def test_pretraining_learns_and_leaves_a_bart_that_plain_transformers_loads(pretrained):
    folder, record = pretrained
    check_record(record)
    assert record["status"] == "completed" and record["epochs"][-1]["metric"] < record["epochs"][0]["metric"] < 6
    loaded = transformers.BartForConditionalGeneration.from_pretrained(folder / "weights", dtype=torch.float32)
    assert bart.weights_digest(loaded) == record["weights_sha256"]
    assert "model.safetensors" in record["weights_files"]
    check_weights(record, folder / "weights")
    assert loaded.num_parameters() == record["trainable_parameters"]
    assert FinetuningSpec.from_dict(record["spec"]) == PRETRAINING and record["name"] == "smoke/bart/infilling/seed0"


def test_killed_pretraining_goes_on_with_the_same_bits(pretrained, rows, tmp_path, killed_and_resumed):
    def run():
        return finetune(PRETRAINING, base=None, data=rows, rows=rows, folder=tmp_path / "run", checkpoints=tmp_path / "checkpoints")

    again = killed_and_resumed(4, run)
    assert again["weights_sha256"] == pretrained[1]["weights_sha256"] and again["epochs"] == pretrained[1]["epochs"]


def test_a_killed_summarization_run_goes_on_with_the_same_bits(summarize, killed_and_resumed):
    spec = summaries("poet")
    folder, whole = summarize(spec)
    other, again = killed_and_resumed(3, lambda: summarize(spec, "cut"))
    assert again["epochs"] == whole["epochs"] and again["summaries_sha256"] == whole["summaries_sha256"]
    assert (other / "summaries.jsonl").read_bytes() == (folder / "summaries.jsonl").read_bytes()


def test_one_that_is_killed_while_it_writes_keeps_its_training(summarize, monkeypatch):
    write = summarization.write_summaries

    def stopped(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return write(*arguments)

    monkeypatch.setattr(bart, "EVALUATION_ROWS", 5)
    monkeypatch.setattr(summarization, "write_summaries", stopped)
    with pytest.raises(SystemExit):
        summarize(summaries())
    monkeypatch.setattr(summarization, "write_summaries", write)
    monkeypatch.setattr(FinetuningRun, "advance", None)  # nothing is trained again
    assert summarize(summaries())[1]["summaries"] == 10


def test_the_search_says_how_far_it_is(summarize, monkeypatch, capsys):
    monkeypatch.setattr(bart, "EVALUATION_ROWS", 4)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)  # a line at each step
    summarize(summaries())
    said = capsys.readouterr().err
    assert [f"beam search: {count} of 10 summaries" in said for count in (4, 8, 10)] == [True] * 3


def test_a_loss_weighs_every_token_alike_however_rows_are_batched(pretrained, pairs, rows, monkeypatch):
    run = FinetuningRun(summaries(), pretrained[0] / "weights", pairs, rows, "cpu")
    whole = run.evaluate()
    assert len({len(target) for target in run.validation.targets}) > 1, "padding is there, and does not count"
    monkeypatch.setattr(bart, "EVALUATION_ROWS", 3)
    assert run.evaluate() == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_begins_with_the_pretrained_function_and_is_measured_by_rouge(method, summarize, pretrained, pairs, rows):
    spec = summaries(method)
    run = FinetuningRun(spec, pretrained[0] / "weights", pairs, rows, "cpu")
    batch = run.train.batch(range(4))
    run.model.eval()
    with torch.no_grad():
        found, wanted = (model(**batch).logits for model in (run.model, bart.load_bart(pretrained[0] / "weights").eval()))
    assert (found - wanted).abs().max() <= 1e-5 * wanted.abs().max()
    folder, record = summarize(spec)
    text = (folder / "summaries.jsonl").read_text()
    written, references = zip(*map(json.loads, text.splitlines()), strict=True)
    assert record["summaries_sha256"] == hashlib.sha256(text.encode()).hexdigest() and record["summaries"] == 10
    assert record["rouge"] == rouge(written, references) and list(references) == run.validation.references
    assert record["lead"] == rouge([lead(document) for document in run.validation.documents], references)
    assert record["base_weights_sha256"] == pretrained[1]["weights_sha256"] and record["metric"] == record["epochs"][-1]["metric"]


def test_what_each_method_trains(pretrained, pairs, rows):
    runs = {method: FinetuningRun(summaries(method), pretrained[0] / "weights", pairs, rows, "cpu") for method in METHODS}
    square, wide = 4 + 8, 4  # (16, 16) projections of one layer of each part, and 2 of 16 to 32 and back in each
    assert runs["lora"].trainable == 4 * (square * 32 + wide * 48)
    assert runs["oft"].trainable == 6 * (square * 4 + wide // 2 * (4 + 8))
    assert runs["full"].trainable == pretrained[1]["trainable_parameters"]
    factors = 2 * 28 * square + wide * (28 + 120)  # half of 16 and of 32: 8 * 7 / 2 and 16 * 15 / 2
    others = sum(p.numel() for name, p in runs["poet"].model.named_parameters() if p.requires_grad and "skew" not in name)
    assert runs["poet"].trainable == factors + others


def test_decoding_reaches_the_search_and_nothing_else_does(pretrained, pairs, rows, monkeypatch):
    run = FinetuningRun(summaries(), pretrained[0] / "weights", pairs, rows, "cpu")
    run.model.generation_config = transformers.GenerationConfig(num_beams=1, repetition_penalty=9.0)  # as a downloaded model's
    asked, generate = [], type(run.model).generate

    def noted(self, *arguments, **options):
        asked.append((self.generation_config.to_dict(), set(options)))
        return generate(self, *arguments, **options)

    monkeypatch.setattr(type(run.model), "generate", noted)
    batch = run.validation.batch(range(3))
    summarization.write_summaries(run.model.eval(), batch["input_ids"], batch["attention_mask"], DECODING, run.problem.tokenizer.decode)
    settings, options = asked[0]
    wanted = {"num_beams": 3, "length_penalty": 2.0, "min_new_tokens": 4, "max_new_tokens": 9, "no_repeat_ngram_size": 3, "early_stopping": True}
    assert {name: settings[name] for name in wanted} == wanted and settings.get("repetition_penalty") in (None, 1.0) and options == {"attention_mask"}


def test_texts_and_summaries_are_cut_and_end(pretrained, tmp_path, rows):
    data = write_task(tmp_path / "long", "xsum", [[" ".join(WORDS), " ".join(WORDS[:9])]], [["A", "b"]])
    run = FinetuningRun(summaries(), pretrained[0] / "weights", data, rows, "cpu")
    assert [len(run.train.sources[0]), len(run.train.targets[0])] == [POSITIONS, POSITIONS]
    assert run.train.sources[0][-1] == run.train.targets[0][-1] == run.validation.targets[0][-1] == 1


@pytest.mark.parametrize(("task", "count"), [("xsum", 1), ("cnn_dailymail", 3)])
def test_the_baseline_has_as_many_sentences_as_in_bart_s_paper(task, count, pretrained, pairs, rows, tmp_path):
    problem = FinetuningRun(summaries(task=task), pretrained[0] / "weights", pairs, rows, "cpu").problem
    found = problem.finish(problem.model, None, tmp_path, None, True)
    assert found["lead"] == rouge([lead(document, count) for document in problem.validation.documents], problem.validation.references)
    assert found["lead_sentences"] == count


def test_a_diverged_run_has_no_scores(summarize):
    folder, record = summarize(summaries(lr=1e30))
    assert record["status"] == "diverged" and all(map(np.isnan, record["rouge"].values())) and (folder / "summaries.jsonl").read_text() == ""


def test_a_bart_of_a_local_folder_takes_the_place_of_a_run(rows, pairs, tmp_path):
    """With its own tokenizer, whose texts begin with a token as BART-large's do."""
    backend = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(rows / "tokenizer.json"), pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>", mask_token="<mask>"
    )
    config = transformers.BartConfig(
        vocab_size=len(backend), d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32, decoder_ffn_dim=32, encoder_attention_heads=2,
        decoder_attention_heads=2, max_position_embeddings=POSITIONS, pad_token_id=0, eos_token_id=1, bos_token_id=backend.bos_token_id, decoder_start_token_id=1,
    )  # fmt: skip
    transformers.BartForConditionalGeneration(config).save_pretrained(tmp_path / "given")
    backend.save_pretrained(tmp_path / "given")
    bart.fetch_bart(str(tmp_path / "given"), tmp_path / "base")
    record = json.loads((tmp_path / "base" / "record.json").read_text())
    check_record(record)
    run = FinetuningRun(summaries(), tmp_path / "base" / "weights", pairs, None, "cpu")
    assert run.train.sources[0][0] == run.train.targets[0][0] == backend.bos_token_id
    done = finetune(
        summaries(epochs=1), base=tmp_path / "base" / "record.json", data=pairs, rows=None, folder=tmp_path / "run", checkpoints=tmp_path / "checkpoints"
    )
    assert done["base_weights_sha256"] == record["weights_sha256"] == bart.weights_digest(bart.load_bart(tmp_path / "given"))
    assert "<" not in (tmp_path / "run" / "summaries.jsonl").read_text()


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (lambda given: bart.fetch_bart(str(given / "nothing"), given / "base"), "connect to the network and name it .* or name a local folder"),
        (lambda given: bart.load_bart(given), "holds no BART that can be read"),
        (lambda given: FinetuningRun(dataclasses.replace(PRETRAINING, sequence_length=9999), None, given, given, "cpu"), "too few rows"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(what, sentence, rows):
    with pytest.raises(RunError, match=sentence):
        what(rows)


def test_a_model_of_another_kind_is_no_base(tmp_path):
    transformers.T5Config().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="is a model of the kind t5: name a BART"):
        check_base(str(tmp_path))


def test_texts_longer_than_the_positions_are_refused(pretrained, pairs, rows):
    with pytest.raises(RunError, match=f"sequence_length is 40, and .* reads {POSITIONS} tokens at most"):
        FinetuningRun(summaries(sequence_length=40), pretrained[0] / "weights", pairs, rows, "cpu")
