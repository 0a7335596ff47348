"""What the tests of the method, the methods and the training share."""

import json
import os
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import poet as poet_package

if not torch.cuda.is_available():
    # GPU kernels run in Triton's interpreter. Triton reads this when it is imported, which importing poet does not do.
    os.environ.setdefault("TRITON_INTERPRET", "1")

VOCABULARY, LENGTH = 64, 16
#: What the synthetic rows say of themselves, and what runs ask for.
DESCRIPTION = {"corpus": "synthetic"}


def pytest_collection_modifyitems(items):
    """The files that take longest go first: two workers then end together. By name, those that train in processes would come last."""
    first = ("test_smoke.py", "workflow", "kernels", "launch", "training", "support")
    items.sort(key=lambda item: next((place for place, part in enumerate(first) if part in item.path.parts), len(first)))


@pytest.fixture(autouse=True)
def _reproducible():
    """One thread and a fixed seed: a failure is the same failure everywhere."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _no_power_cuts():
    """A sync takes milliseconds, and the tests write thousands of files; none of them cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds the ``poet`` under test."""
    return Path(poet_package.__file__).resolve().parents[1]


def _skew(packed):
    """Q from its strictly upper triangle, row by row, as a loop."""
    size = 1
    while size * (size - 1) // 2 < packed.shape[-1]:
        size += 1
    q = packed.new_zeros(*packed.shape[:-1], size, size)
    entry = 0
    for i in range(size):
        for j in range(i + 1, size):
            unit = packed.new_zeros(size, size)
            unit[i, j], unit[j, i] = 1.0, -1.0
            q = q + packed[..., entry, None, None] * unit
            entry += 1
    return q


def _cayley(q, terms):
    """Equation (cnp) literally: (I + Q) times the sum of Q^i for i = 0..k, or the inverse for None."""
    identity = torch.eye(q.shape[-1], dtype=q.dtype).expand_as(q)
    if terms is None:
        return (identity + q) @ torch.linalg.inv(identity - q)
    total, power = identity, identity
    for _ in range(terms):
        power = power @ q
        total = total + power
    return (identity + q) @ total


def _primitive(blocks, order, size):
    """G of Equations (fs_spo) and (bs_spo): I + D(S) (G~ - I) D(S)^T, block after block."""
    total = torch.eye(size, dtype=torch.float64)
    if blocks is None:
        return total
    b = blocks.shape[-1]
    for j, block in enumerate(blocks):
        selection = torch.zeros(size, b, dtype=torch.float64)
        for column, coordinate in enumerate(order[j * b : (j + 1) * b].tolist()):
            selection[coordinate, column] = 1.0
        total = total + selection @ (block - torch.eye(b, dtype=block.dtype)) @ selection.T
    return total


def _natural_weight(layer):
    """The paper's W (in, out) of a POETLinear, out of the permuted basis."""
    natural = torch.empty_like(layer.base_weight)
    natural[layer.permutation_out[:, None], layer.permutation_in[None, :]] = layer.base_weight
    return natural.T


def _dense(layer, skew_r, skew_p):
    """(R, W, P) of a layer in fp64, from the definitions alone."""
    terms = layer.config.neumann_terms
    g_r, g_p = (None if s is None else _cayley(_skew(s), terms) for s in (skew_r, skew_p))
    r = _primitive(g_r, layer.permutation_in, layer.in_features)
    p = _primitive(g_p, layer.permutation_out, layer.out_features)
    return r, _natural_weight(layer), p


@pytest.fixture(scope="session")
def reference():
    """The paper's definitions, written as slowly and as literally as possible."""
    return types.SimpleNamespace(
        skew=_skew, cayley=_cayley, primitive=_primitive, dense=_dense, base=_natural_weight
    )


@pytest.fixture(scope="session")
def randomize():
    """``randomize(module, scale, seed)`` gives every packed skew matrix (and bias) random values."""

    def _randomize(module, scale=0.1, seed=0):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if "skew" in name or name.endswith("bias"):
                    drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                    parameter.copy_(scale * drawn)
        return module

    return _randomize


@pytest.fixture(scope="session")
def architecture():
    """A decoder so small that a step takes milliseconds."""
    from poet.training.spec import Architecture

    return Architecture(
        hidden_size=32, intermediate_size=64, layers=2, heads=2, vocabulary=VOCABULARY, sequence_length=LENGTH
    )


@pytest.fixture
def llama(architecture):
    """``llama(seed)`` builds the tiny decoder."""
    from poet.training.llama import build_llama

    return lambda seed=0: build_llama(architecture, seed=seed)


@pytest.fixture
def tokens():
    """(4, T) tokens that follow a learnable pattern."""
    return 1 + (torch.arange(4)[:, None] * 7 + torch.arange(LENGTH)[None, :] * 3) % (VOCABULARY - 1)


def _rows(count, seed):
    generator = np.random.default_rng(seed)
    start, stride = generator.integers(0, 63, (count, 1)), generator.integers(1, 4, (count, 1))
    rows = (1 + (start + stride * np.arange(LENGTH)) % (VOCABULARY - 1)).astype(np.uint16)
    for row, length in zip(rows, generator.integers(LENGTH // 2, LENGTH + 1, count), strict=True):
        row[length:] = 0
    return rows


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A prepared folder: padded rows of arithmetic sequences."""
    folder = tmp_path_factory.mktemp("rows")
    splits = {}
    for split, count in (("train", 40), ("validation", 10)):
        np.save(folder / f"{split}.npy", _rows(count, seed=count))
        splits[split] = {"rows": count, "sha256": split}
    meta = {"data": DESCRIPTION, "sequence_length": LENGTH, "tokenizer": {"vocab_size": VOCABULARY, "pad_id": 0}, "splits": splits}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


@pytest.fixture(scope="session")
def make_spec(architecture):
    """``make_spec(**changes)``: a run of 12 steps."""
    from poet.training.spec import RunSpec

    def _make(**changes):
        values = {
            "scale": "test",
            "model": "tiny",
            "variant": changes.get("method", "adamw"),
            "architecture": architecture,
            "method": "adamw",
            "parameters": {},
            "data": DESCRIPTION,
            "batch_rows": 4,
            "accumulation": 1,
            "steps": 12,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            "minimum_lr_ratio": 0.01,
            "warmup_steps": 0,
            "precision": "fp32",
            "evaluate_every": 4,
            "evaluation_rows": 6,
            "final_evaluation_rows": 0,
            "seed": 0,
        }
        return RunSpec(**{**values, **changes})

    return _make


@pytest.fixture
def train_run(data, tmp_path):
    """``train_run(spec, name)`` trains into ``tmp_path/name`` and returns (record, folder)."""
    from poet.launch.loop import train

    def _train(spec, name="run", **options):
        folder = tmp_path / name
        checkpoints = tmp_path / f"{name}-checkpoints"
        record = train(spec, data=data, folder=folder, checkpoints=checkpoints, **options)
        return record, folder

    return _train
