"""What sliding windows share. NNEF pads each side of each axis, by itself where it is not told.

Source: chapter 4.3 of the NNEF 1.0 specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.nnef.import_context import ImportContext
from serde.relay.ir.expr import Expr

__all__ = [
    "SPATIAL", "Border", "Pairs", "WindowAttributes", "pad_border", "per_axis", "reach_of",
    "refuse_windows", "same_padding", "steps",
]  # fmt: skip

SPATIAL: Final = {1: "W", 2: "HW", 3: "DHW"}
"""Letters of the spatial axes for each number of them."""

Border: TypeAlias = Literal["constant", "ignore", "replicate", "reflect", "reflect-even"]
"""What lies beyond the data: zeros, nothing, the edge, or the mirror image without or with it."""

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""What is added before and after each axis; less than nothing cuts off."""


@dataclass(frozen=True, kw_only=True)
class WindowAttributes:
    """Attributes that all sliding windows share, one entry an axis; empty lists are defaults."""

    border: Border = "constant"
    padding: Pairs = ()
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()


def per_axis(given: Sequence[int], count: int, name: str) -> tuple[int, ...]:
    """Return one positive integer an axis, 1 where the list is empty."""
    if given and (len(given) != count or min(given) < 1):
        raise Unsupported(f"{name}: expected {count} positive integers, found {list(given)}")
    return tuple(given) or (1,) * count


def refuse_windows(window: WindowAttributes) -> None:
    """Refuse windows over no axes that are told how to move."""
    told = [*window.padding, *window.stride, *window.dilation]
    if told:
        raise Unsupported(f"no spatial axes, but padding, stride or dilation of {told}")


def steps(given: Sequence[int], before: int = 0) -> list[int]:
    """Return strides or dilations as they are written, behind as many of 1; none if all are 1."""
    return [1] * before + list(given) if any(n != 1 for n in given) else []


def reach_of(size: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return how many elements windows span along each axis."""
    return [(n - 1) * gap + 1 for n, gap in zip(size, dilation, strict=True)]


def same_padding(
    lengths: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the padding with which every stride has a window; the odd one comes behind."""
    pairs = []
    for length, span, step in zip(lengths, reach, strides, strict=True):
        total = max(0, (-(-length // step) - 1) * step + span - length)
        pairs.append((total // 2, total - total // 2))
    return pairs


_MODES: Final = {"replicate": "edge", "reflect": "reflect"}


def pad_border(
    ctx: ImportContext, x: Expr, padding: Sequence[tuple[int, int]], border: str, value: float = 0.0
) -> Expr:
    """Return a tensor continued beyond its axes, and cut off where padding is negative.

    Args:
        ctx: The context.
        x: The tensor.
        padding: What is added before and after each axis.
        border: What lies there; "ignore" is `value`, as "constant" is.
        value: That constant.
    """
    sides = [(max(0, before), max(0, after)) for before, after in padding]
    if any(map(any, sides)):
        if border == "reflect-even":
            x = relay.nn.mirror_pad(x, sides, "SYMMETRIC")
        else:
            fill = relay.const(value, ctx.type(x).dtype)
            x = relay.nn.pad(x, sides, fill, _MODES.get(border, "constant"))
    cuts = [axis for axis, pair in enumerate(padding) if min(pair) < 0]
    if cuts:
        begin = [max(0, -padding[axis][0]) for axis in cuts]
        lengths = ctx.static_lengths(x, cuts)
        end = [n + min(0, padding[axis][1]) for n, axis in zip(lengths, cuts, strict=True)]
        x = relay.strided_slice(x, begin, end, [1] * len(cuts), axes=cuts)
    return x
