"""The attributes of a call in TVM's JSON: which fields are values and which are nodes.

TVM writes a plain number in place, and the number of a node for an integer
object; the text does not say which it is. Of the releases that our tables are
of, they tell; before, fields that may be null, lists and dimensions are always
nodes, and for the others TVM's order decides: nodes are numbered where they
are first met, so an integer object that only an attribute's field refers to
stands right behind the attributes, before any node of another kind.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.records import dataclass
from serde.relay.ir.registry import Attribute, OpDef
from serde.relay.text.attribute_classes import (
    OPERAND_ATTRIBUTES,
    UNSET_ATTRIBUTES,
    is_object,
    place_value,
    storage,
)

__all__ = ["AttributeReader", "Literal", "Node"]

_KNOWN: Final = ("0.17.", "0.18.", "0.19.")
_NUMBERS: Final = frozenset({"IntImm", "FloatImm", "runtime.BoxInt", "runtime.BoxBool"})
_VALUE_KINDS: Final = _NUMBERS | {"Array", "runtime.String", "runtime.BoxFloat"}


class Node:
    """A node: its type key and its fields, with errors where one is not what it should be."""

    __slots__ = ("_content", "fields", "key")

    def __init__(self, content: AnyValue, index: int) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"node {index} is no object")
        self._content: Mapping[str, AnyValue] = content
        key, fields = content.get("type_key"), content.get("attrs", {})
        if not isinstance(key, str) or not isinstance(fields, dict):
            raise ValueError(f"node {index} has no type key or no fields")
        self.key: str = key
        self.fields: Mapping[str, AnyValue] = fields

    def get(self, name: str, default: AnyValue = None) -> AnyValue:
        """Return what stands beside the type key."""
        return self._content.get(name, default)

    def text(self) -> AnyValue:
        """Return the text that the node stands for, as it is or in base64 behind its length."""
        if "repr_b64" not in self._content:
            return self.get("repr_str", "")
        try:
            return base64.b64decode(self.get("repr_b64"), validate=True)[8:].decode()
        except TypeError:
            raise ValueError(f"{self.key[:60]}: its bytes are no text") from None

    def items(self) -> list[int]:
        """Return the numbers of the nodes that an array or map holds."""
        data = self._content.get("data", [])
        if not isinstance(data, list) or any(type(item) is not int for item in data):
            raise ValueError("a list does not hold the numbers of nodes")
        return data

    def reference(self, name: str, *, missing: int | None = None) -> int:
        """Return the number of the node that a field refers to.

        Raises:
            ValueError: There is none.
        """
        if name not in self.fields and missing is not None:
            return missing
        text = self.fields.get(name)
        if not isinstance(text, str) or not _is_count(text):
            raise ValueError(f"{self.key[:60]}: the field {name} refers to no node")
        return int(text)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in a field itself."""

    value: AnyValue


class AttributeReader:
    """Finds the attributes of calls among the nodes of a graph.

    Args:
        nodes: The nodes.
        arrays: The arrays beside them.
        version: The release of TVM that wrote them.
    """

    def __init__(self, nodes: Sequence[AnyValue], arrays: Sequence[AnyValue], version: str) -> None:
        self._nodes = nodes
        self._arrays = arrays
        self._is_known = version.startswith(_KNOWN)
        self._listed: set[int] | None = None

    def node(self, index: int) -> Node:
        """Return a node.

        Raises:
            ValueError: There is none, or it is malformed.
        """
        if not 0 <= index < len(self._nodes):
            raise ValueError(f"the graph has no node {index}")
        return Node(self._nodes[index], index)

    def string_node(self, text: str) -> int | None:
        """Return the number that `text` is if that is the number of a string's node."""
        if not _is_count(text) or not 0 < int(text) < len(self._nodes):
            return None
        return int(text) if self.node(int(text)).key == "runtime.String" else None

    def fields(
        self, index: int, definition: OpDef, operands: Sequence[int]
    ) -> Iterator[tuple[str, int | Literal]]:
        """Yield each attribute of a call: its value, or the number of the node that holds it.

        Args:
            index: The node of the attributes, 0 for none.
            definition: The operator called.
            operands: The nodes of its operands.

        Raises:
            ValueError: An attribute is none of the operator's.
        """
        if not index:
            return
        node = self.node(index)
        repeated = OPERAND_ATTRIBUTES.get(definition.name, {})
        for name in node.fields:
            if name in repeated:
                self._check_repeated(node, definition, name, operands[repeated[name]])
            elif name not in definition.attributes:
                self._refuse_unknown(node, definition, name)
        known = self._is_known or definition.meta_class is not None
        sure = {
            name: node.reference(name)
            for name, attribute in definition.attributes.items()
            if name in node.fields and self._is_node(node, definition, attribute, known)
        }
        for name, attribute in definition.attributes.items():
            if name in sure:
                yield name, sure[name]
            elif name in node.fields:
                yield name, self._value(index, node, attribute, known, set(sure.values()))

    def _check_repeated(self, node: Node, definition: OpDef, name: str, operand: int) -> None:
        mine, other = self.node(node.reference(name)), self.node(operand)
        # TVM may save a typed copy beside the attribute's own node.
        if mine.key != other.key or self._said_by(mine) != self._said_by(other):
            raise ValueError(f"{definition.name}: {name} differs from the operand {name}")

    def _said_by(self, node: Node) -> list[AnyValue]:
        data = node.fields.get("data")
        if isinstance(data, str) and _is_count(data) and int(data) < len(self._arrays):
            data = self._arrays[int(data)]
        return [data, node.fields.get("vid"), node.fields.get("op")]

    def _refuse_unknown(self, node: Node, definition: OpDef, name: str) -> None:
        # Fields of TVM's own optimisers are there, but empty.
        unset = name in UNSET_ATTRIBUTES.get(definition.name, {})
        if node.fields[name] not in ("", "0") and not unset:
            raise ValueError(f"{definition.name}: unknown attribute {name[:60]}")

    def _is_node(self, node: Node, definition: OpDef, attribute: Attribute, known: bool) -> bool:
        if known:
            return is_object(definition, attribute.name)
        text = node.fields[attribute.name]
        is_number = isinstance(text, str) and _is_count(text)
        return is_number and storage(attribute.annotation) == "object"

    def _value(
        self, index: int, node: Node, attribute: Attribute, known: bool, taken: set[int]
    ) -> int | Literal:
        text = node.fields[attribute.name]
        if not known and isinstance(text, str):
            kind = storage(attribute.annotation)
            if kind == "text":
                return self._text_value(text, attribute.annotation)
            if kind != "dtype" and self._is_own_number(text, index, taken):
                return int(text)
        return Literal(place_value(text, attribute))

    def _text_value(self, text: str, annotation: str) -> int | Literal:
        found = self.string_node(text)
        if found is not None:
            return found
        return Literal(None if text == "0" and "None" in annotation else text)

    def _is_own_number(self, text: str, index: int, taken: set[int]) -> bool:
        """Whether `text` is the number of an integer object that belongs to node `index`."""
        if not _is_count(text) or not index < int(text) < len(self._nodes):
            return False
        target = int(text)
        if target in taken or target in self._find_listed():
            return False
        if self.node(target).key not in _NUMBERS or target - index > 1000:
            return False
        return all(self.node(between).key in _VALUE_KINDS for between in range(index + 1, target))

    def _find_listed(self) -> set[int]:
        if self._listed is None:
            self._listed = {
                item
                for content in self._nodes
                if isinstance(content, dict) and isinstance(content.get("data"), list)
                for item in content["data"]
                if type(item) is int
            }
        return self._listed


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10
