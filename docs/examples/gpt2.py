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
                linear.weight._is_hf_initialized = getattr(layer.weight, "_is_hf_initialized", False)  # so that apply_poet knows trained weights
                linear.bias = layer.bias
                setattr(module, name, linear)
    return model


def gpt2_again(model: nn.Module) -> nn.Module:
    """Put Conv1D back, after export_dense: transformers can then load what is saved."""
    for module in list(model.modules()):
        for name, linear in list(module.named_children()):
            if name in ("c_attn", "q_attn", "c_fc", "c_proj"):
                layer = Conv1D(linear.out_features, linear.in_features)
                layer.weight = nn.Parameter(linear.weight.detach().T.contiguous())
                layer.bias = linear.bias
                setattr(module, name, layer)
    return model
