"""Figure 19: singular values along training with AdamW, the last blocks (5 to 7 of the paper's eight)."""

from analyses.figures.common.spectra import grid_artifact

ARTIFACT = grid_artifact(19, "adamw", group=2)
