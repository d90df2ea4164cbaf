"""Expressions: what is known is computed at once, else it becomes a node of the graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serde.errors import FormatError
from serde.torch.model import Argument, Graph, Node, Ref
from serde.torch.source.operators import ATTRIBUTES, BUILTINS, CONSTANTS, INFIX, PREFIX, dtype_of
from serde.torch.source.syntax import Unit
from serde.torch.source.values import Frame, Globals, Held, Instance, Library, Value, is_plain

__all__ = ["Expressions"]

_STEPS: Final = 200_000, 100
"""Most expressions and statements that are read, those of functions at each of their calls: of any
module, and for each node of its tree. DenseNet-121 takes 36,000."""


class Expressions:
    """Reads expressions.

    Attributes:
        modules: PyTorch's own modules and functions as far as they are no operators.
        frame: The function that is being read.
        node: What is being read of the user's text, of which errors tell the line.
        nodes: The nodes of the block that is being read; None while modules are constructed.
        weights: Names of weights in the state dictionary by the values that they are.
        scope: Where the module that is being called stands in the model.
    """

    iterate: Callable[[ast.expr, ast.expr, Callable[[], None]], None]
    members: Callable[[Instance], list[Value]]

    def __init__(self, modules: Globals, unit: Unit) -> None:
        self.modules = modules
        self.frame = Frame(modules)
        self.unit = unit
        self.node: ast.AST = unit.tree
        self.nodes: list[Node] | None = None
        self.weights: dict[str, str] = {}
        self.scope = ""
        self.steps = 0
        self._most = _STEPS[0] + _STEPS[1] * unit.size
        self._count = 0

    # Bounds and faults.

    def step(self, node: ast.AST | None = None, count: int = 1) -> None:
        """Count what is read, and note where it stands."""
        if node is not None and not self.frame.home.unit.is_own:
            self.unit, self.node = self.frame.home.unit, node
        self.steps += count
        if self.steps > self._most:
            raise self.fault(f"at most {self._most:,} steps, of which nets take few")

    def weigh(self, value: Value) -> Value:
        """Count all that is in a tuple, a list or a text, which others may be made of again."""
        pending = [value]
        while pending:
            each = pending.pop()
            if isinstance(each, (tuple, list, str)):
                self.step(count=len(each))
                pending += () if isinstance(each, str) else each
        return value

    def fault(self, expected: str) -> FormatError:
        """Return an error about what is being read."""
        return self.unit.fault(self.node, expected)

    # Nodes.

    def fresh(self, hint: str) -> str:
        """Return a name for a value."""
        self._count += 1
        return f"{self.scope}/{hint}_{self._count}".lstrip("/")

    def emit(self, op: str, *args: Value, **named: Value) -> Ref:
        """Write a node with one result."""
        return Ref(self.write(op, args, named)[0])

    def write(
        self, op: str, args: Sequence[Value], named: Mapping[str, Value], outputs: int = 1
    ) -> list[str]:
        """Write a node and return the names of its results."""
        if self.nodes is None:
            raise self.fault("numbers and layers where a module is constructed")
        hint = op.partition("::")[2].strip("_")
        names = [self.fresh(hint) for _ in range(outputs)]
        given = [(str(place), self.argument(each)) for place, each in enumerate(args)]
        given += [(name, self.argument(each)) for name, each in named.items()]
        where = f"{self.unit.name}:{getattr(self.node, 'lineno', 1)}"
        self.nodes.append(Node(op, (names or [self.fresh(hint)])[0], given, names, where=where))
        return names

    def argument(self, value: Value) -> Argument:
        """Return a value as an argument of a node."""
        if isinstance(value, Held):
            name = f"{value.name} weight"
            self.weights[name] = value.name
            return Ref(name)
        if isinstance(value, (tuple, list)):
            return [self.argument(each) for each in value]
        if not isinstance(value, Ref) and not is_plain(value):
            raise self.fault("a tensor, a number or a list")
        return value

    def either(self, test: Value, then: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """Return one of two values by a condition, only one of which is computed."""
        if is_plain(test):
            return then() if test else other()
        condition = self.emit("aten::Bool", test)
        (one, first), (two, second) = self.block(then), self.block(other)
        if is_plain(first) and type(first) is type(second) and first == second:
            return first
        found = self.emit("prim::If", condition)
        pairs = ((one, first), (two, second))
        self.add_blocks([Graph([], nodes, [self.argument(x)]) for nodes, x in pairs])
        return found

    def add_blocks(self, graphs: list[Graph]) -> None:
        """Give the node that was written last its blocks."""
        if self.nodes:
            self.nodes[-1].blocks = graphs

    def block(self, read: Callable[[], Value]) -> tuple[list[Node], Value]:
        """Return the nodes that something writes, and what it gives."""
        outer, self.nodes = self.nodes, []
        found = read()
        nodes, self.nodes = self.nodes, outer
        return nodes, found

    # Expressions.

    def value(self, node: ast.expr) -> Value:
        """Return what an expression stands for.

        Raises:
            FormatError: It is none of the subset that is read.
        """
        outer = self.unit, self.node
        self.step(node)
        read = getattr(self, f"_read_{type(node).__name__.lower()}", None)
        if read is None:
            raise self.fault("an expression as serde writes it")
        found = read(node)
        self.unit, self.node = outer
        return found

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Return what expressions stand for, those with a star each of its items."""
        found: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.value(node))
                continue
            items = self.value(node.value)
            if not isinstance(items, (tuple, list)):
                raise self.fault("items that are known behind a star")
            self.step(count=len(items))
            found += items
        return found

    def small(self, value: Value) -> Value:
        """Return what was computed, if it is a value that programs have."""
        beyond = isinstance(value, int) and not -(2**63) <= value < 2**64
        if beyond or not (is_plain(value) or value is Ellipsis):
            raise self.fault("a number of 64 bits, a text, True, False or None")
        return value

    def compute(self, function: Callable[..., Value], *args: Value) -> Value:
        """Return what a function of Python's gives for known values."""
        try:
            return self.small(function(*args))
        except (ArithmeticError, TypeError, ValueError):
            raise self.fault("what can be computed") from None

    def _read_constant(self, node: ast.Constant) -> Value:
        return self.small(node.value)

    def _read_name(self, node: ast.Name) -> Value:
        for names in (self.frame.env, self.frame.home.names):
            if node.id in names:
                return names[node.id]
        if node.id in BUILTINS:
            return Library(f"builtins.{node.id}")
        raise self.fault("a name that is assigned before it, or a function that is known")

    def _read_tuple(self, node: ast.Tuple) -> Value:
        return self.weigh(tuple(self.values(node.elts)))

    def _read_list(self, node: ast.List) -> Value:
        return self.make_list(self.weigh(self.values(node.elts)))

    def make_list(self, items: list[Value]) -> Value:
        """Return a new list."""
        return items if self.nodes is None else self.emit("prim::ListConstruct", *items)

    def _read_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        (each, *others) = node.generators
        if others or each.ifs or each.is_async:
            raise self.fault("one loop without a condition")
        outer, found = self.frame, self.make_list([])
        self.frame = Frame(outer.home, dict(outer.env), outer.live, outer.owner)

        def add() -> None:
            value = self.value(node.elt)
            if isinstance(found, list):
                found.append(value)
            else:
                self.emit("aten::append", found, value)

        self.iterate(each.iter, each.target, add)
        self.frame = outer
        return found

    _read_generatorexp = _read_listcomp

    def _read_binop(self, node: ast.BinOp) -> Value:
        return self.infix(type(node.op), self.value(node.left), self.value(node.right))

    def _read_compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            raise self.fault("one comparison")
        return self.infix(type(node.ops[0]), self.value(node.left), self.value(node.comparators[0]))

    def infix(self, kind: type, left: Value, right: Value) -> Value:
        """Return what an operator gives for two values."""
        op, function = INFIX[kind]
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (str, tuple, list)) and isinstance(other, int):
                self.step(count=len(one) * max(other, 0))
                if isinstance(one, list) and kind is ast.Mult:
                    return one * other
        if isinstance(left, (tuple, list)) and type(left) is type(right) and kind is ast.Add:
            return self.weigh(left + right)  # type: ignore[operator]
        if is_plain(left) and is_plain(right):
            return self.weigh(self.compute(function, left, right))
        if kind in (ast.Is, ast.IsNot) and not any(isinstance(x, Ref) for x in (left, right)):
            return function(left, right)
        if not op:
            raise self.fault("values that are known on both sides of 'in'")
        return self.emit(op, left, right)

    def _read_unaryop(self, node: ast.UnaryOp) -> Value:
        x = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return self.either(x, lambda: False, lambda: True)
        op, function = PREFIX.get(type(node.op), ("", None))
        if function is None:
            raise self.fault("-, ~ or not")
        return self.compute(function, x) if is_plain(x) else self.emit(op, x)

    def _read_boolop(self, node: ast.BoolOp) -> Value:
        first, *rest = node.values
        found = self.value(first)
        if not rest:
            return found
        others = ast.copy_location(ast.BoolOp(node.op, rest), node)
        if isinstance(node.op, ast.And):
            return self.either(found, lambda: self.value(others), lambda: found)
        return self.either(found, lambda: found, lambda: self.value(others))

    def _read_ifexp(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        return self.either(test, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def _read_joinedstr(self, node: ast.JoinedStr) -> Value:
        values = [x.value if isinstance(x, ast.FormattedValue) else x for x in node.values]
        parts = self.values(values)
        if not all(isinstance(each, (int, str)) for each in parts):
            raise self.fault("texts and integers in a text")
        return self.weigh("".join(map(str, parts)))

    # Parts.

    def _read_subscript(self, node: ast.Subscript) -> Value:
        x = whole = self.value(node.value)
        x = self.members(x) if isinstance(x, Instance) else x
        items, kinds = self.brackets(node.slice)
        if not isinstance(x, (tuple, list)) or not is_plain(items):
            return self.emit("aten::__getitem__", x, items, kinds=kinds)
        try:
            found = x[slice(*items) if kinds == "s" else items[0]]
            if kinds == "s" and isinstance(whole, Instance):
                return Instance(whole.kind, {str(place): each for place, each in enumerate(found)})
            return found
        except (IndexError, TypeError, ValueError):
            raise self.fault(f"a place in {len(x)} items") from None

    def brackets(self, node: ast.expr) -> tuple[list[Value], str]:
        """Return what is in brackets, and of which kinds: ``v``, ``s`` (of three) or ``.``."""
        found: list[Value] = []
        kinds = ""
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            if isinstance(each, ast.Slice):
                ends = each.lower, each.upper, each.step
                found += [None if x is None else self.value(x) for x in ends]
                kinds += "s"
                continue
            value = self.value(each)
            found += [] if value is Ellipsis else [value]
            kinds += "." if value is Ellipsis else "v"
        return found, kinds

    def _read_attribute(self, node: ast.Attribute) -> Value:
        x, name = self.value(node.value), node.attr
        if isinstance(x, Library):
            full = f"{x.name}.{name}"
            dtype = dtype_of(name) if x.name == "torch" else None
            return CONSTANTS.get(full, Library(full) if dtype is None else dtype)
        if isinstance(x, Instance):
            return self._of_instance(x, name)
        if isinstance(x, Held) and name == "shape":
            return x.shape
        if name == "device":
            return "cpu"
        if name in ATTRIBUTES:
            return self.emit(ATTRIBUTES[name], x)
        if name in ("values", "indices"):
            return self.emit("aten::__getitem__", x, [int(name == "indices")], kinds="v")
        raise self.fault("shape, dtype, device or a method")

    def _of_instance(self, x: Instance, name: str) -> Value:
        if name in x.attributes:
            found = x.attributes[name]
            return found if self.nodes is None or not isinstance(found, list) else tuple(found)
        method = x.kind.method(name, x)
        if method is None and name != "training":
            raise self.fault("an attribute that __init__ assigns, or a method")
        return method or False
