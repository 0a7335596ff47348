"""A task's examples on disk, and as rows of tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from poet.data.files import read_json, sha256_of, write_json
from poet.data.tokenizer import Tokenizer
from poet.finetuning.tasks import TASKS, TaskData, load_task
from poet.system.files import write_text
from poet.training.errors import RunError

SPLITS = ("train", "validation")


def prepare_task(task: str, data: dict[str, Any], folder: Path, cache: Path) -> dict[str, Any]:
    """Write a task's examples, one JSON list a line, and ``meta.json`` with their checksums.

    Args:
        task: key in ``poet.finetuning.tasks.TASKS``.
        data: ``source`` as :func:`poet.finetuning.tasks.load_task` takes it; ``train`` and ``validation``, the largest numbers of
            examples (0: all); optionally ``split``, always "train": both splits are taken from it, see :func:`divided`.
        folder: where the files go.
        cache: folder for downloads.

    Returns:
        The content of ``meta.json``.

    Raises:
        DataError: the source does not have the task.
    """
    if "split" in data:
        loaded = divided(load_task(task, data["source"], cache), data["train"], data["validation"])
    else:
        loaded = load_task(task, data["source"], cache, limit={split: data[split] for split in SPLITS if data[split]})
    splits = {}
    for split in SPLITS:
        examples = getattr(loaded, split)
        lines = (json.dumps([*example.texts, example.target], ensure_ascii=False) + "\n" for example in examples)
        write_text(path := folder / f"{split}.jsonl", "".join(lines))
        splits[split] = {"file": path.name, "examples": len(examples), "sha256": sha256_of(path)}
    meta = {"task": task, "data": data, "origin": asdict(loaded.origin), "splits": splits}
    write_json(folder / "meta.json", meta)
    return meta


def divided(data: TaskData, train: int, validation: int) -> TaskData:
    """A task whose training split is divided: its first ``train`` examples, and the next ``validation`` examples as validation split.

    If either number is 0 (all), or there are too few examples, the last tenth is held out. Held-out examples with texts that are
    trained on, or that are in the task's own validation split, are left out: STS-B's own splits share a pair.
    """
    examples = data.train
    start = train if train and 0 < validation <= len(examples) - train else len(examples) - math.ceil(len(examples) / 10)
    taught = examples[:start][: train or None]
    known = {example.texts for example in (*taught, *data.validation)}
    measured = [example for example in examples[start:] if example.texts not in known]
    return replace(data, train=taught, validation=measured[: validation or None])


@dataclass(frozen=True, slots=True)
class Batch:
    """Some examples. ``tokens`` and ``mask`` are int64 (rows, length), ``targets`` int64 (rows,) or float32 for a score."""

    tokens: torch.Tensor
    mask: torch.Tensor
    targets: torch.Tensor


class Examples:
    """One split of a prepared task, tokenized.

    Args:
        folder: as :func:`prepare_task` wrote it.
        split: "train" or "validation".
        tokenizer: of the pretrained model.
        length: tokens of an example at most.

    Raises:
        RunError: the folder does not hold the task.
    """

    def __init__(self, folder: Path, split: str, tokenizer: Tokenizer, length: int) -> None:
        meta, rows = read_split(folder, split)
        self.meta, self.sha256, self.pad = meta, meta["splits"][split]["sha256"], tokenizer.pad_id
        kind = np.float32 if TASKS[meta["task"]].classes == 1 else np.int64
        self.targets = np.array([row[-1] for row in rows], dtype=kind)
        parts = [[encoded.ids for encoded in tokenizer.encode_batch(list(texts))] for texts in zip(*(row[:-1] for row in rows), strict=True)]
        self.rows = [_joined(texts, length, tokenizer.eos_id) for texts in zip(*parts, strict=True)]

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Sequence[int]) -> Batch:
        """The examples with these indices, padded on the right to the longest of them."""
        return Batch(*padded([self.rows[i] for i in indices], self.pad), torch.from_numpy(self.targets[list(indices)]))


def read_split(folder: Path, split: str) -> tuple[dict[str, Any], list[list[Any]]]:
    """``meta.json`` of a prepared task, and the lines of one split.

    Raises:
        RunError: the folder does not hold the task.
    """
    meta = read_json(folder / "meta.json")
    if meta is None or not (folder / f"{split}.jsonl").exists():
        raise RunError(f"{folder} holds no prepared task: delete it and run again")
    return meta, [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def padded(rows: Sequence[np.ndarray], fill: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of tokens as one tensor (rows, length), padded on the right with ``fill``, and its mask; both int64."""
    tokens = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    mask = np.zeros_like(tokens)
    for line, row in enumerate(rows):
        tokens[line, : len(row)], mask[line, : len(row)] = row, 1
    return torch.from_numpy(tokens), torch.from_numpy(mask)


def _joined(texts: Sequence[np.ndarray], length: int, end: int) -> np.ndarray:
    """One row of one or two texts, each followed by the end token; the longer is cut first."""
    kept = [len(text) for text in texts]
    while sum(kept) + len(kept) > length:
        kept[kept.index(max(kept))] -= 1
    return np.concatenate([part for text, n in zip(texts, kept, strict=True) for part in (text[:n], [end])]).astype(np.int64)
