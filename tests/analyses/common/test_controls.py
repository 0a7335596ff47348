"""What stands above a table about its scale."""

from analyses.common.controls import scale_section, table_section
from analyses.tables import table5, table7
from suite.grounds import Grounds


def test_a_scale_that_cannot_judge_names_the_one_that_trains_as_long_as_the_paper(recorded):
    for module, model in ((table5, "60m"), (table7, "130m")):
        context = recorded(module.ARTIFACT, lambda spec: {})
        text = table_section(context, module.ARTIFACT.runs(context.scale))
        assert "mini scale is **not fit to judge orders**" in text and f"`SCALE=night` trains {model} as long as the paper" in text
        assert "from the table's own runs" in text and "from the table's own runs" not in scale_section(context, Grounds(context, []))
