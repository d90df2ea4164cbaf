"""What the convolutions share. ONNX keeps channels behind the batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import const_int64
from serde.onnx.ops.linalg.product import BYTE_DTYPES
from serde.onnx.ops.table import Export, Import, Value
from serde.relay.ir import Dim, Expr, call, split_padding
from serde.relay.op.conv.windows import Convolution

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


@dataclass(frozen=True, kw_only=True)
class ConvAttributes:
    """Attributes that the convolutions of ONNX share, one number for each spatial axis."""

    auto_pad: AutoPad = "NOTSET"
    dilations: tuple[int, ...] = ()
    group: int = 1
    kernel_shape: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def kernel(self, ctx: Import, w: Expr, what: str = "a convolution") -> tuple[int, ...]:
        """Return the spatial lengths of a weight."""
        ndim = ctx.type(w).rank - 2
        if ndim not in SPATIAL:
            raise Unsupported(f"{what} over {ndim} axes")
        lengths = ctx.static_lengths(w, range(2, ndim + 2))
        if self.kernel_shape and self.kernel_shape != lengths:
            found = f"kernel_shape {list(self.kernel_shape)} with a weight of {ctx.type(w)!r}"
            raise Unsupported(found)
        return lengths


class RelayConv(Convolution):
    """Attributes of Relay's convolutions."""

    def to_onnx(self, ctx: Export, weight: Value) -> dict[str, AnyValue]:
        """Return the attributes of Conv and its kin."""
        return {
            "kernel_shape": require_kernel_shape(ctx, weight),
            "strides": require_fixed(self.strides, "strides"),
            "pads": to_onnx_pads(self.padding, len(self.strides)),
            "dilations": require_fixed(self.dilation, "dilation"),
            "group": self.groups,
        }


def to_onnx_pads(padding: Sequence[Dim], ndim: int) -> list[int]:
    """Return explicit pads, all before the axes first, as ONNX and Relay order them."""
    before, after = split_padding(require_fixed(padding, "padding"), ndim)
    return [*before, *after]


def require_fixed(values: Sequence[Dim], name: str) -> list[int]:
    """Return integers."""
    result = [value for value in values if isinstance(value, int)]
    if len(result) != len(values):
        raise Unsupported(f"{name}: expected integers, found {list(values)}")
    return result


def require_kernel_shape(ctx: Export, weight: Value) -> list[int]:
    """Return the spatial lengths of a weight."""
    return require_fixed(ctx.type(weight).shape[2:], "kernel_size")


EXACT_DEPTH = (1 << 31) // 255**2
"""So many products of two bytes less their zero points add up within int32."""


def require_bytes(ctx: Export, x: Value, weight: Value) -> None:
    """Refuse a convolution of integers that ConvInteger, which sums bytes in int32, cannot say.

    Sums in int64 are the same where they cannot leave int32.
    """
    given = (ctx.type(x).dtype, ctx.type(weight).dtype)
    dtype = ctx.result_type().dtype
    size = ctx.type(weight).size
    enough = dtype == "int64" and isinstance(size, int) and size < EXACT_DEPTH
    if any(each not in BYTE_DTYPES for each in given) or not (dtype == "int32" or enough):
        raise Unsupported(
            f"a convolution of {given[0]} with {given[1]} in {dtype}: "
            f"ONNX convolves int8 and uint8 in int32"
        )


def require_dtype(ctx: Export, x: Value) -> None:
    """Refuse a convolution in another dtype than its data."""
    if ctx.result_type().dtype != ctx.type(x).dtype:
        raise Unsupported(f"a convolution of {ctx.type(x).dtype} in {ctx.result_type().dtype}")


def per_axis(values: Sequence[int], ndim: int, name: str) -> tuple[int, ...]:
    """Return one number a spatial axis; 1 each where none are given."""
    if values and len(values) != ndim:
        raise Unsupported(f"{name}: expected {ndim} numbers, found {len(values)}")
    return tuple(values) or (1,) * ndim


def explicit_pads(pads: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return two numbers a spatial axis, all before the axes first; 0 each where none are given."""
    if pads and len(pads) != 2 * ndim:
        raise Unsupported(f"pads: expected {2 * ndim} numbers, found {len(pads)}")
    return tuple(pads) or (0,) * (2 * ndim)


def compute_padding(
    ctx: Import, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[int], auto_pad: AutoPad,
) -> tuple[int, ...]:  # fmt: skip
    """Return explicit pads, all before the axes first, of a window over the spatial axes."""
    ndim = len(kernel)
    if auto_pad == "VALID":
        return (0,) * (2 * ndim)
    if auto_pad == "NOTSET":
        return explicit_pads(pads, ndim)
    totals = []
    for axis, (size, stride, gap) in enumerate(zip(kernel, strides, dilations, strict=True)):
        reach = (size - 1) * gap + 1
        if stride == 1:
            totals.append(reach - 1)
            continue
        (length,) = ctx.static_lengths(x, [2 + axis])
        totals.append(max(0, (-(-length // stride) - 1) * stride + reach - length))
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return tuple(small + large if auto_pad == "SAME_UPPER" else large + small)


def pad_same(
    ctx: Import, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    auto_pad: AutoPad, value: AnyValue,
) -> tuple[Expr, AutoPad]:  # fmt: skip
    """Return `x` padded where open lengths decide how much, and how the rest is to be padded.

    With a stride of 1 they do not.
    """
    spatial = ctx.type(x).shape[2:]
    if len(spatial) != len(kernel):
        raise Unsupported(f"a window over {len(kernel)} axes of {ctx.type(x)!r}")
    pairs = list(zip(spatial, strides, strict=True))
    depends = any(step > 1 and not isinstance(length, int) for length, step in pairs)
    if not auto_pad.startswith("SAME") or not depends:
        return x, auto_pad
    lengths = relay.shape_of(x, "int64")
    nothing, two = const_int64(0), const_int64(2)
    widths = [(nothing, nothing)] * 2
    for axis, (size, step, gap) in enumerate(zip(kernel, strides, dilations, strict=True)):
        length = relay.take(lengths, const_int64(2 + axis), axis=0, mode="fast")
        last = relay.multiply(
            relay.divide(relay.subtract(length, const_int64(1)), const_int64(step)),
            const_int64(step),
        )
        end = relay.add(last, const_int64((size - 1) * gap + 1))
        total = relay.maximum(relay.subtract(end, length), nothing)
        small = relay.divide(total, two)
        large = relay.subtract(total, small)
        widths.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    sides = relay.stack([relay.stack(pair, axis=0) for pair in widths], axis=0)
    fill = relay.const(value, ctx.type(x).dtype)
    return call("dyn.nn.pad", x, sides, fill, pad_mode="constant"), "VALID"
