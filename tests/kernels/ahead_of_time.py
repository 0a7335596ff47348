"""Compiles the Triton kernels for machines that are not here, and reads off what each compilation needs.

A test module ``test_<file>.py`` of this folder lists the compilations of ``poet/kernels/<file>.py`` in a function
``compilations() -> list[Compilation]``. ``python -m tests.kernels.ahead_of_time`` gathers and compiles all of
them, and prints one line of JSON a compilation, a :class:`Outcome`. It has to be a process of its own: the tests run
the kernels in Triton's interpreter, and what the interpreter decorates cannot be compiled.
"""

import argparse
import dataclasses
import importlib
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

#: Bytes of shared memory that one block may have: CUDA C++ Programming Guide, "Technical Specifications per Compute
#: Capability"; AMD's CDNA 3 has 64 KB of LDS a workgroup.
SHARED_MEMORY = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "sm_100": 227 * 1024, "gfx942": 64 * 1024}
TARGETS = tuple(SHARED_MEMORY)
#: A store to global memory: PTX's own and its bulk copies, and AMD's.
STORE = r"st\.global|cp\.async\.bulk|global_store|buffer_store"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compilation:
    """One kernel, specialised as its launch would.

    Attributes:
        kernel: the ``@triton.jit`` function.
        signature: type of each argument that is not a constant, in Triton's notation ("*bf16", "i32", "fp32").
            Pointers, and the integers in ``divisible``, are compiled as multiples of 16, which is what Triton finds
            for PyTorch's allocations and for sizes that are.
        constants: value of each ``tl.constexpr`` argument.
        num_warps, num_stages: of the launch.
        divisible: names of integer arguments that are multiples of 16.
        targets: where it may run; a launch that needs more shared memory than a device has is not made there.
        overrides: constants that take another value on some target ({"gfx942": {"PRECISION": "ieee"}}).
    """

    kernel: object
    signature: dict[str, str]
    constants: dict[str, object]
    num_warps: int
    num_stages: int
    divisible: tuple[str, ...] = ()
    targets: tuple[str, ...] = TARGETS
    overrides: dict[str, dict[str, object]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one compilation needs; ``error`` is None where it succeeded.

    ``registers`` and bytes of ``spills`` are per thread, ``shared`` is bytes per block. ``wgmma``:
    products run on Hopper's warpgroup instructions, which the older ones do not keep up with.
    """

    target: str
    kernel: str
    configuration: str
    registers: int = -1
    spills: int = -1
    shared: int = -1
    wgmma: bool = False
    error: str | None = None


def _gpu_target(target: str):
    from triton.backends.compiler import GPUTarget

    if target.startswith("sm_"):
        return GPUTarget("cuda", int(target.removeprefix("sm_")), 32)
    return GPUTarget("hip", target, 64)


def _source(compilation: Compilation, target: str):
    from triton.compiler import ASTSource

    names = compilation.kernel.arg_names
    constants = {**compilation.constants, **compilation.overrides.get(target, {})}
    if set(names) != set(constants) | set(compilation.signature):
        missing = set(names) ^ (set(constants) | set(compilation.signature))
        raise ValueError(f"{compilation.kernel.__name__}: arguments left out or unknown: {sorted(missing)}")
    types = {name: compilation.signature.get(name, "constexpr") for name in names}
    multiples = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(names)
        if types[name] != "constexpr" and (types[name].startswith("*") or name in compilation.divisible)
    }
    return ASTSource(compilation.kernel, types, constants, multiples)


def _nvidia_resources(cubin: bytes) -> tuple[int, int]:
    """(registers, bytes of stack) of a cubin's one kernel: ptxas spills to the stack, and nothing else here uses it."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    registers, stack, local = (int(re.search(rf"{name}:(\d+)", text)[1]) for name in ("REG", "STACK", "LOCAL"))
    return registers, stack + local


def _amd_resources(assembly: str) -> tuple[int, int]:
    """(vector registers, bytes of spills) from the metadata of a kernel's assembly; a spilled register is 4 bytes."""
    counts = (re.search(rf"\.{name}:\s+(\d+)", assembly) for name in ("vgpr_count", "vgpr_spill_count"))
    registers, spilled = (int(count[1]) for count in counts)
    return registers, 4 * spilled


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[-2000:]


def compile_for(compilation: Compilation, target: str) -> Outcome:
    """Compiles, never launches: needs no GPU of any kind."""
    import triton

    settings = {**compilation.constants, "num_warps": compilation.num_warps, "num_stages": compilation.num_stages}
    types = {name: kind for name, kind in compilation.signature.items() if kind.startswith("*")}
    outcome = Outcome(
        target=target,
        kernel=compilation.kernel.__name__,
        configuration=", ".join(f"{name}={value}" for name, value in {**types, **settings}.items()),
    )
    options = {"num_warps": compilation.num_warps, "num_stages": compilation.num_stages}
    try:
        compiled = triton.compile(_source(compilation, target), target=_gpu_target(target), options=options)
    except Exception as error:  # whatever the compiler raises is what this is asked to report
        return dataclasses.replace(outcome, error=_brief(error))
    assembly = compiled.asm["ptx" if target.startswith("sm_") else "amdgcn"]
    if not re.search(STORE, assembly):
        # Seen: what the compiler cannot lower, it may replace by a trap, and report nothing.
        return dataclasses.replace(outcome, error="the compiled kernel stores nothing")
    if target.startswith("sm_"):
        registers, spills = _nvidia_resources(compiled.asm["cubin"])
    else:
        registers, spills = _amd_resources(assembly)
    return dataclasses.replace(
        outcome,
        registers=registers,
        spills=spills,
        shared=compiled.metadata.shared,
        wgmma="wgmma.mma_async" in assembly,
    )


def gather(only: str | None = None) -> list[Compilation]:
    """Every compilation that the test modules of this folder list, or those of one module."""
    found = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if only is None or path.stem == only:
            module = importlib.import_module(f"{__spec__.parent}.{path.stem}")
            found += module.compilations() if hasattr(module, "compilations") else []
    return found


def _compile_job(job: tuple[str | None, int, str]) -> Outcome:
    only, index, target = job
    return compile_for(gather(only)[index], target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", help="a test module's name without .py; default: all of them")
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all of them")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    jobs = [
        (options.module, index, target)
        for index, compilation in enumerate(gather(options.module))
        for target in options.target or TARGETS
        if target in compilation.targets
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        for outcome in pool.map(_compile_job, jobs):
            print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
