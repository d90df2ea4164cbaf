"""The attributes of a call in TVM's JSON: which fields are values and which are nodes.

TVM writes a plain number in place, and the number of a node for an integer
object; the text does not say which it is. Fields that may be null, lists and
dimensions are always nodes. For the others TVM's order decides: nodes are
numbered where they are first met, so an integer object that only an
attribute's field refers to stands right behind the attributes, before any
node of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.records import dataclass
from serde.relay.ir.registry import Attribute, OpDef
from serde.relay.text.metadata import FIELDS, class_key
from serde.relay.text.printer import OPERAND_ATTRIBUTES, UNSET_ATTRIBUTES

__all__ = ["AttributeReader", "Literal", "Node"]

_NUMBERS: Final = frozenset({"IntImm", "FloatImm", "runtime.BoxInt", "runtime.BoxBool"})
_VALUE_KINDS: Final = _NUMBERS | {"Array", "runtime.String", "runtime.BoxFloat"}
_WORD: Final = re.compile(r"[A-Za-z_]+")
_NUMERIC: Final = frozenset({"int", "float", "bool", "Dim", "tuple"})
_PLAIN_KINDS: Final = frozenset({"int", "double", "bool", "string", "dtype"})


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
    """Finds the attributes of calls among the nodes of a graph."""

    def __init__(self, nodes: Sequence[AnyValue]) -> None:
        self._nodes = nodes
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
        kinds = FIELDS.get(class_key(node.key))
        sure = {
            name: node.reference(name)
            for name, attribute in definition.attributes.items()
            if name in node.fields and self._is_node(node, attribute, kinds)
        }
        for name, attribute in definition.attributes.items():
            if name in sure:
                yield name, sure[name]
            elif name in node.fields:
                known = kinds is not None and name in kinds
                yield name, self._value(index, node, attribute, known, set(sure.values()))

    def _check_repeated(self, node: Node, definition: OpDef, name: str, operand: int) -> None:
        mine, other = self.node(node.reference(name)), self.node(operand)
        says = ("vid", "data", "op")  # TVM may save a typed copy beside the attribute's own node.
        if mine.key != other.key or any(mine.fields.get(n) != other.fields.get(n) for n in says):
            raise ValueError(f"{definition.name}: {name} differs from the operand {name}")

    def _refuse_unknown(self, node: Node, definition: OpDef, name: str) -> None:
        # Fields of TVM's own optimisers are there, but empty.
        unset = name in UNSET_ATTRIBUTES.get(definition.name, {})
        if node.fields[name] not in ("", "0") and not unset:
            raise ValueError(f"{definition.name}: unknown attribute {name[:60]}")

    def _is_node(self, node: Node, attribute: Attribute, kinds: Mapping[str, str] | None) -> bool:
        if kinds is not None and attribute.name in kinds:
            return kinds[attribute.name] not in _PLAIN_KINDS
        text = node.fields[attribute.name]
        is_number = isinstance(text, str) and _is_count(text)
        return is_number and _kind(attribute.annotation) == "object"

    def _value(
        self, index: int, node: Node, attribute: Attribute, known: bool, taken: set[int]
    ) -> int | Literal:
        text, kind = node.fields[attribute.name], _kind(attribute.annotation)
        if not isinstance(text, str):
            raise ValueError(f"the attribute {attribute.name} is not written as text")
        if kind == "dtype":
            return Literal(text if text or "None" not in attribute.annotation else None)
        if kind == "text":
            return self._text_value(text, attribute.annotation)
        if not known and self._is_own_number(text, index, taken):
            return int(text)
        return Literal(_parse_number(text, attribute.annotation))

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


def _kind(annotation: str) -> str:
    """Return whether TVM keeps an attribute of this annotation as text, dtype, object or number."""
    words = set(_WORD.findall(annotation))
    if "Device" in words:
        return "object"
    if annotation.startswith("Literal") or not words & _NUMERIC:
        return "dtype" if "dtype" in words else "text"
    return "object" if words & {"None", "Dim", "tuple"} else "number"


def _parse_number(text: str, annotation: str) -> AnyValue:
    """Return the number that a field holds, as the attribute's annotation has it."""
    if len(text) > 400:
        raise ValueError(f"expected a number, found {text[:40]!r}")
    if "bool" in annotation:
        if text not in ("0", "1"):
            raise ValueError(f"expected 0 or 1, found {text[:40]!r}")
        return text == "1"
    return float(text) if "float" in annotation else int(text)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10
