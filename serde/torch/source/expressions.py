"""Expressions: what is known is computed at once, else it becomes a node of the graph."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue
from typing import Final

from serde.errors import FormatError
from serde.torch.model import Argument, Graph, Node, Ref
from serde.torch.ops.table import DTYPE_CODES
from serde.torch.source.operators import (
    BUILTINS,
    CASTS,
    CONSTANT_MATH,
    CONSTANTS,
    INFIX,
    METHODS,
    PREFIX,
    dtype_of,
    name_of,
)
from serde.torch.source.values import (
    Class,
    Frame,
    Function,
    Globals,
    Held,
    Instance,
    Items,
    Library,
    Value,
)

__all__ = ["Expressions"]

MAX_STEPS: Final = 1_000_000
"""Most expressions and statements that are read, those of functions at each of their calls."""

_TYPES: Final[Mapping[str, type]] = {
    "bool": bool, "float": float, "int": int, "str": str, "tuple": tuple,
}  # fmt: skip


def is_plain(value: Value) -> bool:
    """Whether Python can compute with a value: numbers, texts, None, and tuples of these."""
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


class Expressions:
    """Reads expressions.

    Attributes:
        nodes: The nodes of the block that is being read; None while modules are constructed.
        weights: Names of weights in the state dictionary by the values that they are.
    """

    def __init__(self, modules: Globals) -> None:
        self.nodes: list[Node] | None = None
        self.weights: dict[str, str] = {}
        self.modules = modules
        self.scope = ""
        self._count = 0
        self._steps = 0
        self._unit = modules.unit
        self._node: ast.AST = ast.Pass()

    # What statements do, in terms of which calls are read.

    @abstractmethod
    def call(
        self, function: Function, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """Return what a function gives."""

    @abstractmethod
    def construct(
        self, kind: Class, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Instance:
        """Return a new module."""

    @abstractmethod
    def iterate(
        self, node: ast.AST, source: ast.expr, frame: Frame, body: Callable[[Value], None],
        target: ast.expr,
    ) -> None:  # fmt: skip
        """Read a body for every item of an iterable."""

    @abstractmethod
    def call_iterable(
        self, node: ast.AST, name: str, args: list[Value], frame: Frame
    ) -> Items | Sequence[Value]:
        """Return what ``range``, ``enumerate`` or ``zip`` gives."""

    @abstractmethod
    def list_of(self, node: ast.AST, items: Items, frame: Frame) -> Value:
        """Return a list of what a loop goes through."""

    @abstractmethod
    def loop_over(self, test: AnyValue, body: AnyValue) -> Value:
        """Return what ``torch.while_loop`` gives."""

    # Bounds and faults.

    def step(self, node: ast.AST, frame: Frame, count: int = 1) -> None:
        """Count what is read, and note where it stands."""
        if not frame.unit.is_own and hasattr(node, "lineno"):
            self._unit, self._node = frame.unit, node
        self._steps += count
        if self._steps > MAX_STEPS:
            raise self.fault(node, frame, f"at most {MAX_STEPS:,} steps, as nets take")

    def weigh(self, node: ast.AST, frame: Frame, value: Value) -> Value:
        """Count all that is in a tuple, a list or a text, which others may be made of again."""
        pending = [value]
        while pending:
            each = pending.pop()
            if isinstance(each, (tuple, list, str)):
                self.step(node, frame, len(each))
                pending += () if isinstance(each, str) else each
        return value

    def fault(self, node: ast.AST, frame: Frame, expected: str) -> FormatError:
        """Return an error about a node, in serde's own definitions about what calls them."""
        return self._unit.fault(self._node if frame.unit.is_own else node, expected)

    # Nodes.

    def fresh(self, hint: str) -> str:
        """Return a name for a value."""
        self._count += 1
        return f"{self.scope}/{hint}_{self._count}".lstrip("/")

    def emit(
        self, op: str, args: Sequence[Value], named: Mapping[str, Value] | None = None
    ) -> Ref:
        """Write a node with one result."""
        return Ref(self.write(op, args, named or {}, 1)[0])

    def write(
        self, op: str, args: Sequence[Value], named: Mapping[str, Value], outputs: int
    ) -> list[str]:
        """Write a node and return the names of its results."""
        if self.nodes is None:
            raise self._unit.fault(self._node, "numbers and layers where a module is constructed")
        hint = op.partition("::")[2].strip("_")
        names = [self.fresh(hint) for _ in range(outputs)]
        given = [(str(place), self.argument(each)) for place, each in enumerate(args)]
        given += [(name, self.argument(each)) for name, each in named.items()]
        label = names[0] if names else self.fresh(hint)
        where = f"{self._unit.name}:{getattr(self._node, 'lineno', 1)}"
        self.nodes.append(Node(op, label, given, names, where=where))
        return names

    def argument(self, value: Value) -> Argument:
        """Return a value as an argument of a node."""
        if isinstance(value, Held):
            name = f"{value.name} weight"
            self.weights[name] = value.name
            return Ref(name)
        if isinstance(value, (tuple, list)):
            return [self.argument(each) for each in value]
        if isinstance(value, (Class, Function, Instance, Items, Library, range)):
            raise self._unit.fault(self._node, "a tensor, a number or a list")
        return value

    def either(
        self, test: Value, then: Callable[[], Value], other: Callable[[], Value]
    ) -> Value:
        """Return one of two values by a condition, only one of which is computed."""
        if is_plain(test):
            return then() if test else other()
        condition = self.emit("aten::Bool", [test])
        (one, first), (two, second) = self.block(then), self.block(other)
        if is_plain(first) and is_plain(second) and type(first) is type(second) and first == second:
            return first
        graphs = [Graph([], nodes, [self.argument(x)]) for nodes, x in ((one, first), (two, second))]
        (name,) = self.write("prim::If", [condition], {}, 1)
        assert self.nodes is not None
        self.nodes[-1].blocks = graphs
        return Ref(name)

    def block(self, read: Callable[[], Value]) -> tuple[list[Node], Value]:
        """Return the nodes that something writes, and what it gives; arguments are theirs."""
        outer, self.nodes = self.nodes, []
        try:
            return self.nodes, read()
        finally:
            self.nodes = outer

    # Expressions.

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Return what an expression stands for.

        Raises:
            FormatError: It is none of the subset that is read.
        """
        self.step(node, frame)
        read = getattr(self, f"_read_{type(node).__name__.lower()}", None)
        if read is None:
            raise self.fault(node, frame, "an expression as serde writes it")
        return read(node, frame)

    def values(self, nodes: Sequence[ast.expr], frame: Frame) -> list[Value]:
        """Return what expressions stand for, those with a star each of its items."""
        found: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.value(node, frame))
                continue
            items = self.value(node.value, frame)
            if not isinstance(items, (tuple, list)):
                raise self.fault(node, frame, "items that are known behind a star")
            self.step(node, frame, len(items))
            found += items
        return found

    def _read_constant(self, node: ast.Constant, frame: Frame) -> Value:
        value = node.value
        if not (is_plain(value) or value is Ellipsis) or not self._is_small(value):
            raise self.fault(node, frame, "a number of 64 bits, a text, True, False or None")
        return value

    def _is_small(self, value: Value) -> bool:
        return not isinstance(value, int) or -(2**63) <= value < 2**64

    def _read_name(self, node: ast.Name, frame: Frame) -> Value:
        for names in (frame.env, frame.home.names):
            if node.id in names:
                return names[node.id]
        if node.id in BUILTINS or node.id in _ITERABLES:
            return Library(f"builtins.{node.id}")
        raise self.fault(node, frame, "a name that is assigned before it, or a function it knows")

    def _read_tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        return self.weigh(node, frame, tuple(self.values(node.elts, frame)))

    def _read_list(self, node: ast.List, frame: Frame) -> Value:
        return self.make_list(self.weigh(node, frame, self.values(node.elts, frame)))

    def make_list(self, items: list[Value]) -> Value:
        """Return a new list."""
        return items if self.nodes is None else self.emit("prim::ListConstruct", items)

    def _read_listcomp(self, node: ast.ListComp | ast.GeneratorExp, frame: Frame) -> Value:
        (each, *others) = node.generators
        if others or each.ifs or each.is_async:
            raise self.fault(node, frame, "one loop without a condition")
        inner = Frame(frame.home, dict(frame.env), frame.live, frame.owner)
        found = self.make_list([])

        def add(_item: Value) -> None:
            value = self.value(node.elt, inner)
            if isinstance(found, list):
                found.append(value)
            else:
                self.emit("aten::append", [found, value])

        self.iterate(node, each.iter, inner, add, each.target)
        return found

    _read_generatorexp = _read_listcomp

    def _read_binop(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self.infix(node, type(node.op), left, right, frame)

    def infix(self, node: ast.AST, kind: type, left: Value, right: Value, frame: Frame) -> Value:
        """Return what an operator gives for two values."""
        name, compute = INFIX[kind]
        if is_plain(left) and is_plain(right):
            self._check_growth(node, frame, left, right)
            try:
                found = compute(left, right)
            except (ArithmeticError, TypeError, ValueError) as error:
                raise self.fault(node, frame, f"what can be computed ({error})") from None
            if isinstance(found, complex) or not self._is_small(found):
                raise self.fault(node, frame, "a number of 64 bits")
            return self.weigh(node, frame, found)
        if kind in (ast.Is, ast.IsNot) and not any(isinstance(x, Ref) for x in (left, right)):
            return compute(left, right)
        if kind is ast.Mult and isinstance(left, list) and isinstance(right, int):
            self._check_growth(node, frame, left, right)
            return left * right
        if isinstance(left, (tuple, list)) and type(left) is type(right) and kind is ast.Add:
            return self.weigh(node, frame, left + right)
        if not name:
            raise self.fault(node, frame, "values that are known on both sides of 'in'")
        return self.emit(name, [left, right])

    def _check_growth(self, node: ast.AST, frame: Frame, left: Value, right: Value) -> None:
        """Count the items of what is repeated, which are made at once."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (str, tuple, list)) and isinstance(other, int):
                self.step(node, frame, len(one) * max(other, 0))

    def _read_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        x = self.value(node.operand, frame)
        name, compute = PREFIX[type(node.op)] if type(node.op) in PREFIX else ("", None)
        if compute is not None and isinstance(x, (bool, int, float, str, type(None))):
            return compute(x)
        if compute is None or not name:
            raise self.fault(node, frame, "-, ~ or not")
        if isinstance(node.op, ast.Not):
            return self.either(x, lambda: False, lambda: True)
        return self.emit(name, [x])

    def _read_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        first, *rest = node.values
        found = self.value(first, frame)
        if not rest:
            return found
        others = ast.copy_location(ast.BoolOp(node.op, rest), node)
        if isinstance(node.op, ast.And):
            return self.either(found, lambda: self.value(others, frame), lambda: found)
        return self.either(found, lambda: found, lambda: self.value(others, frame))

    def _read_ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.value(node.test, frame)
        return self.either(
            test, lambda: self.value(node.body, frame), lambda: self.value(node.orelse, frame)
        )

    def _read_compare(self, node: ast.Compare, frame: Frame) -> Value:
        if len(node.ops) > 1:
            raise self.fault(node, frame, "one comparison")
        left, right = self.value(node.left, frame), self.value(node.comparators[0], frame)
        return self.infix(node, type(node.ops[0]), left, right, frame)

    def _read_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts = []
        for each in node.values:
            value = self.value(each.value if isinstance(each, ast.FormattedValue) else each, frame)
            if not isinstance(value, (int, str)):
                raise self.fault(node, frame, "texts and integers in a text")
            parts.append(str(value))
        return self.weigh(node, frame, "".join(parts))

    # Parts.

    def _read_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        x = self.value(node.value, frame)
        if isinstance(x, Instance):
            x = self.members(node, x, frame)
        if isinstance(x, (tuple, list)):
            return self._part(node, x, frame)
        items, kinds = self.subscript(node.slice, frame)
        return self.emit("aten::__getitem__", [x, items], {"kinds": kinds})

    def _part(self, node: ast.Subscript, items: Sequence[Value], frame: Frame) -> Value:
        """Return what is in a tuple, or a list of modules."""
        found, kinds = self.subscript(node.slice, frame)
        if not is_plain(found):
            return self.emit("aten::__getitem__", [items, found], {"kinds": kinds})
        try:
            return items[slice(*found) if kinds == "s" else found[0]]
        except (IndexError, TypeError, ValueError):
            raise self.fault(node, frame, f"a place in {len(items)} items") from None

    def subscript(self, node: ast.expr, frame: Frame) -> tuple[list[Value], str]:
        """Return what is in brackets, and of which kinds: ``v``, ``s`` (of three) or ``.``."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        found: list[Value] = []
        kinds = ""
        for each in parts:
            if isinstance(each, ast.Slice):
                ends = each.lower, each.upper, each.step
                found += [None if x is None else self.value(x, frame) for x in ends]
                kinds += "s"
                continue
            value = self.value(each, frame)
            found += [] if value is Ellipsis else [value]
            kinds += "." if value is Ellipsis else "v"
        return found, kinds

    def _read_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        x, name = self.value(node.value, frame), node.attr
        if isinstance(x, Library):
            return self._of_library(f"{x.name}.{name}")
        if isinstance(x, Instance):
            return self._of_instance(node, x, frame)
        if name == "shape":
            return x.shape if isinstance(x, Held) else self.emit("aten::size", [x])
        if name == "dtype":
            return dtype_of(x.dtype) if isinstance(x, Held) else self.emit("prim::dtype", [x])
        if name in ("values", "indices"):
            place = int(name == "indices")
            return self.emit("aten::__getitem__", [x, [place]], {"kinds": "v"})
        if name == "device":
            return "cpu"
        if name in ("ndim", "T", "real", "imag"):
            return self.emit({"ndim": "aten::dim", "T": "aten::t"}.get(name, f"aten::{name}"), [x])
        raise self.fault(node, frame, "shape, dtype, device or a method")

    def _of_library(self, name: str) -> Value:
        if name in CONSTANTS:
            return CONSTANTS[name]
        dtype = dtype_of(name.removeprefix("torch.")) if name.startswith("torch.") else None
        return Library(name) if dtype is None else dtype

    def _of_instance(self, node: ast.Attribute, x: Instance, frame: Frame) -> Value:
        if node.attr in x.attributes:
            found = x.attributes[node.attr]
            return found if self.nodes is None or not isinstance(found, list) else tuple(found)
        method = x.kind.method(node.attr)
        if method is not None:
            return Function(method[1], method[0].home, this=x, owner=method[0])
        constant = x.kind.constant(node.attr)
        if constant is not ... or node.attr == "training":
            return False if constant is ... else constant
        raise self.fault(node, frame, "an attribute that __init__ assigns, or a method")

    # Calls.

    def _read_call(self, node: ast.Call, frame: Frame) -> Value:
        args = self.values(node.args, frame)
        named = {}
        for each in node.keywords:
            if each.arg is None:
                raise self.fault(each.value, frame, "arguments by name")
            named[each.arg] = self.value(each.value, frame)
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Call):
            x = self.value(node.func.value, frame)
            if isinstance(x, (Ref, Held)):
                return self._method(node, x, node.func.attr, args, named, frame)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            return self._call_of_call(node, node.func, args, named, frame)
        return self.apply(node, self.value(node.func, frame), args, named, frame)

    def _call_of_call(
        self, node: ast.Call, func: ast.Attribute, args: list[Value], named: dict[str, Value],
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Return what a method of a result gives, or ``super().__init__()``."""
        inner = func.value
        assert isinstance(inner, ast.Call)
        if isinstance(inner.func, ast.Name) and inner.func.id == "super" and not inner.args:
            if func.attr != "__init__" or frame.owner is None or self.nodes is not None:
                raise self.fault(node, frame, "super().__init__() in a constructor")
            base = frame.owner.base
            found = None if base is None else base.method("__init__")
            if found is not None:
                this = frame.env.get("self")
                self.call(Function(found[1], found[0].home, {}, this, found[0]), args, named)
            return None
        x = self.value(inner, frame)
        if isinstance(x, (Ref, Held)):
            return self._method(node, x, func.attr, args, named, frame)
        raise self.fault(node, frame, "a method of a tensor or a list")

    def _method(
        self, node: ast.Call, x: Value, name: str, args: list[Value], named: dict[str, Value],
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Return what a method of a tensor, or of a list, gives."""
        if name == "requires_grad_" and isinstance(x, Held):
            return x
        if name in CASTS and not args and not named:
            return self.emit("aten::to", [x, dtype_of(CASTS[name])])
        if name.startswith("__"):
            raise self.fault(node, frame, "a method of a tensor or a list")
        return self.emit(METHODS.get(name, f"aten::{name}"), [x, *args], named)

    def apply(
        self, node: ast.AST, function: Value, args: list[Value], named: dict[str, Value],
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Return what a value gives that is called."""
        if isinstance(function, Function):
            return self.call(function, args, named)
        if isinstance(function, Class):
            return self.construct(function, args, named)
        if isinstance(function, Instance):
            return self.call_module(node, function, args, named, frame)
        if not isinstance(function, Library):
            raise self.fault(node, frame, "a call of a function, a method or a module")
        return self._call_library(node, function.name, args, named, frame)

    def call_module(
        self, node: ast.AST, module: Instance, args: list[Value], named: dict[str, Value],
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Return what a module gives."""
        if self.is_container(module, "Sequential"):
            for each in self.members(node, module, frame):
                args, named = [self.call_module(node, each, args, named, frame)], {}
            return args[0] if len(args) == 1 else tuple(args)
        found = module.kind.method("forward")
        if found is None:
            raise self.fault(node, frame, "a module with a method forward")
        outer, self.scope = self.scope, module.path
        try:
            return self.call(Function(found[1], found[0].home, {}, module, found[0]), args, named)
        finally:
            self.scope = outer

    def is_container(self, module: Instance, *names: str) -> bool:
        """Whether a module is PyTorch's own of these names."""
        return module.kind.home is self.modules and module.kind.name in names

    def members(self, node: ast.AST, module: Instance, frame: Frame) -> list[Value]:
        """Return the modules of a list of them."""
        if not self.is_container(module, "ModuleList", "Sequential"):
            raise self.fault(node, frame, "nn.ModuleList or nn.Sequential")
        return list(module.attributes.values())

    def _call_library(
        self, node: ast.AST, name: str, args: list[Value], named: dict[str, Value], frame: Frame
    ) -> Value:
        """Return what a function of PyTorch's or Python's gives, or a module of PyTorch's."""
        home, _, own = name.rpartition(".")
        if home == "builtins":
            return self._call_builtin(node, own, args, named, frame)
        known = self.modules.names.get({"torch": f"torch_{own}"}.get(home, own))
        if home in ("torch.nn", "torch.nn.functional", "torch") and known is not None:
            return self.apply(node, known, args, named, frame)
        if name == "torch.nn.Parameter" and self.nodes is None:
            return self._parameter(node, args, frame)
        if name in _CREATED and self.nodes is None:
            return self._created(node, args, named, frame)
        if name == "torch.cond" and len(args) == 4 and isinstance(args[3], (tuple, list)):
            test, then, other, given = args
            pairs = [(x, list(given)) for x in (then, other)]
            one, two = (lambda x=x, y=y: self.apply(node, x, y, {}, frame) for x, y in pairs)
            return self.either(test, one, two)
        if name == "torch.while_loop" and len(args) == 3 and isinstance(args[2], tuple):
            return self.loop_over(args, lambda x, y: self.apply(node, x, y, {}, frame))
        op = name_of(name)
        if op is None:
            raise self.fault(node, frame, "a function of torch, F or math, or a layer of nn")
        if home == "math" and not named and all(isinstance(x, (int, float)) for x in args):
            return self._compute(node, frame, CONSTANT_MATH.get(own), args)
        return self.emit(op, args, named)

    def _call_builtin(
        self, node: ast.AST, name: str, args: list[Value], named: dict[str, Value], frame: Frame
    ) -> Value:
        if named:
            raise self.fault(node, frame, "arguments by their places")
        if name in _ITERABLES:
            return self.call_iterable(node, name, args, frame)
        if name in ("list", "tuple") and len(args) == 1 and isinstance(args[0], Items):
            return self.list_of(node, args[0], frame)
        if name in _TYPES and not args:
            return _TYPES[name]()
        op, compute = BUILTINS[name]
        if name == "isinstance" and len(args) == 2:
            kinds = args[1] if isinstance(args[1], tuple) else (args[1],)
            kinds = tuple(_TYPES.get(getattr(x, "name", "")[9:], Held) for x in kinds)
            return isinstance(args[0], kinds)
        if name == "len" and len(args) == 1 and isinstance(args[0], (tuple, list, Instance)):
            is_module = isinstance(args[0], Instance)
            return len(self.members(node, args[0], frame) if is_module else args[0])
        if name in ("list", "tuple") and len(args) == 1 and isinstance(args[0], (tuple, list, range)):
            return tuple(args[0]) if name == "tuple" else self.make_list(list(args[0]))
        if is_plain(args) and name not in ("list", "isinstance"):
            return self._compute(node, frame, compute, args)
        if not op or not args:
            raise self.fault(node, frame, f"other arguments of {name}()")
        if name in ("max", "min") and len(args) > 2:
            args = [args[0], self._call_builtin(node, name, args[1:], named, frame)]
        return self.emit(op, args)

    def _compute(
        self, node: ast.AST, frame: Frame, compute: Callable[..., Value] | None, args: list[Value]
    ) -> Value:
        try:
            found = None if compute is None else compute(*args)
        except (ArithmeticError, TypeError, ValueError):
            found = None
        if found is None or not self._is_small(found):
            raise self.fault(node, frame, "what can be computed")
        return found

    # Tensors of the state dictionary.

    def _created(
        self, node: ast.AST, args: list[Value], named: dict[str, Value], frame: Frame
    ) -> Held:
        """Return a new tensor, whose values the state dictionary gives."""
        shape = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        code = named.get("dtype")
        dtype = DTYPE_CODES[code] if isinstance(code, int) else code or "float32"
        if not all(isinstance(x, int) and x >= 0 for x in shape) or set(named) - {"dtype"}:
            raise self.fault(node, frame, "a tensor of known lengths")
        return Held(tuple(shape), dtype)

    def _parameter(self, node: ast.AST, args: list[Value], frame: Frame) -> Held:
        if not args or not isinstance(args[0], Held):
            raise self.fault(node, frame, "nn.Parameter(torch.zeros(...))")
        args[0].is_state = True
        return args[0]


_ITERABLES: Final = ("enumerate", "range", "zip")
_CREATED: Final = frozenset(f"torch.{x}" for x in ("empty", "zeros", "ones", "rand", "randn"))
