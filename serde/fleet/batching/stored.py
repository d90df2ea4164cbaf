"""An outcome as a ledger keeps it: packed when it is written, and checked when it is read.

A ledger is a file like any other: somebody else may have made it, or a disk may have damaged it.
So what is read has the types that were written, and no more text than a report has.
"""

from __future__ import annotations

import json
import sqlite3
import types
import typing
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from serde.core.parsing import parse_json
from serde.core.report import NOT_SHOWN, Report
from serde.errors import FormatError
from serde.fleet.batching.records import STATUSES, Outcome

__all__ = ["COLUMNS", "pack_report", "read_outcome"]

COLUMNS: Final = (
    *("name", "target", "status", "error", "content", "bytes_read", "bytes_written"),
    *("seconds", "memory", "attempts", "worker", "started"),
)
"""Fields of an outcome that are columns as they are."""

_REPORT_BYTES: Final = 2**26
"""Longest report that is kept, or read: some 500,000 nodes that cannot be converted."""

_DEPTH: Final = 64

_RANGES: Final = {"seconds": (0, 2.5e11), "started": (0, 2.5e11), "attempts": (0, 2**31)}
"""Seconds end in the year 9892, where dates still have four digits."""


def pack_report(report: Mapping[str, Any]) -> bytes:
    """Return a report as a ledger keeps it; of one that is too long, that it was."""
    text = json.dumps(report, default=str).encode()
    if len(text) > _REPORT_BYTES:
        note = f"the report has {len(text):,} bytes, which a ledger does not keep"
        text = json.dumps({"title": report.get("title", ""), "notes": [note]}).encode()
    return zlib.compress(text, 1)


def read_outcome(row: sqlite3.Row, path: Path) -> Outcome:
    """Return the outcome that a row of a ledger tells of.

    Raises:
        FormatError: A column holds something else than serde writes there.
    """
    found: dict[str, Any] = {name: row[name] for name in COLUMNS}
    found["sources"] = _parsed(row["sources"])
    found["report"] = _parsed(_inflated(row["report"]))
    for name, value in found.items():
        if not _columns()[name](value):
            raise _fault(name, value, path)
    for name, (least, most) in _RANGES.items():
        if not least <= found[name] < most:
            raise _fault(name, found[name], path)
    if found["status"] not in STATUSES:
        raise _fault("status", found["status"], path)
    parameters = found["report"].get("facts", {}).get("parameters")
    if not _fits(int | None)(parameters):
        raise _fault("parameters", parameters, path)
    found["sources"] = tuple(found["sources"])
    return Outcome(**found, reused=bool(row["reused"]))


def _fault(name: str, value: object, path: Path) -> FormatError:
    shown = ascii(value)[:80]
    message = f"no sound ledger: {name} is {shown}; --ledger names another place"
    return FormatError(message, path=path)


def _parsed(text: Any) -> object:
    """Return what JSON says; of what is none, something that fits nowhere."""
    try:
        return parse_json(text)
    except (ValueError, TypeError):
        return None


def _inflated(data: object) -> bytes | None:
    """Return what was compressed, None if that is more than a report has, or it was not."""
    if not isinstance(data, bytes):
        return None
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, _REPORT_BYTES + 1)
    except zlib.error:
        return None
    return text if len(text) <= _REPORT_BYTES and unpacking.eof else None


_Test = Callable[[Any], bool]


@cache
def _columns() -> Mapping[str, _Test]:
    hints = {**typing.get_type_hints(Outcome), "sources": list[str], "report": Report}
    return {name: _fits(hint) for name, hint in hints.items()}


@cache
def _fits(hint: Any) -> _Test:
    """Return what tells whether a value that JSON or SQLite gave can be of a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return _is_shallow
    if is_dataclass(hint):
        return _fits_record(hint)
    tests = [_fits(each) for each in inner if each is not Ellipsis]
    if origin in (typing.Union, types.UnionType):
        return lambda value: any(test(value) for test in tests)
    if origin is tuple and inner[-1] is not Ellipsis:
        return lambda value: (
            isinstance(value, list)
            and len(value) == len(tests)
            and all(test(each) for test, each in zip(tests, value, strict=True))
        )
    if origin in (list, tuple):
        return lambda value: isinstance(value, list) and all(map(tests[0], value))
    if origin is not None:  # A mapping; a Counter tells the type of its keys alone.
        test = tests[1] if len(tests) > 1 else _fits(int)
        return lambda value: isinstance(value, dict) and all(map(test, value.values()))
    if hint in (int, float):
        kinds = (int,) if hint is int else (int, float)
        return lambda value: type(value) in kinds and not (type(value) is int and abs(value) >> 63)
    if hint is str:
        return lambda value: isinstance(value, str) and (value.isascii() or _is_text(value))
    return lambda value: type(value) is hint


def _fits_record(cls: Any) -> _Test:
    hints = typing.get_type_hints(cls)
    tests = {
        each.name: _fits(hints[each.name]) for each in fields(cls) if each.name not in NOT_SHOWN
    }

    def test(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if cls is Report:  # Which says what it got to; what is in it says all of itself.
            return all(tests[name](value[name]) for name in tests if name in value)
        figures = value.keys() - tests.keys()  # Those that properties of it give.
        whole = tests.keys() <= value.keys() and all(_fits(float | None)(value[n]) for n in figures)
        return whole and all(tests[name](value[name]) for name in tests)

    return test


def _is_shallow(value: object, left: int = _DEPTH) -> bool:
    """Whether values in each other are few enough for what writes them as text."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(_is_shallow(each, left - 1) for each in inner)


def _is_text(value: str) -> bool:
    """Whether a text can be written: bytes of names that are no UTF-8 can, half characters not."""
    try:
        value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
