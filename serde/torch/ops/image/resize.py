"""Resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any as AnyValue, Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.relay.ir import Any, Constant, Dim, Expr, call
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.shape.lengths import divide_length, multiply_lengths, sizes_of
from serde.torch.promotion import category

__all__ = ["Scales", "is_ratio", "nearest_places", "resize"]

_RESIZERS: Final = {
    1: relay.image.resize1d, 2: relay.image.resize2d, 3: relay.image.resize3d,
}  # fmt: skip
_LAYOUTS: Final = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_MODES: Final = {False: "half_pixel", True: "align_corners"}

CUBIC_ALPHA: Final = -0.75
SMOOTH_ALPHA: Final = -0.5
"""Keys' parameter, of a plain and of a smoothed resizing."""

MAX_DENOMINATOR: Final = 2**16
"""Of a factor with more, the product with a length is rounded in floating point."""

Scales = Sequence[float | None]


def _lengths(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, scales: Scales
) -> list[SymInt]:
    """Return the lengths that the spatial axes get."""
    if size is not None:
        return list(size)
    return [_scaled(ctx, x, axis, scale) for axis, scale in enumerate(scales, 2)]


def _check(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, factors: Scales | None
) -> int:
    """Return the number of spatial axes, of which each has a size or a factor that is one."""
    ctx.require_rank(x, 3, 5)
    rank = ctx.type(x).rank - 2
    if any(each is not None and len(each) != rank for each in (size, factors or None)):
        raise Unsupported(f"sizes {size} and factors {factors} for {rank} axes")
    if not all(each is None or math.isfinite(each) for each in factors or ()):
        raise Unsupported(f"factors {factors}")
    return rank


def _scaled(ctx: ImportContext, x: Expr, axis: int, scale: float | None) -> SymInt:
    """Return the length of an axis times a factor, rounded down."""
    length = ctx.type(x).shape[axis]
    if scale is None:
        raise Unsupported("a resizing without a size or a factor")
    if isinstance(length, int):
        return math.floor(length * scale)
    ratio = Fraction(scale)
    if ratio.denominator > MAX_DENOMINATOR:
        raise Unsupported(f"a length of {length} times {scale}")
    whole = multiply_lengths(ctx, ctx.size(x, axis), ratio.numerator)
    return divide_length(ctx, whole, ratio.denominator)


def is_ratio(length: Dim, size: Dim, scale: AnyValue) -> bool:
    """Whether the factor is the ratio of the lengths, where one is told."""
    if scale is None or (isinstance(scale, (int, float)) and scale <= 0):
        return True
    fixed = isinstance(length, int) and isinstance(size, int)
    return fixed and bool(length * scale == size)


def _scale_by_factors(
    ctx: ImportContext, x: Expr, scales: Sequence[float], *, method: str, mode: str
) -> Expr:
    """Return a resizing in which a factor counts as it is told, and symbols stay."""
    return call(
        "serde.resize", x, scale=(1.0, 1.0, *scales), method=method, mode=mode, rounding="floor",
        cubic_alpha=CUBIC_ALPHA,
    )  # fmt: skip


def resize(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, factors: Scales | None,
    *, mode: str, align_corners: bool = False, antialias: bool = False,
) -> Expr:  # fmt: skip
    """Return a resizing by a mode of ``F.interpolate``."""
    rank = _check(ctx, x, size, factors)
    scales = factors or [None] * rank
    if mode.startswith("nearest"):
        return _resize_nearest(ctx, x, size, scales, exact=mode != "nearest")
    method = "cubic" if mode == "bicubic" else "linear"
    _require_float(ctx, x, method)
    if not antialias:
        return _resize(ctx, x, size, scales, method, _MODES[align_corners])
    if align_corners:
        raise Unsupported("smoothed resizing of which the corners are aligned")
    return _resize_smoothly(ctx, x, size, scales, method)


def _resize(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, scales: Scales, method: str,
    mode: str,
) -> Expr:  # fmt: skip
    """Return a linear or cubic resizing."""
    shape, half = ctx.type(x).shape[2:], mode == "half_pixel"
    told = _told(scales)
    if size is None and half and len(told) == len(shape) and not _are_fixed(shape):
        return _scale_by_factors(ctx, x, told, method=method, mode=mode)
    lengths = _lengths(ctx, x, size, scales)
    dims = [ctx.dim(each) for each in lengths]
    if half and not all(map(is_ratio, shape, dims, scales)):
        factors = _told_factors(ctx, x, dims, scales)
        return _scale_by_factors(ctx, x, factors, method=method, mode=mode)
    return _resize_to(ctx, x, lengths, method, mode)


def _resize_to(
    ctx: ImportContext, x: Expr, lengths: Sequence[SymInt], method: str, mode: str
) -> Expr:
    """Return a resizing to lengths, which are an operand where one has no name."""
    dims, rank = [ctx.dim(each) for each in lengths], len(lengths)
    near = method == "nearest"
    options: dict[str, AnyValue] = {} if near else {"cubic_alpha": CUBIC_ALPHA}
    if not any(isinstance(dim, Any) for dim in dims):
        return _RESIZERS[rank](
            x, tuple(dims), layout=_LAYOUTS[rank], coordinate_transformation_mode=mode,
            method="nearest_neighbor" if near else method, rounding_method="floor" if near else "",
            **options,
        )  # fmt: skip
    options |= {"rounding": "floor"} if near else {}
    sizes = ctx.shape_vector([*sizes_of(ctx, x)[:2], *lengths])
    return call("serde.resize", x, None, None, sizes, method=method, mode=mode, **options)


def _resize_smoothly(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, scales: Scales, method: str
) -> Expr:
    """Return a resizing whose kernel is as wide as an element of the result, inside the image."""
    dims = None if size is None else tuple(ctx.dim(each) for each in size)
    given: dict[str, AnyValue] = {"size": dims}
    if dims is None:
        given = {"scale": tuple(scales)}
    elif not all(map(is_ratio, ctx.type(x).shape[2:], dims, scales)):
        given = {"scale": tuple(_told_factors(ctx, x, dims, scales))}
    return call(
        "serde.resize", x, **given, axes=tuple(range(2, 2 + len(scales))), method=method,
        mode="half_pixel", cubic_alpha=SMOOTH_ALPHA, exclude_outside=True, antialias=True,
    )  # fmt: skip


def _told(scales: Scales) -> list[float]:
    """Return the factors that count."""
    return [each for each in scales if each is not None and each > 0]


def _are_fixed(shape: Sequence[Dim]) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _require_float(ctx: ImportContext, x: Expr, method: str) -> None:
    """Refuse whole numbers, which are rounded in the middle of the work."""
    if category(ctx.dtype(x)) < category("float32"):
        raise Unsupported(f"{method} resizing of {ctx.dtype(x)}, which PyTorch rounds its own way")


def _told_factors(ctx: ImportContext, x: Expr, dims: Sequence[Dim], scales: Scales) -> list[float]:
    """Return factors, told or not, that give certain lengths."""
    factors = []
    for length, size, scale in zip(ctx.type(x).shape[2:], dims, scales, strict=True):
        if isinstance(length, int) and isinstance(size, int):
            factor = size / length if scale is None else scale
            if math.floor(length * factor) == size:
                factors.append(factor)
                continue
        raise Unsupported(f"a length of {length} resized to {size} as by a factor of {scale}")
    return factors


def nearest_places(length: int, size: int, scale: float | None, *, exact: bool) -> Array:
    """Return which elements the nearest are, in PyTorch's own arithmetic of float32."""
    if not exact and size == length:
        return allocation.arange(size)
    if not exact and size == 2 * length:
        return allocation.arange(size) // 2
    told = scale is not None and scale > 0
    steps = allocation.arange(size, dtype=np.float32)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.float32(1.0 / scale) if told and scale else np.float32(length) / np.float32(size)
        found = np.floor(((steps + np.float32(0.5)) if exact else steps) * ratio)
    if not np.isfinite(found).all():
        raise Unsupported(f"a length of {length} resized to {size} by a factor of {scale}")
    return np.minimum(np.minimum(found, 2.0**62).astype(np.int64), length - 1)


def _resize_nearest(
    ctx: ImportContext, x: Expr, size: Sequence[SymInt] | None, scales: Scales, *, exact: bool
) -> Expr:
    shape, told = ctx.type(x).shape[2:], _told(scales)
    mode = "tf_half_pixel_for_nn" if exact else "asymmetric"
    if size is None and len(told) == len(shape) and all(each == int(each) for each in told):
        return _repeat(x, [int(each) for each in told])
    if size is None and told and not _are_fixed(shape):
        return _scale_by_factors(ctx, x, told, method="nearest", mode=mode)
    lengths = _lengths(ctx, x, size, scales)
    pairs = list(zip(shape, map(ctx.dim, lengths), strict=True))
    fixed = [(old, new) for old, new in pairs if isinstance(old, int) and isinstance(new, int)]
    if len(fixed) < len(pairs):
        return _resize_to(ctx, x, lengths, "nearest", mode)
    places = [
        nearest_places(*pair, scale, exact=exact) for pair, scale in zip(fixed, scales, strict=True)
    ]
    ratios = [new // old if old and new % old == 0 else 0 for old, new in fixed]
    if all(ratios) and all(
        np.array_equal(each, allocation.arange(len(each)) // ratio)
        for each, ratio in zip(places, ratios, strict=True)
    ):
        return _repeat(x, ratios)
    plain = True
    for (old, new), each in zip(fixed, places, strict=True):
        steps = 2 * allocation.arange(new) + exact
        found = np.minimum(steps * old // (2 * new), old - 1) if old and new else None
        plain = plain and found is not None and np.array_equal(each, found)
    if plain:
        return _resize_to(ctx, x, lengths, "nearest", mode)
    for axis, each in enumerate(places, 2):
        if not np.array_equal(each, allocation.arange(fixed[axis - 2][0])):
            x = relay.take(x, Constant(each), axis=axis, mode="fast")
    return x


def _repeat(x: Expr, factors: Sequence[int]) -> Expr:
    """Return `x` with each element repeated along its spatial axes."""
    if len(factors) == 2:
        rows, columns = map(float, factors)
        return relay.nn.upsampling(x, rows, columns)
    if len(factors) == 3:
        depth, rows, columns = map(float, factors)
        return relay.nn.upsampling3d(
            x, depth, rows, columns, coordinate_transformation_mode="asymmetric"
        )
    for axis, factor in enumerate(factors, 2):
        x = relay.repeat(x, repeats=factor, axis=axis) if factor > 1 else x
    return x
