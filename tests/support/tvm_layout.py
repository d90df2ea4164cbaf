"""TVM's parameter files and JSON graphs written out by hand, from their documented layout."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

PARAMS_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
TYPES = {
    "int8": (0, 8),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "bool": (1, 1),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
}


def container(array: np.ndarray, *, device: tuple[int, int] = (1, 0)) -> bytes:
    """One array."""
    code, bits = TYPES[array.dtype.name]
    head = struct.pack("<QQiiiBBH", ARRAY_MAGIC, 0, *device, array.ndim, code, bits, 1)
    shape = struct.pack(f"<{array.ndim}q", *array.shape)
    return head + shape + struct.pack("<q", array.nbytes) + array.tobytes()


def param_file(params: Mapping[str, np.ndarray]) -> bytes:
    """A parameter file."""
    parts = [struct.pack("<QQQ", PARAMS_MAGIC, 0, len(params))]
    for name in params:
        raw = name.encode()
        parts.append(struct.pack("<Q", len(raw)) + raw)
    parts.append(struct.pack("<Q", len(params)))
    parts.extend(container(array) for array in params.values())
    return b"".join(parts)


class JsonGraph:
    """Nodes of a JSON graph, numbered as they are added; node 0 is null."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.arrays: list[str] = []

    def add(self, key: str, **content: Any) -> int:
        """Add a node with what stands beside its type key."""
        self.nodes.append({"type_key": key, **content})
        return len(self.nodes) - 1

    def object(self, key: str, **fields: Any) -> int:
        """Add a node with fields, all of them text."""
        return self.add(key, attrs={name: str(value) for name, value in fields.items()})

    def expr(self, key: str, **fields: Any) -> int:
        """Add an expression, which has no inferred type, place or device."""
        return self.object(key, **{"span": 0, "_checked_type_": 0, "virtual_device_": 0, **fields})

    def array(self, *items: int) -> int:
        """Add an array of nodes."""
        return self.add("Array", data=list(items)) if items else self.add("Array")

    def text(self, value: str) -> int:
        """Add a string."""
        return self.add("runtime.String", repr_str=value)

    def integer(self, value: int) -> int:
        """Add an integer object."""
        return self.object("IntImm", dtype="int32", span=0, value=value)

    def op(self, name: str) -> int:
        """Add an operator."""
        return self.add("Op", repr_str=name)

    def tensor_type(self, *shape: int, dtype: str = "float32") -> int:
        """Add a tensor type."""
        dims = self.array(*[self.integer(length) for length in shape])
        return self.object("relay.TensorType", dtype=dtype, shape=dims, span=0)

    def var(self, name: str, type_: int) -> int:
        """Add a variable."""
        identity = self.object("relay.Id", name_hint=self.text(name))
        return self.expr("relay.Var", vid=identity, type_annotation=type_)

    def constant(self, value: np.ndarray) -> int:
        """Add a constant."""
        self.arrays.append(base64.b64encode(container(value)).decode())
        return self.expr("relay.Constant", data=len(self.arrays) - 1)

    def call(self, op: int, *args: int, attrs: int = 0, span: int = 0) -> int:
        """Add a call."""
        return self.expr(
            "relay.Call", op=op, args=self.array(*args), attrs=attrs, type_args=0, span=span
        )

    def function(self, params: list[int], body: int, attrs: int = 0) -> int:
        """Add a function."""
        return self.expr(
            "relay.Function",
            params=self.array(*params),
            body=body,
            ret_type=0,
            type_params=self.array(),
            attrs=attrs,
        )

    def module(self, **functions: int) -> dict[str, Any]:
        """Return the whole graph of a module."""
        pairs: list[int] = []
        for name, function in functions.items():
            pairs += [self.expr("GlobalVar", name_hint=self.text(name)), function]
        root = self.object("IRModule", functions=self.add("Map", data=pairs), attrs=0)
        return self.whole(root)

    def whole(self, root: int) -> dict[str, Any]:
        """Return the whole graph."""
        return {
            "root": root,
            "nodes": self.nodes,
            "b64ndarrays": self.arrays,
            "attrs": {"tvm_version": "0.18.0"},
        }
