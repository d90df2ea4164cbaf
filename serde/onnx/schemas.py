"""What ONNX's own schemas say about the types that operators take."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any as AnyValue, Final

import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import InferenceError

from serde.core import Array, dataclass
from serde.errors import OptionError, Unsupported
from serde.onnx.elements import ELEMENTS
from serde.onnx.interface import value_type_proto
from serde.onnx.versions import CHANGES, FIRST_WITH_FUNCTIONS, LOWEST_TARGET, NEWEST, Change
from serde.relay.ir import Call, SequenceType, TensorType, Tuple, Type
from serde.walk.takes import enumerate_words

__all__ = [
    "allowed_types", "check_opset", "fault_of_call", "fault_of_node", "newest_opset",
    "require_dtype", "result_dtypes", "takes_dtype", "type_text",
]  # fmt: skip

_DTYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"tensor({onnx.TensorProto.DataType.Name(code).lower()})": element.dtype
        for code, element in ELEMENTS.items()
        if code in onnx.TensorProto.DataType.values()
    }
)
"""The dtype for each name of a tensor's type in schemas."""

_TEXTS: Final[Mapping[str, str]] = MappingProxyType({each: text for text, each in _DTYPES.items()})


@dataclass(frozen=True, slots=True)
class _Formal:
    """An input or output as a schema has it: its type, a variable or not, and what that may be."""

    type_text: str
    allowed: frozenset[str]
    binds: bool

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor is among what it may be."""
        return any(text.startswith("tensor(") for text in self.allowed)


@functools.cache
def _formals(op: str, version: int) -> tuple[tuple[_Formal, ...], tuple[_Formal, ...]]:
    """Return the inputs and the outputs of an operator as it stands at a version."""
    schema = onnx.defs.get_schema(op, version, "")
    inputs, outputs = (
        tuple(
            _Formal(each.type_str, allowed_types(schema, each), each.is_homogeneous)
            for each in formals
        )
        for formals in (schema.inputs, schema.outputs)
    )
    return inputs, outputs


def newest_opset() -> int:
    """Return the newest operator set that both our facts and the installed onnx know."""
    return min(NEWEST, onnx.defs.onnx_opset_version())


def check_opset(opset: int, *, local_functions: bool) -> None:
    """Refuse a version of the default operator set that is not written.

    Raises:
        OptionError: It is none of those, or has no local functions.
    """
    if not isinstance(opset, int) or not LOWEST_TARGET <= opset <= newest_opset():
        raise OptionError(f"opset {opset}: expected {LOWEST_TARGET} to {newest_opset()}")
    if local_functions and opset < FIRST_WITH_FUNCTIONS:
        raise OptionError(
            f"local_functions: expected opset {FIRST_WITH_FUNCTIONS} or later, found {opset}"
        )


def type_text(dtype: str) -> str:
    """Return how schemas call a tensor's type: ``tensor(float)``.

    Raises:
        Unsupported: The installed ONNX has no such type at any version.
    """
    if dtype not in _TEXTS:
        raise Unsupported(f"ONNX {onnx.__version__} has no {dtype}")
    return _TEXTS[dtype]


def allowed_types(
    schema: onnx.defs.OpSchema, formal: onnx.defs.OpSchema.FormalParameter
) -> frozenset[str]:
    """Return the types that an input or output of an operator may have."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == formal.type_str:
            return frozenset(constraint.allowed_type_strs)
    return frozenset({formal.type_str})


def takes_dtype(op: str, version: int, dtype: str) -> bool:
    """Whether an operator, as it stands at a version, takes a dtype as its first input."""
    inputs, _ = _formals(op, version)
    return type_text(dtype) in inputs[0].allowed


def fault_of_call(op: str, version: int, node: Call) -> Unsupported | None:
    """Return why an operator takes no call of Relay's whose operands are its inputs, by place.

    A dtype that ONNX has nowhere at that version is none: what is made of the call needs it, too.
    """
    if op not in CHANGES:
        return None
    given = [x for each in node.args for x in (each.fields if type(each) is Tuple else (each,))]
    types = [each.type for each in (*given, node)]
    return _fault_of_dtypes(
        op, version, tuple(t.dtype if isinstance(t, TensorType) else None for t in types)
    )


@functools.lru_cache(maxsize=2**12)
def _fault_of_dtypes(op: str, version: int, dtypes: tuple[str | None, ...]) -> Unsupported | None:
    try:
        for each in filter(None, dtypes):
            require_dtype(each, version)
    except Unsupported:
        return None
    inputs, outputs = _formals(op, version)
    bound: dict[str, str] = {}
    for index, dtype in enumerate(dtypes):
        is_result = index == len(dtypes) - 1
        formal = outputs[0] if is_result else inputs[min(index, len(inputs) - 1)]
        if dtype is None or not formal.is_tensor:
            continue
        if type_text(dtype) not in formal.allowed:
            return _refusal(op, version, 0 if is_result else index, dtype, output=is_result)
        if formal.binds and bound.setdefault(formal.type_text, dtype) != dtype:
            return Unsupported(f"{op} takes one dtype; found {bound[formal.type_text]}, {dtype}")
    return None


def _refusal(op: str, version: int, index: int, dtype: str, *, output: bool = False) -> Unsupported:
    """Return what tells which dtypes an operator takes or gives instead of one."""
    formals = _formals(op, version)[output]
    allowed = formals[min(index, len(formals) - 1)].allowed
    known = enumerate_words(sorted(_DTYPES[text] for text in allowed & _DTYPES.keys()))
    what = f"{op} {'gives' if output else 'takes'} {known} at version {version}; found {dtype}"
    return Unsupported(what, hint=_hint(_first_version(op, version, index, dtype, output=output)))


def require_dtype(dtype: str, version: int) -> None:
    """Refuse a dtype that ONNX does not have yet at a version: no operator takes it there.

    Raises:
        Unsupported: It does not; the hint names the version from which on it does.
    """
    if not takes_dtype("Cast", version, dtype):
        hint = _hint(_first_version("Cast", version, 0, dtype))
        raise Unsupported(f"ONNX has no {dtype} at version {version}", hint=hint)


def result_dtypes(
    op: str, version: int, given: Sequence[str | None], attrs: Mapping[str, AnyValue], count: int
) -> Sequence[str | None]:
    """Return the dtypes of a node's outputs, None where its schema does not tell.

    Args:
        op: The operator.
        version: Version of the operator set.
        given: Dtypes of its inputs; None for one that is left out, no tensor, or not known.
        attrs: Its attributes.
        count: How many outputs it has.

    Raises:
        Unsupported: The operator does not take or give one of the dtypes at that version.
    """
    return _result_dtypes(op, version, tuple(given), _asked_dtype(attrs), count)


@functools.lru_cache(maxsize=2**12)
def _result_dtypes(
    op: str, version: int, given: tuple[str | None, ...], asked: str | None, count: int
) -> Sequence[str | None]:
    inputs, outputs = _formals(op, version)
    bound: dict[str, str] = {}
    for index, dtype in enumerate(given):
        if dtype is None:
            continue
        formal = inputs[min(index, len(inputs) - 1)]
        require_dtype(dtype, version)
        if type_text(dtype) not in formal.allowed:
            raise _refusal(op, version, index, dtype)
        if formal.binds:
            bound.setdefault(formal.type_text, dtype)
    if asked is not None:
        require_dtype(asked, version)
    results = []
    for index in range(count):
        formal = outputs[min(index, len(outputs) - 1)]
        found = _DTYPES.get(formal.type_text, bound.get(formal.type_text, asked))
        if found is not None and formal.is_tensor and type_text(found) not in formal.allowed:
            raise _refusal(op, version, index, found, output=True)
        results.append(found if formal.is_tensor else None)
    return results


def _asked_dtype(attrs: Mapping[str, AnyValue]) -> str | None:
    """Return the dtype that an attribute of a node names for its result."""
    if not attrs:
        return None
    value = attrs.get("value")
    if isinstance(value, onnx.TensorProto):
        return ELEMENTS[value.data_type].dtype
    code = next((attrs[name] for name in ("to", "dtype") if attrs.get(name) is not None), None)
    return None if code is None else ELEMENTS[code].dtype


def _first_version(
    op: str, version: int, index: int, dtype: str, *, output: bool = False
) -> int | None:
    """Return the first version after `version` at which an operator takes, or gives, a dtype."""
    later = sorted(each for each, change in CHANGES[op].items() if change is not Change.REMOVED)
    for each in later:
        if not version < each <= newest_opset():
            continue
        formals = _formals(op, each)[output]
        if type_text(dtype) in formals[min(index, len(formals) - 1)].allowed:
            return each
    return None


def _hint(version: int | None) -> str | None:
    return None if version is None else f"use opset {version} or later"


def fault_of_node(
    node: onnx.NodeProto, version: int, types: Sequence[Type | None], values: Sequence[Array | None]
) -> str | None:
    """Return why ONNX's own inference refuses a node of ONNX's domain, or None if it does not.

    Args:
        node: The node.
        version: Version of the operator set.
        types: Types of its inputs; None for one that is left out or not known.
        values: Values of its inputs where they are known.
    """
    if any(attribute.HasField("g") for attribute in node.attribute):
        return None
    protos = {
        name: value_type_proto(name, type_).type
        for name, type_ in zip(node.input, types, strict=False)
        if name and isinstance(type_, (TensorType, SequenceType))
    }
    if any(name and name not in protos for name in node.input):
        return None
    data = {
        name: numpy_helper.from_array(value)
        for name, value in zip(node.input, values, strict=False)
        if name and value is not None
    }
    opsets = [helper.make_opsetid("", version)]
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        onnx.shape_inference.infer_node_outputs(schema, node, protos, data, opset_imports=opsets)
    except (InferenceError, onnx.checker.ValidationError) as error:
        return f"ONNX refuses it: {' '.join(str(error).split())}"
    except onnx.defs.SchemaError:
        return None
    return _fault_of_order(node, types[0]) if node.op_type == "Transpose" else None


def _fault_of_order(node: onnx.NodeProto, type_: Type | None) -> str | None:
    """Return why a Transpose does not fit, whose axes ONNX's inference does not count."""
    order = next((list(each.ints) for each in node.attribute if each.name == "perm"), None)
    if order is None or not isinstance(type_, TensorType) or len(order) == type_.rank:
        return None
    return f"axes {order} for a tensor of rank {type_.rank}"
