"""What the convolutions share. MXNet keeps weights as (out, in/groups, *kernel)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.layout import FLOATS, tensor_type
from serde.relay.ir.expr import Call, Expr
from serde.relay.lowering.conv import is_on_floats

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
    """Return the layouts of data and weight.

    Raises:
        Unsupported: MXNet has no such layout.
    """
    if (ndim, layout) not in LAYOUTS:
        raise Unsupported(f"layout {layout!r} with {ndim} spatial axes")
    return LAYOUTS[ndim, layout]


def per_axis(value: Sequence[int], ndim: int, default: int, name: str) -> tuple[int, ...]:
    """Return one integer a spatial axis.

    Raises:
        Unsupported: There are neither none nor as many as axes.
    """
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
