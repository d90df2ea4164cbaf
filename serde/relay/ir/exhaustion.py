"""Cases that the clauses of a match leave out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Final

from serde.errors import RelayError
from serde.relay.ir.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternWildcard,
    TypeData,
)
from serde.relay.ir.module import IRModule

__all__ = ["unmatched_cases"]

_MAX_CASES: Final = 100_000


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Return patterns of the values that no clause of a match is for; none where it is complete.

    A case starts as any value. Where a clause asks more than the case tells, the case is split by
    the constructors that the clause asks for.

    Args:
        match: The match.
        mod: Where its data types are defined; what defined the constructors by default.

    Raises:
        RelayError: A constructor belongs to no definition, or there are too many cases to look at.
    """
    waiting: list[Pattern] = [PatternWildcard()]
    left: list[Pattern] = []
    looked = 0
    while waiting:
        case = waiting.pop()
        looked += 1
        for clause in match.clauses:
            fits = _compare(clause.lhs, case)
            if fits is None:
                new = _split(clause.lhs, case, mod)
                looked += len(new)
                waiting.extend(new)
            if fits is not False:
                break
        else:
            left.append(case)
        if looked > _MAX_CASES:
            raise RelayError(f"{match!r}: more than {_MAX_CASES} cases")
    return left


def _compare(asked: Pattern, case: Pattern) -> bool | None:
    """Whether every value of a case matches a pattern (True), none (False), or some (None)."""
    found: bool | None = True
    pending = [(asked, case)]
    while pending:
        pattern, here = pending.pop()
        if not isinstance(pattern, (PatternConstructor, PatternTuple)):
            continue
        if type(here) is not type(pattern):
            found = None
            continue
        if isinstance(pattern, PatternConstructor) and _differs(pattern.constructor, here):
            return False
        pending.extend(zip(pattern.parts, here.parts, strict=False))
    return found


def _differs(one: Constructor, case: Pattern) -> bool:
    if not isinstance(case, PatternConstructor):
        return False
    other = case.constructor
    return (one.name_hint, one.belong_to) != (other.name_hint, other.belong_to)


def _split(asked: Pattern, case: Pattern, mod: IRModule | None) -> list[Pattern]:
    """Return the cases that a case falls into, one step nearer to what a pattern asks."""
    if isinstance(asked, PatternConstructor):
        if isinstance(case, PatternConstructor):
            fields = [_split(a, b, mod) for a, b in zip(asked.parts, case.parts, strict=True)]
            return [PatternConstructor(case.constructor, each) for each in _combine(fields)]
        made = _definition(asked.constructor, mod).constructors
        return [PatternConstructor(each, _any_of(each.inputs)) for each in made]
    if isinstance(asked, PatternTuple):
        if isinstance(case, PatternTuple):
            fields = [_split(a, b, mod) for a, b in zip(asked.parts, case.parts, strict=True)]
            return [PatternTuple(each) for each in _combine(fields)]
        return [PatternTuple(_any_of(asked.parts))]
    return [case]


def _combine(fields: list[list[Pattern]]) -> Iterable[tuple[Pattern, ...]]:
    if prod(len(each) for each in fields) > _MAX_CASES:
        raise RelayError(f"a match has more than {_MAX_CASES} cases")
    return product(*fields)


def _any_of(parts: Iterable[object]) -> list[Pattern]:
    return [PatternWildcard() for _ in parts]


def _definition(constructor: Constructor, mod: IRModule | None) -> TypeData:
    known = None if mod is None else mod.type_definitions.get(constructor.belong_to)
    if known is None:
        known = constructor.definition
    if not isinstance(known, TypeData):
        raise RelayError(f"{constructor!r} belongs to no definition of a type")
    return known
