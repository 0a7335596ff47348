"""Which implementation serves, and what a whole layer launches when the kernels do."""

from collections import Counter

import pytest
import torch
from triton.runtime.interpreter import GridExecutor
from triton.runtime.jit import JITFunction

import poet.kernels
from poet import POETConfig, POETLinear, orthogonal, transform
from poet.kernels.tiles import input_precision


@pytest.fixture
def by_kernels(monkeypatch):
    """Kernels serve on a CPU too, in Triton's interpreter; the fixture is the count of their launches by name."""
    launches = Counter()

    def counting(owner, name, label):
        launch = getattr(owner, name)

        def counted(self, *args, **kwargs):
            if not kwargs.get("warmup"):
                launches[label(self)] += 1
            return launch(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    counting(GridExecutor, "__call__", lambda self: self.fn.__name__)
    counting(JITFunction, "run", lambda self: self.fn.__name__)
    for module in (orthogonal, transform):
        monkeypatch.setattr(module, "triton_serves", lambda tensor: tensor.dtype != torch.float64)
    return launches


CONFIGS = {
    "bs on chip": POETConfig(block_size=16),
    "bs": POETConfig(block_size=80),
    "fs": POETConfig(variant="fs", budget=0.5),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_layer_by_kernels_is_the_layer_by_references(name, by_kernels, device, randomize):
    """Output and gradients; and launches of a training step: 16 or fewer of our own. Blocks of one size share their map."""
    layer = randomize(POETLinear(240, 160, CONFIGS[name], generator=torch.Generator().manual_seed(0)), 0.02).to(device)
    x = torch.randn(7, 240, device=device, requires_grad=True)
    grad = torch.randn(7, 160, device=device)
    y = layer(x)
    factors = "_cayley_neumann_kernel" if name == "bs on chip" else "_unpack_kernel"
    maps = 2 if name == "fs" else 1
    assert by_kernels == {factors: maps, "_rotate_kernel": 2}
    y.backward(grad)
    assert by_kernels["_rotate_kernel"] == 5 and by_kernels["_correlate_kernel"] == 2
    assert by_kernels["_pack_kernel"] == maps
    assert sum(by_kernels.values()) == 7 + 3 * maps <= 16, by_kernels
    found = [y, x.grad, layer.skew_r.grad, layer.skew_p.grad]
    exact, z = layer.double(), x.detach().double().requires_grad_()
    layer.zero_grad()
    wanted = exact(z)
    wanted.backward(grad.double())
    for ours, theirs in zip(found, (wanted, z.grad, layer.skew_r.grad, layer.skew_p.grad), strict=True):
        assert (ours.double() - theirs).norm() / theirs.norm() < 1e-5


@pytest.mark.parametrize("name", CONFIGS)
def test_a_layer_by_kernels_compiles_to_one_graph(name, by_kernels, device, randomize):
    layer = randomize(POETLinear(240, 160, CONFIGS[name], generator=torch.Generator().manual_seed(0)), 0.02).to(device)
    x = torch.randn(7, 240, device=device)
    expected = layer(x)
    expected.square().sum().backward()
    gradients = [layer.skew_r.grad, layer.skew_p.grad]
    layer.zero_grad()
    y = torch.compile(layer, backend="aot_eager", fullgraph=True)(x)
    y.square().sum().backward()
    assert torch.equal(y, expected)
    torch.testing.assert_close([layer.skew_r.grad, layer.skew_p.grad], gradients)


def test_merges_and_exports_go_by_kernels_too(by_kernels, device, randomize):
    layer = randomize(POETLinear(48, 32, POETConfig(block_size=16), generator=torch.Generator().manual_seed(0)), 0.1).to(device)
    before = layer.effective_weight().detach()
    layer.merge_and_reinitialize(torch.Generator().manual_seed(1))
    torch.testing.assert_close(layer.to_linear().weight, before, rtol=0, atol=1e-6)
    assert by_kernels["_rotate_kernel"] == 6


class _Like:
    def __init__(self, is_cuda, dtype):
        self.is_cuda, self.dtype = is_cuda, dtype


def test_kernels_serve_on_a_gpu_but_for_fp64(monkeypatch):
    serves = poet.kernels.triton_serves
    assert serves(_Like(True, torch.bfloat16)) and serves(_Like(True, torch.float32))
    assert not serves(_Like(True, torch.float64)) and not serves(_Like(False, torch.float32))
    monkeypatch.setattr(poet.kernels, "_has_triton", lambda: False)
    assert not serves(_Like(True, torch.bfloat16))


@pytest.mark.parametrize("setting", ["fp32_precision", "allow_tf32", "set_float32_matmul_precision"])
def test_fp32_follows_every_way_to_allow_tf32(setting):
    matmul = torch.backends.cuda.matmul
    assert input_precision(torch.float32) == "tf32x3" and input_precision(torch.bfloat16) == "ieee"
    try:
        if setting == "set_float32_matmul_precision":
            torch.set_float32_matmul_precision("high")
        else:
            setattr(matmul, setting, "tf32" if setting == "fp32_precision" else True)
        assert input_precision(torch.float32) == "tf32"
    finally:
        matmul.fp32_precision = "ieee"
        torch.set_float32_matmul_precision("highest")
