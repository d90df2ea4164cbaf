"""Importers of what is computed by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []

_SAME_OF_TWO: Final = (
    "add", "subtract", "multiply", "maximum", "minimum",
)  # fmt: skip


def _import_two(op: str) -> Callable[..., Expr]:
    build = getattr(relay, op)

    def convert(ctx: ImportContext, x1: Expr, x2: Expr) -> Expr:
        return build(x1, x2)

    return convert


for _op in _SAME_OF_TWO:
    OPS.imports(f"relax.{_op}")(_import_two(_op))
