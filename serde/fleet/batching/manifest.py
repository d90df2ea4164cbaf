"""Manifests: one model a line, as JSON, as CSV or as a plain path or URL.

A line that cannot be read is an entry with its fault; it never ends the batch. Who gives a manifest
need not have written it: what a line names to be run, or a place outside the folder of the targets,
is a fault as well, unless the caller lets manifests do that.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import IO, Any as AnyValue, Final

from serde.core import dataclass, field, parse_json
from serde.errors import OptionError
from serde.fleet.stores.urls import is_url
from serde.io.contained import location_fault

__all__ = [
    "LEDGER_FOLDER", "NO_TRUST", "STDIN", "Entry", "Trust", "is_manifest", "read_entry",
    "read_manifest",
]  # fmt: skip

STDIN: Final = "-"
LEDGER_FOLDER: Final = ".serde"
"""Folder within that of the targets, in which the ledger lies."""

_SUFFIXES: Final = (".jsonl", ".ndjson", ".csv", ".txt", ".lst")
_MAX_LINE: Final = 2**20
_OWN: Final = ("source", "sources", "target")
_RUN: Final = ("converters", "custom_convert_map", "cc")
"""Options whose value is code, or a program that is started."""


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


@dataclass(frozen=True, slots=True)
class Trust:
    """What lines of manifests may do besides naming sources and options.

    Attributes:
        code: Name files of converters, and the compiler, which are run.
        targets: Name places outside the folder or URL of the targets.
    """

    code: bool = False
    targets: bool = False

    def check(self, entry: Entry) -> None:
        """Refuse an entry that goes beyond it.

        Raises:
            OptionError: It does.
        """
        named = [name for name in _RUN if name in entry.options]
        if named and not self.code:
            raise OptionError(
                f"{named[0]}: a manifest may not name what is run; "
                "allow it by --manifest-code (manifest_code=True)"
            )
        fault = location_fault(entry.target) if entry.target else None
        if is_url(entry.target):
            fault = "is a URL"
        # Some systems take capitals for the same.
        if os.path.normpath(entry.target).casefold().startswith(f"{LEDGER_FOLDER}{os.sep}"):
            fault = "is where the ledger lies"
        if fault is not None and not self.targets:
            fault = fault.replace("of the model", "of the targets")
            raise OptionError(
                f"target: {entry.target!r} {fault}; "
                "allow it by --manifest-targets (manifest_targets=True)"
            )


NO_TRUST: Final = Trust()
"""Of manifests that others wrote."""


def is_manifest(argument: str) -> bool:
    """Whether an argument names a manifest, by its suffix, or the standard input."""
    return argument == STDIN or argument.endswith(_SUFFIXES)


def read_manifest(path: str, known: Collection[str], trust: Trust) -> Iterator[Entry]:
    """Yield an entry for each line of a manifest that says something.

    Args:
        path: The file, ``"-"`` for the standard input.
        known: Names of the options that a line may have.
        trust: What lines may do besides.

    Raises:
        OptionError: There is no such file, or it cannot be read.
    """
    name = "<stdin>" if path == STDIN else path
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
            yield from _entries(name, _lines(file), known, trust)
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


def _entries(
    name: str, lines: Iterable[bytes | None], known: Collection[str], trust: Trust
) -> Iterator[Entry]:
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
        yield _entry(where, text, columns, known, trust)


def _row(text: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader(io.StringIO(text)), [])]


def _entry(
    where: str, text: str, columns: list[str], known: Collection[str], trust: Trust
) -> Entry:
    try:
        said: Mapping[str, AnyValue] = {"source": text}
        if columns:
            said = _cells(columns, _row(text))
        elif text.startswith("{"):
            said = _object(text)
        entry = read_entry(where, said, known)
        trust.check(entry)
    except OptionError as error:
        return Entry(where, fault=str(error))
    except csv.Error as error:
        return Entry(where, fault=f"cannot be read: {error}")
    return entry


def _object(text: str) -> Mapping[str, AnyValue]:
    """Return the object that a line of JSON holds."""
    try:
        found = parse_json(text)
    except ValueError as error:
        raise OptionError(f"expected JSON: {error}") from None
    if not isinstance(found, dict):
        raise OptionError(f"expected an object, found {type(found).__name__}")
    return found


def _cells(columns: list[str], cells: list[str]) -> dict[str, AnyValue]:
    """Return what a line of CSV says; empty cells say nothing."""
    if len(cells) != len(columns):
        raise OptionError(f"expected {len(columns)} cells, found {len(cells)}")
    pairs = zip(columns, cells, strict=True)
    return {name: _value(name, cell) for name, cell in pairs if cell}


def _value(name: str, cell: str) -> AnyValue:
    """Return the JSON in a cell, or the text that it is."""
    if name in ("source", "target"):
        return cell
    try:
        return parse_json(cell)
    except ValueError:
        return cell


def _is_path(text: str) -> bool:
    """Whether a file may be called so; bytes that are no text are lone surrogates in Python."""
    try:
        return "\0" not in os.fsdecode(os.fsencode(text))
    except UnicodeEncodeError:
        return False


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
    for text in (*sources, target):
        if not _is_path(text):
            raise OptionError(f"expected a path, found {text!r}")
    options = {name: value for name, value in said.items() if name not in _OWN}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise OptionError(f"there is no option {unknown[0]}")
    return Entry(where, tuple(sources), target, options)
