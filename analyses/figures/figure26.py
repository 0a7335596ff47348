"""Figure 26: validation perplexity along training on all four models, every row of Table 2.

The paper shows AdamW and the variants of POET; GaLore and LoRA are added. Curves and the rule for crossings:
``analyses.figures.common.dynamics``; claims: ``analyses.figures.common.dynamics_claims``.
"""

from analyses.common.grid import MODELS
from analyses.figures.common.dynamics import dynamics_artifact
from analyses.figures.common.dynamics_claims import SLOW_START, late_crossing

ARTIFACT = dynamics_artifact(
    26, "Validation perplexity during the training of LLaMA models with 60M, 130M, 350M and 1.3B parameters.",
    models=MODELS,
    # Figure 8 has the other two models.
    claims=(*(late_crossing("figure26", "Appendix K, Figure 26", model) for model in ("60m", "130m")), SLOW_START),
)
