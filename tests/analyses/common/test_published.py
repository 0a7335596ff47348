"""The files of printed numbers: whole, and with the digits that are printed."""

import re

import pytest
from analyses.common.published import printed_text, read_published


@pytest.mark.parametrize(
    ("name", "keys", "rows", "cell"),
    [
        ("table4", ["finetuning", "pretraining"], 6, r"0\.\d{3}"),
        ("table12", ["method", "trainable"], 4, r"\d\d\.\d\d"),
    ],
)
def test_tables_of_finetuning_are_whole(name, keys, rows, cell):
    table = read_published(name).set_index(keys)
    assert table.index.is_unique and len(table) == rows
    assert all(re.fullmatch(cell, text) for text in table.to_numpy().flat)


def test_what_the_paper_has_in_bold_is_the_best():
    """Table 12: the last row everywhere. Table 4: in each pair the model pretrained by POET, but for one cell."""
    scores = read_published("table12").set_index("method").drop(columns="trainable").astype(float)
    assert set(scores.idxmax()) == {"POET (FS, b=1/2)"}
    tasks = read_published("table4").set_index(["pretraining", "finetuning"]).astype(float)
    ahead = (tasks.loc["POET"] > tasks.loc["AdamW"]).stack()
    assert list(ahead[~ahead].index) == [("Full FT", "STS-B")]
    assert printed_text("table4", "STS-B", finetuning="Full FT", pretraining="AdamW") == "0.880"
