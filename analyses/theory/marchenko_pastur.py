"""The Marchenko-Pastur law, written for singular values: the spectrum of a large matrix of independent entries."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class MarchenkoPastur:
    """Limit of the singular values of a matrix whose independent entries have mean 0, as it grows with its shape kept.

    The paper's edges sqrt(d)(1 + sqrt(lambda)) and sqrt(d)(1 - sqrt(lambda)) (Equation "standard_sinval_bound", printed
    for d longer than n) are :attr:`largest` and :attr:`smallest`; between them lie all the others with :meth:`density`.
    """

    long: int  # the larger size of the matrix
    short: int  # the smaller one; not the same
    deviation: float  # standard deviation of an entry

    @property
    def largest(self) -> float:
        return self.deviation * (self.long**0.5 + self.short**0.5)

    @property
    def smallest(self) -> float:
        return self.deviation * (self.long**0.5 - self.short**0.5)

    def density(self, s: np.ndarray) -> np.ndarray:
        """Probability density at the singular values s > 0, 0 outside of the edges.

        The law is usually written for the eigenvalues s^2 of W^T W; changing the variable to s gives
        sqrt((largest^2 - s^2)(s^2 - smallest^2)) / (pi short deviation^2 s).
        """
        inside = (self.largest**2 - s**2) * (s**2 - self.smallest**2)
        return np.sqrt(np.maximum(inside, 0)) / (np.pi * self.short * self.deviation**2 * s)

    def quantiles(self, share: np.ndarray) -> np.ndarray:
        """Quantiles of the law: the singular values below which the given shares, in [0, 1], lie."""
        # Nodes are dense at the edges, where the density rises like a square root.
        middle, half = (self.largest + self.smallest) / 2, (self.largest - self.smallest) / 2
        s = middle - half * np.cos(np.linspace(0, np.pi, 20_001))
        density = self.density(s)
        mass = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(s))))
        return np.interp(share, mass / mass[-1], s)
