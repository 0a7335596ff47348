"""The files of printed numbers of finetuning: with the digits that are printed."""

import re

from analyses.common.published import printed_text, read_published


def test_what_the_paper_has_in_bold_is_the_best():
    """Table 12: the last row everywhere. Table 4: in each pair the model pretrained by POET, but for one cell."""
    scores = read_published("table12").set_index("method").drop(columns="trainable")
    assert all(re.fullmatch(r"\d\d\.\d\d", text) for text in scores.to_numpy().flat)
    assert set(scores.astype(float).idxmax()) == {"POET (FS, b=1/2)"}
    tasks = read_published("table4").set_index(["pretraining", "finetuning"])
    assert all(re.fullmatch(r"0\.\d{3}", text) for text in tasks.to_numpy().flat)
    tasks = tasks.astype(float)
    ahead = (tasks.loc["POET"] > tasks.loc["AdamW"]).stack()
    assert list(ahead[~ahead].index) == [("Full FT", "STS-B")]
    assert printed_text("table4", "STS-B", finetuning="Full FT", pretraining="AdamW") == "0.880"
