"""One way to check what a user wrote, and one way to say what is wrong with it.

What may stand in a file is said by a type: a :class:`Settings` for a file of its own, a plain dataclass elsewhere.
:func:`parse` reads values as such a type, and :func:`json_schema` tells an editor of it.
"""

from __future__ import annotations

import functools
import json
import textwrap
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from poet.system.errors import UserError

T = TypeVar("T")


class ConfigError(UserError, ValueError):
    """A key or a value of the configuration is wrong."""


class Settings(BaseModel):
    """A table of keys in a file. The string below a field is what editors and refusals say of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class _Schema(GenerateJsonSchema):
    """JSON schemas without made-up titles, whose dataclasses take no further keys either."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        found = super().dataclass_schema(schema) | {"additionalProperties": False}
        found.pop("description", None)  # a docstring is for who reads the code
        return found


_adapter = functools.cache(TypeAdapter)


def parse(kind: type[T], values: Any, where: str, error: type[Exception] = ConfigError) -> T:
    """Values of plain JSON types as a ``kind``.

    They are read as JSON is: an array becomes a tuple, a table of keys a dataclass, 1 is a number as good as 1.0, and
    nothing else is converted.

    Args:
        kind: a :class:`Settings` or a dataclass.
        values: what stands in the file.
        where: its name, with which the sentence begins.
        error: what is raised.

    Raises:
        ConfigError: or ``error``: the first key that is unknown or missing, or value that may not stand there, in one
            sentence.
    """
    try:
        return _adapter(kind).validate_json(json.dumps(values, default=str), strict=True, extra="forbid")
    except ValidationError as refusal:
        first = min(refusal.errors(), key=lambda e: e["type"] == "missing")  # a key that is misspelt misses, too
        raise error(f"{where}: {_sentence(json_schema(kind), first)}") from None


#: libyaml's is ten times as fast; some builds of PyYAML are without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path, where: str) -> dict[str, Any]:
    """The table of keys that a YAML file holds.

    Raises:
        ConfigError: it is not there, not YAML, or no table of keys.
    """
    again = f"bring it back, such as by `git checkout {where}`"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except OSError as error:
        raise ConfigError(f"{where} cannot be read ({error.strerror}): {again}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        place = getattr(error, "context_mark", None) or getattr(error, "problem_mark", None)
        line = f", line {place.line + 1}" if place else ""
        raise ConfigError(f"{where}{line}: not YAML ({getattr(error, 'problem', error)})") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{where} has no keys: {again}")
    return found


def json_schema(kind: type) -> dict[str, Any]:
    """The JSON schema of a :class:`Settings` or a dataclass."""
    return _adapter(kind).json_schema(schema_generator=_Schema)


def _sentence(schema: dict[str, Any], error: Any) -> str:
    """What is wrong, where, and what may stand there; ``error`` is one of pydantic's."""
    place, about, parent, node = [], "", schema, schema
    for key in error["loc"]:
        parent = _followed(schema, node)
        if tagged := parent.get("discriminator", {}).get("mapping", {}).get(key):  # a step of pydantic's, no key
            node = {"$ref": tagged}
            continue
        place.append(str(key))
        own = parent.get("properties", {}).get(key)
        node = own or parent.get("items") or parent.get("additionalProperties") or {}
        if own or "description" in node:  # what is said of a list is said of its elements
            example = f", such as {json.dumps(node['examples'][0])}" if "examples" in node else ""
            about = f" ({node['description']}{example})" if "description" in node else ""
    where, given = ".".join(place), textwrap.shorten(repr(error["input"]), 80)
    match error["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return f"{_before(place[:-1])}unknown key {place[-1]!r}; known are {', '.join(parent['properties'])}"
        case "missing":
            return f"{_before(place[:-1])}the key {place[-1]!r} is missing{about}"
        case "value_error":
            return f"{_before(place)}{error['ctx']['error']}"
        case "union_tag_not_found" | "union_tag_invalid":
            choice = _followed(schema, node)["discriminator"]
            return f"{_before(place)}{choice['propertyName']!r} must be one of {', '.join(map(repr, choice['mapping']))}, not {given}"
        case "too_short":
            return f"{where} must not be empty{about}"
    return f"{where} {error['msg'].replace('Input should be', 'must be')}, not {given}{about}".lstrip()


def _before(place: list[str]) -> str:
    return ".".join(place) + ": " if place else ""


def _followed(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """A part of a schema behind references, and behind the choice of leaving it out."""
    while "$ref" in node or "anyOf" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["anyOf"][0]
    return node
