"""Where the statements of a written module go, within what Python compiles."""

from __future__ import annotations

from typing import Final

from serde.errors import Unsupported
from serde.torch.program import Statement
from serde.walk.placement import Scope

__all__ = ["Block"]

_MOST_LEVELS: Final = 90
"""Python indents 99 times; a class, a function and what is broken into lines take some."""
_MOST_LOOPS: Final = 20
"""Python compiles no more loops inside each other."""


class Block(Scope):
    """Where statements go: a function, a branch or the body of a loop."""

    __slots__ = ("loops", "statements")

    def __init__(self, parent: Scope | None = None, step: str = "") -> None:
        super().__init__(parent, step)
        self.statements: list[Statement] = []
        self.loops: int = parent.loops if isinstance(parent, Block) else 0

    def require_python(self) -> None:
        """Refuse what Python does not compile.

        Raises:
            Unsupported: Too many blocks or loops lie inside each other.
        """
        self.require_level(_MOST_LEVELS)
        if self.loops > _MOST_LOOPS:
            raise Unsupported(f"more than {_MOST_LOOPS} loops lie inside each other")
