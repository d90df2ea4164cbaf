"""Programs as a list of tokens: Relay, NNEF, ONNX's texts, TVMScript, PyTorch's Python."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import ClassVar, Final

from fuzz.mutators.document import Document, Spot
from fuzz.mutators.values import some_float, some_integer, some_text

__all__ = ["TextDocument"]

_TOKEN: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/'
    r"|-?[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?[a-z0-9]*"
    r"|[%@#$]?[A-Za-z_][A-Za-z_0-9.]*|[%@#$][0-9.]+|->|[=!<>]=|[ \t]+|\n|.",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"(-?[0-9]+)(\.?[0-9]*(?:[eE][+-]?[0-9]+)?)([a-z0-9]*)")
_MARKS: Final = (*"(){}[],;=.:+-*/<>\"'%@#?\n", "->", "==", "None", "True", "False")


class TextDocument(Document):
    """A file of text.

    Args:
        tokens: What it is made of.
    """

    name: ClassVar[str] = "text"

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    @classmethod
    def read(cls, data: bytes) -> TextDocument | None:
        """Return the document of some bytes, or None where they are no text."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        if "\0" in text[:1000]:
            return None
        return cls(_TOKEN.findall(text))

    def spots(self) -> Iterator[Spot]:
        """Yield every token that is no space."""
        for place, token in enumerate(self.tokens):
            if not token.isspace():
                yield Spot(self.tokens, place, _kind(token))

    def other_value(self, spot: Spot, rng: random.Random) -> str:
        """Return another token, mostly of the same kind."""
        token: str = spot.part
        match = _NUMBER.fullmatch(token)
        if match is not None and rng.randrange(8):
            whole, fraction, suffix = match.groups()
            if fraction or rng.randrange(10) == 0:
                return f"{some_float(rng, float(whole[:20] + fraction[:20] or 0))}{suffix}"
            return f"{some_integer(rng, int(whole[:30]))}{suffix}"
        if token[:1] in "\"'" and len(token) > 1 and rng.randrange(8):
            return token[0] + some_text(rng, token[1:-1]) + token[0]
        if rng.randrange(10) == 0:
            mark = rng.choice("([{(")
            return mark * rng.choice((2, 10, 300, 5000))
        return rng.choice((*_MARKS, token + token, token[:-1], str(some_integer(rng))))

    def content(self) -> bytes:
        """Return the text."""
        return "".join(self.tokens).encode("utf-8", "surrogatepass")


def _kind(token: str) -> str:
    first = token[0]
    if first.isdigit() or (first == "-" and len(token) > 1 and token[1].isdigit()):
        return "number"
    if first in "%@#$\"'":
        return first
    return "word" if first.isalpha() or first == "_" else "mark"
