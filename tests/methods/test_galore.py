"""GaLore's optimizer, against Algorithm 2 written out."""

import copy

import pytest
import torch

from poet.methods.galore import GaLoreAdamW

SHAPES = ((6, 10), (10, 6), (8, 8))


def gradients(shape, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for _ in range(steps)]


def run(shape, steps, **group):
    """Yields (optimizer state, update) after every step, weight starting at zero."""
    parameter = torch.nn.Parameter(torch.zeros(shape))
    optimizer = GaLoreAdamW([{"params": [parameter], **group}], lr=0.1)
    for gradient in gradients(shape, steps):
        before = parameter.detach().clone()
        parameter.grad = gradient
        optimizer.step()
        yield optimizer.state[parameter], parameter.detach() - before


@pytest.mark.parametrize("refresh", (1, 3, 100))
def test_refresh_interval(refresh):
    projectors = [state["projector"].clone() for state, _ in run((6, 10), 7, rank=2, refresh_every=refresh)]
    for step in range(1, 7):
        assert torch.equal(projectors[step], projectors[step - 1]) is bool(step % refresh)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("refresh", (2, 100))
def test_trajectory_is_algorithm_2(shape, refresh):
    left, lr, scale, decay = shape[0] <= shape[1], 0.1, 0.25, 0.2
    parameter = torch.nn.Parameter(torch.ones(shape))
    group = {"params": [parameter], "rank": 3, "scale": scale, "refresh_every": refresh}
    optimizer = GaLoreAdamW([group], lr=lr, weight_decay=decay)
    weight, m, v = torch.ones(shape), 0.0, 0.0
    for t, gradient in enumerate(gradients(shape, 6), start=1):
        parameter.grad = gradient
        optimizer.step()
        if (t - 1) % refresh == 0:
            u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
            basis = u[:, :3] if left else vh[:3].T
        low = basis.T @ gradient if left else gradient @ basis
        m, v = 0.9 * m + 0.1 * low, 0.999 * v + 0.001 * low**2
        step = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6)
        full = basis @ step if left else step @ basis.T
        weight = weight - lr * scale * full - lr * decay * weight
        torch.testing.assert_close(parameter.detach(), weight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("group", ({"rank": None}, {"rank": 1, "refresh_every": 100}))
def test_equals_adamw_where_there_is_nothing_to_project(group):
    """A plain group, and a one-row matrix: its projector is +1 or -1, which cancels."""
    mine, theirs = (torch.nn.Parameter(torch.ones(1, 7)) for _ in range(2))
    options = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.1}
    optimizers = [
        GaLoreAdamW([{"params": [mine], **group}], **options),
        torch.optim.AdamW([theirs], **options),
    ]
    for gradient in gradients((1, 7), 5):
        for parameter, optimizer in zip((mine, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_rank_above_the_dimension_is_the_whole_space():
    ((state, update),) = run((4, 9), 1, rank=64)
    projector = state["projector"]
    assert projector.shape == (4, 4)
    (gradient,) = gradients((4, 9), 1)
    # Adam's first step is the sign, here in the rotated basis.
    expected = -0.1 * projector @ torch.sign(projector.T @ gradient)
    torch.testing.assert_close(update, expected, rtol=1e-3, atol=1e-4)


def test_state_survives_a_round_trip():
    def build():
        parameter = torch.nn.Parameter(torch.zeros(6, 10))
        return parameter, GaLoreAdamW([{"params": [parameter], "rank": 2, "refresh_every": 4}], lr=0.1)

    parameter, optimizer = build()
    for index, gradient in enumerate(gradients((6, 10), 9)):
        if index == 5:
            fresh, restored = build()
            restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            fresh.data.copy_(parameter.data)
            twin, twin_optimizer = fresh, restored
        parameter.grad = gradient.clone()
        optimizer.step()
        if index >= 5:
            twin.grad = gradient.clone()
            twin_optimizer.step()
    assert torch.equal(twin, parameter)
