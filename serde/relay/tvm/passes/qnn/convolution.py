"""Quantised convolution in plain Relay, by the sums that do not depend on the data.

``sum((w - zw) * (x - zx)) = sum(w * x) - zw * sum(x) - zx * sum(w) + zw * zx * count``

Sums of the data are averages over windows, taken of the data times the size of the window, so
that they are exact. Padding consists of the zero point, and hence comes first.

Source: ``FTVMQnnCanonicalize`` of ``qnn.conv2d`` in TVM 0.18.
"""

from __future__ import annotations

from typing import Any as AnyValue

from serde.core import dataclass, dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, TensorType, Type, call, const, limits
from serde.relay.tvm.passes.qnn.rescaling import (
    Attributes,
    cast,
    equals,
    expand_to_axis,
    is_number,
    require_tensor,
)

__all__ = ["combine_terms", "lower_conv2d"]

_KERNEL_LAYOUTS = ("OIHW", "HWIO", "HWOI", "OHWI")
_BITS = {"int16": 32, "int32": 32, "int64": 64}


def combine_terms(
    products: Expr, of_data: Expr, of_weight: Expr, of_none: Expr, zeros: tuple[int, int] | None
) -> Expr:
    """Return the sum of the four terms, without those that known zero points make zero.

    Args:
        products: Sums of products.
        of_data: Sums of the data times the zero point of the weight.
        of_weight: Sums of the weight times the zero point of the data.
        of_none: Both zero points times the number of terms.
        zeros: Zero points of data and weight, where they are constant numbers.
    """
    data_zero, weight_zero = (-1, -1) if zeros is None else zeros
    if data_zero == 0 and weight_zero == 0:
        return products
    if data_zero == 0:
        return call("subtract", products, of_data)
    if weight_zero == 0:
        return call("subtract", products, of_weight)
    return call("add", call("subtract", products, of_data), call("subtract", of_none, of_weight))


@dataclass(frozen=True)
class _Convolution:
    """A quantised convolution: what its parts share."""

    attrs: Attributes
    data: Expr
    weight: Expr
    data_zero: Expr
    weight_zero: Expr
    data_type: TensorType
    weight_type: TensorType

    @property
    def data_layout(self) -> str:
        layout: str = self.attrs["data_layout"]
        return layout

    @property
    def kernel_layout(self) -> str:
        layout: str = self.attrs["kernel_layout"]
        return layout

    @property
    def channel_axis(self) -> int:
        return self.data_layout.index("C")

    @property
    def out_dtype(self) -> str:
        return dtype_name(self.attrs["out_dtype"])

    @property
    def is_depthwise(self) -> bool:
        groups = self.attrs["groups"]
        return bool(groups != 1 and self.attrs["channels"] == groups)

    @property
    def window(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        return self.length("H"), self.length("W")

    @property
    def zeros(self) -> tuple[int, int] | None:
        """Zero points of data and weight, where they are constant numbers."""
        found = (self.data_zero, self.weight_zero)
        numbers = [x.data for x in found if isinstance(x, Constant) and not x.data.ndim]
        return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None

    def length(self, axis: str) -> int:
        """Return the length of an axis of the weight."""
        found = self.weight_type.shape[self.kernel_layout.index(axis)]
        if not isinstance(found, int):
            raise Unsupported(f"qnn.conv2d: axis {axis} of the weight has no known length")
        return found

    def convolve(self, data: Expr, weight: Expr, padding: AnyValue) -> Expr:
        attrs = {**self.attrs, "padding": padding}
        return call("nn.conv2d", data, weight, **attrs)


def lower_conv2d(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.conv2d`` in plain Relay.

    Raises:
        Unsupported: The layout is another, or lengths are not known.
    """
    data_type, weight_type = require_tensor(types[0]), require_tensor(types[1])
    data, weight, data_zero, weight_zero = args[:4]
    conv = _Convolution(attrs, data, weight, data_zero, weight_zero, data_type, weight_type)
    if conv.data_layout not in ("NCHW", "NHWC"):
        raise Unsupported(f"qnn.conv2d: data_layout is {conv.data_layout}, not NCHW or NHWC")
    if conv.kernel_layout not in _KERNEL_LAYOUTS:
        wanted = ", ".join(_KERNEL_LAYOUTS)
        raise Unsupported(f"qnn.conv2d: kernel_layout is {conv.kernel_layout}, not {wanted}")
    zeros = conv.zeros
    if not _has_terms(conv):
        return _convolve_differences(conv)
    padded = _pad(conv)
    products = conv.convolve(padded, weight, (0, 0, 0, 0))
    spread = _spread_weight_zero(conv, conv.channel_axis)
    return combine_terms(
        products, _sum_data(conv, padded, spread), _sum_weight(conv), _count(conv, spread), zeros
    )


def _has_terms(conv: _Convolution) -> bool:
    """Whether the four terms can be written.

    Windows of an average are not dilated as TVM writes them, groups but those of one channel have
    no sums of their own, terms are int32, and padding must hold the zero point.
    """
    zeros = conv.zeros
    info = limits(conv.data_type.dtype)
    known = int(conv.data_zero.data.reshape(())) if isinstance(conv.data_zero, Constant) else 0
    if any(conv.attrs["padding"]) and not info.min <= known <= info.max:
        return False
    plain = zeros is not None and zeros[1] == 0
    dense = all(step == 1 for step in conv.attrs["dilation"])
    grouped = conv.attrs["groups"] != 1 and not conv.is_depthwise
    if conv.is_depthwise and conv.kernel_layout == "OHWI" and zeros != (0, 0):
        return False
    return (plain or dense) and not grouped and (conv.out_dtype == "int32" or zeros == (0, 0))


def _convolve_differences(conv: _Convolution) -> Expr:
    """Return the convolution of data and weight without their zero points, in 32 bits or 64."""
    wide = f"int{_BITS[conv.out_dtype]}"
    data = cast(conv.data, wide)
    if not equals(conv.data_zero, 0):
        data = call("subtract", data, cast(conv.data_zero, wide))
    weight = cast(conv.weight, wide)
    if not equals(conv.weight_zero, 0):
        weight = call("subtract", weight, cast(_weight_zero(conv), wide))
    return conv.convolve(data, weight, conv.attrs["padding"])


def _weight_zero(conv: _Convolution) -> Expr:
    """Return the zero point of the weight in a shape to broadcast with it.

    Where it has one for each filter of each group, filters lie on both channel axes.
    """
    outputs, inputs = conv.length("O"), conv.length("I")
    found = require_tensor(conv.weight_zero.type)
    if found.shape != (outputs * inputs,) or inputs == 1 or conv.attrs["groups"] == 1:
        return _spread_weight_zero(conv, conv.kernel_layout.index("O"))
    square = call("reshape", conv.weight_zero, newshape=(outputs, inputs))
    if conv.kernel_layout.index("I") < conv.kernel_layout.index("O"):
        square = call("transpose", square, axes=(1, 0))
    lengths = {"O": outputs, "I": inputs}
    shape = tuple(lengths.get(letter, 1) for letter in conv.kernel_layout)
    return call("reshape", square, newshape=shape)


def _spread_weight_zero(conv: _Convolution, axis: int) -> Expr:
    """Return the zero point of the weight in a shape to broadcast along an axis."""
    if conv.zeros is not None:
        return conv.weight_zero
    return expand_to_axis(call("reshape", conv.weight_zero, newshape=(-1,)), 4, axis)


def _pad(conv: _Convolution) -> Expr:
    """Return the data between margins of the zero point."""
    given = tuple(conv.attrs["padding"])
    if len(given) == 4:
        top, left, bottom, right = given
    else:
        top, left = bottom, right = given * (2 // len(given))
    if not any((top, left, bottom, right)):
        return conv.data
    margins = {"N": (0, 0), "C": (0, 0), "H": (top, bottom), "W": (left, right)}
    width = tuple(margins[letter] for letter in conv.data_layout)
    return call("nn.pad", conv.data, conv.data_zero, pad_width=width, pad_mode="constant")


def _sum_windows(conv: _Convolution, level: Expr) -> Expr:
    """Return the sums over windows, as averages of the data times their size."""
    height, width = conv.window
    strides = conv.attrs["strides"]
    if height * width == 1 and all(step == 1 for step in strides):
        return level
    if height * width != 1:
        level = call("multiply", level, const(height * width, "int32"))
    return call(
        "nn.avg_pool2d", level, pool_size=(height, width), strides=strides,
        dilation=conv.attrs["dilation"], padding=(0, 0, 0, 0), layout=conv.data_layout,
        out_layout="", ceil_mode=False, count_include_pad=False,
    )  # fmt: skip


def _sum_data(conv: _Convolution, padded: Expr, zero: Expr) -> Expr:
    level = cast(padded, "int32")
    axis = conv.channel_axis
    if conv.is_depthwise:
        sums = _sum_windows(conv, level)
        factor = conv.length("I")
        if equals(zero, 1) or is_number(zero):
            scaled = sums if equals(zero, 1) else call("multiply", zero, sums)
            return scaled if factor == 1 else call("repeat", scaled, repeats=factor, axis=axis)
        sums = sums if factor == 1 else call("repeat", sums, repeats=factor, axis=axis)
        return call("multiply", zero, sums)
    sums = _sum_windows(conv, call("sum", level, axis=(axis,), keepdims=True))
    if equals(zero, 1):
        return sums
    if not is_number(zero):
        sums = call("repeat", sums, repeats=conv.length("O"), axis=axis)
    return call("multiply", zero, sums)


def _sum_weight(conv: _Convolution) -> Expr:
    """Return the sums of the weight for each channel of the result, times the data's zero point."""
    channels = conv.length("O") * (conv.length("I") if conv.is_depthwise else 1)
    kept = "OI" if conv.is_depthwise else "O"
    axes = tuple(index for index, letter in enumerate(conv.kernel_layout) if letter not in kept)
    sums = call("sum", cast(conv.weight, "int32"), axis=axes, keepdims=False)
    shape = tuple(channels if letter == "C" else 1 for letter in conv.data_layout)
    spread = call("reshape", sums, newshape=shape)
    return spread if equals(conv.data_zero, 1) else call("multiply", conv.data_zero, spread)


def _count(conv: _Convolution, spread: Expr) -> Expr:
    """Return both zero points times the number of terms of a sum."""
    height, width = conv.window
    terms = height * width
    if not conv.is_depthwise:
        channels = conv.data_type.shape[conv.channel_axis]
        if not isinstance(channels, int):
            raise Unsupported("qnn.conv2d: the channels of the data have no known number")
        terms *= channels
    if conv.zeros is not None:
        return const(conv.zeros[0] * conv.zeros[1] * terms, "int32")
    return call("multiply", const(terms, "int32"), call("multiply", conv.data_zero, spread))
