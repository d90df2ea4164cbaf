"""Quantised convolutions and dense layers for Hexagon: channels in whole vectors.

Source: the functions registered as ``FTVMQnnLegalize`` for that target in TVM 0.18. Channels of
the data are padded with its zero point here, so that they count as the number 0 whatever the
zero points are; TVM pads them with zeros.
"""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Final

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.builders import lookup_builder
from serde.relay.ir.expr import Constant, Expr, const
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType, Type
from serde.relay.transform.tvm.qnn.rescaling import Attributes, require_tensor

__all__ = ["legalize_conv2d", "legalize_dense"]

INPUTS: Final = 4
"""Channels of the data come in multiples of this number."""

OUTPUTS: Final = 32
"""Channels of the result come in multiples of this number."""

Types = list[Type | None]


def _missing(type_: TensorType, axis: int, unit: int) -> int:
    """Return how many channels an axis lacks to a multiple of `unit`."""
    length = type_.shape[axis]
    if not isinstance(length, int):
        raise Unsupported(f"axis {axis} of {type_!r} has no known length")
    return -length % unit


def _pad(x: Expr, type_: TensorType, axis: int, count: int, value: Expr) -> Expr:
    width = tuple((0, count if place == axis else 0) for place in range(type_.rank))
    return call("nn.pad", x, value, pad_width=width, pad_mode="constant")


def _extend(values: Expr, type_: Type | None, count: int, value: float) -> Expr:
    """Return a scale or zero point for more channels.

    Raises:
        Unsupported: It has one for each channel and is no constant.
    """
    if require_tensor(type_).rank == 0:
        return values
    if not isinstance(values, Constant):
        raise Unsupported("scales and zero points of channels must be constants")
    added = np.full(count, value, values.data.dtype)
    return Constant(np.concatenate([np.asarray(values.data), added]))


def _are_bytes(types: Types) -> bool:
    return all(require_tensor(each).dtype in ("int8", "uint8") for each in types[:2])


def _cut(x: Expr, type_: Type | None) -> Expr:
    """Return the channels that were there."""
    shape = require_tensor(type_).shape
    cut: Expr = lookup_builder("strided_slice")(x, begin=[0] * len(shape), end=list(shape))
    return cut


def legalize_conv2d(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr | None:
    """Return a convolution of padded channels; None where they need none, or lie otherwise."""
    if (attrs["data_layout"], attrs["kernel_layout"]) != ("NCHW", "OIHW"):
        return None
    if not _are_bytes(types) or attrs["groups"] != 1:
        return None
    data_type, weight_type = require_tensor(types[0]), require_tensor(types[1])
    data, weight, data_zero, weight_zero, data_scale, weight_scale = inputs
    zero = const(0, "int32")
    more_inputs, more_outputs = _missing(data_type, 1, INPUTS), _missing(weight_type, 0, OUTPUTS)
    if not more_inputs and not more_outputs:
        return None
    if more_inputs:
        data = _pad(data, data_type, 1, more_inputs, data_zero)
        weight = _pad(weight, weight_type, 1, more_inputs, zero)
    new: dict[str, AnyValue] = dict(attrs)
    if more_outputs:
        weight = _pad(weight, weight_type, 0, more_outputs, zero)
        weight_zero = _extend(weight_zero, types[3], more_outputs, 0)
        weight_scale = _extend(weight_scale, types[5], more_outputs, 1)
        if new["channels"] is not None:
            new["channels"] += more_outputs
    operands = (data, weight, data_zero, weight_zero, data_scale, weight_scale)
    result = call("qnn.conv2d", *operands, **new)
    return _cut(result, types[6]) if more_outputs else result


def legalize_dense(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr | None:
    """Return a dense layer of padded outputs; None where they need none."""
    weight_type = require_tensor(types[1])
    more = _missing(weight_type, 0, OUTPUTS)
    if not _are_bytes(types) or not more:
        return None
    data, weight, data_zero, weight_zero, data_scale, weight_scale = inputs
    weight = _pad(weight, weight_type, 0, more, const(0, "int32"))
    weight_zero = _extend(weight_zero, types[3], more, 0)
    weight_scale = _extend(weight_scale, types[5], more, 1)
    new: dict[str, AnyValue] = dict(attrs)
    if new["units"] is not None:
        new["units"] += more
    operands = (data, weight, data_zero, weight_zero, data_scale, weight_scale)
    return _cut(call("qnn.dense", *operands, **new), types[6])
