"""The inputs of an ONNX graph, its operator sets, and what it says about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from serde.errors import FormatError, OptionError, Unsupported
from serde.onnx.import_context import element_dtype
from serde.onnx.scopes import Scope, domain_name
from serde.onnx.versions import NEWEST
from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Span, Var
from serde.relay.ir.model import ModelMeta
from serde.relay.ir.types import SequenceType, TensorType
from serde.report import Report

if TYPE_CHECKING:
    from serde.onnx.options import OnnxImportOptions

__all__ = ["declare_inputs", "declared_shape", "graph_meta", "opset_versions"]


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


def declare_inputs(
    graph: onnx.GraphProto, scope: Scope, options: OnnxImportOptions, report: Report
) -> list[Var]:
    """Make a variable of every input and enter it into the scope.

    An input with an initializer is a weight, unless the options keep it.

    Raises:
        FormatError: A name occurs twice.
        OptionError: An option names no input, or an input's shape is missing.
    """
    names = [each.name for each in graph.input]
    twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if twice or "" in names:
        raise FormatError(f"a second input is called {twice[0]!r}" if twice else "an input unnamed")
    keep = options.keep_initializers_as_inputs
    free = [each for each in graph.input if keep or each.name not in scope.values]
    shapes, dtypes = _given(free, graph, options)
    missing: list[str] = []
    inputs = []
    for each in free:
        shape = shapes.get(each.name, declared_shape(each.type))
        try:
            dtype = dtypes.get(each.name) or _dtype(each.type)
        except Unsupported as error:
            report.add("input", each.name, error.reason, error.hint)
            continue
        if shape is None:
            missing.append(each.name)
            continue
        tensor = TensorType(shape, dtype)
        type_ = tensor if each.type.HasField("tensor_type") else SequenceType(tensor)
        variable = Var(each.name, type_, Span(each.name))
        scope.values[each.name] = variable
        inputs.append(variable)
    if missing:
        raise OptionError(
            f"the shape of {', '.join(missing)} is missing; "
            f"give --input-shape {missing[0]}:1,3,224,224 or input_shapes={{{missing[0]!r}: ...}}"
        )
    report.raise_if_refused()
    return inputs


def _repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _given(
    free: Sequence[onnx.ValueInfoProto], graph: onnx.GraphProto, options: OnnxImportOptions
) -> tuple[dict[str, Sequence[DimLike]], dict[str, str]]:
    """Return the shapes and dtypes given by name, one without a name for the only input."""
    names = [each.name for each in free]
    shapes, dtypes = dict(options.input_shapes), dict(options.input_dtypes)
    for what, given in (("shape", shapes), ("dtype", dtypes)):
        if "" in given and len(names) != 1:
            raise OptionError(f"a {what} without a name, but the inputs are {', '.join(names)}")
    if "" in shapes:
        shapes[names[0]] = shapes.pop("")
    if "" in dtypes:
        dtypes[names[0]] = dtypes.pop("")
    unknown = sorted({*shapes, *dtypes} - set(names))
    if unknown and unknown[0] in {each.name for each in graph.input}:
        raise OptionError(f"{unknown[0]} is a weight of the model, not an input")
    if unknown:
        raise OptionError(f"no input is called {unknown[0]}; inputs: {', '.join(names)}")
    for each in free:
        declared = declared_shape(each.type)
        if each.name in shapes and declared is not None:
            _check_rank(each.name, shapes[each.name], declared)
    return shapes, dtypes


def _check_rank(name: str, given: Sequence[DimLike], declared: Sequence[DimLike]) -> None:
    if len(given) != len(declared):
        raise OptionError(
            f"input_shapes: {name}: expected {len(declared)} axes, found {len(given)}"
        )


def _dtype(type_: onnx.TypeProto) -> str:
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


def graph_meta(
    proto: onnx.ModelProto, inputs: Sequence[str], opsets: Mapping[str, int]
) -> ModelMeta:
    """Return what a model says about itself."""
    extra = {"name": proto.graph.name} if proto.graph.name else {}
    return ModelMeta(
        inputs=tuple(inputs),
        outputs=tuple(output.name for output in proto.graph.output),
        source_format="onnx",
        source_version=f"opset {opsets.get('', 1)}",
        description=proto.doc_string or proto.graph.doc_string,
        extra=extra,
    )
