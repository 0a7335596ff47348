"""What is refused in the file of a table or figure, before anything is trained for it."""

import sys
import types

import pytest

import suite.discovery
from poet.system.validation import ConfigError
from suite.collection import RESULTS, load_suite
from suite.discovery import ROOT, discover, locate

EXAMPLE = (ROOT / "docs" / "examples" / "table99.py").read_text()


@pytest.fixture
def add(monkeypatch):
    """Have a file of some text among the tables."""

    def added(text):
        module = types.ModuleType("analyses.tables.table99")
        exec(text, module.__dict__)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        places = {**locate(), "table99": ROOT / "analyses" / "tables" / "table99.py"}
        monkeypatch.setattr(suite.discovery, "locate", lambda: places)

    return added


def test_the_example_of_the_documentation_is_found(add):
    add(EXAMPLE)
    assert discover()["table99"].label == "Table 99"
    suite = load_suite({"scale": "smoke", "seeds": [0]})
    assert RESULTS / "table99.csv" in suite.default_targets()
    own, shared = ({spec.name for spec in suite.artifacts[name].runs(suite.scale)} for name in ("table99", "table2"))
    assert set() < own <= shared


def test_what_reads_a_table_that_a_scale_cannot_make_is_left_out_with_it(add):
    add(EXAMPLE.replace("claims=(CLAIM,)", 'reads=("table3",)'))
    assert load_suite({"scale": "gpu", "seeds": [0]}).left_out["table99"] == ["3b"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ARTIFACT = ", "ARTEFACT = ", "it defines no ARTIFACT"),
        ('outputs=("table99.csv",)', 'outputs=("table99.csv")', "outputs is a tuple such as ('table99.csv',); got 'table99.csv'"),
        ('outputs=("table99.csv",)', 'outputs=("table5.csv",)', "the first of its outputs bears the file's name, such as 'table99.csv'"),
        ('models=("60m",)', 'models=("60m")', "models is a tuple such as ('60m',); got '60m'"),
        ("claims=(CLAIM,)", "claims=(CLAIM)", "claims is a tuple such as (CLAIM,)"),
        ('key="table99-printed"', 'key="printed"', "claim keys begin with the file's name"),
        ("claims=(CLAIM,)", "claims=(CLAIM, CLAIM)", "none is there twice: 'table99-first'; got 'table99-printed'"),
        ("claims=(CLAIM,)", 'reads=("table98",)', "reads names 'table98', and there is no such artifact beside it"),
        ("claims=(CLAIM,)", 'reads=("table99",)', "reads names 'table99', and there is no such artifact beside it"),
        ("ARTIFACT = ", 'from dataclasses import replace\nCLAIM = replace(CLAIM, kind="orderings")\nARTIFACT = ', "claim table99-printed is of kind 'orderings'; known are number, ordering"),
    ],
)
def test_a_mistake_is_a_sentence_that_names_the_file(add, old, new, words):
    assert old in EXAMPLE
    add(EXAMPLE.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        discover()
    assert str(error.value).startswith("analyses/tables/table99.py: ") and words in str(error.value) and "\n" not in str(error.value)
