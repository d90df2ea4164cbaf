"""What is told of an option that nobody has, or none of the formats at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any as AnyValue

from serde.errors import OptionError
from serde.options import other_names
from serde.texts import near_names

__all__ = ["option_names", "refuse_options"]


def option_names(cls: type[AnyValue]) -> Iterator[str]:
    """Yield the names of the options of a dataclass, other spellings included."""
    for item in dataclasses.fields(cls):
        yield from (item.name, *other_names(item))


def refuse_options(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options by the name that is nearest, or by the formats that have one of that name.

    Args:
        unknown: Options that were given and that nothing at hand has.
        known: Those that there are.

    Raises:
        OptionError: There is one.
    """
    known = {*known}
    told = [f"unknown option {name}{_remark(name, known)}" for name in sorted(unknown)]
    if told:
        raise OptionError("; ".join(told))


def _remark(name: str, known: Iterable[str]) -> str:
    owners = list(_owners(name))
    if owners:
        return f": it is one of {' and '.join(owners)}, which takes no part here"
    near = near_names(name, known)
    return f".{near}" if near else ""


def _owners(name: str) -> Iterator[str]:
    """Yield the directions of formats that have an option of this name."""
    from serde.bridge import format_names, get_bridge

    for each in format_names():
        with suppress(OptionError):
            bridge = get_bridge(each)
            classes = {"reading": bridge.import_options, "writing": bridge.export_options}
            for verb, cls in classes.items():
                if cls is not None and name in option_names(cls):
                    yield f"{verb} {each}"
