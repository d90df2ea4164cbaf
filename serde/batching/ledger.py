"""The ledger of a batch: what became of each model, in an SQLite file that outlives a kill.

An outcome is kept under the digest of the bytes it came from, the options, the version of serde
and the target. What the files of a source looked like when they were read is kept beside it, so
that a source that looks the same is not read again. Only the process that runs the batch writes,
and holds the file for itself meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde._version import __version__
from serde.batching.records import Job, Outcome
from serde.errors import FormatError, OptionError

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

_COLUMNS: Final = (
    *("name", "target", "status", "error", "content", "bytes_read", "bytes_written"),
    *("seconds", "memory", "attempts", "worker", "started"),
)
"""Fields of an outcome that are columns as they are."""

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
        look: As :class:`serde.batching.looks.Looks` says it; empty if it is not known.
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
        return None if row is None else Seen(row["id"], _outcome(row), row["seal"], row["limits"])

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
            **{name: getattr(outcome, name) for name in _COLUMNS},
            **{"options": options, "version": __version__, "run": self.run, "limits": limits},
            "sources": json.dumps(outcome.sources),
            "reused": 0,
            "seal": seal,
            "report": _packed(outcome.report),
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
        self._waiting.append((statement, values))
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
            return self._connection.execute(statement, values).fetchone()


_SELECT: Final = "SELECT * FROM outcomes"


def read_outcomes(path: Path, run: int) -> Iterator[Outcome]:
    """Yield the outcomes of a run, in the order in which they were first met.

    Raises:
        FormatError: The file is no ledger.
        OptionError: It cannot be read, or a run has it open.
    """
    with (
        _told(path),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as c,
    ):
        c.row_factory = sqlite3.Row
        for row in c.execute(f"{_SELECT} WHERE run = ? ORDER BY id", (run,)):
            yield _outcome(row)


def _outcome(row: sqlite3.Row) -> Outcome:
    return Outcome(
        **{name: row[name] for name in _COLUMNS},
        sources=tuple(json.loads(row["sources"])),
        reused=bool(row["reused"]),
        report=json.loads(zlib.decompress(row["report"])),
    )


def _packed(report: Mapping[str, AnyValue]) -> bytes:
    return zlib.compress(json.dumps(report, default=str).encode(), 1)


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection that has the file for itself."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0.2, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            _make_tables(connection, path)
            connection.commit()
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; refuse one that is something else.

    Raises:
        FormatError: It is another program's, or of another layout.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if (application, layout) == (_APPLICATION, _LAYOUT):
        return
    if application or tables:
        expected = f"expected a ledger of layout {_LAYOUT}"
        found = f"layout {layout}" if application == _APPLICATION else "another database"
        raise FormatError(f"{expected}, found {found}", path=path)
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise OptionError(f"{path}: another run has this ledger open") from None
        raise OptionError(f"{path}: {error}; --ledger names another place") from None
    except sqlite3.DatabaseError as error:
        raise FormatError(f"expected a ledger, found something else ({error})", path=path) from None
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}; --ledger names another place") from None
