"""Resources, which keep their values from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.relay.ir import Expr
from serde.tflite.ops.table import OPS, Import
from serde.tflite.states import Handle, handle_name


@OPS.imports("VAR_HANDLE")
def import_var_handle(
    ctx: Import, *, container: AnyValue = None, shared_name: AnyValue = None
) -> Expr:
    return Handle(handle_name({"container": container, "shared_name": shared_name}))


@OPS.imports("READ_VARIABLE")
def import_read_variable(ctx: Import, resource: Expr) -> Expr:
    return ctx.resource(resource)


@OPS.imports("ASSIGN_VARIABLE")
def import_assign_variable(ctx: Import, resource: Expr, value: Expr) -> Sequence[Expr]:
    ctx.assign(resource, value)
    return []


@OPS.imports("CALL_ONCE")
def import_call_once(ctx: Import, *, init_subgraph_index: int = 0) -> Sequence[Expr]:
    """The graph was read before the first operator."""
    return []


OPS.refuses(
    "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    reason="LiteRT's tables have texts as keys or values, which are no numbers",
)  # fmt: skip
