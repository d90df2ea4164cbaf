"""The walk over Relay into MXNet's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.mxnet.builder import GraphBuilder, Value
from serde.mxnet.export_context import (
    ExportContext,
    Subgraph,
    Values,
    require_computed,
)
from serde.mxnet.model import COMPUTED, DIMS_KEY, DTYPES
from serde.relay.ir.dims import Dim, SymDim
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import use_counts
from serde.report import Report
from serde.walk.biases import fused_biases
from serde.walk.emission import structural, with_types
from serde.walk.placement import Scope, place
from serde.walk.table import ConverterTable

__all__ = ["export_function"]


def export_function(
    model: RelayModel,
    table: ConverterTable,
    builder: GraphBuilder,
    report: Report,
    *,
    np_shape: bool,
) -> list[Value]:
    """Emit the nodes of ``main`` and return its outputs; gaps go into `report`.

    Names of inputs and weights are kept.
    """
    main = model.main
    values: Values = {}
    for param in main.params:
        type_ = param.type
        if not isinstance(type_, TensorType):
            report.add("null", param.name_hint, f"MXNet has tensors only, found {type_!r}")
            values[param] = None
            continue
        weight = model.params.get(param.name_hint)
        if type_.dtype not in COMPUTED:
            report.add("null", param.name_hint, f"MXNet computes no {type_.dtype}")
        values[param] = builder.variable(param.name_hint, type_, weight, _declaration(type_))

    def write_scope(
        body: Function, values: Values, context: ExportContext
    ) -> Value | tuple[Value, ...] | None:
        return _export_scope(place(body.body), body.body, values, table, context, report)

    context = ExportContext(builder, np_shape, table, write_scope)
    result = _export_scope(place(main.body), main.body, values, table, context, report)
    for name, type_ in zip(model.meta.outputs, _fields(main.body.type), strict=False):
        if isinstance(type_, TensorType) and type_.dtype not in COMPUTED:
            report.add("output", name, f"MXNet computes no {type_.dtype}")
    if result is None or report.issues:
        return []
    return list(result) if isinstance(result, tuple) else [result]


def _fields(type_: Type | None) -> Sequence[Type | None]:
    return type_.fields if isinstance(type_, TupleType) else (type_,)


class _Captures(Values):
    """Values inside a subgraph; what is missing is taken from around it."""

    def __init__(self, outer: Values, context: ExportContext) -> None:
        super().__init__()
        self._outer = outer
        self._context = context

    def __missing__(self, node: Expr) -> Value | tuple[Value, ...] | None:
        found = self._outer[node]
        if isinstance(found, Value):
            found = self._context.captured(found)
        elif found is not None:
            found = tuple(self._context.captured(each) for each in found)
        self[node] = found
        return found


def _export_scope(
    scope: Scope,
    root: Expr,
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Export what lies in a scope and return the values of `root`."""
    biases = fused_biases(use_counts(root), dense_rank=None) if scope.parent is None else {}
    skipped = {call for call, _bias in biases.values()}
    for node in scope.nodes:
        if node in values or node in skipped or isinstance(node, (OpDef, Var)):
            continue
        if isinstance(node, If):
            values[node] = _export_if(node, scope.branches[node], values, table, context, report)
        else:
            values[node] = _export_node(node, values, biases, table, context, report)
    return values[root]


def _export_if(
    node: If,
    branches: tuple[Scope, Scope],
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return what a conditional gives: each branch becomes a subgraph."""
    condition = values[node.cond]
    name = node.span.source_name if node.span is not None else ""
    if not isinstance(condition, Value) or node.type is None:
        return None
    try:
        require_computed(node.type)
        context.enter(name or "cond", node.type)
        kinds = context.result_types()
        if context.np_shape or context.in_loop:
            return _chosen(node, branches, condition, values, table, context, report)
        number = context.cast(condition, "float32")
        decides = context.subgraph(["condition"], [context.type(number)], _same, 1)
        bodies = [decides]
        for scope, root in zip(branches, (node.true_branch, node.false_branch), strict=True):

            def write(
                inner: ExportContext, _: Sequence[Value], scope: Scope = scope, root: Expr = root
            ) -> Sequence[Value]:
                found = _export_scope(scope, root, _Captures(values, inner), table, inner, report)
                if found is None:
                    raise Unsupported("a branch cannot be written")
                return found if isinstance(found, tuple) else (found,)

            bodies.append(context.subgraph([], [], write, len(kinds)))
        results = emit_cond(context, number, bodies, len(kinds))
    except (Unsupported, TypeInferenceError) as error:
        report.add("If", name or "If", str(error), getattr(error, "hint", None))
        return None
    result = results if isinstance(node.type, TupleType) else results[0]
    return with_types(result, node.type, context.typed)


def _chosen(
    node: If,
    branches: tuple[Scope, Scope],
    condition: Value,
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Compute both branches and choose.

    MXNet 1.9.1 runs no ``_cond`` with NumPy's shapes, and infers no shapes of one in a loop.
    """
    source, kinds = context.source, context.result_types()
    pair = []
    for scope, root in zip(branches, (node.true_branch, node.false_branch), strict=True):
        found = _export_scope(scope, root, values, table, context, report)
        if found is None:
            return None
        pair.append(found if isinstance(found, tuple) else (found,))
    if node.type is None:
        raise ConverterBug(f"{source}: {node!r} is not typed")
    context.enter(source, node.type)
    results = tuple(
        replace(context.emit("_npi_where", condition, one, two), type=kind)
        for one, two, kind in zip(*pair, kinds, strict=True)
    )
    return results if isinstance(node.type, TupleType) else results[0]


def _same(_: ExportContext, variables: Sequence[Value]) -> Sequence[Value]:
    return variables


def emit_cond(
    ctx: ExportContext, condition: Value, bodies: Sequence[Subgraph], outputs: int
) -> tuple[Value, ...]:
    """Emit a conditional; each subgraph says where among the inputs its variables are."""
    inputs = [condition]
    locations = []
    for body in bodies:
        own = []
        for name in body.variables:
            value = body.captured.get(name, condition)
            if value not in inputs:
                inputs.append(value)
            own.append(inputs.index(value))
        locations.append(own)
    return ctx.emit_with_bodies(
        "_cond",
        inputs,
        bodies,
        outputs,
        num_args=len(inputs) + 3,
        num_outputs=outputs,
        cond_input_locs=str(locations[0]),
        then_input_locs=str(locations[1]),
        else_input_locs=str(locations[2]),
    )


def _declaration(type_: TensorType) -> dict[str, str]:
    """Return what is noted on an input: shape (0 or, with scalars, -1 is open) and dtype."""
    hidden = {"__dtype__": str(DTYPES.index(type_.dtype))} if type_.dtype in DTYPES else {}
    shape = type_.concrete_shape
    if shape is not None:
        return {"__shape__": str(shape), **hidden}
    return {
        DIMS_KEY: ",".join(map(_dim_text, type_.shape)),
        **hidden,
    }


def _dim_text(dim: Dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    return (isinstance(dim, SymDim) and dim.name) or "?"


def _export_node(
    node: Expr,
    values: Values,
    biases: Mapping[Expr, tuple[Call, Expr]],
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return the values of one expression, or None where it could not be exported."""
    name = node.span.source_name if node.span is not None else ""
    if isinstance(node, (Constant, Tuple, TupleGetItem)):
        try:
            return structural(node, values, context.const)
        except Unsupported as error:
            report.add("constant", name or "constant", str(error))
            return None
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        kind = type(node).__name__ if not isinstance(node, Call) else "call of a function"
        report.add(kind, name, "has no counterpart in an MXNet graph")
        return None
    call, extra = (node, ()) if node not in biases else (biases[node][0], (biases[node][1],))
    operands = [values[argument] for argument in (*call.args, *extra)]
    if not isinstance(call.op, OpDef) or node.type is None:
        raise ConverterBug(f"{name}: {node!r} is not typed")
    label = call.op.name
    try:
        require_computed(node.type)
        if any(operand is None for operand in operands):
            table.bind_export(call, 1)
            return None
        context.enter(name or label.rsplit(".", 1)[-1], node.type)
        result = table.run_export(context, call, operands, 1)
    except (Unsupported, TypeInferenceError) as error:
        hint = error.hint if isinstance(error, Unsupported) else None
        report.add(label, name or label, str(error), hint)
        return None
    return with_types(result, node.type, context.typed)
