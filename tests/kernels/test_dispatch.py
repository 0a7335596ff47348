"""Which implementation serves a GPU."""

import subprocess
import sys

import pytest
import torch

from poet.kernels import block_transform, cayley_neumann, dispatch, skew

REFERENCES = (
    skew.skew_unpack_reference,
    skew.skew_pack_reference,
    cayley_neumann.cayley_neumann_reference,
    cayley_neumann.cayley_neumann_pullback_reference,
    block_transform.block_transform_reference,
    block_transform.block_transform_pullback_reference,
    block_transform.pull_back_and_build_reference,
)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda f: f.__name__)
def test_each_reference_has_its_kernel(reference):
    pytest.importorskip("triton")
    kernel = dispatch.on_gpu(reference, torch.bfloat16)
    assert kernel.__module__.startswith("poet.kernels.gpu.") and f"{kernel.__name__}_reference" == reference.__name__
    assert dispatch.on_gpu(reference, torch.float64) is reference


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda f: f.__name__)
def test_without_triton_the_reference_serves(reference, monkeypatch):
    monkeypatch.setattr(dispatch, "_has_triton", lambda: False)
    assert dispatch.on_gpu(reference, torch.bfloat16) is reference


def test_importing_the_method_imports_no_triton(repository):
    code = "import sys, poet; print('triton' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
