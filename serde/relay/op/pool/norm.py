"""Pooling by a norm: between the mean and the maximum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.precision import widen
from serde.relay.ir.registry import Array, call, relay_op, sample
from serde.relay.ir.shapes import require_float
from serde.relay.ir.traits import Fusion, FusionPattern, Layout
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import windows
from serde.relay.op.pool.reduction import Pooling, spatial_axes, window_type

__all__ = ["LpPool"]


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
