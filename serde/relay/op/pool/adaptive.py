"""Maximum and mean over as many parts of each axis as the result has places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Expr, TensorType, builder, call, relay_op, sample
from serde.relay.ir.shapes import at
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Trait, Values
from serde.relay.ir.work import times
from serde.relay.lowering.pool import decompose_adaptive_pool
from serde.relay.op.conv.windows import SPATIAL
from serde.relay.op.pool.reduction import relayout, spatial_axes, to_out_layout, total


def _adaptive_type(
    data: TensorType, *, rank: int, output_size: tuple[int, ...], layout: str, out_layout: str
) -> TensorType:
    axes = spatial_axes(data.rank, layout, rank)
    shape = list(data.shape)
    for axis, length in zip(axes, _sizes(output_size, rank), strict=False):
        shape[axis] = length
    return TensorType(at(shape, relayout(layout, out_layout)), data.dtype)


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
    data: Array, axes: Sequence[int], sizes: Sequence[int], reduce: Callable[[Array, int], Array]
) -> Array:
    for axis, count in zip(axes, sizes, strict=False):
        lead = (slice(None),) * axis
        parts = _parts(data.shape[axis], count)
        data = np.stack([reduce(data[(*lead, part)], axis) for part in parts], axis)
    return data


def _max(data: Array, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    return _pool(data, axes, sizes, lambda part, axis: part.max(axis))


def _mean(data: Array, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    def add(part: Array, axis: int) -> Array:
        return part.sum(axis)

    if data.dtype.kind in "iub":
        sums = _pool(total(data), axes, sizes, add)
        counts = _pool(np.ones(data.shape, np.int64), axes, sizes, add)
        return (np.abs(sums) // counts * np.sign(sums)).astype(data.dtype)
    means = _pool(total(data), axes, sizes, lambda part, axis: part.mean(axis))
    return means.astype(data.dtype, copy=False)


_SAMPLES = {
    1: [sample((2, 3, 7), output_size=(3,)), sample((2, 7, 3), layout="NWC")],
    2: [
        sample((2, 3, 7, 8), output_size=(3, 2)),
        sample((2, 7, 3, 5), output_size=(4,), layout="NHWC"),
        sample((1, 2, 3, 4), output_size=(5, 6)),
    ],
    3: [
        sample((1, 2, 5, 6, 7), output_size=(2, 3, 4)),
        sample((1, 5, 6, 7, 2), output_size=(1, 1, 1), layout="NDHWC", out_layout="NCDHW"),
    ],
}


def _declare(
    name: Literal["avg", "max"], rank: int, reduce: Callable[..., Array], *traits: Trait
) -> None:
    """Declare the adaptive pooling `name` over `rank` spatial axes."""

    @relay_op(
        f"nn.adaptive_{name}_pool{rank}d",
        traits=(times(32), *traits, Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
        infer=partial(_adaptive_type, rank=rank),
        samples=_SAMPLES[rank],
        decompose=decompose_adaptive_pool(name, rank),
        arguments=Arguments(convert={"output_size": lambda size: () if size is None else size}),
    )
    def adaptive_pool(
        data: Array,
        *,
        output_size: tuple[int, ...] = (),
        layout: str = "NC" + SPATIAL[rank],
        out_layout: str = "",
    ) -> Array:
        """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis.

        The reduction is the maximum or the mean, and n is the `output_size` of the axis. Without
        an `output_size` every element is a part.
        """
        axes = spatial_axes(data.ndim, layout, rank)
        return to_out_layout(reduce(data, axes, _sizes(output_size, rank)), layout, out_layout)


for _rank in (1, 2, 3):
    _declare("max", _rank, _max, Values(0))
    _declare("avg", _rank, _mean)


def _build_global(name: str, rank: int) -> None:
    @builder(f"nn.global_{name}_pool{rank}d")
    def build(data: Expr, layout: str = "NC" + SPATIAL[rank], out_layout: str = "") -> Expr:
        """Build the adaptive pooling of one part of each axis, as TVM has it for this rank."""
        attrs: dict[str, AnyValue] = {"output_size": (1,) * rank, "layout": layout}
        return call(f"nn.adaptive_{name}_pool{rank}d", data, out_layout=out_layout, **attrs)


for _rank in (1, 3):
    _build_global("max", _rank)
    _build_global("avg", _rank)
