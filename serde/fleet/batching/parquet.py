"""The outcomes of a batch as one Parquet file: a row a model, in typed columns.

What a conversion reports of nodes and outputs are lists of structures, which pandas, Polars,
DuckDB and Spark read; figures that differ from format to format are JSON, in ``facts``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any as AnyValue, Final

from serde._version import __version__
from serde.core.optional import require
from serde.errors import MissingDependency
from serde.fleet.batching.findings import verdict
from serde.fleet.batching.records import Outcome
from serde.io.atomic import atomic_group

__all__ = ["LAYOUT", "schema", "write_parquet"]

LAYOUT: Final = 1
"""Number of the layout of columns, in the file's metadata as ``serde.layout``."""

_ROWS: Final = 2000
"""Outcomes in a row group: some megabytes, however many there are in all."""

_COPIED: Final = (
    "name", "target", "status", "exit_code", "error", "content", "bytes_read", "bytes_written",
    "seconds", "memory", "attempts", "worker", "reused",
)  # fmt: skip
_MICROSECONDS: Final = 1_000_000


def write_parquet(path: str | os.PathLike[str], outcomes: Iterable[Outcome]) -> int:
    """Write outcomes to a Parquet file, which appears whole or not at all.

    Args:
        path: The file.
        outcomes: The outcomes; taken as they are written, some thousand at a time.

    Returns:
        The number of rows.

    Raises:
        MissingDependency: pyarrow is not installed, or not for this NumPy.
        OptionError: `path` cannot be a new file.
    """
    arrow, parquet = _require_arrow()
    layout = schema()
    rows = 0
    remaining = iter(outcomes)
    with (
        atomic_group([path]) as (staged,),
        parquet.ParquetWriter(staged, layout, compression="zstd") as writer,
    ):
        while batch := [_row(outcome) for outcome in islice(remaining, _ROWS)]:
            writer.write_table(_table(arrow, batch, layout))
            rows += len(batch)
    return rows


def _table(arrow: AnyValue, rows: list[dict[str, AnyValue]], layout: AnyValue) -> AnyValue:
    """Return rows as a table; what of their texts UTF-8 does not have is spelled out."""
    try:
        return arrow.Table.from_pylist(rows, schema=layout)
    except UnicodeEncodeError:
        return arrow.Table.from_pylist([_encodable(row) for row in rows], schema=layout)


def _encodable(value: AnyValue) -> AnyValue:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    return value


def _require_arrow() -> tuple[AnyValue, AnyValue]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        return require("pyarrow"), require("pyarrow.parquet")
    except MissingDependency:
        raise
    except ImportError as error:  # A release for another NumPy says so like this.
        raise MissingDependency(
            "pyarrow", extra="batch", reason=f"that which is there: {error}"
        ) from error


@cache
def schema() -> AnyValue:
    """Return the columns, as a ``pyarrow.Schema``.

    Raises:
        MissingDependency: pyarrow is not installed, or not for this NumPy.
    """
    arrow = _require_arrow()[0]
    text, count, number, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()
    texts = arrow.list_(text)
    issues = _structures(arrow, op=text, node=text, reason=text, hint=text)
    counts = _structures(arrow, op=text, count=count)
    verdicts = _structures(
        arrow, output=text, target=text, source_shape=arrow.list_(count),
        target_shape=arrow.list_(count), source_dtype=text, target_dtype=text, max_abs=number,
        max_rel=number, cosine=number, atol=number, rtol=number, passed=flag, informative=flag,
        distance=number, own=number, factor=number, remark=text,
    )  # fmt: skip
    figures = ("cosine", "worst_cosine", "snr", "error", "agreement")
    nearness = arrow.struct([(each, number) for each in figures])
    accuracy = _structures(arrow, output=text, passed=flag, before=nearness, after=nearness)
    columns = {
        "name": text,
        "sources": texts,
        "target": text,
        "status": text,
        "exit_code": arrow.int32(),
        "error": text,
        "content": text,
        "bytes_read": count,
        "bytes_written": count,
        "seconds": number,
        "memory": count,
        "attempts": arrow.int32(),
        "worker": text,
        "started": arrow.timestamp("us", tz="UTC"),
        "reused": flag,
        "title": text,
        "nodes": count,
        "parameters": count,
        "verdict": text,
        "issues": issues,
        "allowed": issues,
        "fallbacks": issues,
        "notes": texts,
        "stages": _structures(arrow, name=text, seconds=number),
        "operators_before": counts,
        "operators_after": counts,
        "verdicts": verdicts,
        "engines": texts,
        "accuracy": accuracy,
        "facts": text,
    }
    metadata = {"serde.layout": str(LAYOUT), "serde.version": __version__}
    return arrow.schema(list(columns.items()), metadata=metadata)


def _structures(arrow: AnyValue, **fields: AnyValue) -> AnyValue:
    """Return the type of a list of structures."""
    return arrow.list_(arrow.struct(list(fields.items())))


def _row(outcome: Outcome) -> dict[str, AnyValue]:
    """Return the columns of one outcome."""
    report = outcome.report
    facts = report.get("facts") or {}
    started = round(outcome.started * _MICROSECONDS) if outcome.started else None
    return {
        **{column: getattr(outcome, column) for column in _COPIED},
        "sources": list(outcome.sources),
        "started": started,
        "title": report.get("title") or None,
        "nodes": report.get("nodes"),
        "parameters": facts.get("parameters"),
        "verdict": verdict(report),
        **{
            column: [dict(each) for each in report.get(column) or ()]
            for column in ("issues", "allowed", "fallbacks", "stages", "accuracy")
        },
        "notes": list(report.get("notes") or ()),
        **{
            f"operators_{side}": [
                {"op": op, "count": count} for op, count in sorted((report.get(side) or {}).items())
            ]
            for side in ("before", "after")
        },
        "verdicts": [_verdict(each) for each in report.get("verdicts") or ()],
        "engines": list(report.get("engines") or ()),
        "facts": json.dumps(facts, default=str, sort_keys=True),
    }


def _verdict(found: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return the verdict on one output, source and target in columns of their own."""
    rest = {key: value for key, value in found.items() if key not in ("shapes", "dtypes")}
    sides = zip(("source", "target"), found["shapes"], found["dtypes"], strict=True)
    for side, shape, dtype in sides:
        rest |= {f"{side}_shape": list(shape), f"{side}_dtype": dtype}
    return rest
