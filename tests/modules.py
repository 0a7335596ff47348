"""Modules that stand in a file and in no package, such as the examples of the documentation."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def load(path: str) -> ModuleType:
    """The module of a file of the repository, executed anew."""
    spec = importlib.util.spec_from_file_location("loaded_" + path.removesuffix(".py").replace("/", "_"), ROOT / path)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
