"""Images with channels last: as tensors, cut, mirrored, and in other light."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.precision import as_dtype
from serde.relay.ir.registry import call

LIGHT = np.array(
    [
        [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
        [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
        [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
    ],
    np.float32,
)
"""Red, green and blue along the principal components of ImageNet's colours (Krizhevsky, 2012)."""

GREY = np.array([0.299, 0.587, 0.114], np.float32)
"""What red, green and blue are of the brightness."""

LIMITS = {"uint8": (0.0, 255.0), "int8": (-128.0, 127.0)}


def _number(ctx: ImportContext, like: Expr, value: float) -> Expr:
    return relay.const(value, ctx.type(like).dtype)


@OPS.imports("_image_to_tensor")
def import_to_tensor(ctx: ImportContext, data: Expr) -> Expr:
    """Halves are divided as such."""
    rank, dtype = ctx.type(data).rank, ctx.type(data).dtype
    wide = data if dtype == "float16" else as_dtype(data, "float32")
    parts = as_dtype(relay.divide(wide, _number(ctx, wide, 255)), "float32")
    return relay.transpose(parts, (*range(rank - 3), rank - 1, rank - 3, rank - 2))


@OPS.imports("_image_normalize")
def import_normalize(
    ctx: ImportContext,
    data: Expr,
    *,
    mean: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0),
    std: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
) -> Expr:
    """Channels are behind the batch axis here; integers are cut off."""
    dtype = ctx.type(data).dtype
    wide = "float64" if dtype == "float64" else "float32"
    middle, spread = (
        relay.Constant(np.array(each, np.float32).astype(wide).reshape(-1, 1, 1))
        for each in (mean, std)
    )
    moved = relay.subtract(as_dtype(data, wide), middle)
    return as_dtype(relay.divide(moved, spread), dtype)


@OPS.imports("_image_crop")
def import_crop(ctx: ImportContext, data: Expr, *, x: int, y: int, width: int, height: int) -> Expr:
    if min(x, y) < 0:
        raise Unsupported(f"a region from ({x}, {y}) on, which is outside of the image")
    rank = ctx.type(data).rank
    axes = [rank - 3, rank - 2]
    return relay.strided_slice(data, [y, x], [y + height, x + width], [1, 1], axes=axes)


def flip(data: Expr, axis: int) -> Expr:
    """Return an image mirrored along an axis."""
    return relay.reverse(data, axis)


def _declare_flip(side: str, axis: int) -> None:
    @OPS.imports(f"_image_flip_{side}")
    def import_flip(ctx: ImportContext, data: Expr) -> Expr:
        return flip(data, axis)

    @OPS.imports(f"_image_random_flip_{side}")
    def import_random_flip(ctx: ImportContext, data: Expr) -> Expr:
        """One image of two, at each run anew."""
        stays = relay.less(drawn(0.0, 1.0), relay.const(np.float32(0.5)))
        return relay.where(stays, data, flip(data, axis))


for _side, _axis in (("left_right", 1), ("top_bottom", 0)):
    _declare_flip(_side, _axis)


def drawn(low: float, high: float) -> Expr:
    """Return a number that is drawn at each run, ``(1,)``."""
    return call("serde.random_uniform", None, shape=(1,), low=low, high=high, dtype="float32")


def require_colours(ctx: ImportContext, data: Expr) -> None:
    """Refuse what MXNet takes for three channels or leaves as the memory is.

    Raises:
        Unsupported: There are not three channels.
    """
    channels = ctx.type(data).shape[-1]
    if channels != 3:
        raise Unsupported(
            f"{channels} channels; of other images than of three MXNet gives no result"
        )


def adjust_pixels(ctx: ImportContext, data: Expr, adjust: Callable[[Expr], Expr]) -> Expr:
    """Return an image adjusted in float32, cut off at the limits of its dtype."""
    dtype = ctx.type(data).dtype
    result = adjust(as_dtype(data, "float32"))
    if dtype in LIMITS:
        result = relay.clip(result, *LIMITS[dtype])
    return as_dtype(result, dtype)


@OPS.imports("_image_adjust_lighting")
def import_adjust_lighting(ctx: ImportContext, data: Expr, *, alpha: tuple[float, ...]) -> Expr:
    require_colours(ctx, data)
    if len(alpha) != LIGHT.shape[1]:
        raise Unsupported(f"alpha={alpha}: expected {LIGHT.shape[1]} numbers")
    light = relay.Constant(LIGHT @ np.array(alpha, np.float32))
    return adjust_pixels(ctx, data, lambda x: relay.add(x, light))


@OPS.imports("_image_random_lighting")
def import_random_lighting(ctx: ImportContext, data: Expr, *, alpha_std: float = 0.05) -> Expr:
    require_colours(ctx, data)
    alpha = call("serde.random_normal", None, shape=(3,), scale=alpha_std, dtype="float32")
    light = relay.sum(relay.multiply(relay.Constant(LIGHT), alpha), axis=(1,))
    return adjust_pixels(ctx, data, lambda x: relay.add(x, light))
