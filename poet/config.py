"""Hyperparameters of POET."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from poet.checks import check_options
from poet.initialization import INITIALIZATIONS
from poet.primitives import VARIANTS, Primitive

_types = functools.cache(get_type_hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class POETConfig:
    """Hyperparameters of POET. The defaults are among the paper's settings; ``reset_state`` and ``clip_ramp_start``, which are not in it, are as in the authors' code.

    Attributes:
        variant: a name from ``poet.primitives.VARIANTS``: "bs" (block-stochastic SPO, Equation (5)) or "fs" (fully
            stochastic SPO, Equation (4)).
        block_size: b of the block-stochastic variant; must divide both dimensions of every wrapped layer.
        budget: b/m and b/n of the fully stochastic variant, in [0, 1].
        block_size_r, block_size_p: override ``block_size`` for R (inputs) or P (outputs); 0 makes that side the
            identity. R alone is orthogonal training.
        budget_r, budget_p: the same for ``budget`` (Figure 5).
        share_r: of the fully stochastic variant: R's share of a layer's parameters. P gets the rest, and ``budget`` gives the
            total (Figure 5); 1 is orthogonal training.
        neumann_terms: k of the Cayley-Neumann map (Equation (6), Table 7); None is the exact Cayley map.
        merge_every: T_m, optimizer steps between two merges (Table 6).
        merge: "neumann" merges the factors that were trained with; "exact" merges the exact Cayley map of the same
            parameters, so that the singular values are kept to rounding.
        init: a name from ``poet.initialization`` (Table 5), or "keep" to leave the weights as they are, which keeps
            the function of a pretrained model.
        reset_state: zero the optimizer state of R and P at each merge; see :func:`poet.optim.reset_state`.
        clip_ramp_steps, clip_ramp_start: the paper "additionally increase[s] the gradient clipping" for this many steps after a merge (Appendix
            "Training details"). As in the authors' code the threshold drops to ``clip_ramp_start`` of its value and rises
            linearly back; 0 steps switch it off. With ``clip_ramp_steps >= merge_every`` it never comes back to its full value.

    Raises:
        ValueError: on construction, for a value of another type or outside its range; the sentence names the field. :meth:`primitives` checks block sizes.
    """

    variant: str = "bs"
    block_size: int = 256
    budget: float = 0.5
    block_size_r: int | None = None
    block_size_p: int | None = None
    budget_r: float | None = None
    budget_p: float | None = None
    share_r: float | None = None
    neumann_terms: int | None = 3
    merge_every: int = 400
    merge: str = "neumann"
    init: str = "normalized"
    reset_state: bool = True
    clip_ramp_steps: int = 10
    clip_ramp_start: float = 0.1

    def __post_init__(self) -> None:
        for name, wanted in _types(POETConfig).items():
            value = getattr(self, name)
            number = type(value) is int and isinstance(1.0, wanted)  # an int where a float is asked for
            if not number and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
                raise ValueError(f"POETConfig.{name} is of type {getattr(wanted, '__name__', wanted)}, got {value!r}")
        if self.variant not in VARIANTS:
            raise ValueError(f"POETConfig.variant is one of {', '.join(map(repr, VARIANTS))}, got {self.variant!r}")
        if self.merge not in ("neumann", "exact"):
            raise ValueError(f"POETConfig.merge is 'neumann' or 'exact', got {self.merge!r}")
        if self.init not in (*INITIALIZATIONS, "keep"):
            raise ValueError(f"POETConfig.init is one of {', '.join(INITIALIZATIONS)}, keep; got {self.init!r}")
        if self.neumann_terms is not None and self.neumann_terms < 0:
            raise ValueError(f"POETConfig.neumann_terms is 0 or more, or None for exact; got {self.neumann_terms}")
        if self.merge_every < 1:
            raise ValueError(f"POETConfig.merge_every is a number of steps, 1 or more; got {self.merge_every}")
        if self.clip_ramp_steps < 0 or not 0 < self.clip_ramp_start <= 1:
            raise ValueError("POETConfig.clip_ramp_steps is 0 or more and clip_ramp_start in (0, 1]")
        own = VARIANTS[self.variant].options
        check_options(self, POETConfig, own)
        for name in dict.fromkeys(name for variant in VARIANTS.values() for name in variant.options):
            if name not in own and name not in ("block_size", "budget") and getattr(self, name) is not None:
                reads = f"it reads {', '.join(own)}" if own else "it has no options"
                raise ValueError(f"POETConfig.{name} has no meaning with variant={self.variant!r}: {reads}")
        for name in ("budget", "budget_r", "budget_p", "share_r"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"POETConfig.{name} is a share, between 0 and 1; got {value}")
        if self.share_r is not None and (self.budget_r, self.budget_p) != (None, None):
            raise ValueError("POETConfig.share_r splits `budget` of variant='fs': leave budget_r and budget_p unset")

    def primitives(self, in_features: int, out_features: int) -> tuple[Primitive, Primitive]:
        """The primitives of a layer of m = ``in_features`` and n = ``out_features``: R on the inputs, P on the outputs.

        Raises:
            ValueError: a block size or a budget does not fit its dimension.
        """
        variant = VARIANTS[self.variant]
        return variant.sides(in_features, out_features, **{name: getattr(self, name) for name in variant.options})

    def meaning(self) -> dict[str, Any]:
        """The fields that decide what stored parameters mean and how they are merged: all but ``init`` and the options of other variants."""
        unread = {name for variant in VARIANTS.values() for name in variant.options} - set(VARIANTS[self.variant].options)
        return {f.name: getattr(self, f.name) for f in fields(POETConfig) if f.name not in {"init", *unread}}

    def difference(self, other: Mapping[str, Any]) -> str:
        """The first field that differs in ``other`` (a :meth:`meaning`), with both values; empty if none does. Fields that it lacks count as equal."""
        differing = ((name, own, other.get(name, own)) for name, own in self.meaning().items())
        return next((f"{name}={theirs!r} instead of {own!r}" for name, own, theirs in differing if theirs != own), "")
