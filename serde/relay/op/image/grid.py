"""Images read at given places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TensorType, const, tensor_type, widen
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, layout_axes, require_float
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, Layout
from serde.relay.ir.work import times
from serde.relay.lowering.sampling import sample_grid
from serde.relay.op.image.interpolation import cubic_weights

__all__ = ["GridSample"]

_CUBIC_ALPHA = -0.75


@dataclass(frozen=True, kw_only=True)
class GridSample:
    """Attributes of ``image.grid_sample``."""

    method: Literal["bilinear", "nearest", "bicubic"] = "bilinear"
    layout: str = "NCHW"
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros"
    align_corners: bool = True


def _grid_sample_type(
    data: TensorType, grid: TensorType, *, method: str, layout: str, **_: AnyValue
) -> TensorType:
    """The grid has one coordinate for each spatial axis, along axis 1."""
    require_float(data, grid)
    if data.rank not in (4, 5) or grid.rank != data.rank:
        raise TypeInferenceError(f"expected data and grid of rank 4 or 5, found {data!r}, {grid!r}")
    if method == "bicubic" and data.rank == 5:
        raise TypeInferenceError("bicubic sampling is for images of two spatial axes")
    wanted = "NCHW" if data.rank == 4 else "NCDHW"
    axes = layout_axes(layout, wanted)
    if type(grid.shape[1]) is int and grid.shape[1] != data.rank - 2:
        raise TypeInferenceError(f"expected {data.rank - 2} coordinates, found {grid!r}")
    shape: list[Dim] = list(data.shape)
    shape[axes[0]] = join_dim(data.shape[axes[0]], grid.shape[0])
    for axis, length in zip(axes[2:], grid.shape[2:], strict=True):
        shape[axis] = length
    return TensorType(shape, data.dtype)


def _unnormalize(grid: Array, length: int, align_corners: bool) -> Array:
    """Return coordinates of -1 to 1 as pixels, -1 being the first pixel's centre or its edge."""
    if align_corners:
        return (grid + 1) * (length - 1) / 2
    return ((grid + 1) * length - 1) / 2


def _reflect(positions: Array, length: int, align_corners: bool) -> Array:
    """Fold coordinates back at the centres or the edges of the end pixels, then clip them."""
    start, span = (0.0, length - 1) if align_corners else (-0.5, length)
    if span == 0:
        return np.zeros_like(positions)
    distance = np.abs(positions - start)
    turns = np.floor(distance / span)
    rest = distance - turns * span
    folded = np.where(turns % 2 == 0, rest, span - rest) + start
    return np.clip(folded, 0, length - 1)


def _fold(positions: Array, length: int, padding_mode: str, align_corners: bool) -> Array:
    if padding_mode == "reflection":
        return _reflect(positions, length, align_corners)
    if padding_mode == "border":
        return np.clip(positions, 0, length - 1)
    return positions


def _gather(flat: Array, shape: Sequence[int], positions: Sequence[Array]) -> Array:
    """Return ``(N, C, P)`` of the pixels at whole ``(N, P)`` places, zero outside the image."""
    index = np.zeros(positions[0].shape, np.int64)
    inside = np.ones(positions[0].shape, bool)
    for length, place in zip(shape, positions, strict=True):
        inside &= (place >= 0) & (place <= length - 1)
        index = index * length + np.clip(place, 0, length - 1).astype(np.int64)
    return np.take_along_axis(flat, index[:, None], 2) * inside[:, None]


def _interpolate(
    flat: Array,
    shape: Sequence[int],
    positions: Sequence[Array],
    weights_of: Callable[[Array], list[tuple[int, Array]]],
    fold: Callable[[Array, int], Array],
) -> Array:
    floors = [np.floor(place) for place in positions]
    weights = [weights_of(p - f) for p, f in zip(positions, floors, strict=True)]
    total: Array | None = None
    for choice in product(*weights):
        pairs = zip(floors, choice, shape, strict=True)
        corner = [fold(floor + offset, length) for floor, (offset, _), length in pairs]
        factor = np.prod([weight for _, weight in choice], 0)[:, None]
        part = _gather(flat, shape, corner) * factor.astype(flat.dtype)
        total = part if total is None else total + part
    return flat if total is None else total


def _linear(part: Array) -> list[tuple[int, Array]]:
    return [(0, 1 - part), (1, part)]


def _cubic(part: Array) -> list[tuple[int, Array]]:
    return list(zip((-1, 0, 1, 2), cubic_weights(part, _CUBIC_ALPHA), strict=True))


_GRID = tensor((2, 2, 5, 6), low=-1.5, high=1.5)


@relay_op(
    "image.grid_sample", traits=(times(32), Layout(), Fusion(FusionPattern.INJECTIVE), Float32()),
    infer=_grid_sample_type,
    decompose=partial(sample_grid, "float64", "float64"),
    samples=[
        sample((2, 3, 4, 7), _GRID),
        sample((2, 3, 4, 7), _GRID, padding_mode="border", align_corners=False),
        sample((2, 4, 7, 3), _GRID, method="nearest", padding_mode="reflection", layout="NHWC"),
        sample((2, 3, 4, 7), _GRID, method="bicubic", padding_mode="reflection",
               align_corners=False),
        sample((1, 2, 3, 4, 5), tensor((1, 3, 2, 3, 4), low=-1.5, high=1.5), layout="NCDHW"),
    ],
)  # fmt: skip
def grid_sample(data: Array, grid: Array, *, sampling: GridSample) -> Array:
    """`data` read at the places of `grid`, whose axis 1 has x, y (and z) between -1 and 1.

    These are the centres of the end pixels with `align_corners`, else their edges.
    """
    wanted = "NCHW" if data.ndim == 4 else "NCDHW"
    images = widen(data).transpose(layout_axes(sampling.layout, wanted))
    shape = images.shape[2:]
    flat = images.reshape(*images.shape[:2], -1)
    points = widen(grid).astype(np.float64).reshape(*grid.shape[:2], -1)
    places = [
        _unnormalize(points[:, len(shape) - 1 - axis], length, sampling.align_corners)
        for axis, length in enumerate(shape)
    ]

    def fold(place: Array, length: int) -> Array:
        return _fold(place, length, sampling.padding_mode, sampling.align_corners)

    def keep(place: Array, length: int) -> Array:
        return place

    if sampling.method == "bicubic":
        result = _interpolate(flat, shape, places, _cubic, fold)
    else:
        places = [fold(place, length) for place, length in zip(places, shape, strict=True)]
        if sampling.method == "bilinear":
            result = _interpolate(flat, shape, places, _linear, keep)
        else:
            whole = [np.copysign(np.floor(np.abs(place) + 0.5), place) for place in places]
            result = _gather(flat, shape, whole)
    result = result.reshape(*images.shape[:2], *grid.shape[2:])
    return result.transpose(layout_axes(wanted, sampling.layout)).astype(data.dtype, copy=False)


def _affine_grid_type(data: TensorType, *, target_shape: tuple[int, ...]) -> TensorType:
    require_float(data)
    if data.rank != 3 or any(
        type(dim) is int and dim != size for dim, size in zip(data.shape[1:], (2, 3), strict=True)
    ):
        raise TypeInferenceError(f"expected matrices of shape (n, 2, 3), found {data!r}")
    if len(target_shape) != 2 or any(length < 2 for length in target_shape):
        raise TypeInferenceError(
            f"target_shape: expected 2 numbers above 1, found {list(target_shape)}"
        )
    return TensorType((data.shape[0], 2, *target_shape), data.dtype)


def _regular_grid(height: int, width: int) -> Array:
    """Return ``(3, height * width)``: x, y and one of each place."""
    y, x = np.meshgrid(
        allocation.linspace(-1, 1, height), allocation.linspace(-1, 1, width), indexing="ij"
    )
    return np.stack([x, y, np.ones_like(x)]).reshape(3, -1)


def _decompose_affine_grid(data: Expr, *, target_shape: tuple[int, ...]) -> Expr:
    allocation.allow((3, *target_shape))
    points = const(_regular_grid(*target_shape)[None], tensor_type(data).dtype)
    product_ = call("nn.batch_matmul", data, points, transpose_b=False)
    return call("reshape", product_, newshape=(-1, 2, *target_shape))


@relay_op(
    "image.affine_grid",
    traits=(Fusion(FusionPattern.INJECTIVE), Float32()),
    infer=_affine_grid_type,
    decompose=_decompose_affine_grid,
    samples=[sample((2, 2, 3), target_shape=(5, 6))],
    arguments=Arguments(defaults={"target_shape": None}),
)
def affine_grid(data: Array, *, target_shape: tuple[int, ...]) -> Array:
    """The grid (n, 2, height, width) that maps an image by 2 by 3 matrices; ends are -1 and 1."""
    grid = np.matmul(data.astype(np.float64), _regular_grid(*target_shape))
    return grid.reshape(-1, 2, *target_shape).astype(data.dtype)
