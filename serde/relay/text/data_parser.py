"""Algebraic data types, patterns, choices and references out of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import Any as AnyValue

from serde.core.limits import MAX_NESTING
from serde.relay.ir import Expr, GlobalTypeVar, If, RefCreate, RefRead, RefWrite, Type, TypeVar, Var
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
from serde.relay.text.lexer import Lexer, Token
from serde.relay.text.value_parser import ValueParser

__all__ = ["REFERENCE_WORDS", "DataParser", "Step"]

Step = Generator[AnyValue, AnyValue, AnyValue]

REFERENCE_WORDS = {"ref": RefCreate, "ref_read": RefRead, "ref_write": RefWrite}


class DataParser(ValueParser):
    """The part of the parser that reads data types; see :mod:`serde.relay.text.parser`."""

    def __init__(self, lexer: Lexer) -> None:
        super().__init__(lexer)
        self._constructors: dict[str, Constructor] = {}
        self._types: dict[GlobalTypeVar, TypeData] = {}
        self._scopes: list[dict[str, Var]] = [{}]

    @abstractmethod
    def _enter(self) -> None:
        """Count one more level of nesting."""

    @abstractmethod
    def _leave(self) -> None:
        """Count one level of nesting less."""

    @abstractmethod
    def _definition(self) -> Var:
        """Read a variable that is bound here."""

    @abstractmethod
    def _atom(self) -> Step:
        """Read an expression that is no call."""

    @abstractmethod
    def _projection(self, value: Expr) -> Expr:
        """Read the number of a field."""

    @abstractmethod
    def _expr(self) -> Step:
        """Read operands joined by infix operators."""

    @abstractmethod
    def _block(self) -> Step:
        """Read a body in braces."""

    @abstractmethod
    def _sequence(self) -> Step:
        """Read bindings, then a value."""

    # Definitions.

    def _define_type(self) -> None:
        """Read a definition, from ``type`` or ``extern`` on."""
        external = self._accept("extern")
        self._expect("type")
        token = self._expect_kind("ident", "the name of a type")
        header = self._type_name(token)
        if header in self._types:
            raise self._fail(f"the type {token.text} is defined twice", token)
        self._type_vars.append({})
        type_vars = self._type_params()
        constructors: list[Constructor] = []
        if self._accept("{"):
            while not self._accept("}"):
                constructors.append(self._define_constructor(header))
                if not self._next_is("}"):
                    self._expect(",")
        if external and constructors:
            raise self._fail("an extern type has no constructors", token)
        self._type_vars.pop()
        self._types[header] = TypeData(header, type_vars, constructors)

    def _define_constructor(self, header: GlobalTypeVar) -> Constructor:
        token = self._expect_kind("ident", "the name of a constructor")
        if token.text in self._constructors:
            raise self._fail(f"two constructors are called {token.text}", token)
        inputs: list[Type] = []
        if self._accept("("):
            inputs = self._items(")", self.type, 0)
        constructor = Constructor(token.text, inputs, header)
        self._constructors[token.text] = constructor
        return constructor

    def _type_params(self) -> list[TypeVar]:
        """Read type parameters in brackets, if there are any, into the innermost scope of types."""
        params: list[TypeVar] = []
        if not self._accept("["):
            return params
        while not self._accept("]"):
            token = self._expect_kind("ident", "a type parameter")
            if token.text in self._type_vars[-1]:
                raise self._fail(f"two type parameters are called {token.text}", token)
            params.append(TypeVar(token.text))
            self._type_vars[-1][token.text] = params[-1]
            if not self._next_is("]"):
                self._expect(",")
        return params

    def _refuse_undefined_types(self) -> None:
        for name, token in self._type_uses.items():
            if self._type_names[name] not in self._types:
                raise self._fail(f"the type {name} is not defined", token)

    # Expressions.

    def _if(self) -> Step:
        self._expect("(")
        self._enter()
        cond = yield self._expr()
        self._leave()
        self._expect(")")
        then = yield self._block()
        self._expect("else")
        other = yield self._block()
        return If(cond, then, other)

    def _reference(self, token: Token) -> Step:
        """Read what follows ``ref``, ``ref_read`` or ``ref_write``."""
        self._expect("(")
        self._enter()
        operands = [(yield self._expr())]
        if token.text == "ref_write":
            self._expect(",")
            operands.append((yield self._expr()))
        self._leave()
        self._expect(")")
        return REFERENCE_WORDS[token.text](*operands)

    def _match(self) -> Step:
        """Read what follows ``match``: the value, then clauses."""
        complete = not self._accept("?")
        data = yield from self._atom()
        if self._accept("."):
            data = self._projection(data)
        self._expect("{")
        self._enter()
        clauses: list[Clause] = []
        while not self._accept("}"):
            self._scopes.append({})
            pattern = self._pattern(0)
            self._expect("=")
            self._expect(">")
            value = yield self._sequence()
            self._scopes.pop()
            clauses.append(Clause(pattern, value))
            if not self._next_is("}"):
                self._expect(",")
        self._leave()
        return Match(data, clauses, complete)

    def _pattern(self, depth: int) -> Pattern:
        if depth > MAX_NESTING // 2:
            raise self._fail("a pattern is nested too deeply")
        if self._accept("_"):
            return PatternWildcard()
        token = self._lexer.peek()
        if token.kind == "local":
            return PatternVar(self._definition())
        if token.kind != "ident":
            self._expect("(")
            return PatternTuple(self._items(")", self._pattern, depth))
        self._lexer.take()
        constructor = self._constructors.get(token.text)
        if constructor is None:
            raise self._fail(f"no constructor is called {token.text[:60]}", token)
        patterns = self._items(")", self._pattern, depth) if self._accept("(") else []
        if len(patterns) != len(constructor.inputs):
            expected = f"expected {len(constructor.inputs)} patterns, found {len(patterns)}"
            raise self._fail(f"{token.text}: {expected}", token)
        return PatternConstructor(constructor, patterns)
