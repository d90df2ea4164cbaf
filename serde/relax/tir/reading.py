"""Statements of TIR as stages: what a block stores over its axes, whatever loops are around it.

Each buffer is written by one block, or by one that continues another, at each element once. So it
does not matter how loops nest or which of them run in parallel; what is not so is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any as AnyValue, Final

from serde.core import MAX_NESTING, MAX_RANK, budget, fields
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.lengths import Lengths
from serde.relax.reflection import dtype_of, handle_of
from serde.relax.tir.indexing import Frame
from serde.relax.tir.stages import (
    Apply,
    Axis,
    Length,
    Load,
    Node,
    Number,
    Position,
    Stage,
    post_order,
)
from serde.relay.ir import Dim
from serde.relay.ir.dims import product

__all__ = ["Reader", "buffer_type"]

_SPATIAL: Final = 0
_REDUCED: Final = 2
"""Kinds of axes of blocks."""

_PAIRS: Final = frozenset(
    [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "FloorDiv",
        "FloorMod",
        "Min",
        "Max",
        "EQ",
        "NE",
        "LT",
        "LE",
        "GT",
        "GE",
        "And",
        "Or",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "LShift",
        "RShift",
    ]
)
_COMBINED: Final = frozenset(("Add", "Mul", "Min", "Max", "And", "Or"))
_FIRST: Final = {"GT": "argmax", "LT": "argmin"}


def buffer_type(buffer: AnyValue) -> AnyValue:
    """Return what holds the shape and the dtype of a buffer, which is an object or a variable."""
    type_ = getattr(buffer, "ty", None)
    return type_ if hasattr(type_, "shape") else buffer


class Reader:
    """Reads the body of one function.

    Args:
        framework: TVM.
        lengths: What variables for lengths stand for.
        numbers: What parameters that are numbers stand for, by their handles.
        given: Buffers that hold something already, by their handles.
        most: Gives the largest value that an expression has in a frame.

    Attributes:
        stages: What is read so far.
    """

    def __init__(
        self,
        framework: Framework,
        lengths: Lengths,
        numbers: Mapping[int, Node],
        given: Collection[int],
        most: Callable[[Node, Frame], int],
    ) -> None:
        self._framework = framework
        self._given = given
        self._most = most
        self._lengths = lengths
        self._nodes: dict[int, Node] = dict(numbers)
        self._unique: dict[tuple[AnyValue, ...], Node] = {}
        self._kept: list[AnyValue] = []
        self._names = count()
        self._loops: list[Axis] = []
        self._conditions: list[Node] = []
        self._begun: dict[int, Node] = {}
        self._depth = 0
        self.stages: list[Stage] = []

    # Statements.

    def read(self, statement: AnyValue) -> None:
        """Read a statement outside of blocks.

        Raises:
            Unsupported: It is none of loops around blocks.
        """
        self._enter()
        kind = type(statement).__name__
        if kind in ("SBlockRealize", "BlockRealize"):
            self._block(statement)
        elif kind == "SeqStmt":
            if any(each.reduced for each in self._loops):
                raise Unsupported("several blocks in a loop over what is reduced")
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
            raise Unsupported(f"a statement of the kind {kind} outside of blocks")
        self._depth -= 1

    def _enter(self) -> None:
        budget().draw("elements", 100, "the expressions of functions of TIR")
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unsupported(f"expressions nested more than {MAX_NESTING} deep")

    def _check_order(self, before: Sequence[Stage], inside: Sequence[Stage]) -> None:
        """Refuse blocks in one loop of which one changes what another has read, or may read yet."""
        held = {*self._given, *(stage.buffer for stage in before)}
        for stage in inside:
            if stage.buffer in held:
                raise Unsupported("several blocks in a loop change what was there before")
            held |= {x.buffer for x in post_order(stage.value) if isinstance(x, Load)}

    def _loop(self, loop: AnyValue) -> None:
        step = getattr(loop, "step", None)
        if self._plain(loop.min) != 0 or (step is not None and self._plain(step) != 1):
            raise Unsupported("a loop that does not count from 0")
        extent, before = self.node(loop.extent), len(self._conditions)
        name = f"axis{next(self._names)}"
        if any(isinstance(each, (Position, Load)) for each in post_order(extent)):
            axis = Axis(name, self._most(extent, Frame(self._loops)))
            place = Position(dtype_of(loop.loop_var), axis)
            self._conditions.append(Apply("bool", "LT", (place, extent)))
        else:
            axis = Axis(name, self.length(loop.extent))
            place = Position(dtype_of(loop.loop_var), axis)
        self._define(loop.loop_var, place)
        self._loops.append(axis)
        self.read(loop.body)
        self._loops.pop()
        del self._conditions[before:]

    def length(self, value: AnyValue) -> Dim:
        """Return a length: a number where it is known, else in the names of ``Lengths``."""
        dim = self._lengths.read(value)
        known = self._lengths.known(dim)
        return known if isinstance(known, int) else dim

    def _plain(self, value: AnyValue) -> AnyValue:
        node = self.node(value)
        return node.value if isinstance(node, Number) else None

    def _block(self, realize: AnyValue) -> None:
        block, before, begun = realize.block, len(self._conditions), self._begun
        if len(block.match_buffers):
            raise Unsupported(f"block {block.name_hint} takes a part of a buffer as another")
        for each, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self._bind(each, self.node(value))
        if self._plain(realize.predicate) not in (1, True):
            self._conditions.append(self.node(realize.predicate))
        if block.init is not None:
            self._begun = begun | self._beginnings(block)
        body = _leaves(block.body)
        if {type(each).__name__ for each in body} & {"BufferStore", "Bind", "LetStmt"}:
            self._store(block.name_hint, body)
        else:
            self.read(block.body)
        del self._conditions[before:]
        self._begun = begun

    def _beginnings(self, block: AnyValue) -> dict[int, Node]:
        """Return what reductions begin with, by the handle of the buffer."""
        stores = _leaves(block.init)
        if any(type(each).__name__ != "BufferStore" for each in stores):
            raise Unsupported(f"block {block.name_hint} begins with something else than a value")
        return {handle_of(each.buffer): self.node(each.value) for each in stores}

    def _bind(self, variable: AnyValue, value: Node) -> None:
        """Note what an axis of a block is in terms of the loops around it."""
        kind = int(variable.iter_type)
        if kind not in (_SPATIAL, _REDUCED):
            raise Unsupported("a block has an axis that is neither spatial nor reduced")
        self._define(variable.var, value)
        if kind == _REDUCED:
            frame = Frame(self._loops)
            index = frame.index(value)
            length = product(each.extent for each in frame.axes_of(index))
            if frame.digits(index, length) is None:
                raise Unsupported("a block that does not count what it reduces over")
        for each in post_order(value):
            if not isinstance(each, Position) or each.axis.reduced == (kind == _REDUCED):
                continue
            if kind == _SPATIAL or any(each.axis in stage.axes for stage in self.stages):
                raise Unsupported("a loop that one block reduces over and another does not")
            each.axis.reduced = True

    def _store(self, name: str, body: Sequence[AnyValue]) -> None:
        """Read what a block stores."""
        stores = []
        for each in body:
            kind = type(each).__name__
            if kind in ("Bind", "LetStmt"):
                self._define(each.var, self.node(each.value))
            elif kind == "BufferStore":
                stores.append(each)
            else:
                raise Unsupported(f"a statement of the kind {kind} in block {name}")
        made = self._extreme(name, stores) if len(stores) == 2 else None
        made = made or [self._stage(name, each) for each in stores]
        filled = [stage.buffer for stage in made]
        for stage in made:
            read = {x.buffer for x in post_order(stage.value) if isinstance(x, Load)}
            if len(set(filled)) < len(filled) or any(
                each in read for each in filled if each != stage.buffer
            ):
                raise Unsupported(f"block {name} reads what it has filled before")
        self.stages += made

    def _stage(self, name: str, store: AnyValue) -> Stage:
        value, indices = self.node(store.value), tuple(map(self.node, store.indices))
        buffer = handle_of(store.buffer)
        own = [x for x in post_order(value) if isinstance(x, Load) and x.buffer == buffer]
        if any(each.indices != indices for each in own):
            raise Unsupported(f"block {name} reads other elements of what it fills")
        if not any(each.reduced for each in self._loops) and buffer not in self._begun:
            return self._made(name, store, value)  # In place: what it holds so far.
        rest = [each for each in getattr(value, "args", ()) if own and each is not own[0]]
        if not isinstance(value, Apply) or value.op not in _COMBINED or len(rest) != 1:
            raise Unsupported(f"block {name} reduces by what is no known operator")
        if any(x is own[0] for x in post_order(rest[0])):
            raise Unsupported(f"block {name} reduces by what is no known operator")
        return self._made(name, store, rest[0], value.op, self._begun.get(buffer))

    def _made(
        self, name: str, store: AnyValue, value: Node, combine: str = "",
        init: Node | None = None, position: Node | None = None, last: bool = False,
    ) -> Stage:  # fmt: skip
        type_ = buffer_type(store.buffer)
        if len(self._loops) > MAX_RANK:
            raise Unsupported(f"more than {MAX_RANK} loops around block {name}")
        condition: Node | None = None
        for each in self._conditions:
            both = condition, each
            condition = each if condition is None else Apply("bool", "And", both)  # type: ignore[arg-type]
        return Stage(
            name, handle_of(store.buffer), tuple(map(self.length, type_.shape)), dtype_of(type_),
            tuple(self._loops), tuple(map(self.node, store.indices)), value, combine, init,
            position, last, condition,
        )  # fmt: skip

    def _extreme(self, name: str, stores: Sequence[AnyValue]) -> list[Stage] | None:
        """Return what gives the place of the largest or smallest value, and the value."""
        places, values = (handle_of(each.buffer) for each in stores)
        match [self.node(each.value) for each in stores]:
            case (
                Apply(_, "where", (Apply(_, "Or", (better, tie)), Load() as place, position)),
                Apply(_, "where", (Apply(_, op, (Load() as own, update)), Load(), again)),
            ) if op in _FIRST and update is again and better.args == (own, update):
                pass
            case _:
                return None
        match tie:
            case Apply(
                _, "And", (Apply(_, "EQ", equal), Apply(_, "LT" | "GT" as order, (one, other)))
            ) if equal == (own, update) and (one, other) == (place, position):
                if (own.buffer, place.buffer, better.op) != (values, places, op):
                    return None
            case _:
                return None
        extreme = "Max" if op == "GT" else "Min"
        chosen = _FIRST[op], self._begun.get(places), position, order == "GT"
        return [
            self._made(name, stores[0], update, *chosen),
            self._made(name, stores[1], update, extreme, self._begun.get(values)),
        ]

    # Expressions.

    def _define(self, variable: AnyValue, node: Node) -> None:
        self._kept.append(variable)
        self._nodes[handle_of(variable)] = node

    def node(self, expr: AnyValue) -> Node:
        """Return an expression.

        Raises:
            Unsupported: It has parts that are no arithmetic of scalars.
        """
        if isinstance(expr, (bool, int)):
            return Number("int64", expr)
        handle = handle_of(expr)
        if handle not in self._nodes:
            self._enter()
            made = self._node(expr)
            self._define(expr, self._unique.setdefault(_key(made), made))
            self._depth -= 1
        return self._nodes[handle]

    def _node(self, expr: AnyValue) -> Node:
        kind, dtype = type(expr).__name__, dtype_of(expr)
        if kind in ("IntImm", "FloatImm"):
            return Number(dtype, expr.value)
        if isinstance(expr, self._framework.tir.Var):
            return Length(dtype, self.length(expr))
        if kind in ("TensorLoad", "BufferLoad"):
            source = expr.source if kind == "TensorLoad" else expr.buffer
            return Load(dtype, handle_of(source), tuple(map(self.node, expr.indices)))
        if kind == "Cast":
            return Apply(dtype, "cast", (self.node(expr.value),))
        if kind in ("Not", "BitwiseNot"):
            return Apply(dtype, kind, (self.node(expr.a),))
        if kind in _PAIRS:
            return Apply(dtype, kind, (self.node(expr.a), self.node(expr.b)))
        if kind == "Select":
            parts = expr.condition, expr.true_value, expr.false_value
            return Apply(dtype, "where", tuple(map(self.node, parts)))
        if kind == "Let":
            self._define(expr.var, self.node(expr.value))
            return self.node(expr.body)
        if kind == "Call" and hasattr(expr.op, "name"):
            name = str(expr.op.name).rpartition(".")[2]
            args = tuple(map(self.node, expr.args))
            if name == "likely":
                return args[0]
            return Apply(dtype, "where" if name == "if_then_else" else name, args)
        raise Unsupported(f"an expression of the kind {kind}")


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


def _key(node: Node) -> tuple[AnyValue, ...]:
    """Return what two expressions share that are the same, operands being so already."""
    own = [getattr(node, each.name) for each in fields(node)]
    return (type(node), *(repr(each) if isinstance(each, float) else each for each in own))
