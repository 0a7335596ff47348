"""What a run measures of its matrices along the way.

A spec asks for probes by name, each with the steps after which it is taken (0: before training). What they measured goes
to ``probes.npz`` beside the record: ``<probe>/steps`` holds the steps, ``<probe>/<layer>`` one line for each of them.
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
        ValueError: an adapter hides them.
    """
    found = {n: m for n, m in model.named_modules() if isinstance(m, (nn.Linear, POETLinear)) and is_counted(n)}
    if any("base_layer" in name for name in found):
        raise ValueError("probes measure plain and POET layers; this method wraps them in adapters")
    return found


def _finite(weight: Tensor, measure: Callable[[Tensor], Tensor], like: int) -> Tensor:
    """A measurement of a weight; NaN where the run has diverged, which linear algebra would refuse."""
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
        merged: taken after the merge that is due at its step, if any; otherwise before it.
        poet_only: measures R and P, which other methods do not have.
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
        ValueError: there is none; the sentence lists those that there are.
    """
    if name not in PROBES:
        raise ValueError(f"unknown probe {name!r}; known are {', '.join(PROBES)}")
    return PROBES[name]


class Probes:
    """The probes of one run.

    Args:
        spec: the run.
        model: its prepared model.
        idle: take none: another process of the run does.

    Raises:
        ValueError: a probe that this method's model cannot be asked.
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
        """Take the probes that are due after ``step``: those of the merged weights, or those of R and P before."""
        due = [name for name, steps in self._due.items() if step in steps and PROBES[name].merged == merged]
        if not due:
            return
        started = time.monotonic()
        for name in due:
            measured = PROBES[name].measure(self.model, self.spec.seed)
            self.taken[name].append((step, {key: value.to("cpu", copy=True) for key, value in measured.items()}))
        self.seconds += time.monotonic() - started

    def state(self) -> dict:
        """For a checkpoint."""
        return {"taken": self.taken, "seconds": self.seconds}

    def restore(self, state: dict) -> None:
        """The inverse of :meth:`state`."""
        self.taken, self.seconds = state["taken"], state["seconds"]

    def write(self, path: Path) -> str:
        """All measurements as ``.npz``.

        Returns:
            sha256 of the file, which the record keeps: a file of an earlier training is told from this one's.

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
                # numpy's own savez stamps the time: the same run has to give the same bytes.
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        with atomic_path(path) as temporary:
            temporary.write_bytes(buffer.getvalue())
        return hashlib.sha256(buffer.getvalue()).hexdigest()
