"""Types and dimensions out of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar as AnyTypeVar

from serde.core.limits import MAX_NESTING, MAX_RANK
from serde.errors import ParseError
from serde.relay.ir.dims import Any, Dim, SymDim, symbol
from serde.relay.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    SequenceType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from serde.relay.text.lexer import Lexer, Token
from serde.relay.text.literals import number_value, unescape
from serde.relay.text.names import is_symbol

__all__ = ["TypeParser"]

_DTYPE: Final = re.compile(
    r"u?int(2|4|8|16|32|64)\Z|float(16|32|64)\Z|bool\Z|uint1\Z|bfloat16\Z|float[468]_[a-z0-9]+\Z"
)
_SHORT: Final = {"uint1": "bool", "int": "int32", "uint": "uint32", "float": "float32"}
_DTYPES: Final = ("int", "uint", "float", "bool")
_MAX_DIM_CHARS: Final = 10_000
_MAX_DIM_TERMS: Final = 100

ItemT = AnyTypeVar("ItemT")


class TypeParser:
    """The part of the parser that reads types; see :mod:`serde.relay.text.parser`."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._dim_start = 0
        self._type_vars: list[dict[str, TypeVar]] = [{}]
        self._type_names: dict[str, GlobalTypeVar] = {}
        self._type_uses: dict[str, Token] = {}

    def _fail(self, message: str, token: Token | None = None) -> ParseError:
        place = token if token is not None else self._lexer.peek()
        return self._lexer.error(message, place.position)

    def _expectation_error(self, what: str) -> ParseError:
        token = self._lexer.peek()
        shown = token.text if len(token.text) <= 40 else f"{token.text[:40]}..."
        return self._fail(f"expected {what}, found {shown}", token)

    def _next_is(self, text: str, offset: int = 0) -> bool:
        token = self._lexer.peek(offset)
        return token.text == text and token.kind in ("punct", "ident")

    def _accept(self, text: str) -> bool:
        if not self._next_is(text):
            return False
        self._lexer.take()
        return True

    def _expect(self, text: str) -> Token:
        if not self._next_is(text):
            raise self._expectation_error(text)
        return self._lexer.take()

    def _expect_kind(self, kind: str, what: str) -> Token:
        if self._lexer.peek().kind != kind:
            raise self._expectation_error(what)
        return self._lexer.take()

    def type_annotation(self) -> Type | None:
        """Read a type; ``_`` leaves it to inference."""
        return None if self._accept("_") else self.type(0)

    def type(self, depth: int) -> Type:
        """Read a type.

        Raises:
            ParseError: There is none, or it is one that the pivot lacks.
        """
        if depth > MAX_NESTING // 2:
            raise self._fail("types are nested too deeply")
        token = self._lexer.peek()
        if self._accept("("):
            return TupleType(self._items(")", self.type, depth))
        if token.kind != "ident":
            raise self._expectation_error("a type")
        self._lexer.take()
        if token.text == "fn":
            return self._function_type(depth)
        if token.text == "Tensor":
            return self._tensor()
        if token.text == "Sequence":
            return self._sequence_type(depth)
        if token.text == "_":
            return IncompleteType()
        if token.text == "ref" and self._accept("("):
            content = self.type(depth + 1)
            self._expect(")")
            return RefType(content)
        if token.text.startswith(_DTYPES) or _DTYPE.match(token.text):
            return TensorType((), self._dtype(token))
        return self._named_type(token, depth)

    def _function_type(self, depth: int) -> FuncType:
        params: list[TypeVar] = []
        self._type_vars.append({})
        if self._accept("["):
            while not self._accept("]"):
                name = self._expect_kind("ident", "a type parameter").text
                params.append(TypeVar(name))
                self._type_vars[-1][name] = params[-1]
                if not self._next_is("]"):
                    self._expect(",")
        self._expect("(")
        arguments = self._items(")", self.type, depth)
        self._expect("->")
        result = self.type(depth + 1)
        self._type_vars.pop()
        return FuncType(arguments, result, params)

    def _named_type(self, token: Token, depth: int) -> Type:
        """Read a type parameter or an algebraic data type, and the types it takes."""
        variable = next((s[token.text] for s in reversed(self._type_vars) if token.text in s), None)
        if not self._next_is("["):
            if variable is not None:
                return variable
            return TypeCall(self._type_name(token), ())
        self._lexer.take()
        head: Type = self._type_name(token) if variable is None else variable
        arguments: list[Type] = []
        while not self._accept("]"):
            arguments.append(self.type(depth + 1))
            if not self._next_is("]"):
                self._expect(",")
        return TypeCall(head, arguments)

    def _type_name(self, token: Token) -> GlobalTypeVar:
        self._type_uses.setdefault(token.text, token)
        if token.text not in self._type_names:
            self._type_names[token.text] = GlobalTypeVar(token.text)
        return self._type_names[token.text]

    def _items(self, end: str, read: Callable[[int], ItemT], depth: int) -> list[ItemT]:
        """Read what stands up to `end`, with commas between."""
        items: list[ItemT] = []
        while not self._accept(end):
            items.append(read(depth + 1))
            if not self._next_is(end):
                self._expect(",")
        return items

    def _tensor(self) -> TensorType:
        self._expect("[")
        self._expect("(")
        dims: list[Dim] = []
        while not self._accept(")"):
            place = self._lexer.peek()
            dim = self.dim()
            if isinstance(dim, int) and dim < 0:
                raise self._fail(f"a dimension cannot be {dim}", place)
            dims.append(dim)
            if len(dims) > MAX_RANK:
                raise self._fail(f"a tensor has at most {MAX_RANK} dimensions", place)
            if not self._next_is(")"):
                self._expect(",")
        self._expect(",")
        dtype = self._dtype(self._expect_kind("ident", "an element type"))
        self._expect("]")
        return TensorType(dims, dtype)

    def _sequence_type(self, depth: int) -> SequenceType:
        self._expect("[")
        place = self._lexer.peek()
        element = self.type(depth + 1)
        if not isinstance(element, TensorType):
            raise self._fail("a sequence holds tensors", place)
        self._expect("]")
        return SequenceType(element)

    def _dtype(self, token: Token) -> str:
        name = _SHORT.get(token.text, token.text)
        if _DTYPE.match(name) is None:
            raise self._fail(f"{name[:40]} is no type that the pivot has", token)
        try:
            return TensorType((), name).dtype
        except TypeError:
            raise self._fail(f"{name[:40]} is no element type", token) from None

    def dim(self, depth: int = 0) -> Dim:
        """Read a dimension: a sum of products of integers, symbols and floor divisions.

        Raises:
            ParseError: It is none of these.
        """
        total: Dim = 0
        sign = 1
        if depth == 0:
            self._dim_start = self._lexer.peek().position
        while self._accept("-"):
            sign = -sign
        while True:
            total = total + sign * self._term(depth)
            self._check_size(total)
            if self._accept("+"):
                sign = 1
            elif self._accept("-"):
                sign = -1
            else:
                return total

    def _term(self, depth: int) -> Dim:
        value = self._factor(depth)
        powers = 0
        while self._accept("*"):
            powers += 1
            if powers > _MAX_DIM_TERMS:
                raise self._fail("a dimension has too many factors")
            value = value * self._factor(depth)
            self._check_size(value)
        return value

    def _check_size(self, dim: Dim) -> None:
        if isinstance(dim, SymDim) and len(dim.terms) > _MAX_DIM_TERMS:
            raise self._fail("a dimension has too many terms")
        if self._lexer.peek().position - self._dim_start > _MAX_DIM_CHARS:
            raise self._fail("a dimension is too long")

    def _factor(self, depth: int) -> Dim:
        token = self._lexer.take()
        if token.kind == "number":
            return self._integer(token)
        if token.text == "?" and token.kind == "punct":
            return Any()
        if token.kind == "string":
            return self._parse_quoted_dim(token)
        if token.kind == "ident" and token.text == "floordiv":
            return self._quotient(depth)
        if token.kind == "ident" and is_symbol(token.text):
            return symbol(token.text)
        raise self._fail(f"expected a dimension, found {token.text[:40]}", token)

    def _integer(self, token: Token) -> int:
        try:
            value, dtype = number_value(token.text)
        except ValueError as error:
            raise self._fail(str(error), token) from None
        if not isinstance(value, int) or not dtype.startswith("int") or value >= 2**63:
            raise self._fail(f"{token.text[:40]} is no dimension", token)
        return value

    def _parse_quoted_dim(self, token: Token) -> Dim:
        name = self._unescape(token)
        if not name:
            raise self._fail("a dimension's name is empty", token)
        return symbol(name)

    def _unescape(self, token: Token) -> str:
        try:
            return unescape(token.text[1:-1])
        except ValueError as error:
            raise self._fail(str(error), token) from None

    def _quotient(self, depth: int) -> Dim:
        place = self._expect("(")
        if depth > 20:
            raise self._fail("floor divisions are nested too deeply", place)
        left = self.dim(depth + 1)
        self._expect(",")
        right = self.dim(depth + 1)
        self._expect(")")
        if right == 0:
            raise self._fail("a dimension is divided by zero", place)
        return left // right
