"""A tiny pretrained model with its tokenizer, and a task that can be learned."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poet.data.files import sha256_of, write_json
from poet.data.tokenizer import SMALLEST_BPE, train_bpe
from poet.finetuning.adapter import save_adapter
from poet.finetuning.loop import finetune
from poet.finetuning.run import FinetuningRun
from poet.finetuning.spec import FinetuningSpec
from poet.training.llama import build_llama
from poet.training.spec import Architecture
from tests.finetuning.pretrained import finetuned

METHODS = {
    "full": {},
    "oft": {"block_size": 4},
    "lora": {"rank": 4, "alpha": 4},
    "poet": {"variant": "fs", "budget": 0.5, "init": "keep", "merge_every": 5, "clip_ramp_steps": 1},
}
GOOD, BAD = ("a fine day", "very good", "nice words here"), ("a bad day", "very poor", "awful words here")


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory) -> Path:
    """A folder with ``run/record.json``, ``run/weights`` and ``rows``, which has the tokenizer."""
    folder = tmp_path_factory.mktemp("pretrained")
    (folder / "rows").mkdir()
    tokenizer = train_bpe([" ".join(GOOD + BAD)], SMALLEST_BPE, folder / "rows" / "tokenizer.json")
    described = {"file": "tokenizer.json", "vocab_size": tokenizer.vocab_size, "pad_id": 0, "eos_id": 1, "unk_id": 2}
    write_json(folder / "rows" / "meta.json", {"data": {"tokenizer": {"kind": "bpe"}}, "tokenizer": described, "splits": {"train": {"sha256": "of the rows"}}})
    architecture = Architecture(hidden_size=16, intermediate_size=32, layers=2, heads=2, vocabulary=tokenizer.vocab_size, sequence_length=32)
    build_llama(architecture, seed=1).save_pretrained(folder / "run" / "weights")
    write_json(folder / "run" / "record.json", {"weights_sha256": "of the base", "data_sha256": "of the rows"})
    return folder


def write_task(folder: Path, task: str, train: list, validation: list) -> Path:
    """A prepared task with given lines, as ``poet.finetuning.examples.prepare_task`` writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = {}
    for split, lines in (("train", train), ("validation", validation)):
        path = folder / f"{split}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        splits[split] = {"file": path.name, "examples": len(lines), "sha256": sha256_of(path)}
    origin = {"kind": "stand-in", "sentence": "stand-in: words"}
    write_json(folder / "meta.json", {"task": task, "data": {}, "origin": origin, "splits": splits})
    return folder


@pytest.fixture
def sentiment(tmp_path) -> Path:
    """Sentences of good and bad words, 24 to train on and 12 to measure on."""
    lines = [[text, label] for label, texts in enumerate((BAD, GOOD)) for text in texts]
    return write_task(tmp_path / "sst2", "sst2", lines * 4, lines * 2)


@pytest.fixture
def saved(tmp_path):
    """(the finetuned classifier of ``tests/finetuning/pretrained.py``, the folder of its adapter)."""
    model, base = finetuned()
    save_adapter(model, tmp_path / "adapter", base, also=("score",))
    return model, tmp_path / "adapter"


@pytest.fixture
def make_finetuning():
    """A spec with some fields changed."""

    def make(method: str = "full", **changes) -> FinetuningSpec:
        given = {
            "scale": "smoke", "model": "60m", "base": "smoke/60m/adamw/seed0", "base_digest": "of the base", "task": "sst2", "data": {},
            "method": method, "parameters": METHODS[method], "lr": 5e-3, "epochs": 6, "batch_rows": 8, "sequence_length": 32, "weight_decay": 0.0,
            "clip_norm": 1.0, "precision": "fp32", "seed": 0,
        }
        return FinetuningSpec(**{**given, **changes})

    return make


@pytest.fixture
def killed_and_resumed(monkeypatch):
    """``killed_and_resumed(step, run)`` ends ``run()`` by a signal after a step and calls it again, which may train no step a second time."""

    def _run_twice(step: int, run: Callable[[], Any]) -> Any:
        advance, steps = FinetuningRun.advance, []

        def counted(self):
            advance(self)
            steps.append(self.step)
            if len(steps) == step:
                os.kill(os.getpid(), signal.SIGTERM)

        monkeypatch.setattr(FinetuningRun, "advance", counted)
        with pytest.raises(SystemExit):
            run()
        found = run()
        assert steps == list(range(1, len(steps) + 1)) and len(steps) > step
        return found

    return _run_twice


@pytest.fixture
def run_finetuning(pretrained, sentiment, tmp_path):
    """Finetune to the end; the record."""

    def run(spec: FinetuningSpec, data: Path | None = None, where: str = "here", **options) -> dict:
        folders = {"folder": tmp_path / where / "run", "checkpoints": tmp_path / where / "checkpoints"}
        folders["folder"].mkdir(parents=True, exist_ok=True)
        given = {"base": pretrained / "run" / "record.json", "data": data or sentiment, "rows": pretrained / "rows", **folders, **options}
        return finetune(spec, **given)

    return run
