"""What a model shows of itself in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from serde.core.markup import figure, folded, table
from serde.core.texts import size_text
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.expr import Call, Op
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import TensorType, TupleType, Type

__all__ = ["model_html"]

_OPEN = 12


def model_html(model: RelayModel) -> str:
    """Return facts, inputs and outputs, operators and weights of a model, each as a table."""
    nodes = all_nodes(*model.mod.functions.values())
    counts = Counter(
        node.op.name for node in nodes if isinstance(node, Call) and isinstance(node.op, Op)
    )
    weights = model.params
    size = size_text(sum(weight.nbytes for weight in weights.values()))
    parameters = sum(weight.size for weight in weights.values())
    source = f"{model.meta.source_format} {model.meta.source_version}".strip()
    ports = list(_ports(model))
    operators = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = ((name, _shape(w.shape), w.dtype) for name, w in weights.items())
    listed = table(("weight", "shape", "dtype"), rows, total=len(weights))
    return figure(
        f"RelayModel from {source}" if source else "RelayModel",
        f"<p>{counts.total():,} operators, {parameters:,} parameters ({size})</p>",
        table(("", "name", "shape", "dtype"), ports),
        folded("operators", table(("operator", "count"), operators, right={1}),
               opened=len(operators) <= _OPEN),
        folded(f"{len(weights):,} weights", listed),
    )  # fmt: skip


def _ports(model: RelayModel) -> Iterator[tuple[str, str, str, str]]:
    for param in model.inputs():
        yield ("input", param.name_hint, *_type(param.type))
    result = model.main.body.type
    types = result.fields if isinstance(result, TupleType) else (result,)
    names = model.meta.outputs or [f"output{index}" for index in range(len(types))]
    for name, type_ in zip(names, types, strict=False):
        yield ("output", name, *_type(type_))


def _type(type_: Type | None) -> tuple[str, str]:
    if isinstance(type_, TensorType):
        return _shape(type_.shape), type_.dtype
    return ("unknown" if type_ is None else repr(type_)), ""


def _shape(shape: tuple[object, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
