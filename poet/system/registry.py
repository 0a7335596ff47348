"""Registries that a file joins by lying in their folder."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any


def discover(package: str, constant: str) -> dict[str, Any]:
    """What the modules of a package define under one name, by its own ``name``; those that define none are shared code.

    Args:
        package: name of an imported package.
        constant: what it is called in each module, such as "METHOD".

    Raises:
        ImportError: two modules define the same, or an entry has no name.
    """
    found: dict[str, Any] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(sys.modules[package].__path__)):
        entry = getattr(importlib.import_module(f"{package}.{module}"), constant, None)
        if entry is not None:
            if not isinstance(getattr(entry, "name", None), str):
                raise ImportError(f"{package.replace('.', '/')}/{module}.py: {constant} has no `name`, which the registry calls it by")
            if entry.name in found:
                raise ImportError(f"two files in {package.replace('.', '/')} define a {constant.lower()} named {entry.name!r}")
            found[entry.name] = entry
    return found
