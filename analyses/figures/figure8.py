"""Figure 8: validation perplexity along training on the 350M and 1.3B models, AdamW and the variants of POET.

The paper's text: after an initial drop POET improves more slowly than AdamW, and overtakes it late. Curves and the rule for
crossings: ``analyses.figures.common.dynamics``; claims: ``analyses.figures.common.dynamics_claims``.
"""

from analyses.figures.common.dynamics import dynamics_artifact
from analyses.figures.common.dynamics_claims import late_crossing, slower_progress

MODELS = ("350m", "1.3b")
ARTIFACT = dynamics_artifact(
    8, "Validation perplexity dynamics on LLaMA-350M and LLaMA-1.3B.", models=MODELS, prefixes=("adamw", "poet"),
    needed=MODELS,
    claims=(
        *(slower_progress("figure8", "Section 5.1, Figure 8", model) for model in MODELS),
        *(late_crossing("figure8", "Section 5.1, Figure 8", model) for model in MODELS),
    ),
)
