"""Statements: assignments, branches and loops, and the functions and classes that hold them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue
from typing import Final

from serde.torch.model import Argument, Graph, Node, Ref
from serde.torch.source.expressions import Expressions, is_plain
from serde.torch.source.syntax import assigned, last_reads, leaves, loads
from serde.torch.source.values import (
    Class,
    Frame,
    Function,
    Globals,
    Held,
    Instance,
    Items,
    Library,
    Live,
    Value,
)

__all__ = ["LOADER_NAME", "Compiler"]

MAX_CALLS: Final = 48
"""Most functions and modules inside each other."""

LOADER_NAME: Final = "from_pretrained"
"""The class method that reads weights, which is known."""

_RESULT: Final = "return"
_GOING: Final = "break"
"""What a function gives, and whether a loop goes on: variables that have no name of Python's."""


class Compiler(Expressions):
    """Reads statements."""

    def __init__(self, modules: Globals) -> None:
        super().__init__(modules)
        self._depth = 0

    # Functions, classes and modules.

    def call(
        self, function: Function, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """Return what a function gives."""
        definition = function.definition
        frame = Frame(function.home, dict(function.closure), owner=function.owner)
        self.step(definition, frame)
        self._depth += 1
        if self._depth > MAX_CALLS:
            raise self.fault(definition, frame, f"at most {MAX_CALLS} calls inside each other")
        given = list(args) if function.this is None else [function.this, *args]
        self._bind(definition, frame, given, named)
        frame.env[_RESULT] = None
        frame.live = Live(frozenset([_RESULT]))
        self.run(definition.body, frame)
        self._depth -= 1
        return frame.env[_RESULT]

    def _bind(
        self, definition: ast.FunctionDef, frame: Frame, given: list[Value],
        named: Mapping[str, Value],
    ) -> None:  # fmt: skip
        """Give the parameters of a function their values."""
        own = definition.args
        if own.vararg or own.kwarg or own.posonlyargs or definition.decorator_list:
            raise self.fault(definition, frame, "a function of plain parameters")
        plain, left = [each.arg for each in own.args], dict(named)
        found = dict(zip(plain, given, strict=False))
        defaults = dict(zip(plain[::-1], own.defaults[::-1], strict=False))
        only = zip([each.arg for each in own.kwonlyargs], own.kw_defaults, strict=True)
        defaults |= {name: each for name, each in only if each is not None}
        for name in [*plain, *(each.arg for each in own.kwonlyargs)]:
            if name in left and name not in found:
                found[name] = left.pop(name)
            elif name not in found and name in defaults:
                found[name] = self.value(defaults[name], Frame(frame.home, {}))
            elif name not in found:
                raise self.fault(definition, frame, f"an argument {name!r}")
        if left or len(given) > len(plain):
            raise self.fault(definition, frame, f"{len(plain)} arguments in a call")
        frame.env.update(found)

    def define(self, node: ast.stmt, home: Globals) -> None:
        """Read a function or a class of a module."""
        frame = Frame(home, {})
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            home.names[node.name] = Function(node, home)
            return
        if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords:
            raise home.unit.fault(node, "a class or a function without decorators")
        base = self.value(node.bases[0], frame) if len(node.bases) == 1 else None
        if base != Library("torch.nn.Module") and not isinstance(base, Class):
            raise home.unit.fault(node, "a class of nn.Module")
        methods, constants = {}, {}
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                if each.decorator_list and each.name != LOADER_NAME:
                    raise home.unit.fault(each.decorator_list[0], "a method without decorators")
                methods[each.name] = each
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                constants[each.targets[0].id] = self.value(each.value, frame)
            elif not _is_text(each) and not isinstance(each, ast.Pass):
                raise home.unit.fault(each, "a method")
        base = base if isinstance(base, Class) else None
        home.names[node.name] = Class(node.name, home, base, methods, constants)

    def construct(
        self, kind: Class, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Instance:
        """Return a new module."""
        made = Instance(kind)
        if self.nodes is not None:
            raise self._unit.fault(self._node, "modules that __init__ makes")
        if self.is_container(made, "Sequential", "ModuleList"):
            items = args[0] if kind.name == "ModuleList" and args else args
            made.attributes = {str(place): each for place, each in enumerate(items)}
            if named or not all(isinstance(x, Instance) for x in items):
                raise self._unit.fault(self._node, "modules")
            return made
        found = kind.method("__init__")
        if found is not None:
            self.call(Function(found[1], found[0].home, {}, made, found[0]), args, named)
        return made

    # Statements.

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Read statements, up to one that leaves their block."""
        around = frame.live
        branches = any(isinstance(each, (ast.For, ast.If, ast.While)) for each in body)
        last = last_reads(body) if branches else {}
        for place, node in enumerate(body):
            self.step(node, frame)
            frame.live = Live(last=last, place=place, around=around)
            if isinstance(node, ast.If):
                rest = body[place + 1 :] if leaves(node) else []
                frame.live = around if rest else frame.live
                self.step(node, frame, len(rest))
                self._if(node, rest, frame)
                if leaves(node):
                    break
            elif self._ends(node, frame):
                break
            else:
                self._statement(node, frame)
        frame.live = around

    def _if(self, node: ast.If, rest: Sequence[ast.stmt], frame: Frame) -> None:
        """Read a branch, and in it what is behind it where the branch may leave its block."""
        test = self.value(node.test, frame)
        then, other = [*node.body, *rest], [*node.orelse, *rest]
        if is_plain(test):
            self.run(then if test else other, frame)
        else:
            self._conditional(test, then, other, frame)

    def _ends(self, node: ast.stmt, frame: Frame) -> bool:
        """Read a statement that leaves a block; whether it is one."""
        if isinstance(node, ast.Return):
            if _RESULT not in frame.env:
                raise self.fault(node, frame, "a return outside of loops")
            frame.env[_RESULT] = None if node.value is None else self.value(node.value, frame)
        elif isinstance(node, (ast.Break, ast.Continue)):
            if _GOING not in frame.env:
                raise self.fault(node, frame, "a loop whose items are not all known")
            if isinstance(node, ast.Break):
                frame.env[_GOING] = False
        elif isinstance(node, ast.Raise):
            self.write("prim::RaiseException", ["an assertion of the program"], {}, 0)
        else:
            return False
        return True

    def _statement(self, node: ast.stmt, frame: Frame) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value, frame)
            for target in node.targets:
                self.assign(target, value, frame)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)
        elif isinstance(node, ast.AugAssign):
            self._augment(node, frame)
        elif isinstance(node, ast.For) and not node.orelse:
            self.iterate(node, node.iter, frame, lambda _: self.run(node.body, frame), node.target)
        elif isinstance(node, ast.While) and not node.orelse:
            self._while(node, frame)
        elif isinstance(node, ast.FunctionDef) and self.nodes is not None:
            frame.env[node.name] = Function(node, frame.home, frame.env)
        elif isinstance(node, ast.Expr):
            self._expression(node, frame)
        elif not isinstance(node, ast.Pass):
            raise self.fault(node, frame, "a statement as serde writes it")

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        """Read a call for what it does, such as ``self.register_buffer(...)``."""
        call = node.value
        func = call.func if isinstance(call, ast.Call) else None
        if (
            not isinstance(func, ast.Attribute)
            or func.attr not in ("register_buffer", "register_parameter")
            or not isinstance(call, ast.Call)
        ):
            self.value(call, frame)
            return
        this = self.value(func.value, frame)
        args = self.values(call.args, frame)
        held = args[1] if len(args) == 2 else ""
        if not isinstance(this, Instance) or call.keywords or not isinstance(held, (Held, type(None))):
            raise self.fault(node, frame, "a name, and a tensor or None")
        if held is not None:
            held.is_state = True
        this.attributes[self._attribute_name(node, this, args[0], frame)] = held

    def _attribute_name(self, node: ast.AST, this: Instance, name: Value, frame: Frame) -> str:
        plain = isinstance(name, str) and name.isidentifier() and not name.startswith("__")
        if not plain or name in ("call_super_init", "training") or this.kind.method(name):
            raise self.fault(node, frame, "a name of an attribute that means nothing yet")
        return str(name)

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give a variable, several of them, an attribute or an item a value."""
        if isinstance(target, ast.Name):
            frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, frame)
        elif isinstance(target, ast.Attribute) and self.nodes is None:
            this = self.value(target.value, frame)
            if not isinstance(this, Instance) or this is not frame.env.get("self"):
                raise self.fault(target, frame, "an attribute of self")
            this.attributes[self._attribute_name(target, this, target.attr, frame)] = value
        elif isinstance(target, ast.Subscript) and self.nodes is not None:
            x = self.value(target.value, frame)
            items, kinds = self.subscript(target.slice, frame)
            self.write("aten::setitem_", [x, items, value], {"kinds": kinds}, 1)
        else:
            raise self.fault(target, frame, "a variable, or in __init__ an attribute of self")

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> None:
        count = len(target.elts)
        if isinstance(value, Ref):
            value = tuple(map(Ref, self.write("prim::TupleUnpack", [value], {}, count)))
        if not isinstance(value, (tuple, list)) or len(value) != count:
            raise self.fault(target, frame, f"{count} values")
        for each, part in zip(target.elts, value, strict=True):
            self.assign(each, part, frame)

    def _augment(self, node: ast.AugAssign, frame: Frame) -> None:
        """Read ``x += y``, which writes to a tensor or a list in its place."""
        if not isinstance(node.target, ast.Name):
            raise self.fault(node, frame, "a variable before an operator and =")
        name = node.target.id
        before = self.value(ast.copy_location(ast.Name(name, ast.Load()), node), frame)
        value = self.value(node.value, frame)
        found = self.infix(node, type(node.op), before, value, frame)
        if isinstance(before, Held):
            raise self.fault(node, frame, "x = x + ... of a weight")
        if isinstance(before, Ref) and isinstance(found, Ref) and self.nodes:
            if self.nodes[-1].op not in ("aten::add", "aten::sub", "aten::mul", "aten::div"):
                raise self.fault(node, frame, "+=, -=, *= or /=")
            self.nodes[-1].op += "_"
        frame.env[name] = found

    # Branches.

    def _conditional(
        self, test: Value, then: Sequence[ast.stmt], other: Sequence[ast.stmt], frame: Frame
    ) -> None:
        """Read a branch on what is computed; what both assign is a result of it."""
        (condition,) = self.write("aten::Bool", [test], {}, 1)
        before, live = frame.env, frame.live
        branches: list[tuple[list[Node], dict[str, Value]]] = []
        for body in (then, other):
            frame.env = dict(before)
            nodes, _ = self.block(lambda body=body: self.run(body, frame))
            branches.append((nodes, frame.env))
        frame.env = before
        names = [name for name in {**branches[0][1], **branches[1][1]} if name in live]
        names = [x for x in names if not _is_same(*(env.get(x, self) for _, env in branches))]
        graphs = []
        for nodes, env in branches:
            results = self._in(nodes, lambda env=env: [self._result(env, name) for name in names])
            graphs.append(Graph([], nodes, results))
        (_, one), (_, two) = branches
        known = {key: x for key, x in one.items() if key in two and _is_same(x, two[key])}
        frame.env.clear()
        frame.env.update(known)
        outputs = self.write("prim::If", [Ref(condition)], {}, len(names))
        assert self.nodes is not None
        self.nodes[-1].blocks = graphs
        frame.env.update(zip(names, map(Ref, outputs), strict=True))

    def _in(self, nodes: list[Node], read: Callable[[], list[Argument]]) -> list[Argument]:
        """Return arguments, for which nodes may be written behind others."""
        outer, self.nodes = self.nodes, nodes
        try:
            return read()
        finally:
            self.nodes = outer

    def _result(self, env: Mapping[str, Value], name: str) -> Argument:
        """Return a variable as a result of a block, nothing where it is not assigned."""
        if name not in env:
            return self.emit("prim::Uninitialized", [])
        return self.argument(env[name])

    # Loops.

    def iterate(
        self, node: ast.AST, source: ast.expr, frame: Frame, body: Callable[[Value], None],
        target: ast.expr,
    ) -> None:  # fmt: skip
        """Read a body for every item of an iterable: at once where all are known."""
        items = self.items(source, self.value(source, frame), frame)
        if not isinstance(items, Items):
            for each in items:
                self.step(node, frame)
                self.assign(target, each, frame)
                body(each)
            return
        written = assigned([node])

        def turn(index: Value) -> None:
            item = items.item(index)
            self.assign(target, item, frame)
            body(item)

        self._loop(items.count, None, turn, frame, written, loads([node]))

    def items(self, node: ast.AST, found: Value, frame: Frame) -> Items | Sequence[Value]:
        """Return what a loop goes through."""
        if isinstance(found, Instance):
            return self.members(node, found, frame)
        if isinstance(found, (Items, tuple, list, range)):
            return found
        if not isinstance(found, Ref):
            raise self.fault(node, frame, "a list, a tensor or range(...)")
        return Items(self.emit("aten::len", [found]), self._of_list(found))

    def _of_list(self, found: Value) -> Callable[[Value], Value]:
        return lambda i: self.emit("aten::__getitem__", [found, [i]], {"kinds": "v"})

    def call_iterable(
        self, node: ast.AST, name: str, args: list[Value], frame: Frame
    ) -> Items | Sequence[Value]:
        """Return what ``range``, ``enumerate`` or ``zip`` gives."""
        if name == "range" and 1 <= len(args) <= 3:
            start, stop, step = [0, *args, 1] if len(args) == 1 else [*args, 1][:3]
            return self._range(node, start, stop, step, frame)
        if name == "range" or not args or (name == "enumerate" and len(args) > 1):
            raise self.fault(node, frame, f"arguments of {name}()")
        parts = [self.items(node, each, frame) for each in args]
        return self._together(parts, name == "enumerate")

    def _range(
        self, node: ast.AST, start: Value, stop: Value, step: Value, frame: Frame
    ) -> Items | Sequence[Value]:
        if self.nodes is None:
            if not all(isinstance(x, int) for x in (start, stop, step)) or not step:
                raise self.fault(node, frame, "integers in range(...)")
            self.step(node, frame, max(0, -(-(stop - start) // step)))
            return range(start, stop, step)
        if (start, step) == (0, 1):
            return Items(stop, lambda index: index)
        count = self.emit("aten::__range_length", [start, stop, step])
        return Items(count, lambda i: self.emit("aten::__derive_index", [i, start, step]))

    def _together(
        self, parts: Sequence[Items | Sequence[Value]], counts: bool
    ) -> Items | Sequence[Value]:
        """Return the items of several iterables as tuples, or of one with their numbers."""
        known = [x for x in parts if not isinstance(x, Items)]
        if len(known) == len(parts):
            return list(enumerate(known[0])) if counts else list(zip(*known, strict=False))
        both = [x if isinstance(x, Items) else self._of_known(x) for x in parts]
        count = both[0].count
        for each in both[1:]:
            count = self.emit("prim::min", [count, each.count])

        def item(index: Value) -> Value:
            found = tuple(each.item(index) for each in both)
            return (index, *found) if counts else found

        return Items(count, item)

    def _of_known(self, items: Sequence[Value]) -> Items:
        return Items(len(items), self._of_list(self.emit("prim::ListConstruct", list(items))))

    def list_of(self, node: ast.AST, items: Items, frame: Frame) -> Value:
        """Return a list of what a loop goes through."""
        found = self.emit("prim::ListConstruct", [])

        def add(index: Value) -> None:
            self.emit("aten::append", [found, items.item(index)])

        self._loop(items.count, None, add, Frame(frame.home, {}), {}, set())
        return found

    def _while(self, node: ast.While, frame: Frame) -> None:
        def turn(_index: Value) -> None:
            self.run(node.body, frame)

        self._loop(
            2**63 - 1, lambda: self.value(node.test, frame), turn, frame, assigned(node.body),
            loads([node]),
        )  # fmt: skip

    def _loop(
        self, count: Value, test: Callable[[], Value] | None, turn: Callable[[Value], None],
        frame: Frame, written: Mapping[str, None], read: set[str],
    ) -> None:  # fmt: skip
        """Write a loop that carries what it assigns and what is read again."""
        before, around = frame.env, frame.live
        carried = [x for x in written if x in (before.keys() & read) or x in around]
        start = [self._result(before, name) for name in carried]
        going = True if test is None else self.emit("aten::Bool", [test()])
        inputs = [self.fresh("index"), *(self.fresh(name) for name in carried)]
        frame.env = {**before, **dict(zip(carried, map(Ref, inputs[1:]), strict=True))}
        frame.env[_GOING] = True
        frame.env.pop(_RESULT, None)
        frame.live = Live(frozenset([*carried, _GOING, *(read if test is not None else ())]))

        def once() -> list[Argument]:
            turn(Ref(inputs[0]))
            goes_on = frame.env[_GOING]
            if test is not None:
                goes_on = self.either(goes_on, test, lambda: False)
            if isinstance(goes_on, Ref):
                goes_on = self.emit("aten::Bool", [goes_on])
            return [goes_on, *(self._result(frame.env, name) for name in carried)]

        nodes, outputs = self.block(once)
        frame.env, frame.live = before, around
        for name in written:
            before.pop(name, None)
        results = self.write("prim::Loop", [count, going, *start], {}, len(carried))
        assert self.nodes is not None
        self.nodes[-1].blocks = [Graph(inputs, nodes, outputs)]
        before.update(zip(carried, map(Ref, results), strict=True))

    def loop_over(self, test: AnyValue, body: AnyValue) -> Value:
        """Return what ``torch.while_loop`` gives: (test, body, carried), and what calls these."""
        asks, gives, start = test
        call = body
        names = [f"carried {place}" for place in range(len(start))]
        frame = Frame(self.modules, dict(zip(names, start, strict=True)), Live(frozenset(names)))

        def state() -> list[Value]:
            return [frame.env[name] for name in names]

        def turn(_index: Value) -> None:
            found = call(gives, state())
            if not isinstance(found, tuple) or len(found) != len(names):
                raise self._unit.fault(self._node, f"{len(names)} results of a body")
            frame.env.update(zip(names, found, strict=True))

        self._loop(
            2**63 - 1, lambda: call(asks, state()), turn, frame, dict.fromkeys(names), set(names)
        )
        return tuple(state())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_same(one: Value, other: Value) -> bool:
    if is_plain(one) and is_plain(other):
        return type(one) is type(other) and one == other
    return one is other or (isinstance(one, Ref) and one == other)
