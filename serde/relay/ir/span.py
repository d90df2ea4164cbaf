"""Places in sources that nodes come from."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["SequentialSpan", "SourceName", "Span"]


class SourceName(str):
    """The name of a source: of a text, or of a layer of a model that was converted."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name as a plain string."""
        return str(self)


class Span:
    """Where a node comes from: a source (of a converted model, a layer) and a place in it.

    Args:
        source_name: The source.
        line: First line, counted as the source does; 0 where there are none.
        end_line: Last line; by default the first.
        column: First column.
        end_column: Last column; by default the first.

    Attributes:
        has_place: Whether a place was given; text shows it then.
    """

    __slots__ = ("column", "end_column", "end_line", "has_place", "line", "source_name")

    def __init__(
        self,
        source_name: str | None,
        line: int = 0,
        end_line: int | None = None,
        column: int = 0,
        end_column: int | None = None,
    ) -> None:
        self.source_name = SourceName(source_name or "")
        self.has_place = end_line is not None
        self.line = line
        self.end_line = line if end_line is None else end_line
        self.column = column
        self.end_column = column if end_column is None else end_column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int, int, int, int]:
        return (self.source_name, self.line, self.end_line, self.column, self.end_column)

    def __repr__(self) -> str:
        return f"{self.source_name}:{self.line}:{self.column}"


class SequentialSpan(Span):
    """The places of several nodes that became one; it names the first of them.

    Args:
        spans: The places.
    """

    __slots__ = ("spans",)

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = tuple(spans)
        first = self.spans[0] if self.spans else Span("")
        super().__init__(
            first.source_name, first.line, first.end_line, first.column, first.end_column
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SequentialSpan) and self.spans == other.spans

    def __hash__(self) -> int:
        return hash(self.spans)
