"""Maximum and mean over sliding windows, and over all of an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.expr import Expr
from serde.relay.ir.precision import lowest
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import at
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Values
from serde.relay.ir.types import TensorType
from serde.relay.op.conv.windows import padding_sides, per_axis
from serde.relay.op.pool.reduction import (
    Window,
    relayout,
    spatial_axes,
    to_out_layout,
    total,
    window_type,
)

__all__ = ["mean_of", "window_of"]


def _relation(rank: int) -> Callable[..., TensorType]:
    def infer(
        data: TensorType, *, count_include_pad: bool = False, **attrs: AnyValue
    ) -> TensorType:
        return window_type(data, rank=rank, **attrs)

    return infer


def window_of(attrs: Mapping[str, AnyValue]) -> Window:
    """Return the window that the attributes of a pooling describe."""
    return Window.of(
        attrs["pool_size"],
        attrs["strides"],
        attrs["dilation"],
        attrs["padding"],
        ceil_mode=attrs["ceil_mode"],
    )


def _max(rank: int, data: Array, attrs: Mapping[str, AnyValue]) -> Array:
    axes = spatial_axes(data.ndim, attrs["layout"], rank)
    result = window_of(attrs).reduce(data, axes, lowest(data.dtype), np.maximum)
    return to_out_layout(result, attrs["layout"], attrs["out_layout"])


def mean_of(rank: int, data: Array, attrs: Mapping[str, AnyValue]) -> Array:
    """Return the mean over windows: of all taps, or of those inside the data.

    Where padding counts, the divisor is the whole window even where rounding up
    lets it reach beyond the padding, as TVM computes it.
    """
    window = window_of(attrs)
    axes = spatial_axes(data.ndim, attrs["layout"], rank)
    result = window.reduce(total(data), axes, 0, np.add)
    divisor: Array = np.ones((1,) * data.ndim, np.int64)
    for index, axis in enumerate(axes):
        shape = [1] * data.ndim
        shape[axis] = -1
        if attrs["count_include_pad"]:
            divisor = divisor * window.size[index]
        else:
            divisor = divisor * window.counts(index, data.shape[axis]).reshape(shape)
    divisor = np.maximum(divisor, 1)
    if data.dtype.kind in "iub":
        quotient = np.abs(result) // divisor * np.sign(result)
    else:
        quotient = result / divisor.astype(result.dtype)
    mean = quotient.astype(data.dtype, copy=False)
    return to_out_layout(mean, attrs["layout"], attrs["out_layout"])


@relay_op(
    "nn.max_pool1d", traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(1),
    samples=[
        sample((2, 3, 9), pool_size=(3,), strides=(2,), padding=(1, 0), ceil_mode=True),
        sample((2, 9, 3), pool_size=(2,), dilation=(2,), layout="NWC", out_layout="NCW"),
    ],
)  # fmt: skip
def max_pool1d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1,),
    dilation: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Array:
    """Maximum over windows along one axis."""
    return _max(1, data, locals())


@builder("nn.max_pool1d")
def build_max_pool1d(
    data: Expr,
    pool_size: AnyValue = (1,),
    strides: AnyValue = (1,),
    dilation: AnyValue = (1,),
    padding: AnyValue = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Build ``nn.max_pool1d``; single numbers hold for all axes and sides."""
    return _build("nn.max_pool1d", 1, locals())


@relay_op(
    "nn.max_pool2d", traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(2),
    samples=[
        sample((1, 2, 9, 8), pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 1, 1)),
        sample((1, 9, 8, 2), pool_size=(2, 3), dilation=(2, 1), layout="NHWC", ceil_mode=True),
        sample(tensor((1, 2, 4, 4), "int8"), pool_size=(2, 2), strides=(2, 2)),
    ],
)  # fmt: skip
def max_pool2d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    dilation: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Array:
    """Maximum over windows along two axes."""
    return _max(2, data, locals())


@builder("nn.max_pool2d")
def build_max_pool2d(
    data: Expr,
    pool_size: AnyValue = (1, 1),
    strides: AnyValue = (1, 1),
    dilation: AnyValue = (1, 1),
    padding: AnyValue = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Build ``nn.max_pool2d``; single numbers hold for all axes and sides."""
    return _build("nn.max_pool2d", 2, locals())


@relay_op(
    "nn.max_pool3d", traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(3),
    samples=[
        sample((1, 2, 4, 5, 6), pool_size=(2, 3, 2), strides=(1, 2, 2), padding=(1, 1, 0)),
        sample((1, 4, 5, 6, 2), pool_size=(2, 2, 2), layout="NDHWC", ceil_mode=True),
    ],
)  # fmt: skip
def max_pool3d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1, 1),
    dilation: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Array:
    """Maximum over windows along three axes."""
    return _max(3, data, locals())


@builder("nn.max_pool3d")
def build_max_pool3d(
    data: Expr,
    pool_size: AnyValue = (1, 1, 1),
    strides: AnyValue = (1, 1, 1),
    dilation: AnyValue = (1, 1, 1),
    padding: AnyValue = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Build ``nn.max_pool3d``; single numbers hold for all axes and sides."""
    return _build("nn.max_pool3d", 3, locals())


@relay_op(
    "nn.avg_pool1d", traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(1),
    samples=[
        sample((2, 3, 9), pool_size=(3,), strides=(2,), padding=(1, 1), ceil_mode=True),
        sample((2, 9, 3), pool_size=(3,), padding=(1, 1), layout="NWC", count_include_pad=True),
    ],
)  # fmt: skip
def avg_pool1d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1,),
    dilation: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """Mean over windows along one axis.

    The divisor counts the taps inside the data, or with `count_include_pad` all of them.
    """
    return mean_of(1, data, locals())


@builder("nn.avg_pool1d")
def build_avg_pool1d(
    data: Expr,
    pool_size: AnyValue = (1,),
    strides: AnyValue = (1,),
    dilation: AnyValue = (1,),
    padding: AnyValue = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Build ``nn.avg_pool1d``; single numbers hold for all axes and sides."""
    return _build("nn.avg_pool1d", 1, locals())


@relay_op(
    "nn.avg_pool2d", traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(2),
    samples=[
        sample((1, 2, 9, 8), pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 1, 1)),
        sample((1, 2, 7, 8), pool_size=(3, 3), strides=(2, 2), padding=(1, 1), ceil_mode=True,
               count_include_pad=True),
        sample((1, 9, 8, 2), pool_size=(2, 3), dilation=(2, 1), layout="NHWC"),
        sample(tensor((1, 2, 4, 4), "int32"), pool_size=(2, 2), strides=(2, 2)),
    ],
)  # fmt: skip
def avg_pool2d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    dilation: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """Mean over windows along two axes.

    The divisor counts the taps inside the data, or with `count_include_pad` all of them.
    """
    return mean_of(2, data, locals())


@builder("nn.avg_pool2d")
def build_avg_pool2d(
    data: Expr,
    pool_size: AnyValue = (1, 1),
    strides: AnyValue = (1, 1),
    dilation: AnyValue = (1, 1),
    padding: AnyValue = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Build ``nn.avg_pool2d``; single numbers hold for all axes and sides."""
    return _build("nn.avg_pool2d", 2, locals())


@relay_op(
    "nn.avg_pool3d", traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(3),
    samples=[
        sample((1, 2, 4, 5, 6), pool_size=(2, 3, 2), strides=(1, 2, 2), padding=(1, 1, 0)),
        sample((1, 4, 5, 6, 2), pool_size=(2, 2, 2), layout="NDHWC", count_include_pad=True),
    ],
)  # fmt: skip
def avg_pool3d(
    data: Array,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1, 1),
    dilation: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """Mean over windows along three axes.

    The divisor counts the taps inside the data, or with `count_include_pad` all of them.
    """
    return mean_of(3, data, locals())


@builder("nn.avg_pool3d")
def build_avg_pool3d(
    data: Expr,
    pool_size: AnyValue = (1, 1, 1),
    strides: AnyValue = (1, 1, 1),
    dilation: AnyValue = (1, 1, 1),
    padding: AnyValue = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Build ``nn.avg_pool3d``; single numbers hold for all axes and sides."""
    return _build("nn.avg_pool3d", 3, locals())


def _build(name: str, rank: int, given: Mapping[str, AnyValue]) -> Expr:
    attrs = {key: value for key, value in given.items() if key != "data"}
    attrs["padding"] = padding_sides(attrs["padding"], rank)
    for key in ("pool_size", "strides", "dilation"):
        attrs[key] = per_axis(attrs[key], rank)
    return call(name, given["data"], **attrs)


def _global_type(data: TensorType, *, layout: str, out_layout: str) -> TensorType:
    axes = spatial_axes(data.rank, layout, 2)
    shape = [1 if axis in axes else dim for axis, dim in enumerate(data.shape)]
    return TensorType(at(shape, relayout(layout, out_layout)), data.dtype)


_GLOBAL_SAMPLES = [
    sample((2, 3, 4, 5)),
    sample((2, 4, 5, 3), layout="NHWC", out_layout="NCHW"),
    sample(tensor((1, 2, 3, 3), "float16")),
]


@relay_op(
    "nn.global_max_pool2d",
    traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_global_type,
    samples=_GLOBAL_SAMPLES,
)
def global_max_pool2d(data: Array, *, layout: str = "NCHW", out_layout: str = "") -> Array:
    """Maximum over height and width, which stay as axes of length 1."""
    axes = spatial_axes(data.ndim, layout, 2)
    return to_out_layout(data.max(axes, keepdims=True), layout, out_layout)


@relay_op(
    "nn.global_avg_pool2d",
    traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_global_type,
    samples=_GLOBAL_SAMPLES,
)
def global_avg_pool2d(data: Array, *, layout: str = "NCHW", out_layout: str = "") -> Array:
    """Mean over height and width, which stay as axes of length 1."""
    axes = spatial_axes(data.ndim, layout, 2)
    size = tuple(data.shape[axis] for axis in axes)
    attrs = {
        "pool_size": size,
        "strides": (1, 1),
        "dilation": (1, 1),
        "padding": (0, 0),
        "layout": layout,
        "out_layout": out_layout,
        "ceil_mode": False,
        "count_include_pad": True,
    }
    return mean_of(2, data, attrs)
