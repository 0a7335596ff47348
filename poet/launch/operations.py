"""The matrix products of a training step, counted from shapes without computing anything."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from poet.methods import get_method
from poet.methods.contract import Method, parse_parameters
from poet.model import merge_and_reinitialize, poet_layers
from poet.training.llama import build_llama
from poet.training.spec import RunSpec


def on_meta(spec: RunSpec) -> tuple[Method, nn.Module]:
    """A run's method, and the model that it has prepared, on the meta device.

    Raises:
        ValueError: the method refuses the parameters or the model.
    """
    cls = get_method(spec.method)
    method = cls(parse_parameters(cls, spec.parameters), weight_decay=spec.weight_decay)
    return method, method.prepare(build_llama(spec.architecture, device="meta"), seed=0)


def operations_per_step(spec: RunSpec) -> int:
    """Floating-point operations of the matrix products of one optimizer step; a multiply and an add are two.

    Counted in a forward and a backward pass of one micro-batch on the meta device, times the number of micro-batches. POET's
    factors and transforms are included, and so are its merges, spread over the steps of the run. Attention is counted over all
    pairs of tokens. Not counted: elementwise operations, matrix decompositions (the exact Cayley map's solve), products in the
    optimizer (GaLore's projections, Muon's iteration), and evaluation.

    Raises:
        ValueError: the method refuses the parameters or the model.
    """
    _, model = on_meta(spec)
    rows, length = spec.batch_rows // spec.accumulation, spec.architecture.sequence_length
    tokens = torch.zeros(rows, length, dtype=torch.long, device="meta")
    # A ready mask: to make one, transformers would read values, which the meta device lacks.
    mask = torch.ones(1, 1, length, length, dtype=torch.bool, device="meta")
    with FlopCounterMode(display=False) as micro_batch:
        model(input_ids=tokens, attention_mask=mask).logits.sum().backward()
    operations = spec.accumulation * micro_batch.get_total_flops()
    if (layer := next((layer for _, layer in poet_layers(model)), None)) is not None:
        with FlopCounterMode(display=False) as merge:
            merge_and_reinitialize(model)
        operations += round(merge.get_total_flops() * (spec.steps // layer.config.merge_every) / spec.steps)
    return operations
