"""Colours of images changed by chance, at each run anew, as when a net is trained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.image.pixels import GREY, adjust_pixels, drawn, require_colours
from serde.mxnet.ops.layout import tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

Adjust = Callable[[Expr, Expr], Expr]


def _number(value: float) -> Expr:
    return relay.const(np.float32(value))


def _adjust_brightness(x: Expr, factor: Expr) -> Expr:
    return relay.multiply(x, factor)


def _adjust_contrast(x: Expr, factor: Expr) -> Expr:
    """``x * factor + mean(grey) * (1 - factor)``; one channel is grey itself."""
    grey = x
    if tensor_type(x).shape[-1] != 1:
        grey = relay.sum(relay.multiply(x, relay.Constant(GREY)), axis=(-1,))
    mean = relay.mean(grey)
    rest = relay.multiply(relay.subtract(_number(1), factor), mean)
    return relay.add(relay.multiply(x, factor), rest)


def _adjust_saturation(x: Expr, factor: Expr) -> Expr:
    """``x * factor + grey * (1 - factor)``; MXNet's grey is the last channel's part in it."""
    if tensor_type(x).shape[-1] == 1:
        return x
    blue = relay.strided_slice(x, [2], [3], [1], axes=[-1])
    grey = relay.multiply(blue, _number(GREY[2]))
    rest = relay.multiply(grey, relay.subtract(_number(1), factor))
    return relay.add(relay.multiply(x, factor), rest)


def _rotate_hue(x: Expr, angle: Expr) -> Expr:
    """``hue = (hue + 6 * angle) % 6``, red at 0, green at 2 and blue at 4; `angle` in turns."""
    most, least = (each(x, axis=(-1,), keepdims=True) for each in (relay.max, relay.min))
    span = relay.subtract(most, least)
    red, green, blue = relay.split(x, 3, axis=-1)
    grey = relay.less_equal(span, _number(0))
    steps = relay.where(grey, _number(1), span)

    def place(first: Expr, second: Expr, start: float) -> Expr:
        return relay.add(relay.divide(relay.subtract(first, second), steps), _number(start))

    rest = relay.where(relay.equal(most, green), place(blue, red, 2), place(red, green, 4))
    hue = relay.where(relay.equal(most, red), place(green, blue, 0), rest)
    hue = relay.floor_mod(relay.add(hue, relay.multiply(angle, _number(6))), _number(6))
    away = relay.abs(relay.subtract(hue, relay.const(np.array([3, 2, 4], np.float32))))
    signs, starts = (relay.const(np.array(each, np.float32)) for each in ([1, -1, -1], [-1, 2, 2]))
    share = relay.clip(relay.add(relay.multiply(away, signs), starts), 0.0, 1.0)
    return relay.add(least, relay.multiply(span, share))


def _declare(name: str, adjust: Adjust) -> None:
    @OPS.imports(f"_image_random_{name}")
    def import_random(
        ctx: ImportContext, data: Expr, *, min_factor: float, max_factor: float
    ) -> Expr:
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
    ctx: ImportContext,
    data: Expr,
    *,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
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
