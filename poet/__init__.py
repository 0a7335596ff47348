"""POET: reparameterized training via orthogonal equivalence transformation, W_RP = R W0 P.

The core (this namespace) needs torch alone. ``poet.methods``, ``poet.data`` and ``poet.training`` hold what the
benchmark suite compares it with, feeds it, and trains it by.
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
