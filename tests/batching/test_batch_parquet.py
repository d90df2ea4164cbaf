"""The outcomes of a batch as Parquet, read by others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from support.batch_outcomes import many_outcomes, real_outcomes

from serde.errors import MissingDependency, OptionError
from serde.fleet.batching.records import Outcome

parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

import serde.fleet.batching.parquet  # noqa: E402
from serde.fleet.batching.parquet import write_parquet  # noqa: E402


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return list(many_outcomes(tmp_path_factory.mktemp("many"), 3000))


@pytest.fixture(scope="module")
def table(many: list[Outcome], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "outcomes.parquet"
    assert write_parquet(path, many) == len(many)
    return path


def test_each_outcome_is_a_row(table: Path, many: list[Outcome]) -> None:
    rows = parquet.read_table(table).to_pylist()
    assert len(rows) == len(many)
    for row, outcome in zip(rows, many, strict=True):
        for name in ("name", "status", "exit_code", "error", "seconds", "memory", "worker"):
            assert row[name] == getattr(outcome, name)
        assert row["sources"] == list(outcome.sources)
        assert row["started"] == datetime.fromtimestamp(outcome.started, timezone.utc)
        issues = outcome.report.get("issues", ())
        assert row["issues"] == [dict(issue) for issue in issues]
        counts = outcome.report.get("before", {})
        assert {each["op"]: each["count"] for each in row["operators_before"]} == counts
        assert json.loads(row["facts"]) == outcome.report.get("facts", {})


def test_columns_are_typed_and_told_of(table: Path) -> None:
    found = parquet.read_schema(table)
    kinds = {field.name: str(field.type) for field in found}
    assert kinds["started"] == "timestamp[us, tz=UTC]"
    assert kinds["bytes_read"] == kinds["memory"] == kinds["nodes"] == "int64"
    assert kinds["seconds"] == "double"
    assert kinds["issues"].startswith("list<element: struct<op: string, node: string, reason")
    assert found.metadata[b"serde.layout"] == b"1"
    assert parquet.ParquetFile(table).metadata.num_row_groups == 2


@pytest.mark.wide  # Which has duckdb.
def test_duckdb_counts_what_waits_for_an_operator(table: Path, many: list[Outcome]) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(
        f"select issue.op, count(distinct name) from "
        f"(select name, unnest(issues) as issue from '{table}') group by 1"
    ).fetchall()
    wanted: dict[str, set[str]] = {}
    for outcome in many:
        for issue in outcome.report.get("issues", ()):
            wanted.setdefault(issue["op"], set()).add(outcome.name)
    assert dict(found) == {op: len(names) for op, names in wanted.items()}


def test_pandas_reads_it(table: Path, many: list[Outcome]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(table)
    done = sum(outcome.seconds for outcome in many if outcome.status == "done")
    assert frame.groupby("status").seconds.sum()["done"] == pytest.approx(done)
    assert str(frame.started.dtype) == "datetime64[us, UTC]"


@pytest.mark.parametrize("text", ["\udcff\ud800", "\x00", "\u202e", "a" * 100_000])
def test_any_name_can_be_written(text: str, tmp_path: Path) -> None:
    found = real_outcomes(tmp_path)["gate"]
    issue = {"op": text, "node": text, "reason": text, "hint": None}
    report = {**found.report, "issues": [issue], "notes": [text], "before": {text: 1}}
    outcome = replace(found, name=text, sources=(text,), error=text, report=report)
    write_parquet(tmp_path / "a.parquet", [outcome])
    (row,) = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    wanted = text.encode(errors="backslashreplace").decode()
    assert row["name"] == row["error"] == row["issues"][0]["node"] == wanted
    assert row["sources"] == row["notes"] == [wanted]


def test_numbers_that_are_not_finite_stay_numbers(tmp_path: Path) -> None:
    found = real_outcomes(tmp_path)["small"]
    verdict = {
        **{"output": "y", "target": None, "shapes": ((), (2, 3)), "dtypes": ("float32", "int8")},
        **{"max_abs": float("nan"), "max_rel": float("inf"), "cosine": 0.0, "atol": 0.0},
        **{"rtol": 0.0, "passed": False, "informative": True, "distance": None, "own": None},
        **{"factor": None, "remark": ""},
    }
    near = {"cosine": 0.9, "worst_cosine": 0.8, "snr": 40.0, "error": 0.1, "agreement": None}
    accuracy = [{"output": "y", "passed": True, "before": near, "after": {**near, "snr": 30.0}}]
    report = {**found.report, "verdicts": [verdict], "accuracy": accuracy}
    outcome = replace(found, report=report)
    write_parquet(tmp_path / "a.parquet", [outcome])
    (row,) = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    (read,) = row["verdicts"]
    assert read["max_abs"] != read["max_abs"]
    assert read["max_rel"] == float("inf")
    assert (read["source_shape"], read["target_shape"]) == ([], [2, 3])
    assert row["verdict"] == "differs"
    assert row["accuracy"] == accuracy


def test_nothing_is_half_written(many: list[Outcome], tmp_path: Path) -> None:
    def broken() -> object:
        yield from many[:2500]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(tmp_path / "a.parquet", broken())
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_none_is_refused(many: list[Outcome], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        write_parquet(tmp_path / "none" / "a.parquet", many)


def test_a_release_for_another_numpy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise ImportError(f"{name} requires NumPy 9")

    monkeypatch.setattr(serde.fleet.batching.parquet, "require", refuse)
    serde.fleet.batching.parquet.schema.cache_clear()
    with pytest.raises(MissingDependency, match="pyarrow requires NumPy 9"):
        write_parquet(tmp_path / "a.parquet", [])
