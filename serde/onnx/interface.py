"""What an ONNX model declares: types, operator sets, and facts about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import onnx
from onnx import helper

from serde.core import Report, numpy_dtype
from serde.errors import FormatError, Unsupported
from serde.onnx.elements import element_dtype
from serde.onnx.model import DATA_PROPERTY, LINKED_PROPERTY
from serde.onnx.scopes import domain_name
from serde.onnx.versions import NEWEST
from serde.relay.ir import Any, DimLike, ModelMeta, SequenceType, TensorType
from serde.walk.metadata import metadata_facts

__all__ = ["declared_shape", "graph_meta", "input_dtype", "opset_versions", "value_type_proto"]


def opset_versions(
    proto: onnx.ModelProto | onnx.FunctionProto, override: int | None
) -> dict[str, int]:
    """Return the version of each operator set that a model or function imports.

    Args:
        proto: The model or function.
        override: Version of ONNX's own operator set to take instead.

    Raises:
        FormatError: One is imported in two versions, or newer than is known here.
    """
    found: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = domain_name(entry.domain)
        if found.setdefault(domain, entry.version) != entry.version:
            raise FormatError(
                f"operator set {domain or 'ai.onnx'!r} in versions "
                f"{found[domain]} and {entry.version}"
            )
    if not proto.opset_import:
        found[""] = 1
    if override is not None:
        found[""] = override
    if not 1 <= found.get("", 1) <= NEWEST:
        raise FormatError(f"operator set version {found['']}: expected 1 to {NEWEST}, the newest")
    return found


def input_dtype(type_: onnx.TypeProto) -> str:
    """Return the dtype of a tensor type, of the tensors of a sequence or an optional.

    Raises:
        Unsupported: It is another type.
    """
    type_ = _element_type(type_)
    if not type_.HasField("tensor_type"):
        kind = (type_.WhichOneof("value") or "no type").removesuffix("_type")
        if kind == "sequence":
            raise Unsupported("an optional sequence, or one of sequences", hint=_SEQUENCE_HINT)
        raise Unsupported(f"expected tensors, found {kind}")
    return element_dtype(type_.tensor_type.elem_type)


_SEQUENCE_HINT = "declare a sequence of tensors, which may be empty"


def _element_type(type_: onnx.TypeProto) -> onnx.TypeProto:
    """Return the type of the tensors of a sequence or an optional, others as they are."""
    kind = type_.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return getattr(type_, kind).elem_type
    return type_


def declared_shape(type_: onnx.TypeProto) -> list[DimLike] | None:
    """Return the shape of a tensor type, or None where the number of axes is not known.

    It is that of the tensors of a sequence or of an optional. A dimension keeps its name; one
    without a length or a name is anonymous, as is one that tensors of a sequence need not share.
    """
    differ = type_.HasField("sequence_type")
    type_ = _element_type(type_)
    if not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    shape: list[DimLike] = []
    for dim in type_.tensor_type.shape.dim:
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0:
            shape.append(dim.dim_value)
        else:
            shape.append("?" if differ else dim.dim_param or "?")
    return shape


OWN_PROPERTIES: Final = (LINKED_PROPERTY, DATA_PROPERTY, "source_format", "source_version")
"""Keys of metadata that tell what serde wrote."""


def _own_metadata(message: AnyValue) -> Sequence[AnyValue]:
    """Return the metadata of a node or graph, which ONNX has from 1.17 on."""
    return getattr(message, "metadata_props", ())


def graph_meta(
    proto: onnx.ModelProto, inputs: Sequence[str], opsets: Mapping[str, int], report: Report
) -> ModelMeta:
    """Return what a model says about itself; what nodes and graphs say besides has no place."""
    extra = {"name": proto.graph.name} if proto.graph.name else {}
    pairs = [(entry.key, entry.value) for entry in proto.metadata_props]
    extra |= metadata_facts((pair for pair in pairs if pair[0] not in OWN_PROPERTIES), report)
    inner = [each for each in (proto.graph, *proto.graph.node) if _own_metadata(each)]
    if inner:
        keys = sorted({entry.key for each in inner for entry in _own_metadata(each)})
        shown = ", ".join(key[:100] for key in keys[:5]) + (", ..." if len(keys) > 5 else "")
        report.notes.append(f"metadata of {len(inner)} nodes or graphs has no place: {shown}")
    return ModelMeta(
        inputs=tuple(inputs),
        outputs=tuple(output.name for output in proto.graph.output),
        source_format="onnx",
        source_version=f"opset {opsets.get('', 1)}",
        description=proto.doc_string or proto.graph.doc_string,
        extra=extra,
    )


def value_type_proto(name: str, type_: TensorType | SequenceType) -> onnx.ValueInfoProto:
    """Return the declaration of a tensor or sequence; a symbolic dimension keeps its name."""
    if isinstance(type_, SequenceType):
        element = value_type_proto(name, type_.element).type
        return helper.make_value_info(name, helper.make_sequence_type_proto(element))
    dims = [
        dim if isinstance(dim, int) else None if isinstance(dim, Any) else str(dim)
        for dim in type_.shape
    ]
    code = helper.np_dtype_to_tensor_dtype(numpy_dtype(type_.dtype))
    return helper.make_tensor_value_info(name, code, dims)
