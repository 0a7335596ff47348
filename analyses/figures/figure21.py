"""Figure 21: singular values along training with POET, the middle blocks (3 to 5 of the paper's eight)."""

from analyses.figures.common.spectra import POET, grid_artifact

ARTIFACT = grid_artifact(21, POET, group=1)
