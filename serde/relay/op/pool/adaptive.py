"""Maximum and mean over as many parts of each axis as the result has places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import at
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Values
from serde.relay.ir.types import TensorType
from serde.relay.op.pool.reduction import relayout, spatial_axes, to_out_layout, total

__all__: list[str] = []


def _relation(rank: int) -> Callable[..., TensorType]:
    def infer(
        data: TensorType, *, output_size: tuple[int, ...], layout: str, out_layout: str
    ) -> TensorType:
        axes = spatial_axes(data.rank, layout, rank)
        shape = list(data.shape)
        for axis, length in zip(axes, _sizes(output_size, rank), strict=False):
            shape[axis] = length
        return TensorType(at(shape, relayout(layout, out_layout)), data.dtype)

    return infer


def _sizes(output_size: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return a length for each spatial axis; one given holds for all, none keeps all."""
    sizes = output_size * rank if len(output_size) == 1 else output_size
    if len(sizes) not in (0, rank) or any(size < 1 for size in sizes):
        raise TypeInferenceError(
            f"output_size: expected none, one or {rank} positive numbers, found {list(output_size)}"
        )
    return sizes


def _parts(length: int, count: int) -> list[slice]:
    """Return the part of an axis behind each place: it grows outward to whole elements."""
    return [slice(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def _pool(
    rank: int,
    data: Array,
    reduce: Callable[[Array, int], Array],
    attrs: Mapping[str, AnyValue],
) -> Array:
    axes = spatial_axes(data.ndim, attrs["layout"], rank)
    for axis, count in zip(axes, _sizes(attrs["output_size"], rank), strict=False):
        lead = (slice(None),) * axis
        parts = _parts(data.shape[axis], count)
        data = np.stack([reduce(data[(*lead, part)], axis) for part in parts], axis)
    return to_out_layout(data, attrs["layout"], attrs["out_layout"])


def _max(rank: int, data: Array, attrs: Mapping[str, AnyValue]) -> Array:
    return _pool(rank, data, lambda part, axis: part.max(axis), attrs)


def _mean(rank: int, data: Array, attrs: Mapping[str, AnyValue]) -> Array:
    if data.dtype.kind in "iub":
        sums = _pool(rank, total(data), lambda part, axis: part.sum(axis), attrs)
        counts = _pool(
            rank, np.ones(data.shape, np.int64), lambda part, axis: part.sum(axis), attrs
        )
        return (np.abs(sums) // counts * np.sign(sums)).astype(data.dtype)
    means = _pool(rank, total(data), lambda part, axis: part.mean(axis), attrs)
    return means.astype(data.dtype, copy=False)


@relay_op(
    "nn.adaptive_max_pool1d",
    traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(1),
    samples=[sample((2, 3, 7), output_size=(3,)), sample((2, 7, 3), layout="NWC")],
)
def adaptive_max_pool1d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCW",
    out_layout: str = "",
) -> Array:
    """Maximum over the part of the data behind each place; no `output_size` keeps the size."""
    return _max(1, data, locals())


@builder("nn.adaptive_max_pool1d")
def build_adaptive_max_pool1d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_max_pool1d``."""
    return _build("nn.adaptive_max_pool1d", data, output_size, layout, out_layout)


@relay_op(
    "nn.adaptive_max_pool2d",
    traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(2),
    samples=[
        sample((2, 3, 7, 8), output_size=(3, 2)),
        sample((2, 7, 3, 5), output_size=(4,), layout="NHWC"),
        sample((1, 2, 3, 4), output_size=(5, 6)),
    ],
)
def adaptive_max_pool2d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCHW",
    out_layout: str = "",
) -> Array:
    """Maximum over the part of the data behind each place; no `output_size` keeps the size."""
    return _max(2, data, locals())


@builder("nn.adaptive_max_pool2d")
def build_adaptive_max_pool2d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCHW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_max_pool2d``."""
    return _build("nn.adaptive_max_pool2d", data, output_size, layout, out_layout)


@relay_op(
    "nn.adaptive_max_pool3d",
    traits=(Values(0), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(3),
    samples=[
        sample((1, 2, 5, 6, 7), output_size=(2, 3, 4)),
        sample((1, 5, 6, 7, 2), output_size=(1, 1, 1), layout="NDHWC", out_layout="NCDHW"),
    ],
)
def adaptive_max_pool3d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCDHW",
    out_layout: str = "",
) -> Array:
    """Maximum over the part of the data behind each place; no `output_size` keeps the size."""
    return _max(3, data, locals())


@builder("nn.adaptive_max_pool3d")
def build_adaptive_max_pool3d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCDHW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_max_pool3d``."""
    return _build("nn.adaptive_max_pool3d", data, output_size, layout, out_layout)


@relay_op(
    "nn.adaptive_avg_pool1d",
    traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(1),
    samples=[sample((2, 3, 7), output_size=(3,)), sample((2, 7, 3), layout="NWC")],
)
def adaptive_avg_pool1d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCW",
    out_layout: str = "",
) -> Array:
    """Mean over the part of the data behind each place; no `output_size` keeps the size."""
    return _mean(1, data, locals())


@builder("nn.adaptive_avg_pool1d")
def build_adaptive_avg_pool1d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_avg_pool1d``."""
    return _build("nn.adaptive_avg_pool1d", data, output_size, layout, out_layout)


@relay_op(
    "nn.adaptive_avg_pool2d",
    traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(2),
    samples=[
        sample((2, 3, 7, 8), output_size=(3, 2)),
        sample((2, 7, 3, 5), output_size=(4,), layout="NHWC"),
        sample((1, 2, 3, 4), output_size=(5, 6)),
    ],
)
def adaptive_avg_pool2d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCHW",
    out_layout: str = "",
) -> Array:
    """Mean over the part of the data behind each place; no `output_size` keeps the size."""
    return _mean(2, data, locals())


@builder("nn.adaptive_avg_pool2d")
def build_adaptive_avg_pool2d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCHW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_avg_pool2d``."""
    return _build("nn.adaptive_avg_pool2d", data, output_size, layout, out_layout)


@relay_op(
    "nn.adaptive_avg_pool3d",
    traits=(Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_relation(3),
    samples=[
        sample((1, 2, 5, 6, 7), output_size=(2, 3, 4)),
        sample((1, 5, 6, 7, 2), output_size=(1, 1, 1), layout="NDHWC", out_layout="NCDHW"),
    ],
)
def adaptive_avg_pool3d(
    data: Array,
    *,
    output_size: tuple[int, ...] = (),
    layout: str = "NCDHW",
    out_layout: str = "",
) -> Array:
    """Mean over the part of the data behind each place; no `output_size` keeps the size."""
    return _mean(3, data, locals())


@builder("nn.adaptive_avg_pool3d")
def build_adaptive_avg_pool3d(
    data: Expr, output_size: AnyValue = None, layout: str = "NCDHW", out_layout: str = ""
) -> Expr:
    """Build ``nn.adaptive_avg_pool3d``."""
    return _build("nn.adaptive_avg_pool3d", data, output_size, layout, out_layout)


def _build(name: str, data: Expr, output_size: AnyValue, layout: str, out_layout: str) -> Expr:
    size = () if output_size is None else output_size
    return call(name, data, output_size=size, layout=layout, out_layout=out_layout)
