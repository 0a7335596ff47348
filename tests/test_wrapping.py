"""What apply_poet says of itself: what was wrapped, what was left and why, and what it warns of."""

import logging
import warnings

import pytest
import torch
from torch import nn

import poet
from poet import POETConfig, POETLinear, apply_poet, export_dense, print_trainable_parameters, wrapping_report
from poet.model import poet_layers

BS = POETConfig(block_size=4)
SIZES = {"vocab_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}


@pytest.fixture
def bert():
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**SIZES))


@pytest.fixture
def gpt2():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    return GPT2ForSequenceClassification(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0, num_labels=4))


def test_fresh_weights_are_drawn_anew_without_a_word(llama, recwarn):
    apply_poet(llama(), BS)
    assert not recwarn.list


def test_trained_weights_drawn_anew_are_warned_of(llama, tmp_path, recwarn):
    from transformers import AutoConfig, LlamaForCausalLM

    llama().save_pretrained(tmp_path)
    apply_poet(LlamaForCausalLM(AutoConfig.from_pretrained(tmp_path)), BS)  # its shape alone is the checkpoint's
    apply_poet(LlamaForCausalLM.from_pretrained(tmp_path), POETConfig(block_size=4, init="keep"))
    assert not [w for w in recwarn.list if "apply_poet" in str(w.message)]
    with pytest.warns(UserWarning, match=r"draws trained weights anew, in 14 layers .*init='keep'") as caught:
        apply_poet(LlamaForCausalLM.from_pretrained(tmp_path), BS)
    assert caught[0].filename == __file__


def test_a_weight_with_a_gradient_is_a_trained_one():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model(torch.ones(1, 8)).sum().backward()
    with pytest.warns(UserWarning, match="in 2 layers"):
        apply_poet(model, BS)


@pytest.mark.parametrize(
    ("entry", "nearest"), (("lm_haed", "lm_head"), ("mlp.up_prj", "mlp.up_proj"), ("head", "lm_head"), ("layers.2", "layers.1"))
)
def test_a_name_that_no_layer_has_is_refused(llama, entry, nearest):
    model = llama()
    with pytest.raises(ValueError, match=f"exclude: no layer is called '{entry}'; the nearest name is '{nearest}'"):
        apply_poet(model, BS, exclude=("lm_head", entry))
    assert not list(poet_layers(model))


def test_the_default_asks_for_no_head():
    assert list(poet_layers(apply_poet(nn.Sequential(nn.Linear(8, 8)), BS)))
    with pytest.raises(ValueError, match="no layer is called 'lm_head'"):
        apply_poet(nn.Sequential(nn.Linear(8, 8)), BS, exclude=("lm_head", "0"))


def test_a_tied_decoder_is_left_alone_and_stays_tied(bert):
    report = wrapping_report(apply_poet(bert, BS))
    assert report["cls.predictions.decoder"] == "its weight is tied to bert.embeddings.word_embeddings.weight"
    assert bert.cls.predictions.decoder.weight is bert.bert.embeddings.word_embeddings.weight
    assert report["cls.predictions.transform.dense"] == "wrapped"
    assert sum(why == "wrapped" for why in report.values()) == len(list(poet_layers(bert))) == 6 + 1


def test_a_tied_bias_stays_tied(bert):
    bert.config.tie_word_embeddings = False
    decoder = bert.cls.predictions.decoder
    decoder.weight = nn.Parameter(decoder.weight.detach().clone())
    assert decoder.bias is bert.cls.predictions.bias
    apply_poet(bert, BS)
    assert bert.cls.predictions.decoder.bias is bert.cls.predictions.bias


def test_conv1d_is_named(gpt2):
    with pytest.warns(UserWarning, match=r"leaves 4 layers alone \(transformer.h.0.attn.c_attn, ...\), each a Conv1D"):
        apply_poet(gpt2, BS)
    report = wrapping_report(gpt2)
    assert report["score"] == "wrapped" and report["transformer.h.0.mlp.c_fc"].startswith("a Conv1D of transformers")
    with pytest.raises(ValueError, match=r"found no nn.Linear .*'score'.* 4 layers left: a Conv1D of transformers"):
        export_dense(gpt2)
        apply_poet(gpt2, BS, exclude=("score",))


def test_the_report_is_logged_and_printed(llama, caplog, capsys):
    with caplog.at_level(logging.INFO, "poet"):
        model = apply_poet(llama(), BS, exclude=("lm_head", "layers.1.mlp"))
    assert caplog.messages[0].splitlines() == [
        "11 layers wrapped (model.layers.0.self_attn.q_proj, model.layers.0.self_attn.k_proj, ...)",
        "1 layer left: of type Embedding (model.embed_tokens)",
        "4 layers left: excluded (model.layers.1.mlp.gate_proj, model.layers.1.mlp.up_proj, ...)",
    ]
    print_trainable_parameters(model)
    trained, total = (sum(p.numel() for p in model.parameters() if p.requires_grad or every) for every in (False, True))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"trainable params: {trained:,d} || all params: {total:,d} || trainable%: {100 * trained / total:.4f}"
    assert rest == caplog.messages[0].splitlines()


def test_a_subclass_of_linear_is_named():
    report = wrapping_report(apply_poet(nn.TransformerEncoderLayer(8, 2, 16), BS))
    assert report["self_attn.out_proj"].startswith("of type NonDynamicallyQuantizableLinear") and report["linear1"] == "wrapped"


def test_a_wrapped_model_does_not_save_as_if_it_were_plain(llama, tmp_path):
    model = apply_poet(llama(), BS)
    for part in (model, model.model):
        with pytest.raises(ValueError, match=r"export_dense\(model\) first"):
            part.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_dense(model).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()


def test_the_package_says_its_version_and_its_types(repository):
    import tomllib

    project = tomllib.loads((repository / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "poet.__version__"}
    assert project["tool"]["setuptools"]["package-data"]["poet"] == ["py.typed"]
    assert (repository / "poet" / "py.typed").exists() and poet.__version__.count(".") == 2


def test_a_module_with_several_names_is_left_by_each_of_them():
    class Headed(nn.Module):
        def __init__(self):
            super().__init__()
            head = nn.Linear(8, 8)
            self.net = nn.Sequential(nn.Linear(8, 8), head)
            self.lm_head = head

    for exclude in (("lm_head",), ("net.1",)):
        model = apply_poet(Headed(), POETConfig(block_size=4), exclude=exclude)
        assert type(model.lm_head) is type(model.net[1]) is nn.Linear and type(model.net[0]) is POETLinear
    assert wrapping_report(model) == {"net.0": "wrapped", "net.1": "excluded"}


def test_a_lazy_layer_is_reported():
    model = apply_poet(nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 8)), POETConfig(block_size=4))
    assert "LazyLinear" in wrapping_report(model)["0"] and wrapping_report(model)["1"] == "wrapped"


def test_a_model_without_parameters_is_printed(capsys):
    print_trainable_parameters(nn.ReLU())
    assert "trainable params: 0" in capsys.readouterr().out
