"""Figure 17: singular values along training with AdamW, the first blocks (0 and 1 of the paper's eight).

The captions of Figures 20 to 22 name the gate projection, which the pictures lack; here all six figures have it.
"""

from analyses.spectra import grid_artifact

ARTIFACT = grid_artifact(17, "adamw", group=0)
