"""What operators may be made of for a toolchain that lacks the one that they are written as.

The exporter has one way to say each operator at a version. Where a toolchain does not take that,
these are tried, and after them the operator's own decomposition; what comes out is judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any as AnyValue, Final

from serde.errors import Unsupported
from serde.onnx.ops import TABLE
from serde.relay.ir import Expr, call, const, tensor_type
from serde.relay.ir.schema import gather
from serde.relay.op.norm.plain import ChannelNorm

__all__ = ["expansion_of"]


def expansion_of(name: str) -> Callable[..., AnyValue] | None:
    """Return what makes an operator of others, None where there is nothing."""
    return TABLE.expansion(name) or _ALTERNATIVES.get(name)


def _spell_layer_norm(data: Expr, gamma: Expr, beta: Expr, *, norm: ChannelNorm) -> Expr:
    """Return mean and variance in reductions, as the exporter does below version 17."""
    type_ = tensor_type(data)
    trailing = type_.rank - 1 - norm.axis % type_.rank
    mean = call("mean", data, axis=(norm.axis,), keepdims=True)
    centred = call("subtract", data, mean)
    variance = call("mean", call("multiply", centred, centred), axis=(norm.axis,), keepdims=True)
    spread = call("sqrt", call("add", variance, const(norm.epsilon, type_.dtype)))
    result = call("divide", centred, spread)
    if norm.scale:
        result = call("multiply", result, _along(gamma, trailing))
    return call("add", result, _along(beta, trailing)) if norm.center else result


def _along(vector: Expr, trailing: int) -> Expr:
    """Return a vector with axes of length one behind it."""
    return call("expand_dims", vector, axis=1, num_newaxis=trailing) if trailing else vector


def _spell_dense(data: Expr, weight: Expr, *, units: int | None, out_dtype: AnyValue) -> Expr:
    """Return a product with the transposed weight: MatMul where Gemm is missing."""
    if tensor_type(data).rank != 2:
        raise Unsupported("of more axes it is a product already")
    turned = call("transpose", weight, axes=(1, 0))
    return call("nn.matmul", data, turned, units=units, out_dtype=out_dtype)


def _spell_rsqrt(data: Expr) -> Expr:
    """Return one over the square root: Div where Reciprocal is missing."""
    return call("divide", const(1.0, tensor_type(data).dtype), call("sqrt", data))


def _spell_global_average(data: Expr, *, layout: str, **_attrs: AnyValue) -> Expr:
    """Return a mean over the axes of the image."""
    axes = tuple(index for index, axis in enumerate(layout) if axis in "DHW")
    return call("mean", data, axis=axes, keepdims=True)


def _spell_not(data: Expr) -> Expr:
    """Return whether each is false: Equal where Not is missing."""
    return call("equal", data, const(False, "bool"))


def _spell_negative(data: Expr) -> Expr:
    """Return a product: Mul where Neg is missing."""
    return call("multiply", data, const(-1, tensor_type(data).dtype))


def _spell_and(lhs: Expr, rhs: Expr) -> Expr:
    """Return the second where the first is true: Where where And is missing."""
    return call("where", lhs, rhs, const(False, "bool"))


_ALTERNATIVES: Final[Mapping[str, Callable[..., AnyValue]]] = MappingProxyType(
    {
        "nn.layer_norm": gather(_spell_layer_norm),
        "nn.dense": _spell_dense,
        "nn.global_avg_pool2d": _spell_global_average,
        "logical_and": _spell_and,
        "logical_not": _spell_not,
        "negative": _spell_negative,
        "rsqrt": _spell_rsqrt,
    }
)
