"""Position-sensitive pooling: each bin of a region reads channels of its own (Dai et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, call, const, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Discontinuous, Regions
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.rotated import between

LEAST = 0.1
"""The least width and height of a region, in elements."""


@dataclass(frozen=True, kw_only=True)
class SensitivePooling:
    """Attributes of ``serde.psroi_pool``."""

    output_dim: int
    pooled_size: int
    group_size: int
    spatial_scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class DeformablePooling:
    """Attributes of ``serde.deformable_psroi_pool``."""

    output_dim: int
    pooled_size: int
    group_size: int
    part_size: int
    sample_per_part: int = 1
    spatial_scale: float = 1.0
    trans_std: float = 0.0


def _pooled_type(
    data: TensorType, rois: TensorType, pool: SensitivePooling | DeformablePooling
) -> TensorType:
    require_float(data)
    require_same_dtype(data, rois)
    output_dim, pooled_size, group_size = pool.output_dim, pool.pooled_size, pool.group_size
    if data.rank != 4 or rois.rank != 2 or min(output_dim, pooled_size, group_size) < 1:
        raise TypeInferenceError(
            f"expected images and regions, and lengths that are positive, found {data!r}, "
            f"{rois!r}, {output_dim}, {pooled_size} and {group_size}"
        )
    join_dim(data.shape[1], output_dim * group_size * group_size)
    join_dim(rois.shape[1], 5)
    return TensorType((rois.shape[0], output_dim, pooled_size, pooled_size), data.dtype)


def _psroi_type(data: TensorType, rois: TensorType, *, pool: SensitivePooling) -> TensorType:
    return _pooled_type(data, rois, pool)


class _Graph:
    """Regions as expressions, each an axis of images.

    Args:
        data: The images.
        rois: Their regions.
        shift: What is subtracted from the scaled edges.
    """

    def __init__(self, data: Expr, rois: Expr, scale: float, shift: float) -> None:
        shape = data.type.shape if isinstance(data.type, TensorType) else ()
        lengths = [length for length in shape[1:] if isinstance(length, int)]
        if len(lengths) < 3 or not isinstance(rois.type, TensorType):
            raise TypeInferenceError(f"needs a fixed shape to read, found {data.type!r}")
        self.space = lengths[1:]
        self.dtype = rois.type.dtype
        self._data, self._rois = data, rois
        edges = call("round", self._columns(1, 5))
        ends = [(2, 4), (1, 3)]
        self.starts, self.spans = [], []
        for low, high in ends:
            first, last = (
                call("strided_slice", edges, begin=[i - 1], end=[i], strides=[1], axes=[1])
                for i in (low, high)
            )
            start, end = (
                call("multiply", each, self.number(scale))
                for each in (first, call("add", last, self.number(1)))
            )
            span = call("maximum", call("subtract", end, start), self.number(LEAST))
            if shift:
                start = call("subtract", start, self.number(shift))
            self.starts.append(start)
            self.spans.append(span)

    def number(self, value: float | Array) -> Expr:
        return const(np.asarray(value), self.dtype)

    def _columns(self, begin: int, end: int) -> Expr:
        return call("strided_slice", self._rois, begin=[begin], end=[end], strides=[1], axes=[1])

    def images(self, split: Sequence[int], pooled: int, group: int) -> Expr:
        """Return ``(n, *split, pooled, pooled, H, W)``: of each region and bin its channels."""
        number = call("cast", call("squeeze", self._columns(0, 1), axis=(1,)), dtype="int32")
        chosen = call("take", self._data, number, axis=0, mode="fast")
        parts = call("reshape", chosen, newshape=(-1, *split, group, group, *self.space))
        if group != pooled:
            places = const(np.arange(pooled) * group // pooled, "int32")
            for axis in (1 + len(split), 2 + len(split)):
                parts = call("take", parts, places, axis=axis, mode="fast")
        return parts


def _decompose_psroi(data: Expr, rois: Expr, *, pool: SensitivePooling) -> Expr:
    """Sums over bins are products with what of each axis is in a bin."""
    graph = _Graph(data, rois, pool.spatial_scale, 0.0)
    total = graph.images((pool.output_dim,), pool.pooled_size, pool.group_size)
    counts = []
    for axis, length in enumerate(graph.space):
        size = call("divide", graph.spans[axis], graph.number(pool.pooled_size))
        edges = []
        for name, first in (("floor", 0), ("ceil", 1)):
            steps = graph.number(np.arange(first, first + pool.pooled_size)[None])
            edge = call(name, call("add", call("multiply", size, steps), graph.starts[axis]))
            edges.append(call("expand_dims", call("clip", edge, a_min=0.0, a_max=length), axis=2))
        at = graph.number(np.arange(length).reshape(1, 1, -1))
        inside = call(
            "logical_and", call("greater_equal", at, edges[0]), call("less", at, edges[1])
        )
        within = call("cast", inside, dtype=graph.dtype)
        place = (pool.pooled_size, 1, 1, length) if axis == 0 else (1, pool.pooled_size, length, 1)
        factor = call("reshape", within, newshape=(-1, 1, *place))
        pair = (factor, total) if axis == 0 else (total, factor)
        total = call("serde.matmul", *pair)
        count = call("sum", within, axis=(2,))
        form = (-1, 1, pool.pooled_size, 1) if axis == 0 else (-1, 1, 1, pool.pooled_size)
        counts.append(call("reshape", count, newshape=form))
    area = call("maximum", call("multiply", *counts), graph.number(1))
    return call("divide", call("squeeze", total, axis=(4, 5)), area)


_ROIS = np.array(
    [[0, 1.5, 2.25, 9.0, 7.5], [1, 0, 0, 4, 3], [1, 6.5, 1.0, 6.75, 12.5], [0, -3, 8.5, 2.5, 19],
     [0, 30, 30, 40, 40]], np.float32)  # fmt: skip


def _edges(roi: Array, scale: float) -> Array:
    """Return left, top, right and bottom, in the precision of the region."""
    whole = np.sign(roi[1:]) * np.floor(np.abs(roi[1:]) + roi.dtype.type(0.5))
    edges: Array = (whole + np.array([0, 0, 1, 1], roi.dtype)) * roi.dtype.type(scale)
    return edges


@relay_op(
    "serde.psroi_pool", traits=(BY_VALUES, Discontinuous, Regions),
    infer=_psroi_type,
    decompose=_decompose_psroi,
    samples=[
        sample((2, 8, 12, 10), _ROIS, output_dim=2, pooled_size=2, group_size=2),
        sample((2, 12, 12, 10), _ROIS, output_dim=3, pooled_size=3, group_size=2,
               spatial_scale=0.5),
    ],
)  # fmt: skip
def psroi_pool(data: Array, rois: Array, *, pool: SensitivePooling) -> Array:
    """The mean of the elements in each bin of each region, 0 in an empty one.

    A region is (image, left, top, right, bottom); its edges are rounded, half away from zero,
    belong to it, and are then scaled. Of each output channel the images have ``group_size`` times
    ``group_size``; a bin reads that of its part of the region.
    """
    height, width = data.shape[2:]
    size, groups = pool.pooled_size, pool.group_size
    group = np.arange(size) * groups // size
    out = np.zeros((len(rois), pool.output_dim, size, size))
    for roi, pooled in zip(rois, out, strict=True):
        left, top, right, bottom = _edges(roi, pool.spatial_scale)
        image = data[int(roi[0])].reshape(pool.output_dim, groups, groups, height, width)
        rows = _bins(top, bottom, size, height)
        columns = _bins(left, right, size, width)
        for i, j in np.ndindex(size, size):
            part = image[:, group[i], group[j], rows[i], columns[j]].astype(np.float64)
            if part.size:
                pooled[:, i, j] = part.mean((1, 2))
    return out.astype(data.dtype)


def _bins(
    start: np.floating[AnyValue], end: np.floating[AnyValue], count: int, length: int
) -> list[slice]:
    """Return the elements of each bin; edges have the precision of the region."""
    dtype = start.dtype.type
    edges = np.arange(count + 1).astype(dtype) * (np.maximum(end - start, dtype(LEAST)) / count)
    low = np.clip(np.floor(edges[:-1] + start), 0, length).astype(int)
    high = np.clip(np.ceil(edges[1:] + start), 0, length).astype(int)
    return [slice(a, b) for a, b in zip(low, high, strict=True)]


def _deformable_type(
    data: TensorType, rois: TensorType, trans: TensorType | None, *, pool: DeformablePooling
) -> TensorType:
    """Shifts are two for each class, which output channels share evenly."""
    if min(pool.part_size, pool.sample_per_part) < 1:
        raise TypeInferenceError(
            f"no parts or samples: {pool.part_size} and {pool.sample_per_part}"
        )
    if trans is not None:
        if trans.rank != 4:
            raise TypeInferenceError(f"expected shifts of each class and part, found {trans!r}")
        shifts = trans.shape[1]
        if isinstance(shifts, int) and (
            shifts < 2 or shifts % 2 or pool.output_dim % (shifts // 2)
        ):
            raise TypeInferenceError(f"{pool.output_dim} channels and shifts {trans!r}")
        join_dim(trans.shape[0], rois.shape[0])
        for axis in (2, 3):
            join_dim(trans.shape[axis], pool.part_size)
    return _pooled_type(data, rois, pool)


def _decompose_deformable(
    data: Expr, rois: Expr, trans: Expr | None, *, pool: DeformablePooling
) -> Expr:
    """Each bin of each class is an image of its own, read by a grid."""
    graph = _Graph(data, rois, pool.spatial_scale, 0.5)
    pooled, samples, classes = pool.pooled_size, pool.sample_per_part, 1
    if trans is not None:
        shifts_of = trans.type.shape[1] if isinstance(trans.type, TensorType) else None
        if not isinstance(shifts_of, int):
            raise TypeInferenceError(f"needs a fixed number of classes, found {trans.type!r}")
        classes = shifts_of // 2
    each = pool.output_dim // classes
    shifts = (
        None if trans is None else _shifts(trans, classes, pooled, pool.part_size, pool.trans_std)
    )
    places, near = [], []
    for axis, length in enumerate(graph.space):
        place = _samples(graph, axis, pooled, samples, shifts)
        near.append(call("greater_equal", place, graph.number(-0.5)))
        near.append(call("less_equal", place, graph.number(length - 0.5)))
        held = call("clip", place, a_min=0.0, a_max=length - 1.0)
        moved = call("multiply", call("add", held, graph.number(0.5)), graph.number(2 / length))
        places.append(call("subtract", moved, graph.number(1)))
    inside = call("logical_and", *(call("logical_and", *near[i : i + 2]) for i in (0, 2)))
    shown = call("cast", inside, dtype=graph.dtype)
    whole = [call("broadcast_to_like", place, shown) for place in places[::-1]]
    images = graph.images((classes, each), pooled, pool.group_size)
    images = call("transpose", images, axes=(0, 1, 3, 4, 2, 5, 6))
    grid = call("reshape", call("stack", whole, axis=4), newshape=(-1, 2, samples, samples))
    read = call(
        "image.grid_sample",
        call("reshape", images, newshape=(-1, each, *graph.space)),
        grid,
        align_corners=False,
    )
    bins = (-1, classes, pooled, pooled)
    found = call("reshape", read, newshape=(*bins, each, samples * samples))
    shown = call("reshape", shown, newshape=(*bins, 1, samples * samples))
    total = call("sum", call("multiply", found, shown), axis=(5,))
    count = call("maximum", call("sum", shown, axis=(5,)), graph.number(1))
    mean = call("transpose", call("divide", total, count), axes=(0, 1, 4, 2, 3))
    return call("reshape", mean, newshape=(-1, pool.output_dim, pooled, pooled))


def _samples(
    graph: _Graph, axis: int, pooled: int, samples: int, shifts: list[Expr] | None
) -> Expr:
    """Return where samples are along an axis: (regions, classes, bins twice, samples twice)."""
    steps = np.arange(pooled)[:, None] + np.arange(samples) / samples
    form = (1, 1, pooled, 1, samples, 1) if axis == 0 else (1, 1, 1, pooled, 1, samples)
    start, span = (
        call("reshape", x[axis], newshape=(-1, 1, 1, 1, 1, 1)) for x in (graph.starts, graph.spans)
    )
    place = call("multiply", span, graph.number((steps / pooled).reshape(form)))
    place = call("add", place, start)
    return place if shifts is None else call("add", place, call("multiply", shifts[axis], span))


def _shifts(trans: Expr, classes: int, pooled: int, parts: int, factor: float) -> list[Expr]:
    """Return how far each bin of each class moves down and to the right, in parts of a region."""
    dtype = trans.type.dtype if isinstance(trans.type, TensorType) else "float32"
    if parts != pooled:
        places = const(np.arange(pooled) * parts // pooled, "int32")
        for axis in (2, 3):
            trans = call("take", trans, places, axis=axis, mode="fast")
    scaled = call("multiply", trans, const(factor, dtype))
    apart = call("reshape", scaled, newshape=(-1, classes, 2, pooled, pooled, 1, 1))
    return [call("take", apart, const(i, "int32"), axis=2, mode="fast") for i in (1, 0)]


@relay_op(
    "serde.deformable_psroi_pool", traits=(BY_VALUES, Discontinuous, Regions),
    infer=_deformable_type,
    decompose=_decompose_deformable,
    samples=[
        sample((2, 8, 12, 10), _ROIS, None, output_dim=2, pooled_size=2, group_size=2,
               part_size=2, sample_per_part=2),
        sample((2, 16, 12, 10), _ROIS, tensor((5, 4, 2, 2)), output_dim=4, pooled_size=3,
               group_size=2, part_size=2, sample_per_part=2, spatial_scale=0.5, trans_std=0.2),
    ],
)  # fmt: skip
def deformable_psroi_pool(
    data: Array, rois: Array, trans: Array | None, *, pool: DeformablePooling
) -> Array:
    """The mean of the bilinear samples in each bin of each region, the bins being moved.

    Regions and channels are those of ``serde.psroi_pool``, half an element less. `trans` has for
    each class, which output channels share evenly, and each part of the region two shifts, right
    and down; `trans_std` times these are parts of its width and height. A sample more than half
    an element outside does not count.
    """
    height, width = data.shape[2:]
    classes = 1 if trans is None else trans.shape[1] // 2
    each, steps = pool.output_dim // classes, np.arange(pool.sample_per_part) / pool.sample_per_part
    size, groups = pool.pooled_size, pool.group_size
    group = np.arange(size) * groups // size
    part = np.arange(size) * pool.part_size // size
    out = np.zeros((len(rois), pool.output_dim, size, size))
    for index, (roi, pooled) in enumerate(zip(rois, out, strict=True)):
        left, top, right, bottom = _edges(roi, pool.spatial_scale).astype(np.float64) - 0.5
        high, wide = max(bottom - top, LEAST), max(right - left, LEAST)
        image = data[int(roi[0])].reshape(pool.output_dim, groups, groups, height, width)
        for class_, i, j in np.ndindex(classes, size, size):
            moved = np.zeros(2)
            if trans is not None:
                moved = trans[index, 2 * class_ : 2 * class_ + 2, part[i], part[j]] * pool.trans_std
            y = ((i + steps) / size + moved[1]) * high + top
            x = ((j + steps) / size + moved[0]) * wide + left
            y, x = np.broadcast_arrays(y[:, None], x)
            near = (y >= -0.5) & (y <= height - 0.5) & (x >= -0.5) & (x <= width - 0.5)
            if near.any():
                own = slice(class_ * each, (class_ + 1) * each)
                read = image[own, group[i], group[j]].astype(np.float64)
                pooled[own, i, j] = between(read, y[near], x[near]).mean(1)
    return out.astype(data.dtype)
