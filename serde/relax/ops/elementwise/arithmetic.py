"""Arithmetic of two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS

__all__: list[str] = []

_SAME: Final = ("add", "subtract", "multiply", "maximum", "minimum")
"""Operators that Relax calls as Relay does."""


def _make_exporter(op: str) -> Callable[..., Value]:
    def export(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
        return ctx.emit(op, lhs, rhs)

    return export


for _op in _SAME:
    OPS.exports(_op)(_make_exporter(_op))
