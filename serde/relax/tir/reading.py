"""Statements of TIR as stages: what is stored for each turn of the loops around it.

Each turn stores another element, or adds to one. So it does not matter how loops nest or which of
them run in parallel; what is not so is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any as AnyValue, Final

from serde.core import MAX_NESTING, MAX_RANK, budget
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.lengths import Lengths
from serde.relax.reflection import dtype_of, handle_of
from serde.relax.tir.indexing import Frame
from serde.relax.tir.stages import Axis, Node, Stage, post_order
from serde.relay.ir import Any, Dim
from serde.relay.ir.dims import product

__all__ = ["Reader", "buffer_type"]

_SPATIAL: Final = 0
_REDUCED: Final = 2
"""Kinds of axes of blocks."""

_COMBINED: Final = ("Add", "Mul", "Min", "Max", "And", "Or")
_BINDINGS: Final = ("Bind", "LetStmt")


def buffer_type(buffer: AnyValue) -> AnyValue:
    """Return what holds the shape and the dtype of a buffer, which is an object or a variable."""
    type_ = getattr(buffer, "ty", None)
    return type_ if hasattr(type_, "shape") else buffer


class Reader:
    """Reads the body of one function into :attr:`stages`.

    Args:
        framework: TVM.
        lengths: What variables for lengths stand for.
        numbers: What parameters that are numbers stand for, by their handles.
        given: Buffers that hold something already, by their handles.
        most: Gives the largest value that an expression has in a frame.
    """

    def __init__(
        self, framework: Framework, lengths: Lengths, numbers: Mapping[int, Node],
        given: Iterable[int], most: Callable[[Node, Frame], int],
    ) -> None:  # fmt: skip
        self._framework = framework
        self._lengths = lengths
        self._nodes: dict[int, Node] = dict(numbers)
        self._unique: dict[tuple[AnyValue, ...], Node] = {}
        self._kept: list[AnyValue] = []  # What handles are of stays alive.
        self._given = frozenset(given)
        self._most = most
        self._names = count()
        self._same: dict[Dim, Dim] = {}  # Of lengths that Relay knows to be one, the first.
        self._loops: list[Axis] = []
        self._conditions: list[Node] = []
        self._begun: dict[int, Node] = {}
        self._cells: dict[int, Node | None] = {}  # What scalars of blocks hold, None so far.
        self._depth = 0
        self.stages: list[Stage] = []

    # Statements.

    def read(self, statement: AnyValue) -> None:
        """Read a statement, which is refused if it is no formula of elements."""
        self._enter()
        kind = type(statement).__name__
        if kind in ("SBlockRealize", "BlockRealize"):
            self._block(statement)
        elif kind == "SeqStmt":
            before = len(self.stages)
            for each in statement.seq:
                self.read(each)
            if self._loops:
                self._check_order(self.stages[:before], self.stages[before:])
        elif kind == "For":
            self._loop(statement)
        elif kind == "BufferStore":
            self._store("", [statement])
        else:
            raise Unsupported(f"a program, with {kind}, and no formula of elements")
        self._depth -= 1

    def _enter(self) -> None:
        budget().draw("elements", 100, "the expressions of functions of TIR")
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unsupported(f"expressions nested more than {MAX_NESTING} deep")

    def _check_order(self, before: Sequence[Stage], inside: Sequence[Stage]) -> None:
        """Refuse blocks in one loop of which one changes what another has read, or may read yet."""
        held = {*self._given, *(stage.buffer for stage in before)}
        if any(each.reduced for each in self._loops):
            raise Unsupported("several blocks in a loop over what is reduced")
        for stage in inside:
            if stage.buffer in held:
                raise Unsupported("several blocks in a loop change what was there before")
            held |= {each.held for each in post_order(stage.value, "load")}

    def _loop(self, loop: AnyValue) -> None:
        step = getattr(loop, "step", None)
        if self._plain(loop.min) != 0 or (step is not None and self._plain(step) != 1):
            raise Unsupported("a loop that does not count from 0")
        extent, before = self.node(loop.extent), len(self._conditions)
        varies = any(each.op in ("axis", "load") for each in post_order(extent))
        length = self._most(extent, Frame(self._loops)) if varies else self.length(loop.extent)
        axis = Axis(f"axis{next(self._names)}", length)
        place = Node("axis", dtype_of(loop.loop_var), held=axis)
        if varies:
            self._conditions.append(Node("LT", "bool", (place, extent)))
        self._define(loop.loop_var, place)
        self._loops.append(axis)
        self.read(loop.body)
        self._loops.pop()
        del self._conditions[before:]

    def length(self, value: AnyValue) -> Dim:
        """Return a length: a number where it is known, else in the names of ``Lengths``."""
        dim = self._lengths.read(value)
        known = self._lengths.known(dim)
        if isinstance(known, (int, Any)):
            return known if isinstance(known, int) else dim
        return self._same.setdefault(known, dim)

    def _plain(self, value: AnyValue) -> AnyValue:
        return self.node(value).held if self.node(value).op == "number" else None

    def _block(self, realize: AnyValue) -> None:
        block, conditions, begun = realize.block, len(self._conditions), self._begun
        if len(block.match_buffers):
            raise Unsupported(f"block {block.name_hint} takes a part of a buffer as another")
        for each, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self._bind(each, self.node(value))
        if self._plain(realize.predicate) not in (1, True):
            self._conditions.append(self.node(realize.predicate))
        stores = [] if block.init is None else _leaves(block.init)
        if any(type(each).__name__ != "BufferStore" for each in stores):
            raise Unsupported(f"block {block.name_hint} begins with something else than a value")
        self._begun = begun | {handle_of(x.buffer): self.node(x.value) for x in stores}
        body = _leaves(block.body)
        if {type(each).__name__ for each in body} & {"BufferStore", "AllocBuffer", *_BINDINGS}:
            self._store(block.name_hint, body)
        else:
            self.read(block.body)
        del self._conditions[conditions:]
        self._begun = begun

    def _bind(self, variable: AnyValue, value: Node) -> None:
        """Note what an axis of a block is in terms of the loops around it."""
        kind = int(variable.iter_type)
        self._define(variable.var, value)
        frame = Frame(self._loops)
        index = frame.index(value)
        if kind == _REDUCED:  # It begins anew wherever all such axes are 0.
            length = product(each.extent for each in frame.axes_of(index))
            if frame.digits(index, length) is None:
                raise Unsupported("a block that does not count what it reduces over")
        for axis in (each.held for each in post_order(value, "axis")):
            if kind not in (_SPATIAL, _REDUCED) or (kind == _SPATIAL and axis.reduced):
                raise Unsupported("an axis of a block that is neither spatial nor reduced")
            if kind == _REDUCED and not axis.reduced:
                if any(axis in stage.axes for stage in self.stages):
                    raise Unsupported("a loop that one block reduces over and another does not")
                axis.reduced = True

    def _store(self, name: str, body: Sequence[AnyValue]) -> None:
        """Read what a block stores."""
        stores = []
        for each in body:
            kind = type(each).__name__
            if kind in _BINDINGS:
                self._define(each.var, self.node(each.value))
            elif kind == "AllocBuffer" and self._is_scalar(each.buffer):
                self._kept.append(each.buffer)
                self._cells[handle_of(each.buffer)] = None
            elif kind == "BufferStore" and handle_of(each.buffer) in self._cells:
                if self._cells[handle_of(each.buffer)] is not None:
                    raise Unsupported(f"block {name} changes a variable of its own")
                self._cells[handle_of(each.buffer)] = self.node(each.value)
            elif kind == "BufferStore":
                stores.append(each)
            else:
                raise Unsupported(f"a statement of the kind {kind} in block {name}")
        made = self._extreme(name, stores) if len(stores) == 2 else None
        made = made or [self._stage(name, each) for each in stores]
        filled = [stage.buffer for stage in made]
        for stage in made:
            read = {each.held for each in post_order(stage.value, "load")} - {stage.buffer}
            if len(set(filled)) < len(filled) or not read.isdisjoint(filled):
                raise Unsupported(f"block {name} reads what it has filled before")
        self.stages += made

    def _is_scalar(self, buffer: AnyValue) -> bool:
        return all(self._plain(each) == 1 for each in buffer_type(buffer).shape)

    def _stage(self, name: str, store: AnyValue) -> Stage:
        value, indices = self.node(store.value), tuple(map(self.node, store.indices))
        buffer = handle_of(store.buffer)
        own = [each for each in post_order(value, "load") if each.held == buffer]
        if any(each.args != indices for each in own):
            raise Unsupported(f"block {name} reads other elements of what it fills")
        if not any(each.reduced for each in self._loops) and buffer not in self._begun:
            return self._made(name, store, value)  # In place: what it holds so far.
        rest = [each for each in value.args if own and each is not own[0]]
        known = value.op in _COMBINED and len(rest) == 1
        if not known or any(each is own[0] for each in post_order(rest[0])):
            raise Unsupported(f"block {name} reduces by what is no known operator")
        return self._made(name, store, rest[0], value.op, self._begun.get(buffer))

    def _extreme(self, name: str, stores: Sequence[AnyValue]) -> list[Stage] | None:
        """Return what gives the place of the largest or smallest value, and the value.

        The pair so far stays where its value is better, or the same and its place is preferred.
        """
        match [self.node(each.value) for each in stores]:
            case [
                Node("where", _, (Node("Or", _, (better, tie)), place, position)),
                Node("where", _, (Node("GT" | "LT" as op, _, (own, value)) as same, kept, update)),
            ] if (better, own, value) == (same, kept, update):
                pass
            case _:
                return None
        match tie:
            case Node("And", _, (Node("EQ", _, equal), Node("LT" | "GT" as order, _, places))):
                if equal != (own, update) or places != (place, position):
                    return None
            case _:
                return None
        handles = [handle_of(each.buffer) for each in stores]
        if (place.op, place.held, own.op, own.held) != ("load", handles[0], "load", handles[1]):
            return None
        begun = [self._begun.get(each) for each in handles]
        kinds = ("argmax", "Max") if op == "GT" else ("argmin", "Min")
        return [
            self._made(name, stores[0], update, kinds[0], begun[0], position, order == "GT"),
            self._made(name, stores[1], update, kinds[1], begun[1]),
        ]

    def _made(
        self, name: str, store: AnyValue, value: Node, combine: str = "",
        init: Node | None = None, position: Node | None = None, last: bool = False,
    ) -> Stage:  # fmt: skip
        type_, condition = buffer_type(store.buffer), None
        if len(self._loops) > MAX_RANK:
            raise Unsupported(f"more than {MAX_RANK} loops around block {name}")
        for each in self._conditions:
            condition = Node("And", "bool", (condition, each)) if condition else each
        return Stage(
            name, handle_of(store.buffer), tuple(map(self.length, type_.shape)), dtype_of(type_),
            tuple(self._loops), tuple(map(self.node, store.indices)), value, condition,
            combine, init, position, last,
        )  # fmt: skip

    # Expressions.

    def _define(self, variable: AnyValue, node: Node) -> None:
        self._kept.append(variable)
        self._nodes[handle_of(variable)] = node

    def node(self, expr: AnyValue) -> Node:
        """Return an expression, which is refused if it is no arithmetic of scalars."""
        if handle_of(expr) not in self._nodes:
            self._enter()
            made = self._node(expr)
            key = made.op, made.dtype, made.args, repr(made.held)
            self._define(expr, self._unique.setdefault(key, made))
            self._depth -= 1
        return self._nodes[handle_of(expr)]

    def _node(self, expr: AnyValue) -> Node:
        kind, dtype = type(expr).__name__, dtype_of(expr)
        args: Sequence[AnyValue] = ()
        if kind in ("IntImm", "FloatImm"):
            return Node("number", dtype, held=expr.value)
        if isinstance(expr, self._framework.tir.Var):
            return Node("length", dtype, held=self.length(expr))
        if kind == "Let":
            self._define(expr.var, self.node(expr.value))
            return self.node(expr.body)
        if kind in ("TensorLoad", "BufferLoad"):
            source = expr.source if kind == "TensorLoad" else expr.buffer
            held = self._cells.get(handle_of(source))
            if held is not None:
                return held
            return Node("load", dtype, tuple(map(self.node, expr.indices)), handle_of(source))
        if kind == "Call" and hasattr(expr.op, "name"):
            kind, args = str(expr.op.name).rpartition(".")[2], expr.args
        elif kind == "Select":
            args = expr.condition, expr.true_value, expr.false_value
        elif hasattr(expr, "a"):
            args = (expr.a, expr.b) if hasattr(expr, "b") else (expr.a,)
        elif kind == "Cast":
            kind, args = "cast", (expr.value,)
        else:
            raise Unsupported(f"an expression of the kind {kind}")
        if kind in ("likely", "ret"):
            return self.node(args[0])
        kind = "where" if kind in ("if_then_else", "Select") else kind
        return Node(kind, dtype, tuple(map(self.node, args)))


def _leaves(statement: AnyValue) -> list[AnyValue]:
    """Return statements that follow each other, those inside bindings behind these."""
    found, pending = list[AnyValue](), [statement]
    while pending:
        each = pending.pop()
        if type(each).__name__ == "SeqStmt":
            pending.extend(reversed(list(each.seq)))
            continue
        found.append(each)
        if type(each).__name__ == "LetStmt":
            pending.append(each.body)
    return found
