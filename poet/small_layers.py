"""The effective weights of a model's small layers, built in one autograd node for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from poet.batching import by_shape
from poet.factors import HeldFactors, version
from poet.kernels.dispatch import full_precision, wide
from poet.kernels.stacked_transform import Scratch, StackedTransform

if TYPE_CHECKING:
    from poet.linear import POETLinear

_ORDERS = ("order_in", "inverse_in", "order_out", "inverse_out")


class _Batch(NamedTuple):
    """Packed skew matrices that one call maps are alike in these."""

    terms: int | None
    size: int
    device: torch.device
    dtype: torch.dtype
    merge: str


class _Slot(NamedTuple):
    """Where the blocks of one side of the layers of one shape are."""

    batch: _Batch
    start: int
    stop: int

    def of(self, batches: dict[_Batch, Tensor | None]) -> Tensor | None:
        blocks = batches[self.batch]
        return None if blocks is None else blocks[self.start : self.stop]


def key_of(layer: POETLinear) -> tuple[int, ...]:
    """What a layer's weight is found by: it is that of these very tensors."""
    return tuple(map(id, (layer.base_weight, layer.skew_r, layer.skew_p)))


class SmallLayers:
    """What a step needs of layers with at most :data:`poet.batching.SMALL` weights, beside their parameters' values.

    It holds tensors and no layers: a layer knows the cache that knows the node of a forward pass, and nobody could free
    the circle. Base weights and permutations are held a second time.

    Args:
        layers: each with at least one side that is rotated.
    """

    def __init__(self, layers: Sequence[POETLinear]) -> None:
        groups = by_shape(layers)
        self._keys = [key_of(layer) for group in groups for layer in group]
        self._bases = [layer.base_weight for layer in layers]
        self._versions = [version(base) for base in self._bases]
        scratches: dict[tuple, Scratch] = {}
        largest = max(len(group) * group[0].base_weight.numel() for group in groups)
        # Those of one side of one shape are neighbours. Whose they are: numbers of layers in the order of the groups.
        self._batches: dict[_Batch, list[Tensor]] = {}
        self._owners: dict[_Batch, list[int]] = {}
        self._shapes: list[StackedTransform] = []
        self._slots: list[tuple[_Slot | None, _Slot | None]] = []
        first = 0
        for group in groups:
            base = torch.stack([layer.base_weight for layer in group])
            orders = (torch.stack([getattr(layer, name) for layer in group]) for name in _ORDERS)
            blocks = ((p.blocks, p.block_size) for p in (group[0].primitive_r, group[0].primitive_p))
            place = {"device": base.device, "dtype": wide(base.dtype)}
            if (scratch := scratches.get(tuple(place.values()))) is None:
                scratch = scratches[tuple(place.values())] = Scratch(largest, **place)
            self._shapes.append(StackedTransform(base, *blocks, *orders, scratch))
            self._slots.append(tuple(self._slot(group, side, first) for side in ("skew_r", "skew_p")))
            first += len(group)

    def _slot(self, layers: list[POETLinear], side: str, first: int) -> _Slot | None:
        skews = [getattr(layer, side) for layer in layers]
        if skews[0] is None:
            return None
        config, skew = layers[0].config, skews[0]
        batch = _Batch(config.neumann_terms, skew.shape[1], skew.device, skew.dtype, config.merge)
        members = self._batches.setdefault(batch, [])
        start = sum(map(len, members))
        members += skews
        self._owners.setdefault(batch, []).extend(range(first, first + len(layers)))
        return _Slot(batch, start, sum(map(len, members)))

    def require_unchanged(self) -> None:
        """
        Raises:
            RuntimeError: a base weight was written to since.
        """
        if self._versions != [version(base) for base in self._bases]:
            raise RuntimeError("a base weight was modified in place between forward and backward")

    def weights(self) -> dict[tuple[int, ...], Tensor]:
        """The effective weight (n, m) of each layer, by :func:`key_of`; once differentiable in the packed matrices."""
        skews = [skew for batch in self._batches.values() for skew in batch]
        return dict(zip(self._keys, _SmallWeights.apply(self, *skews), strict=True))

    @torch.no_grad()
    def merged(self) -> list[Tensor]:
        """What the effective weights are after a merge (``POETConfig.merge``), (l, n, m), by shape."""
        with full_precision(self._bases[0].device.type):
            built = [built for _, built in self.build(self.factors(merging=True))]
        return [weights.unflatten(0, (shape.count, -1)) for shape, weights in zip(self._shapes, built, strict=True)]

    def factors(self, *, merging: bool = False) -> dict[_Batch, HeldFactors]:
        """Those of the present parameters."""
        return {
            batch: HeldFactors(torch.cat(skews), None if merging and batch.merge == "exact" else batch.terms)
            for batch, skews in self._batches.items()
        }

    def build(self, factors: dict[_Batch, HeldFactors]) -> Iterator[tuple[Tensor, Tensor]]:
        """:meth:`StackedTransform.build` of each shape."""
        blocks = {batch: own.blocks for batch, own in factors.items()}
        for shape, slots in zip(self._shapes, self._slots, strict=True):
            yield shape.build(*(slot and slot.of(blocks) for slot in slots))

    def apart(self, built: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The weights of each layer: parts of what was built, but no views to autograd, which would have to track them."""
        parts = (torch.unsafe_split(weights, shape.outputs) for weights, shape in zip(built, self._shapes, strict=True))
        return tuple(itertools.chain.from_iterable(parts))

    def pull_back(
        self, factors: dict[_Batch, HeldFactors], pieces: Sequence[Tensor], gradients: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """Gradients of the packed matrices, in the order in which they are mapped, given those of the weights."""
        blocks = {batch: own.blocks for batch, own in factors.items()}
        by_block = {
            batch: torch.empty(own.shape, device=batch.device, dtype=wide(batch.dtype)) for batch, own in factors.items()
        }
        first = 0
        for shape, slots, own in zip(self._shapes, self._slots, pieces, strict=True):
            sides = (slot and slot.of(blocks) for slot in slots)
            results = (slot and slot.of(by_block) for slot in slots)
            shape.pull_back(*sides, own, gradients[first : first + shape.count], *results)
            first += shape.count
        result = []
        for batch, own in factors.items():
            pulled = own.pull_back(by_block[batch]).to(batch.dtype).split([len(skew) for skew in self._batches[batch]])
            used = (gradients[owner] is not None for owner in self._owners[batch])
            result += [part if needed else None for part, needed in zip(pulled, used, strict=True)]
        return result


class _SmallWeights(torch.autograd.Function):
    """Packed skew matrices -> effective weights.

    What the node holds, it does not change, so that it can be used any number of times (several losses, gradient
    accumulation, activation checkpointing).
    """

    @staticmethod
    def forward(ctx, small, *skews):
        ctx.set_materialize_grads(False)
        ctx.small, ctx.skews, ctx.versions = small, skews, [version(s) for s in skews]
        with full_precision(skews[0].device.type):
            ctx.factors = small.factors()
            ctx.pieces, built = zip(*small.build(ctx.factors), strict=True)
        return small.apart(built)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        if ctx.versions != [version(s) for s in ctx.skews]:
            raise RuntimeError("a packed skew matrix was modified in place between forward and backward")
        ctx.small.require_unchanged()
        with full_precision(ctx.skews[0].device.type):
            return None, *ctx.small.pull_back(ctx.factors, ctx.pieces, gradients)
