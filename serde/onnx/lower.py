"""From a Relay model to an ONNX model: lowering, emission, and the model around the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import onnx
from onnx import helper

from serde._version import __version__
from serde.errors import ConverterBug, OptionError
from serde.onnx.codec import OnnxModel
from serde.onnx.graph import GraphBuilder, Value, export_function, tensor_type_proto
from serde.onnx.ops import TABLE
from serde.onnx.versions import LOWEST_TARGET, NEWEST
from serde.relay import transform
from serde.relay.expr import Call, Expr, Function
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef, call
from serde.relay.types import TensorType
from serde.relay.visit import rewrite
from serde.report import Issue, Report

__all__ = ["from_relay", "newest_opset"]


def newest_opset() -> int:
    """Return the newest operator set that both our facts and the installed onnx know."""
    return min(NEWEST, onnx.defs.onnx_opset_version())


AS_QDQ = "quantised-as-qdq"
"""Name of the step that computes quantised operators on floats, rounding halves to even."""


def from_relay(
    model: RelayModel,
    opset: int,
    intermediate_shapes: bool,
    report: Report,
    *,
    quantized: Literal["exact", "qdq"] = "exact",
    allow: frozenset[str] = frozenset(),
) -> OnnxModel:
    """Return `model` as ONNX at version `opset` of the default operator set.

    Args:
        model: The model.
        opset: That version.
        intermediate_shapes: Whether to note the types of all intermediate values.
        report: Takes what cannot be said, and what is lost.
        quantized: Quantised operators step by step in integers, or between linear operators.
        allow: Names of lossy steps that may be taken.

    Raises:
        OptionError: That version is not written.
        UnsupportedModelError: ONNX cannot say some of the model at that version.
    """
    if not LOWEST_TARGET <= opset <= newest_opset():
        raise OptionError(f"opset {opset}: expected {LOWEST_TARGET} to {newest_opset()}")
    if quantized == "qdq":
        model = _as_qdq(model, report, allow)
    model = _lowered(model, opset, report)
    builder = GraphBuilder(opset)
    outputs = export_function(model, TABLE, builder, report)
    report.raise_if_refused()
    native = _native(model, builder, outputs, opset, intermediate_shapes)
    report.facts |= {"opset": opset, "ir_version": native.proto.ir_version}
    _infer_shapes(native)
    return native


def _as_qdq(model: RelayModel, report: Report, allow: frozenset[str]) -> RelayModel:
    mod, changed = transform.QuantizedAsFloat().run(model.mod)
    if not changed:
        return model
    what = "quantised operators are computed on floats and round halves to even"
    issue = Issue("qnn", "main", what, f"allow {AS_QDQ!r}")
    (report.allowed if AS_QDQ in allow else report.issues).append(issue)
    report.raise_if_refused()
    return model.evolve(mod=mod)


def _lowered(model: RelayModel, opset: int, report: Report) -> RelayModel:
    """Return the model in operators that ONNX has at that version."""

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, opset)

    passes = transform.Sequential(
        [transform.channels_first(), transform.Legalize(supported=supported), _DenseAsProduct()]
    )
    return transform.fold_weights(model.evolve(mod=passes(model.mod)), report=report)


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
    model: RelayModel,
    builder: GraphBuilder,
    outputs: list[Value],
    opset: int,
    intermediate_shapes: bool,
) -> OnnxModel:
    used = {name for node in builder.nodes for name in node.input}
    weights = {name: each for name, each in builder.weights.items() if name in used}
    inputs = [param for param in model.main.params if param.name_hint not in model.params]
    graph = helper.make_graph(
        nodes=builder.nodes,
        name=model.meta.extra.get("name", "main"),
        inputs=[
            tensor_type_proto(param.name_hint, param.type)
            for param in inputs
            if isinstance(param.type, TensorType)
        ],
        outputs=[
            tensor_type_proto(value.name, value.type) for value in outputs if value.type is not None
        ],
        initializer=[tensor for name, tensor in builder.initializers.items() if name in used],
    )
    if intermediate_shapes:
        final = {value.name for value in outputs}
        graph.value_info.extend(
            tensor_type_proto(name, type_)
            for name, type_ in builder.value_types.items()
            if name not in final and name not in weights
        )
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_model(
        graph,
        opset_imports=opsets,
        producer_name="serde",
        producer_version=__version__,
        doc_string=model.meta.description,
    )
    proto.ir_version = helper.find_min_ir_version_for(opsets)
    facts = {
        "source_format": model.meta.source_format,
        "source_version": model.meta.source_version,
    }
    helper.set_model_props(proto, {key: value for key, value in facts.items() if value})
    return OnnxModel(proto, weights)


def _infer_shapes(native: OnnxModel) -> None:
    """Let ONNX's own strict inference run over the graph, weights declared but not filled.

    Raises:
        ConverterBug: It finds a fault.
    """
    skeleton = onnx.ModelProto()
    skeleton.CopyFrom(native.proto)
    for name, weight in native.weights.items():
        type_ = TensorType(weight.shape, weight.dtype)
        skeleton.graph.input.append(tensor_type_proto(name, type_))
    try:
        onnx.shape_inference.infer_shapes(skeleton, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise ConverterBug(f"ONNX's shape inference refuses the graph: {error}") from error
