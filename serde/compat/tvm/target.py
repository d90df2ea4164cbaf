"""Targets: they are kept and printed; nothing is compiled for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any as AnyValue

__all__ = ["Target"]


class Target(str):
    """What a program is compiled for, as ``"llvm -mcpu=core-avx2"``, with what runs beside it."""

    host: Target | None

    def __new__(cls, target: AnyValue, host: AnyValue = None) -> Target:
        """Take its text, or its options, ``kind`` among them."""
        if isinstance(target, Mapping):
            options = (f"-{name}={value}" for name, value in target.items() if name != "kind")
            target = " ".join([str(target["kind"]), *options])
        made = super().__new__(cls, target)
        made.host = None if host is None else Target(host)
        return made

    @property
    def kind(self) -> SimpleNamespace:
        """Its kind, which has a name."""
        return SimpleNamespace(name=self.partition(" ")[0])

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is compiled here: where a target holds does not matter."""
