"""The table of PyTorch's converters.

Importers have the names of operators, with an overload where it alone is meant: ``aten::add`` is
every overload of it that has no entry of its own. Parameters have the names of the schema: tensors,
and one list of tensors as ``*tensors``, by position; all else, further lists included, by keyword.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from typing import Any as AnyValue
from typing import Final

import numpy as np

from serde.torch.ops.hints import check_hint
from serde.walk.table import ConverterTable

__all__ = ["DTYPE_CODES", "OPS"]

DTYPE_CODES: Final = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip
"""Dtypes by the codes that TorchScript has for them."""


def _decode(raw: AnyValue, hint: AnyValue) -> AnyValue:
    """Return an argument as its annotation wants it: codes of dtypes as names, lists as tuples."""
    if type(raw) is int and 0 <= raw < len(DTYPE_CODES) and _is_dtype(hint):
        return DTYPE_CODES[raw]
    check_hint(raw, hint)
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
