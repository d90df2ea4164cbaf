"""Algebraic data types: constructors, definitions, patterns and match."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir.expr import Callee, Expr, Span, Var, astuple
from serde.relay.ir.types import FuncType, GlobalTypeVar, Type, TypeCall, TypeVar

__all__ = [
    "Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple",
    "PatternVar", "PatternWildcard", "TypeData", "replace_pattern_vars",
]  # fmt: skip


class Constructor(Callee):
    """One way to make a value of an algebraic data type; called like a function.

    It has a type once a :class:`TypeData` holds it.

    Args:
        name_hint: Its name.
        inputs: Types of the fields of the value.
        belong_to: The data type.

    Attributes:
        tag: Its number, which values carry; no other constructor of the type has it.
        definition: The definition that holds it, or None.
    """

    __slots__ = ("belong_to", "definition", "inputs", "name_hint", "tag")

    def __init__(
        self,
        name_hint: str,
        inputs: Iterable[Type],
        belong_to: GlobalTypeVar,
        span: Span | None = None,
    ) -> None:
        self.name_hint = name_hint
        self.inputs: tuple[Type, ...] = tuple(inputs)
        self.belong_to = belong_to
        self.tag = -1
        self.definition: TypeData | None = None
        self.below = ()
        self.type = None
        self.span = span

    def __repr__(self) -> str:
        return f"Constructor({self.name_hint})"


class TypeData:
    """The definition of an algebraic data type.

    Its constructors are typed by it.

    Args:
        header: The name of the type.
        type_vars: The types it takes.
        constructors: The ways to make a value; none for an extern type.
    """

    __slots__ = ("constructors", "header", "type_vars")

    def __init__(
        self,
        header: GlobalTypeVar,
        type_vars: Iterable[TypeVar] = (),
        constructors: Iterable[Constructor] = (),
    ) -> None:
        self.header = header
        self.type_vars: tuple[TypeVar, ...] = tuple(type_vars)
        self.constructors: tuple[Constructor, ...] = tuple(constructors)
        whole = TypeCall(header, self.type_vars)
        # TVM's tags: a hash of the name, then the place among the constructors.
        first = (zlib.crc32(header.name_hint.encode()) & 0x7F) << 24
        for index, constructor in enumerate(self.constructors):
            constructor.tag = first | index
            constructor.definition = self
            constructor.type = FuncType(constructor.inputs, whole, self.type_vars)

    def _signature(self) -> tuple[AnyValue, ...]:
        types = tuple(constructor.type for constructor in self.constructors)
        names = tuple(constructor.name_hint for constructor in self.constructors)
        kinds = tuple(each.kind for each in self.type_vars)
        return self.header, kinds, names, types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeData) and self._signature() == other._signature()

    def __hash__(self) -> int:
        return hash((TypeData, self.header))

    def __repr__(self) -> str:
        return f"TypeData({self.header!r})"


class Pattern:
    """What a clause of a match asks of a value; root of its kinds."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """What it asks of the parts of the value."""
        return ()


class PatternWildcard(Pattern):
    """Any value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class PatternVar(Pattern):
    """Any value, which a variable then holds."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        self.var = var

    def __repr__(self) -> str:
        return repr(self.var)


class PatternConstructor(Pattern):
    """A value that a constructor made, of fields that match."""

    __slots__ = ("constructor", "patterns")

    def __init__(self, constructor: Constructor, patterns: Iterable[Pattern] | None = None) -> None:
        self.constructor = constructor
        self.patterns: tuple[Pattern, ...] = tuple(patterns or ())

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """What it asks of the fields of the value."""
        return self.patterns

    def __repr__(self) -> str:
        return f"{self.constructor.name_hint}({', '.join(map(repr, self.patterns))})"


class PatternTuple(Pattern):
    """A tuple of fields that match."""

    __slots__ = ("patterns",)

    def __init__(self, patterns: Iterable[Pattern] | None = None) -> None:
        self.patterns: tuple[Pattern, ...] = tuple(patterns or ())

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """What it asks of the fields of the tuple."""
        return self.patterns

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.patterns))
        return f"({parts},)" if len(self.patterns) == 1 else f"({parts})"


def _walk_pattern(pattern: Pattern) -> Iterator[Pattern]:
    pending = [pattern]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(here.parts))


def replace_pattern_vars(pattern: Pattern, values: Mapping[Var, Var]) -> Pattern:
    """Return a pattern with other variables; itself where `values` has none of its own."""
    if isinstance(pattern, PatternVar):
        found = values.get(pattern.var, pattern.var)
        return pattern if found is pattern.var else PatternVar(found)
    parts = [replace_pattern_vars(part, values) for part in pattern.parts]
    if all(a is b for a, b in zip(pattern.parts, parts, strict=True)):
        return pattern
    if isinstance(pattern, PatternConstructor):
        return PatternConstructor(pattern.constructor, parts)
    return PatternTuple(parts)


class Clause:
    """One case of a match: what it asks of the value, and the result then.

    Args:
        lhs: The pattern; its variables are bound in `rhs`.
        rhs: The result.
    """

    __slots__ = ("_variables", "lhs", "rhs")

    def __init__(self, lhs: Pattern, rhs: Expr) -> None:
        self.lhs = lhs
        self.rhs = astuple(rhs)
        self._variables: tuple[Var, ...] | None = None

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables that the pattern binds, in order."""
        if self._variables is None:
            found = _walk_pattern(self.lhs)
            self._variables = tuple(p.var for p in found if isinstance(p, PatternVar))
        return self._variables

    def __repr__(self) -> str:
        return f"Clause({self.lhs!r})"


class Match(Callee):
    """The result of the first clause whose pattern a value matches.

    Args:
        data: The value.
        clauses: The cases, tried in order.
        complete: Whether the clauses must cover every value; ``match?`` in text where not.
    """

    __slots__ = ("clauses", "complete", "data")

    def __init__(
        self, data: Expr, clauses: Iterable[Clause], complete: bool = True, span: Span | None = None
    ) -> None:
        self.data = data = astuple(data)
        self.clauses: tuple[Clause, ...] = tuple(clauses)
        if not all(isinstance(clause, Clause) for clause in self.clauses):
            raise RelayError(f"a match has clauses, found {self.clauses!r}")
        inside = (part for clause in self.clauses for part in (*clause.variables, clause.rhs))
        self.below = (data, *inside)
        self.complete = complete
        self.type = None
        self.span = span

    def __repr__(self) -> str:
        return f"Match({len(self.clauses)} clauses)"
