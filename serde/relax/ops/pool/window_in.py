"""Importers of pooling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """What all pooling has."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    ceil_mode: bool
    layout: str
    out_layout: str

    def keywords(self) -> dict[str, object]:
        """Return them as Relay's builders take them."""
        return {
            **vars(self),
            "out_layout": "" if self.out_layout == self.layout else self.out_layout,
        }


def _import_max_pool(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext, data: Expr, *, count_include_pad: bool, attrs: PoolAttributes
    ) -> Expr:
        return _drop_windows(ctx, data, build(data, **attrs.keywords()), attrs)

    return convert


def _import_avg_pool(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext, data: Expr, *, count_include_pad: bool, attrs: PoolAttributes
    ) -> Expr:
        """What reaches beyond the padding is not counted, in Relay it is: then zeros are data."""
        given, x = attrs, data
        if count_include_pad and attrs.ceil_mode:
            x, given = _pad(ctx, data, attrs), replace(attrs, padding=(0,) * len(attrs.padding))
            count_include_pad = False
        found = build(x, count_include_pad=count_include_pad, **given.keywords())
        return _drop_windows(ctx, data, found, attrs)

    return convert


def _pad(ctx: ImportContext, data: Expr, attrs: PoolAttributes) -> Expr:
    """Return a tensor with the zeros around it that pooling pads."""
    if not any(attrs.padding):
        return data
    count = len(attrs.pool_size)
    widths = [(0, 0)] * ctx.rank(data)
    for number, letter in enumerate("DHW"[-count:]):
        before, after = attrs.padding[number], attrs.padding[count + number]
        widths[attrs.layout.index(letter)] = before, after
    return relay.nn.pad(data, widths, pad_value=ctx.like(data, 0))


def _drop_windows(ctx: ImportContext, data: Expr, found: Expr, attrs: PoolAttributes) -> Expr:
    """Return pooling without the windows that begin behind all elements.

    With ``ceil_mode`` Relay has them, and TVM not, as PyTorch.
    """
    if not attrs.ceil_mode:
        return found
    count = len(attrs.pool_size)
    first, last = attrs.padding[:count], attrs.padding[count:]
    for number, letter in enumerate("DHW"[-count:]):
        step, axis = attrs.strides[number], attrs.layout.index(letter)
        reach = (attrs.pool_size[number] - 1) * attrs.dilation[number] + 1
        if step + last[number] <= reach:
            continue
        (length,) = ctx.static_lengths(data, [axis])
        kept = -(-(length + first[number]) // step)
        place = attrs.out_layout.index(letter)
        if ctx.static_lengths(found, [place])[0] > kept:
            found = relay.strided_slice(found, [0], [kept], axes=[place])
    return found


def _import_adaptive(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext,
        data: Expr,
        *,
        output_size: tuple[int, ...] | None,
        layout: str,
        out_layout: str,
    ) -> Expr:
        """Without a size the result has that of the tensor."""
        if output_size is None:
            return data
        out_layout = "" if out_layout == layout else out_layout
        return build(data, output_size, layout=layout, out_layout=out_layout)

    return convert


for _ndim in (1, 2, 3):
    OPS.imports(f"relax.nn.max_pool{_ndim}d")(_import_max_pool(f"max_pool{_ndim}d"))
    OPS.imports(f"relax.nn.avg_pool{_ndim}d")(_import_avg_pool(f"avg_pool{_ndim}d"))
    _op = f"adaptive_avg_pool{_ndim}d"
    OPS.imports(f"relax.nn.{_op}")(_import_adaptive(_op))
