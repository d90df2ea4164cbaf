"""Quantised operators in the form that suits a target.

What is registered here as ``FTVMQnnLegalize`` is what
:class:`~serde.relay.transform.tvm.qnn.Legalize` writes. Functions of one number become tables,
and a transposed convolution one of differences, whatever the target. Convolutions and dense
layers depend on the current :class:`~serde.relay.transform.tvm.qnn.targets.Target`; without one
they stay.

Source: the functions registered under that name in TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.expr import Constant, Expr, const
from serde.relay.ir.op_attributes import registration
from serde.relay.ir.registry import Array, call
from serde.relay.ir.types import TensorType, Type
from serde.relay.op.qnn.lookup import FUNCTIONS
from serde.relay.transform.tvm.qnn import hexagon
from serde.relay.transform.tvm.qnn.canonicalizations import create_integer_lookup_op
from serde.relay.transform.tvm.qnn.rescaling import Attributes, cast, require_tensor
from serde.relay.transform.tvm.qnn.targets import Target, current_target

__all__ = [
    "helper_change_dtypes_to_be_same",
    "helper_change_dtypes_to_int8",
    "helper_change_dtypes_to_uint8",
    "helper_change_dtypes_to_uint8_int8",
    "helper_no_fast_int8_hw_legalization",
    "register_qnn_legalize",
]

Types = list[Type | None]
Builder = Callable[..., Expr]
Legalization = Callable[[Attributes, list[Expr], Types], Expr | None]

register_qnn_legalize = registration("FTVMQnnLegalize")


def _as_table(function: Callable[[Array], Array]) -> Legalization:
    def legalize(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr:
        dtype = require_tensor(types[0]).dtype
        scale, zero, out_scale, out_zero = inputs[1:5]
        parameters = (scale, zero, out_scale, out_zero)
        return create_integer_lookup_op(
            inputs[0], function, *parameters, in_dtype=dtype, out_dtype=dtype
        )

    return legalize


for _name, (_function, _doc) in FUNCTIONS.items():
    register_qnn_legalize(f"qnn.{_name}", _as_table(_function))


def legalize_conv2d_transpose(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr:
    """Return a transposed convolution of differences in int16.

    TVM subtracts a zero point for each channel along the second axis of the weight, wherever its
    filters lie; here it is the axis of the outputs.
    """
    data, weight, data_zero, weight_zero = inputs[:4]
    level = call("subtract", cast(data, "int16"), _scalar(cast(data_zero, "int16"), types[2]))
    zero = cast(weight_zero, "int16")
    if require_tensor(types[3]).rank == 0:
        kernel = call("subtract", cast(weight, "int16"), zero)
    else:
        axis = attrs["kernel_layout"].index(_filter_axis(attrs, types))
        kernel = call("nn.bias_add", cast(weight, "int16"), call("negative", zero), axis=axis)
    return call("nn.conv2d_transpose", level, kernel, **attrs)


def _filter_axis(attrs: Attributes, types: Types) -> str:
    """Return the axis of the weight that has a zero point for each index."""
    weight, zero = require_tensor(types[1]), require_tensor(types[3])
    outputs = weight.shape[attrs["kernel_layout"].index("O")]
    return "O" if zero.shape[0] in (outputs, 1) else "I"


def _scalar(x: Expr, type_: Type | None) -> Expr:
    """Return a zero point, which may be a vector of one number, as a scalar."""
    return call("squeeze", x, axis=(0,)) if require_tensor(type_).rank else x


register_qnn_legalize("qnn.conv2d_transpose", legalize_conv2d_transpose)


def _is_byte(type_: TensorType) -> bool:
    return type_.dtype in ("int8", "uint8")


def _shift(data: Expr, zero_point: Expr, out_dtype: str) -> tuple[Expr, Expr]:
    """Return bytes of the other signedness that stand for the same, and their zero point."""
    step = 128 if out_dtype == "uint8" else -128
    moved = call("add", cast(data, "int32"), const(step, "int32"))
    if isinstance(zero_point, Constant):
        origin: Expr = Constant(np.asarray(zero_point.data + np.int32(step)))
    else:
        origin = call("add", zero_point, const(step, "int32"))
    return cast(moved, out_dtype), origin


def _change_dtypes(
    data_dtype: str | None, kernel_dtype: str | None
) -> Callable[[Attributes, list[Expr], Types, Builder], Expr | None]:
    """Return what moves data and weight to given dtypes; None stays as it is."""

    def change(
        attrs: Attributes, inputs: list[Expr], types: Types, relay_op: Builder
    ) -> Expr | None:
        data, kernel, data_zero, kernel_zero, *scales = inputs
        found = [require_tensor(each) for each in types[:2]]
        if not all(map(_is_byte, found)):
            return None
        wanted = [dtype or type_.dtype for dtype, type_ in zip(
            (data_dtype, kernel_dtype), found, strict=True)]  # fmt: skip
        if [each.dtype for each in found] == wanted:
            return None
        if found[0].dtype != wanted[0]:
            data, data_zero = _shift(data, data_zero, wanted[0])
        if found[1].dtype != wanted[1]:
            kernel, kernel_zero = _shift(kernel, kernel_zero, wanted[1])
        return relay_op(data, kernel, data_zero, kernel_zero, *scales, **attrs)

    return change


helper_change_dtypes_to_uint8_int8 = _change_dtypes("uint8", "int8")
helper_change_dtypes_to_int8 = _change_dtypes("int8", "int8")
helper_change_dtypes_to_uint8 = _change_dtypes("uint8", "uint8")


def helper_change_dtypes_to_be_same(
    attrs: Attributes, inputs: list[Expr], types: Types, relay_op: Builder
) -> Expr | None:
    """Return the operator of data moved to the dtype of the weight; None where they agree."""
    change = _change_dtypes(require_tensor(types[1]).dtype, None)
    return change(attrs, inputs, types, relay_op)


def helper_no_fast_int8_hw_legalization(
    attrs: Attributes, inputs: list[Expr], types: Types, relay_op: Builder
) -> Expr | None:
    """Return the plain operator of data and weight in int16, without their zero points.

    It is None where differences do not fit, or where the zero points of the weight lie along two
    axes.
    """
    data, kernel, data_zero, kernel_zero = inputs[:4]
    weight_type, zero_type = require_tensor(types[1]), require_tensor(types[3])
    axis = attrs["kernel_layout"].index("O") if "kernel_layout" in attrs else 0
    if not all(map(_is_byte, (require_tensor(types[0]), weight_type))):
        return None
    if zero_type.rank and zero_type.shape[0] != weight_type.shape[axis]:
        return None
    level = call("subtract", cast(data, "int16"), cast(data_zero, "int16"))
    zero = cast(kernel_zero, "int16")
    if zero_type.rank == 0:
        weight = call("subtract", cast(kernel, "int16"), zero)
    else:
        weight = call("nn.bias_add", cast(kernel, "int16"), call("negative", zero), axis=axis)
    return relay_op(level, weight, **attrs)


def _builder(name: str) -> Builder:
    def build(*operands: Expr, **attrs: AnyValue) -> Expr:
        return call(name, *operands, **attrs)

    return build


def _for_arm(target: Target, name: str, attrs: Attributes, types: Types) -> bool:
    """Whether an ARM processor gets integers of 16 bits."""
    others = target.has_dotprod
    if name == "conv2d":
        groups, data = attrs["groups"], require_tensor(types[0])
        depthwise = groups != 1 and data.shape[attrs["data_layout"].index("C")] == groups
        others |= not depthwise and attrs["data_layout"] == "NHWC"
    return target.has_asimd and not others


_HEXAGON: dict[str, Legalization] = {
    "conv2d": hexagon.legalize_conv2d,
    "dense": hexagon.legalize_dense,
}


def _for_target(name: str) -> Legalization:
    def legalize(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr | None:
        target = current_target()
        quantised, plain = _builder(f"qnn.{name}"), _builder(f"nn.{name}")
        if target is None:
            return None
        if "arm_cpu" in target.keys:
            if _for_arm(target, name, attrs, types):
                return helper_no_fast_int8_hw_legalization(attrs, inputs, types, plain)
            return helper_change_dtypes_to_be_same(attrs, inputs, types, quantised)
        if "gpu" in target.keys:
            return helper_change_dtypes_to_int8(attrs, inputs, types, quantised)
        if "hexagon" in target.keys:
            return _HEXAGON[name](attrs, inputs, types)
        if target.has_fast_int8:
            return helper_change_dtypes_to_uint8_int8(attrs, inputs, types, quantised)
        return helper_no_fast_int8_hw_legalization(attrs, inputs, types, plain)

    return legalize


for _name in ("conv2d", "dense"):
    register_qnn_legalize(f"qnn.{_name}", _for_target(_name))
