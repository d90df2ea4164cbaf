"""The blocks of code of a page, and what each of them needs to be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks", "pages"]

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>.*?) -->\n\n?)?"
    r"^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page.

    Attributes:
        page: The page's path in the repository.
        line: The line on which its text begins.
        language: What its fence says: "python", "sh", "text" and others, or nothing.
        body: Its text, without the indentation of the list that it is in.
        reason: Why it is not run, as a comment before it says; empty if it is.
    """

    page: str
    line: int
    language: str
    body: str
    reason: str

    @property
    def wants_torch(self) -> bool:
        """Whether it calls PyTorch, which is in an environment of its own."""
        return re.search(r"\btorch\.|^(?:import|from) torch\b", self.body, re.MULTILINE) is not None


def pages() -> list[str]:
    """The paths of all pages that are written by hand."""
    root = [path.name for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    guides = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    return sorted({*root, *guides} - {"docs/operators.md"})


def blocks(page: str) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for each in _FENCE.finditer(text):
        indent = len(each["indent"])
        body = "".join(line[indent:] for line in each["body"].splitlines(keepends=True))
        line = text.count("\n", 0, each.start("body")) + 1
        found.append(Block(page, line, each["language"], body, each["reason"] or ""))
    return found
