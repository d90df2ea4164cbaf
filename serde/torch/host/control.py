"""Conditionals of TorchScript.

A condition that is known leaves its branch only. A branch that does nothing but raise an error is
taken for one that is never entered, as an assertion that holds: the report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Expr, join_types
from serde.torch.aliases import Storage, Values
from serde.torch.changes import Cell
from serde.torch.host.registry import evaluates
from serde.torch.host.values import (
    UNINITIALIZED,
    DynamicEntries,
    as_sequence,
    element_type,
    is_dynamic,
)
from serde.torch.import_context import ImportContext
from serde.torch.model import Graph
from serde.torch.quantization import Quantization
from serde.walk.bodies import choose_branch

__all__ = ["Branches", "find_branch"]


def find_branch(condition: AnyValue, blocks: Sequence[Graph]) -> Graph | None:
    """Return the only branch of a conditional that can be taken; None if either can."""
    then, other = blocks
    if not isinstance(condition, Expr):
        return then if condition else other
    if raises(then) == raises(other):
        return None
    return other if raises(then) else then


def raises(block: Graph) -> bool:
    """Whether a block does nothing in the end but raise an error."""
    return any(
        each.op == "prim::RaiseException"
        or (each.op == "prim::If" and all(map(raises, each.blocks)))
        for each in block.nodes
    )


@evaluates("prim::results", moves=True)
def give_results(ctx: ImportContext, *values: AnyValue) -> AnyValue:
    """What a branch gives that was walked in the place of its conditional."""
    return values[0] if ctx.outputs == 1 else list(values)


@evaluates("prim::RaiseException")
def raise_exception(ctx: ImportContext, msg: str, cls: str | None = None) -> None:
    raise Unsupported(f"the program raises an error here: {msg}")


@evaluates("prim::If")
def convert_if(ctx: ImportContext, condition: Expr) -> AnyValue:
    """Both branches are walked, and what either changes in place is a result of the whole."""
    then, other = ctx.blocks
    yes = _walk_branch(ctx, "then", then)
    no = _walk_branch(ctx, "else", other)
    changed = {**yes.changed, **no.changed}
    storages = {**yes.scope.written(), **no.scope.written()}
    branches = Branches(ctx, condition, yes.scope.resolve, no.scope.resolve)
    joined = [branches.join(a, b) for a, b in zip(yes.results, no.results, strict=True)]
    contents = [branches.join(yes.content(each), no.content(each)) for each in changed.values()]
    tensors = [branches.join(yes.tensor(ctx, each), no.tensor(ctx, each)) for each in storages]
    build = branches.finish()
    for each, content in zip(changed.values(), contents, strict=True):
        ctx.changes.write(each.cell, ctx.hold(build(content)))
    for storage, tensor in zip(storages, tensors, strict=True):
        ctx.write_back(storage, build(tensor))
    results = [build(each) for each in joined]
    return results[0] if ctx.outputs == 1 else results


@dataclass(frozen=True)
class _Change:
    """What a cell holds before a branch and after it."""

    cell: Cell
    before: AnyValue
    after: AnyValue


@dataclass(frozen=True)
class _Branch:
    """What a branch gives, what it changes, and its scope, which knows what it wrote."""

    results: list[AnyValue]
    changed: dict[int, _Change]
    scope: Values

    def content(self, change: _Change) -> AnyValue:
        """Return what a cell holds after this branch."""
        own = self.changed.get(id(change.cell))
        return change.before if own is None else own.after

    def tensor(self, ctx: ImportContext, storage: Storage) -> Expr:
        """Return what a storage holds after this branch."""
        written = self.scope.written()
        return written[storage] if storage in written else ctx.current(storage)


def _walk_branch(ctx: ImportContext, label: str, block: Graph) -> _Branch:
    """Walk a branch, and take back what it changes beside tensors."""
    scope = ctx.enter(label)
    with ctx.changes.trial() as trial:
        results = copy_structure(ctx.run(block, scope))
        after = copy_structure([now for _, now in trial.after()])
    changed = {
        id(cell): _Change(cell, before, now)
        for (cell, before), now in zip(trial.before, after, strict=True)
    }
    return _Branch(results, changed, scope)


def copy_structure(value: AnyValue) -> AnyValue:
    """Return nested lists, tuples and dicts as they are now."""
    if isinstance(value, (list, tuple)):
        return type(value)([copy_structure(each) for each in value])
    if isinstance(value, dict):
        return {key: copy_structure(each) for key, each in value.items()}
    return value


Look = Callable[[AnyValue], AnyValue]


@dataclass(frozen=True)
class _Slot:
    """Stands for a result of a conditional that is not built yet.

    Attributes:
        place: Which of its results.
        number: Whether it is a number of Python's.
        entries: Whether it is the entries of a list.
        meaning: What its integers stand for, if it is quantised.
    """

    place: int
    number: bool
    entries: bool = False
    meaning: Quantization | None = None


class Branches:
    """Joins what two branches give.

    Args:
        ctx: The context of the conditional.
        condition: A scalar bool.
        look_yes: Returns what a handle holds behind the first branch.
        look_no: Likewise behind the second.
    """

    def __init__(self, ctx: ImportContext, condition: Expr, look_yes: Look, look_no: Look) -> None:
        self._ctx = ctx
        self._condition = condition
        self._looks = look_yes, look_no
        self._yes: list[Expr] = []
        self._no: list[Expr] = []

    def join(self, yes: AnyValue, no: AnyValue) -> AnyValue:
        """Return one of two values, with slots for what the conditional will give.

        Raises:
            Unsupported: They have no common type.
        """
        if yes is UNINITIALIZED or no is UNINITIALIZED:
            return no if yes is UNINITIALIZED else yes
        if yes is no or (type(yes) is type(no) and _is_plain(yes) and yes == no):
            return yes
        if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
            return tuple(self.join(a, b) for a, b in zip(yes, no, strict=True))
        if isinstance(yes, list) and isinstance(no, list):
            return self._join_lists(yes, no)
        if isinstance(yes, dict) and isinstance(no, dict) and list(yes) == list(no):
            return {key: self.join(yes[key], no[key]) for key in yes}
        return self._join_tensors(*self._look(yes, no))

    def _look(self, yes: AnyValue, no: AnyValue) -> tuple[AnyValue, AnyValue]:
        return self._looks[0](yes), self._looks[1](no)

    def _join_lists(self, yes: list[AnyValue], no: list[AnyValue]) -> AnyValue:
        if len(yes) == len(no) and not is_dynamic(yes) and not is_dynamic(no):
            return [self.join(a, b) for a, b in zip(yes, no, strict=True)]
        yes, no = self._look(yes, no)
        element = element_type(self._ctx, [*yes, *no])
        if element is None:
            return []
        one, two = (as_sequence(self._ctx, each, element) for each in (yes, no))
        return [self._slot(one.entries, two.entries, one.number or two.number, entries=True)]

    def _join_tensors(self, yes: AnyValue, no: AnyValue) -> AnyValue:
        if not isinstance(yes, Expr) and not isinstance(no, Expr) and not _are_numbers(yes, no):
            raise Unsupported(f"branches give {_describe(yes)} and {_describe(no)}")
        if yes is None or no is None:
            raise Unsupported("only one of two branches gives a tensor, the other None")
        meaning = self._quantization(yes, no)
        if (yes, no) in ((True, False), (False, True)) and type(yes) is bool:
            known = self._condition
            return self._ctx.as_number(known if yes else relay.logical_not(known))
        number = all(not isinstance(x, Expr) or self._ctx.is_number(x) for x in (yes, no))
        one, two = self._ctx.number(yes), self._ctx.number(no)
        if number:
            one, two = self._cast_numbers(one, two)
        types = self._ctx.type(one), self._ctx.type(two)
        if join_types(*types) is None:
            raise Unsupported(
                f"branches give tensors of {types[0]!r} and {types[1]!r}",
                hint="give input_shapes, so that the condition is known",
            )
        return self._slot(one, two, number, meaning=meaning)

    def _quantization(self, yes: AnyValue, no: AnyValue) -> Quantization | None:
        """Return what the integers of both branches stand for; None if neither is quantised."""
        given = [isinstance(x, Expr) and self._ctx.is_quantized(x) for x in (yes, no)]
        if not any(given):
            return None
        one, two = (self._ctx.quantization(x) for x in (yes, no))
        if (one.scale, one.zero_point, one.axis) != (two.scale, two.zero_point, two.axis):
            raise Unsupported("branches give tensors that are quantised differently")
        return one

    def _cast_numbers(self, one: Expr, two: Expr) -> tuple[Expr, Expr]:
        dtypes = {self._ctx.dtype(one), self._ctx.dtype(two)}
        if len(dtypes) == 1:
            return one, two
        wide = next(each for each in ("complex128", "float64", "int64") if each in dtypes)
        return self._ctx.cast(one, wide), self._ctx.cast(two, wide)

    def _slot(
        self,
        yes: Expr,
        no: Expr,
        number: bool,
        *,
        entries: bool = False,
        meaning: Quantization | None = None,
    ) -> _Slot:
        self._yes.append(yes)
        self._no.append(no)
        return _Slot(len(self._yes) - 1, number, entries, meaning)

    def finish(self) -> Callable[[AnyValue], AnyValue]:
        """Return what puts the results of the conditional in the place of slots."""
        results = self._build() if self._yes else []

        def build(value: AnyValue) -> AnyValue:
            if isinstance(value, _Slot):
                found = results[value.place]
                if value.entries:
                    return DynamicEntries(found, value.number)
                if value.meaning is not None:
                    return self._ctx.quantized(found, value.meaning)
                return self._ctx.as_number(found) if value.number else found
            if isinstance(value, dict):
                return self._made({key: build(each) for key, each in value.items()})
            if isinstance(value, (list, tuple)):
                return self._made(type(value)([build(each) for each in value]))
            return value

        return build

    def _made(self, value: AnyValue) -> AnyValue:
        self._ctx.changes.create(value)
        return value

    def _build(self) -> list[Expr]:
        found = choose_branch(self._condition, self._yes, self._no)
        return [self._ctx.fold(each) for each in found]


def _is_plain(value: AnyValue) -> bool:
    return isinstance(value, (bool, int, float, complex, str, type(None)))


def _are_numbers(*values: AnyValue) -> bool:
    return all(isinstance(each, (bool, int, float, complex)) for each in values)


def _describe(value: AnyValue) -> str:
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return "a tensor" if isinstance(value, Expr) else repr(value)
