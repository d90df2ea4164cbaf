"""Names of variables for names of any kind."""

from __future__ import annotations

import keyword
import re
from typing import Final

from serde.relay.ir.unique_names import UniqueNames

__all__ = ["BRANCH", "Names", "plain_name"]

_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")
_VALID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MODULES: Final = frozenset(("I", "R", "T", "metadata"))
"""What names in TVMScript stand for something else."""

BRANCH: Final = "branch"
"""What functions are called like that hold a branch of a conditional."""

_MOST_CHARACTERS: Final = 120


def plain_name(name: str) -> str:
    """Return an identifier like `name`, the same for the same name."""
    plain = name
    if not _VALID.fullmatch(name):
        plain = _OTHER.sub("_", name).strip("_") or "x"
        plain = f"v_{plain}" if not plain[0].isalpha() else plain
    if keyword.iskeyword(plain) or plain in _MODULES:
        plain = f"{plain}_"
    return plain[:_MOST_CHARACTERS]


class Names:
    """Names that are taken so far, with what they stand for."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._taken = UniqueNames()

    def claim(self, name: str) -> str:
        """Return an identifier like `name` that nothing else has."""
        found = self._taken.reserve(plain_name(name))
        self.names[found] = name
        return found
