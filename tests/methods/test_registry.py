"""Methods, their rows and their parameters. How a file joins: tests/test_registry.py."""

import pytest

from poet.methods import METHODS, get_method, table_rows
from poet.methods.contract import parse_parameters, scale_parameters


def test_the_paper_s_methods_are_there():
    assert set(METHODS) >= {"adamw", "galore", "lora", "muon", "oft", "poet"}


def test_two_methods_with_one_row_are_refused(monkeypatch):
    class Mine(METHODS["muon"]):
        rows = METHODS["adamw"].rows

    monkeypatch.setitem(METHODS, "mine", Mine)
    with pytest.raises(ImportError, match="table row 'adamw'"):
        table_rows()


def test_unknown_method_lists_the_known():
    unknown = "-".join(METHODS)  # whatever methods are added, none has this name
    with pytest.raises(ValueError, match=f"unknown method '{unknown}'; known are .*adamw.*poet"):
        get_method(unknown)


@pytest.mark.parametrize("name", METHODS)
def test_unknown_parameters_are_refused_and_the_known_listed(name):
    with pytest.raises(ValueError, match=f"method {name}: unknown key 'learning_rate'; known are .*lr"):
        parse_parameters(METHODS[name], {"learning_rate": 1.0})


def test_coordinates_scale_with_width_and_nothing_else_does():
    poet = get_method("poet")
    scaled = scale_parameters(poet, {"block_size": 64, "block_size_p": 0, "budget": 0.25}, 16)
    assert (scaled["block_size"], scaled["block_size_r"], scaled["block_size_p"]) == (4, None, 0)
    assert (scaled["budget"], scaled["merge_every"], scaled["neumann_terms"]) == (0.25, 400, 3)
    lora = scale_parameters(get_method("lora"), {}, 16)
    assert (lora["rank"], lora["alpha"], lora["dropout"]) == (4, 2, 0.05)
    assert scale_parameters(get_method("galore"), {}, 8)["rank"] == 16


def test_baselines_have_the_constants_of_their_own_papers():
    galore, muon = (get_method(name).Parameters() for name in ("galore", "muon"))
    assert (galore.rank, galore.scale) == (128, 0.25) and (muon.momentum, muon.newton_schulz_steps) == (0.95, 5)


def test_what_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="rank=64 is not divisible by the scale's divisor 48"):
        scale_parameters(get_method("lora"), {}, 48)
