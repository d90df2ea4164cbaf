"""Windows over images: how far they are padded."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext

__all__ = ["padding_of"]

_SAME, _VALID = 0, 1


def padding_of(
    ctx: ImportContext,
    x: Expr,
    padding: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1),
) -> tuple[int, ...]:
    """Return the padding before all spatial axes, then that behind them.

    SAME gives ``ceil(n / s)`` windows, the odd element behind.

    Raises:
        Unsupported: A stride is below 1, or SAME needs lengths that are open.
    """
    if min(strides) < 1:
        raise Unsupported(f"strides {list(strides)}")
    count = len(kernel)
    if padding == _VALID:
        return (0,) * (2 * count)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=False)]
    if all(stride == 1 for stride in strides):
        total = [each - 1 for each in reach]
    else:
        lengths = ctx.static_lengths(x, range(1, count + 1))
        total = [
            max((-(-n // s) - 1) * s + r - n, 0)
            for n, s, r in zip(lengths, strides, reach, strict=True)
        ]
    return (*(each // 2 for each in total), *(each - each // 2 for each in total))
