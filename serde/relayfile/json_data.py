"""Algebraic data types, matches and references out of TVM's JSON of a module."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any as AnyValue

from serde.relay.ir import GlobalTypeVar, IncompleteType, RefType, Type, TypeCall, TypeVar
from serde.relay.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)
from serde.relay.ir.expr import Expr, Op, Var
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import TypeKind
from serde.relayfile.json_attributes import Node

__all__ = ["DataReader", "Step", "as_expr", "as_types", "type_vars"]

Step = Generator[int, AnyValue, AnyValue]


class DataReader:
    """The part of the reader that reads data types; see :mod:`serde.relayfile.json_graph`."""

    _constructors: dict[tuple[GlobalTypeVar, str], Constructor]

    @abstractmethod
    def _name(self, node: Node) -> Step:
        """Read the name of a node."""

    @abstractmethod
    def _place(self, node: Node) -> Step:
        """Read where a node comes from."""

    @abstractmethod
    def _bound_expansion(self, value: AnyValue, parts: Sequence[AnyValue]) -> AnyValue:
        """Return a type if it is not too long with its shared parts written out."""

    def _data_readers(self) -> dict[str, Callable[[Node], Step]]:
        """Return what reads each kind of node."""
        return {
            "relay.Match": self._match,
            "relay.Clause": self._clause,
            "relay.PatternWildcard": self._wildcard,
            "relay.PatternVar": self._pattern_var,
            "relay.PatternConstructor": self._pattern_constructor,
            "relay.PatternTuple": self._pattern_tuple,
            "relay.Constructor": self._constructor,
            "relay.RefCreate": self._ref_create,
            "relay.RefRead": self._ref_read,
            "relay.RefWrite": self._ref_write,
            **dict.fromkeys(("relay.RefType", "relay.RelayRefType"), self._ref_type),
            **dict.fromkeys(("TypeData", "relay.TypeData"), self._type_data),
            **dict.fromkeys(("TypeCall", "relay.TypeCall"), self._type_call),
            **dict.fromkeys(("TypeVar", "relay.TypeVar"), self._type_var),
            **dict.fromkeys(("GlobalTypeVar", "relay.GlobalTypeVar"), self._global_type_var),
            **dict.fromkeys(("IncompleteType", "relay.IncompleteType"), self._incomplete_type),
        }

    # Expressions.

    def _match(self, node: Node) -> Step:
        data = as_expr((yield node.reference("data")))
        clauses = yield node.reference("clauses")
        if not isinstance(clauses, tuple) or not all(isinstance(c, Clause) for c in clauses):
            raise ValueError("a match has something else than clauses")
        complete = node.fields.get("complete", "1") not in ("0", 0, False)
        return Match(data, clauses, complete, (yield from self._place(node)))

    def _clause(self, node: Node) -> Step:
        lhs = _pattern((yield node.reference("lhs")))
        return Clause(lhs, as_expr((yield node.reference("rhs"))))

    def _wildcard(self, node: Node) -> Step:
        yield from ()
        return PatternWildcard()

    def _pattern_var(self, node: Node) -> Step:
        variable = yield node.reference("var")
        if not isinstance(variable, Var):
            raise ValueError("a pattern binds something that is no variable")
        return PatternVar(variable)

    def _pattern_constructor(self, node: Node) -> Step:
        constructor = yield node.reference("constructor")
        if not isinstance(constructor, Constructor):
            raise ValueError("a pattern asks for something that is no constructor")
        patterns = yield node.reference("patterns")
        return PatternConstructor(constructor, map(_pattern, patterns or ()))

    def _pattern_tuple(self, node: Node) -> Step:
        patterns = yield node.reference("patterns")
        return PatternTuple(map(_pattern, patterns or ()))

    def _constructor(self, node: Node) -> Step:
        name = yield from self._name(node)
        inputs = yield node.reference("inputs")
        owner = yield node.reference("belong_to")
        if not isinstance(owner, GlobalTypeVar):
            raise ValueError("a constructor belongs to something that is no data type")
        made = Constructor(name, as_types(inputs or ()), owner)
        return self._constructors.setdefault((owner, name), made)  # TVM may save typed copies.

    def _ref_create(self, node: Node) -> Step:
        value = as_expr((yield node.reference("value")))
        return RefCreate(value, (yield from self._place(node)))

    def _ref_read(self, node: Node) -> Step:
        reference = as_expr((yield node.reference("ref")))
        return RefRead(reference, (yield from self._place(node)))

    def _ref_write(self, node: Node) -> Step:
        reference = as_expr((yield node.reference("ref")))
        value = as_expr((yield node.reference("value")))
        return RefWrite(reference, value, (yield from self._place(node)))

    # Types.

    def _ref_type(self, node: Node) -> Step:
        content = yield node.reference("value")
        return self._bound_expansion(RefType(as_types((content,))[0]), (content,))

    def _type_data(self, node: Node) -> Step:
        header = yield node.reference("header")
        variables = yield node.reference("type_vars")
        constructors = yield node.reference("constructors")
        if not isinstance(header, GlobalTypeVar):
            raise ValueError("the definition of a data type has no name")
        if not all(isinstance(each, Constructor) for each in constructors or ()):
            raise ValueError("the definition of a data type has something else than constructors")
        return TypeData(header, type_vars(variables), constructors or ())

    def _type_call(self, node: Node) -> Step:
        head = as_types(((yield node.reference("func")),))[0]
        arguments = yield node.reference("args")
        types = as_types(arguments or ())
        return self._bound_expansion(TypeCall(head, types), types)

    def _type_var(self, node: Node) -> Step:
        return TypeVar((yield from self._name(node)), _kind(node))

    def _global_type_var(self, node: Node) -> Step:
        return GlobalTypeVar((yield from self._name(node)), _kind(node))

    def _incomplete_type(self, node: Node) -> Step:
        yield from ()
        return IncompleteType(_kind(node))


def _kind(node: Node) -> TypeKind:
    text = node.fields.get("kind", "0")
    if not isinstance(text, str) or not text.isdecimal():
        raise ValueError(f"expected the kind of a type, found {str(text)[:40]!r}")
    return TypeKind(int(text))


def _pattern(value: AnyValue) -> Pattern:
    if not isinstance(value, Pattern):
        raise ValueError(f"expected a pattern, found {value!r}"[:200])
    return value


def type_vars(value: AnyValue) -> Sequence[TypeVar]:
    """Return type parameters.

    Raises:
        ValueError: Something else is among them.
    """
    found = value or ()
    if not isinstance(found, tuple) or not all(isinstance(each, TypeVar) for each in found):
        raise ValueError("a type parameter is no type variable")
    return found


def as_expr(value: AnyValue) -> Expr:
    """Return an expression.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, Expr) or isinstance(value, Op):
        raise ValueError(f"expected an expression, found {value!r}"[:200])
    return value


def as_types(values: AnyValue) -> Sequence[AnyValue]:
    """Return types.

    Raises:
        ValueError: Something else is among them.
    """
    if isinstance(values, tuple) and all(isinstance(value, Type) for value in values):
        return values
    raise ValueError("a type has a part that is no type")
