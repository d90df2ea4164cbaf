"""Convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.conv.windows import add_bias, cast, sum_dtype
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import split_padding
from serde.relay.lowering.conv import CONVOLUTIONS
from serde.relay.op.conv.windows import Convolution

__all__: list[str] = []


@OPS.exports(*CONVOLUTIONS)
def export_conv(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Sums are of float32 at least."""
    rank = len(conv.strides)
    before, after = split_padding(conv.padding, rank)
    total = sum_dtype(ctx.type(data).dtype, conv.out_dtype)
    made = ctx.emit(
        f"nn.conv{rank}d",
        data,
        weight,
        strides=list(conv.strides),
        padding=[*before, *after],
        dilation=list(conv.dilation),
        groups=conv.groups,
        data_layout=conv.data_layout,
        kernel_layout=conv.kernel_layout,
        out_dtype=total,
    )
    return add_bias(ctx, cast(ctx, made, total, ctx.result_type().dtype), bias, rank)


@dataclass(frozen=True, kw_only=True)
class ConvAttributes:
    """What all convolutions have."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    data_layout: str
    kernel_layout: str
    out_layout: str
    out_dtype: str | None

    def keywords(self) -> dict[str, object]:
        """Return them as Relay's builders take them."""
        same = self.out_layout == self.data_layout
        found = {**vars(self), "out_layout": "" if same else self.out_layout}
        return found if self.out_dtype is not None else {**found, "out_dtype": ""}


def _import_conv(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(ctx: ImportContext, data: Expr, weight: Expr, *, attrs: ConvAttributes) -> Expr:
        return build(data, weight, **attrs.keywords())

    return convert


def _import_transposed(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext,
        data: Expr,
        weight: Expr,
        *,
        output_padding: tuple[int, ...],
        attrs: ConvAttributes,
    ) -> Expr:
        return build(data, weight, output_padding=output_padding, **attrs.keywords())

    return convert


for _ndim in (1, 2, 3):
    OPS.imports(f"relax.nn.conv{_ndim}d")(_import_conv(f"conv{_ndim}d"))
    _op = f"conv{_ndim}d_transpose"
    OPS.imports(f"relax.nn.{_op}")(_import_transposed(_op))
