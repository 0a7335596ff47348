"""``config/tuning.yaml``: what is wrong in it is refused (more of it: tests/suite/test_scale.py), and it treats all rows alike."""

import shutil

import pytest

from analyses.common.published import read_published
from poet.methods import METHODS, all_rows, table_rows
from poet.system.errors import UserError
from suite.tuning.protocol import FILE, ROOT, load_protocol


@pytest.fixture
def root(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed: 1000", "seed: -1", ("seed must be greater than or equal to 0", "-1")),
        ("seed: 1000", "sed: 1000", ("'sed'", "known are")),
        ("step: 2", "step: 1", ("grid.step", "greater than 1")),
        ("from_steps: 1,", "from_steps: 2,", ("trials", "begins with 1", "2")),
        ("from_steps: 50000,", "from_steps: 5000,", ("trials", "rises", "5000")),
        ("at_most: 16", "at_most: 0", ("at_most", "greater than 0")),
        ("at_most: 16", "at_most: 4", ("at_most is 4, less than the 5 trials",)),
        ("trials: 8", "trials: 0", ("trials", "greater than 0")),
        ("galore: {lr: 0.032}", "galore: {lr: 0.032, matrix_lr: 0.1}", ("starts", "galore has the rates lr", "matrix_lr")),
        ("muon_lr: 0.016", "poet_lr: 0.016", ("starts", "muon has the rates lr, muon_lr")),
        ("{lr: 0.032}", "{lr: 0}", ("starts", "greater than 0")),
        ("merge_every: 5", "merge_evry: 5", ("intervals", "unknown parameter of poet 'merge_evry'")),
        ("shifts: {poet_lr: -1}", "shifts: {poet_rl: -1}", ("shifts", "unknown rate 'poet_rl'", "poet_lr")),
        ('  - date: "2026-11-23"\n    what:', "  - what:", ("changes", "'date'", "missing")),
    ],
)
def test_a_wrong_protocol_is_refused_in_one_sentence(root, old, new, words):
    path = root / FILE
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as refusal:
        load_protocol(root)
    assert all(word in str(refusal.value) for word in (FILE, *words)), refusal.value
    assert "\n" not in str(refusal.value)


def test_every_row_of_the_paper_has_a_stated_start_and_those_with_one_rate_a_counterpart_with_two():
    """Of rows that somebody adds nothing is asked."""
    protocol, rows, printed = load_protocol(), table_rows(), read_published("table2").variant.unique()
    for row in printed:
        assert row in protocol.starts or rows[row][0].name in protocol.starts, row
    alone = {rows[row][0].name for row in printed if len(rows[row][0].learning_rates) == 1}
    assert alone == {"adamw", "galore"} and {f"{name}-two-rates" for name in alone} <= set(METHODS)


def test_starts_lie_on_the_grid_and_rates_read_well():
    protocol = load_protocol()
    for row, (method, _) in all_rows().items():
        names = method.learning_rates
        stated = protocol.starts.get(row) or protocol.starts.get(method.name)
        if stated:
            assert protocol.rates(names, protocol.start(method, row)) == {name: stated[name] for name in names}
    assert protocol.rates(("lr",), (-7,)) == {"lr": 7.8125e-06}
    assert protocol.point(("lr",), {"lr": 0.003}) == (2,)


def test_rates_are_powers_of_the_grid_s_own_step():
    protocol = load_protocol()
    finer = protocol.model_copy(update={"grid": protocol.grid.model_copy(update={"base": 0.002, "step": 1.5})})
    assert finer.rates(("lr", "poet_lr"), (2, -1)) == {"lr": 0.0045, "poet_lr": 0.00133333}
    assert finer.point(("lr",), {"lr": 0.0045}) == (2,)


def test_a_row_that_the_protocol_does_not_name_starts_from_its_defaults():
    protocol = load_protocol()
    assert protocol.rates(("lr", "adapter_lr"), protocol.start(METHODS["oft"], "oft")) == {"lr": 0.008, "adapter_lr": 0.001}


def test_trials_depend_on_the_steps_of_a_run():
    protocol = load_protocol()
    assert [protocol.budget(steps).trials for steps in (1, 9999, 10000, 49999, 50000)] == [12, 12, 8, 8, 5]
