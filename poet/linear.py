"""POETLinear: a linear layer whose weight is R W0 P with W0 frozen (Equation (3))."""

from __future__ import annotations

import json

import torch
from torch import Tensor, nn

from poet.checks import check_permutations
from poet.config import POETConfig
from poet.initialization import INITIALIZATIONS
from poet.precision import AUTOCAST, autocast_off, wide
from poet.sharding import assign, whole
from poet.transform import EffectiveWeight, EquivalentLinear, Structure, transform


class POETLinear(nn.Module):
    """A drop-in ``nn.Linear`` with weight R W0 P (Equation (3)). R and P start at the identity; they and a bias are trained.

    Parameters: ``skew_r`` and ``skew_p`` of R and P (for blocks (k, b(b-1)/2), the strictly upper triangles of the skew-symmetric
    matrices; None for an identity side), ``bias`` (out,) where there is one, and the frozen ``base_weight`` (out, in) in the permuted
    basis. Buffers: ``permutation_in`` (in,) and ``permutation_out`` (out,), int64. How the weight is computed: :mod:`poet.transform`.

    Args:
        in_features, out_features: m and n.
        config: see :class:`poet.config.POETConfig`.
        bias: add a trainable bias, initialized to zero.
        generator: CPU generator for the initialization and the first permutations; None for torch's global one.
        weight: (out, in), the initial weight with ``config.init == "keep"``; ignored otherwise.
        device, dtype: of the parameters; torch's defaults if None. On "meta" nothing is initialized.

    Raises:
        ValueError: a block size or a budget does not fit its dimension, or ``init="keep"`` without a weight.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        config: POETConfig,
        *,
        bias: bool = False,
        generator: torch.Generator | None = None,
        weight: Tensor | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.config = in_features, out_features, config
        self.primitive_r, self.primitive_p = config.primitives(in_features, out_features)
        self.structure = Structure(self.primitive_r, self.primitive_p, config.neumann_terms)
        place = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        for name, primitive in (("skew_r", self.primitive_r), ("skew_p", self.primitive_p)):
            skew = nn.Parameter(torch.zeros(primitive.shape, **place)) if primitive.parameters else None
            self.register_parameter(name, skew)
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_features, **place)) if bias else None)
        # A frozen parameter, not a buffer: DDP broadcasts buffers at each forward pass, and FSDP2 shards only parameters.
        self.base_weight = nn.Parameter(torch.empty(out_features, in_features, **place), requires_grad=False)
        self.register_buffer("permutation_in", torch.arange(in_features, device=device))
        self.register_buffer("permutation_out", torch.arange(out_features, device=device))
        if config.init == "keep" and weight is None:
            raise ValueError("POETConfig.init='keep' needs the weight to keep: wrap a model with apply_poet")
        if self.base_weight.is_meta:  # shapes without values
            return
        if config.init != "keep":
            weight = INITIALIZATIONS[config.init](out_features, in_features, generator)
        self._start_from(weight.to(self.base_weight), generator)

    @torch.no_grad()
    def _start_from(self, weight: Tensor, generator: torch.Generator | None) -> None:
        """Make a dense (out, in) weight the base weight, permuted by newly sampled permutations, with R = P = I."""
        self.permutation_in.copy_(self.primitive_r.sample(generator))
        self.permutation_out.copy_(self.primitive_p.sample(generator))
        if self.skew_p is not None:
            weight = weight.index_select(0, self.permutation_out)
        if self.skew_r is not None:
            weight = weight.index_select(1, self.permutation_in)
        assign(self.base_weight, weight)
        for skew in (self.skew_r, self.skew_p):
            if skew is not None:
                skew.zero_()

    def _tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that the effective weight depends on, in the argument order of :mod:`poet.transform`."""
        return self.base_weight, self.skew_r, self.skew_p, self.permutation_in, self.permutation_out

    def forward(self, x: Tensor) -> Tensor:
        """y = x W_RP^T + bias: (..., in) of any floating dtype -> (..., out) in the dtype of ``x``, or of autocast where it is enabled (fp64 stays).

        Raises:
            TypeError: ``x`` is not floating.
            ValueError: its last dimension is not ``in_features``.
        """
        if not x.is_floating_point():
            raise TypeError(f"a POET layer takes floating-point input, got {x.dtype}")
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(f"a POET layer of {self.in_features} inputs got an input of shape {tuple(x.shape)}")
        device = x.device.type
        if device in AUTOCAST and torch.is_autocast_enabled(device) and x.dtype != torch.float64:
            x = x.to(torch.get_autocast_dtype(device))  # as nn.Linear does
        y = EquivalentLinear.apply(x, *self._tensors(), self.structure)
        return y if self.bias is None else y + self.bias.to(y.dtype)

    @property
    def weight(self) -> Tensor:
        """The effective weight, (out, in), for code that reads ``linear.weight``; computed at each access."""
        return self.effective_weight()

    def effective_weight(self) -> Tensor:
        """W_RP of Equation (3) as ``nn.Linear`` stores it: (out, in), the dtype of ``base_weight``; differentiable once in R and P."""
        return EffectiveWeight.apply(*map(whole, self._tensors()), self.structure)

    @torch.no_grad()
    def factors(self) -> tuple[Tensor | None, Tensor | None]:
        """The factors of R and P in the dtype of the parameters (for blocks (k, b, b), the small orthogonal matrices), None for an identity side."""
        with autocast_off(self.base_weight.device.type):
            return self.structure.factors(whole(self.skew_r), whole(self.skew_p))

    def rotations(self) -> tuple[Tensor, Tensor]:
        """(R, P) since the last merge, as dense matrices (in, in) and (out, out) of the dtype of ``base_weight``, in the paper's orientation: W_RP = R W0 P."""
        place = {"dtype": self.base_weight.dtype, "device": self.base_weight.device}
        sides = [side.to(self.base_weight.dtype) for side in self.structure.sides(*self.factors(), self.permutation_in, self.permutation_out)]
        # Rows and columns of G are positions: Psi^T G Psi permutes both to coordinates.
        found = (side.to_coordinates(side.apply(torch.eye(side.primitive.dimension, **place))) for side in sides)
        return tuple(side.to_coordinates(rows.mT).mT for side, rows in zip(sides, found, strict=True))

    @torch.no_grad()
    def merge_and_reinitialize(self, generator: torch.Generator | None = None) -> None:
        """Merge R and P into the base weight, sample new primitives, and set R = P = I (Section 3.2.3, Step 5).

        The weight is rounded once. With ``merge="neumann"`` the effective weight changes by rounding alone. With ``merge="exact"`` the
        exact Cayley map of the same parameters is merged: the singular values do not change, and the effective weight changes
        by the truncation error of the Neumann series. ``generator`` is as in the constructor.
        """
        structure = self.structure._replace(terms=None) if self.config.merge == "exact" else self.structure
        base, skew_r, skew_p, *permutations = map(whole, self._tensors())
        # In fp32 at least: blocks rounded to bf16 are not orthogonal, and the error compounds over a thousand merges.
        precise = wide(base.dtype)
        with autocast_off(base.device.type):
            factors = structure.factors(*(None if s is None else s.to(wide(s.dtype)) for s in (skew_r, skew_p)))
            merged = transform(base.to(precise), *structure.sides(*factors, *permutations)).to(base.dtype)
        self._start_from(merged, generator)

    @torch.no_grad()
    def to_linear(self) -> nn.Linear:
        """A plain ``nn.Linear`` with copies of the effective weight and the bias, same device and dtype. Both require gradients."""
        place = {"device": self.base_weight.device, "dtype": self.base_weight.dtype}
        linear = nn.utils.skip_init(nn.Linear, self.in_features, self.out_features, bias=self.bias is not None, **place)  # draws nothing
        linear.weight.copy_(self.effective_weight())
        if self.bias is not None:
            linear.bias.copy_(whole(self.bias))
        return linear

    def get_extra_state(self) -> Tensor:
        """The configuration in the state dict, as JSON in a (bytes,) uint8 tensor: safetensors, checksums and FSDP2 accept only tensors."""
        text = json.dumps(self.config.meaning()).encode()
        return torch.tensor(list(text), dtype=torch.uint8, device=self.base_weight.device)

    def set_extra_state(self, state: Tensor) -> None:
        """Does nothing: :meth:`_load_from_state_dict` has compared the configuration before any tensor was copied."""

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, *more) -> None:
        check_permutations(state_dict, prefix)
        saved = state_dict.get(key := prefix + "_extra_state")
        if saved is not None and not saved.is_meta:
            if different := self.config.difference(json.loads(bytes(saved.byte().tolist()))):
                raise ValueError(
                    f"the state dict of layer {prefix[:-1] or '(root)'} is of another POETConfig, with {different}: build the model "
                    "with that one (or remove the entries '_extra_state', to load it under this one)"
                )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, *more)
        if key in missing:  # a state dict of a version that did not store the configuration
            missing.remove(key)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, variant={self.config.variant!r}, "
            f"r={self.primitive_r}, p={self.primitive_p}, bias={self.bias is not None}"
        )
