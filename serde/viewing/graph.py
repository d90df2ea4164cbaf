"""A Relay model as a picture shows it: calls are nodes, tuples are taken apart, weights told.

One walk, by :func:`serde.relay.ir.visit.post_order`, for each function. A node belongs to the
innermost branch or function that holds all of its uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

from serde.core.records import replace
from serde.core.weights import Array
from serde.errors import RelayError
from serde.relay.ir import OpDef, RelayModel, TensorType, TupleType, Type, carried, post_order
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.text.printer import attribute_text
from serde.viewing.nodes import LONGEST_NAME, Box, Graph, Node, Operand, cut_text, shape_text

__all__ = ["attribute_rows", "category_of", "constant_text", "read_graph", "type_text"]

_SHOWN_ELEMENTS: Final = 8
_MOST_FIELDS: Final = 64
"""Fields of a tuple that are told apart; a file may claim any number."""


def read_graph(model: RelayModel, names: Mapping[str, Expr]) -> tuple[Graph, dict[Expr, int]]:
    """Return a model as a picture shows it, and the node that gives each expression.

    Args:
        model: The model.
        names: Expressions of ``main`` by what the source calls them.
    """
    reader = _Reader(model, names)
    reader.read_module()
    single = {expr: given[0] for expr, given in reader.given.items() if len(given) == 1}
    return reader.graph, {expr: given.node for expr, given in single.items() if given.node >= 0}


def category_of(op: OpDef) -> str:
    """Return the group of operators that one is declared in, such as ``conv``."""
    parts = op.kernel.__module__.split(".")
    return parts[3] if parts[:3] == ["serde", "relay", "op"] and len(parts) > 3 else ""


def type_text(type_: Type | None) -> str:
    """Return a type for people, its dtype before its shape."""
    if isinstance(type_, TensorType):
        return f"{type_.dtype} {shape_text(type_.shape)}"
    if isinstance(type_, TupleType):
        shown = ", ".join(type_text(each) for each in type_.fields[:_SHOWN_ELEMENTS])
        return cut_text(f"({shown}{', …' if len(type_.fields) > _SHOWN_ELEMENTS else ''})")
    return "" if type_ is None else cut_text(repr(type_))


class _Reader:
    """State of one reading.

    Attributes:
        graph: What has been read.
        given: What stands for each expression: one operand, or one for each field of a tuple.
    """

    def __init__(self, model: RelayModel, names: Mapping[str, Expr]) -> None:
        self.graph = Graph()
        self.given: dict[Expr, tuple[Operand, ...]] = {}
        self._model = model
        self._names: dict[Expr, list[str]] = {}
        for name, value in names.items():
            self._names.setdefault(value, []).append(name)
        self._bound: dict[Var, Expr] = {}
        self._homes: dict[Expr, int] = {}
        self._called: set[Expr] = set()
        self._pending: list[tuple[Function, int, Sequence[str]]] = []

    def read_module(self) -> None:
        mod, main = self._model.mod, self._model.main
        self._pending.append((main, 0, self._model.meta.outputs))
        for variable, function in mod.functions.items():
            if function is not main:
                self._pending.append((function, self._box(f"@{variable.name_hint}", -1), ()))
        while self._pending:
            function, box, outputs = self._pending.pop(0)
            self._read_function(function, box, outputs)

    def _box(self, title: str, owner: int) -> int:
        self.graph.boxes.append(Box(cut_text(title, LONGEST_NAME), owner))
        return len(self.graph.boxes) - 1

    def _read_function(self, function: Function, box: int, outputs: Sequence[str]) -> None:
        """Read a function that stands by itself, and the functions and branches inside it."""
        order = post_order(function.body)
        self._bound.update((node.var, node.value) for node in order if isinstance(node, Let))
        inner = self._place(function, order, box)
        self._called.update(_called_once(order))
        self._params(function, box)
        for node in order:
            if node not in self.given:
                self._read(node)
        for owner, parts in inner.items():
            for part, body in parts:
                self._result(body, part)
                given = self.given.get(owner)
                self.graph.boxes[part].owner = given[0].node if given else -1
        self._result(function.body, box, outputs)

    def _place(
        self, function: Function, order: Sequence[Expr], box: int
    ) -> dict[Expr, list[tuple[int, Expr]]]:
        """Find the box of each node; return boxes and results of those that hold graphs."""
        inner: dict[Expr, list[tuple[int, Expr]]] = {}
        above = {box: -1}
        depth = {box: 0}
        homes = self._homes = {function.body: box}

        def enter(owner: Expr, title: str, body: Expr, home: int) -> int:
            part = self._box(title, -1)
            above[part], depth[part] = home, depth[home] + 1
            inner.setdefault(owner, []).append((part, body))
            return part

        for node in reversed(order):
            home = homes[node]
            for child, place in _uses(node, home, enter):
                known = homes.get(child)
                homes[child] = place if known is None else _common(known, place, above, depth)
        return inner

    def _params(self, function: Function, box: int) -> None:
        for param in function.params:
            name = param.name_hint
            if box == 0 and name in self._model.params:
                self.given[param] = (Operand("", weight=name),)
            else:
                kind = Node("input", "input", name=cut_text(name, LONGEST_NAME), box=box)
                self._add(param, kind)

    def _add(self, expr: Expr, node: Node) -> None:
        """Enter a node, and what stands for its results."""
        number = len(self.graph.nodes)
        type_ = expr.type
        fields = type_.fields if isinstance(type_, TupleType) else (type_,)
        node.types = [type_text(each) for each in fields[:_MOST_FIELDS]]
        known = self._names.get(expr, ())
        node.values = [cut_text(n, LONGEST_NAME) for n in known if n != node.name]
        self.graph.nodes.append(node)
        self.given[expr] = (Operand("", number),)

    def _read(self, node: Expr) -> None:
        if isinstance(node, Tuple):
            parts = [part for field in node.fields for part in self._operands(field)]
            self.given[node] = tuple(parts)
        elif isinstance(node, TupleGetItem):
            self.given[node] = self._item(node)
        elif isinstance(node, Constant):
            self.given[node] = (Operand("", text=constant_text(node.data)),)
        elif isinstance(node, Let):
            self.given[node] = self._operands(node.body)
        elif isinstance(node, Var):
            value = self._bound.get(node)
            if value is not None and value in self.given:
                self.given[node] = self.given[value]
            elif value is None:
                named = Node("input", "input", name=cut_text(node.name_hint, LONGEST_NAME))
                named.box = self._homes.get(node, 0)
                self._add(node, named)
        elif isinstance(node, Function):
            self._read_literal(node)
        elif isinstance(node, Call):
            self._read_call(node)
        elif node.below:
            self._read_other(node)

    def _operands(self, expr: Expr) -> tuple[Operand, ...]:
        found = self.given.get(expr)
        if found is not None:
            return found
        if isinstance(expr, Var):
            return (Operand("", text=f"%{cut_text(expr.name_hint, LONGEST_NAME)}"),)
        if isinstance(expr, GlobalVar):
            return (Operand("", text=f"@{cut_text(expr.name_hint, LONGEST_NAME)}"),)
        return ()

    def _item(self, node: TupleGetItem) -> tuple[Operand, ...]:
        parts = self._operands(node.tuple_value)
        names = self._names.get(node, ())
        if len(parts) == 1 and parts[0].node >= 0:
            of = self.graph.nodes[parts[0].node]
            of.values += [cut_text(n, LONGEST_NAME) for n in names if n != of.name]
            return (Operand("", parts[0].node, node.index),)
        return parts[node.index : node.index + 1]

    def _read_literal(self, node: Function) -> None:
        """Read a function that is a value: a node with the graph inside it."""
        if node not in self._called:
            found = Node(_function_name(node), category="function", box=self._homes[node])
            found.attributes = attribute_rows(node.attrs)
            self._add(node, found)

    def _read_call(self, node: Call) -> None:
        found = Node("", box=self._homes[node], name=_source_name(node))
        if isinstance(node.op, OpDef):
            self._read_operator(node, node.op, found)
        else:
            self._read_function_call(node, found)
        self._add(node, found)
        if node.op in self._called:
            self.given[node.op] = self.given[node]
        for number, body in enumerate(carried(node)):
            title = node.op.carries[number] if isinstance(node.op, OpDef) else "body"
            self._pending.append((body, self._box(title, len(self.graph.nodes) - 1), ()))

    def _read_function_call(self, node: Call, found: Node) -> None:
        found.category = "function"
        found.operands = list(self._labelled(node.args))
        if node.op in self._called and isinstance(node.op, Function):
            found.op, found.attributes = _function_name(node.op), attribute_rows(node.op.attrs)
            return
        target = self._operands(node.op)
        found.op = target[0].text if target and target[0].text else "call"
        found.operands += [replace(each, label="function") for each in target if each.node >= 0]

    def _read_operator(self, node: Call, op: OpDef, found: Node) -> None:
        found.op, found.category = op.name, category_of(op)
        attrs = {k: v for k, v in node.attrs.items() if not isinstance(v, Function)}
        defaults = {k: a.default for k, a in op.attributes.items() if not a.required}
        found.attributes = attribute_rows(attrs, defaults)
        if is_foreign(node):
            self._read_foreign(node, found)
        names = [operand.name for operand in op.operands]
        found.operands = list(self._labelled(node.args, names))

    def _read_foreign(self, node: Call, found: Node) -> None:
        try:
            foreign = Foreign.of(node)
        except RelayError:
            return
        found.op, found.kind = cut_text(foreign.full_name, LONGEST_NAME), "unknown"
        found.attributes = attribute_rows(foreign.plain_attributes)
        found.issues.append(f"kept as it is: an operator of {foreign.framework}")

    def _read_other(self, node: Expr) -> None:
        """Read a node that is rare: a branch, a match, a reference."""
        found = Node(type(node).__name__.lower(), category="control", box=self._homes[node])
        found.name = _source_name(node)
        parts = [node.cond] if isinstance(node, If) else list(node.below)
        found.operands = list(self._labelled(parts, ["condition"] if isinstance(node, If) else ()))
        self._add(node, found)

    def _labelled(self, parts: Sequence[Expr], names: Sequence[str] = ()) -> Iterator[Operand]:
        for place, part in enumerate(parts):
            name = names[place] if place < len(names) else str(place)
            found = self._operands(part)
            several = len(found) != 1 or isinstance(part, Tuple)
            for index, each in enumerate(found):
                yield replace(each, label=f"{name}[{index}]" if several else name)

    def _result(self, body: Expr, box: int, names: Sequence[str] = ()) -> None:
        """Enter a node for each result of a graph."""
        parts = self._operands(body)
        if len(parts) == 1 and isinstance(body.type, TupleType) and len(names) > 1:
            parts = tuple(Operand("", parts[0].node, i) for i in range(len(body.type.fields)))
        for place, part in enumerate(parts[:10_000]):
            name = names[place] if len(names) == len(parts) else f"result {place}"
            node = Node("output", "output", name=cut_text(name, LONGEST_NAME), box=box)
            node.operands = [part]
            if part.node >= 0:
                types = self.graph.nodes[part.node].types
                node.types = types[part.result : part.result + 1]
            self.graph.nodes.append(node)


def _called_once(order: Sequence[Expr]) -> Iterator[Expr]:
    """Yield the functions that only one call names, whose graphs are then that call's."""
    counts = Counter(child for node in order for child in node.below)
    for node in order:
        if isinstance(node, Call) and isinstance(node.op, Function) and counts[node.op] == 1:
            yield node.op


def _function_name(function: Function) -> str:
    return cut_text(str(function.attrs.get("Composite", "function")), LONGEST_NAME)


Enter: TypeAlias = Callable[[Expr, str, Expr, int], int]
"""Makes the box of a graph inside a node: of the node, a title, the result, and the box around."""


def _uses(node: Expr, home: int, enter: Enter) -> Iterator[tuple[Expr, int]]:
    """Yield the children of a node and the box in which each is used."""
    if isinstance(node, If):
        yield node.cond, home
        yield node.true_branch, enter(node, "then", node.true_branch, home)
        yield node.false_branch, enter(node, "else", node.false_branch, home)
    elif isinstance(node, Function):
        part = enter(node, "body", node.body, home)
        for param in node.params:
            yield param, part
        yield node.body, part
    else:
        for child in node.below:
            yield child, home


def _common(one: int, other: int, above: Mapping[int, int], depth: Mapping[int, int]) -> int:
    """Return the innermost box around two."""
    while one != other:
        if depth[one] >= depth[other]:
            one = above[one]
        else:
            other = above[other]
    return one


def _source_name(node: Expr) -> str:
    return "" if node.span is None else cut_text(str(node.span.source_name), LONGEST_NAME)


def attribute_rows(
    values: Mapping[str, AnyValue], defaults: Mapping[str, AnyValue] | None = None
) -> list[tuple[str, str, bool]]:
    """Return name and text of each attribute, and whether that is the default."""
    found = []
    known = {name: (type(each), repr(each)) for name, each in (defaults or {}).items()}
    for name, value in values.items():
        same = name in known and known[name] == (type(value), repr(value))
        found.append((cut_text(str(name), LONGEST_NAME), _value_text(value), same))
    return found


def _value_text(value: AnyValue) -> str:
    if isinstance(value, np.ndarray):
        return constant_text(value)
    if isinstance(value, (tuple, list)) and len(value) > 4 * LONGEST_NAME:
        return f"{len(value)} values"
    if isinstance(value, str):
        return cut_text(value)
    try:
        return cut_text(attribute_text(value, strict=False))
    except (RelayError, TypeError, ValueError):
        return cut_text(repr(value))


def constant_text(value: Array) -> str:
    """Return a constant for people: its dtype, its shape and its first values."""
    flat = np.asarray(value).reshape(-1)
    shown = ", ".join(f"{each:.6g}" if flat.dtype.kind == "f" else str(each)
                      for each in flat[:_SHOWN_ELEMENTS].tolist())  # fmt: skip
    more = ", …" if flat.size > _SHOWN_ELEMENTS else ""
    if not value.shape:
        return cut_text(f"{value.dtype} {shown}")
    return cut_text(f"{value.dtype} {shape_text(value.shape)} [{shown}{more}]")
