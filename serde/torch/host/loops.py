"""Loops of TorchScript whose number of iterations, or whose work, is too much to be unrolled.

They become ``serde.loop``. What goes round is found by walking the body: values that it hands on,
lists and tensors from around it that it changes. Numbers that stay what they are stay Python's.
A length that changes is anonymous. A list to which the body appends becomes a stack of rows if
nothing in the body reads it, else a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_not
from typing import Any as AnyValue, TypeVar

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Expr, OpDef, TupleGetItem, Var, call, is_call, post_order
from serde.relay.ir.types import SequenceType, TensorType, TupleType, join_types
from serde.relay.op.control.body import close
from serde.torch.aliases import Storage
from serde.torch.changes import Cell
from serde.torch.host.control import copy_structure
from serde.torch.host.registry import evaluates
from serde.torch.host.unrolling import ENDLESS, REST
from serde.torch.host.values import (
    UNINITIALIZED,
    DynamicEntries,
    as_sequence,
    element_type,
    is_dynamic,
)
from serde.torch.import_context import ImportContext, Scalar

ExprT = TypeVar("ExprT", bound=Expr)

MAX_PASSES = 20
"""How often a body is walked at most until the types of what goes round stay."""


@dataclass(eq=False)
class _State:
    """A value that goes round a loop.

    Attributes:
        type: Its type.
        start: What it is before the loop.
        number: Whether it is a number of Python's.
        entries: Whether it is the entries of a list.
        variable: What it is in the body.
        later: What the body makes of it.
    """

    type: TensorType | SequenceType
    start: Expr
    number: bool = False
    entries: bool = False
    variable: Var | None = None
    later: Expr | None = None


@evaluates("prim::Loop")
def convert_loop(ctx: ImportContext, limit: Scalar, going: Scalar, *carried: AnyValue) -> AnyValue:
    return _Loop(ctx, limit, going, list(carried), 0).convert()


@evaluates(REST)
def convert_rest(ctx: ImportContext, limit: Scalar, going: Scalar, *carried: AnyValue) -> AnyValue:
    """A loop of which some iterations are done."""
    *values, done = carried
    return _Loop(ctx, limit, going, values, done).convert()


class _Loop:
    """One loop on its way into Relay."""

    def __init__(
        self, ctx: ImportContext, limit: Scalar, going: Scalar, carried: list[AnyValue], done: int
    ) -> None:
        self._ctx = ctx
        self._limit = limit
        self._going = going
        self._done = done
        self._origins = carried
        self._carried = _Template(ctx, carried)
        self._cells: dict[int, tuple[Cell, _Template]] = {}
        self._tensors: dict[Storage, _State] = {}

    def convert(self) -> AnyValue:
        """Return what the loop gives, its effects being applied."""
        for _ in range(MAX_PASSES):
            found = self._walk_body()
            if found is not None:
                return self._build(*found)
        raise Unsupported("a loop whose states have no common type")

    def _walk_body(self) -> tuple[Var, AnyValue] | None:
        """Walk the body; None where the types of what goes round are not those that leave it."""
        ctx = self._ctx
        (block,) = ctx.blocks
        number = Var("i", TensorType((), "int64"))
        index = ctx.as_number(
            number if not self._done else relay.add(number, ctx.number(self._done))
        )
        given = self._carried.enter()
        origins = [
            origin if isinstance(each, Expr) else each
            for each, origin in zip(given, self._origins, strict=True)
        ]
        tensors = {storage: _enter(state) for storage, state in self._tensors.items()}
        scope = ctx.enter("body", carried=tensors)
        with ctx.changes.trial() as trial:
            for cell, template in self._cells.values():
                ctx.changes.write(cell, ctx.hold(template.enter()))
            lists = [(each, list(each)) for each in given if isinstance(each, list)]
            for each, _ in lists:
                ctx.changes.create(each)
            going, *results = ctx.run(block, scope, [index, *given], origins=[index, *origins])
            if any(len(now) != len(old) or any(map(is_not, now, old)) for now, old in lists):
                raise Unsupported("a list that goes round a loop is changed in place")
            changed = [(cell, scope.resolve(copy_structure(now))) for cell, now in trial.after()]
            before = {id(cell): old for cell, old in trial.before}
        same = self._carried.leave(copy_structure(results))
        for cell, now in changed:
            same &= self._leave_cell(cell, before[id(cell)], now)
        for storage, value in scope.written().items():
            same &= self._leave_tensor(storage, value)
        return (number, going) if same else None

    def _leave_cell(self, cell: Cell, before: AnyValue, now: AnyValue) -> bool:
        if id(cell) not in self._cells:
            held = self._ctx.enter("before").resolve(before)
            self._cells[id(cell)] = cell, _Template(self._ctx, held)
            self._cells[id(cell)][1].enter()
            self._cells[id(cell)][1].leave(now)
            return False
        return self._cells[id(cell)][1].leave(now)

    def _leave_tensor(self, storage: Storage, value: Expr) -> bool:
        if storage not in self._tensors:
            start = self._ctx.current(storage)
            self._tensors[storage] = _State(self._ctx.type(start), start)
            return False
        return _leave(self._ctx, self._tensors[storage], value)

    def _states(self) -> list[_State]:
        found = [*self._carried.states()]
        for _, template in self._cells.values():
            found += template.states()
        return [*found, *self._tensors.values()]

    def _build(self, number: Var, going: Scalar) -> AnyValue:
        """Return what the loop gives, now that the types of its states are known."""
        ctx = self._ctx
        states = self._states()
        stacks = _find_stacks(ctx, states)
        kept = [state for state in states if state not in stacks]
        later = [ctx.fold(_required(state.later)) for state in kept]
        rows = [row for state in stacks for row in stacks[state]]
        params = [number, *(_required(state.variable) for state in kept)]
        body, captures = close(params, [ctx.number(going), *later, *rows])
        found = call(
            "serde.loop",
            self._limit_operand(),
            None if self._going is True else ctx.number(self._going),
            [state.start for state in kept],
            captures,
            body=body,
        )
        finals: dict[_State, AnyValue] = {}
        for place, state in enumerate(kept):
            finals[state] = _as_value(ctx, TupleGetItem(found, place), state)
        place = len(kept)
        for state, entries in stacks.items():
            parts = [TupleGetItem(found, place + i) for i in range(len(entries))]
            finals[state] = _join_rows(ctx, parts, state)
            place += len(entries)
        for cell, template in self._cells.values():
            ctx.changes.write(cell, ctx.hold(template.result(finals)))
        for storage, state in self._tensors.items():
            ctx.write_back(storage, finals[state])
        results = self._carried.result(finals)
        return results[0] if ctx.outputs == 1 else results

    def _limit_operand(self) -> Expr | None:
        if isinstance(self._limit, int) and self._limit >= ENDLESS:
            return None
        if not self._done:
            return self._ctx.number(self._limit)
        left = relay.subtract(self._ctx.number(self._limit), self._ctx.number(self._done))
        return self._ctx.fold(left)


def _required(value: ExprT | None) -> ExprT:
    assert value is not None
    return value


def _as_value(ctx: ImportContext, found: Expr, state: _State) -> AnyValue:
    if state.entries:
        return DynamicEntries(ctx.fold(found), state.number)
    return ctx.as_number(found) if state.number else ctx.fold(found)


def _enter(state: _State) -> Var:
    """Return a new variable for a state."""
    state.variable = Var("state", state.type)
    return state.variable


def _leave(ctx: ImportContext, state: _State, value: Expr) -> bool:
    """Take what the body makes of a state; whether its type was wide enough."""
    if isinstance(state.type, TensorType):
        value = ctx.cast(value, state.type.dtype) if state.number else value
    _refuse_quantized(ctx, value)
    state.later = value
    joined = join_types(state.type, value.type) if value.type is not None else None
    if not isinstance(joined, (TensorType, SequenceType)):
        raise Unsupported(
            f"a value that goes round a loop is {state.type!r} first and {value.type!r} later"
        )
    same = joined == state.type
    state.type = joined
    return same


def _refuse_quantized(ctx: ImportContext, value: Expr) -> None:
    if ctx.is_quantized(value):
        raise Unsupported("a quantised tensor that goes round a loop", hint="dequantise it before")


class _Template:
    """The structure of values that go round, in which states stand for those that change."""

    def __init__(self, ctx: ImportContext, value: AnyValue) -> None:
        self._ctx = ctx
        self._changed = False
        self._value = self._begin(value)

    def _begin(self, value: AnyValue) -> AnyValue:
        if isinstance(value, Expr):
            _refuse_quantized(self._ctx, value)
            number = self._ctx.is_number(value)
            return _State(self._ctx.type(value), value, number)
        if is_dynamic(value):
            element = element_type(self._ctx, value)
            return [self._entries(value, _known(element))]
        if isinstance(value, (list, tuple)):
            return type(value)([self._begin(each) for each in value])
        if isinstance(value, dict):
            return {key: self._begin(each) for key, each in value.items()}
        return value

    def _entries(self, items: list[AnyValue], element: TensorType) -> _State:
        start = as_sequence(self._ctx, items, element)
        return _State(SequenceType(element), start.entries, start.number, entries=True)

    def states(self) -> Iterator[_State]:
        """Yield the states in it."""
        yield from _states_in(self._value)

    def enter(self) -> AnyValue:
        """Return the value with new variables for its states."""
        return _replace_states(
            self._value, lambda state: _as_value(self._ctx, _enter(state), state)
        )

    def result(self, finals: Mapping[_State, AnyValue]) -> AnyValue:
        """Return the value with what the loop gives for its states."""
        found = _replace_states(self._value, finals.__getitem__)
        if isinstance(found, (list, dict)):
            self._ctx.changes.create(found)
        return found

    def leave(self, later: AnyValue) -> bool:
        """Take what the body makes of the value; whether the structure could hold it."""
        self._changed = False
        self._value = self._widen(self._value, later)
        return not self._changed

    def _widen(self, old: AnyValue, new: AnyValue) -> AnyValue:
        if isinstance(old, _State) and not old.entries:
            return self._widen_state(old, new)
        if old is UNINITIALIZED or new is UNINITIALIZED:
            return self._widen_uninitialized(old, new)
        if isinstance(old, list) and isinstance(new, list):
            return self._widen_list(old, new)
        if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
            return tuple(self._widen(a, b) for a, b in zip(old, new, strict=True))
        if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
            return {key: self._widen(old[key], new[key]) for key in old}
        if type(old) is type(new) and old == new:
            return old
        return self._widen_number(old, new)

    def _widen_state(self, old: _State, new: AnyValue) -> _State:
        if new is UNINITIALIZED:
            old.later = old.variable
        elif new is None:
            raise Unsupported("a value that goes round a loop is a tensor first and None later")
        else:
            self._changed |= not _leave(self._ctx, old, self._ctx.number(new))
        return old

    def _widen_uninitialized(self, old: AnyValue, new: AnyValue) -> AnyValue:
        if new is UNINITIALIZED:
            return old
        self._changed = True
        if not isinstance(new, Expr):
            return new
        type_ = self._ctx.type(new)
        shape = [dim if isinstance(dim, int) else 1 for dim in type_.shape]
        start = relay.zeros(shape, type_.dtype)
        joined = join_types(type_, _known(start.type))
        return _State(_known(joined), start, self._ctx.is_number(new))

    def _widen_list(self, old: list[AnyValue], new: list[AnyValue]) -> list[AnyValue]:
        if len(old) == 1 and isinstance(old[0], _State) and old[0].entries:
            state = old[0]
            element = state.type.element if isinstance(state.type, SequenceType) else None
            both = join_types(_known(element), _known(element_type(self._ctx, new)))
            later = as_sequence(self._ctx, new, _known(both))
            self._changed |= not _leave(self._ctx, state, later.entries)
            return old
        if len(old) == len(new) and not is_dynamic(new):
            return [self._widen(a, b) for a, b in zip(old, new, strict=True)]
        self._changed = True
        first = [state.start if isinstance(state, _State) else state for state in old]
        element = element_type(self._ctx, [*first, *new])
        return [self._entries(first, _known(element))]

    def _widen_number(self, old: AnyValue, new: AnyValue) -> _State:
        for each in (old, new):
            if not isinstance(each, (bool, int, float, complex, Expr)):
                raise Unsupported(f"a value that goes round a loop is {old!r} first, then another")
        start = self._ctx.number(old)
        state = _State(self._ctx.type(start), start, number=True)
        later = self._ctx.type(self._ctx.number(new))
        if later.dtype == "float64" and state.type != later:
            state = replace(state, type=later, start=self._ctx.cast(start, "float64"))
        self._changed = True
        return state


def _known(type_: AnyValue) -> TensorType:
    if not isinstance(type_, TensorType):
        raise Unsupported("a list of tensors whose type is not known")
    return type_


def _states_in(value: AnyValue) -> Iterator[_State]:
    if isinstance(value, _State):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _states_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _states_in(each)


def _replace_states(value: AnyValue, find: Callable[[_State], AnyValue]) -> AnyValue:
    if isinstance(value, _State):
        return find(value)
    if isinstance(value, dict):
        return {key: _replace_states(each, find) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_replace_states(each, find) for each in value])
    return value


# Lists to which a body only appends.


def _find_stacks(ctx: ImportContext, states: Sequence[_State]) -> dict[_State, list[Expr]]:
    """Return lists that the body only appends to, with what it appends in each iteration."""
    found: dict[_State, list[Expr]] = {}
    for state in states:
        appended = _appended(state) if state.entries else None
        lengths = [dim for row in appended or () for dim in ctx.type(row).shape]
        if appended and not any(isinstance(dim, Any) for dim in lengths):
            found[state] = appended
    used = [_required(state.later) for state in states if state not in found]
    used += [row for rows in found.values() for row in rows]
    read = {node for each in used for node in post_order(each) if isinstance(node, Var)}
    return {state: rows for state, rows in found.items() if state.variable not in read}


def _appended(state: _State) -> list[Expr] | None:
    """Return what is inserted at the end of a sequence, if nothing else is done to it."""
    rows: list[Expr] = []
    value = state.later
    while value is not state.variable:
        if not isinstance(value, Call) or not isinstance(value.op, OpDef):
            return None
        if value.op.name != "serde.sequence_insert" or value.args[2].type != TupleType(()):
            return None
        rows.append(value.args[1])
        value = value.args[0]
    return rows[::-1]


def _join_rows(ctx: ImportContext, parts: Sequence[Expr], state: _State) -> AnyValue:
    """Return the entries of a list, those with which it began in front."""
    if len(parts) == 1:
        rows: Expr = parts[0]
    else:
        each = relay.stack(list(parts), axis=1)
        rows = relay.reshape(each, newshape=(-1, *ctx.type(each).shape[2:]))
    if not is_call(state.start, "serde.sequence_empty"):
        rows = relay.concatenate([DynamicEntries(state.start).as_rows(), rows], axis=0)
    return DynamicEntries(ctx.fold(rows), state.number)
