"""Operators that Relay does not know, as calls of functions that are registered with TVM.

Such a function gets the operands, then the attributes in their order, then the results to write
into: numbers and texts as they are, lists of integers as shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relay.ir.foreign import Foreign

__all__ = ["write_foreign"]


def write_foreign(ctx: ExportContext, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
    """Write ``R.call_dps_packed`` of the function that has the operator's full name.

    Raises:
        Unsupported: An input is left out, an attribute is no argument of such functions, or the
            model does not tell the types of the results.
    """
    framework = ctx.framework
    given = [each for each in operands if each is not None]
    if len(given) < len(operands):
        raise Unsupported(f"{node.full_name} leaves out an input")
    if not node.results:
        raise Unsupported(f"{node.full_name}: the types of the results are not known")
    args = [ctx.expr(each) for each in given]
    args += [_argument(ctx, name, each) for name, each in node.plain_attributes.items()]
    types = [ctx.relax_type(each) for each in node.results]
    made = framework.relax.op.call_dps_packed(node.full_name, framework.relax.Tuple(args), types)
    if len(types) == 1:
        return ctx.bind(made)
    return ctx.bind_tuple(made, len(types))


def _argument(ctx: ExportContext, name: str, value: AnyValue) -> AnyValue:
    framework = ctx.framework
    if isinstance(value, str):
        return framework.text(value)
    if isinstance(value, (bool, int, float)):
        return framework.number(value)
    if isinstance(value, tuple) and all(type(each) is int for each in value):
        return ctx.shape_expr(value)
    raise Unsupported(f"attribute {name}={value!r:.100} is no argument of functions of TVM")
