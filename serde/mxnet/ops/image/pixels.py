"""Images with channels last: cut, mirrored, in other light and colours; blocks of pixels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, as_dtype, call, tensor_type
from serde.walk import Takes, one_of, pair

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


@OPS.imports("_image_to_tensor")
def import_to_tensor(ctx: Import, data: Expr) -> Expr:
    """Halves are divided as such."""
    rank, dtype = ctx.type(data).rank, ctx.type(data).dtype
    wide = data if dtype == "float16" else as_dtype(data, "float32")
    parts = as_dtype(relay.divide(wide, relay.const(255, ctx.type(wide).dtype)), "float32")
    return relay.transpose(parts, (*range(rank - 3), rank - 1, rank - 3, rank - 2))


@OPS.imports("_image_normalize")
def import_normalize(
    ctx: Import,
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
def import_crop(ctx: Import, data: Expr, *, x: int, y: int, width: int, height: int) -> Expr:
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
    def import_flip(ctx: Import, data: Expr) -> Expr:
        return flip(data, axis)

    @OPS.imports(f"_image_random_flip_{side}")
    def import_random_flip(ctx: Import, data: Expr) -> Expr:
        """One image of two, at each run anew."""
        stays = relay.less(drawn(0.0, 1.0), relay.const(np.float32(0.5)))
        return relay.where(stays, data, flip(data, axis))


for _side, _axis in (("left_right", 1), ("top_bottom", 0)):
    _declare_flip(_side, _axis)


def drawn(low: float, high: float) -> Expr:
    """Return a number that is drawn at each run, ``(1,)``."""
    return call("serde.random_uniform", None, shape=(1,), low=low, high=high, dtype="float32")


def require_colours(ctx: Import, data: Expr) -> None:
    """Refuse what MXNet takes for three channels or leaves as the memory is."""
    channels = ctx.type(data).shape[-1]
    if channels != 3:
        raise Unsupported(
            f"{channels} channels; of other images than of three MXNet gives no result"
        )


def adjust_pixels(ctx: Import, data: Expr, adjust: Callable[[Expr], Expr]) -> Expr:
    """Return an image adjusted in float32, cut off at the limits of its dtype."""
    dtype = ctx.type(data).dtype
    result = adjust(as_dtype(data, "float32"))
    if dtype in LIMITS:
        result = relay.clip(result, *LIMITS[dtype])
    return as_dtype(result, dtype)


@OPS.imports("_image_adjust_lighting")
def import_adjust_lighting(ctx: Import, data: Expr, *, alpha: tuple[float, ...]) -> Expr:
    require_colours(ctx, data)
    if len(alpha) != LIGHT.shape[1]:
        raise Unsupported(f"alpha={alpha}: expected {LIGHT.shape[1]} numbers")
    light = relay.Constant(LIGHT @ np.array(alpha, np.float32))
    return adjust_pixels(ctx, data, lambda x: relay.add(x, light))


@OPS.imports("_image_random_lighting")
def import_random_lighting(ctx: Import, data: Expr, *, alpha_std: float = 0.05) -> Expr:
    require_colours(ctx, data)
    alpha = call("serde.random_normal", None, shape=(3,), scale=alpha_std, dtype="float32")
    light = relay.sum(relay.multiply(relay.Constant(LIGHT), alpha), axis=(1,))
    return adjust_pixels(ctx, data, lambda x: relay.add(x, light))


Adjust = Callable[[Expr, Expr], Expr]


def _float32(value: float) -> Expr:
    return relay.const(np.float32(value))


def _adjust_brightness(x: Expr, factor: Expr) -> Expr:
    return relay.multiply(x, factor)


def _adjust_contrast(x: Expr, factor: Expr) -> Expr:
    """``x * factor + mean(grey) * (1 - factor)``; one channel is grey itself."""
    grey = x
    if tensor_type(x).shape[-1] != 1:
        grey = relay.sum(relay.multiply(x, relay.Constant(GREY)), axis=(-1,))
    mean = relay.mean(grey)
    rest = relay.multiply(relay.subtract(_float32(1), factor), mean)
    return relay.add(relay.multiply(x, factor), rest)


def _adjust_saturation(x: Expr, factor: Expr) -> Expr:
    """``x * factor + grey * (1 - factor)``; MXNet's grey is the last channel's part in it."""
    if tensor_type(x).shape[-1] == 1:
        return x
    blue = relay.strided_slice(x, [2], [3], [1], axes=[-1])
    grey = relay.multiply(blue, _float32(GREY[2]))
    rest = relay.multiply(grey, relay.subtract(_float32(1), factor))
    return relay.add(relay.multiply(x, factor), rest)


def _rotate_hue(x: Expr, angle: Expr) -> Expr:
    """``hue = (hue + 6 * angle) % 6``, red at 0, green at 2 and blue at 4; `angle` in turns."""
    most, least = (each(x, axis=(-1,), keepdims=True) for each in (relay.max, relay.min))
    span = relay.subtract(most, least)
    red, green, blue = relay.split(x, 3, axis=-1)
    grey = relay.less_equal(span, _float32(0))
    steps = relay.where(grey, _float32(1), span)

    def place(first: Expr, second: Expr, start: float) -> Expr:
        return relay.add(relay.divide(relay.subtract(first, second), steps), _float32(start))

    rest = relay.where(relay.equal(most, green), place(blue, red, 2), place(red, green, 4))
    hue = relay.where(relay.equal(most, red), place(green, blue, 0), rest)
    hue = relay.floor_mod(relay.add(hue, relay.multiply(angle, _float32(6))), _float32(6))
    away = relay.abs(relay.subtract(hue, relay.const(np.array([3, 2, 4], np.float32))))
    signs, starts = (relay.const(np.array(each, np.float32)) for each in ([1, -1, -1], [-1, 2, 2]))
    share = relay.clip(relay.add(relay.multiply(away, signs), starts), 0.0, 1.0)
    return relay.add(least, relay.multiply(span, share))


def _declare(name: str, adjust: Adjust) -> None:
    @OPS.imports(f"_image_random_{name}")
    def import_random(ctx: Import, data: Expr, *, min_factor: float, max_factor: float) -> Expr:
        if name != "brightness" and (name == "hue" or ctx.type(data).shape[-1] != 1):
            require_colours(ctx, data)
        factor = drawn(min_factor, max_factor)
        return adjust_pixels(ctx, data, lambda x: adjust(x, factor))


ADJUSTMENTS: dict[str, Adjust] = {
    "brightness": _adjust_brightness,
    "contrast": _adjust_contrast,
    "saturation": _adjust_saturation,
    "hue": _rotate_hue,
}

for _name, _adjust in ADJUSTMENTS.items():
    _declare(_name, _adjust)


@OPS.imports("_image_random_color_jitter")
def import_random_color_jitter(
    ctx: Import, data: Expr, *, brightness: float, contrast: float, saturation: float, hue: float
) -> Expr:
    """Every adjustment comes once, in an order that is drawn too."""
    given = dict(brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)
    used = {name: reach for name, reach in given.items() if reach > 0}
    if not used:
        return data
    if len(used) > 1 or "brightness" not in used:
        require_colours(ctx, data)
    middles = {name: 0.0 if name == "hue" else 1.0 for name in used}
    factors = {n: drawn(middles[n] - reach, middles[n] + reach) for n, reach in used.items()}
    uniform = call("serde.random_uniform", None, shape=(len(used),), dtype="float32")
    order = relay.split(relay.argsort(uniform, dtype="int32"), len(used))
    for step in order:
        changed = [
            adjust_pixels(ctx, data, lambda x, name=name: ADJUSTMENTS[name](x, factors[name]))  # type: ignore[misc]
            for name in used
        ]
        chosen = relay.take(relay.stack(changed, 0), step, 0, mode="fast")
        data = changed[0] if len(used) == 1 else relay.squeeze(chosen, [0])
    return data


OPS.pairs(
    pair(
        "depth_to_space",
        "nn.depth_to_space",
        "block_size",
        fixed={"layout": "NCHW", "mode": "DCR"},
        takes=Takes(mode=one_of("DCR", "")),
    ),
    pair(
        "space_to_depth",
        "nn.space_to_depth",
        "block_size",
        fixed={"mode": "", "layout": "NCHW"},
        takes=Takes(mode=one_of("DCR", "")),
    ),
)
