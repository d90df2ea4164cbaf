"""Images read at places that are computed: grids and boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, as_dtype, is_float, number_like, tensor_type
from serde.relay.op.image.crop import CropAndResize
from serde.relay.op.image.grid import GridSample
from serde.relay.op.image.interpolation import cubic_weights
from serde.walk.expansion.tensors import fixed_shape

__all__ = [
    "Pixels", "between", "expand_crop_and_resize", "expand_grid_sample", "inside_of",
    "linear_weights",
]  # fmt: skip

CUBIC_ALPHA = -0.75


class Pixels:
    """Images as rows of channels, to be looked up by number.

    Args:
        images: ``(N, C, *space)`` of fixed lengths.
        batch: Number of the image for each of the places, ``(M, 1)``; pixels are numbered in its
            dtype.

    Raises:
        Unsupported: There are more pixels than that dtype counts exactly.
    """

    def __init__(self, images: Expr, batch: Expr) -> None:
        shape = fixed_shape(images)
        rank = len(shape)
        self.space = shape[2:]
        self.dtype = tensor_type(images).dtype
        rows = relay.transpose(images, (0, *range(2, rank), 1))
        self._rows = relay.reshape(rows, (-1, shape[1]))
        self._batch = batch
        kind = tensor_type(batch).dtype
        pixels = shape[0] * math.prod(self.space)
        if is_float(kind) and pixels > 2 ** (np.finfo(kind).nmant + 1):
            raise Unsupported(f"{pixels} pixels, which {kind} does not count")

    def at(self, places: Sequence[Expr]) -> Expr:
        """Return ``(M, P, C)`` of the pixels at whole places ``(M, P)``; edges are repeated."""
        index = self._batch
        for place, length in zip(places, self.space, strict=True):
            held = as_dtype(relay.clip(place, 0, length - 1), tensor_type(index).dtype)
            index = relay.add(relay.multiply(index, number_like(length, index)), held)
        return relay.take(self._rows, as_dtype(index, "int32"), 0, mode="clip")


def inside_of(places: Sequence[Expr], space: Sequence[int]) -> Expr:
    """Return 1 where places lie in the image and 0 elsewhere, with an axis for the channels."""
    dtype = tensor_type(places[0]).dtype
    parts = []
    for place, length in zip(places, space, strict=True):
        parts.append(relay.cast(relay.greater_equal(place, number_like(0, place)), dtype))
        parts.append(relay.cast(relay.less_equal(place, number_like(length - 1, place)), dtype))
    return relay.expand_dims(reduce(relay.multiply, parts), 2)


Weights = Callable[[Expr], list[tuple[int, Expr]]]
Fold = Callable[[Expr, int], Expr]


def between(
    pixels: Pixels, places: Sequence[Expr], weights_of: Weights, fold: Fold, *, zeros: bool
) -> Expr:
    """Return ``(M, P, C)`` of weighted neighbours; with `zeros`, those outside count as zero."""
    floors = [relay.floor(place) for place in places]
    weights = [weights_of(relay.subtract(p, f)) for p, f in zip(places, floors, strict=True)]
    parts = []
    for choice in product(*weights):
        pairs = zip(floors, choice, pixels.space, strict=True)
        corner = [fold(relay.add(at, number_like(by, at)), length) for at, (by, _), length in pairs]
        factor = relay.expand_dims(reduce(relay.multiply, [each for _, each in choice]), 2)
        if zeros:
            factor = relay.multiply(factor, inside_of(corner, pixels.space))
        parts.append(relay.multiply(pixels.at(corner), as_dtype(factor, pixels.dtype)))
    return reduce(relay.add, parts)


def linear_weights(part: Expr) -> list[tuple[int, Expr]]:
    return [(0, relay.subtract(number_like(1, part), part)), (1, part)]


def cubic_weights_of(part: Expr) -> list[tuple[int, Expr]]:
    """Keys' weights of four neighbours, as polynomials of the way to the next."""
    samples = np.linspace(0.0, 1.0, 4)
    curves = np.stack(cubic_weights(samples, CUBIC_ALPHA))
    coefficients = np.linalg.solve(np.vander(samples), curves.T).T
    result = []
    for offset, curve in zip((-1, 0, 1, 2), coefficients, strict=True):
        terms = [number_like(float(each), part) for each in curve]
        value = terms[0]
        for term in terms[1:]:
            value = relay.add(relay.multiply(value, part), term)
        result.append((offset, value))
    return result


def _keep(place: Expr, _length: int) -> Expr:
    return place


def _fold(padding_mode: str, align_corners: bool) -> Fold:
    """Return what brings places back into the image."""

    def clip(place: Expr, length: int) -> Expr:
        return relay.clip(place, 0, length - 1)

    def reflect(place: Expr, length: int) -> Expr:
        start, span = (0.0, length - 1.0) if align_corners else (-0.5, float(length))
        if span == 0:
            return relay.zeros_like(place)
        distance = relay.abs(relay.subtract(place, number_like(start, place)))
        double = number_like(2 * span, place)
        turns = relay.floor(relay.divide(distance, double))
        rest = relay.subtract(distance, relay.multiply(turns, double))
        back = relay.minimum(rest, relay.subtract(double, rest))
        return clip(relay.add(back, number_like(start, place)), length)

    return {"reflection": reflect, "border": clip}.get(padding_mode, _keep)


def _nearest(place: Expr) -> Expr:
    """Return the nearest whole number, halves away from zero."""
    size = relay.floor(relay.add(relay.abs(place), number_like(0.5, place)))
    return relay.multiply(relay.sign(place), size)


def expand_grid_sample(
    precision: str, numbers: str, data: Expr, grid: Expr, *, sampling: GridSample
) -> Expr:
    """Every neighbour is looked up by its number; places are computed in `precision`.

    Pixels are numbered in the dtype `numbers`.
    """
    rank, dtype = tensor_type(data).rank, tensor_type(data).dtype
    wide = "float64" if dtype == "float64" else "float32"
    images = as_dtype(data, wide)
    shape, lengths = fixed_shape(images), fixed_shape(grid)
    number = lengths[0]
    batch = relay.const(allocation.positions(number)[:, None], numbers)
    pixels = Pixels(images, batch)
    points = relay.reshape(as_dtype(grid, precision), (number, rank - 2, -1))
    fold = _fold(sampling.padding_mode, sampling.align_corners)
    places = []
    for axis, length in enumerate(shape[2:]):
        row = rank - 3 - axis
        point = relay.strided_slice(points, [row], [row + 1], [1], axes=[1])
        places.append(_unnormalize(relay.squeeze(point, [1]), length, sampling.align_corners))
    zeros = sampling.padding_mode == "zeros"
    if sampling.method == "bicubic":
        found = between(pixels, places, cubic_weights_of, fold, zeros=zeros)
    else:
        places = [fold(place, length) for place, length in zip(places, shape[2:], strict=True)]
        if sampling.method == "bilinear":
            found = between(pixels, places, linear_weights, _keep, zeros=True)
        else:
            whole = [_nearest(place) for place in places]
            inside = as_dtype(inside_of(whole, pixels.space), wide)
            found = relay.multiply(pixels.at(whole), inside)
    result = relay.reshape(relay.transpose(found, (0, 2, 1)), (number, shape[1], *lengths[2:]))
    return as_dtype(result, dtype)


def _unnormalize(point: Expr, length: int, align_corners: bool) -> Expr:
    """Return coordinates of -1 to 1 as pixels."""
    half = (length - 1) / 2 if align_corners else length / 2
    shift = half if align_corners else half - 0.5
    return relay.add(relay.multiply(point, number_like(half, point)), number_like(shift, point))


def expand_crop_and_resize(
    precision: str, numbers: str, data: Expr, boxes: Expr, box_indices: Expr, *, crop: CropAndResize
) -> Expr:
    """The places of all pixels of all boxes are computed, and each is looked up.

    Places are computed in `precision`; pixels are numbered in the dtype `numbers`.
    """
    size = TensorType(crop.crop_size or (), "int32").concrete_shape
    if size is None:
        raise Unsupported(f"boxes of open lengths {crop.crop_size}")
    dtype = tensor_type(data).dtype if crop.out_dtype is None else dtype_name(crop.out_dtype)
    images = as_dtype(data, "float64" if tensor_type(data).dtype == "float64" else "float32")
    (number,) = fixed_shape(boxes, [0])
    _, channels, *space = fixed_shape(images)
    pixels = Pixels(images, relay.expand_dims(as_dtype(box_indices, numbers), 1))
    edges = relay.split(as_dtype(boxes, precision), 4, axis=1)
    rows = _along(edges[0], edges[2], space[0], size[0])
    columns = _along(edges[1], edges[3], space[1], size[1])
    count = size[0] * size[1]
    places = [
        relay.reshape(relay.repeat(rows, size[1], 1), (number, count)),
        relay.reshape(relay.tile(columns, (1, size[0])), (number, count)),
    ]
    held = [relay.clip(place, 0, length - 1) for place, length in zip(places, space, strict=True)]
    if crop.method == "bilinear":
        found = between(pixels, held, linear_weights, _keep, zeros=False)
    else:
        found = pixels.at([_nearest(place) for place in held])
    inside = as_dtype(inside_of(places, space), tensor_type(found).dtype)
    outside = relay.subtract(number_like(1, inside), inside)
    found = relay.add(
        relay.multiply(found, inside),
        relay.multiply(outside, number_like(crop.extrapolation_value, outside)),
    )
    result = relay.reshape(relay.transpose(found, (0, 2, 1)), (number, channels, *size))
    return as_dtype(result, dtype)


def _along(start: Expr, end: Expr, length: int, size: int) -> Expr:
    """Return where the pixels of boxes lie along an axis: ``(n, size)``."""
    if size == 1:
        return relay.multiply(relay.add(start, end), number_like(0.5 * (length - 1), start))
    places = allocation.positions(size)[None] * (length - 1) / (size - 1)
    steps = relay.const(places, tensor_type(start).dtype)
    first = relay.multiply(start, number_like(length - 1, start))
    return relay.add(first, relay.multiply(relay.subtract(end, start), steps))
