"""Pieces of HTML with which objects show themselves in notebooks: escaped, small, without style.

Names come from files, so each is escaped and cut; tables show their first rows and say how many
there are.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final

from serde.core.texts import printable

__all__ = ["MOST_ROWS", "escaped", "figure", "folded", "table"]

MOST_ROWS: Final = 30
"""Rows of a table that are shown."""

_LONGEST: Final = 200


def escaped(text: object, most: int = _LONGEST) -> str:
    """Return a text for HTML: its middle left out where it is too long, control characters told."""
    shown = str(text)
    if len(shown) > most:
        shown = f"{shown[: most // 2]}\N{HORIZONTAL ELLIPSIS}{shown[-(most // 2) :]}"
    return html.escape(printable(shown), quote=True)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Collection[int] = (),
    total: int | None = None,
    most: int = MOST_ROWS,
) -> str:
    """Return a table; empty if there are no rows.

    Args:
        columns: Names of the columns.
        rows: Texts or numbers, one for each column.
        right: Positions of the columns that hold numbers.
        total: Number of rows, where `rows` is not a sequence.
        most: Rows that are shown.
    """
    shown = list(islice(rows, most))
    if not shown:
        return ""
    count = len(rows) if isinstance(rows, Sequence) else total if total is not None else len(shown)
    head = "".join(_cell("th", name, at in right) for at, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, at in right) for at, cell in enumerate(row))}</tr>"
        for row in shown
    )
    more = f"<p>and {count - len(shown):,} more</p>" if count > len(shown) else ""
    header = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    return f"<table>{header}<tbody>{body}</tbody></table>{more}"


def _cell(tag: str, content: object, right: bool) -> str:
    text = f"{content:,}" if type(content) is int else content
    return f'<{tag} style="text-align:{"right" if right else "left"}">{escaped(text)}</{tag}>'


def folded(title: str, body: str, *, opened: bool = False) -> str:
    """Return a part that unfolds; empty if there is nothing in it."""
    if not body:
        return ""
    return (
        f"<details{' open' if opened else ''}><summary>{escaped(title)}</summary>{body}</details>"
    )


def figure(title: str, *parts: str) -> str:
    """Return what an object shows: a title and its parts."""
    return f"<div><strong>{escaped(title)}</strong>{''.join(parts)}</div>"
