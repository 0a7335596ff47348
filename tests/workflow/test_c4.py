"""C4's layout through the whole pipeline: local shards made from the default corpus, one padded document a row; and the
same run on rows that are streamed."""

import itertools
import json

import tokenizers
import transformers
import yaml
from poet.data.corpora.enwik8 import Enwik8
from poet.data.prepare import prepare
from poet.launch.loop import train
from poet.training.spec import RunSpec
from tests.data.shards import write_shards


def write_stand_in(folder, bpe):
    """The corpus's own BPE as a Hugging Face tokenizer: stands in for T5's, which needs a network."""
    backend = tokenizers.Tokenizer.from_file(str(bpe))
    backend.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def test_shards_in_c4_s_layout_train_through_the_same_pipeline(project):
    settings = yaml.safe_load((project.folder / "config" / "scales" / "smoke.yaml").read_text())
    cache = project.folder / "data" / "cache"
    prepare(settings["data"], project.folder / "enwik8", cache)
    texts = [prose for _, prose in itertools.islice(Enwik8(cache=cache).articles(), 120)]
    short = [text[:90] for text in texts[100:]]  # shorter than a row: padded
    write_shards(project.folder / "c4", {"train": [texts[:50], texts[50:100]], "validation": [short]})
    write_stand_in(project.folder / "stand-in", project.folder / "enwik8" / "tokenizer.json")
    settings["data"] = {
        "corpus": "c4",
        "path": str(project.folder / "c4"),
        "tokenizer": {"kind": "hf", "name": str(project.folder / "stand-in")},
        "sequence_length": 64,
        "packing": "pad",
    }
    settings["finetuning"]["runs_per_job"] = 1
    (project.folder / "config" / "scales" / "shards.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    target = "results/runs/shards/60m/poet-fs-1_2/seed0/record.json"
    finetuned = "results/runs/shards/finetuned/mrpc/60m-poet-fs-1_2-seed0/poet-lr=2e-05/seed0/record.json"
    done = project.snakemake(target, finetuned, "--config", "scale=shards")
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((project.folder / finetuned).read_text())["status"] == "completed"
    record = json.loads((project.folder / target).read_text())
    assert record["status"] == "completed"
    assert 1 < record["validation_perplexity"] < 1100
    (meta,) = (json.loads(p.read_text()) for p in (project.folder / "data").glob("c4-*/meta.json"))
    assert meta["splits"]["train"]["rows"] == 100
    assert [file["rows"] for file in meta["splits"]["train"]["files"]] == [50, 50]
    assert record["data_sha256"] == meta["splits"]["train"]["sha256"]
    assert meta["splits"]["validation"]["tokens_without_padding"] < meta["splits"]["validation"]["tokens"]
    streamed = settings["data"] | {"stream": True}
    prepare(streamed, project.folder / "streamed", cache)
    again = train(
        RunSpec.from_dict(record["spec"] | {"data": streamed}),
        data=project.folder / "streamed",
        folder=project.folder / "again",
        checkpoints=project.folder / "checkpoints",
        device="cpu",
    )
    assert again["weights_sha256"] == record["weights_sha256"]
    assert again["validation_perplexity"] == record["validation_perplexity"]
    assert not list((project.folder / "streamed" / "train").glob("*.npy"))
