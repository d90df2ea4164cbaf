"""Manifests: one model a line, as JSON, as CSV or as a plain path or URL.

A line that cannot be read is an entry with its fault; it never ends the batch.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import IO, Final
from typing import Any as AnyValue

from serde.errors import OptionError

__all__ = ["STDIN", "Entry", "is_manifest", "read_entry", "read_manifest"]

STDIN: Final = "-"

_SUFFIXES: Final = (".jsonl", ".ndjson", ".csv", ".txt", ".lst")
_MAX_LINE: Final = 2**20
_OWN: Final = ("source", "sources", "target")


@dataclass(frozen=True, slots=True)
class Entry:
    """What was asked for: by a line of a manifest, or by an argument.

    Attributes:
        where: Where it stands, as ``models.jsonl:12``.
        sources: Paths or URLs of one model, or one glob.
        target: Where it is to be written; as its source is called if empty.
        options: Options of its own.
        fault: Why it cannot be read; empty if it can.
    """

    where: str
    sources: tuple[str, ...] = ()
    target: str = ""
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    fault: str = ""


def is_manifest(argument: str) -> bool:
    """Whether an argument names a manifest, by its suffix, or the standard input."""
    return argument == STDIN or argument.endswith(_SUFFIXES)


def read_manifest(path: str, known: Collection[str]) -> Iterator[Entry]:
    """Yield an entry for each line of a manifest that says something.

    Args:
        path: The file, ``"-"`` for the standard input.
        known: Names of the options that a line may have.

    Raises:
        OptionError: There is no such file, or it cannot be read.
    """
    name = "<stdin>" if path == STDIN else path
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
            yield from _entries(name, _lines(file), known)
    except OSError as error:
        raise OptionError(f"{name}: cannot be read: {error.strerror}") from None


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of a file, None for one that is too long to be read."""
    while line := file.readline(_MAX_LINE + 1):
        if len(line) <= _MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_MAX_LINE)
        yield None


def _entries(name: str, lines: Iterable[bytes | None], known: Collection[str]) -> Iterator[Entry]:
    columns: list[str] = []
    started = False
    for number, raw in enumerate(lines, 1):
        where = f"{name}:{number}"
        if raw is None:
            yield Entry(where, fault=f"the line is longer than {_MAX_LINE:,} bytes")
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            yield Entry(where, fault=f"expected UTF-8, found {raw[error.start]:#04x}")
            continue
        if not text or text.startswith("#"):
            continue
        if not started and not text.startswith("{") and name.endswith(".csv"):
            columns = _row(text)
            started = True
            if not {"source", "sources"} & {*columns}:
                raise OptionError(f"{where}: expected a column source, found {', '.join(columns)}")
            continue
        started = True
        yield _entry(where, text, columns, known)


def _row(text: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader(io.StringIO(text)), [])]


def _entry(where: str, text: str, columns: list[str], known: Collection[str]) -> Entry:
    try:
        if columns:
            return read_entry(where, _cells(columns, _row(text)), known)
        if text.startswith("{"):
            return read_entry(where, _object(text), known)
        return read_entry(where, {"source": text}, known)
    except OptionError as error:
        return Entry(where, fault=str(error))
    except (csv.Error, RecursionError) as error:
        return Entry(where, fault=f"cannot be read: {error}")


def _object(text: str) -> Mapping[str, AnyValue]:
    """Return the object that a line of JSON holds.

    Raises:
        OptionError: It holds none.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise OptionError(f"expected JSON: {error}") from None
    if not isinstance(found, dict):
        raise OptionError(f"expected an object, found {type(found).__name__}")
    return found


def _cells(columns: list[str], cells: list[str]) -> dict[str, AnyValue]:
    """Return what a line of CSV says; empty cells say nothing.

    Raises:
        OptionError: It has more or less cells than there are columns.
    """
    if len(cells) != len(columns):
        raise OptionError(f"expected {len(columns)} cells, found {len(cells)}")
    pairs = zip(columns, cells, strict=True)
    return {name: _value(name, cell) for name, cell in pairs if cell}


def _value(name: str, cell: str) -> AnyValue:
    """Return the JSON in a cell, or the text that it is."""
    if name in ("source", "target"):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def read_entry(where: str, said: Mapping[str, AnyValue], known: Collection[str]) -> Entry:
    """Return the entry that an object describes.

    Args:
        where: Where it stands.
        said: ``source`` or ``sources``, ``target``, and options.
        known: Names of the options that it may have.

    Raises:
        OptionError: It describes none.
    """
    if not all(isinstance(name, str) for name in said):
        raise OptionError("expected names of options as text")
    given = said.get("source") if "source" in said else said.get("sources")
    sources = [given] if isinstance(given, str) else given
    good = isinstance(sources, (list, tuple)) and all(isinstance(s, str) and s for s in sources)
    if not sources or not good:
        raise OptionError(f"expected a source, found {given!r}")
    target = said.get("target") or ""
    if not isinstance(target, str):
        raise OptionError(f"target: expected a path or URL, found {target!r}")
    if any("\0" in text for text in (*sources, target)):
        raise OptionError("a path cannot contain a null character")
    options = {name: value for name, value in said.items() if name not in _OWN}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise OptionError(f"there is no option {unknown[0]}")
    return Entry(where, tuple(sources), target, options)
