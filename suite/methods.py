"""Checks of the files of methods: mistakes that would fail every run, or show only at the first search."""

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from poet.methods import Method, Row
from poet.system.validation import ConfigError

#: Keys are parts of paths, and of the names of runs.
_KEY = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def check_methods(methods: Mapping[str, type[Method]]) -> None:
    """Refuse an invalid method, one that its file does not name, and a row's key or label that is used twice.

    Raises:
        ConfigError: the message names the method's file.
    """
    for module in [module for name, module in sys.modules.items() if name.startswith("poet.methods.")]:
        for found in vars(module).values():
            own = isinstance(found, type) and issubclass(found, Method) and found.__module__ == module.__name__
            if own and isinstance(getattr(found, "name", None), str) and not hasattr(module, "METHOD"):
                raise ConfigError(f"{_file(found)} has a method and no METHOD, so no table would have it: add METHOD = {found.__name__}")
    labels: dict[str, str] = {}
    files: dict[str, str] = {}
    for method in methods.values():
        if said := _wrong(method):
            raise ConfigError(f"{_file(method)}: {said}")
        for row in method.rows:
            if row.key in files:
                raise ConfigError(f"{_file(method)}: row {row.key!r} is in {files[row.key]}, too: give it another key")
            files[row.key] = _file(method)
            if row.label in labels:
                raise ConfigError(f"{_file(method)}: row {row.key!r} is called {row.label!r}, as row {labels[row.label]!r} is: give it another label")
            labels[row.label] = row.key


def _file(method: type[Method]) -> str:
    return f"{method.__module__.replace('.', '/')}.py"


def _wrong(method: type[Method]) -> str:
    if not isinstance(method, type):
        return "METHOD is a class, and no object: leave out the parentheses"
    if inspect.isabstract(method):
        return f"{method.__name__} lacks {', '.join(sorted(method.__abstractmethods__))}: define it"
    if not is_dataclass(getattr(method, "Parameters", None)):
        return f"{method.__name__}.Parameters is a dataclass of the method's hyperparameters: define it"
    if not isinstance(method.rows, tuple) or not all(isinstance(row, Row) for row in method.rows):
        return f"{method.__name__}.rows is a tuple of Row, such as (Row('key', 'label', {{}}),); got {method.rows!r:.80}"
    known, rates = [f.name for f in fields(method.Parameters)], method.learning_rates
    if not isinstance(rates, tuple) or "lr" not in rates or not set(rates) <= set(known):
        return f"{method.__name__}.learning_rates is a tuple of names of Parameters, 'lr' among them; got {rates!r} of {', '.join(known)}"
    for row in method.rows:
        if not _KEY.fullmatch(row.key):
            return f"row key {row.key!r} is part of paths: use a to z, digits, and - _ . between them"
    return ""
