"""Table 11: its designs compute one function, and its ratios are what the times say."""

import pandas as pd
import pytest
import torch

from analyses.common.paper_scale import paper_scale
from analyses.common.published import read_published
from analyses.tables.table11 import table11, timed_steps
from analyses.tables.table11.plain_poet import PlainPOETLinear, apply_plain_poet
from poet import POETConfig, POETLinear
from poet.system.errors import UserError
from suite.scale import load_scale

VARIANTS = {"fs": POETConfig(variant="fs", budget=0.5, init="keep"), "bs": POETConfig(block_size=4, init="keep")}


@pytest.fixture
def smoke():
    return load_scale({"scale": "smoke", "seeds": [0]})


@pytest.mark.parametrize("terms", [None, 3])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_design_is_the_suites_layer(randomize, variant, packed, terms):
    config = POETConfig(**{**_fields(VARIANTS[variant]), "neumann_terms": terms})
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(12, 8, dtype=torch.float64, generator=generator)  # (out, in)
    layer = POETLinear(8, 12, config, weight=weight, generator=generator, dtype=torch.float64)
    orders = (layer.permutation_in.clone(), layer.permutation_out.clone())
    plain = PlainPOETLinear(weight.T.contiguous(), config, orders, terms=terms, packed=packed).double()
    randomize(layer, 0.2)
    for side, skew in ((plain.r, layer.skew_r), (plain.p, layer.skew_p)):
        full = _dense_skew(skew.detach(), side.block_size)
        side.skew.data.copy_(skew.detach() if packed else full)
    x, x_plain = (torch.linspace(-1, 1, 40, dtype=torch.float64).reshape(5, 8).requires_grad_() for _ in range(2))
    y, y_plain = layer(x), plain(x_plain)
    torch.testing.assert_close(y_plain, y, rtol=1e-11, atol=1e-11)
    grad = torch.cos(torch.arange(60, dtype=torch.float64)).reshape(5, 12)
    y.backward(grad)
    y_plain.backward(grad)
    torch.testing.assert_close(x_plain.grad, x.grad, rtol=1e-11, atol=1e-11)
    for side, skew in ((plain.r, layer.skew_r), (plain.p, layer.skew_p)):
        if packed:
            torch.testing.assert_close(side.skew.grad, skew.grad, rtol=1e-11, atol=1e-11)
        else:  # Q = (A - A^T)/2: an entry above the diagonal bears half, the one below the other half
            full = _dense_skew(skew.grad, side.block_size) / 2
            torch.testing.assert_close(side.skew.grad, full, rtol=1e-11, atol=1e-11)


def _fields(config):
    return {"variant": config.variant, "budget": config.budget, "block_size": config.block_size, "init": config.init}


def _dense_skew(packed, b):
    rows, columns = torch.triu_indices(b, b, offset=1)
    full = packed.new_zeros(len(packed), b, b)
    full[:, rows, columns], full[:, columns, rows] = packed, -packed
    return full


def test_a_plain_model_begins_as_the_model_it_was_made_of(llama, tokens):
    model = llama()
    before = model(input_ids=tokens).logits
    apply_plain_poet(model, VARIANTS["bs"], terms=3, packed=True, seed=0)
    torch.testing.assert_close(model(input_ids=tokens).logits, before, rtol=1e-4, atol=1e-5)
    names = {name for name, parameter in model.named_parameters() if ".skew" in name}
    assert len(names) == 2 * 2 * 7  # two sides of seven matrices in two layers
    assert not any("proj.weight" in name for name, _ in model.named_parameters())


def planted(scale, rounds=9):
    """Times of every design with known ratios, on a machine whose speed changes from round to round."""
    seconds = {"plain": 12.0, "Neumann": 8.0, "packed": 4.0, "suite": 2.0}
    speed = [3.0 ** (i % 4) for i in range(rounds)]
    times = {table11.BASELINE: [1.0 * s for s in speed]}
    for variant in table11.configurations(table11.proxy(scale)[2]):
        times |= {f"{variant}, {design}": [own * s for s in speed] for design, own in seconds.items()}
    return times


def test_speed_ups_are_those_of_the_times(smoke):
    frame = table11.table(smoke, planted(smoke))
    for variant in table11.configurations(16):
        part = frame[(frame.variant == variant) & (frame.unit != "s")].set_index("quantity")
        assert part.measured.round(9).to_dict() == {
            "Neumann approximation": 1.5,
            "Skew-symmetric CUDA kernel": 2.0,
            "Both": 3.0,
            "The suite's own path": 2.0,
            "Total": 6.0,
            "Time beside AdamW": 2.0,
        }
        assert (part["std"] < 1e-9).all() and (part.n == 9).all()
    seconds = frame[(frame.unit == "s") & (frame.of == "plain")]
    assert (seconds["std"] > 1).all()  # the seconds do vary


def test_every_printed_number_stands_beside_a_measured_one(smoke):
    frame = table11.table(smoke, planted(smoke))
    printed = {line.design: float(line.speed_up) for line in read_published("table11").itertuples()}
    assert len(printed) == 3
    shown = frame.dropna(subset="published")
    assert shown.groupby("quantity").published.first().to_dict() == printed
    errata = read_published("errata")
    same = errata[errata.erratum == "speed-up-factors"]
    assert dict(zip(same.quantity, same.value.astype(float), strict=True)) == printed


def test_a_proxy_keeps_the_papers_tokens_per_width():
    paper = paper_scale().run("1.3b", "poet-bs-b256", 0)
    full = paper.architecture
    per_width = paper.batch_rows // paper.accumulation * full.sequence_length / full.hidden_size
    for name in ("smoke", "mini", "night", "gpu", "paper"):
        scale = load_scale({"scale": name, "seeds": [0]})
        architecture, rows, divisor, _ = table11.proxy(scale)
        assert divisor > 1 or scale.settings.resources.gpus, "the full width takes a GPU"
        assert rows * architecture.sequence_length / architecture.hidden_size == per_width
        assert architecture.hidden_size / architecture.intermediate_size == full.hidden_size / full.intermediate_size
        for config in table11.configurations(divisor).values():
            config.primitives(architecture.hidden_size, architecture.intermediate_size)


def test_the_table_is_built_and_says_that_it_is_a_proxy(recorded, monkeypatch):
    monkeypatch.setitem(timed_steps.PROXIES, "smoke", (32, 1, 2))
    context = recorded(table11.ARTIFACT, dict, scale="smoke")
    table11.ARTIFACT.build(context)
    frame = pd.read_csv(context.results / "table11.csv")
    assert {"published", "measured", "n", "std", "unit", "scale", "device"} <= set(frame)
    assert (frame.measured > 0).all() and (frame.n == 2).all() and set(frame.device) == {"CPU"}
    text = (context.results / "table11.md").read_text()
    assert "A proxy on a CPU: it says nothing of H100s." in text
    assert "median of 2 ratios of steps timed in turn" in text
    for name in ("| Neumann approximation | plain / Neumann | 1.5 |", "| Total | plain / suite | 3.8 |"):
        assert name in text


def test_a_gpu_scale_without_a_gpu_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="table11 at scale gpu times a GPU, and torch finds none"):
        table11.measure(load_scale({"scale": "gpu", "seeds": [0]}))
