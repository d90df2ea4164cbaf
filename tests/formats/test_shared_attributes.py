"""Attributes that converters share: a dataclass in a signature stands for its fields."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr
from serde.report import Report
from serde.walk.context import TypedContext
from serde.walk.import_context import ImportContext
from serde.walk.table import ConverterTable

TABLE = ConverterTable("test")


@dataclass(frozen=True, kw_only=True)
class Line:
    """Two attributes; the first one must be given."""

    slope: float
    shift: float = 0.0


@TABLE.imports("Line")
def import_line(ctx: ImportContext, x: Expr, *, line: Line, twice: bool = False) -> Expr:
    found = relay.add(relay.multiply(x, relay.const(line.slope)), relay.const(line.shift))
    return relay.add(found, found) if twice else found


@dataclass(frozen=True, kw_only=True)
class Bounds:
    a_min: float
    a_max: float


@TABLE.exports("clip")
def export_clip(ctx: TypedContext[str], x: str, *, bounds: Bounds) -> str:
    return f"{bounds.a_min} <= {x} <= {bounds.a_max}"


X = relay.var("x", shape=(2,), dtype="float32")


def test_importer_gets_the_fields_as_one_object() -> None:
    report = Report()
    attrs = {"slope": 2.0, "twice": True}
    (found,) = TABLE.run_import(ImportContext(1), "Line", [X], attrs, report)
    line = relay.add(relay.multiply(X, relay.const(2.0)), relay.const(0.0))
    assert not report.issues
    assert relay.structural_equal(found, relay.add(line, line))


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({}, "attribute slope is missing"),
        ({"slope": "steep"}, "attribute slope: expected float, found 'steep'"),
        ({"slope": 1.0, "line": 1}, "unknown attribute line=1"),
    ],
)
def test_faults_are_those_of_the_fields(attrs: dict[str, object], reason: str) -> None:
    report = Report()
    TABLE.run_import(ImportContext(1, "n"), "Line", [X], attrs, report)
    assert [issue.reason for issue in report.issues] == [reason]


def test_exporter_gets_the_fields_as_one_object() -> None:
    call = relay.clip(X, 0.0, 6.0)
    assert isinstance(call, Call)
    assert TABLE.run_export(None, call, ["x"], 1) == "0.0 <= x <= 6.0"
