"""Figure 8: validation perplexity along training on the 350M and 1.3B models, AdamW and the variants of POET.

The paper's text: after an initial drop POET improves more slowly than AdamW, and overtakes it late. Curves and the rule for
crossings: ``analyses.dynamics``.
"""

from analyses.dynamics import dynamics_artifact

ARTIFACT = dynamics_artifact(
    8,
    "Validation perplexity dynamics on LLaMA-350M and LLaMA-1.3B.",
    models=("350m", "1.3b"),
    prefixes=("adamw", "poet"),
    needed=("350m", "1.3b"),
)
