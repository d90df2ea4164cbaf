"""Where the windows of a pooling lie."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext
from serde.torch.ops.conv.windows import SPATIAL, Sizes, per_axis

__all__ = ["UNKNOWN_PLACES", "PoolAttributes", "Window", "has_fixed_lengths"]

UNKNOWN_PLACES = "places of maxima in windows that depend on lengths that are not known"
"""Why indices of a pooling are left out."""


def has_fixed_lengths(ctx: ImportContext, x: Expr, ndim: int) -> bool:
    """Whether the lengths of the last axes are known."""
    return all(isinstance(each, int) for each in ctx.type(x).shape[-ndim:])


@dataclass(frozen=True)
class Window:
    """The windows of one pooling; `padding` has all before the axes first.

    Attributes:
        past: How far the last windows reach past the padding where nothing is rounded up.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    ceil_mode: bool
    past: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """How long a window is from its first element to its last."""
        return tuple((n - 1) * gap + 1 for n, gap in zip(self.size, self.dilation, strict=True))

    def attributes(self) -> dict[str, AnyValue]:
        """Return the attributes of Relay's poolings, what lies past the padding as padding."""
        ndim = len(self.size)
        behind = (a + b for a, b in zip(self.padding[ndim:], self.past, strict=True))
        return {
            "pool_size": self.size,
            "strides": self.strides,
            "dilation": self.dilation,
            "padding": (*self.padding[:ndim], *behind),
            "layout": "NC" + SPATIAL[ndim],
            "ceil_mode": self.ceil_mode,
        }

    def rounded(self, ctx: ImportContext, x: Expr) -> Window:
        """Return the same windows without rounding up: padding behind the axes makes them."""
        if not self.ceil_mode:
            return self
        ndim, past = len(self.size), []
        for axis, length in enumerate(ctx.static_lengths(x, range(-ndim, 0))):
            pad, step, reach = self.padding[axis], self.strides[axis], self.reach[axis]
            count = -(-(length + 2 * pad - reach) // step) + 1
            count -= (count - 1) * step >= length + pad
            past.append(max(0, (count - 1) * step + reach - length - 2 * pad))
        return replace(self, ceil_mode=False, past=tuple(past))


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """Attributes that the poolings of PyTorch share."""

    kernel_size: Sizes
    stride: Sizes = ()
    padding: Sizes = 0
    dilation: Sizes = 1
    ceil_mode: bool = False

    def window(self, ctx: ImportContext, x: Expr, ndim: int) -> Window:
        """Return the windows over the last axes of data.

        PyTorch leaves out a window that would start behind the data, which Relay's ``ceil_mode``
        does not; where that matters the windows have the padding that makes as many. A window
        longer than the padded data, which rounding up lets be, is as long as these.
        """
        size = per_axis(ctx, self.kernel_size, ndim, "kernel_size")
        strides = size if self.stride == () else per_axis(ctx, self.stride, ndim, "stride")
        padding = per_axis(ctx, self.padding, ndim, "padding")
        dilation = per_axis(ctx, self.dilation, ndim, "dilation")
        if min(*size, *strides, *dilation) < 1:
            raise Unsupported(f"windows of {size} in steps of {strides}, {dilation} apart")
        lengths = ctx.type(x).shape[-ndim:]
        if len(lengths) < ndim:
            raise Unsupported(f"windows over {ndim} axes of a tensor of rank {len(lengths)}")
        if self.ceil_mode:
            most = zip(size, lengths, padding, dilation, strict=True)
            size = tuple(
                min(n, max(length + 2 * pad - 1, 0) // gap + 1) if isinstance(length, int) else n
                for n, length, pad, gap in most
            )
        found = Window(size, strides, dilation, padding * 2, self.ceil_mode, (0,) * ndim)
        if not self.ceil_mode:
            return found
        drops = False
        for axis, length in enumerate(lengths):
            pad, step, reach = padding[axis], strides[axis], found.reach[axis]
            if step + pad <= reach:
                continue
            if not isinstance(length, int):
                raise Unsupported("ceil_mode beside padding needs fixed lengths")
            count = -(-(length + 2 * pad - reach) // step) + 1
            drops = drops or (count - 1) * step >= length + pad
        return found.rounded(ctx, x) if drops else found
