"""The small orthogonal factors of a whole model, computed in one batch per block size and once per optimizer step.

A model has hundreds of small skew-symmetric matrices. Mapping them layer by layer costs a dozen kernel launches each;
mapping all of one block size together costs a dozen in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from poet.kernels import cayley_neumann, skew
from poet.kernels.dispatch import full_precision, wide
from poet.orthogonal import block_size_of, cayley

#: Numbers in the matrices that are mapped at a time: on a CPU what its caches hold, for each core; on a GPU enough to fill it.
CHUNK = {"cpu": 2**19, "cuda": 2**26}


def version(tensor: Tensor) -> int:
    """How often a tensor was written to, as far as it is counted: tensors made in inference mode do not count."""
    return -1 if tensor.is_inference() else tensor._version


def _has_numbers(tensor: Tensor) -> bool:
    """Whether PyTorch's functions may be called at once: tensors without numbers (FakeTensor) need operators.

    What an operation makes of it is asked: where tensors are simulated, real ones may be taken too.
    """
    return type(tensor.detach()) is Tensor


def _directly(packed: Tensor) -> bool:
    """Whether a map goes without operators, which choose a GPU's kernel and on a CPU only cost time."""
    return packed.device.type == "cpu" and _has_numbers(packed)


def _unpacked(packed: Tensor) -> Tensor:
    """(blocks, b, b), in :func:`wide` precision."""
    unpack = skew.skew_unpack_reference if _has_numbers(packed) else skew.skew_unpack
    return unpack(packed.to(wide(packed.dtype)), block_size_of(packed.shape[1]))


def _packed(by_q: Tensor) -> Tensor:
    """The adjoint of :func:`_unpacked`."""
    return (skew.skew_pack_reference if _has_numbers(by_q) else skew.skew_pack)(by_q, True)


def _in_chunks(function: Callable[..., Tensor], *batches: Tensor, b: int) -> Tensor:
    """``function`` of the batches, some b x b matrices at a time."""
    count, device = len(batches[0]), batches[0].device.type
    cores = torch.get_num_threads() if device == "cpu" else 1
    size = max(1, cores * CHUNK.get(device, CHUNK["cuda"]) // (b * b))
    if count <= size:
        return function(*batches)
    result = None
    for first in range(0, count, size):
        part = function(*(batch[first : first + size] for batch in batches))
        if result is None:
            result = part.new_empty(count, *part.shape[1:])
        result[first : first + size] = part
    return result


@torch.no_grad()
def orthogonal_factors(packed: Tensor | None, terms: int | None) -> Tensor | None:
    """Orthogonal blocks from packed skew matrices; :func:`batched_factors` is the same with a derivative.

    Args:
        packed: (blocks, b(b-1)/2), or None for an identity side.
        terms: k of the Cayley-Neumann map, or None for the exact Cayley map.

    Returns:
        (blocks, b, b), or None.
    """
    if packed is None:
        return None
    b, directly = block_size_of(packed.shape[1]), _directly(packed)

    def blocks(packed: Tensor) -> Tensor:
        if not directly:
            q = skew.skew_unpack(packed, b)
            return cayley(q) if terms is None else cayley_neumann.cayley_neumann(q, terms)
        q = _unpacked(packed)
        mapped = cayley(q) if terms is None else cayley_neumann.series(q, terms, cayley_neumann.even_sums(q, terms))
        return mapped.to(packed.dtype)

    with full_precision(packed.device.type):
        return _in_chunks(blocks, packed, b=b)


@torch.no_grad()
def _pull_back(packed: Tensor, grad: Tensor, terms: int | None) -> Tensor:
    """Gradient with respect to ``packed`` (blocks, b(b-1)/2), given that with respect to the blocks (blocks, b, b)."""
    b, directly = grad.shape[-1], _directly(packed)

    def pulled(packed: Tensor, grad: Tensor) -> Tensor:
        if not directly:
            q = skew.skew_unpack(packed, b)
            exact = terms is None
            by_q = _gradient(q, grad, None, None) if exact else cayley_neumann.cayley_neumann_pullback(q, grad, terms)
            return skew.skew_pack(by_q, True)
        q = _unpacked(packed)
        sums = None if terms is None else cayley_neumann.even_sums(q, terms)
        return _packed(_gradient(q, grad.to(q.dtype), terms, sums)).to(packed.dtype)

    with full_precision(packed.device.type):
        return _in_chunks(pulled, packed, grad, b=b)


def _gradient(q: Tensor, grad: Tensor, terms: int | None, sums: list[Tensor] | None) -> Tensor:
    """What the map pulls ``grad`` back to, to be packed; ``sums``: its even sums, None for the exact Cayley map."""
    if terms is not None:
        return cayley_neumann.series_gradient(q, grad, terms, sums)
    q = q.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(cayley(q), q, grad)[0]


class HeldFactors:
    """The factors of a batch of small blocks, with what their pull-back shares with them kept.

    After each merge Q = 0 and R = I for a step: then, on a CPU, nothing is multiplied.

    Args:
        packed: (blocks, b(b-1)/2). Half precision is computed, and kept, in fp32.
        terms: k of the Cayley-Neumann map, or None for the exact Cayley map.

    Attributes:
        shape: (blocks, b, b).
        blocks: of that shape, or None where all are the identity.
    """

    @torch.no_grad()
    def __init__(self, packed: Tensor, terms: int | None) -> None:
        self._terms, b = terms, block_size_of(packed.shape[1])
        self.shape, self.blocks = (len(packed), b, b), None
        # To ask a GPU is to wait for it. The first number of each block mostly is answer enough.
        if _has_numbers(packed) and packed.device.type == "cpu" and not packed[:, :1].any() and not packed.any():
            return
        self._q, self._sums = _unpacked(packed), None
        if terms is None:
            self.blocks = cayley(self._q)
        else:
            self._sums = cayley_neumann.even_sums(self._q, terms)
            self.blocks = cayley_neumann.series(self._q, terms, self._sums)

    @torch.no_grad()
    def pull_back(self, grad: Tensor) -> Tensor:
        """Gradient with respect to ``packed``, given that with respect to ``blocks``."""
        if self.blocks is None:  # R = I + 2Q + ..., but for k = 0
            by_q = grad if self._terms == 0 else 2 * grad
        else:
            by_q = _gradient(self._q, grad, self._terms, self._sums)
        return _packed(by_q)


class _BatchedFactors(torch.autograd.Function):
    """Factors of several layers of one block size, mapped in one batch in both directions.

    Saves no tensor: backward unpacks again. So the node can be used any number of times (several losses, gradient
    accumulation, activation checkpointing).
    """

    @staticmethod
    def forward(ctx, terms, *skews):
        ctx.set_materialize_grads(False)
        ctx.terms, ctx.skews, ctx.versions = terms, skews, [version(s) for s in skews]
        blocks = orthogonal_factors(skews[0] if len(skews) == 1 else torch.cat(skews), terms)
        # Parts of one tensor, but no views to autograd, which would have to track them.
        return torch.unsafe_split_with_sizes(blocks, [len(s) for s in skews])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        if ctx.versions != [version(s) for s in ctx.skews]:
            raise RuntimeError("a packed skew matrix was modified in place between forward and backward")
        result = [None] * len(gradients)
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if used:
            packed = torch.cat([ctx.skews[i].detach() for i in used])
            pulled = _pull_back(packed, torch.cat([gradients[i] for i in used]), ctx.terms)
            for i, part in zip(used, pulled.split([len(ctx.skews[i]) for i in used]), strict=True):
                result[i] = part
        return None, *result


def batched_factors(skews: Sequence[Tensor], terms: int | None) -> tuple[Tensor, ...]:
    """:func:`orthogonal_factors` of several packed matrices of one block size; once differentiable.

    Args:
        skews: (blocks_i, b(b-1)/2) each, one b, one dtype, one device.
        terms: k, or None for the exact Cayley map.

    Returns:
        (blocks_i, b, b) each.
    """
    if torch.compiler.is_compiling():  # operators that a graph can hold; what to keep for backward is the compiler's choice
        sizes = [len(s) for s in skews]
        with full_precision(skews[0].device.type):
            q = skew.skew_unpack(torch.cat(list(skews)), block_size_of(skews[0].shape[1]))
            return (cayley(q) if terms is None else cayley_neumann.cayley_neumann(q, terms)).split(sizes)
    return _BatchedFactors.apply(terms, *skews)
