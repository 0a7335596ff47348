"""Adapters: what is saved, and what it gives back."""

import pytest
import torch
from torch import nn

from poet import POETConfig, apply_poet, export_dense, merge_and_reinitialize
from poet.finetuning.adapter import CONFIGURATION, WEIGHTS, AdapterError, base_digests, load_adapter, save_adapter
from poet.methods.poet import Parameters
from poet.model import poet_layers
from poet.optim import poet_parameters
from tests.finetuning.pretrained import BS, BUILDERS, CLASSIFIER, HEADS, VARIANTS, batch, build, finetuned, logits


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_the_base_model_with_the_adapter_is_the_trained_model(name, config, tmp_path):
    """Bit for bit, in a model whose new head was drawn anew."""
    (model, base), rows = finetuned(name, config), batch(name)
    save_adapter(model, tmp_path, base, also=HEADS.get(name, ()))
    again = build(name)
    assert not torch.equal(logits(again, rows), logits(model, rows))
    loaded = load_adapter(again, tmp_path)
    assert loaded is again and torch.equal(logits(loaded, rows), logits(model, rows))
    found, expected = loaded.state_dict(), model.state_dict()
    assert found.keys() == expected.keys() and all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("options", ({"block_size_p": 0}, {"block_size_r": 0}, {"neumann_terms": None}), ids=str)
def test_identity_sides_and_other_maps(options, tmp_path):
    model, base = finetuned(config=POETConfig(block_size=4, init="keep", **options))
    save_adapter(model, tmp_path, base, also=("score",))
    assert torch.equal(logits(load_adapter(build(CLASSIFIER), tmp_path), batch(CLASSIFIER)), logits(model, batch(CLASSIFIER)))


def test_layers_with_configurations_of_their_own(tmp_path):
    """And a layer whose name is part of others' names, which ``exclude`` could not tell apart."""
    plain = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.ModuleDict({"a": nn.Linear(8, 8), "c": nn.Linear(8, 8)})})
    states, base = {n: t.clone() for n, t in plain.state_dict().items()}, base_digests(plain)
    plain["b"]["a"] = apply_poet(plain["b"]["a"], BS)
    plain["b"]["c"] = apply_poet(plain["b"]["c"], VARIANTS["fs"])
    with torch.no_grad():
        for skew in poet_parameters(plain):
            skew.normal_()
    save_adapter(plain, tmp_path, base)
    twin = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.ModuleDict({"a": nn.Linear(8, 8), "c": nn.Linear(8, 8)})})
    twin.load_state_dict(states)
    load_adapter(twin, tmp_path)
    assert {name: layer.config for name, layer in poet_layers(twin)} == {"b.a": BS, "b.c": VARIANTS["fs"]}
    assert all(torch.equal(a, b) for a, b in zip(plain.state_dict().values(), twin.state_dict().values(), strict=True))


def test_a_layer_of_the_suite_s_method_is_saved_as_any(tmp_path):
    """Its configuration has learning rates besides, which an adapter does not store."""
    model = nn.Linear(8, 8)
    weights, base = {n: t.clone() for n, t in model.state_dict().items()}, base_digests(model)
    layer = apply_poet(model, Parameters(block_size=4, init="keep", lr=0.5))
    with torch.no_grad():
        layer.skew_r.normal_()
    save_adapter(layer, tmp_path, base)
    twin = nn.Linear(8, 8)
    twin.load_state_dict(weights)
    assert torch.equal(load_adapter(twin, tmp_path).effective_weight(), layer.effective_weight())


def test_factors_of_their_own_dtype_and_a_shared_layer(tmp_path):
    linear = nn.Linear(8, 8, dtype=torch.bfloat16)
    weights = {n: t.clone() for n, t in linear.state_dict().items()}
    model = nn.ModuleDict({"first": linear, "second": linear})
    base = base_digests(model)
    layer = apply_poet(model, BS)["first"]
    for key in ("skew_r", "skew_p"):
        setattr(layer, key, nn.Parameter(torch.randn(getattr(layer, key).shape)))
    save_adapter(model, tmp_path, base)
    linear = nn.Linear(8, 8, dtype=torch.bfloat16)
    linear.load_state_dict(weights)
    loaded = load_adapter(nn.ModuleDict({"first": linear, "second": linear}), tmp_path)
    assert loaded["first"] is loaded["second"]
    assert torch.equal(loaded["first"].effective_weight(), layer.effective_weight())


def test_a_loaded_adapter_trains_on_and_exports(saved, tmp_path):
    model, folder = saved
    loaded = load_adapter(build(CLASSIFIER), folder)
    with pytest.raises(ValueError, match="export_dense"):
        loaded.save_pretrained(tmp_path)
    loaded.train()(**batch(CLASSIFIER)).loss.backward()
    assert all(skew.grad is not None for skew in poet_parameters(loaded))
    export_dense(loaded).save_pretrained(tmp_path / "plain")
    plain = type(model).from_pretrained(tmp_path / "plain")
    torch.testing.assert_close(logits(plain, batch(CLASSIFIER)), logits(model, batch(CLASSIFIER)), rtol=1e-4, atol=1e-4)


def test_a_bias_that_was_trained_goes_along(tmp_path):
    """Those of wrapped layers by themselves; others, as of norms, by name."""
    model, base = finetuned("BERT classifier", also=("classifier", "bias"))
    with pytest.raises(AdapterError, match=r"embeddings.LayerNorm.bias and 4 more changed in training and would be lost: name .* also="):
        save_adapter(model, tmp_path, base, also=("classifier",))
    save_adapter(model, tmp_path, base, also=("classifier", "LayerNorm"))
    loaded = load_adapter(build("BERT classifier"), tmp_path)
    assert torch.equal(logits(loaded, batch("BERT classifier")), logits(model, batch("BERT classifier")))


def test_a_merge_of_nothing_is_none(tmp_path):
    """R and P are the identity before the first step: the weight is still the base model's, under other coordinates."""
    model = build(CLASSIFIER)
    base = base_digests(model)
    merge_and_reinitialize(apply_poet(model, BS, exclude=("score",)), torch.Generator().manual_seed(5))
    save_adapter(model, tmp_path, base, also=("score",))
    assert torch.equal(logits(load_adapter(build(CLASSIFIER), tmp_path), batch(CLASSIFIER)), logits(model, batch(CLASSIFIER)))


def stored(model, also=()):
    """Bytes of an adapter's tensors: fp32 factors, an int32 for each coordinate of a side, and what ``also`` names."""
    layers = [layer for _, layer in poet_layers(model)]
    indices = sum(layer.in_features * (layer.skew_r is not None) + layer.out_features * (layer.skew_p is not None) for layer in layers)
    return 4 * (sum(p.numel() for p in poet_parameters(model)) + indices + sum(p.numel() for m in also for p in model.get_submodule(m).parameters()))


def test_the_file_is_as_large_as_what_it_stores(saved):
    model, folder = saved
    size = (folder / WEIGHTS).stat().st_size
    header = 8 + int.from_bytes((folder / WEIGHTS).read_bytes()[:8], "little")
    assert size == header + stored(model, also=("score",))
    assert sorted(path.name for path in folder.iterdir()) == [CONFIGURATION, WEIGHTS]


@pytest.fixture(scope="module")
def bart_large():
    """Shapes alone: BartConfig's own sizes are those of BART-large but for the vocabulary, which no wrapped layer has."""
    from transformers import BartConfig, BartForConditionalGeneration

    with torch.device("meta"):
        model = BartForConditionalGeneration(BartConfig(vocab_size=8))
    assert (model.config.d_model, model.config.encoder_layers, model.config.decoder_ffn_dim) == (1024, 12, 4096)
    return model


SIZES = {
    "`block_size=8`": POETConfig(block_size=8, init="keep"),
    "`block_size=64`": POETConfig(block_size=64, init="keep"),
    '`variant="fs"`, `budget=0.5`': POETConfig(variant="fs", budget=0.5, init="keep"),
}


def sizes(model):
    """The rows of the table in docs/support.md: an adapter of BART-large."""
    for row, config in SIZES.items():
        wrapped = apply_poet(model, config)
        count, size = sum(p.numel() for p in poet_parameters(wrapped)), stored(wrapped)
        for name, layer in list(poet_layers(wrapped)):
            plain = nn.Linear(layer.in_features, layer.out_features, device="meta")
            wrapped.set_submodule(name, plain)
        yield f"| {row} | {count / 1e6:,.2f}M | {size / 1e6:,.1f} MB |"


def test_the_page_says_how_large_an_adapter_of_bart_large_is(bart_large, repository):
    lines = (repository / "docs" / "support.md").read_text().splitlines()
    for line in sizes(bart_large):
        assert line in lines, line
