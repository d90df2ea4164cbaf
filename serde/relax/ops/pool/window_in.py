"""Importers of pooling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
        return build(data, **attrs.keywords())

    return convert


def _import_avg_pool(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext, data: Expr, *, count_include_pad: bool, attrs: PoolAttributes
    ) -> Expr:
        return build(data, count_include_pad=count_include_pad, **attrs.keywords())

    return convert


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
