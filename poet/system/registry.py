"""Registries of the modules in a folder."""

import importlib
import pkgutil
import sys
from typing import Any


def discover(package: str, constant: str) -> dict[str, Any]:
    """The objects that the modules of a package define under ``constant``, by their attribute ``name``.

    Args:
        package: name of an imported package.
        constant: the variable in each module, such as "METHOD"; modules without it are shared code.

    Raises:
        ImportError: two objects have the same name, one has none, or a module's import fails; the message names the file.
    """
    found: dict[str, Any] = {}
    files: dict[str, str] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(sys.modules[package].__path__)):
        file = f"{package.replace('.', '/')}/{module}.py"
        try:
            entry = getattr(importlib.import_module(f"{package}.{module}"), constant, None)
        except ImportError as error:
            raise ImportError(f"{file}: {error}") from error
        if entry is not None:
            if not isinstance(getattr(entry, "name", None), str):
                raise ImportError(f"{file}: {constant} has no `name`, which the registry calls it by")
            if entry.name in found:
                raise ImportError(f"{files[entry.name]} and {file} both define a {constant.lower()} named {entry.name!r}: rename one")
            found[entry.name], files[entry.name] = entry, file
    return found
