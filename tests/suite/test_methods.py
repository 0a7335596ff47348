"""What is refused in the file of a method, before anything is trained by it."""

import sys
import types
from dataclasses import dataclass

import pytest

from poet.methods import METHODS, Method, Row
from poet.methods.contract import adamw
from poet.system.validation import ConfigError
from suite.collection import load_suite
from suite.methods import check_methods


def method(**wrong):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Parameters:
        lr: float = 0.1

    def optimizers(self, model):
        return [adamw(model.parameters(), self.parameters.lr, self.weight_decay)]

    own = {"name": "mine", "Parameters": Parameters, "rows": (Row("mine", "Mine", {}),), "optimizers": optimizers, **wrong}
    return type("Mine", (Method,), {"__module__": "poet.methods.mine", **{k: v for k, v in own.items() if v is not None}})


def test_a_row_of_another_method_is_refused_with_both_files():
    with pytest.raises(ConfigError, match="poet/methods/mine.py: row 'adamw' is in poet/methods/adamw.py, too: give it another key"):
        check_methods({**METHODS, "mine": method(rows=(Row("adamw", "Mine", {}),))})


def test_an_object_in_the_place_of_a_class_is_refused():
    with pytest.raises(ConfigError, match="poet/methods/mine.py: METHOD is a class, and no object: leave out the parentheses"):
        check_methods({"mine": method()(method().Parameters())})


def test_a_file_whose_method_has_another_name_than_the_registry_s_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "poet.methods.mine", types.SimpleNamespace(__name__="poet.methods.mine", METHODS=method()))
    with pytest.raises(ConfigError, match=r"poet/methods/mine.py has a method and no METHOD, so no table would have it: add METHOD = Mine"):
        check_methods(METHODS)


def test_the_suite_s_own_and_a_sound_one_pass():
    check_methods({**METHODS, "mine": method()})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"optimizers": None}, "Mine lacks optimizers: define it"),
        ({"Parameters": None}, "Mine.Parameters is a dataclass"),
        ({"rows": Row("mine", "Mine", {})}, "Mine.rows is a tuple of Row"),
        ({"rows": ("mine",)}, "Mine.rows is a tuple of Row"),
        ({"learning_rates": "lr"}, "Mine.learning_rates is a tuple of names of Parameters, 'lr' among them; got 'lr' of lr"),
        ({"learning_rates": ("lr", "other")}, "got ('lr', 'other') of lr"),
        ({"learning_rates": ()}, "got () of lr"),
        ({"rows": (Row("my method/a", "Mine", {}),)}, "row key 'my method/a' is part of paths"),
        ({"rows": (Row("mine", "AdamW", {}),)}, "row 'mine' is called 'AdamW', as row 'adamw' is: give it another label"),
    ],
)
def test_a_mistake_is_a_sentence_that_names_the_file(wrong, words, monkeypatch):
    monkeypatch.setitem(METHODS, "mine", method(**wrong))
    with pytest.raises(ConfigError) as error:
        load_suite({"scale": "smoke"})
    assert str(error.value).startswith("poet/methods/mine.py: ") and words in str(error.value) and "\n" not in str(error.value)
