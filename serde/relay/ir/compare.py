"""Structural equality of Relay that names the first difference.

Variables are equal by where they are bound, not by name. Constants are equal
by shape, dtype and bytes, operators and global functions by name. Which nodes
are shared counts, as in TVM, except for constants and tuple projections.
Spans never count. Types of variables and of results count, declared or inferred: one that is not
known equals only another that is not, so that this is an equivalence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.garbage_collection import pause_garbage_collection
from serde.errors import RelayError
from serde.relay.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternVar, TypeData
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    astuple,
)
from serde.relay.ir.module import IRModule
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import FuncType, Type, TypeVar, bind_type_vars, walk_type
from serde.relay.ir.visit import children

__all__ = [
    "Comparable", "assert_structural_equal", "equal_in_six_digits", "first_difference",
    "result_type", "structural_equal",
]  # fmt: skip

Comparable = IRModule | Expr | Type | TypeData
Listed = Comparable | Sequence[AnyValue]
_SHOWN_STEPS: Final = 12


class _Path:
    """Where a comparison is: a step below another place."""

    __slots__ = ("parent", "step")

    def __init__(self, step: str, parent: _Path | None = None) -> None:
        self.step = step
        self.parent = parent

    def __str__(self) -> str:
        steps: list[str] = []
        place: _Path | None = self
        while place is not None and len(steps) <= _SHOWN_STEPS:
            steps.append(place.step)
            place = place.parent
        if len(steps) > _SHOWN_STEPS:
            steps[-1] = "..."
        return "".join(reversed(steps)).lstrip(".") or "value"


class _Difference(Exception):
    """The first difference; ends a comparison."""


Pair = tuple[Expr, Expr, _Path]


@pause_garbage_collection()
def structural_equal(a: Listed, b: Listed, map_free_vars: bool = False) -> bool:
    """Whether modules, expressions, types or lists of them are the same but for names and spans.

    Args:
        a: One.
        b: The other, of the same kind.
        map_free_vars: Whether free variables may stand for each other, in order of
            appearance; otherwise a free variable is equal to itself alone.
    """
    return first_difference(a, b, map_free_vars=map_free_vars) is None


def first_difference(a: Listed, b: Listed, *, map_free_vars: bool = False) -> str | None:
    """Return where two modules, expressions or types first differ and how, or None.

    The place is a path such as ``main.body.args[0].attrs.axis``.
    """
    return _first_difference(a, b, _Comparer(map_free_vars))


def assert_structural_equal(a: Listed, b: Listed, map_free_vars: bool = False) -> None:
    """Raise where two modules, expressions or types differ.

    Raises:
        RelayError: They do; the message names the first difference.
    """
    found = first_difference(a, b, map_free_vars=map_free_vars)
    if found is not None:
        raise RelayError(found)


def equal_in_six_digits(a: Expr, b: Expr) -> bool:
    """Whether expressions are equal when floats are written with six digits, as TVM does."""
    return _first_difference(a, b, _Comparer(map_free_vars=False, rounded=True)) is None


def _first_difference(a: AnyValue, b: AnyValue, comparer: _Comparer) -> str | None:
    a, b = astuple(a), astuple(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"list: {len(a)} and {len(b)} items"
        found = (_first_difference(*pair, comparer) for pair in zip(a, b, strict=True))
        return next(filter(None, found), None)
    try:
        if isinstance(a, IRModule) and isinstance(b, IRModule):
            comparer.modules(a, b)
        elif isinstance(a, Expr) and isinstance(b, Expr):
            comparer.run(a, b, _Path(""))
        elif isinstance(a, (IRModule, Expr)) or isinstance(b, (IRModule, Expr)):
            return f"value: a {type(a).__name__} and a {type(b).__name__}"
        elif isinstance(a, TypeData) or isinstance(b, TypeData):
            return None if a == b else f"definition: {a!r} and {b!r}"
        elif not comparer.equal_types(a, b):
            return f"type: {a!r} and {b!r}"
    except _Difference as difference:
        return str(difference)
    return None


class _Comparer:
    def __init__(self, map_free_vars: bool, *, rounded: bool = False) -> None:
        self._map_free_vars = map_free_vars
        self._rounded = rounded
        self._forward: dict[Expr, Expr] = {}
        self._backward: dict[Expr, Expr] = {}
        self._seen: set[tuple[int, int]] = set()
        self._results: list[tuple[Type | None, Type | None, _Path]] = []
        self._type_vars: dict[TypeVar, Type] = {}

    def modules(self, a: IRModule, b: IRModule) -> None:
        """Compare all functions, in order of their names."""
        left = {variable.name_hint: function for variable, function in a.functions.items()}
        right = {variable.name_hint: function for variable, function in b.functions.items()}
        if left.keys() != right.keys():
            only = sorted(left.keys() ^ right.keys())[0]
            raise _Difference(f"module: only one has a function {only}")
        self._compare_definitions(a, b)
        self._compare_mappings(a.attrs, b.attrs, _Path("module.attrs"), [])
        for name in sorted(left):
            self.run(left[name], right[name], _Path(name))

    def _compare_definitions(self, a: IRModule, b: IRModule) -> None:
        left = {header.name_hint: data for header, data in a.type_definitions.items()}
        right = {header.name_hint: data for header, data in b.type_definitions.items()}
        if left != right:
            names = (n for n in sorted(left.keys() | right.keys()) if left.get(n) != right.get(n))
            raise _Difference(f"module: the definitions of the type {next(names)} differ")

    def run(self, a: Expr, b: Expr, path: _Path) -> None:
        """Compare two expressions; raise :class:`_Difference` at the first difference."""
        pending: list[Pair] = [(a, b, path)]
        while pending:
            left, right, place = pending.pop()
            if not self._is_settled(left, right, place):
                below = list(self._compare_node(left, right, place))
                pending.extend(reversed(below))
        # Last, since a difference of results mostly follows from one in the bodies.
        for left_type, right_type, place in self._results:
            self._compare_types(left_type, right_type, place)
        self._results.clear()

    def _is_settled(self, a: Expr, b: Expr, path: _Path) -> bool:
        """Whether the pair needs no look: it was compared before, or is two variables."""
        if isinstance(a, Var) and isinstance(b, Var):
            self._compare_variables(a, b, path)
            return True
        if type(a) is not type(b):
            raise _Difference(f"{path}: {a!r} and {b!r}")
        if isinstance(a, (Constant, TupleGetItem, GlobalVar, Op, Constructor)) or not _fields(a):
            key = (id(a), id(b))
            known = key in self._seen
            self._seen.add(key)
            return known
        if a in self._forward or b in self._backward:
            if self._forward.get(a) is not b or self._backward.get(b) is not a:
                raise _Difference(f"{path}: {a!r} is shared on one side only")
            return True
        self._bind(a, b)
        return False

    def _bind(self, a: Expr, b: Expr) -> None:
        self._forward[a] = b
        self._backward[b] = a

    def _compare_variables(self, a: Var, b: Var, path: _Path) -> None:
        if a in self._forward or b in self._backward:
            if self._forward.get(a) is not b or self._backward.get(b) is not a:
                raise _Difference(f"{path}: {a!r} and {b!r} are not bound at the same place")
        elif self._map_free_vars:
            self._compare_types(a.type, b.type, _Path(".type", path))
            self._bind(a, b)
        elif a is not b:
            raise _Difference(f"{path}: {a!r} and {b!r} are different free variables")

    def _compare_types(self, a: Type | None, b: Type | None, path: _Path) -> None:
        if not self.equal_types(a, b):
            left, right = ("no type" if type_ is None else repr(type_) for type_ in (a, b))
            raise _Difference(f"{path}: {left} and {right}")

    def equal_types(self, a: Type | None, b: Type | None) -> bool:
        """Whether two types are equal, given which type variables stand for each other."""
        if a is None or b is None:
            return a is b
        if self._map_free_vars:
            pairs = zip(walk_type(a), walk_type(b), strict=False)
            for left, right in pairs:
                if isinstance(left, TypeVar) and isinstance(right, TypeVar):
                    self._type_vars.setdefault(left, right)
        return (bind_type_vars(a, self._type_vars) if self._type_vars else a) == b

    def _compare_node(self, a: Expr, b: Expr, path: _Path) -> Iterator[Pair]:
        """Compare what two nodes say themselves; yield the pairs below them."""
        if isinstance(a, Call) and isinstance(b, Call):
            yield from self._compare_calls(a, b, path)
        elif isinstance(a, Constant) and isinstance(b, Constant):
            self._compare_constants(a, b, path)
        elif isinstance(a, Tuple) and isinstance(b, Tuple):
            yield from self._compare_lists(a.fields, b.fields, "fields", path)
        elif isinstance(a, TupleGetItem) and isinstance(b, TupleGetItem):
            self._compare_scalars(a.index, b.index, _Path(".index", path))
            yield a.tuple_value, b.tuple_value, _Path(".tuple_value", path)
        elif isinstance(a, Function) and isinstance(b, Function):
            yield from self._compare_functions(a, b, path)
        elif isinstance(a, Let) and isinstance(b, Let):
            self._compare_types(a.var.type, b.var.type, _Path(".var.type", path))
            self._bind(a.var, b.var)
            yield a.value, b.value, _Path(".value", path)
            yield a.body, b.body, _Path(".body", path)
        elif isinstance(a, If) and isinstance(b, If):
            yield a.cond, b.cond, _Path(".cond", path)
            yield a.true_branch, b.true_branch, _Path(".true_branch", path)
            yield a.false_branch, b.false_branch, _Path(".false_branch", path)
        elif isinstance(a, GlobalVar) and isinstance(b, GlobalVar):
            self._compare_scalars(a.name_hint, b.name_hint, path)
        elif isinstance(a, Match) and isinstance(b, Match):
            yield from self._compare_matches(a, b, path)
        elif isinstance(a, (RefCreate, RefRead, RefWrite)):
            yield from self._compare_lists(children(a), children(b), "operands", path)
        elif isinstance(a, Constructor) and isinstance(b, Constructor):
            self._compare_constructors(a, b, path)
        elif isinstance(a, Op) and isinstance(b, Op):
            self._compare_scalars(a.name, b.name, path)
        else:
            raise _Difference(f"{path}: {a!r} is no node that can be compared")

    def _compare_constructors(self, a: Constructor, b: Constructor, path: _Path) -> None:
        self._compare_scalars(a.name_hint, b.name_hint, path)
        self._compare_types(a.belong_to, b.belong_to, path)

    def _compare_matches(self, a: Match, b: Match, path: _Path) -> Iterator[Pair]:
        self._compare_scalars(a.complete, b.complete, _Path(".complete", path))
        yield a.data, b.data, _Path(".data", path)
        if len(a.clauses) != len(b.clauses):
            raise _Difference(f"{path}: {len(a.clauses)} and {len(b.clauses)} clauses")
        for index, (left, right) in enumerate(zip(a.clauses, b.clauses, strict=True)):
            place = _Path(f".clauses[{index}]", path)
            pending: list[tuple[Pattern, Pattern]] = [(left.lhs, right.lhs)]
            while pending:
                pending.extend(self._compare_patterns(*pending.pop(), place))
            yield left.rhs, right.rhs, _Path(".rhs", place)

    def _compare_patterns(
        self, a: Pattern, b: Pattern, path: _Path
    ) -> Iterator[tuple[Pattern, Pattern]]:
        """Compare what two patterns ask themselves; return the pairs of their parts."""
        if type(a) is not type(b) or len(a.parts) != len(b.parts):
            raise _Difference(f"{path}: {a!r} and {b!r}")
        if isinstance(a, PatternVar) and isinstance(b, PatternVar):
            self._compare_types(a.var.type, b.var.type, path)
            self._bind(a.var, b.var)
        if isinstance(a, PatternConstructor) and isinstance(b, PatternConstructor):
            self._compare_constructors(a.constructor, b.constructor, path)
        return zip(a.parts, b.parts, strict=True)

    def _compare_lists(
        self, a: Sequence[Expr], b: Sequence[Expr], name: str, path: _Path
    ) -> Iterator[Pair]:
        if len(a) != len(b):
            raise _Difference(f"{path}: {len(a)} and {len(b)} {name}")
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield left, right, _Path(f".{name}[{index}]", path)

    def _compare_calls(self, a: Call, b: Call, path: _Path) -> Iterator[Pair]:
        below: list[Pair] = []
        if a.op is not b.op:
            if isinstance(a.op, Op) and isinstance(b.op, Op):
                self._compare_scalars(a.op.name, b.op.name, _Path(".op", path))
            else:
                below.append((a.op, b.op, _Path(".op", path)))
        elif not isinstance(a.op, Op):
            below.append((a.op, b.op, _Path(".op", path)))
        if not isinstance(a.op, Op):
            self._compare_type_arguments(a, b, path)
        if a.attrs is not b.attrs:
            self._compare_mappings(a.attrs, b.attrs, _Path(".attrs", path), below)
        yield from self._compare_lists(a.args, b.args, "args", path)
        yield from below

    def _compare_type_arguments(self, a: Call, b: Call, path: _Path) -> None:
        left, right = a.given_type_args or (), b.given_type_args or ()
        if len(left) != len(right):
            raise _Difference(f"{path}: {len(left)} and {len(right)} type arguments")
        for index, types in enumerate(zip(left, right, strict=True)):
            self._compare_types(*types, _Path(f".type_args[{index}]", path))

    def _compare_functions(self, a: Function, b: Function, path: _Path) -> Iterator[Pair]:
        if len(a.params) != len(b.params):
            raise _Difference(f"{path}: {len(a.params)} and {len(b.params)} params")
        if len(a.type_params) != len(b.type_params):
            counts = f"{len(a.type_params)} and {len(b.type_params)}"
            raise _Difference(f"{path}: {counts} type params")
        self._type_vars.update(zip(a.type_params, b.type_params, strict=True))
        for index, (left, right) in enumerate(zip(a.params, b.params, strict=True)):
            place = _Path(f".params[{index}]", path)
            self._compare_types(left.type, right.type, _Path(".type", place))
            if left in self._forward or right in self._backward:
                raise _Difference(f"{place}: {left!r} or {right!r} is bound twice")
            self._bind(left, right)
        self._results.append((result_type(a), result_type(b), _Path(".ret_type", path)))
        below: list[Pair] = []
        self._compare_mappings(a.attrs, b.attrs, _Path(".attrs", path), below)
        yield from below
        yield a.body, b.body, _Path(".body", path)

    def _compare_constants(self, a: Constant, b: Constant, path: _Path) -> None:
        left, right = a.data, b.data
        if left.shape != right.shape or left.dtype != right.dtype:
            raise _Difference(f"{path}: {a!r} and {b!r}")
        if left is right or left.tobytes() == right.tobytes():
            return
        inline = self._rounded and not left.ndim and left.dtype.kind == "f"
        if not inline or f"{float(left):g}" != f"{float(right):g}":
            raise _Difference(f"{path}: constants differ in value{_scalar_text(left, right)}")

    def _compare_mappings(
        self, a: Mapping[str, AnyValue], b: Mapping[str, AnyValue], path: _Path, below: list[Pair]
    ) -> None:
        if a.keys() != b.keys():
            only = sorted(set(a) ^ set(b))[0]
            raise _Difference(f"{path}: only one has {only}")
        for name, value in a.items():
            self._compare_values(value, b[name], _Path(f".{name}", path), below)

    def _compare_values(self, a: AnyValue, b: AnyValue, path: _Path, below: list[Pair]) -> None:
        if isinstance(a, Expr) and isinstance(b, Expr):
            below.append((a, b, path))
        elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
            if len(a) != len(b):
                raise _Difference(f"{path}: {len(a)} and {len(b)} items")
            for index, (left, right) in enumerate(zip(a, b, strict=True)):
                self._compare_values(left, right, _Path(f"[{index}]", path), below)
        elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if a.shape != b.shape or a.dtype != b.dtype or a.tobytes() != b.tobytes():
                raise _Difference(f"{path}: arrays differ")
        else:
            self._compare_scalars(a, b, path)

    def _compare_scalars(self, a: AnyValue, b: AnyValue, path: _Path) -> None:
        if isinstance(a, float) and isinstance(b, float):
            same = f"{a:g}" == f"{b:g}" if self._rounded else repr(a) == repr(b)
        else:
            same = type(a) is type(b) and bool(a == b)
        if not same and not (isinstance(a, np.dtype) and isinstance(b, np.dtype) and a == b):
            raise _Difference(f"{path}: {a!r} and {b!r}")


def _fields(node: Expr) -> bool:
    """Whether a node's identity counts; an empty tuple's does not."""
    return not isinstance(node, Tuple) or bool(node.fields)


def result_type(function: Function) -> Type | None:
    """Return the type of a function's result, declared or inferred; None where neither is."""
    if function.ret_type is not None:
        return function.ret_type
    return function.type.ret_type if isinstance(function.type, FuncType) else None


def _scalar_text(a: np.ndarray[AnyValue, AnyValue], b: np.ndarray[AnyValue, AnyValue]) -> str:
    return f": {a[()]} and {b[()]}" if not a.ndim else ""
