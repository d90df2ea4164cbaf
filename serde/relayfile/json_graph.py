"""TVM's JSON of a module: a graph of nodes with their fields as text.

A node has a type key and its fields, each a value or the number of another
node; node 0 is null. Only what the module's functions need is looked at, so
that the types, source maps and devices that TVM saves along cost nothing.
Each kind of node is read by a generator that yields the numbers of the nodes
it needs; :meth:`_Reader.build` keeps the stack, however deep the graph is.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import chain
from typing import Any as AnyValue, Final

from serde.core.limits import MAX_NAME_BYTES, MAX_NODES, MAX_RANK
from serde.core.parsing import parse_json
from serde.errors import FormatError, RelayError
from serde.relay.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)
from serde.relay.ir.adt import TypeData
from serde.relay.ir.device import Device
from serde.relay.ir.dims import Any, SymDim, symbol
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Op, Span, Tuple, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import OpDef, get
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.verify import verify
from serde.relay.text.attribute_classes import dtype_value
from serde.relay.text.composite import raise_composites
from serde.relay.text.containers import array_from_bytes
from serde.relay.text.parser import read_attribute
from serde.relay.transform.infer_type import InferType
from serde.relayfile.json_attributes import AttributeReader, Node
from serde.relayfile.json_kinds import KINDS, TYPE_VARS, NodeKind, as_expr, as_type, list_of

__all__ = ["read_graph", "read_node"]

Step = Generator[int, AnyValue, AnyValue]

_DEFAULTS: Final = {"complete": "1", "kind": "0"}
_LATER: Final = ("type_params", "type_constraints")
"""Fields that the oldest files lack."""

_ARITHMETIC: Final[dict[str, Callable[[AnyValue, AnyValue], AnyValue]]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv,
}  # fmt: skip
"""What lengths are computed by; before 0.7 without ``tir.``."""

_MAX_EXPANDED: Final = 1_000_000
_MAX_TERMS: Final = 100
_MAX_DIM_CHARS: Final = 1000


def read_graph(data: bytes, *, path: str | None = None) -> IRModule:
    """Return the module that JSON of TVM's ``save_json`` holds, with its types inferred.

    Args:
        data: The JSON of a module, or of a function, which becomes ``main``.
        path: What errors call it.

    Raises:
        FormatError: It is no such JSON, holds what the pivot lacks, or its operators do not fit
            their operands.
    """
    found: IRModule = _read(data, path, loose=False)
    return found


def read_node(data: bytes) -> IRModule | Expr | Type:
    """Return what JSON of TVM's ``save_json`` stands for; of a module the types are inferred.

    Raises:
        FormatError: As :func:`read_graph` does.
    """
    found: IRModule | Expr | Type = _read(data, None, loose=True)
    return found


def _read(data: bytes, path: str | None, *, loose: bool) -> AnyValue:
    reader: _Reader | None = None
    try:
        reader = _Reader(_parse_graph(data))
        found = reader.whole(loose=loose)
        if isinstance(found, IRModule):
            found = InferType()(found)
            verify(found, types=False)
            raised = raise_composites(found, read_attribute)
            found = raised if raised is found else InferType()(raised)
    except (ValueError, RelayError) as error:
        place = reader.place(error) if reader is not None else ""
        raise FormatError(f"{place}{error}", path=path) from None
    return found


def _parse_graph(data: bytes) -> Mapping[str, AnyValue]:
    try:
        graph = parse_json(data)
    except ValueError as error:
        raise ValueError(f"expected TVM's JSON of a module: {error}") from None
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    if not isinstance(nodes, list) or type(graph.get("root")) is not int:
        raise ValueError("expected TVM's JSON of a module: it has no nodes or no root")
    if len(nodes) > MAX_NODES:
        raise ValueError(f"a graph of {len(nodes)} nodes, at most {MAX_NODES}")
    return graph


class _Reader:
    """A graph while its nodes are read.

    Args:
        graph: TVM's JSON, parsed: nodes by number, the root, and arrays beside them.
    """

    def __init__(self, graph: Mapping[str, AnyValue]) -> None:
        self._root: int = graph["root"]
        self._nodes: list[AnyValue] = graph["nodes"]
        arrays = graph.get("b64ndarrays", [])
        self._arrays: list[AnyValue] = arrays if isinstance(arrays, list) else []
        facts = graph.get("attrs")
        version = facts.get("tvm_version") if isinstance(facts, dict) else None
        self._attributes = AttributeReader(self._nodes, self._arrays, str(version or ""))
        self._symbols = UniqueNames()
        self._sizes: dict[int, int] = {}
        self._kept: list[AnyValue] = []
        self._numbers: dict[Expr, int] = {}
        self._constructors: dict[tuple[GlobalTypeVar, str], Constructor] = {}
        self._leaf_readers: dict[str, Callable[[Node], AnyValue]] = {
            "": lambda node: None,
            "runtime.String": lambda node: _text(node.text()),
            "SourceName": lambda node: _text(node.text()),
            "Op": lambda node: get(_text(node.text())),
            "relay.Op": lambda node: get(_text(node.get("global_key", ""))),
            "runtime.BoxInt": lambda node: _integer(node.get("repr_str")),
            "runtime.BoxBool": lambda node: bool(_integer(node.get("repr_str"))),
            "runtime.BoxFloat": lambda node: _number(node.get("repr_str")),
            "IntImm": _int_imm,
            "FloatImm": lambda node: _number(node.fields.get("value")),
            "relay.Constant": self._constant,
            "tir.Any": lambda node: Any(),
        }
        self._compound: dict[str, Callable[[Node], Step]] = {
            "Array": self._array,
            "Map": self._map,
            "StrMap": self._map,
            "DictAttrs": self._dict_attrs,
            "IRModule": self._module,
            "relay.Id": self._id,
            "relay.Var": self._var,
            "relay.Call": self._call,
            "relay.Function": self._function,
            "relay.TensorType": self._tensor_type,
            **dict.fromkeys(("tir.Var", "tir.SizeVar", "Variable", "SizeVar"), self._symbol),
            **{key: self._arithmetic(combine) for key, combine in _ARITHMETIC.items()},
            **{f"tir.{key}": self._arithmetic(combine) for key, combine in _ARITHMETIC.items()},
            **{key: self._plain(kind) for kind in KINDS for key in kind.keys},
            "Span": self._span,
            "SequentialSpan": self._spans,
            "VirtualDevice": self._device,
        }

    def whole(self, *, loose: bool) -> AnyValue:
        """Return what the graph stands for: a module, or if `loose` whatever it is."""
        value = self.build(self._root)
        if isinstance(value, IRModule) or (loose and isinstance(value, (Expr, Type, SymDim))):
            return value
        if isinstance(value, Expr) and not isinstance(value, Op):
            return IRModule.from_expr(value)
        raise ValueError(f"expected a module or a function at the root, found {value!r}"[:200])

    def place(self, error: Exception) -> str:
        """Return how an error begins that is about an expression: with the number of its node."""
        if str(error).startswith("node "):
            return ""
        node = getattr(error, "node", None)
        place = self._numbers.get(node, self._root) if isinstance(node, Expr) else self._root
        return f"node {place}: "

    def build(self, root: int) -> AnyValue:
        """Return what node `root` stands for, those below it first and each of them once."""
        done: dict[int, AnyValue] = {}
        active = {root}
        stack: list[tuple[int, Step]] = [(root, self._make(root))]
        answer: AnyValue = None
        while stack:
            index, step = stack[-1]
            try:
                wanted = step.send(answer)
            except StopIteration as end:
                stack.pop()
                active.discard(index)
                answer = done[index] = end.value
                if isinstance(answer, Expr):
                    self._numbers.setdefault(answer, index)
                continue
            except (ValueError, RelayError) as error:
                if str(error).startswith("node "):
                    raise
                raise ValueError(f"node {index}: {error}") from None
            if wanted in done:
                answer = done[wanted]
                continue
            if wanted in active:
                raise ValueError(f"node {wanted}: it is below itself")
            if not 0 <= wanted < len(self._nodes):
                raise ValueError(f"node {index}: the graph has no node {wanted}")
            active.add(wanted)
            stack.append((wanted, self._make(wanted)))
            answer = None
        return done[root]

    def _make(self, index: int) -> Step:
        node = self._attributes.node(index)
        key = node.key
        if key in self._compound:
            return (yield from self._compound[key](node))
        if key in self._leaf_readers:
            return self._leaf_readers[key](node)
        raise ValueError(f"a {key[:60]} has no counterpart here")

    def _plain(self, kind: NodeKind) -> Callable[[Node], Step]:
        """Return what reads a kind of node whose fields are those of our class."""

        def read(node: Node) -> Step:
            values: list[AnyValue] = []
            for name, check in kind.fields.items():
                if check is str:
                    values.append((yield from self._name(node)))
                elif check in (int, bool):
                    number = _integer(node.fields.get(name, _DEFAULTS.get(name)))
                    values.append(bool(number) if check is bool else number)
                elif check is not None:
                    missing = 0 if name in _LATER else None
                    value = yield node.reference(name, missing=missing)
                    try:
                        values.append(check(value))
                    except ValueError as error:
                        raise ValueError(f"{node.key}: {name}: {error}") from None
            made = kind.made(*values)
            if isinstance(made, Constructor):  # TVM may save typed copies.
                return self._constructors.setdefault((made.belong_to, made.name_hint), made)
            if isinstance(made, Expr):
                made.span = yield from self._place(node)
            if isinstance(made, (TupleType, FuncType, TypeCall, RefType)):
                parts = (each if isinstance(each, tuple) else (each,) for each in values)
                return self._bound_expansion(made, [*chain.from_iterable(parts)])
            return made

        return read

    # Values.

    def _array(self, node: Node) -> Step:
        items = []
        for index in node.items():
            items.append((yield index))
        return self._bound_expansion(tuple(items), items)

    def _bound_expansion(self, value: AnyValue, parts: Sequence[AnyValue]) -> AnyValue:
        """Return `value` if it is not too long with its shared parts written out."""
        size = 1 + sum(self._sizes.get(id(part), 1) for part in parts)
        if size > _MAX_EXPANDED:
            raise ValueError(f"a list or type unfolds to more than {_MAX_EXPANDED} parts")
        self._sizes[id(value)] = size
        # Kept, so that its identity stays its own.
        self._kept.append(value)
        return value

    def _map(self, node: Node) -> Step:
        """Return a map as pairs; its keys may be nodes that no dictionary should compare."""
        keys, items = node.get("keys"), node.items()
        pairs: list[tuple[AnyValue, AnyValue]] = []
        if keys is None:
            if len(items) % 2:
                raise ValueError("a map has a key without a value")
            for key, value in zip(items[::2], items[1::2], strict=True):
                pairs.append(((yield key), (yield value)))
            return pairs
        if not isinstance(keys, list) or len(keys) != len(items):
            raise ValueError("a map has as many keys as values")
        for name, index in zip(keys, items, strict=True):
            pairs.append((_text(name), (yield index)))
        return pairs

    def _dict_attrs(self, node: Node) -> Step:
        pairs = yield node.reference("__dict__")
        attrs = {}
        for key, value in _pairs(pairs):
            if not isinstance(key, str):
                raise ValueError("a function attribute has a key that is no text")
            attrs[key] = _fact(key, value)
        return attrs

    def _constant(self, node: Node) -> Constant:
        index = _integer(node.fields.get("data"))
        if not 0 <= index < len(self._arrays) or not isinstance(self._arrays[index], str):
            raise ValueError(f"the graph has no array {index}")
        raw = base64.b64decode(self._arrays[index], validate=True)
        return Constant(array_from_bytes(raw))

    # Modules and functions.

    def _module(self, node: Node) -> Step:
        pairs = yield node.reference("functions")
        functions: dict[GlobalVar, Function] = {}
        for variable, function in _pairs(pairs):
            if not isinstance(variable, GlobalVar) or not isinstance(function, Function):
                raise ValueError(f"the module maps {variable!r} to {function!r}"[:200])
            functions[variable] = function
        types: dict[GlobalTypeVar, TypeData] = {}
        for header, data in _pairs((yield node.reference("type_definitions", missing=0))):
            if not isinstance(header, GlobalTypeVar) or not isinstance(data, TypeData):
                raise ValueError(f"the module maps {header!r} to {data!r}"[:200])
            types[header] = data
        attrs = (yield node.reference("attrs")) if "attrs" in node.fields else None
        return IRModule(functions, types, _facts(attrs))

    def _id(self, node: Node) -> Step:
        return (yield from self._name(node))

    def _name(self, node: Node) -> Step:
        """Read a name: the number of a string's node; before 0.7 the text, or a variable's."""
        if "var" in node.fields:
            node = self._attributes.node(_integer(node.fields["var"]))
        text = _text(node.fields.get("name_hint", node.fields.get("name")))
        index = self._attributes.string_node(text)
        return text if index is None else (yield index)

    def _var(self, node: Node) -> Step:
        name = yield node.reference("vid")
        type_ = yield node.reference("type_annotation")
        if not isinstance(name, str):
            raise ValueError("a variable has no name")
        return Var(name, _optional_type(type_), (yield from self._place(node)))

    def _function(self, node: Node) -> Step:
        params = yield node.reference("params")
        if not isinstance(params, tuple) or not all(isinstance(p, Var) for p in params):
            raise ValueError("a function has a parameter that is no variable")
        if len(set(params)) != len(params):
            raise ValueError("a function has one parameter twice")
        kinds = TYPE_VARS((yield node.reference("type_params", missing=0)))
        result = yield node.reference("ret_type")
        attrs = yield node.reference("attrs")
        body = as_expr((yield node.reference("body")))
        place = yield from self._place(node)
        return Function(params, body, _optional_type(result), kinds, _facts(attrs), place)

    def _call(self, node: Node) -> Step:
        callee = yield node.reference("op")
        args = yield node.reference("args")
        operands = [*list_of(as_expr)(args)]
        place = yield from self._place(node)
        if not isinstance(callee, OpDef):
            return Call(as_expr(callee), operands, None, span=place)
        while len(operands) < len(callee.operands) and callee.operands[len(operands)].optional:
            operands.append(Tuple(()))
        if len(operands) != len(callee.operands):
            expected = len(callee.operands)
            raise ValueError(f"{callee.name}: expected {expected} operands, found {len(operands)}")
        arguments = self._attributes.node(node.reference("args")).items()
        attrs: dict[str, AnyValue] = {}
        for name, field in self._attributes.fields(node.reference("attrs"), callee, arguments):
            value = (yield field) if isinstance(field, int) else field.value
            if value is not None or "None" in callee.attributes[name].annotation:
                attrs[name] = value
        return Call(callee, operands, callee.bind(attrs), span=place)

    def _place(self, node: Node) -> Step:
        span = yield node.reference("span", missing=0)
        if span is not None and not isinstance(span, Span):
            raise ValueError(f"a span is no place in a source: {span!r}"[:200])
        return span

    def _span(self, node: Node) -> Step:
        name = yield node.reference("source_name")
        line, column = (_integer(node.fields.get(key, "0")) for key in ("line", "column"))
        return Span(name, line, column=column) if isinstance(name, str) and name else None

    def _spans(self, node: Node) -> Step:
        """Read several spans; the first one names the node."""
        spans = yield node.reference("spans")
        return spans[0] if isinstance(spans, tuple) and spans else None

    def _device(self, node: Node) -> Step:
        """Read where a value is; what it is a target for is not kept."""
        scope = yield node.reference("memory_scope")
        kind, number = node.fields.get("device_type_int"), node.fields.get("virtual_device_id")
        return Device(_integer(kind), _integer(number), _text(scope))

    # Types.

    def _tensor_type(self, node: Node) -> Step:
        shape = yield node.reference("shape")
        dtype = _text(node.fields.get("dtype"))
        if not isinstance(shape, tuple) or len(shape) > MAX_RANK:
            raise ValueError(f"a tensor has at most {MAX_RANK} dimensions")
        try:
            return TensorType(shape, dtype_value(dtype))
        except TypeError:
            raise ValueError(f"{dtype[:40]} is no element type") from None

    def _symbol(self, node: Node) -> Step:
        """Read a named dimension; two of one name are two dimensions."""
        text = _text(node.fields.get("name"))
        index = self._attributes.string_node(text)
        name = text if index is None else (yield index)
        return symbol(self._symbols.reserve(name, ""))

    def _arithmetic(self, combine: Callable[[AnyValue, AnyValue], AnyValue]) -> Callable[..., Step]:
        def read(node: Node) -> Step:
            left = yield node.reference("a")
            right = yield node.reference("b")
            if not all(isinstance(each, (int, SymDim, Any)) for each in (left, right)):
                raise ValueError("a dimension is no sum, product or quotient of dimensions")
            if node.key.endswith("FloorDiv") and right == 0:
                raise ValueError("a dimension is divided by zero")
            value = combine(left, right)
            if isinstance(value, int) and abs(value) >= 2**63:
                raise ValueError("a dimension is beyond 64 bits")
            if isinstance(value, SymDim) and len(value.terms) > _MAX_TERMS:
                raise ValueError("a dimension has too many terms")
            if isinstance(value, SymDim) and len(str(value)) > _MAX_DIM_CHARS:
                raise ValueError("a dimension is too long")
            return value

        return read


def _pairs(value: AnyValue) -> Sequence[tuple[AnyValue, AnyValue]]:
    if value is None or isinstance(value, list):
        return value or []
    raise ValueError("expected a map")


def _facts(value: AnyValue) -> Mapping[str, AnyValue]:
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValueError("expected attributes by name")


def _optional_type(value: AnyValue) -> Type | None:
    if value is None or isinstance(value, IncompleteType):
        return None
    found: Type = as_type(value)
    return found


def _fact(key: str, value: AnyValue) -> AnyValue:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(item)
        elif item is not None and not isinstance(item, (bool, int, float, str)):
            raise ValueError(f"the function attribute {key[:60]} has no counterpart here")
    return value


def _text(value: AnyValue) -> str:
    if isinstance(value, str) and len(value) <= MAX_NAME_BYTES:
        return value
    raise ValueError(f"expected text, found {str(value)[:40]!r}")


def _int_imm(node: Node) -> AnyValue:
    value = _integer(node.fields.get("value"))
    return bool(value) if node.fields.get("dtype") in ("bool", "uint1") else value


def _integer(text: AnyValue) -> int:
    if isinstance(text, str) and len(text) <= 40 and text.removeprefix("-").isdecimal():
        return int(text)
    raise ValueError(f"expected an integer, found {str(text)[:40]!r}")


def _number(text: AnyValue) -> float:
    if isinstance(text, str) and len(text) <= 400:
        return float(text)
    raise ValueError(f"expected a number, found {str(text)[:40]!r}")
