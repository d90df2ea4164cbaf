"""Elementary functions that a target may approximate, and multiplication in place of division."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from serde.relay.ir import Call, Constant, Expr, Function, OpDef, call, rewrite_function
from serde.relay.transform.base import TvmFunctionPass
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["DivToMul", "FastMath"]

_FAST = {"erf": "fast_erf", "exp": "fast_exp", "nn.softmax": "nn.fast_softmax", "tanh": "fast_tanh"}


class FastMath(TypedPass):
    """Let a target approximate ``exp``, ``tanh``, ``erf`` and ``nn.softmax``.

    They become ``fast_exp``, ``fast_tanh``, ``fast_erf`` and ``nn.fast_softmax``, which TVM
    computes by polynomials. That is lossy where a target takes the liberty, and so nothing does
    it unasked. The kernels here do not take it: the interpreter and the exporters give the bits
    that they gave before, within a relative error of 3e-7 of float64 for float32 operands.
    """

    name: ClassVar[str] = "FastMath"
    opt_level: ClassVar[int] = 4

    def transform(self, function: Function) -> Function:
        """Replace calls bottom-up."""
        return rewrite_function(function, lambda _node, new: _fast(new))


def _fast(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name not in _FAST:
        return node
    return call(_FAST[node.op.name], *node.args, span=node.span, **node.attrs)


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
