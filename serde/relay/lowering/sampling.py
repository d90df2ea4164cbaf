"""Images read between their pixels: along grids, and in boxes.

Positions are computed in a dtype `precision`, and pixels counted in a dtype `numbers`: float64
where a target has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.core import Array, dataclass, dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Dim, Expr, as_dtype, call, const, is_float, number_like
from serde.relay.ir.expr import TupleGetItem, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.lengths import length_of, positions, reshaped

__all__ = [
    "LINEAR", "Length", "Pixels", "as_work", "columns_of", "crop_and_resize", "hold",
    "of_all_channels", "sample_grid",
]  # fmt: skip


@dataclass(frozen=True)
class _Taps:
    """Neighbours of a position along an axis.

    Attributes:
        offsets: Their distances from the whole number at or before the position.
        weights: For each, the coefficients of its weight, a polynomial of its distance from
            the position, from the highest power on.
    """

    offsets: Array
    weights: Array


LINEAR = _Taps(np.array([0.0, 1.0]), np.array([[-1.0, 1.0]] * 2))
_NEAR, _FAR = [1.25, -2.25, 0.0, 1.0], [-0.75, 3.75, -6.0, 3.0]
_CUBIC = _Taps(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([_FAR, _NEAR, _NEAR, _FAR]))
"""Keys' cubic convolution with ``alpha = -0.75``, as samplers of grids have it."""


@dataclass(frozen=True)
class Length:
    """The length of an axis and the position of its last pixel, as scalars."""

    whole: Expr
    last: Expr

    @classmethod
    def of(cls, images: Expr, axis: int, dtype: str) -> Length:
        known = tensor_type(images).shape[axis]
        if isinstance(known, int):
            return cls(const(known, dtype), const(known - 1, dtype))
        whole = as_dtype(length_of(images, axis), dtype)
        return cls(whole, call("subtract", whole, const(1, dtype)))


_Fold = Callable[[Expr, Length], Expr]
"""Brings positions back into the image."""


class Pixels:
    """Images as rows of channels, to be looked up by number.

    Args:
        images: ``(N, C, *space)``.
        batch: Number of the image for each of the positions, ``(M, 1, ...)``; pixels are numbered
            in its dtype.
        precision: The dtype of positions.

    Attributes:
        dtype: The dtype of pixels.
        lengths: Those of the spatial axes.

    Raises:
        Unsupported: There are more pixels than that dtype counts exactly.
    """

    def __init__(self, images: Expr, batch: Expr, precision: str) -> None:
        shape, kind = tensor_type(images).shape, tensor_type(batch).dtype
        self.dtype = tensor_type(images).dtype
        self.batch = batch
        self.lengths = [Length.of(images, axis, precision) for axis in range(2, len(shape))]
        rows = call("transpose", images, axes=(0, *range(2, len(shape)), 1))
        self._rows = reshaped(rows, images, lambda dims: (math.prod([dims[0], *dims[2:]]), dims[1]))
        pixels = math.prod(n for n in (shape[0], *shape[2:]) if isinstance(n, int))
        if is_float(kind) and pixels > 2 ** (np.finfo(numpy_dtype(kind)).nmant + 1):
            raise Unsupported(f"{pixels} pixels, which {kind} does not count")

    def read(
        self,
        places: Sequence[Expr],
        taps: _Taps | None = None,
        fold: _Fold | None = None,
        *,
        zeros: bool = False,
        joined: str = "sum",
    ) -> Expr:
        """Return ``(M, ..., C)``: weighted neighbours of positions, or the pixels at whole ones.

        Args:
            places: For each spatial axis ``(M, ...)``; shapes broadcast.
            taps: Which neighbours are read; None if positions are whole already.
            fold: Brings a neighbour back into the image.
            zeros: Whether a neighbour outside the image counts as zero; it is else the nearest.
            joined: What joins the weighted neighbours.
        """
        index, factor = self.batch, None
        chosen, inside = [], list[Expr]()
        if taps is not None:
            index = call("expand_dims", index, axis=1)
            chosen = list(product(range(len(taps.offsets)), repeat=len(places)))
        for axis, (place, length) in enumerate(zip(places, self.lengths, strict=True)):
            corner, weight = place, None
            if taps is not None:
                corner, weight = _neighbours(place, taps, [each[axis] for each in chosen])
            corner = corner if fold is None else fold(corner, length)
            if weight is not None:
                factor = weight if factor is None else call("multiply", factor, weight)
            held, kind = hold(corner, length), tensor_type(index).dtype
            inside.append(call("equal", corner, held))
            index = call("multiply", index, as_dtype(length.whole, kind))
            index = call("add", index, as_dtype(held, kind))
        whole = as_dtype(index, "int64" if tensor_type(index).dtype == "float64" else "int32")
        found = call("take", self._rows, whole, axis=0, mode="fast")
        seen = reduce(partial(call, "logical_and"), inside)
        if factor is None and zeros:
            return call("where", of_all_channels(seen), found, number_like(0, found))
        if factor is None:
            return found
        factor = call("where", seen, factor, number_like(0, factor)) if zeros else factor
        share = of_all_channels(as_dtype(factor, self.dtype))
        found = call("multiply", found, share)
        return found if taps is None else call(joined, found, axis=(1,))


def _neighbours(place: Expr, taps: _Taps, chosen: Sequence[int]) -> tuple[Expr, Expr]:
    """Return the neighbours of positions on a new axis 1, and their weights."""

    def column(values: Array) -> Expr:
        return const(values.reshape(-1, *[1] * (rank - 1)), tensor_type(place).dtype)

    rank = tensor_type(place).rank
    place = call("expand_dims", place, axis=1)
    corner = call("add", call("floor", place), column(taps.offsets[chosen]))
    distance = call("abs", call("subtract", place, corner))
    if taps is LINEAR:
        return corner, call("subtract", number_like(1, distance), distance)
    powers = [column(power) for power in taps.weights[chosen].T]
    weight = powers[0]
    for power in powers[1:]:
        weight = call("add", call("multiply", weight, distance), power)
    return corner, weight


def of_all_channels(x: Expr) -> Expr:
    return call("expand_dims", x, axis=-1)


def hold(place: Expr, length: Length) -> Expr:
    """Return positions within the image."""
    if isinstance(length.last, Constant):
        return call("clip", place, a_min=0.0, a_max=float(length.last.data))
    return call("maximum", call("minimum", place, length.last), number_like(0, place))


def _to_pixels(point: Expr, length: Length, align_corners: bool) -> Expr:
    """Return coordinates of -1 to 1 as positions among pixels."""
    whole = length.last if align_corners else length.whole
    half = call("multiply", whole, number_like(0.5, whole))
    shift = half if align_corners else call("subtract", half, number_like(0.5, half))
    return call("add", call("multiply", point, half), shift)


def _reflect(place: Expr, length: Length, align_corners: bool) -> Expr:
    """Fold positions back at the centres or the edges of the end pixels, then clip them.

    An axis of one pixel, which has no length between its centres, is clipped alone.
    """
    one, start = number_like(1, place), number_like(0.0 if align_corners else -0.5, place)
    span = call("maximum", length.last, one) if align_corners else length.whole
    double = call("add", span, span)
    distance = call("abs", call("subtract", place, start))
    periods = call("floor", call("divide", distance, double))
    rest = call("subtract", distance, call("multiply", periods, double))
    back = call("minimum", rest, call("subtract", double, rest))
    return hold(call("add", back, start), length)


def as_work(x: Expr) -> Expr:
    return as_dtype(x, "float64" if tensor_type(x).dtype == "float64" else "float32")


def sample_grid(
    precision: str,
    numbers: str,
    data: Expr,
    grid: Expr,
    *,
    method: str,
    layout: str,
    padding_mode: str,
    align_corners: bool,
) -> Expr:
    """Positions in volumes are on one axis, so that few axes suffice."""
    rank, dtype = tensor_type(data).rank, tensor_type(data).dtype
    wide, usual = "float64" if dtype == "float64" else "float32", "NCHW" if rank == 4 else "NCDHW"
    images = as_dtype(arranged(data, layout, usual), wide)
    points = as_dtype(grid, precision)
    if rank > 4:
        points = call("reshape", points, newshape=(0, 0, -1))
    axes = tensor_type(points).rank
    batch = call("reshape", positions(images, 0, numbers), newshape=(-1, *[1] * (axes - 2)))
    pixels = Pixels(images, batch, precision)
    folds: dict[str, _Fold] = {
        "border": hold,
        "reflection": lambda place, length: _reflect(place, length, align_corners),
    }
    fold, cubic = folds.get(padding_mode), method == "bicubic"
    places = []
    for axis, length in enumerate(pixels.lengths):
        point = call("take", points, const(rank - 3 - axis, "int64"), axis=1, mode="fast")
        place = _to_pixels(point, length, align_corners)
        places.append(place if fold is None or cubic else fold(place, length))
    if method == "nearest":
        places = [call("round", place) for place in places]
    taps = {"bilinear": LINEAR, "bicubic": _CUBIC}.get(method)
    found = pixels.read(places, taps, fold if cubic else None, zeros=padding_mode == "zeros")
    result: Expr = call("transpose", found, axes=(0, axes - 1, *range(1, axes - 1)))
    if rank > 4:
        channels = tensor_type(images).shape[1]
        result = reshaped(result, grid, lambda dims: (dims[0], channels, *dims[2:]))
    return arranged(as_dtype(result, dtype), usual, layout)


def crop_and_resize(
    precision: str,
    numbers: str,
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    *,
    crop_size: tuple[Dim, ...] | None,
    layout: str,
    method: str,
    extrapolation_value: float,
    out_dtype: AnyValue,
) -> Expr:
    """Rows and columns of each box broadcast against each other."""
    size = [length for length in crop_size or () if isinstance(length, int)]
    if len(size) < 2:
        raise Unsupported(f"boxes of open lengths {crop_size}")
    given, whole = tensor_type(data).dtype, method == "nearest_neighbor"
    kept = given == "float64" or (whole and precision == "float64")
    images = as_dtype(arranged(data, layout, "NCHW"), given if kept else "float32")
    batch = call("reshape", as_dtype(box_indices, numbers), newshape=(-1, 1, 1))
    pixels = Pixels(images, batch, precision)
    edges = columns_of(as_dtype(boxes, precision), 4)
    places, inside = [], []
    for axis, (length, count) in enumerate(zip(pixels.lengths, size, strict=True)):
        place = _along_box(edges[axis], edges[2 + axis], length.last, count)
        place = call("expand_dims", place, axis=2 - axis)
        held = hold(place, length)
        inside.append(call("equal", place, held))
        places.append(call("round", held) if whole else held)
    found = pixels.read(places, None if whole else LINEAR)
    seen = of_all_channels(call("logical_and", *inside))
    found = call("where", seen, found, number_like(extrapolation_value, found))
    result = arranged(call("transpose", found, axes=(0, 3, 1, 2)), "NCHW", layout)
    return as_dtype(result, given if out_dtype is None else dtype_name(out_dtype))


def columns_of(x: Expr, count: int) -> list[Expr]:
    parts = call("split", x, indices_or_sections=count, axis=1)
    return [TupleGetItem(parts, column) for column in range(count)]


def _along_box(start: Expr, end: Expr, last: Expr, count: int) -> Expr:
    """Return where the pixels of boxes lie along an axis: ``(M, count)``."""
    if count == 1:
        both = call("multiply", call("add", start, end), number_like(0.5, start))
        return call("multiply", both, last)
    parts = allocation.positions(count)[None] / (count - 1)
    span = call("multiply", call("subtract", end, start), last)
    first = call("multiply", start, last)
    return call("add", first, call("multiply", span, const(parts, tensor_type(start).dtype)))
