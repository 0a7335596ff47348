"""What a model's layers share from one optimizer step to the next: their factors, and the weights of small layers."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from poet.batching import SMALL, by_block_size, by_shape, stack
from poet.factors import batched_factors, version
from poet.kernels.block_transform import block_transform, block_transform_pullback
from poet.linear import POETLinear

Factors = tuple[Tensor | None, Tensor | None]


class _Group:
    """Base weights and permutations of small layers of one shape in one batch: a second copy, until the optimizer's step."""

    def __init__(self, layers: list[POETLinear]) -> None:
        self._bases = [layer.base_weight for layer in layers]
        self._versions = [version(base) for base in self._bases]
        orders = [layer.orders() for layer in layers]
        self.weight = stack(self._bases)
        self.order_out, _, self.order_in, self.inverse_in = map(stack, zip(*orders, strict=True))

    def require_unchanged(self) -> None:
        """
        Raises:
            RuntimeError: a base weight was written to since.
        """
        if self._versions != [version(base) for base in self._bases]:
            raise RuntimeError("a base weight was modified in place between forward and backward")


class _BatchedWeights(torch.autograd.Function):
    """Effective weights of small layers of one shape, built in one batch in both directions.

    Saves no tensor, so that the node can be used any number of times (see ``poet.factors``). It holds tensors and no
    layers: a layer knows the cache that knows this node, and nobody could free the circle.
    """

    @staticmethod
    def forward(ctx, group, *factors):
        ctx.set_materialize_grads(False)
        ctx.group, ctx.factors = group, [None if f is None else f.detach() for f in factors]
        g_r, g_p = stack(factors[::2]), stack(factors[1::2])
        built = block_transform(group.weight, g_r, g_p, group.order_out, group.order_in, group.inverse_in)
        return tuple(torch.unbind_copy(built))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        group = ctx.group
        group.require_unchanged()
        result = [None] * len(ctx.factors)
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if used:
            tensors = (group.weight, group.order_out, group.order_in)
            if len(used) < len(gradients):
                tensors = (None if tensor is None else tensor[used] for tensor in tensors)
            weight, order_out, order_in = tensors
            blocks = [stack([ctx.factors[2 * i + side] for i in used]) for side in (0, 1)]
            grad = stack([gradients[i] for i in used])
            pulled = block_transform_pullback(weight, *blocks, grad, order_out, order_in)
            for side, (g, gradient) in enumerate(zip(blocks, pulled, strict=True)):
                if g is not None:
                    for i, part in zip(used, gradient.to(g.dtype).unbind(), strict=True):
                        result[2 * i + side] = part
        return None, *result


class _Batch:
    """The factors of every layer, and the effective weights of the small ones, for one state of the parameters."""

    def __init__(self, layers: list[POETLinear]) -> None:
        self.factors: dict[nn.Parameter, Tensor] = {}
        self.weights: dict[Tensor, Tensor] = {}  # by base weight
        for (terms, *_), skews in by_block_size(layers).items():
            self.factors.update(zip(skews, batched_factors(skews, terms), strict=True))
        for together in by_shape([layer for layer in layers if layer.base_weight.numel() <= SMALL]):
            factors = [g for layer in together for g in self.of(layer)]
            built = _BatchedWeights.apply(_Group(together), *factors)
            self.weights.update(zip((layer.base_weight for layer in together), built, strict=True))

    def of(self, layer: POETLinear) -> Factors:
        return tuple(None if skew is None else self.factors[skew] for skew in (layer.skew_r, layer.skew_p))


class StepCache:
    """Computes every layer's factors at the start of a forward pass of the model that it is hooked on.

    A batch is used for that forward pass, and for whatever backward computes again of it (activation checkpointing). The
    next forward pass takes it over if it goes on accumulating gradients: some parameter has a gradient, no optimizer has
    made a step since, and no parameter has been written to or replaced. A layer that is called alone computes its own.
    Without gradients, a batch ends with its forward pass, and the next one computes anew (to generate text, export the
    model first: ``poet.export_dense``). So nothing is stale, however parameters are changed, with one
    exception: values changed through ``.data`` by hand, and not by an optimizer, amid the accumulation of gradients.
    Under ``torch.compile`` layers compute their own factors, in the graph.
    """

    def __init__(self, layers: list[POETLinear]) -> None:
        self.layers = layers
        self._reset()

    def _reset(self) -> None:
        self._open: _Batch | None = None  # of the forward pass that is under way
        self._kept: _Batch | None = None  # of the last forward pass with gradients
        self._kept_for: list | None = None
        _CACHES.add(self)

    def __getstate__(self) -> dict:
        """Copies of a model compute their own batches."""
        return {"layers": self.layers}

    def __setstate__(self, state: dict) -> None:
        self.layers = state["layers"]
        for layer in self.layers:
            layer._step_cache = self
        self._reset()

    def install(self, model: nn.Module) -> None:
        """Hook on ``model``, taking the place of a cache that an earlier ``apply_poet`` left there."""
        self.remove_from(model)
        model.register_forward_pre_hook(self.begin)
        model.register_forward_hook(self.end, always_call=True)
        for layer in self.layers:
            layer._step_cache = self

    @staticmethod
    def remove_from(model: nn.Module) -> None:
        """Unhook any cache from ``model`` and the modules in it."""
        for module in model.modules():
            for hooks in (module._forward_pre_hooks, module._forward_hooks):
                for key, hook in list(hooks.items()):
                    if isinstance(getattr(hook, "__self__", None), StepCache):
                        del hooks[key]

    def begin(self, *_: object) -> None:
        """The forward pre-hook."""
        if torch.compiler.is_compiling():
            return
        if not torch.is_grad_enabled():
            self._open = _Batch(self.layers)
            return
        if self._kept is None or not self._accumulating() or self._kept_for != self._parameters():
            self._kept, self._kept_for = None, self._parameters()  # the old one is freed before the new one is made
            self._kept = _Batch(self.layers)
        self._open = self._kept

    def end(self, *_: object) -> None:
        """The forward hook, called after an exception too."""
        self._open = None

    def forget(self) -> None:
        """Drop what is kept for the next forward pass."""
        self._kept = self._kept_for = None

    def _accumulating(self) -> bool:
        return any(s is not None and s.grad is not None for layer in self.layers for s in (layer.skew_r, layer.skew_p))

    def _parameters(self) -> list:
        """What shows that a parameter or base weight was written to, replaced, frozen or moved."""
        tensors = (t for layer in self.layers for t in (layer.skew_r, layer.skew_p, layer.base_weight) if t is not None)
        return [(t.data_ptr(), version(t), t.requires_grad, t.dtype) for t in tensors]

    def _batch(self) -> _Batch | None:
        if torch.compiler.is_compiling():
            return None
        if self._open is not None:
            return self._open
        # In backward (activation checkpointing): no parameter may have changed since the forward pass in any case.
        return self._kept if torch._C._current_graph_task_id() != -1 else None

    def factors(self, layer: POETLinear) -> Factors | None:
        """(G_R, G_P) of a layer, or None if it has to compute them."""
        if (batch := self._batch()) is None:
            return None
        skews = (layer.skew_r, layer.skew_p)
        if any(s is not None and not _serves(batch.factors.get(s), s.requires_grad) for s in skews):
            return None
        return batch.of(layer)

    def weight(self, layer: POETLinear) -> Tensor | None:
        """The effective weight of a small layer, or None if the layer has to do without."""
        if (batch := self._batch()) is None or self.factors(layer) is None:
            return None
        trained = any(s is not None and s.requires_grad for s in (layer.skew_r, layer.skew_p))
        weight = batch.weights.get(layer.base_weight)
        return weight if _serves(weight, trained) else None


def _serves(shared: Tensor | None, trained: bool) -> bool:
    """Whether there is such a tensor, with a graph if one is needed now."""
    return shared is not None and (shared.requires_grad or not (trained and torch.is_grad_enabled()))


_CACHES: weakref.WeakSet[StepCache] = weakref.WeakSet()


def _after_any_step(*_: object) -> None:
    """Many optimizers write through ``.data`` or raw pointers, which leaves no trace on the parameters."""
    for cache in list(_CACHES):
        cache.forget()


register_optimizer_step_post_hook(_after_any_step)
