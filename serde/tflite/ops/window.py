"""Windows over images: how far they are padded."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr
from serde.tflite.import_context import ImportContext as Import

__all__ = ["padding_of", "same_padding"]

_SAME, _VALID = 0, 1


def same_padding(
    lengths: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1),
) -> list[tuple[int, int]] | None:
    """Return the padding before and behind each axis that gives ``ceil(n / s)`` windows.

    The odd element is behind. None where a length that bears on it is open.
    """
    pairs = []
    for n, k, s, d in zip(lengths, kernel, strides, dilation, strict=False):
        reach = (k - 1) * d + 1
        if s == 1:
            total = reach - 1
        elif isinstance(n, int):
            total = max((-(-n // s) - 1) * s + reach - n, 0)
        else:
            return None
        pairs.append((total // 2, total - total // 2))
    return pairs


def padding_of(
    ctx: Import,
    x: Expr,
    padding: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1),
) -> tuple[int, ...]:
    """Return the padding before all spatial axes, then that behind them."""
    if min(strides) < 1:
        raise Unsupported(f"strides {list(strides)}")
    count = len(kernel)
    if padding == _VALID:
        return (0,) * (2 * count)
    lengths = [ctx.dim_at(x, axis) for axis in range(1, count + 1)]
    pairs = same_padding(lengths, kernel, strides, dilation)
    if pairs is None:
        raise Unsupported(f"needs fixed lengths of axes, found {ctx.type(x)!r}")
    before, after = zip(*pairs, strict=True)
    return (*before, *after)
