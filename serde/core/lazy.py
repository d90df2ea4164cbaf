"""Packages whose public names are loaded when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any as AnyValue

__all__ = ["lazy_names", "refuse_names"]


def lazy_names(
    package: str, homes: Mapping[str, str], other: Callable[[str], AnyValue] | None = None
) -> tuple[Callable[[str], AnyValue], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package; a stub says what they are.

    Args:
        package: Its full name.
        homes: Public names, separated by spaces, by the module that has them. Where a module
            has no such name, it is meant itself, as where it bears that name in its package.
        other: Finds names that are not public, such as operators; None where there is none.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> AnyValue:
        if name in home_of:
            module = importlib.import_module(home_of[name])
            itself = home_of[name] == f"{package}.{name}"
            found = module if itself else getattr(module, name, module)
            setattr(sys.modules[package], name, found)
            return found
        private = name.startswith("_")
        found = None if other is None or private else other(name)
        if found is None:
            from serde.core.texts import near_names

            near = "" if private else near_names(name, dir(sys.modules[package]))
            raise AttributeError(f"module {package!r} has no attribute {name!r}.{near}")
        return found

    def list_names() -> list[str]:
        return sorted(vars(sys.modules[package])["__all__"])

    return find, list_names, sorted(home_of)


def refuse_names(package: str, reasons: Mapping[str, str]) -> Callable[[str], None]:
    """Return what raises why a package lacks names, given by names separated by spaces."""
    reason_of = {name: reason for names, reason in reasons.items() for name in names.split()}

    def refuse(name: str) -> None:
        if name in reason_of:
            raise AttributeError(
                f"{package}.{name} is not in serde: {reason_of[name]} (docs/tvm-differences.md)"
            )

    return refuse
