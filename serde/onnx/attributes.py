"""Attributes of ONNX nodes as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, get_args

import onnx
from google.protobuf.message import Message

from serde.errors import FormatError

__all__ = ["attribute_value", "check_message", "resolve_references"]

_FIELDS = {
    onnx.AttributeProto.FLOAT: "f",
    onnx.AttributeProto.INT: "i",
    onnx.AttributeProto.STRING: "s",
    onnx.AttributeProto.TENSOR: "t",
    onnx.AttributeProto.GRAPH: "g",
    onnx.AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    onnx.AttributeProto.TYPE_PROTO: "tp",
    onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.STRINGS: "strings",
    onnx.AttributeProto.TENSORS: "tensors",
    onnx.AttributeProto.GRAPHS: "graphs",
    onnx.AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    onnx.AttributeProto.TYPE_PROTOS: "type_protos",
}


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """Return the value: a number, a string, a message, or a list of these.

    Models of the first IR version do not note the kind; it is that of the field in use.

    Raises:
        FormatError: It has no value, or text that is not UTF-8.
    """
    name = _FIELDS.get(attribute.type)
    if name is None:
        used = [each.name for each, _ in attribute.ListFields() if each.name in _FIELDS.values()]
        if len(used) != 1:
            raise FormatError(f"attribute {attribute.name!r} has no value of a known kind")
        name = used[0]
    value = getattr(attribute, name)
    if name == "s":
        return _text(attribute.name, value)
    if name == "strings":
        return [_text(attribute.name, each) for each in value]
    return list(value) if name.endswith("s") else value


def check_message(value: Any, hint: Any) -> Any:
    """Return a value that is a message where its annotation says so.

    Raises:
        TypeError: It is something else, or another message.
    """
    messages = _messages_in(hint)
    if messages and not isinstance(value, messages):
        raise TypeError
    return value


@cache
def _messages_in(hint: Any) -> tuple[type[Message], ...]:
    """Return the messages that an annotation names."""
    kinds = [kind for kind in get_args(hint) or (hint,) if isinstance(kind, type)]
    return tuple(kind for kind in kinds if issubclass(kind, Message))


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FormatError(f"attribute {name!r}: expected UTF-8") from None


def resolve_references(
    attributes: Iterable[onnx.AttributeProto], given: Mapping[str, onnx.AttributeProto]
) -> dict[str, onnx.AttributeProto]:
    """Return a node's attributes by name, references replaced by what a function was given.

    Args:
        attributes: The attributes of the node.
        given: What the function around it was called with; one that it was not is absent.

    Raises:
        FormatError: A name occurs twice.
    """
    found: dict[str, onnx.AttributeProto] = {}
    for attribute in attributes:
        if attribute.name in found:
            raise FormatError(f"attribute {attribute.name!r} is given twice")
        source = attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            source = given[attribute.ref_attr_name]
        found[attribute.name] = source
    return found
