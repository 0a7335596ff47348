"""What adapters refuse, each in one sentence."""

import json
import re

import pytest
import torch
from torch import nn

from poet import MergeSchedule, POETConfig, apply_poet, merge_and_reinitialize
from poet.finetuning.adapter import CONFIGURATION, WEIGHTS, AdapterError, _digest_of_values, base_digests, load_adapter, save_adapter
from poet.optim import poet_parameters
from tests.finetuning.pretrained import BS, CLASSIFIER, build, finetuned


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


def test_a_wrapper_has_no_adapter(tmp_path):
    model, base = finetuned()
    with pytest.raises(AdapterError, match="base has no module.model.layers.0.+give save_adapter the model itself, not its wrapper"):
        save_adapter(nn.DataParallel(model), tmp_path, base, also=("score",))
    with pytest.raises(AdapterError, match="or the dtype is another"):
        save_adapter(model.bfloat16(), tmp_path, base, also=("score",))
    assert not list(tmp_path.iterdir())


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
    model = build(CLASSIFIER)
    with pytest.raises(AdapterError, match="found no POET layer"):
        save_adapter(model, tmp_path, base_digests(model))


@pytest.mark.parametrize("entry", ("scores", "up_proj"))
def test_a_name_that_has_no_weight_outside_is_refused(entry, tmp_path):
    model, base = finetuned()
    with pytest.raises(AdapterError, match=f"also: no weight outside the POET layers is called '{entry}'"):
        save_adapter(model, tmp_path, base, also=("score", entry))


def test_also_is_not_one_string(tmp_path):
    model, base = finetuned()
    with pytest.raises(AdapterError, match=r"also is a sequence of names such as \('score',\), got 'score'"):
        save_adapter(model, tmp_path, base, also="score")


def test_a_wrapped_model_takes_no_adapter(saved):
    model, folder = saved
    refused(folder, model, "has POET layers already")
    refused(folder, apply_poet(build(CLASSIFIER), BS, exclude=("score",)), "has POET layers already")


@pytest.mark.parametrize("weight", ("model.layers.0.self_attn.q_proj.weight", "model.embed_tokens.weight"))
def test_another_base_model_is_refused(saved, weight):
    model = build(CLASSIFIER)
    model.get_parameter(weight).data[0, 0] += 1e-6
    refused(saved[1], model, f"{weight} is not as the adapter .* load the same base model, in the same dtype")


def test_another_dtype_is_refused(saved):
    refused(saved[1], build(CLASSIFIER).double(), "in the same dtype")


def test_another_architecture_is_refused(saved):
    model = build(CLASSIFIER)
    del model.model.layers[1]
    refused(saved[1], model, "of another model: this one has no model.layers.1.self_attn.q_proj.weight")
    model = build(CLASSIFIER)
    model.register_buffer("more", torch.zeros(2))
    refused(saved[1], model, "of another model: that one has no more")


def test_another_head_is_refused(saved):
    model = build(CLASSIFIER)
    model.score = nn.Linear(16, 3, bias=False)
    refused(saved[1], model, r"score.weight is \(3, 16\) of torch.float32 in the model and \(2, 16\) of torch.float32 in the adapter")


def test_a_layer_of_another_type_is_refused(saved):
    class Other(nn.Linear):
        pass

    model = build(CLASSIFIER)
    model.model.layers[0].mlp.up_proj.__class__ = Other
    refused(saved[1], model, "layer model.layers.0.mlp.up_proj is a Other, and the adapter .* takes nn.Linear")


def test_a_layer_with_a_hook_is_refused(saved):
    model = build(CLASSIFIER)
    model.model.layers[1].mlp.down_proj.register_forward_hook(lambda *_: None)
    refused(saved[1], model, "cannot be put on this model: apply_poet replaces layers that have hooks")
    assert type(model.model.layers[0].mlp.up_proj) is nn.Linear


@pytest.mark.parametrize("missing", (WEIGHTS, CONFIGURATION))
def test_a_folder_without_one_of_the_files_is_no_adapter(saved, missing):
    (saved[1] / missing).unlink()
    refused(saved[1], build(CLASSIFIER), f"is no POET adapter: {re.escape(missing)} cannot be read")


@pytest.mark.parametrize("text", ("", "[]", "{}", '{"adapter": 1, "sha256": 2}', "\xff"))
def test_a_file_of_something_else_is_no_adapter(saved, text):
    (saved[1] / CONFIGURATION).write_text(text, encoding="latin-1")
    refused(saved[1], build(CLASSIFIER), "is no POET adapter: adapter.json is not what save_adapter writes")


def test_an_edited_file_is_refused(saved):
    path = saved[1] / CONFIGURATION
    edit(path, b'"neumann_terms": 3', b'"neumann_terms": 4')
    refused(saved[1], build(CLASSIFIER), "adapter.json was changed since the adapter was saved")
    edit(path, b'"neumann_terms": 4', b'"neumann_terms": 3')
    content = bytearray((saved[1] / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (saved[1] / WEIGHTS).write_bytes(content)
    refused(saved[1], build(CLASSIFIER), "adapter.safetensors was changed since the adapter was saved")


@pytest.mark.parametrize(
    ("changes", "why"),
    (
        ({"format": 2}, "its format is 2, not 1"),
        ({"groups": [{"config": {"new_option": 1}, "layers": []}]}, "unexpected keyword argument 'new_option'"),
        ({"groups": [{"config": {"variant": "nosuch"}, "layers": []}]}, "variant is one of 'bs', 'fs'"),
    ),
)
def test_another_version_s_adapter_is_refused(saved, changes, why):
    rewrite(saved[1], **changes)
    refused(saved[1], build(CLASSIFIER), f"was written by another version of poet, with which to load it: .*{why}")
