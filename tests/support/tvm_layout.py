"""TVM's parameter files and JSON graphs written out by hand, from their documented layout."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import serde.relay as relay
from serde.relay.ir.expr import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.visit import post_order

PARAMS_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
TYPES = {
    "int8": (0, 8),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint32": (1, 32),
    "uint64": (1, 64),
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
            "attrs": {"tvm_version": "0.9.0"},
        }


def module_json(mod: relay.IRModule) -> str:
    """Return TVM's JSON of a module, without inferred types and places."""
    graph = JsonGraph()
    writer = _ModuleWriter(graph)
    pairs = [writer.write(each) for pair in mod.functions.items() for each in pair]
    root = graph.object("IRModule", functions=graph.add("Map", data=pairs), attrs=0)
    return json.dumps(graph.whole(root))


class _ModuleWriter:
    def __init__(self, graph: JsonGraph) -> None:
        self._graph = graph
        self._done: dict[Any, int] = {}

    def write(self, node: Any) -> int:
        """Return the number of the node of an expression, which may be given several times."""
        for each in post_order(node):
            if each not in self._done:
                self._done[each] = self._expr(each)
        return self._done[node]

    def _all(self, nodes: Iterable[Any]) -> int:
        return self._graph.array(*[self.write(node) for node in nodes])

    def _expr(self, node: Any) -> int:
        graph, done = self._graph, self.write
        if isinstance(node, Constant):
            graph.arrays.append(base64.b64encode(container(node.data)).decode())
            return graph.expr("relay.Constant", data=len(graph.arrays) - 1)
        if isinstance(node, Op):
            return graph.add("Op", repr_str=node.name)
        if isinstance(node, GlobalVar):
            return graph.expr("GlobalVar", name_hint=graph.text(node.name_hint))
        if isinstance(node, Var):
            name = graph.object("relay.Id", name_hint=graph.text(node.name_hint))
            type_ = self._type(node.type_annotation)
            return graph.expr("relay.Var", vid=name, type_annotation=type_)
        if isinstance(node, Call):
            callee = self._expr(node.op) if isinstance(node.op, Op) else done(node.op)
            operands = self._all(node.args)
            attrs = self._attrs(node) if node.attrs else 0
            return graph.expr("relay.Call", op=callee, args=operands, attrs=attrs, type_args=0)
        if isinstance(node, Tuple):
            return graph.expr("relay.Tuple", fields=self._all(node.fields))
        if isinstance(node, TupleGetItem):
            value = done(node.tuple_value)
            return graph.expr("relay.TupleGetItem", tuple_value=value, index=node.index)
        if isinstance(node, If):
            return graph.expr(
                "relay.If", cond=done(node.cond), true_branch=done(node.true_branch),
                false_branch=done(node.false_branch),
            )  # fmt: skip
        if isinstance(node, Let):
            return graph.expr(
                "relay.Let", var=done(node.var), value=done(node.value), body=done(node.body)
            )
        assert isinstance(node, Function)
        return graph.expr(
            "relay.Function", params=self._all(node.params), body=done(node.body),
            ret_type=self._type(node.ret_type), type_params=0, attrs=0,
        )  # fmt: skip

    def _attrs(self, node: Call) -> int:
        fields = {}
        for name, value in node.attrs.items():
            kind = node.op.attributes[name].annotation
            boxed = any(word in kind for word in ("None", "Dim", "tuple"))
            plain = "" if value is None and "dtype" in kind else value
            fields[name] = self._value(plain, boxed=boxed and "dtype" not in kind)
        return self._graph.object("relay.attrs.Some", **fields)

    def _value(self, value: Any, *, boxed: bool = False) -> Any:
        if isinstance(value, tuple):
            return self._graph.array(*[self._boxed(item) for item in value])
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, bool):
            return int(value)
        if value is None:
            return 0
        return self._boxed(value) if boxed else value

    def _boxed(self, item: Any) -> int:
        if isinstance(item, tuple):
            return int(self._value(item))
        if isinstance(item, float):
            return self._graph.object("FloatImm", dtype="float32", span=0, value=item)
        return self._graph.text(item) if isinstance(item, str) else self._graph.integer(item)

    def _type(self, type_: Any) -> int:
        graph = self._graph
        if type_ is None:
            return 0
        if isinstance(type_, relay.TensorType):
            dims = graph.array(*map(self._dim, type_.shape))
            return graph.object("relay.TensorType", shape=dims, dtype=type_.dtype, span=0)
        if isinstance(type_, relay.FuncType):
            arguments = graph.array(*map(self._type, type_.arg_types))
            return graph.object(
                "FuncType", arg_types=arguments, ret_type=self._type(type_.ret_type), span=0
            )
        return graph.object("TupleType", fields=graph.array(*map(self._type, type_.fields)), span=0)

    def _dim(self, dim: Any) -> int:
        if isinstance(dim, int):
            return self._graph.integer(dim)
        return self._graph.object("tir.Any", dtype="int32", span=0)
