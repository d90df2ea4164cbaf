"""Packages whose modules register operators, and are loaded when one of these is asked for.

``index.json`` beside the modules says which of them registers what; ``make docs`` writes it, and
a test compares it with what registers itself when everything is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections.abc import Callable
from functools import cached_property
from typing import Any as AnyValue

__all__ = ["LazyPackage"]


class LazyPackage:
    """A package of modules that register operators.

    Args:
        name: Its full name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._complete = False
        self._loaded: set[str] = set()
        self._checks: list[Callable[[], None]] = []

    @cached_property
    def index(self) -> dict[str, AnyValue]:
        """What ``index.json`` says: for each module, relative to the package, what it registers.

        It is empty where there is no such file, while it is made.
        """
        path = os.path.join(importlib.import_module(self.name).__path__[0], "index.json")
        try:
            with open(path, encoding="utf-8") as file:
                found: dict[str, AnyValue] = json.load(file)
        except FileNotFoundError:
            return {}
        return found

    def load(self, module: str) -> None:
        """Import a module of the package, given by its relative name."""
        if module not in self._loaded:
            importlib.import_module(f"{self.name}.{module}")
            self._loaded.add(module)

    def has(self, module: str) -> bool:
        """Whether a module, given by its full name, is in the package."""
        return module.startswith(f"{self.name}.")

    def load_all(self) -> None:
        """Import every module of the package."""
        if self._complete:
            return
        path = importlib.import_module(self.name).__path__
        for info in sorted(pkgutil.walk_packages(path, f"{self.name}."), key=lambda i: i.name):
            importlib.import_module(info.name)
        self._complete = True
        while self._checks:
            self._checks.pop()()

    def check(self, module: str, check: Callable[[], None]) -> None:
        """Check what a module registers; what one of the package does, when all are loaded."""
        if self.has(module):
            self._checks.append(check)
        else:
            check()
