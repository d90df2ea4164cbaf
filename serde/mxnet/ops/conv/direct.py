"""Convolutions. MXNet pads both sides alike, and keeps weights as (out, in/groups, *kernel)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.ops.table import FLOATS, OPS, Export, Import, Value
from serde.relay.ir import Call, Dim, Expr, TensorType, split_padding, tensor_type
from serde.relay.lowering.conv import CONVOLUTIONS, convolution_on_floats, is_on_floats
from serde.relay.op.conv.windows import Convolution

LAYOUTS = {
    (1, None): ("NCW", "OIW"),
    (2, None): ("NCHW", "OIHW"),
    (3, None): ("NCDHW", "OIDHW"),
    (1, "NCW"): ("NCW", "OIW"),
    (1, "NWC"): ("NWC", "OWI"),
    (2, "NCHW"): ("NCHW", "OIHW"),
    (2, "NHWC"): ("NHWC", "OHWI"),
    (3, "NCDHW"): ("NCDHW", "OIDHW"),
    (3, "NDHWC"): ("NDHWC", "ODHWI"),
}
"""Layouts of data and weight by number of spatial axes and MXNet's ``layout``."""

IGNORED = ("workspace", "cudnn_tune", "cudnn_off")
"""Attributes that choose how MXNet computes, not what."""


def layouts(ndim: int, layout: str | None) -> tuple[str, str]:
    """Return the layouts of data and weight."""
    if (ndim, layout) not in LAYOUTS:
        raise Unsupported(f"layout {layout!r} with {ndim} spatial axes")
    return LAYOUTS[ndim, layout]


def per_axis(value: Sequence[int], ndim: int, default: int, name: str) -> tuple[int, ...]:
    """Return one integer a spatial axis."""
    if not value:
        return (default,) * ndim
    if len(value) != ndim:
        raise Unsupported(f"{name}: expected {ndim} values, found {len(value)}")
    return tuple(value)


def add_bias(result: Expr, bias: Expr | None, layout: str) -> Expr:
    """Return a convolution and its bias, if it has one, along the axis of channels."""
    return result if bias is None else relay.nn.bias_add(result, bias, axis=layout.index("C"))


@dataclass(frozen=True, kw_only=True)
class Window:
    """Attributes of what slides over images, one number for each spatial axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...] = ()
    dilate: tuple[int, ...] = ()
    pad: tuple[int, ...] = ()

    @property
    def ndim(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances of the windows, 1 by default."""
        return per_axis(self.stride, self.ndim, 1, "stride")

    @property
    def dilation(self) -> tuple[int, ...]:
        """Distances of the taps, 1 by default."""
        return per_axis(self.dilate, self.ndim, 1, "dilate")

    @property
    def padding(self) -> tuple[int, ...]:
        """What is padded on both sides, 0 by default."""
        return per_axis(self.pad, self.ndim, 0, "pad")


@dataclass(frozen=True, kw_only=True)
class ConvAttributes(Window):
    """Attributes that the convolutions of MXNet share."""

    num_filter: int
    num_group: int = 1
    layout: str | None = None

    def to_relay(self) -> dict[str, AnyValue]:
        """Return the attributes in which Relay's convolutions say the same, layouts aside."""
        padding = self.padding
        return {
            "strides": self.strides,
            "padding": padding + padding,
            "dilation": self.dilation,
            "groups": self.num_group,
        }


def is_computed(node: Call) -> bool:
    """Whether MXNet computes convolutions in the dtype of one."""
    return is_on_floats(node) and tensor_type(node.args[0]).dtype in FLOATS


@OPS.imports("Convolution", "Convolution_v1", ignored=IGNORED)
def import_convolution(
    ctx: Import,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
    no_bias: bool = False,
) -> Expr:
    data_layout, kernel_layout = layouts(conv.ndim, conv.layout)
    result = getattr(relay.nn, f"conv{conv.ndim}d")(
        data, weight, **conv.to_relay(), channels=conv.num_filter, kernel_size=conv.kernel,
        data_layout=data_layout, kernel_layout=kernel_layout,
    )  # fmt: skip
    return add_bias(result, None if no_bias else bias, data_layout)


@OPS.exports(*CONVOLUTIONS, when=is_computed)
def export_conv(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Uneven padding becomes a node of its own."""
    shape = ctx.static_shape(weight)
    data, pad = _pad_evenly(ctx, data, conv.padding)
    return ctx.emit(
        "Convolution", data, weight, bias, kernel=shape[2:], num_filter=shape[0],
        stride=conv.strides, dilate=conv.dilation, pad=pad, num_group=conv.groups,
        no_bias=bias is None,
    )  # fmt: skip


OPS.expands(*CONVOLUTIONS)(convolution_on_floats("float64"))


def _pad_evenly(
    ctx: Export, data: Value, padding: tuple[int, ...]
) -> tuple[Value, tuple[int, ...]]:
    """Return the data and what is padded on both sides; uneven padding goes in front.

    MXNet's Pad takes tensors of rank 4 and 5 only.
    """
    type_ = ctx.type(data)
    before, after = split_padding(padding, type_.rank - 2)
    if before == after:
        return data, before
    spread = type_.rank == 3
    if spread:
        data = ctx.reshape(data, (*type_.shape[:2], 1, type_.shape[2]))
    sides = [0] * (2 * ctx.type(data).rank)
    for axis, pair in enumerate(zip(before, after, strict=True)):
        place = 2 * (ctx.type(data).rank - len(before) + axis)
        sides[place : place + 2] = pair
    padded = ctx.emit("Pad", data, mode="constant", pad_width=sides, constant_value=0.0)
    if spread:
        wide: list[Dim] = [*type_.shape[:2], type_.shape[2] + before[0] + after[0]]
        shape = (*wide[:2], 1, wide[2])
        padded = ctx.reshape(replace(padded, type=TensorType(shape, type_.dtype)), wide)
    return padded, (0,) * len(before)
