"""POET: reparameterized training via orthogonal equivalence transformation, W_RP = R W0 P.

The core (this namespace) needs torch alone. The benchmark suite has the compared methods in ``poet.methods``, the data in
``poet.data`` and the training of runs in ``poet.training``.
"""

from poet.config import POETConfig
from poet.linear import POETLinear
from poet.model import apply_poet, export_dense, merge_and_reinitialize
from poet.optim import MergeSchedule, parameter_groups
from poet.wrapping import print_trainable_parameters, wrapping_report

__version__ = "0.1.0"

__all__ = [
    "MergeSchedule",
    "POETConfig",
    "POETLinear",
    "apply_poet",
    "export_dense",
    "merge_and_reinitialize",
    "parameter_groups",
    "print_trainable_parameters",
    "wrapping_report",
]
