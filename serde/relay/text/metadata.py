"""The metadata section: a JSON graph of objects that do not print inline.

A node has a type key and its fields as strings, each a value or the index of
another node; node 0 is null. Arrays are little-endian containers in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Final

from serde.core.parsing import parse_json
from serde.relay.ir import Constant, OpDef
from serde.relay.ir.device import Device
from serde.relay.text.attribute_classes import (
    PREFIX,
    UNSET_ATTRIBUTES,
    attribute_class,
    class_key,
    is_object,
    place_value,
)
from serde.relay.text.containers import array_from_bytes
from serde.relay.text.json_nodes import NodeWriter

__all__ = ["AttributeObject", "Metadata", "MetadataWriter"]

_DEVICE: Final = ("device_type_int", "virtual_device_id", "memory_scope")
_MAX_EXPANDED: Final = 1_000_000
_MAX_DEPTH: Final = 32

Write = Callable[[NodeWriter], int]


class AttributeObject:
    """Attributes of an operator that came as one object: its class and its fields, unread."""

    __slots__ = ("fields", "key")

    def __init__(self, key: str, fields: Mapping[str, AnyValue]) -> None:
        self.key = key
        self.fields = fields


class MetadataWriter:
    """Collects objects while text is printed, then writes the section."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Write]] = {}
        self._known: dict[tuple[int, bool], int] = {}

    def constant(self, node: Constant, *, typed: bool) -> str:
        """Return the reference to a constant; one object has one entry."""
        key = (id(node), typed)
        if key not in self._known:
            write = partial(NodeWriter.constant, node=node, typed=typed)
            self._known[key] = self._add("relay.Constant", write)
        return f"meta[relay.Constant][{self._known[key]}]"

    def boxed(self, value: int) -> str:
        """Return the reference to a boxed integer."""
        index = self._add("runtime.BoxInt", partial(NodeWriter.value, value=value, boxed=True))
        return f"meta[runtime.BoxInt][{index}]"

    def device(self, value: Device) -> str:
        """Return the reference to a device."""
        write = partial(NodeWriter.device, device=value)
        return f"meta[VirtualDevice][{self._add('VirtualDevice', write)}]"

    def attributes(self, definition: OpDef, values: Mapping[str, AnyValue]) -> str:
        """Return the reference to the attributes of a call."""
        key = attribute_class(definition)
        write = partial(NodeWriter.attributes, definition=definition, values=values)
        return f"meta[{key}][{self._add(key, write)}]"

    def _add(self, key: str, write: Write) -> int:
        entries = self._entries.setdefault(key, [])
        entries.append(write)
        return len(entries) - 1

    def text(self) -> str:
        """Return the section, or nothing where no object was referred to."""
        if not self._entries:
            return ""
        writer = NodeWriter()
        root = writer.reserve()
        lists: dict[str, int] = {}
        for key, entries in self._entries.items():
            lists[key] = writer.reserve()
            writer.array(lists[key], [write(writer) for write in entries])
        return f"#[metadata]\n{writer.text(writer.names(root, lists))}"


class Metadata:
    """A metadata section that was read; objects are made when they are asked for.

    Args:
        text: The JSON text.

    Raises:
        ValueError: It is not a JSON graph.
    """

    def __init__(self, text: str = "") -> None:
        self._nodes: list[AnyValue] = [{}]
        self._arrays: list[AnyValue] = []
        self._lists: dict[str, list[int]] = {}
        self._made: dict[int, tuple[AnyValue, int]] = {}
        self._more: dict[str, tuple[AnyValue, ...]] = {}
        if text:
            self._read_graph(text)

    def _read_graph(self, text: str) -> None:
        try:
            graph = parse_json(text)
        except ValueError as error:
            raise ValueError(f"the metadata are not JSON: {error}") from None
        if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
            raise ValueError("the metadata have no nodes")
        self._nodes = graph["nodes"]
        arrays = graph.get("b64ndarrays", [])
        self._arrays = arrays if isinstance(arrays, list) else []
        root = self._node(graph.get("root"))
        keys, data = root.get("keys"), root.get("data")
        if root.get("type_key") not in ("Map", "StrMap") or not isinstance(keys, list):
            raise ValueError("the root of the metadata is no map from type keys")
        for key, index in zip(keys, _indices(data, len(keys)), strict=True):
            entries = self._node(index)
            if not isinstance(key, str) or entries.get("type_key") != "Array":
                raise ValueError("the root of the metadata maps to something that is no array")
            self._lists[key] = _indices(entries.get("data", []))

    def _node(self, index: AnyValue) -> dict[str, AnyValue]:
        if type(index) is not int or not 0 <= index < len(self._nodes):
            raise ValueError(f"the metadata have no node {index!r}")
        node = self._nodes[index]
        if not isinstance(node, dict):
            raise ValueError(f"node {index} of the metadata is no object")
        return node

    def extend(self, tables: Mapping[str, Sequence[AnyValue]]) -> None:
        """Let these objects by type key follow those of the section."""
        self._more = {key: tuple(values) for key, values in tables.items()}

    def get(self, key: str, index: int) -> AnyValue:
        """Return entry `index` below a type key; the same object each time.

        Raises:
            ValueError: There is none, it is malformed, or of a kind that the pivot lacks.
        """
        entries = self._lists.get(key, [])
        more = self._more.get(key, ())
        if len(entries) <= index < len(entries) + len(more):
            return more[index - len(entries)]
        if not 0 <= index < len(entries):
            raise ValueError(f"the metadata section has no meta[{key}][{index}]")
        return self._make(entries[index], 0)[0]

    def _make(self, index: int, depth: int) -> tuple[AnyValue, int]:
        """Return the object at a node and how many objects it unfolds to."""
        if index in self._made:
            return self._made[index]
        if depth > _MAX_DEPTH:
            raise ValueError("the metadata are nested too deeply")
        node = self._node(index)
        value, size = self._value(node, depth)
        if size > _MAX_EXPANDED:
            raise ValueError(f"an object of the metadata unfolds to more than {_MAX_EXPANDED}")
        self._made[index] = (value, size)
        return value, size

    def _value(self, node: Mapping[str, AnyValue], depth: int) -> tuple[AnyValue, int]:
        """Return the value of a node, and how many nodes it stands for."""
        key = node.get("type_key")
        fields = node.get("attrs", {})
        if not isinstance(fields, dict) or not isinstance(key, str):
            raise ValueError("a node of the metadata has no type key or no attributes")
        if key == "":
            return None, 1
        if key == "runtime.String":
            return str(node.get("repr_str", "")), 1
        if key in ("runtime.BoxInt", "runtime.BoxBool", "runtime.BoxFloat"):
            text = str(node.get("repr_str", ""))
            return {"I": _integer, "B": _boolean, "F": _number}[key[11]](text), 1
        if key == "IntImm":
            value = _integer(fields.get("value"))
            return (bool(value) if fields.get("dtype") in ("bool", "uint1") else value), 1
        if key == "FloatImm":
            return _number(fields.get("value")), 1
        if key == "Array":
            made = [self._make(i, depth + 1) for i in _indices(node.get("data", []))]
            return tuple(value for value, _ in made), 1 + sum(size for _, size in made)
        if key == "relay.Constant":
            return self._read_constant(fields), 1
        if key == "VirtualDevice":  # What it is a target for is not kept.
            kind, number, scope = (_integer(fields.get(name)) for name in _DEVICE)
            return Device(kind, number, str(self._make(scope, depth + 1)[0])), 1
        if key.startswith(PREFIX):
            return AttributeObject(key, fields), 1
        raise ValueError(f"the metadata hold a {key}, which has no counterpart here")

    def _read_constant(self, fields: Mapping[str, AnyValue]) -> Constant:
        index = _integer(fields.get("data"))
        if not 0 <= index < len(self._arrays) or not isinstance(self._arrays[index], str):
            raise ValueError(f"the metadata have no array {index}")
        raw = base64.b64decode(self._arrays[index], validate=True)
        return Constant(array_from_bytes(raw))

    def attributes(self, given: AttributeObject, definition: OpDef) -> dict[str, AnyValue]:
        """Return the attributes of a call of an operator that came as one object.

        Raises:
            ValueError: They are of another class, one is malformed, or the operator lacks it.
        """
        expected = attribute_class(definition)
        if definition.meta_class is None or class_key(expected) != class_key(given.key):
            raise ValueError(f"{definition.name}: its attributes are no {given.key}")
        values: dict[str, AnyValue] = {}
        for name, text in given.fields.items():
            attribute = definition.attributes.get(name)
            if attribute is None:
                if text not in ("", "0") and name not in UNSET_ATTRIBUTES.get(definition.name, {}):
                    raise ValueError(f"{definition.name}: unknown attribute {name[:60]}")
            elif is_object(definition, name):
                values[name] = self._make(_integer(text), 1)[0]
            else:
                values[name] = place_value(text, attribute)
        return values


def _indices(data: AnyValue, count: int | None = None) -> list[int]:
    if not isinstance(data, list) or any(type(item) is not int for item in data):
        raise ValueError("a list of the metadata does not hold the numbers of nodes")
    if count is not None and len(data) != count:
        raise ValueError(f"a map of the metadata has {count} keys and {len(data)} values")
    return data


def _integer(text: AnyValue) -> int:
    if isinstance(text, str) and len(text) <= 40:
        return int(text)
    raise ValueError(f"expected an integer in the metadata, found {str(text)[:40]!r}")


def _boolean(text: AnyValue) -> bool:
    value = _integer(text)
    if value not in (0, 1):
        raise ValueError(f"expected 0 or 1 in the metadata, found {value}")
    return bool(value)


def _number(text: AnyValue) -> float:
    if isinstance(text, str) and len(text) <= 400:
        return float(text)
    raise ValueError(f"expected a number in the metadata, found {str(text)[:40]!r}")
