"""Targets: they are kept and printed; nothing is compiled for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any as AnyValue

__all__ = ["Target"]


class Target:
    """What a program is compiled for, as ``"llvm -mcpu=core-avx2"``.

    Args:
        target: Its text, or its options, ``kind`` among them.
        host: What runs beside it.
    """

    _entered: list[Target] = []  # noqa: RUF012 - of the class, as with TVM.

    def __init__(self, target: AnyValue, host: AnyValue = None) -> None:
        if isinstance(target, Mapping):
            options = (f"-{name}={value}" for name, value in target.items() if name != "kind")
            target = " ".join([str(target["kind"]), *options])
        self._text = str(target)
        self.host = None if host is None else Target(host)
        self.kind = SimpleNamespace(name=self._text.split()[0] if self._text else "")

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Return the innermost target that was entered.

        Raises:
            ValueError: There is none, and `allow_none` is false.
        """
        if not Target._entered and not allow_none:
            raise ValueError("no target has been entered")
        return Target._entered[-1] if Target._entered else None

    def __enter__(self) -> Target:
        Target._entered.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        Target._entered.pop()

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)
