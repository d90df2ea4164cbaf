"""Quantised operators in plain Relay, and functions of quantised numbers as tables.

What is registered here as ``FTVMQnnCanonicalize`` is what
:class:`~serde.relay.tvm.passes.qnn.CanonicalizeOps` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Array, Constant, Expr, all_ops, call, registration
from serde.relay.op.qnn.rescale import dequantize, quantize
from serde.relay.run.interpreter import evaluate
from serde.relay.tvm.passes.qnn.plain import plain_form

__all__ = [
    "create_integer_lookup_op", "create_integer_lookup_table", "register_qnn_canonicalize",
    "run_const_expr",
]  # fmt: skip

register_qnn_canonicalize = registration("FTVMQnnCanonicalize")

_WITHOUT: Final = ("qnn.conv2d_transpose", "qnn.simulated_dequantize", "qnn.simulated_quantize")
"""Operators for which TVM has nothing under this key."""

for _name, _definition in all_ops().items():
    if _name.startswith("qnn.") and _name not in _WITHOUT:
        register_qnn_canonicalize(_name, plain_form(_definition))


def run_const_expr(expr: Expr) -> Array:
    """Return the value of an expression of constants."""
    return np.asarray(evaluate(expr))


def create_integer_lookup_table(
    floating_point_func: Callable[[Array], Array],
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: AnyValue = "uint8",
    out_dtype: AnyValue = "uint8",
) -> Array:
    """Return a function of quantised numbers as a table, by their bits taken as a number.

    Args:
        floating_point_func: The function of real numbers.
        input_scale: Scale of the operand, a constant number.
        input_zero_point: Its zero point.
        output_scale: Scale of the result.
        output_zero_point: Its zero point.
        in_axis: Has no effect, as scales are numbers.
        out_axis: Likewise.
        in_dtype: Integer type of the operand.
        out_dtype: Integer type of the result.

    Raises:
        ValueError: A type is no integer type.
        Unsupported: A parameter is no constant number.
    """
    source, target = (numpy_dtype(dtype_name(each)) for each in (in_dtype, out_dtype))
    if source.kind not in "iu" or target.kind not in "iu":
        raise ValueError(f"expected integer types, found {source.name} and {target.name}")
    bits = np.arange(2 ** (8 * source.itemsize), dtype=f"uint{8 * source.itemsize}")
    given = (input_scale, input_zero_point, output_scale, output_zero_point)
    parameters = [_number(each) for each in given]
    real = dequantize(bits.view(source), *parameters[:2], out_dtype=np.dtype("float32"))
    with np.errstate(all="ignore"):
        result = np.asarray(floating_point_func(real), np.float32)
    return quantize(result, *parameters[2:], out_dtype=target)


def _number(x: Expr) -> Array:
    if not isinstance(x, Constant) or x.data.size != 1:
        raise Unsupported("scales and zero points of a table must be constant numbers")
    return np.asarray(x.data).reshape(())


def create_integer_lookup_op(
    input_arg: Expr,
    floating_point_func: Callable[[Array], Array],
    in_scale: Expr,
    in_zero_point: Expr,
    out_scale: Expr,
    out_zero_point: Expr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: AnyValue = "uint8",
    out_dtype: AnyValue = "uint8",
) -> Expr:
    """Return a function of quantised numbers as a look-up in a table.

    The arguments are those of :func:`create_integer_lookup_table`, after the operand.

    Raises:
        ValueError: A type is no integer type.
        Unsupported: A parameter is no constant number.
    """
    parameters = (in_scale, in_zero_point, out_scale, out_zero_point)
    table = create_integer_lookup_table(
        floating_point_func, *parameters, in_axis, out_axis, in_dtype, out_dtype
    )
    width = 8 * numpy_dtype(dtype_name(in_dtype)).itemsize
    index = call("reinterpret", input_arg, dtype=f"uint{width}")
    return call("take", Constant(table), index, axis=0, mode="fast")
