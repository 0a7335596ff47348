"""A wrapped pretrained model computes what it did, trains, and becomes a plain model again. One layer's view: tests/test_linear.py."""

import pytest
import torch

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, parameter_groups
from poet.model import poet_layers
from tests.finetuning.pretrained import HEADS, VARIANTS, batch, build, logits

#: Each model with one variant: adapters are tried with both.
PAIRS = pytest.mark.parametrize(("name", "variant"), (("LLaMA", "bs"), ("LLaMA classifier", "fs"), ("BERT classifier", "bs"), ("BART", "fs")))
#: How many layers POET takes: seven of a LLaMA block, six of a BERT block and the pooler, six and ten of BART's.
LAYERS = {"LLaMA": 14, "LLaMA classifier": 14, "BERT classifier": 13, "BART": 16}


def wrapped(name, config):
    model = build(name)
    return apply_poet(model, config, exclude=HEADS.get(name, ("lm_head",)), generator=torch.Generator().manual_seed(0))


def trained(model, rows, config, steps):
    """Losses of some steps, with the merges that the configuration asks for."""
    optimizer = torch.optim.AdamW(parameter_groups(model, lr=3e-3, poet_lr=1e-2))
    merges, losses = MergeSchedule(model, config, optimizer), []
    for step in range(steps):
        loss = model.train()(**rows).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        merges.after_step(step)
        losses.append(loss.item())
    return losses


@PAIRS
def test_wrapping_keeps_the_function(name, variant):
    """The weights are the same bit for bit. Logits differ by how nn.Linear rounds its bias."""
    model, rows = build(name), batch(name)
    weights = {n: p.detach().clone() for n, p in model.named_parameters()}
    before = logits(model, rows)
    apply_poet(model, VARIANTS[variant], exclude=HEADS.get(name, ("lm_head",)))
    found = dict(poet_layers(model))
    assert len(found) == LAYERS[name]
    for layer_name, layer in found.items():
        assert torch.equal(layer.effective_weight(), weights[f"{layer_name}.weight"])
    assert before.abs().max() > 0.1
    assert (logits(model, rows) - before).abs().max() < 1e-6 * before.abs().max()


@PAIRS
def test_a_finetuned_model_opens_in_plain_transformers(name, variant, tmp_path):
    """It learns its rows, across merges."""
    config, rows = POETConfig(**{**VARIANTS[variant].meaning(), "init": "keep", "merge_every": 6}), batch(name)
    model = wrapped(name, config)
    losses = trained(model, rows, config, steps=15)
    assert losses[-1] < 0.7 * losses[0]
    expected = logits(model, rows)
    assert (expected - logits(build(name), rows)).abs().max() > 0.1
    export_dense(model).save_pretrained(tmp_path)
    plain, report = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not list(poet_layers(plain))
    torch.testing.assert_close(logits(plain, rows), expected, rtol=1e-4, atol=1e-4)  # fp32, with the factors applied once
