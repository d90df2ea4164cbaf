"""The schema of TFLite files as LiteRT's package has it: names of codes, and tables of options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any as AnyValue

from serde.core import require

__all__ = ["camel_case", "code_names", "load_schema", "option_values"]

_WORD = re.compile(r"(?=[A-Z])")


@cache
def load_schema() -> AnyValue:
    """Return the module of the schema.

    Raises:
        MissingDependency: LiteRT's package is not installed.
    """
    return require("ai_edge_litert.schema_py_generated")


@cache
def code_names(enumeration: str) -> Mapping[int, str]:
    """Return the names of an enumeration of the schema by their numbers."""
    kind = getattr(load_schema(), enumeration)
    return {value: name for name, value in vars(kind).items() if isinstance(value, int)}


def option_values(table: AnyValue, kind: str) -> dict[str, AnyValue]:
    """Return the fields of a table of options, called as the schema calls them.

    Args:
        table: The table, which checks what is read.
        kind: Its name, such as ``Conv2DOptions``.
    """
    schema = load_schema()
    accessor = getattr(schema, kind)()
    accessor._tab = table
    found = getattr(schema, f"{kind}T").InitFromObj(accessor)
    return {_WORD.sub("_", name).lower(): value for name, value in vars(found).items()}


def camel_case(name: str) -> str:
    """Return what the schema's objects call a field."""
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)
