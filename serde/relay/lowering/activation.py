"""Rectifiers, and the logarithm of softmax, in terms of arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serde.relay.ir import Expr, call, number_like, tensor_type

__all__ = ["RULES"]


def _is_unsigned(data: Expr) -> bool:
    return tensor_type(data).dtype.startswith("uint")


def _relu(data: Expr) -> Expr:
    return data if _is_unsigned(data) else call("maximum", data, number_like(0, data))


def _where_positive(data: Expr, below: Expr) -> Expr:
    return call("where", call("greater", data, number_like(0, data)), data, below)


def _leaky_relu(data: Expr, *, alpha: float) -> Expr:
    if _is_unsigned(data):
        return data
    return _where_positive(data, call("multiply", data, number_like(alpha, data)))


def _prelu(data: Expr, alpha: Expr, *, axis: int) -> Expr:
    rank = tensor_type(data).rank
    following = rank - 1 - axis % rank
    slopes = call("reshape", alpha, newshape=(-1, *(1,) * following)) if following else alpha
    return _where_positive(data, call("multiply", data, slopes))


def _log_softmax(data: Expr, *, axis: int) -> Expr:
    """No logarithm of what may have become zero: the greatest element comes off first."""
    shifted = call("subtract", data, call("max", data, axis=axis, keepdims=True))
    total = call("sum", call("exp", shifted), axis=axis, keepdims=True)
    return call("subtract", shifted, call("log", total))


RULES: Final[dict[str, Callable[..., Expr]]] = {
    "nn.leaky_relu": _leaky_relu,
    "nn.log_softmax": _log_softmax,
    "nn.prelu": _prelu,
    "nn.relu": _relu,
}
"""What operators are made of where a target lacks them, or lacks them of a dtype."""
