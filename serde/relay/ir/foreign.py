"""What a call of ``serde.foreign`` says: an operator that Relay does not know.

The attributes are one text of JSON, so that both spellings of Relay text hold them. What JSON
lacks is an object of one key that begins with ``$``: ``{"$bytes": ...}`` in base64, ``{"$array":
...}``, ``{"$float": "nan"}``, ``{"$dtype": "float16"}``, ``{"$dim": "N"}``, ``{"$input": 0}`` where
an operand stands among arguments, and ``{"$empty": "floats"}`` for an empty list of a known kind.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeGuard

import numpy as np

from serde.core import dataclass, dtype_name, field, numpy_dtype, parse_json
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.dims import Any, SymDim, symbol
from serde.relay.ir.expr import Call, Expr, Span
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.types import TensorType, Type

__all__ = [
    "ARGUMENTS", "FOREIGN", "MAX_ATTRIBUTE_BYTES", "PIVOT_FRAMEWORK", "REGION_FRAMEWORK", "Empty",
    "Foreign", "Input", "check_arguments", "decode_attributes", "encode_attributes",
    "foreign_calls", "has_foreign", "is_foreign", "result_type",
]  # fmt: skip

FOREIGN: Final = "serde.foreign"
"""Name of the operator."""

ARGUMENTS: Final = "$arguments"
"""Attribute that tells where operands stand among the arguments, if not one after the other."""

PIVOT_FRAMEWORK: Final = "relay"
"""The framework of operators and functions of Relay itself that are kept whole."""

REGION_FRAMEWORK: Final = "region"
"""The framework of regions of a split model that a part of its host calls."""

MAX_ATTRIBUTE_BYTES: Final = 2**20
"""Most bytes of an array among the attributes: they stand in the text of a module."""

_MAX_DEPTH: Final = 40
"""Lists and objects inside each other in attributes that are read."""


@dataclass(frozen=True)
class Input:
    """Stands among the arguments of an operator for an operand.

    Attributes:
        index: Which one.
    """

    index: int


class Empty(tuple[AnyValue, ...]):
    """An empty list of which the format knows what would be in it.

    Attributes:
        kind: That, in the format's words.
    """

    kind: str

    def __new__(cls, kind: str) -> Empty:
        made = super().__new__(cls)
        made.kind = kind
        return made

    def __reduce__(self) -> tuple[AnyValue, ...]:
        return Empty, (self.kind,)


def encode_attributes(attributes: Mapping[str, AnyValue]) -> str:
    """Return attributes as text, in their order.

    Raises:
        TypeError: A value is of another kind than those.
    """
    encoded = {name: _encode(value) for name, value in attributes.items()}
    return json.dumps(encoded, allow_nan=False, separators=(", ", ": "))


def _encode(value: AnyValue) -> AnyValue:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Empty):
        return {"$empty": value.kind}
    if isinstance(value, (list, tuple)):
        return [_encode(each) for each in value]
    if isinstance(value, Mapping):
        if any(not isinstance(name, str) or name.startswith("$") for name in value):
            raise TypeError(f"no names of attributes: {list(value)!r:.100}")
        return {name: _encode(each) for name, each in value.items()}
    return _encode_tagged(value)


def _encode_tagged(value: AnyValue) -> dict[str, AnyValue]:
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"$array": [dtype_name(value.dtype), list(value.shape), data]}
    if isinstance(value, (np.dtype, type)):
        return {"$dtype": dtype_name(value)}
    if isinstance(value, Input):
        return {"$input": value.index}
    if isinstance(value, (SymDim, Any)):
        return {"$dim": str(value)}
    raise TypeError(f"expected a number, text, bytes, an array or a list of these, found {value!r}")


def decode_attributes(text: str) -> dict[str, AnyValue]:
    """Return the attributes that :func:`encode_attributes` made `text` of, lists as tuples.

    Raises:
        RelayError: The text is none of these.
    """
    try:
        found = parse_json(text)
    except ValueError as error:
        raise RelayError(f"attributes: expected JSON, {error}: {text:.100}") from None
    if not isinstance(found, dict):
        raise RelayError(f"attributes: expected an object of JSON, found {text:.100}")
    try:
        return {name: _decode(value, 0) for name, value in found.items()}
    except (TypeError, ValueError, KeyError, binascii.Error) as error:
        raise RelayError(f"attributes: {error}: {text:.100}") from None


def _decode(value: AnyValue, depth: int) -> AnyValue:
    if depth > _MAX_DEPTH:
        raise ValueError(f"more than {_MAX_DEPTH} lists inside each other")
    if isinstance(value, list):
        return tuple(_decode(each, depth + 1) for each in value)
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items() if len(value) == 1 else (("", None),)
    if not tag.startswith("$"):
        return {name: _decode(each, depth + 1) for name, each in value.items()}
    return _TAGS[tag](inner)


def _decode_array(inner: Sequence[AnyValue]) -> AnyValue:
    dtype, shape, data = inner
    kind = numpy_dtype(dtype)
    if not all(type(each) is int and each >= 0 for each in shape):
        raise ValueError(f"expected a shape, found {shape}")
    return np.frombuffer(base64.b64decode(data, validate=True), kind).reshape(shape).copy()


def _decode_float(inner: AnyValue) -> float:
    if inner not in ("nan", "inf", "-inf"):
        raise ValueError(f"expected nan, inf or -inf, found {inner!r}")
    return float(inner)


def _decode_input(inner: AnyValue) -> Input:
    if type(inner) is not int or inner < 0:
        raise ValueError(f"expected the number of an operand, found {inner!r}")
    return Input(inner)


def _decode_empty(inner: AnyValue) -> Empty:
    if not isinstance(inner, str):
        raise ValueError(f"expected the kind of an empty list, found {inner!r}")
    return Empty(inner)


_TAGS: Final[Mapping[str, Callable[[AnyValue], AnyValue]]] = {
    "$array": _decode_array,
    "$bytes": lambda inner: base64.b64decode(inner, validate=True),
    "$dim": lambda inner: Any() if inner == "?" else symbol(inner),
    "$dtype": lambda inner: numpy_dtype(inner),
    "$empty": _decode_empty,
    "$float": _decode_float,
    "$input": _decode_input,
}


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """An operator of a format that Relay does not know.

    Attributes:
        framework: Name of the format, which tells what runs it.
        name: Its name there.
        domain: Whose operator it is, where the format says so.
        version: Version of that domain's operators, 0 where there are none.
        attributes: What it is given beside tensors.
        absent: Which of its inputs are left out, of those that the node lists.
        results: Types of what it gives.
    """

    framework: str
    name: str
    domain: str = ""
    version: int = 0
    attributes: Mapping[str, AnyValue] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    results: tuple[TensorType, ...] = ()

    @property
    def full_name(self) -> str:
        """Its name with its domain, as users say it."""
        return f"{self.domain}::{self.name}" if self.domain else self.name

    @property
    def written_name(self) -> str:
        """Its name once ONNX has it, in its domain or in one called as its framework."""
        return f"{self.domain or self.framework}::{self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """All that users may call it, the most telling first."""
        return (self.full_name, self.name) if self.domain else (self.name,)

    @property
    def plain_attributes(self) -> dict[str, AnyValue]:
        """Its attributes without those that have no value, or tell where operands stand."""
        return {
            name: value
            for name, value in self.attributes.items()
            if value is not None and not name.startswith("$")
        }

    @classmethod
    def of(cls, node: Call) -> Foreign:
        """Return what a call of the operator says.

        Raises:
            RelayError: Its attributes are no text of :func:`encode_attributes`.
        """
        return cls.of_attributes(node.attrs)

    @classmethod
    def of_attributes(cls, attrs: Mapping[str, AnyValue]) -> Foreign:
        """Return what the attributes of a call say.

        Raises:
            RelayError: They hold no text of :func:`encode_attributes`.
        """
        return cls(
            framework=attrs["framework"],
            name=attrs["name"],
            domain=attrs["domain"],
            version=attrs["version"],
            attributes=decode_attributes(attrs["attributes"]),
            absent=attrs["absent"],
            results=tuple(TensorType(shape, dtype) for shape, dtype in attrs["result_types"]),
        )

    def build(self, inputs: Sequence[Expr], span: Span | None = None, **attrs: AnyValue) -> Call:
        """Return the call of the operator.

        Args:
            inputs: Its operands, those that are left out not among them.
            span: Where it comes from.
            attrs: Further attributes, such as ``body``.

        Raises:
            TypeInferenceError: An attribute cannot be held, or no result has a type.
        """
        try:
            text = encode_attributes(self.attributes)
        except (TypeError, ValueError) as error:
            raise TypeInferenceError(f"{self.full_name}: {error}") from None
        return call(
            FOREIGN, tuple(inputs), span=span, framework=self.framework, name=self.name,
            domain=self.domain, version=self.version, attributes=text, absent=self.absent,
            result_types=tuple((each.shape, each.dtype) for each in self.results), **attrs,
        )  # fmt: skip

    def arrange(self, values: Sequence[AnyValue]) -> list[AnyValue]:
        """Return operands at their places, None where an input is left out."""
        given = list(values)
        for place in self.absent:
            given.insert(place, None)
        return given


def check_arguments(attributes: Mapping[str, AnyValue], framework: str, count: int) -> None:
    """Refuse places of operands that an operator with so many of them cannot have.

    An operator of Relay has a list of operands; others have pairs of a name and an argument, which
    is the attribute of that name where it is None.

    Raises:
        RelayError: They are something else.
    """
    arguments = attributes.get(ARGUMENTS, ())
    if not isinstance(arguments, tuple):
        raise RelayError(f"{ARGUMENTS}: expected a list, found {arguments!r:.100}")
    if framework == PIVOT_FRAMEWORK:
        if not _holds_operands(arguments, count):
            raise RelayError(f"{ARGUMENTS}: expected places of {count} operands")
        return
    for each in arguments:
        if not isinstance(each, tuple) or len(each) != 2 or not isinstance(each[0], str):
            raise RelayError(f"{ARGUMENTS}: expected a name and an argument, found {each!r:.100}")
        name, held = each
        if held is None and name not in attributes:
            raise RelayError(f"{ARGUMENTS}: {name} is no attribute")
        if not _holds_operands(held, count, others=True):
            raise RelayError(f"{ARGUMENTS}: {name}: expected places of {count} operands")


def _holds_operands(held: AnyValue, count: int, *, others: bool = False) -> bool:
    """Whether an argument is an operand or none, or is made of these, or of others."""
    if isinstance(held, tuple):
        return all(_holds_operands(each, count, others=others) for each in held)
    if isinstance(held, Input):
        return held.index < count
    return others or held is None


def is_foreign(node: Expr) -> TypeGuard[Call]:
    """Whether an expression is a call of the operator."""
    return isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == FOREIGN


def result_type(results: Sequence[TensorType]) -> Type | tuple[TensorType, ...]:
    """Return the type of a call that gives `results`: of one, it is that tensor itself."""
    return results[0] if len(results) == 1 else tuple(results)


def has_foreign(model: RelayModel) -> bool:
    """Whether a model holds a call of the operator."""
    return any(True for _ in foreign_calls(model))


def foreign_calls(model: RelayModel) -> Iterator[Call]:
    """Yield the calls of the operator in a model."""
    for node in all_nodes(*model.mod.functions.values()):
        if is_foreign(node):
            yield node
