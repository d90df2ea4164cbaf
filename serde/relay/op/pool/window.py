"""Maximum, mean and norms over sliding windows, and over all of an image."""

from __future__ import annotations

import math
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass, replace
from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, TensorType, const, lowest, tensor_type, widen
from serde.relay.ir.registry import Arguments, Array, Sample, call, relay_op, sample, tensor
from serde.relay.ir.shapes import at, require_float
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Values
from serde.relay.ir.work import windows
from serde.relay.lowering.pool import decompose_global_pool
from serde.relay.op.conv.windows import window_arguments
from serde.relay.op.pool.reduction import (
    Pooling,
    relayout,
    spatial_axes,
    to_out_layout,
    total,
    window_type,
)

__all__ = ["LpPool", "mean_of"]


def _pool_type(data: TensorType, *, rank: int, pool: Pooling, **_: AnyValue) -> TensorType:
    return window_type(data, rank, pool)


def mean_of(rank: int, data: Array, pool: Pooling, *, count_include_pad: bool) -> Array:
    """Return the mean over windows: of all taps, or of those inside the data.

    Where padding counts, the divisor is the whole window even where rounding up
    lets it reach beyond the padding, as TVM computes it.
    """
    axes, window = spatial_axes(data.ndim, pool.layout, rank), pool.window
    result = window.reduce(total(data), axes, 0, np.add)
    divisor: Array = np.ones((1,) * data.ndim, np.int64)
    for index, axis in enumerate(axes):
        shape = [1] * data.ndim
        shape[axis] = -1
        if count_include_pad:
            divisor = divisor * window.size[index]
        else:
            divisor = divisor * window.counts(index, data.shape[axis]).reshape(shape)
    divisor = np.maximum(divisor, 1)
    if data.dtype.kind in "iub":
        quotient = np.abs(result) // divisor * np.sign(result)
    else:
        quotient = result / divisor.astype(result.dtype)
    result = quotient.astype(data.dtype, copy=False)
    return to_out_layout(result, pool.layout, pool.out_layout)


_POOL = (Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE))


def _arguments(rank: int) -> Arguments:
    """As in TVM a window of one element is the builders' default."""
    windows = window_arguments(rank, "pool_size", "strides", "dilation")
    return replace(windows, defaults={"pool_size": (1,) * rank})


def _declare_max_pool(rank: int, *samples: Sample) -> None:
    """Declare the maximum pooling over `rank` spatial axes."""
    usual = Pooling.usual(rank)

    @relay_op(
        f"nn.max_pool{rank}d",
        traits=(windows("pool_size"), Values(0), *_POOL),
        infer=partial(_pool_type, rank=rank),
        samples=samples,
        arguments=_arguments(rank),
    )
    def max_pool(data: Array, *, pool: Pooling = usual) -> Array:
        """Maximum over windows: ``y[i] = max_k x[i * stride + k * dilation - padding]``."""
        axes = spatial_axes(data.ndim, pool.layout, rank)
        result = pool.window.reduce(data, axes, lowest(data.dtype), np.maximum)
        return to_out_layout(result, pool.layout, pool.out_layout)


_declare_max_pool(
    1,
    sample((2, 3, 9), pool_size=(3,), strides=(2,), padding=(1, 0), ceil_mode=True),
    sample((2, 9, 3), pool_size=(2,), dilation=(2,), layout="NWC", out_layout="NCW"),
)
_declare_max_pool(
    2,
    sample((1, 2, 9, 8), pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 1, 1)),
    sample((1, 9, 8, 2), pool_size=(2, 3), dilation=(2, 1), layout="NHWC", ceil_mode=True),
    sample(tensor((1, 2, 4, 4), "int8"), pool_size=(2, 2), strides=(2, 2)),
    sample((1, 2, 3, 2), pool_size=(5, 4), strides=(5, 3), ceil_mode=True),
)
_declare_max_pool(
    3,
    sample((1, 2, 4, 5, 6), pool_size=(2, 3, 2), strides=(1, 2, 2), padding=(1, 1, 0)),
    sample((1, 4, 5, 6, 2), pool_size=(2, 2, 2), layout="NDHWC", ceil_mode=True),
)


def _declare_avg_pool(rank: int, *samples: Sample) -> None:
    """Declare the average pooling over `rank` spatial axes."""
    usual = Pooling.usual(rank)

    @relay_op(
        f"nn.avg_pool{rank}d",
        traits=(windows("pool_size"), *_POOL),
        infer=partial(_pool_type, rank=rank),
        samples=samples,
        arguments=_arguments(rank),
    )
    def avg_pool(data: Array, *, pool: Pooling = usual, count_include_pad: bool = False) -> Array:
        """Mean over windows: ``y[i] = sum_k x[i * stride + k * dilation - padding] / n``.

        The divisor n counts the taps inside the data, or with `count_include_pad` all of them.
        """
        return mean_of(rank, data, pool, count_include_pad=count_include_pad)


_declare_avg_pool(
    1,
    sample((2, 3, 9), pool_size=(3,), strides=(2,), padding=(1, 1), ceil_mode=True),
    sample((2, 9, 3), pool_size=(3,), padding=(1, 1), layout="NWC", count_include_pad=True),
)
_declare_avg_pool(
    2,
    sample((1, 2, 9, 8), pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 1, 1)),
    sample(
        (1, 2, 7, 8),
        pool_size=(3, 3),
        strides=(2, 2),
        padding=(1, 1),
        ceil_mode=True,
        count_include_pad=True,
    ),
    sample((1, 9, 8, 2), pool_size=(2, 3), dilation=(2, 1), layout="NHWC"),
    sample(tensor((1, 2, 4, 4), "int32"), pool_size=(2, 2), strides=(2, 2)),
    sample((1, 2, 3, 2), pool_size=(5, 4), strides=(5, 3), ceil_mode=True),
)
_declare_avg_pool(
    3,
    sample((1, 2, 4, 5, 6), pool_size=(2, 3, 2), strides=(1, 2, 2), padding=(1, 1, 0)),
    sample((1, 4, 5, 6, 2), pool_size=(2, 2, 2), layout="NDHWC", count_include_pad=True),
)


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
    decompose=decompose_global_pool("max"),
)
def global_max_pool2d(data: Array, *, layout: str = "NCHW", out_layout: str = "") -> Array:
    """``y = max(x)`` over height and width, which stay as axes of length 1."""
    axes = spatial_axes(data.ndim, layout, 2)
    return to_out_layout(data.max(axes, keepdims=True), layout, out_layout)


@relay_op(
    "nn.global_avg_pool2d",
    traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_global_type,
    samples=_GLOBAL_SAMPLES,
    decompose=decompose_global_pool("avg"),
)
def global_avg_pool2d(data: Array, *, layout: str = "NCHW", out_layout: str = "") -> Array:
    """``y = mean(x)`` over height and width, which stay as axes of length 1."""
    axes = spatial_axes(data.ndim, layout, 2)
    size = tuple(data.shape[axis] for axis in axes)
    pool = replace(Pooling.usual(2), pool_size=size, layout=layout, out_layout=out_layout)
    return mean_of(2, data, pool, count_include_pad=True)


@dataclass(frozen=True, kw_only=True)
class LpPool:
    """Attributes of ``serde.lp_pool``."""

    p: int = 2
    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1,)
    dilation: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0,)
    layout: str = "NCHW"
    ceil_mode: bool = False

    @property
    def pooling(self) -> Pooling:
        """Windows with a stride and a dilation for each axis."""
        rank = len(self.pool_size)
        return Pooling(
            pool_size=self.pool_size,
            strides=_repeat_per_axis(self.strides, rank),
            dilation=_repeat_per_axis(self.dilation, rank),
            padding=self.padding,
            layout=self.layout,
            ceil_mode=self.ceil_mode,
        )


def _lp_pool_type(data: TensorType, *, pool: LpPool) -> TensorType:
    """Lengths are those of an average pooling."""
    require_float(data)
    if pool.p < 1:
        raise TypeInferenceError(f"p: expected a positive number, found {pool.p}")
    rank = len(pool.pool_size)
    if rank not in (1, 2, 3):
        raise TypeInferenceError(
            f"pool_size: expected 1 to 3 numbers, found {list(pool.pool_size)}"
        )
    return window_type(data, rank, pool.pooling)


def _repeat_per_axis(values: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return values * rank if len(values) == 1 else values


def _decompose_lp_pool(data: Expr, *, pool: LpPool) -> Expr:
    """The mean of the powers, padding counted, times the taps of a window is their sum."""
    dtype, rank = tensor_type(data).dtype, len(pool.pool_size)
    powers = call("abs", data)
    if pool.p > 1:
        powers = call("power", powers, const(pool.p, dtype))
    means = call(f"nn.avg_pool{rank}d", powers, **vars(pool.pooling), count_include_pad=True)
    sums = call("multiply", means, const(math.prod(pool.pool_size), dtype))
    return sums if pool.p == 1 else call("power", sums, const(1 / pool.p, dtype))


@relay_op(
    "serde.lp_pool",
    traits=(windows("pool_size", factor=16), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_lp_pool_type,
    decompose=_decompose_lp_pool,
    samples=[
        sample((1, 2, 7, 8), pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 1, 1)),
        sample((1, 7, 8, 2), p=3, pool_size=(2, 2), layout="NHWC", ceil_mode=True, strides=(2,)),
        sample((1, 2, 9), p=1, pool_size=(3,), dilation=(2,), layout="NCW"),
        sample((1, 2, 4, 5, 6), pool_size=(2, 2, 2), layout="NCDHW"),
    ],
)
def lp_pool(data: Array, *, pool: LpPool) -> Array:
    """``y[i] = sum_k(abs(x[i * stride + k * dilation - padding]) ** p) ** (1 / p)``.

    Padding counts as zeros. `pool_size` has 1 to 3 spatial lengths, `layout` as many;
    one stride or dilation holds for all axes. As LpPool of ONNX has it.
    """
    rank = len(pool.pool_size)
    powers = np.abs(widen(data)) ** pool.p
    sums = pool.pooling.window.reduce(powers, spatial_axes(data.ndim, pool.layout, rank), 0, np.add)
    return (sums ** (1 / pool.p)).astype(data.dtype, copy=False)
