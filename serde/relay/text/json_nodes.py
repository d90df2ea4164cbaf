"""TVM's JSON graph of objects, as it is written.

A node has a type key and its fields as strings, each a value or the index of another node; node 0
is null. Arrays are little-endian containers in base64 beside the nodes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir import Any, Constant, OpDef, SymDim, TensorType
from serde.relay.ir.device import Device
from serde.relay.ir.dims import FloorDiv
from serde.relay.text.attribute_classes import (
    OPERAND_ATTRIBUTES,
    UNSET_ATTRIBUTES,
    attribute_class,
    dtype_text,
    is_boxed,
    is_object,
    place_text,
)
from serde.relay.text.containers import array_bytes

__all__ = ["NodeWriter"]

_UNSET: Final[dict[str, AnyValue]] = {"None": None, "[]": ()}


class NodeWriter:
    """Nodes in the order in which they are first met, which is their numbering."""

    def __init__(self) -> None:
        self._nodes: list[str] = ['"type_key": ""']
        self._arrays: list[str] = []
        self._device: int | None = None
        self._symbols: dict[str, int] = {}

    def text(self, root: int) -> str:
        """Return the graph as JSON, laid out as TVM does."""
        nodes = ", \n".join(f"    {{\n      {node}\n    }}" for node in self._nodes)
        arrays = ", \n".join(f'    "{array}"' for array in self._arrays)
        return (
            f'{{\n  "root": {root}, \n  "nodes": [\n{nodes}\n  ], \n'
            f'  "b64ndarrays": {f"[{chr(10)}{arrays}{chr(10)}  ]" if arrays else "[]"}, \n'
            f'  "attrs": {{"tvm_version": "0.18.0"}}\n}}'
        )

    def reserve(self) -> int:
        """Return the number of a node that is yet to be written."""
        self._nodes.append("")
        return len(self._nodes) - 1

    def object(self, index: int, key: str, fields: Mapping[str, str]) -> int:
        """Write an object with fields."""
        body = [f'"{name}": {_quote(fields[name])}' for name in sorted(fields)]
        if len(body) == 1:
            shown = f"{{{body[0]}}}"
        else:
            inner = ", \n".join(f"        {line}" for line in body)
            shown = f"{{\n{inner}\n      }}"
        self._nodes[index] = f'"type_key": "{key}", \n      "attrs": {shown}'
        return index

    def array(self, index: int, items: Sequence[int], key: str = "Array") -> int:
        """Write a list, or a map as keys and values in turns."""
        data = f', \n      "data": {_int_list(items)}' if items else ""
        self._nodes[index] = f'"type_key": "{key}"{data}'
        return index

    def names(self, index: int, items: Mapping[str, int]) -> int:
        """Write a map from texts."""
        keys = ", \n".join(f"        {_quote(key)}" for key in items)
        head = f', \n      "keys": [\n{keys}\n      ]' if items else ""
        self.array(index, [*items.values()], "Map")
        self._nodes[index] = self._nodes[index].replace('"Map"', f'"Map"{head}', 1)
        return index

    def leaf(self, value: str, key: str = "runtime.String") -> int:
        """Write a text, or an object that a text stands for."""
        index = self.reserve()
        form, shown = "repr_str", value
        if not (value.isascii() and value.isprintable()):
            data = value.encode()
            form, shown = "repr_b64", base64.b64encode(pack("<Q", len(data)) + data).decode()
        body = f', \n      "{form}": {_quote(shown)}' if value else ""
        self._nodes[index] = f'"type_key": "{key}"{body}'
        return index

    def value(self, value: AnyValue, *, boxed: bool = False) -> int:
        """Write a number, a text, a dimension, a list of them, or nothing.

        Args:
            value: What to write.
            boxed: Whether integers are run-time integers.

        Raises:
            RelayError: It is something else.
        """
        if value is None:
            return 0
        if isinstance(value, str):
            return self.leaf(value)
        if isinstance(value, Device):
            return self.device(value)
        if isinstance(value, (tuple, list)):
            index = self.reserve()
            return self.array(index, [self.value(item, boxed=boxed) for item in value])
        if boxed:
            return self.leaf(str(value), "runtime.BoxInt")
        if isinstance(value, (bool, int)):
            small = "int32" if -(2**31) <= value < 2**31 else "int64"
            fields = {"dtype": "bool" if isinstance(value, bool) else small, "value": int(value)}
            return self._expr("IntImm", fields)
        if isinstance(value, float):
            return self._expr("FloatImm", {"dtype": "float32", "value": f"{value:.17g}"})
        if isinstance(value, Any):
            return self._expr("tir.Any", {"dtype": "int32"})
        if isinstance(value, SymDim):
            return self._symbolic(value)
        raise RelayError(f"TVM's JSON cannot hold a {type(value).__name__} here")

    def _expr(self, key: str, fields: Mapping[str, AnyValue]) -> int:
        texts = {name: str(value) for name, value in fields.items()}
        return self.object(self.reserve(), key, {**texts, "span": "0"})

    def _symbolic(self, dim: SymDim) -> int:
        if dim.name is not None:
            return self._symbol(dim.name)
        terms = []
        for monomial, factor in dim.terms:
            atoms = [self._atom(atom) for atom, power in monomial for _ in range(power)]
            if factor != 1 or not atoms:
                atoms.append(self.value(factor))
            terms.append(self._fold("tir.Mul", atoms))
        return self._fold("tir.Add", terms)

    def _fold(self, key: str, parts: Sequence[int]) -> int:
        whole, *rest = parts
        for part in rest:
            whole = self._expr(key, {"a": whole, "b": part, "dtype": "int32"})
        return whole

    def _atom(self, atom: str | FloorDiv) -> int:
        if isinstance(atom, str):
            return self._symbol(atom)
        return self._fold("tir.FloorDiv", [*map(self.value, (atom.numerator, atom.denominator))])

    def _symbol(self, name: str) -> int:
        if name not in self._symbols:
            index = self._symbols[name] = self.reserve()
            kind = self.object(self.reserve(), "PrimType", {"dtype": "int32"})
            fields = {"name": str(self.leaf(name)), "type_annotation": str(kind)}
            self.object(index, "tir.Var", {**fields, "dtype": "int32", "span": "0"})
        return self._symbols[name]

    def attributes(
        self, definition: OpDef, values: Mapping[str, AnyValue], operands: Sequence[int] = ()
    ) -> int:
        """Write the attributes of a call of an operator.

        Args:
            definition: The operator.
            values: Its attributes; all of them.
            operands: The nodes of its operands.
        """
        index = self.reserve()
        fields = {}
        for name, value in values.items():
            if is_object(definition, name):
                fields[name] = str(self.value(value, boxed=is_boxed(definition, name)))
            else:
                fields[name] = place_text(value)
        for name, text in UNSET_ATTRIBUTES.get(definition.name, {}).items():
            unset = text in _UNSET
            fields[name] = str(self.value(_UNSET[text])) if unset else text.removesuffix("f")
        for name, place in OPERAND_ATTRIBUTES.get(definition.name, {}).items():
            fields[name] = str(operands[place])
        return self.object(index, attribute_class(definition), fields)

    def constant(self, node: Constant, *, typed: bool) -> int:
        """Write a constant, with its type if `typed`."""
        index = self.reserve()
        self._arrays.append(base64.b64encode(array_bytes(node.data)).decode("ascii"))
        fields = {"data": str(len(self._arrays) - 1), "span": "0"}
        fields["virtual_device_"] = str(self.virtual_device())
        tensor = typed and isinstance(node.type, TensorType)
        fields["_checked_type_"] = str(self.tensor_type(node.type) if tensor else 0)
        return self.object(index, "relay.Constant", fields)

    def virtual_device(self) -> int:
        """Return the node of the device that is not chosen yet."""
        if self._device is None:
            self._device = self.device(Device())
        return self._device

    def device(self, device: Device) -> int:
        """Write a device."""
        kind, number, scope = device
        index = self.reserve()
        fields = {"device_type_int": str(kind), "virtual_device_id": str(number), "target": "0"}
        fields["memory_scope"] = str(self.leaf(scope))
        return self.object(index, "VirtualDevice", fields)

    def tensor_type(self, type_: AnyValue) -> int:
        """Write the type of a tensor."""
        index = self.reserve()
        fields = {
            "dtype": dtype_text(type_.dtype),
            "shape": str(self.value(type_.shape)),
            "span": "0",
        }
        return self.object(index, "relay.TensorType", fields)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _int_list(items: Sequence[int]) -> str:
    if len(items) <= 10:
        return f"[{', '.join(map(str, items))}]"
    inner = ", \n".join(f"        {item}" for item in items)
    return f"[\n{inner}\n      ]"
