"""The lists of cases: for a CPU, for a GPU, and small ones for tests."""

from benchmarks.case import Case
from benchmarks.kernels import kernel_cases
from benchmarks.layers import layer_cases
from benchmarks.steps import step_cases

MINI_TOKENS = 512  # of a step at mini scale
MINI_THREADS = 1  # of a run at mini scale: the pipeline trains one run on each core


def cpu_cases() -> list[Case]:
    """The cases for a CPU, in fp32. Cases with too many operations are listed, and left out when their turn comes."""
    return [
        *kernel_cases(elements=2**20),
        *step_cases("mini", ("60m", "130m", "350m", "1.3b"), (MINI_TOKENS,), threads=MINI_THREADS),
        *layer_cases(),
        *step_cases("paper", ("60m",), (1024, 8192, 16384)),
        *step_cases("paper", ("350m",), (16384,)),
    ]


def gpu_cases() -> list[Case]:
    """The cases for a GPU, the most important first: a run that is out of time leaves out the last ones."""
    few = {"rows": ("poet-fs-1_2", "poet-bs-b256"), "dtype": "bf16"}
    return [
        *kernel_cases(elements=2**26, dtypes=("bf16", "fp32"), with_reference=True),
        *layer_cases(tokens=(16384,), dtypes=("bf16",)),
        *step_cases("gpu", ("60m",), (65536,), **few, graphs=True),
        *step_cases("paper", ("350m",), (16384,), **few, graphs=True),
        *step_cases("paper", ("60m",), (16384,), dtype="bf16"),
        *layer_cases(tokens=(256, 1024, 2048, 8192, 65536), dtypes=("bf16",)),
        *kernel_cases(elements=2**24, dtypes=("fp16",), with_reference=True),
        *step_cases("paper", ("60m",), (1024, 8192), **few),
    ]


def small_cases(dtypes: tuple[str, ...] = ("fp32",), with_reference: bool = False) -> list[Case]:
    """Every kind of case, at sizes that take milliseconds."""
    kernels = {"elements": 64, "block_sizes": (5, 8), "terms": (3,), "shapes": ((16, 24),), "dtypes": dtypes}
    return [
        *kernel_cases(**kernels, transform_blocks=(8,), transform_budgets=(2,), with_reference=with_reference),
        *layer_cases(((16, 24),), (6,), dtypes, (8,), (2,)),
        *step_cases("smoke", ("60m",), (64,)),
    ]
