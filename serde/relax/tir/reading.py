"""Statements of TIR as stages: what a block stores over its axes, whatever loops are around it.

Each buffer is written by one block, or by one that continues another, at each element once. So it
does not matter how loops nest or which of them run in parallel; what is not so is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any as AnyValue, Final

from serde.core import MAX_NESTING, budget, fields
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

__all__ = ["Reader", "buffer_type"]

_SPATIAL: Final = 0
_REDUCED: Final = 2
"""Kinds of axes of blocks."""

_PAIRS: Final = frozenset(
    "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or "
    "BitwiseAnd BitwiseOr BitwiseXor LShift RShift".split()
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

    Attributes:
        stages: What is read so far.
    """

    def __init__(
        self, framework: Framework, lengths: Lengths, numbers: dict[int, Node]
    ) -> None:
        self._framework = framework
        self._lengths = lengths
        self._nodes: dict[int, Node] = dict(numbers)
        self._unique: dict[tuple[AnyValue, ...], Node] = {}
        self._kept: list[AnyValue] = []
        self._names = count()
        self._loops: list[Axis] = []
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
            for each in statement.seq:
                self.read(each)
        elif kind == "For":
            self._loop(statement)
        elif kind == "BufferStore":
            self._store("", [statement], self._loops, None)
        else:
            raise Unsupported(f"a statement of the kind {kind} outside of blocks")
        self._depth -= 1

    def _enter(self) -> None:
        budget().draw("nodes", 1, "the expressions of functions of TIR")
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unsupported(f"expressions nested more than {MAX_NESTING} deep")

    def _loop(self, loop: AnyValue) -> None:
        step = getattr(loop, "step", None)
        if self._plain(loop.min) != 0 or (step is not None and self._plain(step) != 1):
            raise Unsupported("a loop that does not count from 0")
        axis = self._axis(loop.loop_var, loop.extent, reduced=False)
        self._loops.append(axis)
        self.read(loop.body)
        self._loops.pop()

    def _axis(self, variable: AnyValue, extent: AnyValue, *, reduced: bool) -> Axis:
        axis = Axis(f"axis{next(self._names)}", self.length(extent), reduced)
        self._define(variable, Position(dtype_of(variable), axis))
        return axis

    def length(self, value: AnyValue) -> Dim:
        """Return a length: a number where it is known, else in the names of ``Lengths``."""
        dim = self._lengths.read(value)
        known = self._lengths.known(dim)
        return known if isinstance(known, int) else dim

    def _plain(self, value: AnyValue) -> AnyValue:
        node = self.node(value)
        return node.value if isinstance(node, Number) else None

    def _block(self, realize: AnyValue) -> None:
        block = realize.block
        if self._plain(realize.predicate) not in (1, True):
            raise Unsupported(f"block {block.name_hint} runs under a condition")
        if len(block.match_buffers):
            raise Unsupported(f"block {block.name_hint} takes a part of a buffer as another")
        if not len(block.iter_vars) and not _is_store(block.body):
            self.read(block.body)
            return
        bound = [self.node(each) for each in realize.iter_values]
        axes = []
        for each in block.iter_vars:
            kind = int(each.iter_type)
            if kind not in (_SPATIAL, _REDUCED) or self._plain(each.dom.min) != 0:
                raise Unsupported(f"block {block.name_hint} has an axis of another kind")
            axes.append(self._axis(each.var, each.dom.extent, reduced=kind == _REDUCED))
        self._check_loops(block.name_hint, axes, bound)
        self._store(block.name_hint, _leaves(block.body), axes, block.init)

    def _check_loops(self, name: str, axes: Sequence[Axis], bound: Sequence[Node]) -> None:
        """Refuse a block whose loops do not give each combination of its axes once."""
        frame = Frame(self._loops)
        used = list[Axis]()
        for axis, value in zip(axes, bound, strict=True):
            digits = frame.digits(frame.index(value), axis.extent)
            if digits is None:
                raise Unsupported(f"loops around block {name} that do not just nest")
            used += digits
        wanted = [each for each in self._loops if each.extent != 1]
        if sorted(each.name for each in used) != sorted(each.name for each in wanted):
            raise Unsupported(f"block {name} stores elements more than once")

    def _store(
        self, name: str, body: Sequence[AnyValue], axes: Sequence[Axis], init: AnyValue
    ) -> None:
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
        begun = {}
        for each in () if init is None else _leaves(init):
            if type(each).__name__ != "BufferStore":
                raise Unsupported(f"block {name} begins with something else than a value")
            begun[handle_of(each.buffer)] = self.node(each.value)
        if len(stores) == 2 and len(begun) == 2:
            self._store_extreme(name, stores, axes, begun)
        elif len(stores) == 1:
            self.stages.append(self._stage(name, stores[0], axes, begun))
        else:
            raise Unsupported(f"block {name} stores {len(stores)} values")

    def _stage(
        self, name: str, store: AnyValue, axes: Sequence[Axis], begun: dict[int, Node]
    ) -> Stage:
        buffer, value = handle_of(store.buffer), self.node(store.value)
        type_ = buffer_type(store.buffer)
        shape = tuple(map(self.length, type_.shape))
        indices = tuple(map(self.node, store.indices))
        stage = Stage(name, buffer, shape, dtype_of(type_), tuple(axes), indices, value)
        own = [x for x in post_order(value) if isinstance(x, Load) and x.buffer == buffer]
        if not own and not any(each.reduced for each in axes):
            return stage
        if any(each.indices != indices for each in own):
            raise Unsupported(f"block {name} reads other elements of what it fills")
        if not any(each.reduced for each in axes) and not begun:
            return stage  # In place: the content so far.
        if not isinstance(value, Apply) or value.op not in _COMBINED or len(own) != 1:
            raise Unsupported(f"block {name} reduces by what is no known operator")
        rest = [each for each in value.args if each is not own[0]]
        if len(rest) != 1:
            raise Unsupported(f"block {name} reduces by what is no known operator")
        kind = tuple(axes), indices, rest[0], value.op, begun.get(buffer)
        return Stage(name, buffer, shape, stage.dtype, *kind)

    def _store_extreme(
        self, name: str, stores: Sequence[AnyValue], axes: Sequence[Axis], begun: dict[int, Node]
    ) -> None:
        """Read the place of the largest or smallest value, and the value."""
        places, values = (handle_of(each.buffer) for each in stores)
        chosen, kept = (self.node(each.value) for each in stores)
        refusal = Unsupported(f"block {name} reduces two values by what is no known operator")
        match kept, chosen:
            case (
                Apply(_, "where", (Apply(_, op, (Load() as own, update)), Load(), again)),
                Apply(_, "where", (Apply(_, "Or", (better, tie)), Load() as place, position)),
            ) if op in _FIRST and update is again:
                pass
            case _:
                raise refusal
        match better, tie:
            case (
                Apply(_, op_, pair),
                Apply(_, "And", (Apply(_, "EQ", equals), Apply(_, ("LT" | "GT") as order, places_))),
            ) if op_ == op and pair == equals == (own, update) and places_ == (place, position):
                if (own.buffer, place.buffer) != (values, places):
                    raise refusal
            case _:
                raise refusal
        for store, combine, last in (
            (stores[0], _FIRST[op], order == "GT"),
            (stores[1], "Max" if op == "GT" else "Min", False),
        ):
            type_, buffer = buffer_type(store.buffer), handle_of(store.buffer)
            shape = tuple(map(self.length, type_.shape))
            indices = tuple(map(self.node, store.indices))
            given = tuple(axes), indices, update, combine, begun.get(buffer), position, last
            self.stages.append(Stage(name, buffer, shape, dtype_of(type_), *given))

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
        if kind == "Not":
            return Apply(dtype, "Not", (self.node(expr.a),))
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


def _is_store(statement: AnyValue) -> bool:
    kinds = {type(each).__name__ for each in _leaves(statement)}
    return "BufferStore" in kinds and kinds <= {"BufferStore", "Bind", "LetStmt"}


def _key(node: Node) -> tuple[AnyValue, ...]:
    """Return what two expressions share that are the same, operands being so already."""
    own = [getattr(node, each.name) for each in fields(node)]
    return (type(node), *(repr(each) if isinstance(each, float) else each for each in own))
