"""Models whose layers share a batch, their twins whose layers do not, and how the two are compared."""

import copy

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from poet import POETConfig, apply_poet
from poet.factors import orthogonal_factors
from poet.model import poet_layers
from poet.step_cache import StepCache

CONFIG = POETConfig(block_size=4, neumann_terms=3)


def build(randomize, depth=3, config=CONFIG):
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(depth)]).double()
    return randomize(apply_poet(model, config, generator=torch.Generator().manual_seed(0)))


def without_cache(model):
    """A twin whose layers compute their own factors."""
    twin = copy.deepcopy(model)
    StepCache.remove_from(twin)
    for _, layer in poet_layers(twin):
        layer._step_cache = None
    return twin


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters()}


def assert_same_gradients(model, twin):
    for name, gradient in gradients(twin).items():
        if not twin.get_parameter(name).requires_grad:
            continue
        torch.testing.assert_close(gradients(model)[name], gradient, rtol=1e-11, atol=1e-12)


def assert_fresh(model):
    """Every layer, called alone, uses factors of its present parameters, with and without a graph."""
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for _, layer in poet_layers(model):
                for found, skew in zip(layer.factors(), (layer.skew_r, layer.skew_p), strict=True):
                    expected = orthogonal_factors(skew, layer.config.neumann_terms)
                    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)


class Checkpointed(nn.Module):
    """Three layers; which of them are checkpointed is chosen."""

    def __init__(self, which, reentrant):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.which, self.reentrant = which, reentrant

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            if index in self.which:
                x = checkpoint(layer, x, use_reentrant=self.reentrant)
            else:
                x = layer(x)
            x = torch.tanh(x)
        return x
