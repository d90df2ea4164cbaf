"""Lines of readers that no bytes of a file can reach, each with what does reach it.

The reasons are few: a system call that fails (``tests/faults`` has each fail), a package or a
system that is another, objects that a caller hands over in place of a file.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["REASONS", "UNREACHED", "unreached_lines"]

REASONS: Final[Mapping[str, str]] = {
    "system": "a system call fails; the fault tests have each do so",
    "platform": "another system or release of a package than the one it runs on",
    "live": "an object of a framework, handed over by a caller in place of a file",
}

UNREACHED: Final[Mapping[str, Mapping[str, str]]] = {}
"""By module: the first line of a statement, and why no file reaches it."""


def unreached_lines(path: Path, reasons: Mapping[str, str]) -> set[int]:
    """Return the lines of the statements that begin as told, with all that is inside them.

    Raises:
        ValueError: No statement begins so, or more than one.
    """
    if not reasons:
        return set()
    text = path.read_text()
    lines = text.splitlines()
    found: set[int] = set()
    for wanted in reasons:
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.stmt, ast.ExceptHandler))
            and lines[node.lineno - 1].strip() == wanted
        ]
        if len(set(spans)) != 1:
            raise ValueError(f"{path}: {len(set(spans))} statements begin with {wanted!r}")
        found.update(range(spans[0][0], spans[0][1] + 1))
    return found
