"""What stands above a table about its scale."""

from dataclasses import replace

from analyses.common.controls import grounds_of_all, scale_section, table_section
from analyses.tables import table5, table7
from suite.discovery import discover
from suite.grounds import Grounds


def test_a_scale_that_cannot_judge_names_the_one_that_trains_as_long_as_the_paper(recorded):
    for module, model in ((table5, "60m"), (table7, "130m")):
        context = recorded(module.ARTIFACT, lambda spec: {})
        text = table_section(context, module.ARTIFACT.runs(context.scale))
        assert "mini scale is **not fit to judge orders**" in text and f"`SCALE=night` trains {model} with the paper's tokens for each matrix parameter" in text
        assert "from the table's own runs" in text and "from the table's own runs" not in scale_section(context, Grounds(context, []))


def test_trained_runs_of_an_artifact_that_could_not_be_built_count(recorded):
    partly = replace(recorded(table5.ARTIFACT, lambda spec: {}), left_out={name: "runs are missing" for name in discover()})
    known, scale = grounds_of_all(partly), partly.scale
    assert known.trained(table5.ARTIFACT.runs(scale))
    assert not any(known.trained([spec]) for spec in table7.ARTIFACT.runs(scale))
