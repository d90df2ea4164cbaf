"""Operators of a format that are Relay's by other names, said as data and read both ways."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.coreml.mlprogram.ops.table import OPS as PROGRAM
from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS
from serde.errors import RelayError, Unsupported
from serde.mxnet.ops.table import OPS as MXNET
from serde.nnef.ops.table import OPS as NNEF
from serde.onnx.ops.table import TABLES
from serde.relax.ops.table import OPS as RELAX
from serde.relay.ir.expr import Call, Expr
from serde.torch.ops.table import OPS as TORCH
from serde.walk.converter import Converter, innermost
from serde.walk.import_context import ImportContext
from serde.walk.pairs import Pair, one_of, pair, reads, writes
from serde.walk.table import ConverterTable
from serde.walk.takes import ANY, Takes

CHANGES = {name: (1, 6, 13) for name in ("Act", "Cast", "Erf", "Gelu", "Join", "LRN", "Pow", "Top")}
X, Y = (relay.var(name, shape=(2, 3, 4, 5), dtype="float32") for name in "xy")


@pytest.fixture
def table() -> ConverterTable:
    return ConverterTable("toy", changes=CHANGES)


def read(
    table: ConverterTable, name: str, /, *inputs: Expr | None, **attrs: Any
) -> tuple[list[Expr], list[str]]:
    report = Report()
    found = table.run_import(ImportContext(1, "n"), name, inputs, attrs, report)
    return list(found), [issue.reason for issue in report.issues]


class Target(SimpleNamespace):
    """Writes a node as what it was told."""

    def emit(self, op: str, *inputs: Any, **attributes: Any) -> Any:
        return op, inputs, attributes

    def emit_tuple(self, op: str, *inputs: Any, outputs: int, **attributes: Any) -> Any:
        return op, inputs, attributes, outputs


def write(table: ConverterTable, node: Expr, *operands: Any) -> Any:
    assert isinstance(node, Call)
    target: Any = Target(result=node.checked_type)
    return table.run_export(target, node, operands, 1)


# Both directions.

LRN = pair(
    "LRN",
    "nn.lrn",
    "nsize",
    alpha=1e-4,
    knorm=2.0,
    renamed={"nsize": "size", "knorm": "bias"},
    fixed={"axis": 1},
)


def test_reads_by_the_names_and_defaults_of_the_format(table: ConverterTable) -> None:
    table.pairs(LRN)
    (found,), reasons = read(table, "LRN", X, nsize=3)
    assert not reasons
    assert relay.structural_equal(found, relay.nn.lrn(X, 3, axis=1, bias=2.0, alpha=1e-4))
    (found,), _ = read(table, "LRN", X, nsize=5, knorm=1.0)
    assert relay.structural_equal(found, relay.nn.lrn(X, 5, axis=1, bias=1.0, alpha=1e-4))


def test_writes_by_the_names_of_the_format(table: ConverterTable) -> None:
    table.pairs(LRN)
    node = relay.nn.lrn(X, 3, axis=1, bias=4.0, alpha=0.5)
    assert write(table, node, "x") == ("LRN", ("x",), {"nsize": 3, "alpha": 0.5, "knorm": 4.0})


def test_a_call_with_another_value_of_what_is_fixed_is_not_written(table: ConverterTable) -> None:
    table.pairs(LRN)
    with pytest.raises(Unsupported, match="axis: takes 1; found 2"):
        write(table, relay.nn.lrn(X, 3, axis=2), "x")


def test_an_attribute_that_is_not_said_must_hold_its_default(table: ConverterTable) -> None:
    table.pairs(LRN)
    with pytest.raises(Unsupported, match=r"beta: takes 0\.75; found 0\.5"):
        write(table, relay.nn.lrn(X, 3, beta=0.5), "x")


def test_what_is_taken_stands_in_for_what_is_fixed(table: ConverterTable) -> None:
    taken = Takes(approximate=ANY)
    table.pairs(pair("Gelu", "serde.gelu", fixed={"approximate": "tanh"}, takes=taken))
    assert write(table, relay.serde.gelu(X), "x") == ("Gelu", ("x",), {})
    (found,), _ = read(table, "Gelu", X)
    assert relay.structural_equal(found, relay.serde.gelu(X, approximate="tanh"))


def test_constants_are_written_and_not_read(table: ConverterTable) -> None:
    table.pairs(writes("Act", ("nn.relu", "copy"), constants={"kind": "relu"}))
    assert write(table, relay.nn.relu(X), "x") == ("Act", ("x",), {"kind": "relu"})
    assert write(table, relay.copy(X), "x") == ("Act", ("x",), {"kind": "relu"})
    assert table.importer("Act", 1) is None


def test_one_direction_registers_nothing_for_the_other(table: ConverterTable) -> None:
    table.pairs(reads(("Erf", "Act"), "erf"))
    assert table.imported() == [("Act", 1), ("Erf", 1)]
    assert not table.exported()


def test_versions(table: ConverterTable) -> None:
    table.pairs(pair("Erf", "erf", since=(6, 13)), pair("Gelu", "serde.gelu", since=13, target=6))
    assert table.imported() == [("Erf", 6), ("Erf", 13), ("Gelu", 13)]
    assert table.exported() == {"erf": 6, "serde.gelu": 6}
    with pytest.raises(Unsupported, match="needs version 6, target is 1"):
        write(table, relay.erf(X), "x")


def test_tuples_of_operands_are_so_many_inputs(table: ConverterTable) -> None:
    table.pairs(pair("Join", "concatenate", axis=1))
    (found,), reasons = read(table, "Join", X, Y, X)
    assert not reasons
    assert relay.structural_equal(found, relay.concatenate([X, Y, X], axis=1))
    assert write(table, found, ("x", "y", "x")) == ("Join", ("x", "y", "x"), {"axis": 1})


def test_tuples_of_results(table: ConverterTable) -> None:
    table.pairs(writes("Top", "nn.batch_norm", "epsilon", fixed={"axis": 1}))
    five = [relay.var(f"v{i}", shape=(3,)) for i in range(4)]
    node = relay.nn.batch_norm(X, *five, epsilon=0.5).tuple_value
    op, inputs, attributes, outputs = write(table, node, *"xgbmv")
    assert (op, inputs, attributes, outputs) == ("Top", tuple("xgbmv"), {"epsilon": 0.5}, 3)


def test_a_table_has_words_for_operands_and_its_own_way_to_write() -> None:
    def emit(
        ctx: Any, op: str, operands: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"op": op, **operands, **attributes}

    named = ConverterTable("named", operands=("x", "y"), emit=emit)
    named.pairs(
        pair("pow", "power"),
        pair("erf", "erf"),
        pair("take", "serde.take", operands="x at", axis=0),
    )
    assert write(named, relay.power(X, Y), 1, 2) == {"op": "pow", "x": 1, "y": 2}
    operands = [named.importer(name, 1).operands for name in ("pow", "erf", "take")]  # type: ignore[union-attr]
    assert operands == [("x", "y"), ("x",), ("x", "at")]


def test_converters_stand_where_the_pairs_do(table: ConverterTable) -> None:
    table.pairs(pair("Erf", "erf"))
    found = table.importer("Erf", 1), table.exporter("erf", 1)
    assert [each.function.__module__ for each in found if each] == [__name__] * 2


# Binding.


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({}, "attribute nsize is missing"),
        ({"nsize": "big"}, "attribute nsize: expected int, found 'big'"),
        ({"nsize": 3, "size": 3}, "unknown attribute size=3"),
        ({"nsize": 3, "alpha": "big"}, "attribute alpha: expected float, found 'big'"),
    ],
)
def test_faults_are_those_of_a_function(
    table: ConverterTable, attrs: dict[str, Any], reason: str
) -> None:
    table.pairs(LRN)
    assert read(table, "LRN", X, **attrs)[1] == [reason]


def test_inputs_are_counted(table: ConverterTable) -> None:
    table.pairs(pair("Pow", "power"))
    assert read(table, "Pow", X)[1] == ["expected at least 2 inputs, found 1"]
    assert read(table, "Pow", X, X, X)[1] == ["expected at most 2 inputs, found 3"]
    assert read(table, "Pow", X, None)[1] == ["input 1 is left out"]


def test_ignored_attributes_and_inputs(table: ConverterTable) -> None:
    table.pairs(reads("Erf", "erf", ignored="a b", uses=1), reads("Act", "nn.relu", ignored=("a",)))
    assert read(table, "Erf", X, Y, a=1, b=2)[1] == []
    assert read(table, "Act", X, a=1, b=2)[1] == ["unknown attribute b=2"]


def test_fewer_values_than_relay_has(table: ConverterTable) -> None:
    table.pairs(pair("Gelu", "serde.gelu", approximate=one_of("tanh")))
    (found,), _ = read(table, "Gelu", X)
    assert relay.structural_equal(found, relay.serde.gelu(X, approximate="tanh"))
    assert read(table, "Gelu", X, approximate="none")[1] == [
        "attribute approximate: expected Literal['tanh'], found 'none'"
    ]


def test_what_has_a_default_other_than_none_takes_no_none(table: ConverterTable) -> None:
    """Relay's axis may be none: then the tensor is one row."""
    table.pairs(reads("Top", "serde.take", axis=0), reads("Cast", "repeat", "repeats", axis=None))
    types = {
        name: each.attributes["axis"].annotation
        for name in ("Top", "Cast")
        if (each := table.importer(name, 1)) is not None
    }
    assert types == {"Top": "int", "Cast": "int | None"}


# What cannot be true is refused.

REFUSED: dict[str, tuple[Pair, str]] = {
    "operator of the format": (pair("Gone", "erf"), "toy has no operator Gone"),
    "version": (pair("Erf", "erf", since=2), "Erf did not change at version 2"),
    "target": (pair("Erf", "erf", target=2), "no operator changed at version 2"),
    "operator of Relay": (pair("Erf", "erff"), "Erf: no Relay operator is called erff"),
    "second operator": (pair("Erf", ("erf", "erff")), "Erf: no Relay operator is called erff"),
    "attribute": (pair("Erf", "erf", alpha=1.0), "Erf: erf has no attribute alpha"),
    "required attribute": (pair("Erf", "erf", "alpha"), "Erf: erf has no attribute alpha"),
    "fixed attribute": (pair("Erf", "erf", fixed={"a": 1}), "Erf: erf has no attribute a"),
    "renamed attribute": (
        pair("LRN", "nn.lrn", "nsize", renamed={"nsize": "length"}),
        "LRN: nn.lrn has no attribute length",
    ),
    "renamed and not there": (
        pair("LRN", "nn.lrn", renamed={"nsize": "size"}),
        "LRN has no attribute nsize",
    ),
    "operands": (pair("Erf", "erf", operands="x y"), "Erf: erf has 1 operands"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_true_is_refused(table: ConverterTable, case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(RelayError, match=message):
        table.pairs(given)


def test_a_pair_is_registered_once(table: ConverterTable) -> None:
    table.pairs(reads("Erf", "erf"))
    with pytest.raises(RelayError, match="Erf-1 is imported twice"):
        table.pairs(reads("Erf", "erf"))
    table.pairs(writes("Erf", "erf"))
    with pytest.raises(RelayError, match="erf is exported twice from 1"):
        table.pairs(writes("Act", "erf"))


def test_a_default_that_is_no_value_is_refused_when_it_is_read(table: ConverterTable) -> None:
    table.pairs(reads("LRN", "nn.lrn", size="three"))
    with pytest.raises(RelayError, match="LRN: attribute size: expected int, found 'three'"):
        table.importer("LRN", 1)


# Converters that differ by what is bound beforehand, or by the names of what they take.


def convert(ctx: ImportContext, x: Expr, y: Expr, *, op: str, factor: float = 1.0) -> Expr:
    """What `op` makes of two tensors, times a number."""
    made: Expr = getattr(relay, op)(x, y)
    return relay.multiply(made, relay.const(factor))


def test_what_is_bound_beforehand_is_no_attribute(table: ConverterTable) -> None:
    table.imports("Pow")(partial(convert, op="power"))
    (found,), _ = read(table, "Pow", X, Y, factor=2.0)
    assert relay.structural_equal(found, relay.multiply(relay.power(X, Y), relay.const(2.0)))
    assert read(table, "Pow", X, Y, op="add")[1] == ["unknown attribute op='add'"]


def test_other_words_for_what_a_converter_takes(table: ConverterTable) -> None:
    words = {"left": "x", "scale": "factor"}
    table.imports("Pow", renamed=words)(partial(convert, op="power"))
    converter = table.importer("Pow", 1)
    assert converter is not None
    assert converter.operands == ("left", "y")
    (found,), _ = read(table, "Pow", X, Y, scale=2.0)
    assert relay.structural_equal(found, relay.multiply(relay.power(X, Y), relay.const(2.0)))
    assert read(table, "Pow", X, Y, factor=2.0)[1] == ["unknown attribute factor=2.0"]


def export_without_bounds(ctx: Any, a: str) -> str:
    return a


def test_ignored_attributes_of_an_exporter_hold_what_they_may(table: ConverterTable) -> None:
    table.exports("clip", ignored=("a_min", "a_max"))(export_without_bounds)
    assert write(table, relay.clip(X, 0.0, 6.0), "x") == "x"


def test_an_exporter_that_ignores_what_is_no_attribute_is_refused(table: ConverterTable) -> None:
    with pytest.raises(RelayError, match="export_without_bounds: clip has no attribute least"):
        table.exports("clip", ignored=("least",))(export_without_bounds)


# All that the formats say.


def all_importers() -> list[Any]:
    tables = {
        **{each.format_name: each for each in TABLES.values()},
        **{each.format_name: each for each in (PROGRAM, LAYERS, DIRECT, MXNET, NNEF, RELAX, TORCH)},
    }
    return [pytest.param(each, id=name) for name, each in tables.items()]


@pytest.mark.parametrize("given", all_importers())
def test_defaults_are_values_of_their_attributes(given: ConverterTable) -> None:
    """Those of pairs are looked at when a converter is made, which here all are."""
    for name, version in given.imported():
        converter = given.importer(name, version)
        assert isinstance(converter, Converter)
        assert innermost(converter.function).__module__.startswith("serde.")
