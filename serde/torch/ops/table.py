"""The table of PyTorch's converters, and what these work with.

Importers have the names of operators, with an overload where it alone is meant: ``aten::add`` is
every overload of it that has no entry of its own. Parameters have the names of the schema: tensors,
and one list of tensors as ``*tensors``, by position; all else, further lists included, by keyword.

Whether arguments are what the annotations of converters say, tensors and computed numbers too.
Annotations without expressions are checked by the table that all formats share; a program may be
damaged or hostile, so that the others are checked here.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.relay.ir.schema import attribute_converter
from serde.torch.export_context import ExportContext as Export, Value
from serde.torch.import_context import ImportContext as Import, Scalar, SymInt
from serde.walk.table import ConverterTable

__all__ = [
    "DTYPE_CODES", "OPS", "Export", "Import", "Scalar", "SymInt", "Value",
]  # fmt: skip


def _check_hint(value: AnyValue, hint: AnyValue) -> None:
    """Raise if a value is not what an annotation says that speaks of expressions."""
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


DTYPE_CODES: Final = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip
"""Dtypes by the codes that TorchScript has for them."""


def _decode(raw: AnyValue, hint: AnyValue) -> AnyValue:
    """Return an argument as its annotation wants it: codes of dtypes as names, lists as tuples."""
    if type(raw) is int and 0 <= raw < len(DTYPE_CODES) and _is_dtype(hint):
        return DTYPE_CODES[raw]
    _check_hint(raw, hint)
    return tuple(raw) if isinstance(raw, list) else raw


@functools.cache
def _is_dtype(hint: AnyValue) -> bool:
    """Whether an annotation is that of a dtype."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return any(each is np.dtype or typing.get_origin(each) is np.dtype for each in kinds)


def _emit(
    ctx: AnyValue, op: str, operands: Mapping[str, AnyValue], attributes: Mapping[str, AnyValue]
) -> AnyValue:
    return ctx.call(op, *operands.values(), **attributes)


OPS = ConverterTable(
    "torch", decode=_decode, home="serde.torch.ops", operands=("self", "other"), emit=_emit,
    usual_layouts=True,
)  # fmt: skip
"""Operators of PyTorch; those that are written are Relay's."""
