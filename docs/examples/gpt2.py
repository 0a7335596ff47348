"""GPT-2's linear layers are of a class of their own, Conv1D, which stores its weight as (in, out)."""

from torch import nn
from transformers.pytorch_utils import Conv1D


def plain_linear(model: nn.Module) -> nn.Module:
    """Put nn.Linear with the same weight and bias in the place of every Conv1D, and return the model."""
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, Conv1D):
                linear = nn.Linear(*layer.weight.shape)
                linear.weight = nn.Parameter(layer.weight.detach().T.contiguous())
                linear.bias = layer.bias
                setattr(module, name, linear)
    return model
