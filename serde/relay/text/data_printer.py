"""Algebraic data types, patterns, matches and references as text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable
from typing import Final

from serde.relay.ir import Match, Pattern, PatternConstructor, PatternTuple, PatternVar, TypeData
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import Type, TypeVar
from serde.relay.ir.visit import children
from serde.relay.text.names import NameTable
from serde.relay.text.type_text import named_type_text, type_text

__all__ = ["DataPrinter", "Step", "deeper"]

Step = Generator["Step", str, str]

_WORDS: Final = {RefCreate: "ref", RefRead: "ref_read", RefWrite: "ref_write"}

_WIDEST: Final = 160
"""Of indentation: lines of many scopes inside each other would be mostly that."""


def deeper(indent: str) -> str:
    """Return the indentation of a scope inside another."""
    return f"{indent}  " if len(indent) < _WIDEST else indent


class DataPrinter:
    """The part of the printer that writes data types; see :mod:`serde.relay.text.printer`.

    Args:
        strict: Whether the text is legal for TVM.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._type_texts: dict[Type, str] = {}
        self._type_names: dict[TypeVar, str] = {}
        self._type_table = NameTable()
        self._indent = ""

    @abstractmethod
    def _declare(self, variable: Var) -> str:
        """Name a variable and return its definition."""

    @abstractmethod
    def _scope(self, node: Expr) -> Step:
        """Print a body."""

    @abstractmethod
    def _operands(self, nodes: tuple[Expr, ...]) -> Generator[Step, str, list[str]]:
        """Print operands, those that are no atoms on lines of their own."""

    # Types.

    def _type(self, type_: Type) -> str:
        text = self._type_texts.get(type_)
        if text is None:
            text = type_text(type_, strict=self._strict, names=self._type_names)
            self._type_texts[type_] = text
        return text

    def _start_types(self) -> None:
        """Forget how type parameters are called, and what has been printed with them."""
        if self._type_names:
            self._type_names, self._type_texts = {}, {}
            self._type_table = NameTable()

    def _name_type_params(self, params: Iterable[TypeVar]) -> str:
        """Fix how type parameters are called; return them in brackets, or nothing."""
        names = []
        for param in params:
            if param not in self._type_names:
                self._type_names[param] = self._type_table.take(param.name_hint)
            names.append(self._type_names[param])
        return f"[{', '.join(names)}]" if names else ""

    def type_definition(self, data: TypeData) -> str:
        """Return the definition of an algebraic data type.

        Raises:
            RelayError: A name has no form in text.
        """
        self._start_types()
        params = self._name_type_params(data.type_vars)
        lines = []
        for constructor in data.constructors:
            inputs = ", ".join(map(self._type, constructor.inputs))
            name = named_type_text(constructor.name_hint)
            lines.append(f"  {name}({inputs}),\n" if inputs else f"  {name},\n")
        return f"type {named_type_text(data.header.name_hint)}{params} {{\n{''.join(lines)}}}\n"

    # Expressions.

    def _reference(self, node: RefCreate | RefRead | RefWrite) -> Step:
        texts = yield from self._operands(children(node))
        return f"{_WORDS[type(node)]}({', '.join(texts)})"

    def _match(self, node: Match) -> Step:
        (data,) = yield from self._operands((node.data,))
        outer = self._indent
        lines = []
        for clause in node.clauses:
            self._indent = deeper(deeper(outer))
            pattern = self._pattern(clause.lhs)
            body = yield self._scope(clause.rhs)
            lines.append(f"{outer}  {pattern} => {{\n{body}\n{outer}  }},\n")
        self._indent = outer
        word = "match" if node.complete else "match?"
        return f"{word} ({data}) {{\n{''.join(lines)}{outer}}}"

    def _pattern(self, pattern: Pattern) -> str:
        parts = ", ".join([self._pattern(part) for part in pattern.parts])
        if isinstance(pattern, PatternVar):
            return self._declare(pattern.var)
        if isinstance(pattern, PatternTuple):
            return f"({parts},)" if len(pattern.parts) == 1 else f"({parts})"
        if isinstance(pattern, PatternConstructor):
            name = named_type_text(pattern.constructor.name_hint)
            return f"{name}({parts})" if parts else name
        return "_"
