"""From a Relay model to an MXNet model: lowering, graph, parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any as AnyValue

from serde.core import Report, Weight
from serde.errors import Unsupported, raise_if_refused
from serde.mxnet.builder import GraphBuilder, Subgraph, Value
from serde.mxnet.export_context import ExportContext, require_computed
from serde.mxnet.model import COMPUTED, DIMS_KEY, DTYPES, METADATA_KEY, MxnetModel, with_input_order
from serde.mxnet.operators import is_dynamic
from serde.mxnet.ops import TABLE
from serde.mxnet.ops.recurrent.stack import MERGE_STACKS, STACK
from serde.relay import transform
from serde.relay.ir import Dim, Foreign, OpDef, RelayModel, SymDim, all_nodes, post_order
from serde.relay.ir.expr import Call, Constant, Expr, Function, If
from serde.relay.ir.leaves import leaf_types, output_names
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type
from serde.relay.transform.fold_empty import FoldEmpty
from serde.walk.export_context import Values
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk, Known
from serde.walk.lowering import lower_to_static
from serde.walk.placement import Scope
from serde.walk.table import source_name

__all__ = ["from_relay"]


def from_relay(
    model: RelayModel, report: Report, fallback: ExportFallback | None = None
) -> MxnetModel:
    """Return `model` as MXNet's graph and parameters.

    Args:
        model: The model.
        report: Filled with gaps.
        fallback: What is done with operators that nobody knows.

    Raises:
        UnsupportedModelError: MXNet cannot say some of the model.
    """
    model = _lowered(model, report)
    np_shape = _needs_np_shape(model.main)
    builder = GraphBuilder(TABLE, model.meta.outputs, np_shape=np_shape)
    walk = _MxnetWalk(model, builder, report, fallback)
    inputs = tuple(builder.name_of(each) for each in walk.declare())
    outputs = walk.write()
    raise_if_refused(report)
    _check_outputs(model, report)
    graph = with_input_order(builder.finish(outputs), inputs)
    if model.meta.metadata:
        graph.attrs[METADATA_KEY] = json.dumps(model.meta.metadata)
    if np_shape:
        report.notes.append(
            "load and run it under mxnet.util.np_shape(): it has scalars or empty tensors"
        )
    if is_dynamic(graph):
        report.notes.append(
            "run it as a Gluon block (SymbolBlock), under mxnet.util.np_shape() if a length may be "
            "0: values decide shapes or branches, which MXNet's executors do not compute with"
        )
    return MxnetModel(
        graph,
        builder.arg,
        builder.aux,
        input_order=inputs,
        constants=frozenset(builder.constants & builder.arg.keys()),
    )


def _lowered(model: RelayModel, report: Report) -> RelayModel:
    """Return the model in operators that MXNet has."""
    supported = partial(TABLE.can_export, version=1)
    return lower_to_static(
        model,
        TABLE,
        supported,
        report,
        before=[
            FoldEmpty(),
            *_raised_suppressions(model),
            transform.RaiseSliceLike(),
            transform.RaiseLayers(_is_whole, frozenset(model.params)),
        ],
        after=[MERGE_STACKS, FoldEmpty(), transform.RemoveIdentities()],
        packing=(STACK.name,),
    )


def _raised_suppressions(model: RelayModel) -> list[transform.Compose]:
    """Return the pass that finds suppressions of boxes spelled out, where boxes are suppressed."""
    calls = (n for n in all_nodes(*model.mod.functions.values()) if isinstance(n, Call))
    if any(isinstance(n.op, OpDef) and n.op.name == "serde.non_max_suppression" for n in calls):
        return [transform.Compose(transform.box_nms_patterns(model.params))]
    return []


def _is_whole(node: Call) -> bool:
    """Whether MXNet has one operator for a layer that others spell out."""
    name = node.op.name if isinstance(node.op, OpDef) else ""
    return name in ("nn.dense", "nn.layer_norm", "serde.gelu") and TABLE.can_export(node, 1)


def _needs_np_shape(main: Function) -> bool:
    """Whether an end of the graph has no axis, or any tensor one of length 0."""
    nodes = [node for node in post_order(main.body) if isinstance(node, (Call, Constant))]
    ends = _tensors(*(param.type for param in main.params), main.body.type)
    inner = _tensors(*(node.type for node in nodes))
    if any(not type_.shape for type_ in ends) or any(0 in t.shape for t in [*ends, *inner]):
        return True
    return any(isinstance(node, Call) and _stacks_nothing(node) for node in nodes)


def _stacks_nothing(node: Call) -> bool:
    """Whether a node is a loop that never runs, with stacks, whose types may leave that open."""
    if not isinstance(node.op, OpDef) or node.op.name != "serde.loop":
        return False
    limit, going, state, _ = node.args
    never = any(isinstance(each, Constant) and int(each.data) <= 0 for each in (limit, going))
    return never and len(_tensors(node.type)) > len(_tensors(state.type))


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


def _check_outputs(model: RelayModel, report: Report) -> None:
    """Refuse outputs that are constants of a dtype that MXNet has not, for these are widened."""
    result = model.main.body.type
    names = output_names(model.meta.outputs, result)
    for name, type_ in zip(names, leaf_types(result), strict=True):
        if type_.dtype not in COMPUTED:
            report.add("output", name, f"MXNet computes no {type_.dtype}")
    raise_if_refused(report)


class _MxnetWalk(ExportWalk[Value]):
    """The walk into an MXNet graph, whose subgraphs see nothing of what is around them.

    MXNet 1.9.1 runs no ``_cond`` with NumPy's shapes, and infers no shapes of one in a loop: both
    branches are computed there, and a ``where`` chooses.
    """

    _context: ExportContext

    def __init__(
        self,
        model: RelayModel,
        builder: GraphBuilder,
        report: Report,
        fallback: ExportFallback | None,
    ) -> None:
        super().__init__(model, TABLE, ExportContext(TABLE, builder), report, fallback)
        self._builder = builder

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Add a variable."""
        if not isinstance(type_, TensorType):
            raise Unsupported(f"MXNet has tensors only, found {type_!r}")
        require_computed(type_)
        return self._builder.variable(name, type_, weight, _declaration(type_))

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Write an operator as it was, or as a ``Custom``."""
        from serde.mxnet.foreign import write_foreign

        return write_foreign(self._context, node, operands)

    def branch_name(self, node: If) -> str:
        """Return what a conditional is called."""
        return source_name(node) or "cond"

    @contextmanager
    def branch(self, scope: Scope, values: Known[Value]) -> Iterator[Known[Value]]:
        """Write into a graph of its own meanwhile, or where both branches are computed, here."""
        with super().branch(scope, values):
            if self._computes_both:
                yield values
                return
            with self._context.graph(len(self._context.result_types())) as inner:
                yield _Captures(values, inner)

    @property
    def _computes_both(self) -> bool:
        return self._context.np_shape or self._context.in_loop

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the results, or the graph that yields them."""
        return results if self._computes_both else self._context.finish(results)

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Add a ``_cond``, or what chooses between results."""
        context = self._context
        kinds = context.result_types()
        if self._computes_both:
            return [
                replace(context.where(condition, one, two, kind.shape), type=kind)
                for one, two, kind in zip(*branches, kinds, strict=True)
            ]
        number = context.cast(condition, "float32")
        decides = context.identity(["condition"], [context.type(number)])
        return _emit_cond(context, number, [decides, *branches], len(kinds))


class _Captures(Known[Value]):
    """Values inside a subgraph; what is missing is taken from around it."""

    def __init__(self, outer: Known[Value], inner: GraphBuilder) -> None:
        super().__init__()
        self._outer = outer
        self._inner = inner

    def __missing__(self, node: Expr) -> Values[Value] | None:
        found = self._outer[node]
        self[node] = found if found is None else self._captured(found)
        return self[node]

    def _captured(self, found: Values[Value]) -> Values[Value]:
        if isinstance(found, Value):
            return self._inner.capture(found)
        return tuple(map(self._captured, found))


def _emit_cond(
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
        "_cond", inputs, bodies, outputs, num_args=len(inputs) + 3, num_outputs=outputs,
        cond_input_locs=str(locations[0]), then_input_locs=str(locations[1]),
        else_input_locs=str(locations[2]),
    )  # fmt: skip


def _declaration(type_: TensorType) -> dict[str, str]:
    """Return what is noted on an input: shape (0 or, with scalars, -1 is open) and dtype."""
    hidden = {"__dtype__": str(DTYPES.index(type_.dtype))} if type_.dtype in DTYPES else {}
    shape = type_.concrete_shape
    if shape is not None:
        return {"__shape__": str(shape), **hidden}
    return {DIMS_KEY: ",".join(map(_dim_text, type_.shape)), **hidden}


def _dim_text(dim: Dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    return (isinstance(dim, SymDim) and dim.name) or "?"
