"""Checks of values that a user wrote, and the messages about wrong ones.

A type says which keys and values are allowed: a :class:`Settings` or a plain dataclass. :func:`parse` reads values as such a
type, and :func:`json_schema` describes the type to an editor.
"""

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
    """Base class for a table of keys in a file. The string below a field describes it in editors and in error messages."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class _Schema(GenerateJsonSchema):
    """JSON schemas without generated titles; dataclasses forbid unknown keys, as :class:`Settings` do."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        found = super().dataclass_schema(schema) | {"additionalProperties": False}
        found.pop("description", None)  # docstrings are for readers of the code
        return found


_adapter = functools.cache(TypeAdapter)


def parse(kind: type[T], values: Any, where: str, error: type[Exception] = ConfigError) -> T:
    """Read values of plain JSON types as an instance of ``kind``.

    An array becomes a tuple where the type asks for one, and a table of keys a dataclass; an integer is accepted for a float.
    Nothing else is converted.

    Args:
        kind: a :class:`Settings` or a dataclass.
        values: the content of the file.
        where: the name of the file, which begins the message.
        error: class of the exception.

    Raises:
        ConfigError: (or ``error``) a key is unknown or missing, or a value is not allowed; one sentence on the first such error.
    """
    try:
        return _adapter(kind).validate_json(json.dumps(values, default=str), strict=True, extra="forbid")
    except ValidationError as refusal:
        first = min(refusal.errors(), key=lambda e: e["type"] == "missing")  # a misspelt key is missing, too: say that it is unknown
        raise error(f"{where}: {_sentence(json_schema(kind), first)}") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml's is ten times as fast; some builds of PyYAML lack it
    """A loader that refuses a key that stands twice, of which YAML's own takes the last in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = []  # and no set: a key that is a list, which the loader refuses itself
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(problem=f"{key.value} stands twice", problem_mark=key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, where: str) -> dict[str, Any]:
    """The table of keys that a YAML file holds.

    Raises:
        ConfigError: the file cannot be read, is not YAML, has a key twice, or holds no table of keys.
    """
    again = f"bring it back, such as by `git checkout {where}`"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
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
    """A sentence about one of pydantic's errors: where it is, what is wrong, and what is allowed."""
    place, about, parent, node = [], "", schema, schema
    for key in error["loc"]:
        parent = _followed(schema, node)
        if tagged := parent.get("discriminator", {}).get("mapping", {}).get(key):  # a union's tag in pydantic's path, not a key
            node = {"$ref": tagged}
            continue
        place.append(str(key))
        own = parent.get("properties", {}).get(key)
        node = own or parent.get("items") or parent.get("additionalProperties") or {}
        if own or "description" in node:  # the description of a list is that of its elements
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
    """A node of a schema with references resolved; of alternatives (as of an optional value), the first."""
    while "$ref" in node or "anyOf" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["anyOf"][0]
    return node
