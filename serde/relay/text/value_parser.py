"""Literals, metadata and values of attributes out of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final, NoReturn

import numpy as np

from serde.core import MAX_NESTING, numpy_dtype
from serde.errors import RelayError
from serde.relay.ir import Constant, Expr, OpDef
from serde.relay.ir.compare import structural_equal
from serde.relay.text.attribute_classes import OPERAND_ATTRIBUTES, UNSET_ATTRIBUTES
from serde.relay.text.lexer import Lexer, Token
from serde.relay.text.literals import number_value
from serde.relay.text.metadata import AttributeObject, Metadata
from serde.relay.text.names import is_symbol
from serde.relay.text.type_parser import TypeParser

__all__ = ["NUMERIC", "WORDS", "ValueParser"]

WORDS: Final = {"True": True, "False": False, "None": None, "nullptr": None}
NUMERIC: Final = {
    f"{word}{suffix}": (float(word), dtype)
    for word in ("inf", "nan")
    for suffix, dtype in {
        "f": "float32", "f16": "float16", "f32": "float32", "f64": "float64"
    }.items()
}  # fmt: skip


class ValueParser(TypeParser):
    """The part of the parser that reads values; see :mod:`serde.relay.text.parser`.

    Raises:
        ParseError: The metadata section is malformed.
    """

    def __init__(self, lexer: Lexer) -> None:
        super().__init__(lexer)
        try:
            self._metadata = Metadata(lexer.metadata)
        except (ValueError, TypeError) as error:
            raise lexer.error(str(error), lexer.metadata_position) from None

    def add_metadata(self, tables: Mapping[str, Sequence[AnyValue]]) -> None:
        """Let references to metadata find these objects, too, after those of the text."""
        self._metadata.extend(tables)

    def _raise_unexpected(self, token: Token, what: str) -> NoReturn:
        raise self._fail(f"expected {what}, found {token.text[:40]}", token)

    def _number(self, token: Token) -> tuple[int | float, str]:
        """Parse a number with its signs, and the dtype that its suffix names."""
        negative = False
        while token.kind == "punct" and token.text == "-":
            negative = not negative
            token = self._lexer.take()
        if token.kind == "ident" and token.text in NUMERIC:
            value, dtype = NUMERIC[token.text]
            return (-value if negative else value), dtype
        if token.kind != "number":
            self._raise_unexpected(token, "a number")
        try:
            number, dtype = number_value(token.text)
        except ValueError as error:
            raise self._fail(str(error), token) from None
        number = -number if negative else number
        if number == -(2**31) and token.text.isdecimal():
            dtype = "int32"
        if isinstance(number, int):
            bound = np.iinfo(dtype)
            if not bound.min <= number <= bound.max:
                raise self._fail(f"{token.text[:40]} does not fit {dtype}", token)
        return number, dtype

    def _literal(self, token: Token) -> Constant:
        value, dtype = self._number(token)
        with np.errstate(over="ignore"):
            data = np.array(value, dtype=numpy_dtype(dtype))
        if np.isinf(data) and not np.isinf(value):
            raise self._fail(f"{value} does not fit {dtype}", token)
        return Constant(data)

    def _meta(self, token: Token) -> AnyValue:
        self._expect("[")
        key = self._expect_kind("ident", "a type key")
        self._expect("]")
        self._expect("[")
        index = self._expect_kind("number", "an index")
        self._expect("]")
        if not index.text.isdecimal() or len(index.text) > 9:
            self._raise_unexpected(index, "an index")
        try:
            return self._metadata.get(key.text, int(index.text))
        except (ValueError, TypeError, RelayError) as error:
            raise self._fail(str(error), token) from None

    def _value(self, depth: int) -> AnyValue:
        """Read an attribute's value: a literal, a list, a dimension or metadata."""
        token = self._lexer.peek()
        if depth > MAX_NESTING // 2:
            raise self._fail("an attribute is nested too deeply")
        if self._accept("["):
            return tuple(self._items("]", self._value, depth))
        if self._accept("("):
            items = self._items(")", self._value, depth)
            return items[0] if len(items) == 1 else tuple(items)
        if token.kind == "string":
            after = self._lexer.peek(1).text
            return self.dim() if after in ("*", "+", "-") else self._text()
        if token.kind == "ident" and token.text in WORDS:
            return WORDS[self._lexer.take().text]
        if token.kind == "ident" and token.text == "meta":
            return self._meta(self._lexer.take())
        if self._is_number():
            return self._number(self._lexer.take())[0]
        if token.text in ("?", "-", "floordiv") or token.kind == "number":
            return self.dim()
        if token.kind == "ident" and is_symbol(token.text):
            return self.dim()
        raise self._expectation_error("an attribute's value")

    def _text(self) -> str:
        return self._unescape(self._lexer.take())

    def _is_number(self) -> bool:
        """Whether a number comes next that no dimension begins with."""
        offset = 0
        while self._next_is("-", offset) and offset < MAX_NESTING:
            offset += 1
        token = self._lexer.peek(offset)
        if token.kind == "ident":
            return token.text in NUMERIC
        after = self._lexer.peek(offset + 1)
        symbolic = after.kind == "punct" and after.text in ("*", "+", "-")
        return token.kind == "number" and not symbolic

    def _unpack(
        self, definition: OpDef, token: Token, value: AttributeObject
    ) -> dict[str, AnyValue]:
        try:
            values = self._metadata.attributes(value, definition)
        except (ValueError, RelayError) as error:
            raise self._fail(str(error), token) from None
        return {
            name: item
            for name, item in values.items()
            if item is not None or "None" in definition.attributes[name].annotation
        }

    def _drop_repeated(
        self, definition: OpDef, token: Token, args: list[Expr], attrs: dict[str, AnyValue]
    ) -> None:
        """Take away attributes that repeat an operand, once they are seen to do so."""
        for name in UNSET_ATTRIBUTES.get(definition.name, {}):
            attrs.pop(name, None)
        for name, index in OPERAND_ATTRIBUTES.get(definition.name, {}).items():
            if name not in attrs:
                continue
            value = attrs.pop(name)
            same = isinstance(value, Expr) and index < len(args)
            if not same or not structural_equal(value, args[index]):
                raise self._fail(
                    f"{definition.name}: {name} differs from the operand {name}", token
                )
