"""Ledgers that others made, or a disk damaged: refused in one line, nothing run or followed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serde.core.report import Nearness, OutputAccuracy, OutputVerdict, Report
from serde.errors import FormatError, OptionError, SerdeError
from serde.fleet.batching.findings import Findings
from serde.fleet.batching.ledger import Ledger, read_outcomes
from serde.fleet.batching.looks import Looks
from serde.fleet.batching.page_data import PageData
from serde.fleet.batching.records import Job, Outcome
from serde.fleet.stores.urls import Address

PRECIOUS = "precious"
JOB = Job("net.onnx", ("net.onnx",), "net.relay")
NEAR = Nearness(1.0, 1.0, 60.0, 0.1)
REPORT = Report(
    title="onnx -> relay",
    nodes=3,
    notes=["one"],
    facts={"parameters": 12, "target": {"inputs": []}},
    verdicts=[
        OutputVerdict("y", ((2, 3), (2, 3)), ("float32",) * 2, 0.0, 0.0, 1.0, 1e-5, 1e-5, True)
    ],
    engines=("a", "b"),
    accuracy=[OutputAccuracy("y", NEAR, NEAR)],
)
REPORT.add("Gate", "gate_1", "no such operator")
OUTCOME = Outcome(
    name="net.onnx",
    sources=("net.onnx",),
    target="net.relay",
    status="refused",
    content="c",
    started=1.7e9,
    seconds=0.5,
    report=json.loads(json.dumps(REPORT.as_dict())),
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("honest") / "ledger.sqlite"
    ledger = Ledger(path, {})
    look = json.dumps({"files": [["net.onnx", 1, "1-1"]], "beside": ""})
    ledger.record(OUTCOME, options="o", look=look)
    ledger.close()
    return path


@pytest.fixture
def ledger(honest: Path, tmp_path: Path) -> Path:
    (tmp_path / PRECIOUS).write_text(PRECIOUS)
    return Path(shutil.copy(honest, tmp_path / "ledger.sqlite"))


def use(path: Path) -> list[Outcome]:
    """All that a run asks of a ledger."""
    ledger = Ledger(path, {})
    try:
        Looks({}).holds(ledger.look(JOB).look, JOB.sources)
        seen = ledger.find(JOB.target, "c", "o")
        found = [] if seen is None else [ledger.reuse(seen, JOB)]
    finally:
        ledger.close()
    read = list(read_outcomes(path, ledger.run))
    findings, page = Findings(read), PageData(read)
    json.dumps([each.as_dict() for each in read])
    page.as_json()
    findings.reasons()
    assert [each.name for each in read] == [each.name for each in found]
    return read


def test_an_honest_one_is_read(ledger: Path) -> None:
    assert use(ledger) == [replace(OUTCOME, reused=True)]


def edit(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change a ledger behind SQLite's back: its types are not looked at."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        strict = connection.execute("SELECT sql FROM sqlite_master WHERE name='outcomes'")
        (sql,) = strict.fetchone()
        loosen = "UPDATE sqlite_master SET sql = ? WHERE name = 'outcomes'"
        loose = sql.replace("STRICT", "").replace("NOT NULL", "")
        for kind in ("INTEGER NOT", "REAL NOT", "TEXT NOT", "BLOB NOT"):
            loose = loose.replace(kind, "NOT")
        connection.execute(loosen, (loose,))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, values)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(loosen, (sql,))


def packed(change: Callable[[dict[str, Any]], object]) -> bytes:
    report = json.loads(json.dumps(REPORT.as_dict()))
    change(report)
    return zlib.compress(json.dumps(report).encode())


def bomb() -> bytes:
    zipping = zlib.compressobj(9)
    head = zipping.compress(b" " * 2**20) + zipping.flush(zlib.Z_FULL_FLUSH)
    # Behind a full flush, nothing refers to what came before: the same block fits again.
    block = zipping.compress(b" " * 2**20) + zipping.flush(zlib.Z_FULL_FLUSH)
    return head + block * 1023


COLUMNS: dict[str, tuple[str, Any]] = {
    "a report that was not packed": ("report", b"{}"),
    "a report of a gigabyte": ("report", bomb()),
    "a report that is cut off": ("report", zlib.compress(b"{}" * 100)[:-6]),
    "a report that is no JSON": ("report", zlib.compress(b"{")),
    "a report that is deep": ("report", zlib.compress(b"[" * 10**6)),
    "a report that is a list": ("report", zlib.compress(b"[]")),
    "a report that is text": ("report", "{}"),
    "a report that is null": ("report", None),
    "issues that are a number": ("report", packed(lambda r: r.update(issues=5))),
    "issues that are texts": ("report", packed(lambda r: r.update(issues=["x"]))),
    "an issue that lacks a node": ("report", packed(lambda r: r["issues"][0].pop("node"))),
    "an operator that is a list": ("report", packed(lambda r: r["issues"][0].update(op=[]))),
    "verdicts that are a table": ("report", packed(lambda r: r.update(verdicts={"a": 1}))),
    "a verdict of text": ("report", packed(lambda r: r["verdicts"][0].update(cosine="1"))),
    "a verdict of three shapes": (
        "report",
        packed(lambda r: r["verdicts"][0].update(shapes=[[], [], []])),
    ),
    "a factor of text": ("report", packed(lambda r: r["verdicts"][0].update(factor="x"))),
    "accuracy that lacks a side": ("report", packed(lambda r: r["accuracy"][0].pop("before"))),
    "stages that are null": ("report", packed(lambda r: r.update(stages=None))),
    "counts that are texts": ("report", packed(lambda r: r.update(before={"a": "b"}))),
    "parameters that are text": ("report", packed(lambda r: r.update(facts={"parameters": "5"}))),
    "nodes beyond all numbers": ("report", packed(lambda r: r.update(nodes=10**30))),
    "half a character": ("report", packed(lambda r: r.update(title="\ud800"))),
    "a status of nobody": ("status", "gone"),
    "a status that is a number": ("status", 5),
    "sources that are no JSON": ("sources", "net.onnx"),
    "sources that are text": ("sources", '"net.onnx"'),
    "sources that are numbers": ("sources", "[1]"),
    "sources that are deep": ("sources", "[" * 10**5),
    "sources that are bytes": ("sources", b"\xff"),
    "a name that is bytes": ("name", b"\xff\xfe"),
    "a name that is null": ("name", None),
    "an error that is bytes": ("error", b"\xff"),
    "seconds that are text": ("seconds", "soon"),
    "seconds without an end": ("seconds", float("inf")),
    "seconds below zero": ("seconds", -1.0),
    "a beginning in another age": ("started", 1e300),
    "memory that is text": ("memory", "much"),
    "more attempts than there are": ("attempts", 2**40),
    "bytes that are text": ("bytes_read", "all"),
    "limits that are bytes": ("limits", b"\x00"),
    "a seal that is null": ("seal", None),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("case", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_of_another_type_is_one_line(ledger: Path, case: tuple[str, Any]) -> None:
    column, value = case
    edit(ledger, f"UPDATE outcomes SET {column} = ?", values=(value,))
    with pytest.raises(FormatError, match=r"ledger\.sqlite: ") as caught:
        use(ledger)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", [b"\xff\xfe", b"net\xed\xa0\x80"])
def test_text_that_is_none_is_one_line(ledger: Path, text: bytes) -> None:
    edit(ledger, "UPDATE outcomes SET error = CAST(? AS TEXT)", values=(text,))
    with pytest.raises(FormatError, match=r"ledger\.sqlite: "):
        use(ledger)


SCHEMAS = {
    "an endless trigger": (
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN INSERT INTO looks WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i FROM n; END"
    ),
    "an endless view": (
        "DROP TABLE looks; CREATE VIEW looks AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i source, i look, i content FROM n"
    ),
    "another table": "CREATE TABLE other (x)",
    "another index": "CREATE UNIQUE INDEX other ON outcomes (name)",
    "a table that lacks a column": "ALTER TABLE outcomes DROP COLUMN memory",
    "a table without types": "DROP TABLE looks; CREATE TABLE looks (source, look, content)",
    "no table": "DROP TABLE runs",
    "a default that is computed": (
        "DROP TABLE runs; CREATE TABLE runs (id INTEGER PRIMARY KEY, started, ended, version, "
        "settings, x GENERATED ALWAYS AS (zeroblob(1000000000)))"
    ),
    "thousands of tables": ";".join(f"CREATE TABLE t{i} (x)" for i in range(2000)),
    "another layout": "PRAGMA user_version = 7",
    "another program": "PRAGMA application_id = 7",
}


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_other_tables_are_refused_before_they_are_used(ledger: Path, statements: str) -> None:
    with closing(sqlite3.connect(ledger)) as connection:
        connection.executescript(f"BEGIN; {statements}; COMMIT;")
    with pytest.raises(FormatError, match="expected a ledger of layout 1, found "):
        use(ledger)


def test_pages_that_refer_to_each_other_come_to_an_end(ledger: Path) -> None:
    """A tree of pages, every one of them the next one four hundred times: 400^8 rows."""
    with closing(sqlite3.connect(ledger)) as connection:
        root = "SELECT rootpage FROM sqlite_master WHERE name = 'looks'"
        (page,) = connection.execute(root).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(ledger.read_bytes())
    count = len(data) // size
    numbers = [page, *range(count + 1, count + 8)]
    for own, child in zip(numbers, [*numbers[1:], numbers[-1]], strict=True):
        cells = [size - 5 * (i + 1) for i in range(400)]
        leaf = own == numbers[-1]
        made = bytearray(size)
        head = struct.pack(">BHHHB", 13 if leaf else 5, 0, 0 if leaf else 400, cells[-1], 0)
        made[: len(head)] = head
        if not leaf:
            made[8:12] = struct.pack(">I", child)
            for i, cell in enumerate(cells):
                made[12 + 2 * i : 14 + 2 * i] = struct.pack(">H", cell)
                made[cell : cell + 5] = struct.pack(">IB", child, 1)
        data[(own - 1) * size : own * size] = made
    data[28:32] = struct.pack(">I", len(data) // size)
    ledger.write_bytes(data)
    with pytest.raises(FormatError, match=r"ledger\.sqlite: expected a ledger, found"):
        use(ledger)


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_one_is_read_or_refused(ledger: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(ledger.read_bytes())
    for place in rng.integers(16, len(data), 1 + seed % 8):
        data[place] = rng.integers(256)
    if seed % 5 == 0:
        del data[rng.integers(len(data)) :]
    ledger.write_bytes(data)
    with suppress(SerdeError):
        use(ledger)


LINKS: dict[str, Callable[[Path], object]] = {
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("elsewhere")),
    "a link": lambda path: (path.rename(f"{path}.kept"), path.symlink_to(f"{path}.kept")),
    "a link to zeros": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a journal that is a link": lambda path: Path(f"{path}-journal").symlink_to(PRECIOUS),
    "a log that is a link": lambda path: Path(f"{path}-wal").symlink_to(PRECIOUS),
    "an index that is a FIFO": lambda path: os.mkfifo(f"{path}-shm"),
}


@pytest.mark.parametrize("change", LINKS.values(), ids=LINKS.keys())
def test_no_link_is_followed(ledger: Path, change: Callable[[Path], object]) -> None:
    change(ledger)
    before = sorted(os.listdir(ledger.parent))
    with pytest.raises(OptionError, match="expected a plain file"):
        use(ledger)
    assert sorted(os.listdir(ledger.parent)) == before


def test_a_journal_that_names_another_file_does_not_remove_it(ledger: Path) -> None:
    """SQLite takes what a journal names for one of several databases, and removes it."""
    victim = ledger.parent / PRECIOUS
    name, magic = os.fsencode(victim), bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">5I", 0, 1234, ledger.stat().st_size // 4096, 512, 4096)
    tail = struct.pack(">I", 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    journal = Path(f"{ledger}-journal")
    journal.write_bytes(head.ljust(512, b"\0") + tail)
    with pytest.raises(FormatError, match="expected a journal of this ledger alone"):
        use(ledger)
    assert victim.read_text() == PRECIOUS
    with closing(sqlite3.connect(ledger)) as connection:  # As it would be.
        connection.execute("SELECT * FROM runs").fetchall()
    assert not victim.exists()


LOOKS = {
    "no JSON": "{",
    "a list": "[]",
    "deep": "[" * 10**5,
    "no files": '{"files": 5}',
    "files that are numbers": '{"files": [1, 2]}',
    "files of a number": '{"files": [[1, 2, 3]]}',
    "a null character": '{"files": [["a\\u0000", 2, "3"]]}',
    "half a character": '{"files": [["\\ud800", 2, "3"]]}',
    "another store": '{"files": [["http://127.0.0.1:9/x", 2, "3"]]}',
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_a_look_that_says_nothing_holds_nothing(look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.fleet.batching.looks.expand", pytest.fail)
    assert not Looks({}).holds(look, ["net.onnx"])


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("s3://bucket/nets/net.onnx", True),
        ("s3://bucket/nets/net.onnx.data", True),
        ("s3://bucket/nets/../secrets/key", False),
        ("s3://bucket/secrets/key", False),
        ("s3://other/nets/net.onnx", False),
        ("http://bucket/nets/net.onnx", False),
        ("zip://nets/net.onnx::s3://bucket/nets/x", False),
    ],
)
def test_a_ledger_names_no_store_of_its_own(
    path: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def expand(url: str, **_options: Any) -> list[Any]:
        seen.append(url)
        return []

    monkeypatch.setattr("serde.fleet.batching.looks.expand", expand)
    look = json.dumps({"files": [[path, 1, "1"]], "beside": ""})
    Looks({}).holds(look, ["s3://bucket/nets/net.onnx"])
    assert [Address.of(each) for each in seen] == ([Address.of(path)] if asked else [])
