"""Attributes that converters share: a dataclass in a signature stands for its fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import Array, OpDef
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


@dataclass(frozen=True, kw_only=True)
class Window:
    size: int
    step: int = 1


def _windows_type(x: relay.TensorType, *, window: Window, keep: bool) -> relay.TensorType:
    return relay.TensorType((x.shape[0] * window.size + window.step,), x.dtype)


def _windows_body(x: Expr, *, size: int, **_: object) -> Expr:
    return relay.tile(x, (size,))


def _windows(x: Array, *, window: Window = Window(size=3, step=2), keep: bool = True) -> Array:
    return np.zeros(len(x) * window.size + window.step, x.dtype)


def test_operator_has_the_fields_as_attributes() -> None:
    found = OpDef("test.windows", _windows, _windows_type, (), decompose=_windows_body)
    assert {each.name: each.default for each in found.attributes.values()} == {
        "size": 3,
        "step": 2,
        "keep": True,
    }
    type_ = relay.TensorType((4,), "float32")
    assert found.infer(type_, **found.bind({"size": 5})).shape == (22,)
    assert found.kernel(np.ones(4), size=5, step=2, keep=True).shape == (22,)
    assert found.decompose is not None
    assert found.decompose(X, size=2, step=1, keep=True).type.shape == (4,)


def test_expansion_gets_the_fields_as_one_object() -> None:
    table = ConverterTable("test")

    @table.expands("clip")
    def expand_clip(data: Expr, *, bounds: Bounds) -> Expr:
        return relay.minimum(
            relay.maximum(data, relay.const(bounds.a_min)), relay.const(bounds.a_max)
        )

    body = table.expansion("clip")
    assert body is not None
    wanted = relay.minimum(relay.maximum(X, relay.const(0.0)), relay.const(6.0))
    assert relay.structural_equal(body(X, a_min=0.0, a_max=6.0), wanted)
