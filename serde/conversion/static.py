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
        shape = each.type.shape if isinstance(each.type, TensorType) else ()
        dims = [f"axis {axis} ({dim})" for axis, dim in enumerate(shape) if type(dim) is not int]
        if dims or not isinstance(each.type, TensorType):
            what = f"the length of {', '.join(dims)}" if dims else f"{each.type!r}, no tensor,"
            example = ",".join(str(dim if type(dim) is int else 1) for dim in shape) or "1"
            raise OptionError(
                f"static: {what} of input {each.name_hint} is open; give all of them: "
                f"--input-shape {each.name_hint}:{example}"
            )


def refuse_open_lengths(model: RelayModel, report: Report) -> None:
    """Make issues of the nodes whose results have lengths that the values of inputs decide.

    Args:
        model: The model, its shape arithmetic evaluated.
        report: Gets the issues; what merely depends on such a node is none.
    """
    for function in model.mod.functions.values():
        for node in all_nodes(function):
            if isinstance(node, Var) or _is_known(node.type):
                continue
            if all(_is_known(each.type) for each in children(node)):
                made = node.op if isinstance(node, Call) else None
                op = made.name if isinstance(made, OpDef) else type(node).__name__
                name = op if node.span is None else node.span.source_name
                report.add(op, name, f"static: values decide the lengths of {node.type!r}")


def _is_known(type_: Type | None) -> bool:
    """Whether all lengths of a type are numbers."""
    if isinstance(type_, TupleType):
        return all(map(_is_known, type_.fields))
    return not isinstance(type_, TensorType) or type_.concrete_shape is not None
