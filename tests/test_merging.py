"""Merging: models and layers, and what a thousand merges do to the spectrum."""

import pytest
import torch
from torch import nn

from poet import POETConfig, POETLinear, apply_poet, merge_and_reinitialize


def test_a_model_merges_as_its_layers_do(randomize):
    """Layers draw from one generator, in the model's order."""
    sizes = ((8, 8), (8, 8), (8, 512), (512, 512), (512, 8))
    models = []
    for _ in range(2):
        model = nn.ModuleList(nn.Linear(m, n) for m, n in sizes).double()
        config = POETConfig(block_size=8, merge="exact")
        models.append(randomize(apply_poet(model, config, exclude=(), generator=torch.Generator().manual_seed(0))))
    merge_and_reinitialize(models[0], torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(1)
    for layer in models[1]:
        layer.merge_and_reinitialize(generator)
    for (name, found), expected in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        torch.testing.assert_close(found, expected, msg=name)
    first, second = models[0][:2]
    assert not torch.equal(first.permutation_in, second.permutation_in) and not torch.equal(first.permutation_out, second.permutation_out)


def test_nothing_to_merge():
    layer = POETLinear(6, 4, POETConfig(block_size=0), generator=torch.Generator().manual_seed(0))
    before = layer.base_weight.clone()
    layer.merge_and_reinitialize(torch.Generator().manual_seed(1))
    assert torch.equal(layer.base_weight, before)


def drift(dtype, merge, merges=1000):
    """Error of the orthogonality of W after merges of random rotations, from an orthogonal W."""
    generator = torch.Generator().manual_seed(0)
    start = torch.linalg.qr(torch.randn(32, 32, generator=generator, dtype=torch.float64)).Q
    config = POETConfig(block_size=16, merge=merge, init="keep")
    layer = POETLinear(32, 32, config, generator=generator, weight=start, dtype=dtype)
    for _ in range(merges):
        with torch.no_grad():
            for skew in (layer.skew_r, layer.skew_p):
                skew.copy_(DRIFT_SCALE * torch.randn(skew.shape, generator=generator))
        layer.merge_and_reinitialize(generator)
    weight = layer.effective_weight().detach().double()
    return ((weight @ weight.T - torch.eye(32)).norm() / 32**0.5).item()


#: e_orth of an orthogonal weight after 1,000 merges of rotations whose Q has a spectral norm of 0.05, by the weight's dtype
#: and ``POETConfig.merge``.
DRIFT = {
    (torch.float32, "neumann"): 1e-2,  # the series' own error, 2 |Q|^4 a merge at most
    (torch.float32, "exact"): 3e-5,  # rounding
    (torch.bfloat16, "neumann"): 0.2,  # rounding of W, once a merge
    (torch.bfloat16, "exact"): 0.2,
}
#: Entries of Q with a spectral norm of about 0.05 for b = 16: what a few hundred steps at the paper's rates come to.
DRIFT_SCALE = 0.0066


@pytest.mark.parametrize("merge", ("neumann", "exact"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_the_promised_orthogonality_after_a_thousand_merges(dtype, merge):
    found = drift(dtype, merge)
    assert found < DRIFT[dtype, merge]
    assert found > DRIFT[dtype, merge] / 20  # a promise that says something
