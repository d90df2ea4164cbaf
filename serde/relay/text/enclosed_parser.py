"""Tuples, their fields, and attributes, out of tokens."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir.expr import Expr, Tuple, TupleGetItem
from serde.relay.text.data_parser import DataParser, Step
from serde.relay.text.lexer import Token

__all__ = ["EnclosedParser"]


class EnclosedParser(DataParser):
    """The part of the parser that reads tuples; see :mod:`serde.relay.text.parser`."""

    @abstractmethod
    def _lookup(self, token: Token) -> Expr:
        """Return what a name stands for."""

    @abstractmethod
    def _note_position(self, node: Expr, token: Token) -> Expr:
        """Return a node, having noted where it stands."""

    def _parenthesis(self, start: Token) -> Step:
        fields: list[Expr] = []
        comma = False
        self._enter()
        if self._next_is("let") or (self._lexer.peek().kind == "graph" and self._next_is("=", 1)):
            return (yield from self._enclosed_bindings())
        while not self._accept(")"):
            field = self._simple()
            fields.append(field if field is not None else (yield self._expr()))
            if not self._next_is(")"):
                self._expect(",")
                comma = True
        self._leave()
        if len(fields) == 1 and not comma:
            return fields[0]
        return self._note_position(Tuple(fields), start)

    def _enclosed_bindings(self) -> Step:
        self._scopes.append({})
        value = yield self._sequence()
        self._scopes.pop()
        self._leave()
        self._expect(")")
        return value

    def _simple(self) -> Expr | None:
        """Read an argument that is one name, if that is what comes next."""
        token = self._lexer.peek()
        if token.kind not in ("local", "graph") or self._lexer.peek(1).text not in (",", ")"):
            return None
        return self._lookup(self._lexer.take())

    def _projection(self, value: Expr) -> Expr:
        token = self._expect_kind("number", "the number of a field")
        if not token.text.isdecimal() or len(token.text) > 9:
            raise self._fail(f"expected the number of a field, found {token.text[:40]}", token)
        try:
            return TupleGetItem(value, int(token.text))
        except RelayError as error:
            raise self._fail(str(error), token) from None

    def _key_value(self, values: dict[str, AnyValue]) -> Step:
        token = self._expect_kind("ident", "an attribute's name")
        self._expect("=")
        if token.text in values:
            raise self._fail(f"the attribute {token.text} is given twice", token)
        start = self._lexer.peek()
        if start.kind in ("local", "graph", "global") or self._next_is("fn"):
            values[token.text] = yield self._expr()
        else:
            values[token.text] = self._value(0)
        return None
