"""What the convolutions share. MXNet keeps weights as (out, in/groups, *kernel)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.layout import FLOATS, arranged, fixed_shape, tensor_type
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.precision import as_dtype
from serde.relay.ir.registry import OpDef
from serde.relay.ir.shapes import is_float
from serde.weights import dtype_name

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

EXACT = 1 << 53
"""Up to this magnitude a float64 holds every integer."""

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


def has_mxnet_form(call: Call) -> bool:
    """Whether a convolution has MXNet's layouts and dtypes."""
    data, attrs = tensor_type(call.args[0]), call.attrs
    wanted, filters = LAYOUTS[data.rank - 2, None]
    is_transposed = call.op.name.endswith("_transpose") if isinstance(call.op, OpDef) else False
    return (
        attrs["data_layout"] == wanted
        and attrs["kernel_layout"] == ("IO" + filters[2:] if is_transposed else filters)
        and attrs["out_layout"] in ("", wanted)
        and data.dtype in FLOATS
        and attrs["out_dtype"] in (None, data.dtype)
    )


def arrange_filters(weight: Expr, layout: str, wanted: str) -> Expr:
    """Return a weight in a layout, its axis of groups joined with the first one."""
    if "G" not in layout:
        return arranged(weight, layout, wanted)
    moved = arranged(weight, layout, "G" + wanted)
    shape = fixed_shape(moved)
    return relay.reshape(moved, (shape[0] * shape[1], *shape[2:]))


def product_dtype(data: Expr, out_dtype: AnyValue) -> str:
    """Return the dtype of a convolution: that of its data where none is named."""
    return tensor_type(data).dtype if out_dtype is None else dtype_name(out_dtype)


def working_dtype(data: Expr, weight: Expr, dtype: str, depth: int) -> str:
    """Return the dtype in which MXNet sums products exactly enough for `dtype`.

    Raises:
        Unsupported: Sums of integers may leave what a float64 holds exactly.
    """
    given = [tensor_type(each).dtype for each in (data, weight)]
    if all(map(is_float, given)):
        return "float64" if "float64" in (*given, dtype) else "float32"
    bounds = [max(-int(info.min), int(info.max)) for info in map(np.iinfo, given)]
    if math.prod(bounds) * depth > EXACT:
        raise Unsupported(f"a convolution of {given[0]} with {given[1]}: MXNet computes in float64")
    return "float64"


def narrow_sums(result: Expr, dtype: str) -> Expr:
    """Return sums in `dtype`; those of integers wrap around, as integers do."""
    if not is_float(dtype):
        result = as_dtype(result, "int64")
    return as_dtype(result, dtype)
