"""From a Relay model to an ONNX model: the graph, and the model around it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any as AnyValue, Final, Literal

import onnx
from onnx import helper

from serde._version import __version__
from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import OptionError, Unsupported, UnsupportedModelError, raise_if_refused
from serde.onnx.builder import (
    FUNCTION_DOMAIN,
    SEQUENCE_IDENTITY,
    SEQUENCE_SUBGRAPHS,
    Draft,
    GraphBuilder,
    Value,
    ValueType,
    require_sequences,
    walk_nodes,
)
from serde.onnx.export_context import MAX_LEVEL, ExportContext
from serde.onnx.foreign import write_node
from serde.onnx.functions import FunctionCall, LocalFunctions, structure_of
from serde.onnx.inference import captures, infer_shapes
from serde.onnx.interface import value_type_proto
from serde.onnx.lowering import as_qdq, for_runtime, lower
from serde.onnx.model import PRODUCER, OnnxModel
from serde.onnx.ops import TABLE
from serde.onnx.schemas import check_opset, newest_opset, require_dtype
from serde.onnx.versions import DEFAULT_TARGET
from serde.relay import transform
from serde.relay.ir import Call, Foreign, Function, If, RelayModel, output_names, value_types
from serde.relay.ir.foreign import is_foreign
from serde.relay.ir.types import SequenceType
from serde.walk.export_context import SymbolTable, Values, known_leaves
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk, name_outputs
from serde.walk.placement import Scope
from serde.walk.table import source_name

__all__ = ["from_relay", "write_lowered"]

Lowering = Callable[..., RelayModel]

_FUNCTIONS_IR_VERSION: Final = 8


def from_relay(
    model: RelayModel,
    opset: int | Literal["auto"],
    intermediate_shapes: bool,
    report: Report,
    *,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    allow: frozenset[str] = frozenset(),
    local_functions: bool = False,
    link_weights: bool = False,
    runtime: Literal["any", "onnxruntime"] = "any",
    fallback: ExportFallback | None = None,
    lowered: Lowering = lower,
) -> OnnxModel:
    """Return `model` as ONNX.

    Args:
        model: The model.
        opset: Version of the default operator set, or "auto" for the lowest from the default on
            that can say the whole model.
        intermediate_shapes: Whether the types of all intermediate values are noted.
        report: Filled with gaps, losses and facts.
        quantized: Quantised operators step by step in integers, between linear operators, or
            besides that with products in one step.
        allow: Names of lossy steps that may be taken.
        local_functions: Whether global, composite and fused functions become local functions
            of the model; otherwise their nodes go where they are called.
        link_weights: Whether large weights in files stay as they are where the graph can
            rearrange them.
        runtime: What runs it: operators that it adds may be written.
        fallback: What is done with operators that nobody knows.
        lowered: Returns the model in operators that may be written, as :func:`lower` does.

    Raises:
        OptionError: That version is not written, or has no local functions.
        UnsupportedModelError: ONNX cannot say some of the model at that version; of "auto", at
            the newest.
    """
    write = partial(
        _write_model, model, intermediate_shapes=intermediate_shapes, quantized=quantized,
        allow=allow, local_functions=local_functions, link_weights=link_weights,
        runtime=runtime, fallback=fallback, lowered=lowered,
    )  # fmt: skip
    if opset != "auto":
        return write(opset, report)
    for version in range(DEFAULT_TARGET, newest_opset()):
        trial = report.trial()
        with suppress(UnsupportedModelError):
            native = write(version, trial)
            report.adopt(trial)
            return native
    return write(newest_opset(), report)


@pause_garbage_collection()
def _write_model(
    model: RelayModel,
    opset: int,
    report: Report,
    *,
    intermediate_shapes: bool,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"],
    allow: frozenset[str],
    local_functions: bool,
    link_weights: bool,
    runtime: Literal["any", "onnxruntime"],
    fallback: ExportFallback | None,
    lowered: Lowering,
) -> OnnxModel:
    """Return `model` at one version of the default operator set."""
    check_opset(opset, local_functions=local_functions)
    if quantized != "exact":
        model = as_qdq(model, report, allow, whole=quantized == "qlinear")
    if quantized in ("onnxruntime", "tensorrt"):
        model = for_runtime(model, quantized, report, allow)
    if quantized == "qlinear":
        model = model.evolve(mod=transform.QuantizedAsLinear()(model.mod))
    model = lowered(model, opset, local_functions, report, in_place=link_weights, runtime=runtime)
    return write_lowered(
        model, opset, report,
        intermediate_shapes=intermediate_shapes, local_functions=local_functions,
        fallback=fallback,
    )  # fmt: skip


def write_lowered(
    model: RelayModel,
    opset: int,
    report: Report,
    *,
    intermediate_shapes: bool = False,
    local_functions: bool = False,
    fallback: ExportFallback | None = None,
) -> OnnxModel:
    """Return what is left to write of a model whose operators are those of the target.

    Args:
        model: A model that is lowered.
        opset: Version of the default operator set.
        report: Filled with gaps and facts.
        intermediate_shapes: Whether the types of all intermediate values are noted.
        local_functions: Whether functions that are left become local functions.
        fallback: What users give for operators that are not known.

    Raises:
        UnsupportedModelError: ONNX cannot say some of the model at that version.
    """
    native = _write_native(model, opset, report, intermediate_shapes, local_functions, fallback)
    report.facts |= {"opset": opset, "ir_version": native.proto.ir_version}
    _check_nesting(native.proto)
    infer_shapes(native)
    return native


def _write_native(
    model: RelayModel,
    opset: int,
    report: Report,
    intermediate_shapes: bool,
    local_functions: bool,
    fallback: ExportFallback | None,
) -> OnnxModel:
    """Return a lowered model; all that the walk noted is forgotten by then."""
    builder = GraphBuilder(opset, intermediate_shapes=intermediate_shapes)
    walk = _OnnxWalk(model, builder, report, fallback, local_functions=local_functions)
    inputs = walk.declare()
    names = [
        builder.reserve(name if builder.is_free(name) else f"{name}_output")
        for name in output_names(model.meta.outputs, model.main.body.type)
    ]
    outputs = _name_outputs(walk.write(), names, builder, report)
    raise_if_refused(report)
    return _make_native(model, builder, inputs, outputs)


class _OnnxWalk(ExportWalk[Value]):
    """The walk into an ONNX graph, whose subgraphs see what is around them."""

    dense_rank = 2
    most_levels = MAX_LEVEL
    takes_tuples = True
    _context: ExportContext

    def __init__(
        self,
        model: RelayModel,
        builder: GraphBuilder,
        report: Report,
        fallback: ExportFallback | None,
        *,
        local_functions: bool,
    ) -> None:
        super().__init__(model, TABLE, ExportContext(TABLE, builder), report, fallback)
        self._builder = builder
        self._composites = LocalFunctions(builder)
        self._functions = self._composites if local_functions else None

    def parameter(self, name: str, type_: ValueType, weight: Weight | None) -> Value:
        """Declare an input or an initializer."""
        element = type_.element if isinstance(type_, SequenceType) else type_
        require_dtype(element.dtype, self._builder.version)
        value = Value(self._builder.reserve(name), type_)
        if weight is not None:
            self._builder.weights[value.name] = weight
        return value

    def note(self, values: Sequence[Value]) -> None:
        """Note the types of values, which the graph may declare."""
        types = self._context.scope.types
        for value in values:
            if value.type is not None:
                types.setdefault(value.name, self._context.public(value.type))

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Add a node as it was, or of a domain of the framework that it comes from."""
        found = write_node(self._builder, self._context.scope, node, operands, self._context.source)
        return found if len(found) > 1 else found[0]

    def branch_name(self, node: If) -> str:
        """Return a name that is kept for the conditional until it is written."""
        return self._builder.hold(super().branch_name(node))

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the branch as it is: its results get their names when both are there."""
        return scope, results

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Add an ``If``."""
        types = value_types(node.type)
        if not types:
            return ()
        require_sequences("If", types, self._builder.version, SEQUENCE_SUBGRAPHS)
        graphs = [
            self._builder.graph(scope, (), results, list(map(self._context.public, declared)))
            for (scope, results), declared in zip(
                branches,
                map(value_types, (node.true_branch.type, node.false_branch.type)),
                strict=True,
            )
        ]
        attrs = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        return self._builder.add(self._context.scope, "If", [condition], len(types), attrs, name)

    def local_call(
        self, node: Call, function: Function, name: str, given: Sequence[Values[Value]]
    ) -> Generator[AnyValue, AnyValue, Sequence[Value] | None] | None:
        """Add a call of a local function, or what has one; those that are equal are one."""
        call = self._functions and self._functions.call(function, name, given)
        if is_foreign(node):
            held = Foreign.of(node)
            key = (held.written_name, structure_of(function))
            call = FunctionCall(self._composites, function, "", given, key, held)
        return self._write_call(call, source_name(node)) if call else None

    def _write_call(
        self, call: FunctionCall, source: str
    ) -> Generator[AnyValue, AnyValue, Sequence[Value] | None]:
        """Write a call of a function, and the function where this is its first call."""
        if not call.is_known():
            scope, values = call.enter()
            symbols: SymbolTable[Value] = SymbolTable()
            symbols.add(scope, known_leaves(values))
            call.leave(scope, (yield self.function(call.function, scope, values, symbols)))
        return call.emit(self._context.scope, source)


def _name_outputs(
    outputs: Sequence[Value], names: Sequence[str], builder: GraphBuilder, report: Report
) -> list[Value]:
    """Give the outputs their names: a node's result by renaming it, anything else by Identity."""
    if not outputs:
        return []

    def copy(value: Value, name: str) -> str:
        held = () if value.type is None else (value.type,)
        require_sequences("Identity", held, builder.version, SEQUENCE_IDENTITY)
        builder.main.nodes.append(Draft("Identity", builder.reserve(name), [value.name], [name]))
        return name

    produced = {name for node in builder.main.nodes for name in node.outputs}
    try:
        renamed = name_outputs(outputs, names, lambda value: value.name, produced, copy)
    except Unsupported as error:
        report.add("output", ", ".join(names), str(error), error.hint)
        return []
    for node in builder.main.nodes:
        _rename(node.inputs, renamed)
        _rename(node.outputs, renamed)
        for graph in node.inner():
            for inner in walk_nodes(graph.node):
                _rename(inner.input, renamed)
                _rename(inner.output, renamed)
    return [replace(value, name=name) for value, name in zip(outputs, names, strict=True)]


def _rename(names: MutableSequence[str], renamed: Mapping[str, str]) -> None:
    for index, each in enumerate(names):
        if each in renamed:
            names[index] = renamed[each]


def _make_native(
    model: RelayModel, builder: GraphBuilder, inputs: list[Value], outputs: list[Value]
) -> OnnxModel:
    """Return the model of the nodes that outputs depend on, with their weights and functions."""
    nodes, used = _take_used(builder.main.nodes, outputs)
    weights = {name: each for name, each in builder.weights.items() if name in used}
    graph = helper.make_graph(
        nodes=(),
        name=model.meta.extra.get("name", "main"),
        inputs=[
            value_type_proto(value.name, value.type) for value in inputs if value.type is not None
        ],
        outputs=[
            value_type_proto(value.name, value.type) for value in outputs if value.type is not None
        ],
        initializer=[tensor for name, tensor in builder.initializers.items() if name in used],
    )
    if builder.intermediate_shapes:
        final = {value.name for value in outputs}
        graph.value_info.extend(
            value_type_proto(name, type_)
            for name, type_ in builder.main.types.items()
            if name in used and name not in final and name not in weights
        )
    else:
        ends = {value.name for value in (*inputs, *outputs)}
        graph.value_info.extend(
            value_type_proto(name, type_)
            for name, type_ in builder.declared.items()
            if name in used and name not in ends
        )
    own = helper.make_opsetid("", builder.version)
    own_domain = any(each.domain == FUNCTION_DOMAIN for each in builder.functions)
    opsets = [own, helper.make_opsetid(FUNCTION_DOMAIN, 1)] if own_domain else [own]
    opsets += [helper.make_opsetid(*each) for each in builder.domains.items()]
    proto = helper.make_model(
        graph,
        opset_imports=opsets,
        functions=builder.functions,
        producer_name=PRODUCER,
        producer_version=__version__,
        doc_string=model.meta.description,
    )
    proto.ir_version = helper.find_min_ir_version_for([own])
    if builder.functions:
        overloaded = any(each.overload for each in builder.functions)
        proto.ir_version = max(proto.ir_version, 10 if overloaded else _FUNCTIONS_IR_VERSION)
    facts = {"source_format": model.meta.source_format, "source_version": model.meta.source_version}
    facts = {**model.meta.metadata, **facts}
    helper.set_model_props(proto, {key: value for key, value in facts.items() if value})
    while nodes:
        nodes.pop().add_to(proto.graph)
    return OnnxModel(proto, weights)


def _take_used(nodes: list[Draft], outputs: list[Value]) -> tuple[list[Draft], set[str]]:
    """Take out all nodes; return those that outputs depend on, first one last, and what they read.

    Nodes are handed over, so that each can go as soon as its message is there.
    """
    used = {value.name for value in outputs}
    kept = []
    while nodes:
        node = nodes.pop()
        if used.isdisjoint(node.outputs):
            continue
        kept.append(node)
        used.update(node.inputs)
        used |= captures(node.inner())
    return kept, used


_MAX_DEPTH: Final = 100
"""Deepest chain of calls of local functions that ONNX's own checks take."""
_MAX_SPELT_OUT: Final = 2**20
"""Most nodes of local functions with all that they call; runtimes spell them out."""


def _check_nesting(proto: onnx.ModelProto) -> None:
    """Refuse local functions that call each other too deeply, or too often, to be spelled out."""
    if proto.functions and [each.domain for each in proto.opset_import].count(FUNCTION_DOMAIN) > 1:
        raise OptionError(
            f"local_functions: operators of the domain {FUNCTION_DOMAIN}, which local functions "
            "have, are kept in this model"
        )
    depths: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for function in proto.functions:  # What a function calls comes before it.
        called = [node.op_type for node in walk_nodes(function.node) if node.domain]
        depths[function.name] = 1 + max((depths.get(each, 0) for each in called), default=0)
        sizes[function.name] = len(function.node) + sum(sizes.get(each, 0) for each in called)
        if depths[function.name] >= _MAX_DEPTH or sizes[function.name] > _MAX_SPELT_OUT:
            raise OptionError(
                f"local_functions: {function.name} is {depths[function.name]} calls deep and "
                f"{sizes[function.name]} nodes with all that it calls; ONNX takes less than "
                f"{_MAX_DEPTH} and runtimes no more than {_MAX_SPELT_OUT}"
            )
