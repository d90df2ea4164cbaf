"""Attributes of calls."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any as AnyValue

__all__ = ["Attrs"]


class Attrs(Mapping[str, AnyValue]):
    """The attributes of a call, in the order of their declaration, by key or by name."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, AnyValue] | None = None) -> None:
        object.__setattr__(self, "_values", dict(values or {}))

    def __getitem__(self, name: str) -> AnyValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> AnyValue:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"no attribute {name!r}") from None

    def __setattr__(self, name: str, value: AnyValue) -> None:
        raise AttributeError("attributes of a call do not change")

    def items(self) -> ItemsView[str, AnyValue]:
        """Return names and values."""
        return self._values.items()

    def get_int(self, name: str) -> int:
        """Return an attribute that is an integer."""
        return int(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a row of integers."""
        return tuple(int(each) for each in self[name])

    def get_str(self, name: str) -> str:
        """Return an attribute as text."""
        return str(self[name])

    def __repr__(self) -> str:
        return f"Attrs({self._values})"
