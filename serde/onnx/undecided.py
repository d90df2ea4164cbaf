"""Values of conditionals whose branches differ in rank, while it is open which one holds.

PyTorch writes ``squeeze(dim)`` of an open dimension so: an axis less where its length is 1, else
the tensor as it is. What follows is read once for each branch, until a node that ONNX itself
refuses for one of them, or the rank that the model declares for an output, decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from serde.core.report import Issue
from serde.errors import TypeInferenceError, Unsupported
from serde.relay.ir import Constant, Expr, If, Span, Tuple, TupleGetItem, infer_if
from serde.walk.holes import Placeholder

__all__ = ["INPUT_SHAPES_HINT", "MAX_SUPPOSED", "Decisions", "Undecided", "differ_in_rank", "join"]

INPUT_SHAPES_HINT: Final = "give input_shapes, so that the lengths asked for are known"

MAX_SUPPOSED: Final = 6
"""Conditions that may be undecided at a node at once; it is read for all their values."""


class Undecided(Placeholder):
    """One of two values that have no common type.

    Args:
        condition: A scalar bool.
        yes: The value where it is true; it may be undecided itself.
        no: The value where it is false.
        node: Name of the node that gives it.
    """

    __slots__ = ("condition", "sides")

    def __init__(self, condition: Expr, yes: Expr, no: Expr, node: str) -> None:
        self.condition = condition
        self.sides = (no, yes)
        self.type = None
        self.span = Span(node)

    def __repr__(self) -> str:
        return "Undecided"


def differ_in_rank(yes: Sequence[Expr], no: Sequence[Expr]) -> bool:
    """Whether the results of two branches can only be told apart, not joined."""
    return len(yes) == len(no) and any(
        isinstance(a, Undecided) or isinstance(b, Undecided) or _rank(a) != _rank(b)
        for a, b in zip(yes, no, strict=True)
    )


def _rank(x: Expr) -> int | None:
    return getattr(x.type, "rank", None)


class Decisions:
    """What is known of the conditions of undecided values, here and now.

    Attributes:
        any: Whether there ever was an undecided value.
        known: What conditions are taken to be.
        trying: How many of them are only supposed.
        notes: What was decided, and why.
    """

    def __init__(self) -> None:
        self.any = False
        self.known: dict[Expr, bool] = {}
        self.trying = 0
        self.notes: list[str] = []
        self._names: dict[Expr, str] = {}
        self._pending: list[tuple[dict[Expr, bool], Issue]] = []

    def undecided(self, condition: Expr, yes: Expr, no: Expr, node: str) -> Expr:
        """Return one of two values, of which only one holds where the condition is known."""
        self.any = True
        self._names.setdefault(condition, node)
        if condition in self.known:
            return yes if self.known[condition] else no
        equal = isinstance(yes, Constant) and isinstance(no, Constant) and _equal(yes, no)
        return yes if yes is no or equal else Undecided(condition, yes, no, node)

    def resolve(self, value: Expr | None) -> Expr | None:
        """Return what a value is as far as is known."""
        while isinstance(value, Undecided) and value.condition in self.known:
            value = value.sides[self.known[value.condition]]
        return value

    def decide(self, condition: Expr, side: bool, why: str) -> None:
        """Take a condition for decided.

        Args:
            condition: The condition.
            side: What it is.
            why: What speaks against the other branch.
        """
        self.known[condition] = side
        if not self.trying:
            taken, other = ("then", "else") if side else ("else", "then")
            node = self._names[condition]
            self.notes.append(f"{node}: only its {taken} branch is read, since with {other} {why}")

    @contextmanager
    def supposing(self, condition: Expr, side: bool) -> Iterator[None]:
        """Suppose that a condition is true or false, and forget what follows from it after."""
        before = self.known
        supposed = {**before, condition: side}
        self.known = dict(supposed)
        self.trying += 1
        try:
            yield
        finally:
            self._forget(supposed)
            self.known = before
            self.trying -= 1

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget after a subgraph what only what is inside it has decided."""
        before = dict(self.known)
        try:
            yield
        finally:
            self._forget(before)
            self.known = before

    def hold_back(self, issues: Sequence[Issue]) -> None:
        """Keep gaps that only count where what is supposed now holds."""
        self._pending += [(dict(self.known), issue) for issue in issues]

    def gaps(self) -> list[Issue]:
        """Return the gaps that were held back and count by what is decided now, each once."""
        self._forget({})
        return list(dict.fromkeys(issue for _, issue in self._pending))

    def _forget(self, given: Mapping[Expr, bool]) -> None:
        """Drop the gaps found where `given` held that what was decided since then speaks against.

        Args:
            given: What was known, or supposed, before the decisions.
        """
        decided = {each: side for each, side in self.known.items() if each not in given}
        self._pending = [
            (supposed, issue)
            for supposed, issue in self._pending
            if any(supposed.get(each) != side for each, side in given.items())
            or all(supposed.get(each, side) == side for each, side in decided.items())
        ]

    def settle(self, value: Expr, fits: Callable[[Expr], bool], why: str) -> None:
        """Take the conditions for decided for which only one branch gives what fits."""
        value = self.resolve_fully(value)
        while isinstance(value, Undecided):
            fitting = [side for side in (True, False) if any(map(fits, _cases(value.sides[side])))]
            if len(fitting) != 1:
                return
            self.decide(value.condition, fitting[0], why)
            value = self.resolve_fully(value)

    def resolve_fully(self, value: Expr) -> Expr:
        """Return a value as far as is known, its cases included."""
        if not isinstance(value, Undecided):
            return value
        if value.condition in self.known:
            return self.resolve_fully(value.sides[self.known[value.condition]])
        return _replace_sides(value, *map(self.resolve_fully, value.sides))


def _equal(a: Constant, b: Constant) -> bool:
    same = a.data.shape == b.data.shape and a.data.dtype == b.data.dtype
    return same and a.data.tobytes() == b.data.tobytes()


def _cases(value: Expr) -> Iterator[Expr]:
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Undecided):
            pending += each.sides
        else:
            yield each


def join(values: Sequence[Expr]) -> list[Expr]:
    """Return values as expressions: those that are undecided by the same become one conditional.

    Raises:
        Unsupported: The two values of one have no common type.
    """
    first = next((each for each in values if isinstance(each, Undecided)), None)
    if first is None:
        return list(values)
    condition = first.condition
    open_ = [i for i, each in enumerate(values) if _depends(each, condition)]
    yes, no = (join([_side(values[i], condition, side) for i in open_]) for side in (True, False))
    node = If(condition, Tuple(yes), Tuple(no))
    try:
        node.type = infer_if(node)
    except TypeInferenceError:
        types = [f"{a.type!r} and {b.type!r}" for a, b in zip(yes, no, strict=True)]
        what = f"the branches of an If differ ({'; '.join(types)}), and nothing tells which holds"
        raise Unsupported(what, hint=INPUT_SHAPES_HINT) from None
    found = list(values)
    for index, i in enumerate(open_):
        found[i] = TupleGetItem(node, index)
    return join(found)


def _depends(value: Expr, condition: Expr) -> bool:
    if not isinstance(value, Undecided):
        return False
    return value.condition is condition or any(_depends(each, condition) for each in value.sides)


def _side(value: Expr, condition: Expr, side: bool) -> Expr:
    if not isinstance(value, Undecided):
        return value
    if value.condition is condition:
        return _side(value.sides[side], condition, side)
    return _replace_sides(value, *(_side(each, condition, side) for each in value.sides))


def _replace_sides(value: Undecided, no: Expr, yes: Expr) -> Undecided:
    node = "" if value.span is None else value.span.source_name
    return Undecided(value.condition, yes, no, node)
