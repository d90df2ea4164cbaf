"""Quantised sums, products, activations and joins in plain Relay.

Source: the functions ``FTVMQnnCanonicalize`` of TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir import OpDef, TensorType, TupleType, Type, call, get, rewrite
from serde.relay.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, const
from serde.relay.tvm.passes.qnn.rescaling import (
    Attributes,
    cast,
    equals,
    expand_to_axis,
    is_number,
    lower_dequantize,
    lower_quantize,
    lower_requantize,
    multiply_by_number,
    require_tensor,
    rescale,
    rescale_or_widen,
    saturate_to,
)

__all__ = [
    "UNARY", "lower_by_parts", "lower_concatenate", "lower_leaky_relu", "lower_mul", "lower_sum",
    "lower_unary",
]  # fmt: skip

Lowering = Callable[[Attributes, list[Expr], list[Type | None]], Expr]

UNARY = ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh")
"""Functions of one quantised number, behind ``qnn.``."""


def lower_sum(sign: int) -> Lowering:
    """Return what writes ``qnn.add`` (`sign` 1) or ``qnn.subtract`` (-1) in plain Relay."""

    def lower(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
        lhs, rhs, *parameters = args
        wanted = parameters[4:]
        axes = (attrs["lhs_axis"], attrs["rhs_axis"])
        a = rescale_or_widen(lhs, require_tensor(types[0]), parameters[:2], wanted, axes[0])
        b = rescale_or_widen(rhs, require_tensor(types[1]), parameters[2:4], wanted, axes[1])
        total = call("add" if sign > 0 else "subtract", a, b)
        if not equals(wanted[1], 0):
            total = call("subtract" if sign > 0 else "add", total, wanted[1])
        return saturate_to(total, require_tensor(types[0]).dtype)

    return lower


def lower_mul(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.mul`` in plain Relay.

    Raises:
        Unsupported: A scale is no constant, or scales lie along different axes.
    """
    lhs, rhs, lhs_scale, lhs_zero, rhs_scale, rhs_zero, *wanted = args
    if not isinstance(lhs_scale, Constant) or not isinstance(rhs_scale, Constant):
        raise Unsupported("a scale is no constant", hint="bind it, then fold constants")
    lhs_type, rhs_type = require_tensor(types[0]), require_tensor(types[1])
    per_tensor = is_number(lhs_scale) and is_number(rhs_scale)
    if not per_tensor and attrs["lhs_axis"] != attrs["rhs_axis"]:
        raise Unsupported("qnn.mul: scales lie along different axes")
    a = _without_zero(lhs, lhs_type, lhs_zero, attrs["lhs_axis"])
    b = _without_zero(rhs, rhs_type, rhs_zero, attrs["rhs_axis"])
    product = call("multiply", a, b)
    scale = Constant(np.asarray(lhs_scale.data * rhs_scale.data, np.float32))
    return rescale(
        product, require_tensor(product.type), scale, const(0, "int32"), *wanted,
        out_dtype=lhs_type.dtype, axis=-1 if per_tensor else attrs["lhs_axis"],
    )  # fmt: skip


def _without_zero(x: Expr, type_: TensorType, zero: Expr, axis: int) -> Expr:
    wide = cast(x, "int32")
    if equals(zero, 0):
        return wide
    if zero.type is None or not require_tensor(zero.type).rank or not type_.rank:
        return call("subtract", wide, zero)
    spread = expand_to_axis(zero, type_.rank, axis % type_.rank)
    return call("subtract", wide, cast(spread, "int32"))


def lower_concatenate(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.concatenate`` in plain Relay.

    Raises:
        Unsupported: Scales or zero points are no tuple that is written out.
    """
    data, scales, zeros, *wanted = args
    if not isinstance(scales, Tuple) or not isinstance(zeros, Tuple):
        raise Unsupported("qnn.concatenate: scales and zero points must be tuples")
    if not isinstance(types[0], TupleType):
        raise Unsupported(f"qnn.concatenate: expected a tuple, found {types[0]!r}")
    fields = [require_tensor(each) for each in types[0].fields]
    parts: Sequence[Expr] = (
        data.fields
        if isinstance(data, Tuple)
        else [TupleGetItem(data, index) for index in range(len(fields))]
    )
    joined = []
    for part, type_, scale, zero in zip(parts, fields, scales.fields, zeros.fields, strict=True):
        if not (equals(scale, wanted[0]) and equals(zero, wanted[1])):
            part = rescale(part, type_, scale, zero, *wanted, out_dtype=type_.dtype)
        joined.append(part)
    return call("concatenate", joined, axis=attrs["axis"])


def lower_leaky_relu(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.leaky_relu`` in plain Relay."""
    type_ = require_tensor(types[0])
    data, input_zero, output_zero = (cast(args[place], "int32") for place in (0, 2, 4))
    level = rescale(data, type_, args[1], input_zero, args[3], output_zero, out_dtype="int32")
    alpha = attrs["alpha"]
    scaled_zero = multiply_by_number(output_zero, 1 - alpha)
    below = call("add", multiply_by_number(level, alpha), scaled_zero)
    result = call("where", call("less", data, input_zero), below, level)
    return saturate_to(result, type_.dtype)


def lower_unary(name: str) -> Lowering:
    """Return what writes a function of one quantised number as one of real numbers."""

    def lower(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
        data, scale, zero, *wanted = args
        attributes = {"axis": -1, "out_dtype": np.dtype("float32")}
        real = lower_dequantize(attributes, [data, scale, zero], types[:3])
        result = _function(name, real)
        attributes["out_dtype"] = np.dtype(require_tensor(types[0]).dtype)
        return lower_quantize(attributes, [result, *wanted], [result.type, *types[3:5]])

    return lower


def _function(name: str, x: Expr) -> Expr:
    if name != "hardswish":
        return call(name, x)
    lifted = call("clip", call("add", x, const(3.0, "float32")), a_min=0.0, a_max=6.0)
    return call("divide", call("multiply", x, lifted), const(6.0, "float32"))


def lower_by_parts(name: str) -> Lowering:
    """Return what writes an operator as its decomposition, requantisation in plain Relay."""

    def lower(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
        definition = get(name)
        if definition.decompose is None:
            raise Unsupported(f"{name} has no decomposition")
        return rewrite(definition.decompose(*args, **attrs), _lower_requantize, dict(_same(args)))

    return lower


def _same(args: list[Expr]) -> list[tuple[Expr, Expr]]:
    return [(arg, arg) for arg in args]


def _lower_requantize(_old: Expr, new: Expr) -> Expr:
    if isinstance(new, Call) and isinstance(new.op, OpDef) and new.op.name == "qnn.requantize":
        types = [*(arg.type for arg in new.args), new.type]
        return lower_requantize(new.attrs, list(new.args), types)
    return new
