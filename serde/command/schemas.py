"""JSON Schemas of what commands print with ``--json``, made from the classes that they print.

A command says by ``result`` what its object holds besides the outcome: a function that returns
properties, so that nothing is imported before somebody asks.
"""

from __future__ import annotations

import collections
import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any as AnyValue

from serde.core.outcome import OUTCOMES
from serde.core.report import NOT_SHOWN, Report

__all__ = [
    "VERSION", "Properties", "command_schema", "object_of", "properties_of",
    "report_properties", "schema_of", "table_of",
]  # fmt: skip

VERSION = 1
"""Version of all schemas. Within one, fields are added and none is renamed, retyped or removed."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_HOME = "https://serde-relay.github.io/serde/schemas"

Schema = dict[str, AnyValue]
Properties = Callable[[], Mapping[str, Schema]]

_NUMBER: Schema = {
    "description": "A number, or one that is not finite as text.",
    "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}],
}
_PLAIN: Mapping[AnyValue, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"$ref": "#/$defs/number"},
    type(None): {"type": "null"},
    AnyValue: {},
}


def schema_of(annotation: AnyValue) -> Schema:
    """Return the schema of values with a type annotation.

    Raises:
        TypeError: JSON has no such values.
    """
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return object_of(properties_of(annotation))
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(each) for each in args]}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is tuple and args[-1] is not Ellipsis:
        places = [schema_of(each) for each in args]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(places)}
    if origin in (list, tuple, frozenset, collections.abc.Sequence):
        return {"type": "array", "items": schema_of(args[0])}
    if origin in (dict, collections.abc.Mapping):
        return table_of(schema_of(args[1]))
    if origin is collections.Counter:
        return table_of({"type": "integer"})
    raise TypeError(f"JSON has no {annotation!r}")


def table_of(values: Schema) -> Schema:
    """Return the schema of an object with any names, whose values are alike."""
    return {"type": "object", "additionalProperties": values}


def object_of(properties: Mapping[str, Schema], *, optional: Collection[str] = ()) -> Schema:
    """Return the schema of an object by those of its properties, all there but the optional."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def properties_of(cls: type[AnyValue], *, hidden: Collection[str] = ()) -> dict[str, Schema]:
    """Return the schema of each field of a dataclass, described as its docstring does."""
    from serde.conversion.signature import attribute_texts

    hints, texts = typing.get_type_hints(cls), attribute_texts(cls)
    found = {}
    for item in dataclasses.fields(cls):
        if item.name not in hidden:
            schema = schema_of(hints[item.name])
            text = texts.get(item.name)
            found[item.name] = {"description": text, **schema} if text else schema
    return found


def report_properties() -> Mapping[str, Schema]:
    """Return what a report adds to the object of a command that fills one."""
    found = properties_of(Report, hidden=NOT_SHOWN)
    verdict = found["verdicts"]["items"]
    verdict["properties"]["factor"] = {
        "description": "How many times as far from the exact result the target is as the source.",
        "anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}],
    }
    verdict["required"].append("factor")
    return found


def command_schema(name: str, result: Properties | None, codes: Collection[int] = ()) -> Schema:
    """Return the schema of what a command prints: what it found, or why it failed.

    Args:
        name: The command.
        result: What its object holds besides the outcome; a report if left out.
        codes: Exit codes that no other command has.
    """
    outcome: dict[str, Schema] = {
        "outcome": {"description": "How it ended, in a word or two.", "type": "string"},
        "exit_code": {"description": "The exit code.", "enum": [*OUTCOMES, *codes]},
        "error": {
            "description": "The message of the error that ended it.",
            "anyOf": [{"type": "string"}, {"type": "null"}],
        },
    }
    reported = report_properties()
    found = reported if result is None else result()
    failed = {**outcome, "error": {"type": "string"}, **reported}
    return {
        "$schema": _DRAFT,
        "$id": f"{_HOME}/v{VERSION}/{name}.json",
        "title": f"serde {name} --json",
        "oneOf": [
            {"title": "done", **object_of({**outcome, "error": {"type": "null"}, **found})},
            {"title": "failed", **object_of(failed)},
        ],
        "$defs": {"number": _NUMBER},
    }
