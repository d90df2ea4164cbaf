"""The metadata section: a JSON graph of objects that do not print inline.

A node has a type key and its fields as strings, each a value or the index of
another node; node 0 is null. Arrays are little-endian containers in base64.

The attribute classes that TVM prints as metadata, and how each field is stored there. These
operators have attributes but declare no attribute class, so that TVM's parser could not build one
from ``key=value``. The kind of a field follows its type in TVM: a plain number or string is
written in place, an object gets a node of its own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.parsing import parse_json
from serde.relay.ir import Constant, TensorType
from serde.relay.ir.device import Device
from serde.relay.text.containers import array_bytes, array_from_bytes

__all__ = ["FIELDS", "PREFIX", "AttributeObject", "Metadata", "MetadataWriter", "class_key"]

PREFIX: Final = "relay.attrs."

FIELDS: Final[dict[str, dict[str, str]]] = {
    "AllClassNonMaximumSuppressionAttrs": {"output_format": "String"},
    "CompilerAttrs": {"compiler": "String"},
    "DFTAttrs": {"inverse": "Bool"},
    "DilateAttrs": {"strides": "ints", "dilation_value": "double"},
    "DynExpandDimsAttrs": {"num_newaxis": "int"},
    "GetValidCountsAttrs": {"score_threshold": "Float", "id_index": "int", "score_index": "int"},
    "InitOpAttrs": {"shape": "ints", "dtype": "dtype"},
    "NonMaximumSuppressionAttrs": {
        "force_suppress": "bool",
        "top_k": "int",
        "coord_start": "int",
        "score_index": "int",
        "id_index": "int",
        "return_indices": "bool",
        "invalid_to_bottom": "bool",
    },
    "ProposalAttrs": {
        "scales": "floats",
        "ratios": "floats",
        "feature_stride": "int",
        "threshold": "double",
        "rpn_pre_nms_top_n": "int",
        "rpn_post_nms_top_n": "int",
        "rpn_min_size": "int",
        "iou_loss": "bool",
    },
    "ROIAlignAttrs": {
        "pooled_size": "ints",
        "spatial_scale": "double",
        "sample_ratio": "int",
        "layout": "string",
        "mode": "string",
    },
    "ROIPoolAttrs": {"pooled_size": "ints", "spatial_scale": "double", "layout": "string"},
    "RegularNonMaximumSuppressionAttrs": {
        "max_detections_per_class": "int",
        "max_detections": "int",
        "num_classes": "int",
        "iou_threshold": "double",
        "score_threshold": "double",
    },
    "ScanopAttrs": {"axis": "Int", "dtype": "dtype", "exclusive": "Bool"},
    "ScatterElementsAttrs": {"axis": "Int", "reduction": "String"},
    "ScatterNDAttrs": {"mode": "String"},
    "StftAttrs": {
        "n_fft": "int",
        "hop_length": "int",
        "win_length": "int",
        "normalized": "bool",
        "onesided": "bool",
    },
    "TriluAttrs": {"upper": "bool"},
    "UniqueAttrs": {"sorted": "bool", "return_counts": "bool"},
}
"""Class to its fields in order of declaration; a kind with a capital is a node of its own."""


def class_key(name: str) -> str:
    """Return the class's name without the prefix of its type key."""
    return name.removeprefix(PREFIX)


_DEVICE: Final = ("device_type_int", "virtual_device_id", "memory_scope")
_MAX_EXPANDED: Final = 1_000_000
_MAX_DEPTH: Final = 32


class AttributeObject:
    """Attributes of an operator that came as one object: its class and its fields."""

    __slots__ = ("key", "values")

    def __init__(self, key: str, values: Mapping[str, AnyValue]) -> None:
        self.key = key
        self.values = dict(values)


class MetadataWriter:
    """Collects objects while text is printed, then writes the section."""

    def __init__(self) -> None:
        self._entries: dict[str, list[tuple[AnyValue, bool]]] = {}
        self._known: dict[tuple[int, bool], int] = {}

    def constant(self, node: Constant, *, typed: bool) -> str:
        """Return the reference to a constant; one object has one entry."""
        key = (id(node), typed)
        if key not in self._known:
            self._known[key] = self._add("relay.Constant", node, typed)
        return f"meta[relay.Constant][{self._known[key]}]"

    def boxed(self, value: int) -> str:
        """Return the reference to a boxed integer."""
        return f"meta[runtime.BoxInt][{self._add('runtime.BoxInt', value)}]"

    def device(self, value: Device) -> str:
        """Return the reference to a device."""
        return f"meta[VirtualDevice][{self._add('VirtualDevice', value)}]"

    def attributes(self, name: str, values: Mapping[str, AnyValue]) -> str:
        """Return the reference to an attribute object of class `name`."""
        key = PREFIX + class_key(name)
        return f"meta[{key}][{self._add(key, dict(values))}]"

    def _add(self, key: str, value: AnyValue, typed: bool = False) -> int:
        entries = self._entries.setdefault(key, [])
        entries.append((value, typed))
        return len(entries) - 1

    def text(self) -> str:
        """Return the section, or nothing where no object was referred to."""
        return _GraphWriter().write(self._entries) if self._entries else ""


class _GraphWriter:
    def __init__(self) -> None:
        self._nodes: list[str] = ['"type_key": ""']
        self._arrays: list[str] = []
        self._device: int | None = None

    def write(self, entries: Mapping[str, Sequence[tuple[AnyValue, bool]]]) -> str:
        root = self._reserve()
        lists = []
        for key, values in entries.items():
            lists.append(self._reserve())
            self._array(lists[-1], [self._entry(key, value, typed) for value, typed in values])
        keys = ", \n".join(f'        "{key}"' for key in entries)
        self._nodes[root] = (
            f'"type_key": "Map", \n      "keys": [\n{keys}\n      ], \n'
            f'      "data": {_int_list(lists)}'
        )
        nodes = ", \n".join(f"    {{\n      {node}\n    }}" for node in self._nodes)
        arrays = ", \n".join(f'    "{array}"' for array in self._arrays)
        return (
            f'#[metadata]\n{{\n  "root": {root}, \n  "nodes": [\n{nodes}\n  ], \n'
            f'  "b64ndarrays": {f"[{chr(10)}{arrays}{chr(10)}  ]" if arrays else "[]"}, \n'
            f'  "attrs": {{"tvm_version": "0.18.0"}}\n}}'
        )

    def _reserve(self) -> int:
        self._nodes.append("")
        return len(self._nodes) - 1

    def _object(self, index: int, key: str, fields: Mapping[str, str]) -> int:
        body = [f"{json.dumps(name)}: {json.dumps(fields[name])}" for name in sorted(fields)]
        if len(body) == 1:
            shown = f"{{{body[0]}}}"
        else:
            inner = ", \n".join(f"        {line}" for line in body)
            shown = f"{{\n{inner}\n      }}"
        self._nodes[index] = f'"type_key": "{key}", \n      "attrs": {shown}'
        return index

    def _array(self, index: int, items: Sequence[int]) -> int:
        data = f', \n      "data": {_int_list(items)}' if items else ""
        self._nodes[index] = f'"type_key": "Array"{data}'
        return index

    def _text(self, value: str, key: str = "runtime.String") -> int:
        index = self._reserve()
        shown = f', \n      "repr_str": {json.dumps(value)}' if value else ""
        self._nodes[index] = f'"type_key": "{key}"{shown}'
        return index

    def _entry(self, key: str, value: AnyValue, typed: bool) -> int:
        if isinstance(value, Constant):
            return self._constant(value, typed)
        if key == "runtime.BoxInt":
            return self._text(str(value), key)
        if isinstance(value, Device):
            return self._virtual_device(value)
        index = self._reserve()
        kinds = FIELDS[class_key(key)]
        fields = {name: self._field(kind, value.get(name)) for name, kind in kinds.items()}
        return self._object(index, key, fields)

    def _constant(self, node: Constant, typed: bool) -> int:
        index = self._reserve()
        self._arrays.append(base64.b64encode(array_bytes(node.data)).decode("ascii"))
        fields = {"data": str(len(self._arrays) - 1), "span": "0"}
        fields["virtual_device_"] = str(self._unconstrained())
        fields["_checked_type_"] = str(self._tensor_type(node.type) if typed else 0)
        return self._object(index, "relay.Constant", fields)

    def _unconstrained(self) -> int:
        if self._device is None:
            self._device = self._virtual_device(Device())
        return self._device

    def _virtual_device(self, value: Device) -> int:
        kind, number, scope = value
        index = self._reserve()
        fields = {"device_type_int": str(kind), "virtual_device_id": str(number), "target": "0"}
        fields["memory_scope"] = str(self._text(scope))
        return self._object(index, "VirtualDevice", fields)

    def _tensor_type(self, type_: AnyValue) -> int:
        if not isinstance(type_, TensorType):
            return 0
        index = self._reserve()
        shape = self._reserve()
        self._array(shape, [self._integer(int(dim)) for dim in type_.concrete_shape or ()])
        fields = {"dtype": type_.dtype, "shape": str(shape), "span": "0"}
        return self._object(index, "relay.TensorType", fields)

    def _integer(self, value: int, dtype: str = "") -> int:
        kind = dtype or ("int32" if -(2**31) <= value < 2**31 else "int64")
        fields = {"dtype": kind, "span": "0", "value": str(value)}
        return self._object(self._reserve(), "IntImm", fields)

    def _float(self, value: float) -> int:
        fields = {"dtype": "float32", "span": "0", "value": f"{value:.17g}"}
        return self._object(self._reserve(), "FloatImm", fields)

    def _field(self, kind: str, value: AnyValue) -> str:
        if kind == "dtype":
            return "" if value is None else np.dtype(value).name
        if kind in ("int", "bool"):
            return str(int(value))
        if kind == "double":
            return f"{value:.17g}"
        if kind == "string":
            return str(value)
        return str(self._field_object(kind, value))

    def _field_object(self, kind: str, value: AnyValue) -> int:
        if value is None:
            return 0
        if kind == "Int":
            return self._integer(value)
        if kind == "Bool":
            return self._integer(int(value), "bool")
        if kind == "Float":
            return self._float(value)
        if kind == "String":
            return self._text(value)
        index = self._reserve()
        one = self._float if kind == "floats" else self._integer
        return self._array(index, [one(item) for item in value])


def _int_list(items: Sequence[int]) -> str:
    if len(items) <= 10:
        return f"[{', '.join(map(str, items))}]"
    inner = ", \n".join(f"        {item}" for item in items)
    return f"[\n{inner}\n      ]"


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
            return self._attributes(key, fields, depth)
        raise ValueError(f"the metadata hold a {key}, which has no counterpart here")

    def _read_constant(self, fields: Mapping[str, AnyValue]) -> Constant:
        index = _integer(fields.get("data"))
        if not 0 <= index < len(self._arrays) or not isinstance(self._arrays[index], str):
            raise ValueError(f"the metadata have no array {index}")
        raw = base64.b64decode(self._arrays[index], validate=True)
        return Constant(array_from_bytes(raw))

    def _attributes(
        self, key: str, fields: Mapping[str, AnyValue], depth: int
    ) -> tuple[AttributeObject, int]:
        kinds = FIELDS.get(class_key(key))
        if kinds is None:
            raise ValueError(f"the attribute class {key} is not known")
        values: dict[str, AnyValue] = {}
        total = 1
        for name, kind in kinds.items():
            if name not in fields:
                continue
            text = fields[name]
            if kind in ("string", "dtype"):
                values[name] = None if kind == "dtype" and text == "" else str(text)
            elif kind in ("int", "double", "bool"):
                read = {"int": _integer, "double": _number, "bool": _boolean}[kind]
                values[name] = read(text)
            else:
                values[name], size = self._make(_integer(text), depth + 1)
                total += size
        return AttributeObject(key, values), total


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
