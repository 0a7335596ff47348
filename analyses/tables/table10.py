"""Table 10: the hyperparameters of POET-BS, as printed and as ``config/scales/paper.yaml`` has them.

The printed batch size is the rows of one micro-batch on one GPU: rows of a step = batch size x grad acc. x GPUs.
"""

from analyses.tables.common.config_tables import hyperparameters_artifact

ARTIFACT = hyperparameters_artifact(10, "bs", {})
