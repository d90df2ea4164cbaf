"""Statements: assignments, branches and loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serde.torch.model import Argument, Graph, Node, Ref
from serde.torch.source.calls import RESULT, Calls
from serde.torch.source.syntax import assigned, last_reads, leaves, loads
from serde.torch.source.values import Frame, Function, Held, Instance, Items, Live, Value, is_plain

__all__ = ["Compiler"]

_GOING: Final = "break"
"""Whether a loop goes on: a variable that has no name of Python's."""

_ENDLESS: Final = 2**63 - 1
_IN_PLACE: Final = ("aten::add", "aten::div", "aten::mul", "aten::sub")


class Compiler(Calls):
    """Reads statements."""

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements, up to one that leaves their block."""
        around = self.frame.live
        branches = any(isinstance(each, (ast.For, ast.If, ast.While)) for each in body)
        last = last_reads(body) if branches else {}
        for place, node in enumerate(body):
            self.step(node)
            self.frame.live = Live(last=last, place=place, around=around)
            if isinstance(node, ast.If):
                rest = body[place + 1 :] if leaves(node) else []
                self.step(count=len(rest))
                self.frame.live = around if rest else self.frame.live
                self._if(node, rest)
            elif not self._ends(node):
                self._statement(node)
                continue
            if not isinstance(node, ast.If) or leaves(node):
                break
        self.frame.live = around

    def _ends(self, node: ast.stmt) -> bool:
        """Read a statement that leaves a block; whether it is one."""
        env = self.frame.env
        if isinstance(node, ast.Return):
            if RESULT not in env:
                raise self.fault("a return outside of loops")
            env[RESULT] = None if node.value is None else self.value(node.value)
        elif isinstance(node, (ast.Break, ast.Continue)):
            if _GOING not in env:
                raise self.fault("a loop whose items are not all known")
            env[_GOING] = env[_GOING] if isinstance(node, ast.Continue) else False
        elif isinstance(node, ast.Raise):
            self.write("prim::RaiseException", ["an assertion of the program"], {}, 0)
        else:
            return False
        return True

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            self._augment(node)
        elif isinstance(node, ast.For) and not node.orelse:
            self.iterate(node.iter, node.target, lambda: self.run(node.body), node)
        elif isinstance(node, ast.While) and not node.orelse:
            read, written = loads(node), assigned(node.body)
            self._loop(
                _ENDLESS, lambda: self.value(node.test), lambda _: self.run(node.body), written,
                read,
            )  # fmt: skip
        elif isinstance(node, ast.FunctionDef) and self.nodes is not None:
            home, env = self.frame.home, self.frame.env
            env[node.name] = Function(node, home, closure=env)
        elif isinstance(node, ast.Expr):
            self._expression(node.value)
        elif not isinstance(node, ast.Pass):
            raise self.fault("a statement as serde writes it")

    def _expression(self, call: ast.expr) -> None:
        """Read a call for what it does, such as ``self.register_buffer(...)``."""
        func = call.func if isinstance(call, ast.Call) else None
        names = "register_buffer", "register_parameter"
        if not isinstance(call, ast.Call) or getattr(func, "attr", "") not in names:
            self.value(call)
            return
        held = self.value(call.args[1]) if len(call.args) == 2 and not call.keywords else ""
        if not isinstance(held, (Held, type(None))) or not isinstance(func, ast.Attribute):
            raise self.fault("a name, and a tensor or None")
        if held is not None:
            held.is_state = True
        self._set(self.value(func.value), self.value(call.args[0]), held)

    def _set(self, this: Value, name: Value, value: Value) -> None:
        """Give an attribute of the module that is being constructed a value."""
        if this is not self.frame.env.get("self") or not isinstance(this, Instance):
            raise self.fault("an attribute of self")
        plain = isinstance(name, str) and name.isidentifier() and not name.startswith("__")
        if not plain or name in ("call_super_init", "training") or this.kind.method(name, this):
            raise self.fault("a name of an attribute that means nothing yet")
        this.attributes[name] = value

    def assign(self, target: ast.expr, value: Value) -> None:
        """Give a variable, several of them, an attribute or an item a value."""
        if isinstance(target, ast.Name):
            self.frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            count = len(target.elts)
            if isinstance(value, Ref):
                value = [*map(Ref, self.write("prim::TupleUnpack", [value], {}, count))]
            if not isinstance(value, (tuple, list)) or len(value) != count:
                raise self.fault(f"{count} values")
            for each, part in zip(target.elts, value, strict=True):
                self.assign(each, part)
        elif isinstance(target, ast.Attribute) and self.nodes is None:
            self._set(self.value(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript) and self.nodes is not None:
            items, kinds = self.brackets(target.slice)
            self.emit("aten::setitem_", self.value(target.value), items, value, kinds=kinds)
        else:
            raise self.fault("a variable, or in __init__ an attribute of self")

    def _augment(self, node: ast.AugAssign) -> None:
        """Read ``x += y``, which writes to a tensor or a list in its place."""
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        before = self.frame.env.get(name, self)
        if before is self or isinstance(before, Held):
            raise self.fault("a variable before an operator and =")
        found = self.infix(type(node.op), before, self.value(node.value))
        if isinstance(before, Ref) and self.nodes:
            if self.nodes[-1].op not in _IN_PLACE:
                raise self.fault("+=, -=, *= or /=")
            self.nodes[-1].op += "_"
        if isinstance(before, list):  # Others may have it, too.
            before[:] = found
            found = before
        self.frame.env[name] = found

    # Branches.

    def _if(self, node: ast.If, rest: Sequence[ast.stmt]) -> None:
        """Read a branch, and in it what is behind it where the branch may leave its block."""
        test = self.value(node.test)
        bodies = [*node.body, *rest], [*node.orelse, *rest]
        if is_plain(test):
            self.run(bodies[0] if test else bodies[1])
            return
        (condition,) = self.write("aten::Bool", [test], {})
        before, live = self.frame.env, self.frame.live
        self.step(count=len(before))
        branches: list[tuple[list[Node], dict[str, Value]]] = []
        for body in bodies:
            self.frame.env = dict(before)
            nodes, _ = self.block(lambda body=body: self.run(body))  # type: ignore[misc]
            branches.append((nodes, self.frame.env))
        self.frame.env = before
        (_, one), (_, two) = branches
        names = [x for x in {**one, **two} if x in live and not _is_same(x, one, two)]
        graphs = []
        for nodes, env in branches:
            outer, self.nodes = self.nodes, nodes
            graphs.append(Graph([], nodes, [self._result(env, name) for name in names]))
            self.nodes = outer
        kept = {name: one[name] for name in one if _is_same(name, one, two)}
        before.clear()
        before.update(kept)
        outputs = self.write("prim::If", [Ref(condition)], {}, len(names))
        self.add_blocks(graphs)
        before.update(zip(names, map(Ref, outputs), strict=True))

    def _result(self, env: Mapping[str, Value], name: str) -> Argument:
        """Return a variable as a result of a block, nothing where it is not assigned."""
        return self.argument(env[name]) if name in env else self.emit("prim::Uninitialized")

    # Loops.

    def iterate(
        self, source: ast.expr, target: ast.expr, body: Callable[[], None],
        node: ast.AST | None = None,
    ) -> None:  # fmt: skip
        """Read a body for every item of an iterable: at once where all are known."""
        items = self._items_of(self.value(source))

        def turn(item: Value) -> None:
            self.step()
            self.assign(target, item)
            body()

        if not isinstance(items, Items):
            hidden = {x: self.frame.env.pop(x, None) for x in (_GOING, RESULT)}
            for each in items:
                turn(each)
            self.frame.env.update({x: y for x, y in hidden.items() if x == RESULT or y is not None})
            return
        read = frozenset(self.frame.env) if node is None else loads(node)
        written = [] if node is None else assigned([node])
        self._loop(items.count, None, lambda index: turn(items.item(index)), written, read)

    def _items_of(self, found: Value) -> Items | Sequence[Value]:
        """Return what a loop goes through."""
        if isinstance(found, Instance):
            return self.members(found)
        if isinstance(found, (Items, tuple, list, range)):
            return found
        if not isinstance(found, Ref):
            raise self.fault("a list, a tensor or range(...)")
        return self._listed(found, self.emit("aten::len", found))

    def _listed(self, found: Ref, count: Value) -> Items:
        return Items(count, lambda i: self.emit("aten::__getitem__", found, [i], kinds="v"))

    def iterable(self, name: str, args: list[Value]) -> Value:
        """Return what ``range``, ``enumerate`` or ``zip`` gives."""
        if len(args) > {"range": 3, "enumerate": 1}.get(name, len(args)):
            raise self.fault(f"fewer arguments of {name}()")
        if name == "range":
            return self._range(*([0, *args, 1] if len(args) == 1 else [*args, 1][:3]))
        parts = [self._items_of(each) for each in args]
        if not any(isinstance(each, Items) for each in parts):
            known = [x for x in parts if not isinstance(x, Items)]
            return list(enumerate(known[0]) if name == "enumerate" else zip(*known, strict=False))
        both = [
            x
            if isinstance(x, Items)
            else self._listed(self.emit("prim::ListConstruct", *x), len(x))
            for x in parts
        ]
        count = both[0].count
        for each in both[1:]:
            count = self.emit("prim::min", count, each.count)
        first = name == "enumerate"
        return Items(count, lambda i: (*([i] if first else ()), *(x.item(i) for x in both)))

    def _range(self, start: Value, stop: Value, step: Value) -> Value:
        if self.nodes is None:
            if not all(isinstance(x, int) for x in (start, stop, step)) or not step:
                raise self.fault("integers in range(...)")
            self.step(count=max(0, -(-(stop - start) // step)))
            return range(start, stop, step)
        if (start, step) == (0, 1):
            return Items(stop, lambda index: index)
        count = self.emit("aten::__range_length", start, stop, step)
        return Items(count, lambda i: self.emit("aten::__derive_index", i, start, step))

    def list_of(self, items: Items) -> Value:
        """Return a list of what a loop goes through."""
        found = self.emit("prim::ListConstruct")
        self._loop(
            items.count, None, lambda i: self.emit("aten::append", found, items.item(i)), [],
            frozenset(),
        )  # fmt: skip
        return found

    def _loop(
        self, count: Value, test: Callable[[], Value] | None, turn: Callable[[Value], object],
        written: Sequence[str], read: frozenset[str],
    ) -> None:  # fmt: skip
        """Write a loop that carries what it assigns and what is read again."""
        frame = self.frame
        before, around = frame.env, frame.live
        carried = [x for x in written if (x in before and x in read) or x in around]
        start = [self._result(before, name) for name in carried]
        going = True if test is None else self.emit("aten::Bool", test())
        inputs = [self.fresh("index"), *(self.fresh(name) for name in carried)]
        frame.env = {**before, **dict(zip(carried, map(Ref, inputs[1:]), strict=True))}
        frame.env[_GOING] = True
        frame.env.pop(RESULT, None)
        frame.live = Live(frozenset([*carried, _GOING, *(read if test is not None else ())]))

        def once() -> list[Argument]:
            turn(Ref(inputs[0]))
            goes_on = frame.env[_GOING]
            if test is not None:
                goes_on = self.either(goes_on, test, lambda: False)
            if isinstance(goes_on, Ref):
                goes_on = self.emit("aten::Bool", goes_on)
            return [goes_on, *(self._result(frame.env, name) for name in carried)]

        nodes, outputs = self.block(once)
        frame.env, frame.live = before, around
        for name in written:
            before.pop(name, None)
        results = self.write("prim::Loop", [count, going, *start], {}, len(carried))
        self.add_blocks([Graph(inputs, nodes, outputs)])
        before.update(zip(carried, map(Ref, results), strict=True))

    def while_loop(self, asks: Value, gives: Value, start: list[Value]) -> Value:
        """Return what ``torch.while_loop`` gives."""
        names = [f"carried {place}" for place in range(len(start))]
        outer = self.frame
        env, live = dict(zip(names, start, strict=True)), Live(frozenset(names))
        self.frame = frame = Frame(outer.home, env, live, outer.owner)

        def state() -> list[Value]:
            return [frame.env[name] for name in names]

        def turn(_index: Value) -> None:
            found = self.apply(gives, state(), {})
            if not isinstance(found, tuple) or len(found) != len(names):
                raise self.fault(f"{len(names)} results of a body")
            frame.env.update(zip(names, found, strict=True))

        self._loop(_ENDLESS, lambda: self.apply(asks, state(), {}), turn, names, frozenset(names))
        self.frame = outer
        return tuple(state())


def _is_same(name: str, one: Mapping[str, Value], two: Mapping[str, Value]) -> bool:
    """Whether a variable is the same in two branches."""
    if name not in one or name not in two:
        return False
    first, second = one[name], two[name]
    if is_plain(first) and is_plain(second):
        return type(first) is type(second) and bool(first == second)
    return first is second or (isinstance(first, Ref) and bool(first == second))
