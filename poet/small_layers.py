"""The effective weights of a model's small layers, built in one autograd node for all of them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from poet.batching import by_shape
from poet.factors import HeldFactors, version
from poet.kernels.dispatch import full_precision, wide
from poet.kernels.stacked_transform import StackedTransform
from poet.primitives import Primitive

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


@dataclass(frozen=True, slots=True)
class _Group:
    """Layers of one shape and configuration.

    Attributes:
        numbers: of the layers, in the order in which they were given.
        sides: the primitives of R and P.
        slots: where R's blocks are and P's; None for an identity side.
        bases, orders: the layers' own base weights, and permutations by :data:`_ORDERS`.
        transform: what is laid out of these.
    """

    numbers: list[int]
    sides: tuple[Primitive, Primitive]
    slots: list[_Slot | None]
    bases: list[Tensor]
    orders: list[list[Tensor]]
    transform: StackedTransform

    def of(self, batches: dict[_Batch, Tensor | None]) -> list[Tensor | None]:
        """What a batch has for R and for P."""
        return [slot and slot.of(batches) for slot in self.slots]


def key_of(layer: POETLinear) -> tuple[int, ...]:
    """What a layer's weight is found by: it is that of these very tensors."""
    parameters = layer._parameters  # nn.Module's attributes take their time, and each call of a layer asks
    return id(layer._buffers["base_weight"]), id(parameters["skew_r"]), id(parameters["skew_p"])


class SmallLayers:
    """What a step needs of the layers of :func:`poet.batching.divided`, beside their parameters' values.

    It holds tensors and no layers: a layer knows the cache that knows the node of a forward pass, and nobody could free
    the circle. Base weights and permutations are held a second time.
    """

    def __init__(self, layers: Sequence[POETLinear]) -> None:
        together = by_shape(layers)
        self._keys = [key_of(layer) for group in together for layer in group]
        # Those of one side of one group are neighbours.
        self._batches: dict[_Batch, list[Tensor]] = {}
        self._owners: dict[_Batch, list[int]] = {}  # whose they are: places in the list of keys
        self._groups: list[_Group] = []
        scratches: dict[tuple, Tensor] = {}
        largest = max(len(group) * group[0].base_weight.numel() for group in together)
        for group in together:
            bases = [layer.base_weight for layer in group]
            orders = [[getattr(layer, name) for layer in group] for name in _ORDERS]
            sides = group[0].primitive_r, group[0].primitive_p
            device, dtype = place = bases[0].device, wide(bases[0].dtype)
            if place not in scratches:
                scratches[place] = torch.empty(2, largest, device=device, dtype=dtype)
            blocks = ((side.blocks, side.block_size) for side in sides)
            transform = StackedTransform(torch.stack(bases), *blocks, [*map(torch.stack, orders)], scratches[place])
            slots = [self._slot(group, name) for name in ("skew_r", "skew_p")]
            numbers = [layers.index(layer) for layer in group]
            self._groups.append(_Group(numbers, sides, slots, bases, orders, transform))
        #: The ids of the packed matrices.
        self.parameters = {id(skew) for batch in self._batches.values() for skew in batch}
        self._versions = self._written()

    def _slot(self, layers: list[POETLinear], name: str) -> _Slot | None:
        """Put one side of the next group into its batch."""
        skews = [getattr(layer, name) for layer in layers]
        if skews[0] is None:
            return None
        config, (blocks, size) = layers[0].config, skews[0].shape
        batch = _Batch(config.neumann_terms, size, skews[0].device, skews[0].dtype, config.merge)
        members = self._batches.setdefault(batch, [])
        start = sum(member.shape[0] for member in members)
        members += skews
        first = sum(len(group.bases) for group in self._groups)
        self._owners.setdefault(batch, []).extend(range(first, first + len(layers)))
        return _Slot(batch, start, start + len(layers) * blocks)

    def _written(self) -> list[int]:
        return [version(base) for group in self._groups for base in group.bases]

    def tensors(self) -> list[Tensor]:
        """What it holds that is not the layers' own; many of them are views of few."""
        return [t for group in self._groups for t in vars(group.transform).values() if isinstance(t, Tensor)]

    def require_unchanged(self) -> None:
        """
        Raises:
            RuntimeError: a base weight was written to since.
        """
        if self._versions != self._written():
            raise RuntimeError("a base weight was modified in place between forward and backward")

    def weights(self) -> dict[tuple[int, ...], Tensor]:
        """The effective weight (n, m) of each layer, by :func:`key_of`; once differentiable in the packed matrices."""
        skews = [skew for batch in self._batches.values() for skew in batch]
        weights = list(_SmallWeights.apply(self, *skews))
        if all(skew.requires_grad for skew in skews):
            return dict(zip(self._keys, weights, strict=True))
        trained = set()
        for batch, members in self._batches.items():
            trained.update(owner for owner, skew in zip(self._owners[batch], members, strict=True) if skew.requires_grad)
        for frozen in set(range(len(weights))) - trained:  # one node for all must not give a gradient to each
            weights[frozen] = weights[frozen].detach()
        return dict(zip(self._keys, weights, strict=True))

    @torch.no_grad()
    def merge(self, shuffled: Sequence[tuple[Tensor, Tensor]]) -> SmallLayers:
        """Write merged weights and new permutations to the layers, set R = P = I, and lay out what they are now.

        Args:
            shuffled: a shuffle of the inputs (m,) and of the outputs (n,) of each layer, from which permutations are made.
        """
        after = copy.copy(self)
        after._groups, old, new = [], [], []
        with full_precision(self._groups[0].bases[0].device.type):
            factors = {batch: own.blocks for batch, own in self.factors(merging=True).items()}
            for group in self._groups:
                own = zip(*(shuffled[number] for number in group.numbers), strict=True)
                new_in, new_out = (
                    side.arrange(torch.stack(orders)).to(group.bases[0].device)
                    for side, orders in zip(group.sides, own, strict=True)
                )
                merged = group.transform.merged(*group.of(factors), new_in, new_out)
                orders = new_in, new_in.argsort(1), new_out, new_out.argsort(1)
                after._groups.append(replace(group, transform=group.transform.again(merged, orders)))
                for written, stacked in zip((group.bases, *group.orders), (merged, *orders), strict=True):
                    old += written
                    new += stacked.unbind()
        torch._foreach_copy_(old, new)
        torch._foreach_zero_([skew for batch in self._batches.values() for skew in batch])
        after._versions = after._written()
        return after

    def factors(self, *, merging: bool = False) -> dict[_Batch, HeldFactors]:
        """Those of the present parameters."""
        return {
            batch: HeldFactors(torch.cat(skews), None if merging and batch.merge == "exact" else batch.terms)
            for batch, skews in self._batches.items()
        }

    def build(self, factors: dict[_Batch, HeldFactors]) -> Iterator[tuple[Tensor, Tensor]]:
        """:meth:`StackedTransform.build` of each group."""
        blocks = {batch: own.blocks for batch, own in factors.items()}
        return (group.transform.build(*group.of(blocks)) for group in self._groups)

    def apart(self, built: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The weights of each layer: parts of what was built, but no views to autograd, which would have to track them."""
        parts = (
            torch.unsafe_split(weights, group.transform.outputs) for weights, group in zip(built, self._groups, strict=True)
        )
        return tuple(itertools.chain.from_iterable(parts))

    def pull_back(
        self, factors: dict[_Batch, HeldFactors], pieces: Sequence[Tensor], gradients: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """Gradients of the packed matrices, in the order in which they are mapped, given those of the weights."""
        by_block = {
            batch: torch.empty(own.shape, device=batch.device, dtype=wide(batch.dtype)) for batch, own in factors.items()
        }
        blocks, first = {batch: own.blocks for batch, own in factors.items()}, 0
        for group, held in zip(self._groups, pieces, strict=True):
            own = gradients[first : first + len(group.bases)]
            group.transform.pull_back(*group.of(blocks), held, own, *group.of(by_block))
            first += len(own)
        result = []
        for batch, own in factors.items():
            pulled = own.pull_back(by_block[batch]).to(batch.dtype).split([skew.shape[0] for skew in self._batches[batch]])
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
