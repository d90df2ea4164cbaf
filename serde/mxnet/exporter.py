"""From a Relay model to an MXNet model: lowering, emission, parameters."""

from __future__ import annotations

from serde.mxnet.builder import GraphBuilder
from serde.mxnet.export_walk import export_function
from serde.mxnet.model import MxnetModel, with_input_order
from serde.mxnet.ops import TABLE
from serde.mxnet.ops.recurrent.stack import STACK, MergeStacks
from serde.relay import transform
from serde.relay.ir.expr import Call, Constant, Function
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import post_order
from serde.report import Report

__all__ = ["from_relay"]


def from_relay(model: RelayModel, report: Report) -> MxnetModel:
    """Return `model` as MXNet's graph and parameters.

    Raises:
        UnsupportedModelError: MXNet cannot say some of the model.
    """
    model = _lowered(model, report)
    np_shape = _needs_np_shape(model.main)
    builder = GraphBuilder(TABLE, model.meta.outputs, np_shape=np_shape)
    outputs = export_function(model, TABLE, builder, report, np_shape=np_shape)
    report.raise_if_refused()
    graph = with_input_order(builder.finish(outputs), model.meta.inputs)
    if np_shape:
        report.notes.append(
            "load and run it under mxnet.util.np_shape(): it has scalars or empty tensors"
        )
    return MxnetModel(
        graph,
        builder.arg,
        builder.aux,
        input_order=model.meta.inputs,
        constants=frozenset(builder.constants & builder.arg.keys()),
    )


def _lowered(model: RelayModel, report: Report) -> RelayModel:
    """Return the model in operators that MXNet has."""

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, 1)

    passes = transform.Sequential(
        [
            transform.Inline(opaque=True),
            transform.ToGraphNormalForm(),
            transform.RaiseRecursion(),
            transform.DynamicToStatic(),
            transform.Compose(transform.box_nms_patterns(model.params)),
            transform.RaiseSliceLike(),
            transform.RaiseLayers(_is_whole, frozenset(model.params)),
            transform.channels_first(),
            transform.Legalize(supported, TABLE.expansion),
            transform.SimplifyExpr(),
            MergeStacks(),
            transform.SimplifyExpr(),
            transform.FoldConstant(),
        ]
    )
    model = model.evolve(mod=passes(model.mod))
    return transform.fold_weights(model, report=report, packing=(STACK,))


def _is_whole(node: Call) -> bool:
    """Whether MXNet has one operator for a layer that others spell out."""
    name = node.op.name if isinstance(node.op, OpDef) else ""
    return name in ("nn.dense", "nn.layer_norm", "serde.gelu") and TABLE.can_export(node, 1)


def _needs_np_shape(main: Function) -> bool:
    """Whether an end of the graph has no axis, or any tensor one of length 0."""
    nodes = (node for node in post_order(main.body) if isinstance(node, (Call, Constant)))
    ends = _tensors(*(param.type for param in main.params), main.body.type)
    inner = _tensors(*(node.type for node in nodes))
    return any(not type_.shape for type_ in ends) or any(0 in t.shape for t in [*ends, *inner])


def _tensors(*types: Type | None) -> list[TensorType]:
    """Return the tensor types, those of tuples among them."""
    pending, found = list(types), []
    while pending:
        type_ = pending.pop()
        if isinstance(type_, TupleType):
            pending.extend(type_.fields)
        elif isinstance(type_, TensorType):
            found.append(type_)
    return found
