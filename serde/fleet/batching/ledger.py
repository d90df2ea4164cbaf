"""The ledger of a batch: what became of each model, in an SQLite file that outlives a kill.

An outcome is kept under the digest of the bytes it came from, the options, the version of serde
and the target. What the files of a source looked like when they were read is kept beside it, so
that a source that looks the same is not read again. Only the process that runs the batch writes,
and holds the file for itself meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any as AnyValue, Final

from serde._version import __version__
from serde.core.records import dataclass, replace
from serde.errors import FormatError, OptionError
from serde.fleet.batching.records import Job, Outcome
from serde.fleet.batching.stored import COLUMNS, pack_report, read_outcome

__all__ = ["Ledger", "Look", "Seen", "options_digest", "read_outcomes"]

_LAYOUT: Final = 1
_APPLICATION: Final = 0x53455244
"""What SQLite keeps in the head of a file for the program whose it is: ``SERD``."""

_SCHEMA: Final = """
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    content TEXT NOT NULL,
    options TEXT NOT NULL,
    version TEXT NOT NULL,
    limits TEXT NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    sources TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    bytes_read INTEGER NOT NULL,
    bytes_written INTEGER NOT NULL,
    seconds REAL NOT NULL,
    memory INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    worker TEXT NOT NULL,
    started REAL NOT NULL,
    reused INTEGER NOT NULL,
    seal TEXT NOT NULL,
    report BLOB NOT NULL
) STRICT;
CREATE INDEX by_key ON outcomes (target, content, options, version);
CREATE INDEX by_run ON outcomes (run, id);
CREATE TABLE looks (source TEXT PRIMARY KEY, look TEXT NOT NULL, content TEXT NOT NULL) STRICT;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started REAL NOT NULL,
    ended REAL,
    version TEXT NOT NULL,
    settings TEXT NOT NULL
) STRICT;
"""

_TOGETHER: Final = 1000
"""Rows that are written in one transaction at most."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the ledger says of a job.

    Attributes:
        id: Row of the outcome.
        outcome: How it ended then.
        seal: What the target looked like when it was written; empty if it was not.
        limits: The limits of time and memory that it had.
    """

    id: int
    outcome: Outcome
    seal: str
    limits: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a source looked like.

    Attributes:
        look: As :class:`serde.fleet.batching.looks.Looks` says it; empty if it is not known.
        content: Digest of the bytes that it had.
    """

    look: str = ""
    content: str = ""


def options_digest(values: Mapping[str, AnyValue]) -> str:
    """Return a digest of options, whatever their order."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Ledger:
    """The ledger of one run, which it is open for.

    Args:
        path: The file; it is made where it is not there.
        settings: What the jobs have in common, for people who look into the file.

    Attributes:
        path: The file.
        run: Number of the run in it.
        fault: Why the disk does not take what is to be written; empty if it does.

    Raises:
        FormatError: The file is something else.
        OptionError: Another run has it open, or it cannot be written.
    """

    def __init__(self, path: Path, settings: Mapping[str, AnyValue]) -> None:
        self.path = path
        self._connection = _open(path)
        self._waiting: list[tuple[str, tuple[AnyValue, ...]]] = []
        self._unwritten: list[Outcome] = []
        self.fault = ""
        with _told(path):
            self.run = self._begin(settings)

    def _begin(self, settings: Mapping[str, AnyValue]) -> int:
        with self._connection as connection:
            # What is of no target is of no use to another run.
            connection.execute("DELETE FROM outcomes WHERE options = ''")
            found = connection.execute(
                "INSERT INTO runs (started, version, settings) VALUES (?, ?, ?)",
                (time.time(), __version__, json.dumps(settings, default=str)),
            )
        return int(found.lastrowid or 0)

    def look(self, job: Job) -> Look:
        """Return what the source of a job looked like when it was last read."""
        statement = "SELECT look, content FROM looks WHERE source = ?"
        found = self._one(statement, (json.dumps(job.sources),))
        return Look() if found is None else Look(*found)

    def remember(self, outcome: Outcome, look: str) -> None:
        """Keep what the source of an outcome looked like, if that is known."""
        if look:
            values = (json.dumps(outcome.sources), look, outcome.content)
            self._write("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", values, later=True)

    def find(self, target: str, content: str, options: str) -> Seen | None:
        """Return how a model of these bytes and options ended, by this version of serde.

        Args:
            target: Where it is written to.
            content: Digest of its bytes; of what nothing could be read of, empty.
            options: Digest of its options.
        """
        row = self._one(
            f"{_SELECT} WHERE target = ? AND content = ? AND options = ? AND version = ?",
            (target, content, options, __version__),
        )
        if row is None:
            return None
        found = replace(read_outcome(row, self.path), target=target)
        return Seen(row["id"], found, row["seal"], row["limits"])

    def reuse(self, seen: Seen, job: Job) -> Outcome:
        """Count what an earlier run has done to this one; return its outcome."""
        outcome = replace(seen.outcome, name=job.name, sources=job.sources, reused=True)
        self._write(
            "UPDATE outcomes SET run = ?, reused = 1, name = ?, sources = ? WHERE id = ?",
            (self.run, job.name, json.dumps(job.sources), seen.id),
            later=True,
        )
        return outcome

    def record(
        self, outcome: Outcome, *, options: str, limits: str = "", seal: str = "", look: str = ""
    ) -> None:
        """Keep an outcome; it is on the disk when this returns, if that has room for it.

        Args:
            outcome: How a model ended.
            options: Digest of its options, empty for what is of no model.
            limits: The limits that it had.
            seal: What its target looks like.
            look: What its source looked like before it was read; empty if that is not known.
        """
        key = (outcome.target, outcome.content, options, __version__)
        if options:
            # What was known of it without its bytes is known better now.
            self._write(
                "DELETE FROM outcomes WHERE target = ? AND content IN (?, '') AND options = ? "
                "AND version = ?",
                key,
                later=True,
            )
        values = {
            **{name: getattr(outcome, name) for name in COLUMNS},
            **{"options": options, "version": __version__, "run": self.run, "limits": limits},
            "sources": json.dumps(outcome.sources),
            "reused": 0,
            "seal": seal,
            "report": pack_report(outcome.report),
        }
        marks = ", ".join("?" * len(values))
        self.remember(outcome, look)
        self._write(
            f"INSERT INTO outcomes ({', '.join(values)}) VALUES ({marks})",  # nosec
            tuple(values.values()),
        )
        if self.fault:
            self._unwritten.append(outcome)

    def _write(self, statement: str, values: tuple[AnyValue, ...], *, later: bool = False) -> None:
        """Write a row with all that wait; what the disk does not take waits on."""
        self._waiting.append((statement, _as_text(values)))
        if not later or len(self._waiting) > _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write what waits to be written."""
        if not self._waiting:
            return
        try:
            with self._connection as connection:
                for statement, values in self._waiting:
                    connection.execute(statement, values)
        except sqlite3.OperationalError as error:
            self.fault = f"{self.path}: {error}"
            return
        self.fault = ""
        self._waiting.clear()
        self._unwritten.clear()

    def close(self) -> list[Outcome]:
        """Let others have the file; return the outcomes that the disk did not take."""
        self._write("UPDATE runs SET ended = ? WHERE id = ?", (time.time(), self.run))
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        with suppress(sqlite3.Error):
            self._connection.close()
        return self._unwritten

    def _one(self, statement: str, values: tuple[AnyValue, ...]) -> AnyValue:
        with _told(self.path):
            return self._connection.execute(statement, _as_text(values)).fetchone()


def _as_text(values: tuple[AnyValue, ...]) -> tuple[AnyValue, ...]:
    """Return values as SQLite takes them: what is no text in a name is written as an escape."""
    return tuple(
        each.encode(errors="backslashreplace").decode() if isinstance(each, str) else each
        for each in values
    )


_SELECT: Final = "SELECT * FROM outcomes"
_TABLES: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"

_STEP: Final = 2**16
_STEPS: Final = 2**10
_STEP_BYTES: Final = 2**13
"""How many instructions of SQLite are a step, how many steps any file may take to be opened or
read, and for how many of its bytes there is one more: a row of 300 bytes takes some 200."""

_SHARED: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""How the end of a journal begins and ends that names another, by the format of SQLite."""


def read_outcomes(path: Path, run: int) -> Iterator[Outcome]:
    """Yield the outcomes of a run, in the order in which they were first met.

    Raises:
        FormatError: The file is no ledger.
        OptionError: It cannot be read, or a run has it open.
    """
    with _told(path), closing(_connect(path, "ro")) as c:
        _check_tables(c, path)
        for row in c.execute(f"{_SELECT} WHERE run = ? ORDER BY id", (run,)):
            yield read_outcome(row, path)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to a file of whom nobody knows who made it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if os.path.lexists(beside) and not stat.S_ISREG(beside.lstat().st_mode):
            raise OptionError(f"{beside}: expected a plain file, not a link or anything else")
        if suffix == "-journal" and _names_another(beside):
            raise FormatError("expected a journal of this ledger alone", path=beside)
    place = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(place, timeout=0.2, check_same_thread=False, uri=True)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")
    # Pages that refer to each other may be read for ever; a sound file is done long before.
    size = path.stat().st_size if path.exists() else 0
    left = iter(range(_STEPS + size // _STEP_BYTES))
    connection.set_progress_handler(lambda: next(left, None) is None, _STEP)
    return connection


def _names_another(journal: Path) -> bool:
    """Whether a journal names one that several databases share, which SQLite would remove."""
    if not journal.exists():
        return False
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - len(_SHARED)))
        return file.read() == _SHARED


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection that has the file for itself."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path, "rwc")
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            _make_tables(connection, path)
            connection.commit()
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.set_progress_handler(None, 0)
        except BaseException:
            connection.close()
            raise
        return connection


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; refuse one that is something else."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    if application or tables:
        _check_tables(connection, path)
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise FormatError(f"expected a ledger, found a damaged one ({found})", path=path)
        return
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose tables are others: with triggers or views, reading may do anything."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    expected = f"expected a ledger of layout {_LAYOUT}"
    if application != _APPLICATION:
        raise FormatError(f"{expected}, found another database", path=path)
    if layout != _LAYOUT:
        raise FormatError(f"{expected}, found layout {layout}", path=path)
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(_SCHEMA)
        wanted = own.execute(_TABLES).fetchall()
    rows = connection.execute(_TABLES)
    found = [tuple(row) for row in rows.fetchmany(len(wanted) + 1)]
    if found != wanted:
        raise FormatError(f"{expected}, found other tables, triggers or views", path=path)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise OptionError(f"{path}: another run has this ledger open") from None
        if str(error) == "interrupted" or "decode" in str(error):
            raise FormatError(
                f"expected a ledger, found a damaged one ({error})", path=path
            ) from None
        raise OptionError(f"{path}: {error}; --ledger names another place") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise FormatError(f"expected a ledger, found something else ({error})", path=path) from None
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}; --ledger names another place") from None
