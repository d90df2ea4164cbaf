"""ONNX operators that Relay does not know: those of other domains, and new ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from serde.core import Array, is_installed, require
from serde.engine.base import first_line
from serde.errors import OptionError, RelayError, Unsupported
from serde.onnx.custom_operators import PLAIN
from serde.onnx.interface import declared_shape, input_dtype, value_type_proto
from serde.onnx.model import OnnxModel
from serde.onnx.scopes import domain_name
from serde.onnx.versions import DEFAULT_TARGET
from serde.relay.ir import TensorType, as_dim
from serde.relay.ir.foreign import MAX_ATTRIBUTE_BYTES, PIVOT_FRAMEWORK, Empty, Foreign

if TYPE_CHECKING:
    from serde.onnx.builder import GraphBuilder, GraphScope, Value

__all__ = [
    "LIBRARIES", "OUTPUTS", "REFERENCE_OPS", "declared_types", "foreign_node", "may_run_foreign",
    "register_library", "register_reference_ops", "run_foreign", "write_node",
]  # fmt: skip

OUTPUTS: Final = "$outputs"
"""Attribute that tells which outputs of an operator the results are, if not the first ones."""

_EMPTY: Final = {
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.STRINGS: "strings",
    onnx.AttributeProto.TENSORS: "tensors",
}
_KINDS: Final = {name: kind for kind, name in _EMPTY.items()}

LIBRARIES: list[str] = []
REFERENCE_OPS: dict[tuple[str, str], AnyValue] = {}


def register_library(path: str | os.PathLike[str]) -> None:
    """Let ONNX Runtime run operators of a shared library when parts of a model are run.

    Args:
        path: The library, with the function ``RegisterCustomOps``.

    Raises:
        OptionError: There is no such file.
    """
    if not os.path.isfile(path):
        raise OptionError(f"{os.fspath(path)}: there is no such library")
    if os.fspath(path) not in LIBRARIES:
        LIBRARIES.append(os.fspath(path))


def register_reference_ops(*operators: AnyValue) -> None:
    """Let ONNX's reference implementation run operators when parts of a model are run.

    Args:
        operators: Classes derived from ``onnx.reference.op_run.OpRun``, with ``op_domain``.
    """
    for each in operators:
        REFERENCE_OPS[each.op_domain, each.__name__] = each


def declared_types(values: Sequence[onnx.ValueInfoProto]) -> Iterator[tuple[str, TensorType]]:
    """Yield the types of tensors that a graph declares whole, by name."""
    for each in values:
        if not each.type.HasField("tensor_type"):
            continue
        try:
            shape, dtype = declared_shape(each.type), input_dtype(each.type)
        except Unsupported:
            continue
        if shape is not None:
            yield each.name, TensorType([as_dim(dim) for dim in shape], dtype)


def foreign_node(
    node: onnx.NodeProto,
    attributes: Mapping[str, onnx.AttributeProto],
    version: int,
    results: Sequence[TensorType | None],
    model: OnnxModel,
) -> Foreign:
    """Return what a node is.

    Args:
        node: The node.
        attributes: Its attributes, references resolved.
        version: Version of the operators of its domain that the model imports.
        results: Types that the file declares of its outputs.
        model: The model, which has the values of tensors.

    Raises:
        Unsupported: It has graphs inside, or large tensors.
    """
    known = [each for each in results if each is not None]
    return Foreign(
        framework="onnx",
        name=node.op_type,
        domain=domain_name(node.domain) or PLAIN,
        version=version,
        attributes={name: _kept(each, model) for name, each in attributes.items()},
        results=tuple(known) if len(known) == len(results) else (),
    )


def _kept(attribute: onnx.AttributeProto, model: OnnxModel) -> AnyValue:
    """Return the value of an attribute, which tells of which kind it is."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, onnx.TensorProto):
        return _array(attribute.name, value, model)
    if not isinstance(value, (onnx.GraphProto, onnx.SparseTensorProto, onnx.TypeProto)):
        items = list(value)
        if not items and attribute.type in _EMPTY:
            return Empty(_EMPTY[attribute.type])
        if all(isinstance(each, (int, float)) for each in items):
            return tuple(items)
        if all(isinstance(each, bytes) for each in items):
            return tuple(map(_text, items))
        if all(isinstance(each, onnx.TensorProto) for each in items):
            return tuple(_array(attribute.name, each, model) for each in items)
    kind = type(value).__name__.removesuffix("Proto").lower()
    raise Unsupported(f"attribute {attribute.name} is a {kind}, which is not kept")


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _array(name: str, tensor: onnx.TensorProto, model: OnnxModel) -> Array:
    weight = model.weight(tensor)
    if weight.nbytes > MAX_ATTRIBUTE_BYTES:
        raise Unsupported(f"attribute {name} is a tensor of {weight.nbytes} bytes")
    return weight.array()


def write_node(
    builder: GraphBuilder,
    scope: GraphScope,
    node: Foreign,
    operands: Sequence[Value | None],
    source: str,
) -> tuple[Value, ...]:
    """Append the node of an operator that Relay does not know, and return its outputs.

    Raises:
        Unsupported: An attribute is none of ONNX's, or the domain has another version already.
    """
    domain = node.domain or node.framework
    version = node.version if node.framework in ("onnx", PIVOT_FRAMEWORK) else 1
    return builder.add_custom(
        scope,
        node.name,
        ("" if domain == PLAIN else domain, version or 1),
        operands,
        [_attribute(name, value) for name, value in node.plain_attributes.items()],
        node.results,
        source,
        node.attributes.get(OUTPUTS),
    )


def _attribute(name: str, value: AnyValue) -> onnx.AttributeProto:
    """Return an attribute as ONNX has it."""
    if isinstance(value, Empty) and value.kind in _KINDS:
        return onnx.AttributeProto(name=name, type=_KINDS[value.kind])
    if isinstance(value, tuple) and not value:
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
    if isinstance(value, np.dtype):
        value = helper.np_dtype_to_tensor_dtype(value)
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value)
    if isinstance(value, tuple) and all(isinstance(each, np.ndarray) for each in value):
        value = [numpy_helper.from_array(each) for each in value]
    try:
        return helper.make_attribute(name, value)
    except (TypeError, ValueError) as error:
        raise Unsupported(f"attribute {name}={value!r:.100}: ONNX has none like this") from error


def may_run_foreign(node: Foreign) -> bool:
    """Whether an operator has a domain of its own, or is one that this version of ONNX has."""
    known = (node.domain, node.name) in REFERENCE_OPS
    return known or node.domain != PLAIN or onnx.defs.has(node.name)


def run_foreign(node: Foreign, inputs: Sequence[Array | None]) -> list[Array]:
    """Return what ONNX Runtime, or else ONNX's reference implementation, computes.

    Raises:
        RelayError: Neither has the operator, or it fails.
    """
    model = _single_node_model(node, inputs)
    feeds = {f"x{index}": each for index, each in enumerate(inputs) if each is not None}
    reasons: list[str] = []
    if (node.domain, node.name) in REFERENCE_OPS:
        return _run_reference(model, feeds, node, reasons)
    if is_installed("onnxruntime"):
        onnxruntime = require("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            for path in LIBRARIES:
                options.register_custom_ops_library(path)
            providers = ["CPUExecutionProvider"]
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
            return list(session.run(None, feeds))
        except Exception as error:
            reasons.append(f"ONNX Runtime: {first_line(error)}")
    return _run_reference(model, feeds, node, reasons)


def _run_reference(
    model: onnx.ModelProto, feeds: Mapping[str, Array], node: Foreign, reasons: list[str]
) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(model, new_ops=list(REFERENCE_OPS.values()))
        return [np.asarray(each) for each in evaluator.run(None, dict(feeds))]
    except Exception as error:
        reasons.append(f"reference: {first_line(error)}")
    raise RelayError(f"{node.full_name}: nothing runs it: {'; '.join(reasons)}")


def _single_node_model(node: Foreign, inputs: Sequence[Array | None]) -> onnx.ModelProto:
    domain = "" if node.domain == PLAIN else node.domain
    names = ["" if each is None else f"x{index}" for index, each in enumerate(inputs)]
    results = [f"y{index}" for index in range(len(node.results))]
    proto = onnx.NodeProto(
        op_type=node.name, domain=domain, name="node", input=names, output=results
    )
    proto.attribute.extend(_attribute(name, value) for name, value in node.attributes.items())
    declared = [
        value_type_proto(name, TensorType(each.shape, each.dtype.name))
        for name, each in zip(names, inputs, strict=True)
        if each is not None
    ]
    graph = helper.make_graph(
        [proto], "node", declared, list(map(value_type_proto, results, node.results))
    )
    version = max(node.version, 1)
    opsets = [helper.make_opsetid(domain, version)]
    if domain:
        opsets.append(helper.make_opsetid("", DEFAULT_TARGET))
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = helper.find_min_ir_version_for([opsets[-1]])
    return model
