"""Probes: what a run measures of its matrices during training.

A spec names probes, each with the steps after which it is taken (0: before training). The measurements go to ``probes.npz``
beside the record: ``<probe>/steps`` holds the steps, ``<probe>/<layer>`` one row per step.
"""

from __future__ import annotations

import hashlib
import io
import math
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from poet.diagnostics import hyperspherical_energy
from poet.system.files import atomic_path
from poet.linear import POETLinear
from poet.methods.contract import is_counted
from poet.model import poet_layers
from poet.orthogonal import orthogonality_error, rotation_blocks
from poet.training.seeds import derive
from poet.training.spec import RunSpec

Measurement = dict[str, Tensor]


def matrices(model: nn.Module) -> dict[str, nn.Module]:
    """The decoder's linear layers by name, plain or reparameterized by POET.

    Raises:
        ValueError: a method has wrapped them in adapters.
    """
    found = {n: m for n, m in model.named_modules() if isinstance(m, (nn.Linear, POETLinear)) and is_counted(n)}
    if any("base_layer" in name for name in found):
        raise ValueError("probes measure plain and POET layers; this method wraps them in adapters")
    return found


def _finite(weight: Tensor, measure: Callable[[Tensor], Tensor], like: int) -> Tensor:
    """A measurement of a weight; NaN where the weight is not finite (the run has diverged), since linear algebra would raise an error."""
    if not torch.isfinite(weight).all():
        return torch.full((like,) if like else (), math.nan)
    return measure(weight)


def spectrum(model: nn.Module, seed: int) -> Measurement:
    """Singular values of every weight matrix, (min(m, n),) descending."""
    weights = ((name, layer.weight) for name, layer in matrices(model).items())
    return {name: _finite(w, torch.linalg.svdvals, min(w.shape)) for name, w in weights}


def energy(model: nn.Module, seed: int) -> Measurement:
    """Hyperspherical energy of every weight matrix, a scalar."""
    return {name: _finite(layer.weight, hyperspherical_energy, 0) for name, layer in matrices(model).items()}


def rotations(model: nn.Module, seed: int) -> Measurement:
    """(v'Rv, Tr(R)/m, ||(R + R')/2||_F^2/m) of every R and P (Appendix "Vector Probing"), as ``<layer>.R``, ``<layer>.P``.

    v is a random unit vector, drawn once for each matrix and fixed along the run. The last two are the mean and the mean
    square of the eigenvalues of R's symmetric part: the variance of v'Rv over v follows from them.
    """
    found = {}
    for name, layer in poet_layers(model):
        for side, matrix in zip("RP", layer.rotations(), strict=True):
            generator = torch.Generator().manual_seed(derive("probing vector", seed, name, side))
            v = nn.functional.normalize(torch.randn(len(matrix), generator=generator), dim=0).to(matrix)
            square = (matrix + matrix.mT).square().mean() * len(matrix) / 4
            found[f"{name}.{side}"] = torch.stack((v @ matrix @ v, matrix.trace() / len(matrix), square))
    return found


def orthogonality(model: nn.Module, seed: int) -> Measurement:
    """e_orth of every R and P (Section 5.3) of primitives of blocks, as ``<layer>.R`` and ``<layer>.P``; all blocks of one size in one batch."""
    groups: dict[tuple[int, int | None], list[tuple[str, int, Tensor]]] = defaultdict(list)
    for name, layer in poet_layers(model):
        sides = zip("RP", (layer.skew_r, layer.skew_p), (layer.primitive_r, layer.primitive_p), strict=True)
        for side, skew, primitive in sides:
            if skew is not None:
                key = (primitive.block_size, layer.config.neumann_terms)
                groups[key].append((f"{name}.{side}", primitive.dimension, skew))
    found = {}
    for (size, terms), members in groups.items():
        factors = rotation_blocks(torch.cat([skew.detach() for _, _, skew in members]), terms)
        # ||RR' - I||_F of the whole matrix is that of its blocks together: the identity part adds nothing.
        squares = (orthogonality_error(factors).square() * size).split([len(skew) for _, _, skew in members])
        found |= {key: (part.sum() / m).sqrt() for (key, m, _), part in zip(members, squares, strict=True)}
    return found


@dataclass(frozen=True, slots=True)
class Probe:
    """One kind of measurement.

    Attributes:
        measure: (model, the run's seed) -> tensors by name.
        merged: whether it is taken after a merge that is due at its step, or before the merge.
        poet_only: whether it measures R and P, which other methods do not have.
    """

    measure: Callable[[nn.Module, int], Measurement]
    merged: bool
    poet_only: bool


PROBES = {
    "spectrum": Probe(spectrum, merged=True, poet_only=False),
    "energy": Probe(energy, merged=True, poet_only=False),
    "rotations": Probe(rotations, merged=False, poet_only=True),
    "orthogonality": Probe(orthogonality, merged=False, poet_only=True),
}


def get_probe(name: str) -> Probe:
    """The probe of that name.

    Raises:
        ValueError: there is no such probe; the sentence lists the known ones.
    """
    if name not in PROBES:
        raise ValueError(f"unknown probe {name!r}; known are {', '.join(PROBES)}")
    return PROBES[name]


class Probes:
    """The probes of one run.

    Args:
        spec: the run.
        model: its prepared model.
        idle: take no probes, because another process of the run takes them.

    Raises:
        ValueError: a probe is unknown, or cannot measure the model of this method.
    """

    def __init__(self, spec: RunSpec, model: nn.Module, *, idle: bool = False) -> None:
        self.spec, self.model, self.seconds = spec, model, 0.0
        self.taken: dict[str, list[tuple[int, Measurement]]] = {name: [] for name in spec.probes}
        self._due = {} if idle else {name: frozenset(steps) for name, steps in spec.probes.items()}
        for name in spec.probes:
            if get_probe(name).poet_only and next(poet_layers(model), None) is None:
                raise ValueError(f"probe {name} measures R and P, which method {spec.method} does not have")
        if spec.probes:
            matrices(model)

    @torch.no_grad()
    def take(self, step: int, *, merged: bool) -> None:
        """Take the probes that are due after ``step``: those to be taken after a merge (``merged``), or those to be taken before it."""
        due = [name for name, steps in self._due.items() if step in steps and PROBES[name].merged == merged]
        if not due:
            return
        started = time.monotonic()
        for name in due:
            measured = PROBES[name].measure(self.model, self.spec.seed)
            self.taken[name].append((step, {key: value.to("cpu", copy=True) for key, value in measured.items()}))
        self.seconds += time.monotonic() - started

    def state(self) -> dict:
        """The measurements so far, for a checkpoint."""
        return {"taken": self.taken, "seconds": self.seconds}

    def restore(self, state: dict) -> None:
        """The inverse of :meth:`state`."""
        self.taken, self.seconds = state["taken"], state["seconds"]

    def write(self, path: Path) -> str:
        """Write all measurements as ``.npz``.

        Returns:
            sha256 of the file. The record keeps it, to tell this file from one of an earlier training.

        Raises:
            DiskError: the disk is full or the folder cannot be written.
        """
        arrays = {}
        for name, taken in self.taken.items():
            arrays[f"{name}/steps"] = np.array([step for step, _ in taken], dtype=np.int64)
            for key in taken[0][1] if taken else ():
                arrays[f"{name}/{key}"] = torch.stack([measured[key] for _, measured in taken]).numpy()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for key, array in arrays.items():
                # Not numpy's savez, which writes the time: the same run has to give the same bytes.
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        with atomic_path(path) as temporary:
            temporary.write_bytes(buffer.getvalue())
        return hashlib.sha256(buffer.getvalue()).hexdigest()
