"""The table of converters of MIL's operators, and what these work with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any as AnyValue

from serde.coreml.mlprogram.export_context import ExportContext as Export
from serde.coreml.mlprogram.import_context import ImportContext as Import
from serde.coreml.mlprogram.operators import CORE
from serde.coreml.value import Value
from serde.coreml.versions import CHANGES
from serde.relay.ir import Call, Expr, OpDef, Var, free_vars
from serde.walk.table import ConverterTable

__all__ = [
    "OPS", "Export", "Import", "Value", "constants_hold", "constants_of",
    "emit_by_name",
]  # fmt: skip


def emit_by_name(
    ctx: AnyValue, op: str, operands: Mapping[str, AnyValue], attributes: Mapping[str, AnyValue]
) -> AnyValue:
    """Append the operation of a pair."""
    return ctx.emit(op, **operands, **attributes)


OPS = ConverterTable(
    "coreml",
    changes={name: CHANGES.get(name, (1,)) for name in {*CORE, *CHANGES}},
    home="serde.coreml.mlprogram.ops",
    operands=("x", "y"),
    emit=emit_by_name,
    usual_layouts=True,
)

_CONSTANT = {
    "nn.prelu": (1,),
    "serde.dequantize_blocks": (0, 1, 2),
    "serde.dequantize_sparse": (0, 1, 2, 3),
    "serde.gru": (1, 2, 3),
    "serde.lstm": (1, 2, 3, 7),
    "serde.lut_to_dense": (0, 1),
    "serde.lut_to_sparse": (0, 1, 2),
    "serde.rnn": (1, 2, 3),
    "serde.sparse_to_dense": (0, 1),
}
"""Operands that MIL wants constant, of operators that are decomposed where they are not."""

_ORDERED = ("serde.gru", "serde.lstm", "serde.rnn")
"""Operators whose weights have their gates in another order there."""


def constants_hold(node: Call, weights: Collection[str]) -> bool:
    """Whether the operands of a call that MIL wants constant are made of weights alone.

    Args:
        node: The call.
        weights: Names of the variables that stand for weights.
    """
    if not isinstance(node.op, OpDef):
        return True
    return all(
        isinstance(variable, Var) and variable.name_hint in weights
        for place in _CONSTANT.get(node.op.name, ())
        for variable in free_vars(node.args[place])
    )


def constants_of(node: Call) -> list[Expr]:
    """Return the operands of a call that MIL wants constant and that a bridge orders anew."""
    if not isinstance(node.op, OpDef) or node.op.name not in _ORDERED:
        return []
    return [node.args[place] for place in _CONSTANT[node.op.name]]
