"""Images with channels last resized and bordered as OpenCV 3.4 does it, bit by bit for bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, as_dtype, call, tensor_type
from serde.relay.op.image.interpolation import cubic_weights

NEAREST, LINEAR, CUBIC, AREA, LANCZOS, LINEAR_EXACT = range(6)
CUBIC_ALPHA = -0.75

UNIT = 2048
"""One, as weights of bytes are counted."""


class Taps(NamedTuple):
    """What is read for each pixel of the result along an axis: indices, and their weights."""

    indices: Array
    weights: Array


def _centres(length: int, size: int) -> tuple[Array, Array]:
    at = ((allocation.arange(size) + 0.5) * (length / size) - 0.5).astype(np.float32)
    whole = np.floor(at)
    return whole.astype(np.int64), at - whole


def _linear(length: int, size: int, *, held: bool) -> Taps:
    """Return two neighbours; with `held`, those at an edge have its weight as a whole."""
    whole, part = _centres(length, size)
    if held:
        part = np.where((whole < 0) | (whole >= length - 1), np.float32(0), part)
    indices = np.clip(np.stack([whole, whole + 1], 1), 0, length - 1)
    return Taps(indices, np.stack([1 - part, part], 1))


def _cubic(length: int, size: int) -> Taps:
    whole, part = _centres(length, size)
    first, second, third, _ = cubic_weights(part, CUBIC_ALPHA)
    weights = np.stack([first, second, third, 1 - first - second - third], 1)
    return Taps(np.clip(whole[:, None] + np.arange(-1, 3), 0, length - 1), weights)


def _lanczos(length: int, size: int) -> Taps:
    """Return eight neighbours, whose weights OpenCV makes add up to one."""
    whole, part = _centres(length, size)
    away = (part[:, None].astype(np.float64) + 3 - np.arange(8)) * np.pi / 4
    turns = np.arange(8) * (5 * np.pi / 4)
    first = -away[:, :1]
    with np.errstate(divide="ignore", invalid="ignore"):
        curve = np.sin(first + turns)
        weights = (curve / (away * away)).astype(np.float32)
        weights = weights / weights.sum(1, keepdims=True, dtype=np.float32)
    on_pixel = part < np.finfo(np.float32).eps
    weights[on_pixel] = np.eye(8, dtype=np.float32)[3]
    return Taps(np.clip(whole[:, None] + np.arange(-3, 5), 0, length - 1), weights)


def _widened_area(length: int, size: int) -> Taps:
    """Return two neighbours of pixels that become more: linear only where two meet."""
    scale = length / size
    whole = np.floor(allocation.arange(size) * scale).astype(np.int64)
    part = ((allocation.arange(size) + 1) - (whole + 1) / scale).astype(np.float32)
    part = np.where(part <= 0, np.float32(0), part - np.floor(part))
    part = np.where(whole >= length - 1, np.float32(0), part)
    return Taps(
        np.clip(np.stack([whole, whole + 1], 1), 0, length - 1), np.stack([1 - part, part], 1)
    )


def _shares(length: int, size: int) -> Array:
    """Return ``(size, length)``: what each pixel has of those that it covers."""
    scale = length / size
    ends = allocation.arange(size + 1) * scale
    allocation.allow((size, length))
    covered = np.minimum(ends[1:, None], allocation.arange(1, length + 1)) - np.maximum(
        ends[:-1, None], allocation.arange(length)
    )
    covered = np.where(covered > 1e-3, np.minimum(covered, 1), 0)
    return covered / np.minimum(scale, length - ends[:-1, None])


def _weigh_taps(data: Expr, axis: int, taps: Taps, dtype: str) -> list[Expr]:
    """Return what is read at each tap, times its weight; `axis` is counted from the end."""
    parts = []
    for indices, weights in zip(taps.indices.T, taps.weights.T, strict=True):
        factor = relay.Constant(weights.reshape((-1,) + (1,) * (-axis - 1)).astype(dtype))
        read = relay.take(data, relay.const(indices.astype(np.int32)), axis, mode="fast")
        parts.append(relay.multiply(read, factor))
    return parts


def _sum(parts: Sequence[Expr]) -> Expr:
    return reduce(relay.add, parts)


def _int(value: int) -> Expr:
    return relay.const(value, "int32")


def _of_bytes(data: Expr, rows: Taps, columns: Taps, *, linear: bool) -> Expr:
    """Return bytes weighed in whole numbers; of two rows each is cut off before they are added."""
    rows, columns = (
        Taps(each.indices, np.rint(each.weights * np.float32(UNIT))) for each in (rows, columns)
    )
    wide = _sum(_weigh_taps(relay.cast(data, "int32"), -2, columns, "int32"))
    if linear:
        cut = relay.trunc_divide(wide, _int(16))
        parts = [relay.trunc_divide(x, _int(1 << 16)) for x in _weigh_taps(cut, -3, rows, "int32")]
        total = relay.trunc_divide(relay.add(_sum(parts), _int(2)), _int(4))
    else:
        total = relay.add(_sum(_weigh_taps(wide, -3, rows, "int32")), _int(1 << 21))
        total = relay.floor_divide(total, _int(1 << 22))
    return relay.cast(relay.clip(total, 0, 255), "uint8")


def _average_areas(data: Expr, dtype: str, rows: Array, columns: Array) -> Expr:
    """Return means over what each pixel covers; bytes are rounded to even, halved ones up."""
    wide = "float64" if dtype == "uint8" else dtype
    below, right = (relay.Constant(each.astype(wide)) for each in (rows, columns))
    across = call("serde.matmul", right, as_dtype(data, wide))
    order = (0, 2, 1, 3) if tensor_type(data).rank == 4 else (1, 0, 2)
    down = relay.transpose(call("serde.matmul", below, relay.transpose(across, order)), order)
    if dtype != "uint8":
        return down
    halved = all(each.shape[1] == 2 * each.shape[0] for each in (rows, columns))
    if halved:
        down = relay.floor(relay.add(down, relay.const(0.5, wide)))
    else:
        down = call("serde.round_even", relay.cast(down, "float32"))
    return relay.cast(down, "uint8")


def resize_images(ctx: Import, data: Expr, width: int, height: int, interp: int) -> Expr:
    """Return images ``(..., H, W, C)`` resized by one of OpenCV's ways of interpolation."""
    dtype, rank = ctx.type(data).dtype, ctx.type(data).rank
    if dtype not in ("uint8", "float32", "float64"):
        raise Unsupported(f"images of {dtype}; OpenCV resizes uint8, float32 and float64")
    if not NEAREST <= interp <= LINEAR_EXACT:
        raise Unsupported(f"interp={interp} is no way of interpolation of OpenCV's resize")
    have = ctx.static_lengths(data, (rank - 3, rank - 2))
    want = (height, width)
    if min(*have, *want) < 1:
        raise Unsupported(f"an image of {have[0]} x {have[1]} resized to {height} x {width}")
    if have == want:
        return data
    axes = list(zip(have, want, strict=True))
    if dtype == "uint8" and interp in (CUBIC, LINEAR_EXACT):
        raise Unsupported(f"interp={interp} of bytes, which OpenCV rounds as its vectors fall")
    if interp == NEAREST:
        for axis, (old, new) in zip((-3, -2), axes, strict=True):
            indices = np.minimum(np.floor(allocation.arange(new) * (old / new)), old - 1).astype(
                np.int32
            )
            data = relay.take(data, relay.Constant(indices), axis, mode="fast")
        return data
    halved = interp == LINEAR and all(old == 2 * new for old, new in axes)
    if halved or (interp == AREA and all(old >= new for old, new in axes)):
        return _average_areas(data, dtype, *(_shares(old, new) for old, new in axes))
    taps = {CUBIC: 4, LANCZOS: 8}.get(interp, 2)
    allocation.allow((2 * taps, sum(want)))  # Places and weights.
    if interp in (LINEAR, LINEAR_EXACT):
        rows, columns = _linear(*axes[0], held=False), _linear(*axes[1], held=True)
    else:
        of_axis = {CUBIC: _cubic, AREA: _widened_area, LANCZOS: _lanczos}[interp]
        rows, columns = (of_axis(*each) for each in axes)
    if dtype == "uint8":
        return _of_bytes(data, rows, columns, linear=interp != LANCZOS)
    across = _sum(_weigh_taps(data, -2, columns, dtype))
    return _sum(_weigh_taps(across, -3, rows, dtype))


@OPS.imports("_image_resize")
def import_resize(
    ctx: Import,
    data: Expr,
    *,
    size: int | tuple[int, ...] = (),
    keep_ratio: bool = False,
    interp: int = LINEAR,
) -> Expr:
    """One number is both lengths, or with `keep_ratio` the shorter; two are width and height."""
    lengths = (size,) if isinstance(size, int) else size
    if len(lengths) not in (1, 2):
        raise Unsupported(f"size {lengths}; MXNet takes one or two numbers")
    width, height = lengths[0], lengths[-1]
    if len(lengths) == 1 and keep_ratio:
        rank = ctx.type(data).rank
        rows, columns = ctx.static_lengths(data, (rank - 3, rank - 2))
        if rows > columns:
            height = rows * width // columns
        else:
            width = columns * height // rows
    return resize_images(ctx, data, width, height, interp)


@OPS.imports("_cvimresize")
def import_cvimresize(ctx: Import, src: Expr, *, w: int, h: int, interp: int = LINEAR) -> Expr:
    return resize_images(ctx, src, w, h, interp)


def _border_indices(kind: int, before: int, length: int, after: int) -> Array:
    """Return which pixel of an axis each of a bordered one repeats."""
    at = allocation.arange(-before, length + after)
    if kind == 1:
        return np.clip(at, 0, length - 1)
    if kind == 3:
        return at % length
    period = 2 * length if kind == 2 else max(2 * (length - 1), 1)
    at = at % period
    return np.where(at < length, at, (period - 1 if kind == 2 else period) - at)


@OPS.imports("_cvcopyMakeBorder")
def import_copy_make_border(
    ctx: Import, src: Expr,
    *, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0,
    values: tuple[float, ...] = (),
) -> Expr:  # fmt: skip
    """A border of numbers, or from 1 on of pixels: repeated, mirrored, wrapped, reflected."""
    if not 0 <= type <= 4:
        raise Unsupported(f"type={type} is no border of OpenCV")
    dtype = ctx.type(src).dtype
    ctx.ranked(src, 3)
    rows, columns, channels = ctx.static_shape(src)
    if type:
        for axis, sides in enumerate(((top, rows, bot), (left, columns, right))):
            indices = _border_indices(type, *sides).astype(np.int32)
            src = relay.take(src, relay.Constant(indices), axis, mode="fast")
        return src
    fill = allocation.zeros(channels) if values else allocation.full(channels, value)
    fill[: len(values)] = values[:channels]
    if dtype == "uint8":
        fill = np.clip(np.rint(fill), 0, 255)
    around = [(top, bot), (left, right), (0, 0)]
    if len(set(fill)) == 1:
        return relay.nn.pad(src, around, relay.Constant(fill[0].astype(dtype)))
    parts = relay.split(src, channels, axis=2)
    bordered = [
        relay.nn.pad(part, around, relay.Constant(number.astype(dtype)))
        for part, number in zip(parts, fill, strict=True)
    ]
    return relay.concatenate(bordered, axis=2)
