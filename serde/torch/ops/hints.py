"""Whether arguments are what the annotations of converters say, tensors and computed numbers too.

Annotations without expressions are checked by the table that all formats share; a program may be
damaged or hostile, so that the others are checked here.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.schema import attribute_converter

__all__ = ["check_hint"]


def check_hint(value: AnyValue, hint: AnyValue) -> None:
    """Raise if a value is not what an annotation says that speaks of expressions.

    Raises:
        TypeError: It is not.
    """
    if _is_checked(hint) and not _fits(value, hint):
        raise TypeError(f"expected {hint}, found {value!r}")


@functools.cache
def _is_checked(hint: AnyValue) -> bool:
    """Whether the table does not check an annotation, as it is none of an attribute of Relay."""
    return attribute_converter(hint) is None


def _fits(value: AnyValue, hint: AnyValue) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, each) for each in parts)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(each, parts[0]) for each in value)
        pairs = zip(value, parts, strict=False)
        return len(value) == len(parts) and all(_fits(each, part) for each, part in pairs)
    if origin is Sequence:
        return isinstance(value, (list, tuple))
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in parts)
    if hint in (None, type(None)):
        return value is None
    if hint is np.dtype or origin is np.dtype:
        return isinstance(value, (str, int))
    if hint is float:
        return isinstance(value, (int, float))
    if hint is complex:
        return isinstance(value, (int, float, complex))
    return hint is AnyValue or not isinstance(hint, type) or isinstance(value, hint)
