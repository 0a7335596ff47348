"""Adapters: what is saved, what it gives back, and what is refused."""

import json
import re

import pytest
import torch
from torch import nn

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, merge_and_reinitialize
from poet.finetuning.adapter import CONFIGURATION, WEIGHTS, AdapterError, _digest_of_values, base_digests, load_adapter, save_adapter
from poet.model import poet_layers
from poet.optim import poet_parameters
from tests.finetuning.pretrained import BUILDERS, HEADS, VARIANTS, batch, build, logits

BS = VARIANTS["bs"]
NAME = "LLaMA classifier"


def finetuned(name=NAME, config=BS, also=None):
    """(the trained model, digests of its base): its factors and what ``also`` names have moved."""
    model = build(name)
    base, also = base_digests(model), HEADS.get(name, ()) if also is None else also
    apply_poet(model, config, exclude=HEADS.get(name, ("lm_head",)), generator=torch.Generator().manual_seed(3))
    chosen = [p for n, p in model.named_parameters() if any(f".{entry}." in f".{n}." for entry in also)]
    optimizer = torch.optim.AdamW([*poet_parameters(model), *chosen], lr=1e-2)
    for _ in range(3):
        model.train()(**batch(name)).loss.backward()
        optimizer.step()
        model.zero_grad()
    return model, base


@pytest.fixture
def saved(tmp_path):
    """(the trained model, the folder of its adapter)."""
    model, base = finetuned()
    save_adapter(model, tmp_path / "adapter", base, also=("score",))
    return model, tmp_path / "adapter"


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
    assert torch.equal(logits(load_adapter(build(NAME), tmp_path), batch(NAME)), logits(model, batch(NAME)))


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
    loaded = load_adapter(build(NAME), folder)
    with pytest.raises(ValueError, match="export_dense"):
        loaded.save_pretrained(tmp_path)
    loaded.train()(**batch(NAME)).loss.backward()
    assert all(skew.grad is not None for skew in poet_parameters(loaded))
    export_dense(loaded).save_pretrained(tmp_path / "plain")
    plain = type(model).from_pretrained(tmp_path / "plain")
    torch.testing.assert_close(logits(plain, batch(NAME)), logits(model, batch(NAME)), rtol=1e-4, atol=1e-4)


def test_a_bias_that_was_trained_goes_along(tmp_path):
    """Those of wrapped layers by themselves; others, as of norms, by name."""
    model, base = finetuned("BERT classifier", also=("classifier", "bias"))
    with pytest.raises(AdapterError, match=r"embeddings.LayerNorm.bias and 4 more changed in training and would be lost: name .* also="):
        save_adapter(model, tmp_path, base, also=("classifier",))
    save_adapter(model, tmp_path, base, also=("classifier", "LayerNorm"))
    loaded = load_adapter(build("BERT classifier"), tmp_path)
    assert torch.equal(logits(loaded, batch("BERT classifier")), logits(model, batch("BERT classifier")))


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


def edit(path, old, new):
    assert old in (content := path.read_bytes())
    path.write_bytes(content.replace(old, new, 1))


def rewrite(folder, **changes):
    """Change adapter.json as another version would write it: with a digest that fits."""
    adapter = json.loads((folder / CONFIGURATION).read_text())["adapter"] | changes
    (folder / CONFIGURATION).write_text(json.dumps({"adapter": adapter, "sha256": _digest_of_values(adapter)}))


def refused(folder, model, sentence):
    before = [(n, t.clone()) for n, t in model.state_dict().items()]
    with pytest.raises(AdapterError, match=sentence) as caught:
        load_adapter(model, folder)
    assert "\n" not in str(caught.value)
    assert all(n == m and torch.equal(a, b) for (n, a), (m, b) in zip(before, model.state_dict().items(), strict=True)), "a refused model stays whole"


@pytest.mark.parametrize("how", ("schedule", "merge_and_reinitialize", "one layer"))
def test_a_merged_model_has_no_adapter(how, tmp_path):
    model, base = finetuned()
    if how == "schedule":
        optimizer = torch.optim.AdamW(poet_parameters(model), lr=1e-2)
        MergeSchedule(model, model.model.layers[0].mlp.up_proj.config, optimizer).after_step(399)
    elif how == "one layer":
        model.model.layers[1].mlp.up_proj.merge_and_reinitialize()
    else:
        merge_and_reinitialize(model)
    with pytest.raises(AdapterError, match=r"layer model.layers.\d.\S+ no longer has the weight .*export_dense\(model\).save_pretrained\(folder\)$"):
        save_adapter(model, tmp_path, base, also=("score",))
    assert not list(tmp_path.iterdir())


def test_a_merge_of_nothing_is_none(tmp_path):
    """R and P are the identity before the first step: the weight is still the base model's, under other coordinates."""
    model = build(NAME)
    base = base_digests(model)
    merge_and_reinitialize(apply_poet(model, BS, exclude=("score",)), torch.Generator().manual_seed(5))
    save_adapter(model, tmp_path, base, also=("score",))
    assert torch.equal(logits(load_adapter(build(NAME), tmp_path), batch(NAME)), logits(model, batch(NAME)))


def test_weights_drawn_anew_have_no_adapter(tmp_path):
    model, base = finetuned(config=POETConfig(block_size=4))
    with pytest.raises(AdapterError, match=r"POETConfig\(init='normalized'\) drew: an adapter needs init='keep'"):
        save_adapter(model, tmp_path, base, also=("score",))


def test_digests_are_of_the_plain_model():
    with pytest.raises(AdapterError, match="before apply_poet"):
        base_digests(apply_poet(build("LLaMA"), BS))


def test_digests_of_another_base_model_are_refused(tmp_path):
    model, base = finetuned()
    (key,) = (k for k in base if k.endswith("layers.1.mlp.up_proj.weight"))
    with pytest.raises(AdapterError, match="layer model.layers.1.mlp.up_proj no longer .*`base` is of another model"):
        save_adapter(model, tmp_path, {**base, key: base[key][::-1]}, also=("score",))


def test_a_plain_model_has_no_adapter_to_save(tmp_path):
    model = build(NAME)
    with pytest.raises(AdapterError, match="found no POET layer"):
        save_adapter(model, tmp_path, base_digests(model))


@pytest.mark.parametrize("also", (("scores",), ("score", "up_proj")))
def test_a_name_that_has_no_weight_outside_is_refused(also, tmp_path):
    model, base = finetuned()
    with pytest.raises(AdapterError, match=f"also: no weight outside the POET layers is called '{also[-1]}'"):
        save_adapter(model, tmp_path, base, also=("score", *also))


def test_a_wrapped_model_takes_no_adapter(saved):
    model, folder = saved
    refused(folder, model, "has POET layers already")
    refused(folder, apply_poet(build(NAME), BS, exclude=("score",)), "has POET layers already")


@pytest.mark.parametrize("weight", ("model.layers.0.self_attn.q_proj.weight", "model.embed_tokens.weight"))
def test_another_base_model_is_refused(saved, weight):
    model = build(NAME)
    model.get_parameter(weight).data[0, 0] += 1e-6
    refused(saved[1], model, f"{weight} is not as the adapter .* load the same base model, in the same dtype")


def test_another_dtype_is_refused(saved):
    refused(saved[1], build(NAME).double(), "in the same dtype")


def test_another_architecture_is_refused(saved):
    model = build(NAME)
    del model.model.layers[1]
    refused(saved[1], model, "of another model: this one has no model.layers.1.self_attn.q_proj.weight")
    model = build(NAME)
    model.register_buffer("more", torch.zeros(2))
    refused(saved[1], model, "of another model: that one has no more")


def test_another_head_is_refused(saved):
    model = build(NAME)
    model.score = nn.Linear(16, 3, bias=False)
    refused(saved[1], model, r"score.weight is \(3, 16\) of torch.float32 in the model and \(2, 16\) of torch.float32 in the adapter")


def test_a_layer_of_another_type_is_refused(saved):
    class Other(nn.Linear):
        pass

    model = build(NAME)
    model.model.layers[0].mlp.up_proj.__class__ = Other
    refused(saved[1], model, "layer model.layers.0.mlp.up_proj is a Other, and the adapter .* takes nn.Linear")


@pytest.mark.parametrize("missing", (WEIGHTS, CONFIGURATION))
def test_a_folder_without_one_of_the_files_is_no_adapter(saved, missing):
    (saved[1] / missing).unlink()
    refused(saved[1], build(NAME), f"is no POET adapter: {re.escape(missing)} cannot be read")


@pytest.mark.parametrize("text", ("", "[]", "{}", '{"adapter": 1, "sha256": 2}', "\xff"))
def test_a_file_of_something_else_is_no_adapter(saved, text):
    (saved[1] / CONFIGURATION).write_text(text, encoding="latin-1")
    refused(saved[1], build(NAME), "is no POET adapter: adapter.json is not what save_adapter writes")


def test_an_edited_file_is_refused(saved):
    path = saved[1] / CONFIGURATION
    edit(path, b'"neumann_terms": 3', b'"neumann_terms": 4')
    refused(saved[1], build(NAME), "adapter.json was changed since the adapter was saved")
    edit(path, b'"neumann_terms": 4', b'"neumann_terms": 3')
    content = bytearray((saved[1] / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (saved[1] / WEIGHTS).write_bytes(content)
    refused(saved[1], build(NAME), "adapter.safetensors was changed since the adapter was saved")


@pytest.mark.parametrize(
    ("changes", "why"),
    (
        ({"format": 2}, "its format is 2, not 1"),
        ({"groups": [{"config": {"new_option": 1}, "layers": []}]}, "unexpected keyword argument 'new_option'"),
        ({"groups": [{"config": {"variant": "householder"}, "layers": []}]}, "variant is one of 'bs', 'fs'"),
    ),
)
def test_another_version_s_adapter_is_refused(saved, changes, why):
    rewrite(saved[1], **changes)
    refused(saved[1], build(NAME), f"was written by another version of poet, with which to load it: .*{why}")
