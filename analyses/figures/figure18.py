"""Figure 18: singular values along training with AdamW, the middle blocks (2 to 4 of the paper's eight)."""

from analyses.figures.common.spectra import grid_artifact

ARTIFACT = grid_artifact(18, "adamw", group=1)
