"""Figure 20: singular values along training with POET, the first blocks (0 to 2 of the paper's eight).

The caption names the gate projection, which the picture lacks; here it is shown.
"""

from analyses.spectra import POET, grid_artifact

ARTIFACT = grid_artifact(20, POET, group=0)
