"""Every fault can still be planted and a test notices it, and what proves nothing is not taken for a proof."""

import contextlib
import dataclasses

import pytest

from faults import plant
from faults.fault import FAULTS, Fault
from faults.workshop import ROOT, Workshop
from poet.system.errors import UserError
from suite.check.tables import read

NODE = "tests/training/test_schedule.py::test_halfway_and_quarter_values"
HARMLESS = Fault(
    name="harmless",
    what="Nothing.",
    file="poet/training/schedule.py",
    old="import math",
    new="import math  # as before",
    caught_by=NODE,
)
HARMFUL = dataclasses.replace(HARMLESS, name="harmful", old="1 + math.cos", new="1 - math.cos")


@pytest.fixture(scope="module")
def workshop():
    with Workshop() as made:
        yield made


@pytest.fixture
def shared(workshop, monkeypatch, tmp_path):
    """The command works in this module's workshop, and writes its table below ``tmp_path``."""
    monkeypatch.setattr(plant, "Workshop", lambda: contextlib.nullcontext(workshop))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_test_notices_it(workshop, fault):
    with fault.planted(workshop.root):
        tested = workshop.test((fault.caught_by,))
    assert tested.failed, tested.said
    assert (workshop.root / fault.file).read_text() == (ROOT / fault.file).read_text()


@pytest.mark.parametrize("text", ("not there", "return"))
def test_a_text_that_is_not_there_once_is_refused(text):
    with pytest.raises(UserError, match=r"harmless: its text occurs [02] times in poet/training/schedule.py"):
        dataclasses.replace(HARMLESS, old=text).applied((ROOT / HARMLESS.file).read_text())


@pytest.mark.parametrize("new", ("import math, ", "import maths"), ids=("no syntax", "no import"))
def test_code_that_does_not_run_is_no_proof(workshop, new):
    with dataclasses.replace(HARMLESS, new=new).planted(workshop.root):
        tested = workshop.test((NODE,))
    assert not tested.passed and tested.failed is None and "rror" in tested.said


def test_neither_is_a_test_that_is_not_there_nor_one_that_takes_too_long(workshop):
    absent = workshop.test((NODE + "_x",))
    assert not absent.passed and absent.failed is None and "not found" in absent.said
    late = workshop.test((NODE,), seconds=0.01)
    assert not late.passed and late.failed is None and late.said == "stopped after 0.01 s"
    assert workshop.test((NODE,)).passed


def test_what_no_test_notices_fails_the_command(shared, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(plant, "FAULTS", (HARMLESS, HARMFUL))
    assert plant.main([]) == 1
    assert capsys.readouterr().out.endswith("1 of 2 faults caught; not harmless\n")
    found = {line["fault"]: line for line in read(tmp_path / "results" / "faults.csv")}
    assert list(found) == [plant.CONTROL, "harmless", "harmful"] and list(found["harmful"]) == list(plant.COLUMNS)
    assert [line["caught_by"] for line in found.values()] == ["", "", NODE]
    assert found["harmful"]["commit"] and found["harmful"]["caught_by_check"] == ""


def test_a_part_of_the_faults_is_no_table(shared, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(plant, "FAULTS", (HARMLESS, HARMFUL))
    assert plant.main(["--only", "harmful"]) == 0
    assert not (tmp_path / "results").exists()
    assert plant.main(["--only", "harmfull"]) == 2
    assert "no fault 'harmfull'; there are harmless, harmful" in capsys.readouterr().err


def test_a_test_that_fails_anyway_shows_nothing(shared, workshop, monkeypatch, capsys):
    (workshop.root / "tests" / "test_failing.py").write_text("def test_it():\n    assert False\n")
    failing = dataclasses.replace(HARMFUL, caught_by="tests/test_failing.py")
    monkeypatch.setattr(plant, "FAULTS", (failing,))
    assert plant.main([]) == 2
    assert "error: without a fault: tests/test_failing.py::test_it" in capsys.readouterr().err
