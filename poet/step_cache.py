"""What a model's layers share from one optimizer step to the next: their factors, and the weights of small layers."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor, distributed as dist, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from poet.batching import by_block_size, divided
from poet.factors import batched_factors, version
from poet.linear import POETLinear
from poet.small_layers import SmallLayers, key_of

Factors = tuple[Tensor | None, Tensor | None]


class _Batch:
    """The effective weights of small layers and the factors of the others, for one state of the parameters."""

    def __init__(self, small: SmallLayers | None, others: list[POETLinear]) -> None:
        self.weights = {} if small is None else small.weights()
        self.factors: dict[nn.Parameter, Tensor] = {}
        for (terms, *_), skews in by_block_size(others).items():
            self.factors.update(zip(skews, batched_factors(skews, terms), strict=True))

    def of(self, layer: POETLinear) -> Factors:
        return tuple(None if skew is None else self.factors[skew] for skew in (layer.skew_r, layer.skew_p))


class StepCache:
    """Computes every layer's factors, or weight, at the start of a forward pass of the model that it is hooked on.

    A batch is used for that forward pass, and for whatever backward computes again of it (activation checkpointing). The
    next forward pass takes it over if it goes on accumulating gradients: some parameter has a gradient, no optimizer has
    made a step since, and no parameter has been written to or replaced. A layer that is called alone computes its own.
    Without gradients, a batch ends with its forward pass, and the next one computes anew (to generate text, export the
    model first: ``poet.export_dense``). How small layers are laid out (:class:`poet.small_layers.SmallLayers`) is kept from
    a forward pass over a step of an optimizer that trains them to the merge or forward pass after it, if nobody wrote to
    base weights and permutations, in a process that trains alone. So nothing is stale, however parameters and buffers are
    changed, with two exceptions, both of values changed through ``.data`` by hand, and not by an optimizer: amid the
    accumulation of gradients, and base weights and permutations amid such a step.
    Under ``torch.compile`` layers compute their own factors, in the graph.
    """

    def __init__(self, layers: list[POETLinear]) -> None:
        self.layers = layers
        self._reset()

    def _reset(self) -> None:
        self._open: _Batch | None = None  # of the forward pass that is under way
        self._kept: _Batch | None = None  # of the last forward pass with gradients
        self._kept_for: list | None = None
        self._small: SmallLayers | None = None  # of the last forward pass with gradients
        self._laid_out_for: list | None = None
        self._stepped = False  # an optimizer that trains these layers has made a step since
        self.small_layers: list[POETLinear] = []  # of that pass, and the others
        self._others: list[POETLinear] = []
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
            small, others = divided(self.layers)
            self._open = _Batch(SmallLayers(small) if small else None, others)
            return
        now = self._fixed(), self._trained()
        if self._kept is None or not self._accumulating() or self._kept_for != now:
            self._kept = self._kept_for = None  # the old one is freed before the new one is made
            self._kept, self._kept_for = _Batch(self._laid_out(now[0]), self._others), now
            self._stepped = False
        self._open = self._kept

    def _laid_out(self, fixed: list[tuple]) -> SmallLayers | None:
        """The small layers, laid out before if nothing speaks against it."""
        if not self._stepped or self._laid_out_for != fixed or _broadcasts():
            self.small_layers, self._others = divided(self.layers)
            self._small = SmallLayers(self.small_layers) if self.small_layers else None
            self._laid_out_for = fixed
        return self._small

    def merge(self, shuffled: list[tuple[Tensor, Tensor]]) -> None:
        """:meth:`poet.small_layers.SmallLayers.merge` of the small layers, which are laid out for the next pass then."""
        self._small = self._laid_out(self._fixed()).merge(shuffled)
        self._laid_out_for = self._fixed()

    def forget(self) -> None:
        """Drop everything that is kept: the layers are being moved."""
        self._kept = self._kept_for = self._small = self._laid_out_for = None

    def tensors(self) -> list[Tensor]:
        """What is held from one step to the next, beside the layers' own parameters and buffers."""
        return [] if self._small is None else self._small.tensors()

    def end(self, *_: object) -> None:
        """The forward hook, called after an exception too."""
        self._open = None

    def after_step(self, trained: set[int]) -> None:
        """Drop what is kept for the next forward pass.

        Args:
            trained: the ids of the parameters that an optimizer has made a step with.
        """
        self._kept = self._kept_for = None
        self._stepped = self._stepped or (self._small is not None and not self._small.parameters.isdisjoint(trained))

    def _accumulating(self) -> bool:
        return any(s is not None and s.grad is not None for layer in self.layers for s in (layer.skew_r, layer.skew_p))

    def _trained(self) -> list[tuple]:
        """What shows that a parameter was written to, replaced, frozen or moved."""
        skews = (layer._parameters[name] for layer in self.layers for name in ("skew_r", "skew_p"))
        return [(id(s), s.data_ptr(), version(s), s.requires_grad, s.dtype) for s in skews if s is not None]

    def _fixed(self) -> list[tuple]:
        """What shows that a base weight or a permutation was written to, replaced or moved, or a parameter replaced."""
        tensors = (layer._buffers[name] for layer in self.layers for name in ("base_weight", "order_in", "order_out"))
        skews = (layer._parameters[name] for layer in self.layers for name in ("skew_r", "skew_p"))
        # Writes to tensors that were made in inference mode are not counted: those never are what they were.
        return [
            *((id(t), t.data_ptr(), object() if t.is_inference() else t._version, t.dtype) for t in tensors),
            *((id(s), None if s is None else s.dtype) for s in skews),
        ]

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
        if (batch := self._batch()) is None or (weight := batch.weights.get(key_of(layer))) is None:
            return None
        if weight.requires_grad:
            return weight
        trained = any(s is not None and s.requires_grad for s in (layer.skew_r, layer.skew_p))
        return weight if _serves(weight, trained) else None


def _broadcasts() -> bool:
    """Whether other processes may write to buffers: DistributedDataParallel's broadcast leaves no trace on them."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _serves(shared: Tensor | None, trained: bool) -> bool:
    """Whether there is such a tensor, with a graph if one is needed now."""
    return shared is not None and (shared.requires_grad or not (trained and torch.is_grad_enabled()))


_CACHES: weakref.WeakSet[StepCache] = weakref.WeakSet()


def _after_any_step(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Many optimizers write through ``.data`` or raw pointers, which leaves no trace on the parameters."""
    if caches := list(_CACHES):
        trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for cache in caches:
            cache.after_step(trained)


register_optimizer_step_post_hook(_after_any_step)
