"""The two ways to save that docs/support.md shows, from a pretrained folder to a loaded model."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from poet.model import poet_layers
from tests.finetuning.pretrained import SIZES, batch, logits
from tests.modules import load

ROWS = batch("LLaMA classifier")


@pytest.fixture
def pretrained(tmp_path):
    """A language model without a classifier's head."""
    LlamaForCausalLM(LlamaConfig(**SIZES | {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1})).save_pretrained(tmp_path / "pretrained")
    return tmp_path / "pretrained"


def test_adapter(pretrained, tmp_path):
    def train(model, parameters):
        optimizer = torch.optim.AdamW(parameters, lr=1e-2)
        for _ in range(3):
            model(**ROWS).loss.backward()
            optimizer.step()
            model.zero_grad()
        trained.append(logits(model, ROWS))

    trained, shown = [], load("docs/examples/adapter.py")
    shown.finetune(pretrained, train, tmp_path / "adapter")
    assert torch.equal(logits(shown.load(pretrained, tmp_path / "adapter"), ROWS), trained[0])


def test_export(pretrained, tmp_path):
    def train(model, optimizer, merges):
        layer = model.model.layers[0].mlp.up_proj
        before = layer.base_weight.detach().clone()
        for step in range(397, 402):
            model(**ROWS).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            merges.after_step(step)
        assert not torch.equal(layer.base_weight, before)  # merged
        trained.append(logits(model, ROWS))

    trained, shown = [], load("docs/examples/export.py")
    shown.finetune(pretrained, train, tmp_path / "whole")
    plain = shown.load(tmp_path / "whole")
    assert not list(poet_layers(plain))
    torch.testing.assert_close(logits(plain, ROWS), trained[0], rtol=1e-5, atol=1e-5)  # fp32, with the factors applied once
