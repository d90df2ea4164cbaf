"""From a Relay model to an ONNX model: lowering, emission, and the model around the graph."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final, Literal

import onnx
from onnx import helper

from serde._version import __version__
from serde.errors import ConverterBug, OptionError, UnsupportedModelError
from serde.onnx.builder import FUNCTION_DOMAIN, GraphBuilder, Value
from serde.onnx.declarations import value_type_proto
from serde.onnx.export_walk import export_function
from serde.onnx.model import PRODUCER, OnnxModel
from serde.onnx.ops import TABLE
from serde.onnx.schemas import newest_opset
from serde.onnx.versions import DEFAULT_TARGET, LOWEST_TARGET
from serde.relay import transform
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.collection import without_collection
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Let, Tuple, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import rewrite
from serde.report import Issue, Report

__all__ = ["from_relay"]

FIRST_WITH_FUNCTIONS: Final = 15
"""First version of the operator set with which a model may have local functions."""

_FUNCTIONS_IR_VERSION: Final = 8

FIRST_WITH_NIBBLES: Final = 21
"""First version of the operator set that has integers of 4 bits."""

_BYTES: Final = {"int4": "int8", "uint4": "uint8"}


AS_QDQ = "quantised-as-qdq"
"""Name of the step that computes quantised operators on floats, rounding halves to even."""


def from_relay(
    model: RelayModel,
    opset: int | Literal["auto"],
    intermediate_shapes: bool,
    report: Report,
    *,
    quantized: Literal["exact", "qdq", "qlinear"] = "exact",
    allow: frozenset[str] = frozenset(),
    local_functions: bool = False,
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

    Raises:
        OptionError: That version is not written, or has no local functions.
        UnsupportedModelError: ONNX cannot say some of the model at that version; of "auto", at
            the newest.
    """
    write = partial(
        _written, model, intermediate_shapes=intermediate_shapes, quantized=quantized,
        allow=allow, local_functions=local_functions,
    )  # fmt: skip
    if opset != "auto":
        return write(opset, report)
    for version in range(DEFAULT_TARGET, newest_opset()):
        attempt = replace(
            report, issues=[], allowed=[*report.allowed], notes=[*report.notes],
            facts={**report.facts},
        )  # fmt: skip
        with suppress(UnsupportedModelError):
            native = write(version, attempt)
            report.allowed, report.notes = attempt.allowed, attempt.notes
            report.facts = attempt.facts
            return native
    return write(newest_opset(), report)


@without_collection()
def _written(
    model: RelayModel,
    opset: int,
    report: Report,
    *,
    intermediate_shapes: bool,
    quantized: Literal["exact", "qdq", "qlinear"],
    allow: frozenset[str],
    local_functions: bool,
) -> OnnxModel:
    """Return `model` at one version of the default operator set."""
    if not isinstance(opset, int) or not LOWEST_TARGET <= opset <= newest_opset():
        raise OptionError(f"opset {opset}: expected {LOWEST_TARGET} to {newest_opset()}")
    if local_functions and opset < FIRST_WITH_FUNCTIONS:
        raise OptionError(
            f"local_functions: expected opset {FIRST_WITH_FUNCTIONS} or later, found {opset}"
        )
    if quantized != "exact":
        model = _as_qdq(model, report, allow, whole=quantized == "qlinear")
    if quantized == "qlinear":
        model = model.evolve(mod=transform.QuantizedAsLinear()(model.mod))
    model = _lowered(model, opset, local_functions, report)
    builder = GraphBuilder(opset, intermediate_shapes=intermediate_shapes)
    inputs, outputs = export_function(
        model, TABLE, builder, report, local_functions=local_functions
    )
    report.raise_if_refused()
    native = _native(model, builder, inputs, outputs)
    report.facts |= {"opset": opset, "ir_version": native.proto.ir_version}
    _infer_shapes(native)
    return native


_WHOLE: Final = ("serde.qlinear_conv2d", "serde.qlinear_matmul")


def _as_qdq(model: RelayModel, report: Report, allow: frozenset[str], *, whole: bool) -> RelayModel:
    """Return the model on floats; products in one step may stay `whole`."""
    steps: list[transform.Pass] = [transform.QuantizedAsFloat()]
    if not whole:
        steps.append(transform.Legalize(supported=_is_no_whole))
    mod, changed = transform.Sequential(steps).run(model.mod)
    if not changed:
        return model
    what = "quantised operators are computed on floats and round halves to even"
    issue = Issue("qnn", "main", what, f"allow {AS_QDQ!r}")
    (report.allowed if AS_QDQ in allow else report.issues).append(issue)
    report.raise_if_refused()
    return model.evolve(mod=mod)


def _is_no_whole(node: Call) -> bool:
    return not isinstance(node.op, OpDef) or node.op.name not in _WHOLE


_WHOLE_SINCE: Final = {"nn.layer_norm": 17, "serde.gelu": 20, "serde.layer_norm": 17}
"""Versions from which on a layer is one operator that models spell out for older ones."""


def _lowered(model: RelayModel, opset: int, local_functions: bool, report: Report) -> RelayModel:
    """Return the model in operators that ONNX has at that version."""
    model = model.evolve(mod=_without_calls(model.mod, keep=local_functions))

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, opset)

    def whole(node: Call) -> bool:
        name = node.op.name if isinstance(node.op, OpDef) else ""
        if name == "nn.dense":
            return isinstance(node.type, TensorType) and node.type.rank == 2
        return opset >= _WHOLE_SINCE.get(name, opset + 1) and supported(node)

    passes = transform.Sequential(
        [
            transform.RaiseLayers(whole, frozenset(model.params)),
            *([] if opset >= FIRST_WITH_NIBBLES else [_BytesForNibbles()]),
            transform.channels_first(),
            transform.Legalize(supported=supported, expansion=TABLE.expansion),
            _DenseAsProduct(),
        ]
    )
    return transform.fold_weights(model.evolve(mod=passes(model.mod)), report=report)


@dataclass(frozen=True)
class _BytesForNibbles(transform.FunctionPass):
    """Hold weights of 4 bits in 8 where they become floats; their values are the same.

    Scales for blocks are scales for the columns of the weight with the places within a block
    as its rows, which versions without blocks have.
    """

    name: ClassVar[str] = "BytesForNibbles"

    def transform(self, function: Function) -> Function:
        """Rewrite the calls that make floats of them."""
        result = rewrite(function, lambda _node, new: _with_bytes(new))
        return result if isinstance(result, Function) else function


def _with_bytes(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    if node.op.name != "serde.dequantize_linear" or not isinstance(node.args[0].type, TensorType):
        return node
    data, scale, zero = node.args
    wider = _BYTES.get(data.type.dtype if isinstance(data.type, TensorType) else "")
    if wider is None or not isinstance(data, (Constant, Var)):
        return node
    if not isinstance(zero, (Constant, Tuple, Var)):
        return node
    held = call("cast", data, dtype=wider)
    point = None if isinstance(zero, Tuple) else call("cast", zero, dtype=wider)
    attrs = dict(node.attrs)
    shape = data.type.concrete_shape if isinstance(data.type, TensorType) else None
    if not attrs["block_size"]:
        return call("serde.dequantize_linear", held, scale, point, span=node.span, **attrs)
    length, block = (shape or ())[attrs["axis"]], attrs["block_size"]
    if shape is None or length % block:
        return node
    axis = attrs["axis"] % len(shape)
    parts = (*shape[:axis], length // block, block, *shape[axis + 1 :])
    order = (axis + 1, *(each for each in range(len(parts)) if each != axis + 1))
    rows = call("reshape", held, newshape=parts)
    rows = call("reshape", call("transpose", rows, axes=order), newshape=(block, -1))
    flat = [
        each if each is None else call("reshape", each, newshape=(-1,)) for each in (scale, point)
    ]
    attrs |= {"axis": 1, "block_size": 0}
    floats = call("serde.dequantize_linear", rows, *flat, span=node.span, **attrs)
    moved = tuple(parts[each] for each in order)
    back = tuple(order.index(each) for each in range(len(parts)))
    floats = call("transpose", call("reshape", floats, newshape=moved), axes=back)
    return call("reshape", floats, newshape=shape)


def _without_calls(mod: IRModule, *, keep: bool) -> IRModule:
    """Return a module without lets, and with functions only where `keep` or recursion asks.

    What is inlined may bring calls of functions that were arguments until then, and functions
    that call themselves last, so it goes on until nothing changes.
    """
    if len(mod.functions) == 1 and not any(map(_is_function_or_let, all_nodes(mod["main"].body))):
        return mod
    step = transform.Sequential(
        [
            transform.ToGraphNormalForm(),
            _CallsIntoBranches(),
            transform.Inline(opaque=not keep, keep_globals=keep),
            transform.DeadCodeElimination(),
            transform.InferType(),
            transform.RaiseRecursion(),
        ]
    )
    result, changed = step.run(mod)
    if not changed:
        return mod
    while changed:
        result, changed = step.run(result)
    again = transform.Sequential(
        [transform.InferType(), transform.FoldShape(), transform.EliminateCommonSubexpr()]
    )
    return again(result.with_functions(result.functions, checked=False))


def _is_function_or_let(node: Expr) -> bool:
    return isinstance(node, (Function, Let))


@dataclass(frozen=True)
class _CallsIntoBranches(transform.FunctionPass):
    """A call of the function that a condition chooses becomes a choice between two calls."""

    name: ClassVar[str] = "CallsIntoBranches"

    def transform(self, function: Function) -> Function:
        result = rewrite(function, lambda _old, node: _into_branches(node))
        return result if isinstance(result, Function) else function


def _into_branches(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, If):
        return node
    chosen = node.op
    calls = [
        Call(branch, node.args, span=node.span)
        for branch in (chosen.true_branch, chosen.false_branch)
    ]
    for each in calls:
        each.type = node.type
    return If(chosen.cond, calls[0], calls[1], chosen.span)


@dataclass(frozen=True)
class _DenseAsProduct(transform.FunctionPass):
    """A dense layer on other than two axes becomes a product with the weight turned."""

    name: ClassVar[str] = "DenseAsProduct"

    def transform(self, function: Function) -> Function:
        body = rewrite(function.body, lambda _old, node: _as_product(node))
        if body is function.body:
            return function
        return Function(function.params, body, function.ret_type, function.attrs, function.span)


def _as_product(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name != "nn.dense":
        return node
    data = node.args[0].type
    if not isinstance(data, TensorType) or data.rank == 2:
        return node
    turned = call("transpose", node.args[1], axes=(1, 0), span=node.span)
    attrs = {name: node.attrs[name] for name in ("units", "out_dtype")}
    return call("nn.matmul", node.args[0], turned, span=node.span, **attrs)


def _native(
    model: RelayModel, builder: GraphBuilder, inputs: list[Value], outputs: list[Value]
) -> OnnxModel:
    nodes, used = _needed(builder.main.nodes, outputs)
    weights = {name: each for name, each in builder.weights.items() if name in used}
    graph = helper.make_graph(
        nodes=nodes,
        name=model.meta.extra.get("name", "main"),
        inputs=[
            value_type_proto(value.name, value.type)
            for value in inputs
            if value.type is not None and value.name not in model.params
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
    own = helper.make_opsetid("", builder.version)
    opsets = [own, helper.make_opsetid(FUNCTION_DOMAIN, 1)] if builder.functions else [own]
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
        proto.ir_version = max(proto.ir_version, _FUNCTIONS_IR_VERSION)
    facts = {
        "source_format": model.meta.source_format,
        "source_version": model.meta.source_version,
    }
    helper.set_model_props(proto, {key: value for key, value in facts.items() if value})
    return OnnxModel(proto, weights)


def _needed(
    nodes: list[onnx.NodeProto], outputs: list[Value]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that the outputs depend on, in their order, and all that these read."""
    used = {value.name for value in outputs}
    kept = []
    for node in reversed(nodes):
        if used.isdisjoint(node.output):
            continue
        kept.append(node)
        used.update(_reads(node))
    return kept[::-1], used


def _reads(node: onnx.NodeProto) -> set[str]:
    """Return what a node reads, the nodes of its bodies included."""
    names = set()
    stack = [node]
    while stack:
        inner = stack.pop()
        names.update(inner.input)
        for attribute in inner.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                stack += attribute.g.node
                names.update(value.name for value in attribute.g.output)
    return names


def _infer_shapes(native: OnnxModel) -> None:
    """Let ONNX's own strict inference run over the graph, weights declared but not filled.

    Raises:
        ConverterBug: It finds a fault.
    """
    skeleton = onnx.ModelProto()
    skeleton.CopyFrom(native.proto)
    for name, weight in native.weights.items():
        type_ = TensorType(weight.shape, weight.dtype)
        skeleton.graph.input.append(value_type_proto(name, type_))
    try:
        onnx.shape_inference.infer_shapes(skeleton, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise ConverterBug(f"ONNX's shape inference refuses the graph: {error}") from error
