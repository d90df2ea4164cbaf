"""Types of which parts are not known yet, and what makes two of them one.

An :class:`Unknown` is TVM's incomplete type: it stands for one type, and once it is told
which, or that another one stands for the same, all who hold it know. Tuples, functions, calls of
algebraic data types and references whose parts may be unknown are terms of their own; anything
else in a term is a type. A polymorphic function is one with whatever an instance of it is one with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any as AnyValue, Final

from serde.errors import TypeInferenceError
from serde.relay.ir.types import (
    FuncType,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    accepts,
    type_parts,
)

__all__ = [
    "CallTerm", "FuncTerm", "RefTerm", "Term", "TupleTerm", "Unifier", "Unknown", "close",
    "find", "instantiate", "settle", "spell", "split_function", "type_params",
]  # fmt: skip

_SHOWN_LEVELS: Final = 3


class Unknown:
    """A type that is not known yet.

    Attributes:
        bound: What it turned out to be, perhaps another unknown type; None before.
        waiting: Who is to be told.
    """

    __slots__ = ("bound", "waiting")

    def __init__(self) -> None:
        self.bound: Term | None = None
        self.waiting: list[AnyValue] = []


class _Compound:
    """A type made of terms.

    Attributes:
        parts: The terms.
        settled: The types of the first of them, as far as they are known.
        type: The type, once all parts are known.
    """

    __slots__ = ("parts", "settled", "type")

    def __init__(self, parts: Iterable[Term]) -> None:
        self.parts: tuple[Term, ...] = tuple(parts)
        self.settled: list[Type] = []
        self.type: Type | None = None

    def build(self) -> Type:
        """Return the type that the parts make."""
        raise NotImplementedError


class TupleTerm(_Compound):
    """A tuple, by the terms of its fields."""

    __slots__ = ()

    def build(self) -> Type:
        """Return the type that the fields make."""
        return TupleType(self.settled)


class FuncTerm(_Compound):
    """A function, by the terms of its parameters and, last, of its result.

    Args:
        parts: The terms.
        params: Its type parameters, which may occur in the terms.
    """

    __slots__ = ("params",)

    def __init__(self, parts: Iterable[Term], params: Iterable[TypeVar] = ()) -> None:
        super().__init__(parts)
        self.params: tuple[TypeVar, ...] = tuple(params)

    def build(self) -> Type:
        """Return the type that parameters and result make."""
        return FuncType(self.settled[:-1], self.settled[-1], self.params)


class CallTerm(_Compound):
    """An algebraic data type, by the terms of the types it takes.

    Args:
        func: The data type.
        parts: The terms.
    """

    __slots__ = ("func",)

    def __init__(self, func: Type, parts: Iterable[Term]) -> None:
        super().__init__(parts)
        self.func = func

    def build(self) -> Type:
        """Return the type that the arguments make."""
        return TypeCall(self.func, self.settled)


class RefTerm(_Compound):
    """A reference, by the term of what it holds."""

    __slots__ = ()

    def build(self) -> Type:
        """Return the type that the content makes."""
        return RefType(self.settled[0])


Term = Type | Unknown | TupleTerm | FuncTerm | CallTerm | RefTerm


def find(term: Term) -> Term:
    """Return what a term stands for: itself, or what its unknown type turned out to be."""
    root = term
    while isinstance(root, Unknown) and root.bound is not None:
        root = root.bound
    while isinstance(term, Unknown) and term.bound is not None:
        term.bound, term = root, term.bound
    return root


def settle(term: Term) -> Type | Unknown:
    """Return the type that a term is, or an unknown type that it still waits for."""
    above: list[_Compound] = []
    here: Term = find(term)
    while True:
        if isinstance(here, Unknown):
            return here
        if isinstance(here, _Compound):
            if here.type is None and len(here.settled) < len(here.parts):
                above.append(here)
                here = find(here.parts[len(here.settled)])
                continue
            if here.type is None:
                here.type = here.build()
            found: Type = here.type
        else:
            found = here
        if not above:
            return found
        whole = above.pop()
        whole.settled.append(found)
        here = whole  # type: ignore[assignment]


def split_function(term: Term) -> tuple[tuple[Term, ...], Term] | None:
    """Return the terms of a function's parameters and of its result; None of anything else."""
    parts = _parts(find(term))
    if parts is None or parts[0] is not FuncType:
        return None
    return parts[1][:-1], parts[1][-1]


def type_params(term: Term) -> tuple[TypeVar, ...]:
    """Return the type parameters of a polymorphic function; none of anything else."""
    known = find(term)
    if isinstance(known, FuncTerm):
        return known.params
    return known.type_params if isinstance(known, FuncType) else ()


def instantiate(term: Term, values: Mapping[TypeVar, Term]) -> Term:
    """Return a term with `values` for type variables, and with unknown types for incomplete ones.

    A type without either is returned itself.
    """
    known = find(term)
    if isinstance(known, Unknown) or type(known) is TensorType:
        return known
    if isinstance(known, TypeVar):
        return values.get(known, known)
    if isinstance(known, IncompleteType):
        return Unknown()
    parts = known.parts if isinstance(known, _Compound) else type_parts(known)
    new = [instantiate(part, values) for part in parts]
    if all(a is b for a, b in zip(parts, new, strict=True)):
        return known
    if isinstance(known, (TupleType, TupleTerm)):
        return TupleTerm(new)
    if isinstance(known, (FuncType, FuncTerm)):
        return FuncTerm(new, type_params(known))
    if isinstance(known, CallTerm):
        return CallTerm(known.func, new)
    if isinstance(known, TypeCall):
        return CallTerm(known.func, new[1:])
    return RefTerm(new)


def _open(term: Term) -> Term:
    """Return a polymorphic function as one of unknown types; anything else as it is."""
    params = type_params(term)
    if not params:
        return term
    opened = instantiate(term, {param: Unknown() for param in params})
    parts = _parts(opened)
    return opened if parts is None else FuncTerm(parts[1])


def close(term: Term) -> Type:
    """Return the type that a term is, with incomplete types for what is not known."""
    known = settle(term)
    while isinstance(known, Unknown):
        known.bound = IncompleteType()
        known = settle(term)
    return known


def _parts(term: Term) -> tuple[AnyValue, tuple[Term, ...]] | None:
    """Return the kind and the parts of a compound term or type."""
    if isinstance(term, TupleTerm):
        return TupleType, term.parts
    if isinstance(term, FuncTerm):
        return FuncType, term.parts
    if isinstance(term, CallTerm):
        return term.func, term.parts
    if isinstance(term, RefTerm):
        return RefType, term.parts
    if isinstance(term, TupleType):
        return TupleType, term.fields
    if isinstance(term, FuncType):
        return FuncType, (*term.arg_types, term.ret_type)
    if isinstance(term, TypeCall):
        return term.func, term.args
    if isinstance(term, RefType):
        return RefType, (term.value,)
    return None


def spell(term: Term, levels: int = _SHOWN_LEVELS) -> str:
    """Return a term as messages show it, with ``_`` for what is not known."""
    known = settle(term)
    if not isinstance(known, Unknown):
        return repr(known)
    parts = _parts(find(term))
    if parts is None or not levels:
        return "_"
    shown = [spell(part, levels - 1) for part in parts[1]]
    if parts[0] is FuncType:
        return f"fn ({', '.join(shown[:-1])}) -> {shown[-1]}"
    if parts[0] is RefType:
        return f"ref({shown[0]})"
    if parts[0] is not TupleType:
        return f"{parts[0]!r}[{', '.join(shown)}]"
    return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


class Unifier:
    """Makes terms one, and tells those who wait.

    Args:
        wake: Gets each of those who waited for an unknown type of which something is known now.
    """

    def __init__(self, wake: Callable[[AnyValue], None]) -> None:
        self._wake = wake
        self._done: dict[tuple[int, int], tuple[Term, Term]] = {}

    def unify(self, expected: Term, found: Term) -> bool:
        """Make two terms one; False where what is known of them differs.

        Two types are one where a value of either may stand for the other, as
        :func:`serde.relay.ir.types.accepts` has it.

        Raises:
            TypeInferenceError: A type would contain itself.
        """
        pending = [(expected, found)]
        while pending:
            left, right = (find(side) for side in pending.pop())
            if left is right:
                continue
            if isinstance(left, Unknown):
                self._bind(left, right)
            elif isinstance(right, Unknown):
                self._bind(right, left)
            elif not isinstance(left, _Compound) and not isinstance(right, _Compound):
                if not accepts(left, right):
                    return False
            elif (id(left), id(right)) not in self._done:
                self._done[id(left), id(right)] = (left, right)  # Kept, so that ids stay theirs.
                one, other = _parts(_open(left)), _parts(_open(right))
                if one is None or other is None or one[0] != other[0]:
                    if isinstance(left, IncompleteType) or isinstance(right, IncompleteType):
                        continue
                    return False
                if len(one[1]) != len(other[1]):
                    return False
                pending.extend(zip(reversed(one[1]), reversed(other[1]), strict=True))
        return True

    def _bind(self, unknown: Unknown, term: Term) -> None:
        if isinstance(term, _Compound) and _occurs(unknown, term):
            raise TypeInferenceError(f"a type would contain itself: {spell(term)}")
        unknown.bound = term
        waiting, unknown.waiting = unknown.waiting, []
        if isinstance(term, Unknown):
            term.waiting.extend(waiting)
            return
        for each in waiting:
            self._wake(each)


def _occurs(unknown: Unknown, term: Term) -> bool:
    pending: list[Term] = [term]
    seen: set[int] = set()
    while pending:
        here = find(pending.pop())
        if here is unknown:
            return True
        if isinstance(here, _Compound) and here.type is None and id(here) not in seen:
            seen.add(id(here))
            pending.extend(here.parts[len(here.settled) :])
    return False
