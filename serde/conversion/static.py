"""Models of which every length is known when they are written."""

from __future__ import annotations

from serde.core import Report
from serde.errors import OptionError
from serde.relay.ir import Call, OpDef, RelayModel, TensorType, Type, Var, all_nodes
from serde.relay.ir.types import TupleType
from serde.relay.ir.visit import children

__all__ = ["check_lengths_given", "refuse_open_lengths"]


def check_lengths_given(model: RelayModel) -> None:
    """Refuse a model of which a length of an input is open.

    Raises:
        OptionError: One is.
    """
    for each in model.inputs():
        if not _is_known(each.type):
            name = each.name_hint
            how = f"give all of its lengths, as in --input-shape {name}:1,3,224,224"
            raise OptionError(f"static: input {name} is {each.type!r}; {how}")


def refuse_open_lengths(model: RelayModel, report: Report) -> None:
    """Make issues of the nodes that have results of lengths which values decide."""
    nodes = [node for each in model.mod.functions.values() for node in all_nodes(each)]
    for node in nodes:
        before = all(_is_known(each.type) for each in children(node))
        if before and not isinstance(node, Var) and not _is_known(node.type):
            made = node.op if isinstance(node, Call) else None
            op = made.name if isinstance(made, OpDef) else type(node).__name__
            name = op if node.span is None else node.span.source_name
            report.add(op, name, f"static: values decide the lengths of {node.type!r}")


def _is_known(type_: Type | None) -> bool:
    """Whether all lengths of a type are numbers."""
    if isinstance(type_, TupleType):
        return all(map(_is_known, type_.fields))
    return not isinstance(type_, TensorType) or type_.concrete_shape is not None
