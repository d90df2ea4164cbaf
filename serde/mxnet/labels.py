"""Variables that a file gives no value: labels of loss heads, and parameters that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.mxnet.aliases import canonical_name
from serde.mxnet.model import MxnetModel, Node
from serde.mxnet.ops import TABLE
from serde.relay.ir.dims import Dim, DimLike, product
from serde.walk.inputs import missing_shapes_text

__all__ = ["label_shape", "missing_parameters", "missing_text"]

_PARAMETERS = frozenset(
    {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters"}
)
"""What MXNet calls the inputs of its operators that are learned."""

_REGRESSIONS = frozenset(
    {"LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput"}
)


def label_shape(node: Node, data: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """Return the shape that MXNet infers for the label of a loss head; None for another operator.

    Args:
        node: The loss head.
        data: Shape of its data.
    """
    op = canonical_name(node.op)
    if op == "SVMOutput":
        return (data[0],)
    if op in _REGRESSIONS:
        return (data[0],) if len(data) == 2 and data[1] == 1 else tuple(data)
    if op != "SoftmaxOutput":
        return None
    if node.attrs.get("multi_output", "0").lower() in ("1", "true"):
        return (data[0], product(data[2:]))
    return tuple(data[:-1])


def missing_parameters(model: MxnetModel, names: Sequence[str]) -> list[str]:
    """Return those of `names` that stand where an operator takes a learned parameter."""
    nodes = model.graph.nodes
    wanted = set(names)
    found: dict[str, None] = {}
    for node in nodes:
        if node.is_variable:
            continue
        operands: Sequence[str] | None = None
        for index, entry in enumerate(node.inputs):
            name = nodes[entry.node].name
            if not nodes[entry.node].is_variable or name not in wanted:
                continue
            operands = _operands(node.op) if operands is None else operands
            if index < len(operands) and operands[index] in _PARAMETERS:
                found[name] = None
    return list(found)


def _operands(op: str) -> list[str]:
    converter = TABLE.importer(canonical_name(op), 1)
    if converter is None:
        return []
    return list(converter.operands[: converter.accepted or -1])


def missing_text(model: MxnetModel, names: Sequence[str]) -> str:
    """Return what to say of variables that have neither a value nor a shape."""
    parameters = missing_parameters(model, names)
    if not parameters:
        return missing_shapes_text(names)
    verb = "is" if len(parameters) == 1 else "are"
    if not model.arg and not model.aux:
        return (
            f"the model has no parameters; {_list_names(parameters)} {verb} needed: "
            "give the parameter file beside the symbol"
        )
    where = f"the parameter file {model.params_source}" if model.params_source else "the parameters"
    shapes: Mapping[str, tuple[DimLike, ...]] = {parameters[0]: (64, 3, 7, 7)}
    return (
        f"{_list_names(parameters)} {verb} not in {where}; is it the one of this symbol? "
        f"To make inputs of them, give their shapes: input_shapes={dict(shapes)}"
    )


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
