"""Names in text: which ones the lexer holds, how others are spelled, and how both travel.

A name that Relay's lexer cannot hold is printed changed; the original stands
in a string attribute of the function, as do other facts that strict text
cannot show. Such a string holds neither quotes nor backslashes, because TVM's
parser does not undo escapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

__all__ = [
    "KEYWORDS", "MODULE_KEY", "NAMES_KEY", "PLAIN_KEY", "TYPES_KEY", "NameTable", "decode_pairs",
    "encode_pairs", "is_attribute_key", "is_identifier", "is_symbol", "spelling",
]  # fmt: skip

KEYWORDS: Final = frozenset(
    {"def", "else", "extern", "fn", "free_var", "if", "let", "match", "type"}
    | {"ref", "ref_read", "ref_write"}
)
NAMES_KEY: Final = "serde.names"
"""Function attribute: printed name to original name; a global's begins with ``@``."""

MODULE_KEY: Final = "serde.module"
"""Attribute of a module's first function: attributes of the module."""

TYPES_KEY: Final = "serde.types"
"""Function attribute of strict text: types whose dimensions have names."""

PLAIN_KEY: Final = "serde"
"""Function attribute that says nothing: TVM reads a key with dots only behind one without."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_/]*\Z")
_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_RESERVED: Final = KEYWORDS | {"True", "False", "None", "nullptr", "meta", "floordiv"}
_NUMERIC: Final = re.compile(r"(inf|nan)f(16|32|64)?\Z")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_/]")
_SAFE: Final = " ()[],?*+/@:->"


def is_identifier(name: str) -> bool:
    """Whether ``%name`` prints as it is and reads back."""
    return _IDENTIFIER.match(name) is not None and name not in KEYWORDS


def is_symbol(name: str) -> bool:
    """Whether a symbolic dimension of this name prints without quotes."""
    return (
        _SYMBOL.match(name) is not None and name not in _RESERVED and _NUMERIC.match(name) is None
    )


def is_attribute_key(name: str) -> bool:
    """Whether `name` can stand before ``=``."""
    return _KEY.match(name) is not None and name not in _RESERVED


class NameTable:
    """The names used in one function, each of them once."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._owners: dict[str, str] = {}
        self.originals: dict[str, str] = {}
        """Printed name to original, for names that had to change."""

    def take(self, name: str) -> str:
        """Return how `name` is printed; a name taken before gets a number."""
        spelled = spelling(name)
        printed = spelled
        if spelled in self._taken:
            while printed in self._taken:
                self._taken[spelled] += 1
                printed = f"{spelled}{self._taken[spelled]}"
        self._taken[printed] = 0
        # Another name's spelling may have been in the way; a number behind one's own is TVM's way.
        foreign = self._owners.get(spelled, name) != name
        self._owners[printed] = name
        if spelled != name or foreign:
            self.originals[printed] = name
        return printed


def spelling(name: str) -> str:
    """Return `name` as text shows it where no other name is in the way."""
    return name if is_identifier(name) else _spell(name)


def _spell(name: str) -> str:
    spelled = _OTHER.sub("_", name)
    if not spelled or not spelled[0].isalpha():
        spelled = f"v{spelled}"
    return f"{spelled}_" if spelled in KEYWORDS else spelled


def encode_pairs(pairs: Mapping[str, str]) -> str:
    """Return pairs as ``key=value`` joined by ``&``, other characters as percent and hex."""
    return "&".join(
        f"{quote(key, _SAFE, errors='surrogatepass')}={quote(value, _SAFE, errors='surrogatepass')}"
        for key, value in pairs.items()
    )


def decode_pairs(text: str) -> dict[str, str]:
    """Return what :func:`encode_pairs` was given.

    Raises:
        ValueError: `text` is not in that form.
    """
    pairs = {}
    for item in text.split("&"):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"expected key=value, found {item!r}")
        pairs[unquote(key, errors="surrogatepass")] = unquote(value, errors="surrogatepass")
    return pairs
