"""Quantised dense layers and matrix products in plain Relay, by the same four terms.

Source: the functions ``FTVMQnnCanonicalize`` of TVM 0.18.
"""

from __future__ import annotations

from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, TensorType, Type, call, const
from serde.relay.tvm.passes.qnn.convolution import combine_terms
from serde.relay.tvm.passes.qnn.rescaling import Attributes, cast, is_number, require_tensor

__all__ = ["lower_batch_matmul", "lower_dense"]


def _length(type_: TensorType, axis: int) -> int:
    found = type_.shape[axis]
    if not isinstance(found, int):
        raise Unsupported(f"axis {axis} of {type_!r} has no known length")
    return found


def _zeros(left: Expr, right: Expr) -> tuple[int, int] | None:
    numbers = [x.data for x in (left, right) if isinstance(x, Constant) and not x.data.ndim]
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None


def _count(left: Expr, right: Expr, terms: int, dtype: str) -> Expr:
    """Return both zero points times the number of terms of a sum."""
    known = _zeros(left, right)
    if known is not None:
        return const(known[0] * known[1] * terms, dtype)
    product = call("multiply", left, right)
    return call("multiply", _as(product, dtype), const(terms, dtype))


def _as(x: Expr, dtype: str) -> Expr:
    return x if dtype == "int32" else cast(x, dtype)


def lower_dense(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.dense`` in plain Relay; of data of any rank, where TVM takes 2."""
    data, weight, data_zero, weight_zero = args[:4]
    data_type, weight_type = require_tensor(types[0]), require_tensor(types[1])
    dtype = dtype_name(attrs["out_dtype"])
    products = call("nn.dense", data, weight, **attrs)
    last = data_type.rank - 1
    of_data = call("sum", cast(data, dtype), axis=(last,), keepdims=True)
    if not is_number(weight_zero):
        of_data = call("repeat", of_data, repeats=_length(weight_type, 0), axis=last)
    of_weight = call("sum", cast(weight, dtype), axis=(1,), keepdims=False)
    return combine_terms(
        products,
        call("multiply", _as(weight_zero, dtype), of_data),
        call("multiply", _as(data_zero, dtype), of_weight),
        _count(data_zero, weight_zero, _length(data_type, last), dtype),
        _zeros(data_zero, weight_zero),
    )


def lower_batch_matmul(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.batch_matmul`` in plain Relay; transposed as asked, where TVM takes one form.

    Raises:
        Unsupported: A zero point is no number.
    """
    x, y, x_zero, y_zero = args[:4]
    x_type, y_type = require_tensor(types[0]), require_tensor(types[1])
    if any(require_tensor(type_).rank for type_ in types[2:4]):
        raise Unsupported("qnn.batch_matmul: zero points for each channel")
    along_x = 1 if attrs["transpose_a"] else 2
    of_x = call("sum", cast(x, "int32"), axis=(along_x,), keepdims=True)
    of_x = call("multiply", y_zero, of_x)
    if attrs["transpose_a"]:
        of_x = call("reshape", of_x, newshape=(0, _length(x_type, 2), 1))
    along_y = 2 if attrs["transpose_b"] else 1
    of_y = call("sum", cast(y, "int32"), axis=(along_y,), keepdims=True)
    of_y = call("multiply", x_zero, of_y)
    if attrs["transpose_b"]:
        of_y = call("reshape", of_y, newshape=(0, 1, _length(y_type, 1)))
    return combine_terms(
        call("nn.batch_matmul", x, y, **attrs),
        of_x,
        of_y,
        _count(x_zero, y_zero, _length(x_type, along_x), "int32"),
        _zeros(x_zero, y_zero),
    )
