"""Probes: what they measure, when, and that a resumed run has the same measurements."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from poet import POETConfig, apply_poet
from poet.model import poet_layers
from poet.launch import loop
from poet.training.errors import RunError
from poet.training.memory import PROJECTIONS
from poet.launch.records import read_probes
from poet.training.probes import PROBES
from poet.training.run import Run
from poet.training.seeds import derive

FS = {"variant": "fs", "budget": 0.5, "merge_every": 4, "poet_lr": 3e-2}
LAYER = "model.layers.1.mlp.down_proj"  # 64 inputs, 32 outputs


@pytest.fixture
def probed(make_spec, data, tmp_path):
    """``probed(**changes)``: (run after training, its probes.npz)."""

    def _probed(**changes):
        spec = make_spec(**changes)
        folder = tmp_path / "results" / "runs" / spec.name
        record = loop.train(spec, data=data, folder=folder, checkpoints=tmp_path / "checkpoints")
        return record, read_probes(tmp_path / "results", spec)

    return _probed


def test_every_probe_covers_every_matrix_at_its_steps(probed):
    steps = {name: (0, 3, 12) for name in PROBES}
    record, found = probed(method="poet", parameters=FS, probes=steps)
    for name in PROBES:
        assert found[f"{name}/steps"].tolist() == [0, 3, 12]
        sides = ("",) if PROBES[name].merged else (".R", ".P")
        keys = {f"{name}/model.layers.{i}.{part}.{p}{side}" for i in range(2) for p in PROJECTIONS for side in sides for part in (("self_attn",) if p[0] in "qkvo" else ("mlp",))}
        assert set(found) & {k for k in found if k.startswith(name)} == keys | {f"{name}/steps"}
    assert found[f"spectrum/{LAYER}"].shape == (3, 32) and found[f"energy/{LAYER}"].shape == (3,)
    assert found[f"rotations/{LAYER}.R"].shape == (3, 3) and found[f"orthogonality/{LAYER}.P"].shape == (3,)
    assert 0 < record["cost"]["probe_seconds"] and "probe" not in record["weights_sha256"]


@pytest.mark.parametrize("parameters", (FS, {"variant": "bs", "block_size": 8, "merge_every": 4, "poet_lr": 3e-2}), ids=("fs", "bs"))
def test_values_are_those_of_the_dense_matrices(make_spec, data, parameters):
    """Against the dense R, W and P of the run's own layers, at a step that merges and at one that does not."""
    spec = make_spec(method="poet", parameters=parameters, probes={name: (3, 4) for name in PROBES})
    run = Run(spec, data, "cpu")
    for step in (3, 4):
        while run.step < step - 1:
            run.train_step()
        before = {}
        original = run.method.after_step

        def keep(at, before=before, original=original):
            before.update({name: layer.rotations() for name, layer in poet_layers(run.model)})
            original(at)

        run.method.after_step = keep
        run.train_step()
        run.method.after_step = original
        taken = {name: dict(run.probes.taken[name])[step] for name in PROBES}
        for name, layer in poet_layers(run.model):
            weight = layer.effective_weight().detach().double().numpy()
            assert np.allclose(taken["spectrum"][name], np.linalg.svd(weight, compute_uv=False), atol=1e-5)
            unit = weight / np.linalg.norm(weight, axis=1, keepdims=True)
            n = len(unit)
            energy = sum(1 / np.linalg.norm(unit[i] - unit[j]) for i in range(n) for j in range(n) if i != j)
            assert taken["energy"][name].item() == pytest.approx(energy, rel=1e-6)
            for side, matrix in zip("RP", before[name], strict=True):
                matrix = matrix.detach().double()
                cosine, trace, square = taken["rotations"][f"{name}.{side}"].tolist()
                eigenvalues = torch.linalg.eigvalsh((matrix + matrix.mT) / 2)
                assert square == pytest.approx(eigenvalues.square().mean().item(), rel=1e-5)
                assert trace == pytest.approx(matrix.trace().item() / len(matrix), rel=1e-5)
                generator = torch.Generator().manual_seed(derive("probing vector", run.spec.seed, name, side))
                vector = torch.randn(len(matrix), generator=generator).double()
                assert cosine < 1 and cosine == pytest.approx((vector @ matrix @ vector / vector.square().sum()).item(), rel=1e-5)
                error = torch.linalg.matrix_norm(matrix @ matrix.T - torch.eye(len(matrix))) / math.sqrt(len(matrix))
                assert taken["orthogonality"][f"{name}.{side}"].item() == pytest.approx(error.item(), rel=1e-3, abs=1e-7)


def test_rotations_start_at_the_identity_and_are_measured_before_the_merge(probed):
    _, found = probed(method="poet", parameters=FS, probes={"rotations": (0, 4, 5), "orthogonality": (0, 4, 5)})
    start, merging, after = found[f"rotations/{LAYER}.R"][:, 1]
    assert start == 1 and merging < 1  # measured after the merge of step 4, it would be the identity again
    assert merging < after < 1  # one step from the new identity against four from the old one
    assert found[f"orthogonality/{LAYER}.R"][0] == 0


def test_every_matrix_and_seed_has_a_vector_of_its_own(llama, randomize):
    model = randomize(apply_poet(llama(), POETConfig(block_size=4), generator=torch.Generator().manual_seed(0)))
    first, second = ("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj")
    model.get_submodule(second).load_state_dict(model.get_submodule(first).state_dict())
    zero, again, one = (PROBES["rotations"].measure(model, seed) for seed in (0, 0, 1))
    assert all(torch.equal(zero[key], again[key]) for key in zero)
    for a, b in ((zero[f"{first}.R"], zero[f"{second}.R"]), (zero[f"{first}.R"], one[f"{first}.R"])):
        assert a[0] != b[0] and torch.equal(a[1:], b[1:])  # one matrix, two vectors


def test_probing_changes_nothing(probed, train_run, make_spec):
    steps = {name: tuple(range(13)) for name in PROBES}
    record, _ = probed(method="poet", parameters=FS, probes=steps)
    plain, _ = train_run(make_spec(method="poet", parameters=FS))
    assert record["weights_sha256"] == plain["weights_sha256"]


def test_a_resumed_run_has_every_measurement_once(make_spec, data, tmp_path, monkeypatch):
    spec = make_spec(method="poet", parameters=FS, probes={"spectrum": (0, 4, 8, 12), "orthogonality": tuple(range(13))})
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    loop.train(spec, data=data, folder=whole / "runs" / spec.name, checkpoints=tmp_path / "c1")
    original, stopped = loop.Run.train_step, []

    def stop(self):
        if self.step == 6 and not stopped:
            stopped.append(True)
            raise SystemExit
        return original(self)

    monkeypatch.setattr(loop.Run, "train_step", stop)
    arguments = {"data": data, "folder": cut / "runs" / spec.name, "checkpoints": tmp_path / "c2", "checkpoint_seconds": 0.0}
    with pytest.raises(SystemExit):
        loop.train(spec, **arguments)
    record = loop.train(spec, **arguments)
    first, second = read_probes(whole, spec), read_probes(cut, spec)
    assert first.keys() == second.keys() and all(np.array_equal(first[k], second[k]) for k in first)
    assert record["held"], "the first step was before the stop"
    name = spec.name
    assert (whole / "runs" / name / "probes.npz").read_bytes() == (cut / "runs" / name / "probes.npz").read_bytes()


def test_a_diverged_run_keeps_what_it_measured(probed):
    record, found = probed(parameters={"lr": 1e6}, clip_norm=1e9, probes={"spectrum": (0, 1, 12), "energy": (0, 12)})
    assert record["status"] == "diverged"
    assert np.isfinite(found[f"spectrum/{LAYER}"][0]).all() and found["spectrum/steps"][0] == 0


@pytest.mark.parametrize(("method", "probe", "said"), (("adamw", "rotations", "measures R and P"), ("lora", "spectrum", "adapters"), ("adamw", "speed", "'speed'")))
def test_what_cannot_be_measured_is_refused_in_a_sentence(make_spec, data, method, probe, said):
    parameters = {"rank": 4} if method == "lora" else {}
    with pytest.raises(RunError, match=said):
        Run(make_spec(method=method, parameters=parameters, probes={probe: (1,)}), data, "cpu")


@pytest.mark.parametrize("harm", ("missing", "cut short", "of an earlier training"))
def test_a_broken_file_is_named_with_its_command(probed, tmp_path, make_spec, harm):
    spec = make_spec(probes={"energy": (0,)})
    probed(probes={"energy": (0,)})
    path = tmp_path / "results" / "runs" / spec.name / "probes.npz"
    whole = path.read_bytes()
    if harm == "missing":
        path.unlink()
    elif harm == "cut short":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        np.savez(path, **{"energy/steps": np.array([0])})
    with pytest.raises(RunError, match=f"run {spec.name} .*snakemake --cores 1 --force .*record.json"):
        read_probes(tmp_path / "results", spec)


def test_a_spec_without_probes_writes_no_file(train_run, make_spec):
    _, folder = train_run(dataclasses.replace(make_spec(), probes={}))
    assert not (folder / "probes.npz").exists()


@pytest.mark.parametrize("name", ["spectrum", "energy"])
def test_a_weight_that_is_not_finite_is_measured_as_nan_and_the_others_as_they_are(make_spec, data, name):
    model = Run(make_spec(), data, "cpu").model
    model.model.layers[0].mlp.up_proj.weight.data[0, 0] = math.nan
    found = PROBES[name].measure(model, 0)
    assert found["model.layers.0.mlp.up_proj"].isnan().all() and found["model.layers.1.mlp.up_proj"].isfinite().all()
