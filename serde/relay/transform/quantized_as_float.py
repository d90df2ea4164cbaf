"""Integer arithmetic of quantised operators as floats between linear operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from serde.core.weights import Array
from serde.errors import TypeInferenceError
from serde.relay.ir import OpDef, TensorType, call, called_name, rewrite_function, use_counts
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, const, is_absent
from serde.relay.ir.leaves import known_dtype
from serde.relay.transform.base import FunctionPass

__all__ = ["QuantizedAsFloat"]

_SUMS = {"qnn.add": "add", "qnn.subtract": "subtract", "qnn.mul": "multiply"}
_PRODUCTS = {
    "qnn.batch_matmul": "nn.batch_matmul",
    "qnn.conv2d": "nn.conv2d",
    "qnn.dense": "nn.dense",
}
_UNARY = {
    "qnn.abs": "abs",
    "qnn.erf": "erf",
    "qnn.exp": "exp",
    "qnn.hardswish": "serde.hard_swish",
    "qnn.leaky_relu": "nn.leaky_relu",
    "qnn.sigmoid": "sigmoid",
    "qnn.tanh": "tanh",
}
"""Functions defined for all numbers; roots and logarithms are not, so their tables stay."""

_TARGETS = ("int8", "uint8", "int16", "uint16")


class QuantizedAsFloat(FunctionPass):
    """Write quantised operators as dequantisation, the operator on floats, and quantisation.

    These are the blocks that runtimes know. They round halves to even, where
    Relay's operators round as they are told, so results differ by a step at ties, and
    sums by what float32 loses; means, which Relay cuts towards zero, differ by a step
    more often. Operators whose scales or zero points are not
    constants, or do not belong together, stay as they are: so do integer results that
    something else than a requantisation uses.
    """

    name: ClassVar[str] = "QuantizedAsFloat"

    def transform(self, function: Function) -> Function:
        """Rewrite bottom-up, from each operator that ends in quantised numbers."""
        uses = use_counts(function)

        def replace(old: Expr, new: Expr) -> Expr:
            if not isinstance(new, Call) or not isinstance(new.op, OpDef):
                return new
            try:
                found = _block(old, new, uses)
            except TypeInferenceError:
                return new
            return new if found is None else found

        return rewrite_function(function, replace)


def _block(old: Expr, node: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Return what stands for a call, or None where it stays."""
    name = called_name(node)
    if name == "qnn.quantize":
        data, scale, zero = node.args
        return _quantize(data, scale, zero, node.attrs["axis"], node)
    if name in _SUMS:
        lhs, rhs, ls, lz, rs, rz, scale, zero = node.args
        a = _dequantize(lhs, ls, lz, node.attrs["lhs_axis"])
        b = _dequantize(rhs, rs, rz, node.attrs["rhs_axis"])
        if a is None or b is None:
            return None
        return _quantize(call(_SUMS[name], a, b, span=node.span), scale, zero, -1, node)
    if name in _UNARY or name == "qnn.avg_pool2d":
        return _one_operand(node)
    if name == "qnn.concatenate":
        return _concatenate(node)
    if name == "serde.dequantize_linear":
        return _real_sums(node)
    if name != "qnn.requantize":
        return None
    data, scale, zero, out_scale, out_zero = node.args
    if known_dtype(data) == "int32":
        real = _accumulate(old, node, uses)
    else:
        real = _dequantize(data, scale, zero, node.attrs["axis"])
    return None if real is None else _quantize(real, out_scale, out_zero, -1, node)


def _one_operand(node: Call) -> Expr | None:
    """Return an activation or a mean on floats; padding that counts as the number 0 has no form."""
    data, scale, zero, out_scale, out_zero = node.args
    attrs = node.attrs
    if (
        called_name(node) == "qnn.avg_pool2d"
        and attrs["count_include_pad"]
        and any(attrs["padding"])
    ):
        return None
    x = _dequantize(data, scale, zero, -1)
    if x is None:
        return None
    real = call(_UNARY.get(called_name(node), "nn.avg_pool2d"), x, span=node.span, **attrs)
    return _quantize(real, out_scale, out_zero, -1, node)


def _concatenate(node: Call) -> Expr | None:
    """Return tensors put together on floats, each with its own scale."""
    *groups, out_scale, out_zero = node.args
    if not all(isinstance(group, Tuple) for group in groups):
        return None
    data, scales, zeros = (group.fields for group in groups if isinstance(group, Tuple))
    parts = [_dequantize(*each, -1) for each in zip(data, scales, zeros, strict=True)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    real = call("concatenate", known, axis=node.attrs["axis"], span=node.span)
    return _quantize(real, out_scale, out_zero, -1, node)


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else 0


def _parameters(scale: Expr, zero: Expr, dtype: str) -> tuple[Array, Array] | None:
    """Return scale and zero point in one shape, the latter in the dtype of its data."""
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    limits = np.iinfo(dtype)
    if (zero.data < limits.min).any() or (zero.data > limits.max).any():
        return None
    a, b = (each.data.reshape(() if each.data.size == 1 else -1) for each in (scale, zero))
    a, b = np.broadcast_arrays(a.astype(np.float32), b.astype(dtype))
    return np.array(a), np.array(b)


def _dequantize(data: Expr, scale: Expr, zero: Expr, axis: int) -> Expr | None:
    dtype = known_dtype(data)
    if dtype not in _TARGETS:
        return None
    found = _parameters(scale, zero, dtype)
    if found is None:
        return None
    place = axis % max(1, _rank(data))
    parameters = (Constant(each) for each in found)
    return call("serde.dequantize_linear", data, *parameters, axis=place, span=data.span)


def _quantize(real: Expr, scale: Expr, zero: Expr, axis: int, node: Call) -> Expr | None:
    dtype = known_dtype(node)
    found = _parameters(scale, zero, dtype) if dtype in _TARGETS else None
    if found is None or known_dtype(real) != "float32":
        return None
    place = axis % max(1, _rank(real))
    parameters = (Constant(each) for each in found)
    return call(
        "serde.quantize_linear", real, *parameters, axis=place, out_dtype=dtype, span=node.span
    )


def _accumulate(old: Expr, node: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Return the sums that a requantisation reads, on floats: of a product, with a bias or not."""
    source, scale, zero = node.args[0], node.args[1], node.args[2]
    before = old.args[0] if isinstance(old, Call) else old
    if uses[before] != 1 or not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if zero.data.any():
        return None
    if called_name(source) in _PRODUCTS:
        return _product(source, scale.data)
    if called_name(source) not in ("nn.bias_add", "add"):
        return None
    if not isinstance(before, Call) or not isinstance(source, Call):
        return None
    for place in (0, 1) if called_name(source) == "add" else (0,):
        inner, bias = source.args[place], source.args[1 - place]
        if called_name(inner) not in _PRODUCTS or uses[before.args[place]] != 1:
            continue
        product = _product(inner, scale.data)
        real = _bias(bias, scale.data)
        if product is None or real is None:
            return None
        return call(called_name(source), product, real, span=source.span, **source.attrs)
    return None


def _product(node: Expr, scale: Array) -> Expr | None:
    """Return a product of dequantised operands, if its scale is that of the sums."""
    if not isinstance(node, Call):
        return None
    x, y, x_zero, y_zero, x_scale, y_scale = node.args
    if not isinstance(x_scale, Constant) or not isinstance(y_scale, Constant):
        return None
    joint = x_scale.data.reshape(-1).astype(np.float64) * y_scale.data.reshape(-1)
    given = scale.reshape(-1)
    if joint.size != given.size and 1 not in (joint.size, given.size):
        return None
    if not np.allclose(joint, given, rtol=1e-5, atol=0):
        return None
    attrs = dict(node.attrs)
    along = attrs["kernel_layout"].index("O") if "kernel_layout" in attrs else 0
    a = _dequantize(x, x_scale, x_zero, -1)
    b = _dequantize(y, y_scale, y_zero, along)
    if a is None or b is None or (x_scale.data.size > 1):
        return None
    attrs["out_dtype"] = "float32"
    return call(_PRODUCTS[called_name(node)], a, b, span=node.span, **attrs)


def _real_sums(node: Call) -> Expr | None:
    """Return sums of products of levels without zero points on floats; the weight has the scale."""
    total, scale, zero = node.args
    bias = None
    if called_name(total) in ("add", "nn.bias_add") and isinstance(total, Call):
        total, bias = total.args
    if not isinstance(total, Call) or not is_absent(zero) or node.attrs["block_size"]:
        return None
    if called_name(total) not in ("serde.conv_integer", "serde.matmul_integer"):
        return None
    data, weight, *points = total.args
    if not all(map(is_absent, points)) or (bias is not None and _rank(bias) != 1):
        return None
    is_conv = called_name(total) == "serde.conv_integer"
    along = 0 if is_conv else _rank(weight) - 1
    x = call("serde.dequantize_linear", data, const(np.float32(1)), None, axis=0)
    w = call("serde.dequantize_linear", weight, scale, None, axis=along)
    if is_conv:
        real = call(f"nn.conv{_rank(data) - 2}d", x, w, span=node.span, **total.attrs)
    elif _rank(weight) == 2:
        real = call("nn.matmul", x, w, units=None, span=node.span)
    else:
        real = call("nn.batch_matmul", x, w, transpose_b=False, span=node.span)
    if bias is None:
        return real
    term = call("serde.dequantize_linear", bias, scale, None, axis=0)
    return call("nn.bias_add", real, term, axis=1 if is_conv else -1, span=node.span)


def _bias(bias: Expr, scale: Array) -> Expr | None:
    """Return a bias of int32 on floats; of a scale for each channel it has one other axis at most.

    The runtimes' biases are dequantised, too, so that they can be added to the integer sums.
    """
    type_ = bias.type
    if not isinstance(type_, TensorType) or type_.dtype != "int32":
        return None
    if scale.size == 1:
        factor = const(scale.reshape(()), "float32")
        return call("serde.dequantize_linear", bias, factor, axis=0, span=bias.span)
    long = [axis for axis, length in enumerate(type_.shape) if length != 1]
    if len(long) != 1 or type_.shape[long[0]] != scale.size:
        return None
    factor = const(scale.reshape(-1), "float32")
    return call("serde.dequantize_linear", bias, factor, axis=long[0], span=bias.span)
