"""The precision in which kernels compute."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.registry import call
from serde.relay.ir.schema import Array
from serde.relay.ir.shapes import is_float, itemsize
from serde.relay.ir.types import TensorType

__all__ = ["as_dtype", "limits", "lowest", "number_like", "wide_dtype", "widen"]


def widen(data: Array) -> Array:
    """Return floating-point `data` of less than 32 bits as float32, other data as it is.

    Sums and exponentials of narrow numbers are taken in float32 and rounded once.
    """
    if is_float(data.dtype.name) and data.dtype.itemsize < 4:
        return data.astype(np.float32)
    return data


def wide_dtype(dtype: str) -> str:
    """Return the dtype in which :func:`widen` has numbers of one."""
    return "float32" if is_float(dtype) and itemsize(dtype) < 4 else dtype


def as_dtype(x: Expr, dtype: str) -> Expr:
    """Return an expression in a dtype; itself where it is that already."""
    if isinstance(x.type, TensorType) and x.type.dtype == dtype:
        return x
    return call("cast", x, dtype=dtype)


def limits(dtype: AnyValue) -> AnyValue:
    """Return the ``min`` and ``max`` of a dtype of numbers, those that NumPy lacks included.

    Raises:
        Unsupported: Its numbers have no order.
    """
    import ml_dtypes

    name = dtype_name(dtype)
    if name.startswith("complex"):
        raise Unsupported(f"{name} has no least and no greatest number")
    info: AnyValue = ml_dtypes.finfo if is_float(name) else ml_dtypes.iinfo
    return info(name)


def lowest(dtype: AnyValue) -> AnyValue:
    """Return the least finite number of a dtype, as a scalar of it."""
    kind = np.dtype(dtype)
    return kind.type(False) if kind.kind == "b" else kind.type(limits(kind).min)


def number_like(value: float, like: Expr) -> Expr:
    """Return a scalar constant in the dtype of a tensor."""
    return const(value, tensor_type(like).dtype)
