"""What a table of converters is told is checked when it is told it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from serde.errors import RelayError
from serde.onnx.ops import TABLE, TABLES
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import get
from serde.walk.table import ConverterTable


@pytest.fixture
def table() -> ConverterTable:
    return ConverterTable("toy", changes={"Relu": (1, 6, 13), "Gone": (1,)})


def importer(ctx: Any, x: Expr) -> Expr:
    return x


def export_softmax(ctx: Any, data: Any, *, axis: int) -> Any:
    return data


def expand_softmax(data: Expr, *, axis: int) -> Expr:
    return data


def without(ctx: Any, data: Any) -> Any:
    return data


def of_two(ctx: Any, a: Any, b: Any) -> Any:
    return a


def of_none(ctx: Any) -> Any:
    return None


def with_more(ctx: Any, data: Any, *, axis: int, beta: float) -> Any:
    return data


def without_annotation(ctx: Any, data: Any, *, beta) -> Any:  # type: ignore[no-untyped-def]
    return data


def with_bias(ctx: Any, data: Any, bias: Any = None, *, axis: int) -> Any:
    return data


def expand_without(data: Expr) -> Expr:
    return data


def expand_more(data: Expr, *, axis: int, beta: float) -> Expr:
    return data


Told = Callable[[ConverterTable], Any]

REFUSED: dict[str, tuple[Told, str]] = {
    "unknown operator": (lambda t: t.imports("Rleu")(importer), "toy has no operator Rleu"),
    "version without a change": (
        lambda t: t.imports("Relu", since=7)(importer),
        r"toy: Relu did not change at version 7 \(it did at 1, 6, 13\)",
    ),
    "one of several versions": (
        lambda t: t.imports("Relu", since=(6, 14))(importer),
        "Relu did not change at version 14",
    ),
    "imported twice": (
        lambda t: (t.imports("Relu", since=(1, 6))(importer), t.imports("Relu", since=6)(importer)),
        "Relu-6 is imported twice",
    ),
    "unknown operator refused": (
        lambda t: t.refuses("Rleu", reason="why"),
        "toy has no operator Rleu",
    ),
    "refused twice": (
        lambda t: (t.refuses("Gone", reason="a"), t.refuses("Gone", reason="b")),
        "Gone is refused twice",
    ),
    "unknown Relay operator": (
        lambda t: t.exports("nn.sofmax")(export_softmax),
        "export_softmax: no Relay operator is called nn.sofmax",
    ),
    "target without a change": (
        lambda t: t.exports("nn.softmax", since=12)(export_softmax),
        "no operator changed at version 12",
    ),
    "unknown attribute": (
        lambda t: t.exports("nn.softmax")(with_more),
        "with_more: nn.softmax has no attribute beta",
    ),
    "unknown attribute without an annotation": (
        lambda t: t.exports("nn.softmax")(without_annotation),
        "without_annotation: nn.softmax has no attribute beta",
    ),
    "unknown attribute beside one bound beforehand": (
        lambda t: t.exports("nn.softmax")(partial(with_more, axis=1)),
        "with_more: nn.softmax has no attribute beta",
    ),
    "too many operands": (
        lambda t: t.exports("nn.softmax")(of_two),
        "of_two: nn.softmax has 1 operands, the function takes 2",
    ),
    "too few operands": (
        lambda t: t.exports("nn.softmax")(of_none),
        "of_none: nn.softmax has 1 operands, the function takes 0",
    ),
    "exported twice": (
        lambda t: (t.exports("nn.softmax")(without), t.exports("nn.softmax")(without)),
        "nn.softmax is exported twice from 1",
    ),
    "expansion of nothing": (
        lambda t: t.expands("nn.sofmax")(expand_softmax),
        "no Relay operator is called nn.sofmax",
    ),
    "expansion without an attribute": (
        lambda t: t.expands("nn.softmax")(expand_without),
        "expand_without: nn.softmax has the attribute axis, too",
    ),
    "expansion with more": (
        lambda t: t.expands("nn.softmax")(expand_more),
        "expand_more: nn.softmax has no attribute beta",
    ),
    "expanded twice": (
        lambda t: (
            t.expands("nn.softmax")(expand_softmax),
            t.expands("nn.softmax")(expand_softmax),
        ),
        "nn.softmax is expanded twice",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_true_is_refused(table: ConverterTable, case: str) -> None:
    told, message = REFUSED[case]
    with pytest.raises(RelayError, match=message):
        told(table)


def test_what_is_true_is_accepted(table: ConverterTable) -> None:
    table.imports("Relu", since=(1, 13))(importer)
    table.exports("nn.softmax", since=6)(export_softmax)
    table.exports("nn.softmax", since=13)(with_bias)
    table.exports(get("nn.log_softmax"))(export_softmax)
    table.expands("nn.softmax")(expand_softmax)
    assert table.imported() == [("Relu", 1), ("Relu", 13)]
    assert table.exported() == {"nn.log_softmax": 1, "nn.softmax": 6}


def test_a_table_without_facts_takes_any_operator_of_its_format() -> None:
    table = ConverterTable("toy")
    table.imports("Whatever")(importer)
    assert table.imported() == [("Whatever", 1)]


def test_what_exporters_write_may_be_other_than_relay() -> None:
    table = ConverterTable("toy", targets={14}, written={"pad"})
    table.exports("pad", since=14)(with_more)
    with pytest.raises(RelayError, match="no operator is called pda"):
        table.exports("pda")(with_more)
    with pytest.raises(RelayError, match="no operator changed at version 15"):
        table.exports("pad", since=15)(with_more)


def test_a_clash_with_a_converter_that_is_not_loaded_yet_is_refused() -> None:
    with pytest.raises(RelayError, match="onnx: Relu-14 is imported twice"):
        TABLE.imports("Relu", since=14)(importer)


def test_the_runtimes_own_operators_are_those_that_it_says() -> None:
    pybind = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    from serde.onnx.versions import MICROSOFT_OPERATORS

    schemas = pybind.get_all_operator_schema()
    known = {each.name for each in schemas if each.domain == "com.microsoft"}
    read = {name for name, _ in TABLES["com.microsoft"].imported()}
    assert read <= MICROSOFT_OPERATORS
    assert known - MICROSOFT_OPERATORS == set()
