"""Scale files: what is wrong in one is refused before anything runs, and names spell out what differs."""

import hashlib
import json
import shutil

import jsonschema
import pytest
import yaml

import suite.finetuning
import suite.scale
from poet.methods import METHODS
from poet.system.errors import UserError
from poet.system.files import write_text
from poet.system.validation import read_yaml
from suite.collection import distinct, load_suite
from suite.recorded.__main__ import main as recorded
from suite.scale import dataset_name, load_scale
from suite.settings import FILES, read_seeds, schema
from suite.targets import check_targets
from tests.claims import artifact
from tests.workflow.refusals import EDITS, SMOKE


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A copy of the configuration that may be broken."""
    for part in ("config", "analyses/recorded", "analyses/published"):
        shutil.copytree(suite.scale.ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("*.parquet"))
    monkeypatch.setattr(suite.scale, "ROOT", tmp_path)
    return tmp_path


#: What is changed in mini's file, and what the refusal has to say; beside the edits of smoke's that Snakemake and a plan refuse as well.
OF_MINI = (
    ("methods:          #", "methods:\n  nosuch: {lr: 1}\n  #", ("methods", "unknown method 'nosuch'", "galore")),
    ("{model: 350m, lengths", "{model: 7b, lengths", ("tuning", "unknown model '7b'", "350m")),
    ("train_tokens: 4000000", "train_token: 4000000", ("train_token", "train_tokens")),
    ("vocabulary: 1024", "vocabulary: 2020-01-01", ("vocabulary must be a valid integer", "2020")),
    ("weight_decay: 0.01", "weight_decay: .nan", ("training.weight_decay must be a finite number",)),
    ("60m, lengths: [1]", "60m, lengths: []", ("tuning.0.lengths must not be empty",)),
    ("60m, lengths: [1]", "60m, lengths: [0]", ("tuning.0.lengths", "0 is no share of a model's steps, such as 1/10")),
    ("train_tokens: 4000000", "stream: true", ("config/scales/mini.yaml: data", "stream", "leave it out")),
    ("{kind: bpe, vocab_size: 1024}", "{kind: bte, vocab_size: 1024}", ("data.tokenizer", "'kind'", "'bpe', 'hf'", "'bte'")),
    ("batch_rows: 8, accumulation: 1, ", "batch_rows: 8, accumulation: 1, resources: {gpu: 1}, ", ("resources of 60m", "'gpu'", "gpus")),
    ("60m, lengths: [1]", "60m, lengths: [1], rows: [oft]", ("tuning", "unknown row 'oft'", "galore")),
    ("{pretraining: {", "{base: facebook/bart-large, pretraining: {", ("mini.yaml: summarization", "one of `base`", "`pretraining`")),
    ("layers: 3, heads: 4, train", "layers: 3, heads: 5, train", ("summarization.pretraining", "5 heads", "64")),
    ("rows: [adamw, poet-fs-1_2]", "rows: [adamw, muon]", ("finetuning: rows", "one of AdamW and one of POET", "not adamw, muon")),
    ("{merge_every: 66,", "{poet_lr: 1, lr: 1, merge_every: 66,", ("finetuning", "poet_lr of poet, lr of poet would change nothing")),
    ("gpus: 0,", "gpus: 1, processes: 2,", ("mini.yaml: resources", "processes", "without a GPU")),
    ("gpus: 0,", "gpus: 1, runs_per_job: 2,", ("mini.yaml: resources", "runs_per_job", "without a GPU")),
    ("gpus: 0,", "gpus: 3, nodes: 2,", ("mini.yaml: resources", "2 nodes", "3 gpus", "multiple of nodes")),
)
WRONG = [*((*case, SMOKE)[:4] for case in EDITS), *((*case, "config/scales/mini.yaml") for case in OF_MINI)]


@pytest.mark.parametrize(("old", "new", "words", "name"), WRONG)
def test_a_wrong_scale_file_is_refused_in_one_sentence(root, old, new, words, name):
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as refusal:
        load_suite({"scale": "mini" if "mini" in name else "smoke", "seeds": [0]})
    assert all(word in str(refusal.value) for word in words), refusal.value
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (0, ("seeds must be", "not 0", "such as [0, 1, 2]")),
        ([-1], ("seeds.0 must be", "not -1", "0 or more", "such as [0, 1, 2]")),
        (["-1"], ("seeds.0 must be", "not -1", "0 or more", "such as [0, 1, 2]")),  # as Snakemake hands it on
        ([], ("seeds must not be empty", "such as [0, 1, 2]")),
        ([True], ("seeds.0 must be", "not True", "such as [0, 1, 2]")),
        ([0, "x"], ("seeds.1", "'x'", "integer")),
        ("0,1", ("seeds", "'0,1'", "array")),
        ([0, 0], ("seeds", "stands twice in [0, 0]", "name each once")),
    ],
)
def test_seeds_that_cannot_be_are_refused_with_an_example(seeds, words):
    with pytest.raises(UserError) as refusal:
        load_scale({"scale": "mini", "seeds": seeds})
    assert all(word in str(refusal.value) for word in words), refusal.value


@pytest.mark.parametrize(
    ("config", "words"), [({"sede": 1}, ("'sede'", "seeds")), ({"resume": "yes"}, ("config: resume", "'yes'")), ({"resume": "Recorded"}, ("config: resume", "'Recorded'"))]
)
def test_a_wrong_configuration_is_refused(config, words):
    with pytest.raises(UserError) as refusal:
        load_suite({"scale": "smoke", "seeds": [0], **config})
    assert all(word in str(refusal.value) for word in words), refusal.value


@pytest.mark.parametrize(("text", "words"), [("3", ("not 3", "such as [0, 1, 2]")), ("[x]", ("'[x]'", "such as [0,1,2]")), ("[]", ("must not be empty", "such as [0, 1, 2]"))])
def test_a_command_line_s_seeds_are_refused_with_an_example(text, words, capsys):
    assert read_seeds("[0,2]") == [0, 2]
    for command in ("pack", "build"):
        assert recorded([command, "--scale", "smoke", "--seeds", text]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ") and all(word in said for word in words), said


@pytest.mark.parametrize(
    ("last", "line", "why"),
    [
        ("chosen", "60m,adamw,fast,yes", "could not convert string to float: 'fast'"),
        ("chosen", "60m,nosuch,1,yes", "no row or column 'nosuch'"),
        ("choice", "60m,adamw,1,yes", "no row or column 'chosen'"),
    ],
)
def test_rates_that_cannot_be_read_are_named_with_the_remedy(root, last, line, why):
    (root / "analyses" / "recorded" / "mini" / "lr_sweep.csv").write_text(f"model,variant,lr,{last}\n{line}\n")
    with pytest.raises(UserError, match=f"analyses/recorded/mini/lr_sweep.csv, line 2: {why}: mend it, or put it back from git"):
        load_scale({"scale": "mini", "seeds": [0]})


@pytest.mark.parametrize(("text", "why"), [("row,task\nadamw,cola\n", "no column 'chosen'"), ("model,row,task,method,lr,chosen,state\n60m,adamw,cola,poet,low,yes,finished\n", "'low'")])
def test_rates_of_finetuning_that_cannot_be_read_are_named_with_the_remedy(root, monkeypatch, text, why):
    monkeypatch.setattr(suite.finetuning, "ROOT", root)
    suite.finetuning.rates_path("mini").write_text(text)
    with pytest.raises(UserError, match=f"analyses/recorded/mini/finetuning_rates.csv: .*{why}: mend it, or put it back from git"):
        suite.finetuning.tuned_rates(load_scale({"scale": "mini", "seeds": [0]}))


@pytest.mark.parametrize(("content", "why"), [(b"", "has no keys: bring it back"), (b"- 1", "has no keys"), (b"a: [1", ", line 1: not YAML"), (b"a: 1\nb: {c: 1, d: 2, c: 3}", ", line 2: not YAML .c stands twice"), (b"? [a]\n: 1", ", line 1: not YAML"), (b"\xff\xfe\xfa", ": not YAML"), (None, "cannot be read .No such file or directory.: bring it back")])
def test_a_file_of_settings_that_holds_none_is_refused(tmp_path, content, why):
    if content is not None:
        (tmp_path / "some.yaml").write_bytes(content)
    with pytest.raises(UserError, match=f"^config/some.yaml ?{why}"):
        read_yaml(tmp_path / "some.yaml", "config/some.yaml")


@pytest.mark.parametrize("name", FILES)
def test_what_editors_are_told_is_up_to_date(repository, name):
    assert (repository / "workflow" / "schemas" / name).read_text() == schema(name), "make schema writes it anew"


@pytest.mark.parametrize("path", ["config/config.yaml", "config/tuning.yaml", *(f"config/scales/{name}.yaml" for name in ("smoke", "mini", "night", "gpu", "paper"))])
def test_a_file_names_its_schema_which_takes_it_and_refuses_a_typo(repository, path):
    first, values = (text := (repository / path).read_text()).partition("\n")[0], yaml.safe_load(text)
    rules = json.loads((repository / path).parent.joinpath(first.removeprefix("# yaml-language-server: $schema=")).read_text())
    jsonschema.validate(values, rules)
    for typo in ({**values, "sede": 1}, *([{**values, "methods": {"poet": {"merge_evry": 1}}}] if "data" in values else [])):
        with pytest.raises(jsonschema.ValidationError, match="sede|merge_evry"):
            jsonschema.validate(typo, rules)


#: Who reads the files changes neither a run nor the name of a data set. Runs of POET changed when it got ``adam_eps``, and those that Table 4
#: finetunes when they got to keep their weights. Mini was tuned anew, and smoke takes its rates. Paper evaluates on 10 million tokens that are no padding.
KNOWN = {
    "smoke": ("enwik8-64-4d091f33", "60m", "poet-bs-b256", "355e48a9b23420303e203853f49b2fd1a0e54fab0402e549de35fc0ff573a35c"),
    "mini": ("enwik8-64-56b9f060", "350m", "poet-fs-1_2", "5682f9556ac24d5f0b8406a28998e676704bd07b4cfd37f1cc7ccdb086d88fc9"),
    "paper": ("c4-256-c89099c5", "1.3b", "adamw", "53c971a9b6f26c7ad4b5aa052bf5e341c7c256d53d23ff480ec1b7f874b8f486"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_digests_of_runs_and_names_of_data_sets_stay(name):
    scale, (dataset, model, row, digest) = load_scale({"scale": name, "seeds": [0]}), KNOWN[name]
    assert (dataset_name(scale.data), scale.run(model, row, 0).digest) == (dataset, digest)


def test_a_scale_with_rates_needs_no_word_about_tuning():
    assert load_suite({"scale": "mini", "seeds": [0]}).untuned() == load_suite({"scale": "paper", "seeds": [0]}).untuned() == ""


def test_the_learning_rates_of_mini_s_recorded_runs_stay():
    """Those of Table 2, the controls and Figure 9, by the name of each run. Only tuning mini anew is a reason to change this."""
    found = load_suite({"scale": "mini", "seeds": [0, 1, 2]})
    specs = {spec.name: spec for name in ("table2", "controls", "figure9") for spec in found.artifacts[name].runs(found.scale)}
    lines = [
        f"{name} " + " ".join(f"{rate}={spec.parameters[rate]:g}" for rate in METHODS[spec.method].learning_rates)
        for name, spec in sorted(specs.items())
        if spec.method in ("adamw", "adamw-two-rates", "galore", "lora", "poet")  # not those that somebody adds
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert (len(lines), digest) == (171, "54e7d6630328a4c4cfd66831513d594990998af3c6e712c11533423e03ab9950")


def test_a_scale_without_its_table_is_refused_unless_it_is_to_be_tuned(root):
    (root / "analyses" / "recorded" / "mini" / "lr_sweep.csv").unlink()
    assert load_scale({"scale": "mini", "seeds": [0]}).learning_rate_source("60m", "adamw") == "the method's defaults"
    assert "run make tune SCALE=mini and make record SCALE=mini first" in load_suite({"scale": "mini", "seeds": [0]}).untuned()
    path = root / "config" / "scales" / "gpu.yaml"
    path.write_text(path.read_text().replace("learning_rates.csv", "none.csv"))
    with pytest.raises(UserError, match="learning_rates.table: there is no file analyses/published/none.csv"):
        load_scale({"scale": "gpu", "seeds": [0]})


def test_rates_of_other_lengths_are_not_those_of_a_model_s_own(root):
    table = root / "analyses" / "recorded" / "mini" / "lr_sweep.csv"
    head = "model,variant,length,steps,lr,poet_lr,perplexity,chosen,at_grid_end\n"
    lines = ("60m,poet-fs-1_2,1/10,48,0.5,0.25,9,yes,", "60m,poet-fs-1_2,1,480,0.008,0.002,9,yes,poet_lr", "60m,poet-fs-1_2,1,480,0.004,0.002,10,,")
    table.write_text(head + "\n".join(lines) + "\n")
    scale = load_scale({"scale": "mini", "seeds": [0]})
    assert scale.learning_rates("60m", "poet-fs-1_2") == {"lr": 0.008, "poet_lr": 0.002}
    assert scale.rate_table.chosen("60m", "poet-fs-1_2", 48).rates == {"lr": 0.5, "poet_lr": 0.25}
    assert scale.rate_table.tried("60m", "poet-fs-1_2", 480) == [{"lr": 0.008, "poet_lr": 0.002}, {"lr": 0.004, "poet_lr": 0.002}]
    assert scale.tuned("60m", "poet-fs-1_2").open_sides == ("poet_lr",)
    assert scale.tuned("60m", "adamw") is None


def test_an_override_that_changes_nothing_is_the_same_run(mini):
    plain = mini.run("60m", "poet-fs-1_2", 0)
    assert mini.run("60m", "poet-fs-1_2", 0, overrides={"merge_every": plain.parameters["merge_every"]}) == plain


def test_names_spell_out_what_differs_from_the_row(mini):
    assert mini.run("60m", "poet-fs-1_2", 3).name == "mini/60m/poet-fs-1_2/seed3"
    changed = mini.run("60m", "poet-fs-1_2", 3, overrides={"merge_every": 7, "poet_lr": 0.25})
    assert changed.name == "mini/60m/poet-fs-1_2-merge_every=7-poet_lr=0.25/seed3"
    assert changed.parameters["merge_every"] == 7


def test_learning_rates_come_from_the_recorded_sweep(mini):
    for row in ("adamw", "galore", "lora-r64", "poet-bs-b256", "poet-fs-1_8"):
        for model, lender in (("60m", "60m"), ("130m", "130m"), ("350m", "350m"), ("1.3b", "1.3b"), ("3b", "1.3b")):
            run, chosen = mini.run(model, row, 0), {(t.model, t.row): t.rates for t in mini.rate_table.trials if t.chosen}
            rates = chosen[lender, row]
            assert rates == mini.learning_rates(model, row)
            assert mini.learning_rate_source(model, row).endswith(f"lr_sweep.csv ({lender})")
            assert {name: run.parameters[name] for name in rates} == rates


def test_one_name_for_two_specs_is_refused(mini):
    one, two = mini.run("60m", "adamw", 0), mini.run("60m", "adamw", 0, overrides={"lr": 0.5})
    object.__setattr__(two, "variant", "adamw")
    with pytest.raises(ValueError, match="two different specs"):
        distinct({"a": [one], "b": [two]})


def test_a_run_that_two_artifacts_share_is_one_run(mini):
    assert len(distinct({name: [mini.run("60m", "adamw", 0)] for name in ("a", "b")})) == 1


def test_steps_and_probes_are_part_of_the_run_and_of_its_name(mini):
    plain = mini.run("60m", "muon", 0, steps=480, probes={})
    assert plain.name == "mini/60m/muon/seed0"  # the model's own number of steps changes nothing
    longer = mini.run("60m", "muon", 0, steps=960, probes={"spectrum": range(0, 960, 96), "energy": [960]})
    assert longer.name == "mini/60m/muon-steps=960-energy=1-spectrum=10/seed0"
    assert longer.steps == 960 and longer.probes["spectrum"][-1] == 864 and longer.probes["energy"] == (960,)
    with pytest.raises(ValueError, match="unknown probe 'speed'; known are spectrum"):
        mini.run("60m", "muon", 0, probes={"speed": [1]})


def test_an_artifact_whose_model_the_scale_lacks_is_left_out_and_says_so(monkeypatch):
    wanted = artifact(outputs=("big.csv",), runs=lambda s: [s.run("3b", "adamw", 0)], models=("3b",))
    monkeypatch.setattr("suite.collection.discover", lambda: {"big": wanted})
    here, there = (load_suite({"scale": name, "seeds": [0]}) for name in ("mini", "gpu"))
    assert len(here.runs) == 1 and not here.left_out and here.default_targets()
    assert not there.runs and not there.default_targets()
    check_targets(here, ["results/big.csv"])
    with pytest.raises(UserError, match="big needs model 3b; scale gpu has 60m, 130m"):
        check_targets(there, ["results/big.csv"])


def test_paper_runs_ask_for_the_gpus_of_tables_9_and_10():
    suite = load_suite({"scale": "paper", "seeds": [0]})
    assert [suite.resources(model)["gpu"] for model in ("60m", "130m", "350m", "1.3b", "3b")] == [1, 1, 4, 8, 8]
    assert [suite.resources(model)["shard_optimizer"] for model in ("350m", "1.3b", "3b")] == [0, 1, 1]
    asked = suite.finetuning_resources("1.3b")
    assert (asked["gpu"], asked["mem_mb"], suite.finetuning_threads("1.3b")) == (1, 512000 // 8, 64 // 8)


def test_a_model_s_resources_stand_before_the_scale_s(root):
    path = root / "config" / "scales" / "mini.yaml"
    text = path.read_text().replace("steps: 480, batch_rows: 8, accumulation: 1,", "steps: 480, batch_rows: 8, accumulation: 1, resources: {threads: 3, nodes: 2, processes: 4, partition: big},")
    path.write_text(text)
    suite = load_suite({"scale": "mini", "seeds": [0]})
    assert suite.scale.resources("60m")["threads"] == 3 and suite.scale.resources("130m")["threads"] == 1
    asked = suite.resources("60m")
    assert (asked["nodes"], asked["tasks"], asked["mpi"], asked["slurm_partition"], asked["processes"]) == (2, 2, "srun", "big", 4)
    assert not {"gres", "gpu_model"} & asked.keys(), "it has no GPU"
    assert not {"nodes", "mpi", "slurm_partition", "gres", "gpu_model"} & suite.resources("130m").keys()


def test_another_text_in_the_folder_of_the_data_is_noticed(root, monkeypatch):
    monkeypatch.chdir(root)
    path, shard = root / "config" / "scales" / "gpu.yaml", root / "c4-train.00000-of-00001.json.gz"
    shard.write_text("one text")
    (root / "c4-validation.00000-of-00001.json.gz").write_text("one text")
    path.write_text(path.read_text().replace("corpus: enwik8", f"corpus: c4\n  path: {root}"))
    suite = load_suite({"scale": "gpu", "seeds": [0]})
    write_text(suite.dataset / "meta.json", json.dumps({"corpus": suite.text}))
    assert suite.text and not suite.data_changed
    shard.write_text("another text")
    assert suite.data_changed
    shard.unlink()
    assert not suite.data_changed, "what is prepared stays"


def test_every_node_of_a_run_has_as_many_gpus(root):
    path = root / "config" / "scales" / "mini.yaml"
    path.write_text(path.read_text().replace("gpus: 0,", "gpus: 4, nodes: 2, gpu_model: h100,"))
    asked = load_suite({"scale": "mini", "seeds": [0]}).resources("60m")
    assert (asked["gpu"], asked["gres"], asked["gpu_model"]) == (4, "gpu:h100:2", "h100")


@pytest.mark.parametrize("path", sorted((suite.scale.ROOT / "config" / "scales").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scale_has_the_paper_s_floor_and_tunes_on_no_table_s_seed(path):
    scale = load_scale({"scale": path.stem, "seeds": [0]})
    assert scale.settings.training.minimum_lr_ratio == 0.01  # Appendix "Training details": "the minimum learning ratio of 0.01"
    assert scale.protocol.seed >= 1000  # tables are made with the first ones: SEEDS=[0,1,2]


def test_a_table_on_the_seed_of_tuning_is_refused():
    with pytest.raises(UserError, match="config: seeds: 1000 is the seed of tuning .*tables take others"):
        load_suite({"scale": "mini", "seeds": [0, 1000]})


def test_a_rung_on_the_seed_of_tuning_is_refused(root):
    path = root / "config" / "scales" / "night.yaml"
    path.write_text(path.read_text().replace("seeds: [3, 4, 5]", "seeds: [3, 1000]"))
    with pytest.raises(UserError, match="night.yaml: tuning: seeds: 1000 is the seed of tuning"):
        load_scale({"scale": "night", "seeds": [0]})
