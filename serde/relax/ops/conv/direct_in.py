"""Importers of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


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
