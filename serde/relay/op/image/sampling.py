"""Images and volumes read at a grid whose coordinates are on its last axis, and such a grid."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Expr, TensorType, const, join_dim, require_float, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern
from serde.relay.ir.work import times
from serde.relay.op.image.grid import GridSample, grid_sample as sample_of_planes

Method = Literal["linear", "nearest", "cubic"]
Planar = Literal["bilinear", "nearest", "bicubic"]
_METHODS: dict[str, Planar] = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def _sample_type(data: TensorType, grid: TensorType, *, method: str, **_: AnyValue) -> TensorType:
    require_float(data, grid)
    rank = data.rank
    if rank not in (4, 5) or grid.rank != rank or (rank == 5 and method == "cubic"):
        raise TypeInferenceError(f"cannot sample {data!r} at {grid!r} by method {method!r}")
    join_dim(grid.shape[-1], rank - 2)
    batch = join_dim(data.shape[0], grid.shape[0])
    return TensorType((batch, data.shape[1], *grid.shape[1:-1]), data.dtype)


def _decompose_sample(
    data: Expr, grid: Expr, *, method: str, padding_mode: str, align_corners: bool
) -> Expr:
    """Relay rounds halves away from zero, and folds before it rounds: the grid is rounded."""
    type_ = tensor_type(data)
    rank = type_.rank
    if method == "nearest":
        grid = _rounded_grid(type_, grid, align_corners)
    channels_first = call("transpose", grid, axes=(0, rank - 1, *range(1, rank - 1)))
    return call(
        "image.grid_sample",
        data,
        channels_first,
        method=_METHODS[method],
        layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


def _rounded_grid(data: TensorType, grid: Expr, align_corners: bool) -> Expr:
    """Return a grid moved to the nearest pixels, of two to the even one."""
    lengths = data.shape[:1:-1]
    if not all(isinstance(length, int) for length in lengths):
        raise TypeInferenceError(f"needs a fixed shape to round places in, found {data!r}")
    sizes = np.array([length for length in lengths if isinstance(length, int)], np.float64)
    wide = call("cast", grid, dtype="float64")
    one, two, half = (const(value, "float64") for value in (1.0, 2.0, 0.5))
    span, shift = (sizes - 1, 0.0) if align_corners else (sizes, 0.5)
    scale = const(np.where(span == 0, 1, span) / 2, "float64")
    offset = const(np.full(len(sizes), shift), "float64")
    place = call("subtract", call("multiply", call("add", wide, one), scale), offset)
    raised = call("add", place, half)
    whole = call("floor", raised)
    tie = call("equal", whole, raised)
    odd = call("not_equal", call("floor_mod", whole, two), const(0.0, "float64"))
    lower = call("subtract", whole, one)
    near = call("where", call("logical_and", tie, odd), lower, whole)
    back = call("subtract", call("divide", call("add", near, offset), scale), one)
    return call("cast", back, dtype=tensor_type(grid).dtype)


_GRID = tensor((2, 5, 6, 2), low=-1.5, high=1.5)


@relay_op(
    "serde.grid_sample",
    traits=(times(32), Fusion(FusionPattern.INJECTIVE)),
    infer=_sample_type,
    decompose=_decompose_sample,
    samples=[
        sample((2, 3, 4, 7), _GRID),
        sample((2, 3, 4, 7), _GRID, padding_mode="border", align_corners=True),
        sample((2, 3, 4, 7), _GRID, method="nearest"),
        sample((2, 3, 4, 7), _GRID, method="cubic", padding_mode="reflection"),
        sample((1, 2, 3, 4, 5), tensor((1, 2, 3, 4, 3), low=-1.5, high=1.5), align_corners=True),
    ],
)
def grid_sample(
    data: Array,
    grid: Array,
    *,
    method: Method = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Array:
    """`data` read at the places of `grid`, whose last axis has x, y (and z) between -1 and 1.

    The nearest of two pixels as near is the even one; all else is as in ``image.grid_sample``.
    """
    points = grid
    if method == "nearest":
        sizes = np.array(data.shape[:1:-1], np.float64)
        span, shift = (sizes - 1, 0.0) if align_corners else (sizes, 0.5)
        scale = np.where(span == 0, 1, span) / 2
        near = np.rint((widen(grid).astype(np.float64) + 1) * scale - shift)
        points = (near + shift) / scale - 1
    return sample_of_planes(
        data,
        np.moveaxis(points, -1, 1),
        sampling=GridSample(
            method=_METHODS[method],
            layout="NCHW" if data.ndim == 4 else "NCDHW",
            padding_mode=padding_mode,
            align_corners=align_corners,
        ),
    )


def _affine_type(
    theta: TensorType, shape: TensorType | None, *, size: tuple[int, ...] | None, **_: AnyValue
) -> TensorType:
    require_float(theta)
    if (shape is None) == (size is None):
        raise TypeInferenceError("expected a size, or a shape that is computed")
    if theta.rank != 3:
        raise TypeInferenceError(f"expected matrices, found {theta!r}")
    ndim = theta.shape[1] if size is None else len(size)
    if ndim not in (2, 3) or (size is not None and min(size) < 1):
        raise TypeInferenceError(f"cannot map a grid of {size} by {theta!r}")
    join_dim(theta.shape[1], ndim)
    join_dim(theta.shape[2], ndim + 1)
    lengths = [Any() for _ in range(3 if ndim == 3 else 2)] if size is None else size
    return TensorType((theta.shape[0], *lengths, ndim), theta.dtype)


def _regular(size: tuple[int, ...], align_corners: bool) -> Array:
    """Return ``(places, ndim + 1)`` of a regular grid: x, y (and z) and a one."""
    steps = []
    for length in size:
        if align_corners:
            steps.append(np.linspace(-1, 1, length))
        else:
            steps.append((2 * np.arange(length) + 1) / length - 1)
    axes = np.meshgrid(*steps, indexing="ij")[::-1]
    return np.stack([*axes, np.ones(size)], -1).reshape(-1, len(size) + 1)


def _decompose_affine(
    theta: Expr, shape: Expr | None, *, size: tuple[int, ...] | None, align_corners: bool
) -> Expr:
    if size is None:
        raise TypeInferenceError("a grid whose size is computed has no decomposition")
    dtype = tensor_type(theta).dtype
    points = const(_regular(size, align_corners)[None], dtype)
    found = call("nn.batch_matmul", points, theta, transpose_b=True)
    return call("reshape", found, newshape=(-1, *size, len(size)))


@relay_op(
    "serde.affine_grid",
    traits=(Fusion(FusionPattern.INJECTIVE),),
    infer=_affine_type,
    decompose=_decompose_affine,
    samples=[
        sample((2, 2, 3), None, size=(5, 6)),
        sample((2, 2, 3), None, size=(5, 6), align_corners=True),
        sample((1, 3, 4), None, size=(2, 3, 4)),
    ],
)
def affine_grid(
    theta: Array,
    shape: Array | None,
    *,
    size: tuple[int, ...] | None = None,
    align_corners: bool = False,
) -> Array:
    """The grid (n, *size, ndim) that maps images by matrices; ends are -1 and 1.

    Where the size is computed, it is all but the first two numbers of `shape`. Ends are the
    centres of the end pixels with `align_corners`, else their edges.
    """
    lengths = tuple(shape.tolist()[2:]) if size is None and shape is not None else size or ()
    points = _regular(lengths, align_corners)
    grid = np.matmul(points, widen(theta).astype(np.float64).swapaxes(1, 2))
    return grid.reshape(-1, *lengths, len(lengths)).astype(theta.dtype)
