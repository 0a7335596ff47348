"""The real sets, in files as the hub and GLUE's archive have them."""

import pandas as pd
import pytest

from poet.data.errors import DataError
from poet.finetuning.examples import prepare_task, read_split
from poet.finetuning.tasks import TASKS, Example, load_task

#: Column names of the real sets on the hub, and a text of each column.
HUB = {
    "cola": ("sentence",),
    "mnli": ("premise", "hypothesis"),
    "mrpc": ("sentence1", "sentence2"),
    "qnli": ("question", "sentence"),
    "qqp": ("question1", "question2"),
    "rte": ("sentence1", "sentence2"),
    "sst2": ("sentence",),
    "stsb": ("sentence1", "sentence2"),
    "xsum": ("document",),
    "cnn_dailymail": ("article",),
}
TARGET = {"xsum": "summary", "cnn_dailymail": "highlights"}
#: First lines of GLUE's own files (None: it has none), a row of them, and the example that it is. Rows have a quote that quotes nothing.
GLUE = {
    "cola": ("CoLA", None, 'gj04\t0\t*\tHe "said.', (('He "said.',), 0)),
    "mnli": (
        "MNLI",
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        '1\t2\t3\tfiction\tb\tb\tp\tp\tIt "rains.\tIt is wet.\tneutral\tcontradiction',
        (('It "rains.', "It is wet."), 2),
    ),
    "mrpc": ("MRPC", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t70\t71\tA "b.\tC d.', (('A "b.', "C d."), 1)),
    "qnli": ("QNLI", "index\tquestion\tsentence\tlabel", '0\tWho "is?\tHe is.\tnot_entailment', (('Who "is?', "He is."), 1)),
    "qqp": ("QQP", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", '5\t6\t7\tWhy "a?\tHow b?\t1', (('Why "a?', "How b?"), 1)),
    "rte": ("RTE", "index\tsentence1\tsentence2\tlabel", '0\tA "b.\tC d.\tentailment', (('A "b.', "C d."), 0)),
    "sst2": ("SST-2", "sentence\tlabel", 'a "fine film \t1', (('a "fine film ',), 1)),
    "stsb": (
        "STS-B",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        '0\tnews\tx\t2012\t1\tnone\tnone\tA "plane.\tA bird.\t2.750',
        (('A "plane.', "A bird."), 2.75),
    ),
}


def target(name, number):
    task = TASKS[name]
    return f"Summary {number}." if task.classes == 0 else 1.25 * (number % 4) if task.classes == 1 else number % task.classes


def rows(name, split, count=12):
    columns = {column: [f"{split} {column} {number}" for number in range(count)] for column in HUB[name]}
    return columns | {TARGET.get(name, "label"): [target(name, number) for number in range(count)], "idx": list(range(count))}


def expected(name, split, count=12):
    return {Example(tuple(f"{split} {column} {n}" for column in HUB[name]), target(name, n)) for n in range(count)}


def write_parquet(name, folder, split, columns, part="00000-of-00001"):
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_parquet(folder / f"{split}-{part}.parquet")


@pytest.mark.parametrize("below", ["", "own"])
@pytest.mark.parametrize("name", TASKS)
def test_parquet_files_of_the_hub(tmp_path, name, below):
    folder = tmp_path / (TASKS[name].configuration or "data" if below else "")
    validation = "validation_matched" if name == "mnli" else "validation"
    for split in ("train", validation):
        write_parquet(name, folder, split, rows(name, split))
    data = load_task(name, f"folder:{tmp_path}", tmp_path / "cache")
    assert set(data.train) == expected(name, "train") and set(data.validation) == expected(name, validation)
    assert len(data.train) == 12 and data.origin.kind == "real" and validation in data.origin.sentence


def test_a_split_in_parts_and_its_limit(tmp_path):
    columns = rows("rte", "train")
    for number, part in enumerate(("00000-of-00002", "00001-of-00002")):
        half = {name: values[6 * number :][:6] for name, values in columns.items()}
        write_parquet("rte", tmp_path / "parts" / "rte", "train", half, part)
    write_parquet("rte", tmp_path / "parts" / "rte", "validation", rows("rte", "validation"))
    write_parquet("rte", tmp_path / "one", "train", columns)
    write_parquet("rte", tmp_path / "one", "validation", rows("rte", "validation"))
    parts, one = (load_task("rte", f"folder:{tmp_path / name}", tmp_path) for name in ("parts", "one"))
    assert (parts.train, parts.validation) == (one.train, one.validation)
    few = load_task("rte", f"folder:{tmp_path / 'one'}", tmp_path, limit={"train": 5})
    assert few.train == one.train[:5] and few.validation == one.validation
    assert few.train != [e for e in expected_in_order() if e in few.train]  # not the order of the file


@pytest.mark.parametrize("name", ["rte", "xsum"])
def test_an_example_keeps_to_one_line_when_it_is_prepared(tmp_path, name):
    columns = rows(name, "train")
    for column in (*HUB[name], *([TARGET[name]] if name in TARGET else [])):
        columns[column] = [f"{text}\u2028a\u2029b\x85c\nd" for text in columns[column]]
    for split in ("train", "validation"):
        write_parquet(name, tmp_path / "given", split, columns)
    data = {"source": f"folder:{tmp_path / 'given'}", "train": 0, "validation": 0}
    prepare_task(name, data, tmp_path / "prepared", tmp_path)
    for split in ("train", "validation"):
        _, lines = read_split(tmp_path / "prepared", split)
        assert len(lines) == 12 and all(text.endswith(" a b c\nd") for line in lines for text in line if isinstance(text, str))


def expected_in_order():
    return [Example(tuple(f"train {column} {n}" for column in HUB["rte"]), target("rte", n)) for n in range(12)]


@pytest.mark.parametrize("own_folder", [True, False])
@pytest.mark.parametrize("name", GLUE)
def test_files_of_glue_s_archive(tmp_path, name, own_folder):
    label, header, row, (texts, found) = GLUE[name]
    folder = tmp_path / label if own_folder else tmp_path
    folder.mkdir(exist_ok=True)
    text = "".join(line + "\n" for line in (header, row) if line is not None)
    (folder / "train.tsv").write_text(text, encoding="utf-8-sig")
    (folder / ("dev_matched.tsv" if name == "mnli" else "dev.tsv")).write_text(text)
    data = load_task(name, f"folder:{tmp_path}", tmp_path / "cache")
    assert data.train == data.validation == [Example(texts, found)]
    assert type(data.train[0].target) is type(found)


def glue_files(folder, name, lines):
    label, header, *_ = GLUE[name]
    (folder / label).mkdir()
    for file in ("train.tsv", "dev.tsv"):
        (folder / label / file).write_text("".join(line + "\n" for line in (header, *lines)))


def test_a_few_short_rows_are_left_out_and_many_are_damage(tmp_path):
    good = [f"{n}\t{n}\t{n}\tWhy {n}?\tHow {n}?\t{n % 2}" for n in range(1999)]
    glue_files(tmp_path, "qqp", [*good, "9\tcut"])
    assert len(load_task("qqp", f"folder:{tmp_path}", tmp_path).train) == 1999
    (tmp_path / "QQP" / "train.tsv").write_text("\n".join([GLUE["qqp"][1], *good, *["9\tcut"] * 20]))
    with pytest.raises(DataError, match="train.tsv is damaged .20 of 2019 rows"):
        load_task("qqp", f"folder:{tmp_path}", tmp_path)


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("rte", ["0\ta\tb\t-"], "'-' is no target of the task rte"),
        ("stsb", ["0\tg\tf\t2012\t1\tn\tn\ta\tb\t7.5"], "'7.5' is no target of the task stsb"),
        ("sst2", ["good\t2"], "'2' is no target"),
        ("sst2", [], "0 of 0 rows"),
    ],
)
def test_what_is_no_file_of_the_task_is_refused(tmp_path, name, lines, said):
    glue_files(tmp_path, name, lines)
    with pytest.raises(DataError, match=said):
        load_task(name, f"folder:{tmp_path}", tmp_path)


def test_test_splits_without_labels_are_refused(tmp_path):
    columns = rows("cola", "train") | {"label": [-1] * 12}
    write_parquet("cola", tmp_path, "train", columns)
    with pytest.raises(DataError, match="-1 is no target of the task cola"):
        load_task("cola", f"folder:{tmp_path}", tmp_path)


@pytest.mark.parametrize("name", ["sst2", "xsum"])
def test_the_files_of_another_task_are_refused(tmp_path, name):
    write_parquet("rte", tmp_path, "train", rows("rte", "train"))
    with pytest.raises(DataError, match=f"no column '(sentence|document)': is this the task {name}"):
        load_task(name, f"folder:{tmp_path}", tmp_path)


def test_a_damaged_parquet_file_is_named(tmp_path):
    write_parquet("cola", tmp_path, "train", rows("cola", "train"))
    path = tmp_path / "train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=f"{path.name} is damaged .*fetch it again"):
        load_task("cola", f"folder:{tmp_path}", tmp_path)


def test_an_empty_folder_says_what_it_may_hold(tmp_path):
    for name in TASKS:
        with pytest.raises(DataError, match=f"the task {name} has no train split") as caught:
            load_task(name, f"folder:{tmp_path}", tmp_path)
        said = str(caught.value)
        assert '"hub"' in said and "train-*.parquet" in said and "\n" not in said


@pytest.mark.parametrize("name", TASKS)
def test_the_hub_is_read_through_datasets(tmp_path, monkeypatch, name):
    import datasets

    asked = []

    def load(repository, configuration, *, split, revision, cache_dir):
        assert revision == TASKS[name].revision
        asked.append((repository, configuration, split))
        return datasets.Dataset.from_dict(rows(name, split))

    monkeypatch.setattr(datasets, "load_dataset", load)
    data = load_task(name, "hub", tmp_path, limit={"validation": 4})
    validation = "validation_matched" if name == "mnli" else "validation"
    repository = {"xsum": "EdinburghNLP/xsum", "cnn_dailymail": "abisee/cnn_dailymail"}.get(name, "nyu-mll/glue")
    configuration = {"xsum": None, "cnn_dailymail": "3.0.0"}.get(name, name)
    assert asked == [(repository, configuration, "train"), (repository, configuration, validation)]
    assert set(data.train) == expected(name, "train") and len(data.validation) == 4
    for split in ("train", validation):
        write_parquet(name, tmp_path / "same", split, rows(name, split))
    same = load_task(name, f"folder:{tmp_path / 'same'}", tmp_path, limit={"validation": 4})
    assert (same.train, same.validation) == (data.train, data.validation)


def test_an_unreachable_hub_is_said_in_a_sentence(tmp_path, monkeypatch):
    import datasets

    def load(*_, **__):
        raise ConnectionError("Couldn't reach it\non the Hub")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError) as caught:
        load_task("mnli", "hub", tmp_path)
    said = str(caught.value)
    assert "the task mnli" in said and "Couldn't reach it on the Hub" in said and "MNLI/dev_matched.tsv" in said and "\n" not in said
