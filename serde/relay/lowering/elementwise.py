"""Functions of elements in terms of simpler ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float, number_like, tensor_type
from serde.relay.lowering.rules import NO_SIMPLER

__all__ = ["RULES"]


def _is_float(data: Expr) -> bool:
    return is_float(tensor_type(data).dtype)


def _abs(data: Expr) -> Expr:
    if not tensor_type(data).dtype.startswith("uint"):
        raise Unsupported(NO_SIMPLER)
    return data


def _whole(data: Expr) -> Expr:
    """Return a rounded integer, which is whole already."""
    if _is_float(data):
        raise Unsupported(NO_SIMPLER)
    return data


def _trunc(data: Expr) -> Expr:
    if not _is_float(data):
        return data
    return call("multiply", call("sign", data), call("floor", call("abs", data)))


def _round(data: Expr) -> Expr:
    """The fraction is compared on its own: a sum with a half would itself be rounded."""
    if not _is_float(data):
        return data
    size = call("abs", data)
    whole = call("floor", size)
    below = call("less", call("subtract", size, whole), number_like(0.5, data))
    nearest = call("where", below, whole, call("add", whole, number_like(1, data)))
    return call("multiply", call("sign", data), nearest)


def _logarithm(data: Expr, base: int) -> Expr:
    return call("multiply", call("log", data), number_like(1 / math.log(base), data))


def _isnan(data: Expr) -> Expr:
    return call("not_equal", data, data)


def _isinf(data: Expr) -> Expr:
    if not _is_float(data):
        return _isnan(data)
    return call("equal", call("abs", data), number_like(math.inf, data))


def _isfinite(data: Expr) -> Expr:
    if not _is_float(data):
        return call("equal", data, data)
    return call("less", call("abs", data), number_like(math.inf, data))


def _cast_like(data: Expr, dtype_like: Expr) -> Expr:
    return call("cast", data, dtype=tensor_type(dtype_like).dtype)


def _trunc_divide(lhs: Expr, rhs: Expr) -> Expr:
    return call("trunc", call("divide", lhs, rhs))


RULES: Final[dict[str, Callable[..., Expr]]] = {
    "abs": _abs,
    "cast_like": _cast_like,
    "ceil": _whole,
    "copy": lambda data: data,
    "floor": _whole,
    "isfinite": _isfinite,
    "isinf": _isinf,
    "isnan": _isnan,
    "log10": partial(_logarithm, base=10),
    "log2": partial(_logarithm, base=2),
    "round": _round,
    "trunc": _trunc,
    "trunc_divide": _trunc_divide,
}
"""What operators are made of where a target lacks them, or lacks them of a dtype."""
