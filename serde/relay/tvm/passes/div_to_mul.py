"""Multiplication in place of division by constants."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from serde.relay.ir import Call, Constant, Expr, Function, OpDef, call, rewrite_function
from serde.relay.transform.base import TvmFunctionPass

__all__ = ["DivToMul"]

_DTYPES = ("float16", "float32", "float64")


class DivToMul(TvmFunctionPass):
    """Multiply by the inverse instead of dividing by a constant.

    Results may differ in the last bit. Constants that hold a zero stay, as do those that are
    integers or other floating-point numbers.
    """

    name: ClassVar[str] = "DivToMul"
    required: ClassVar[tuple[str, ...]] = ("InferType", "FoldConstant")

    def transform(self, function: Function) -> Function:
        """Replace divisions bottom-up."""
        return rewrite_function(function, lambda _node, new: _multiply(new))


def _multiply(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name != "divide":
        return node
    data, divisor = node.args
    if not isinstance(divisor, Constant) or divisor.data.dtype.name not in _DTYPES:
        return node
    if not divisor.data.all():
        return node
    wide = np.float64 if divisor.data.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):
        inverse = np.asarray(np.reciprocal(divisor.data.astype(wide))).astype(divisor.data.dtype)
    return call("multiply", data, Constant(inverse, divisor.span), span=node.span)
