"""Options of reading PyTorch programs that say more than the program does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir.model import RelayModel
from serde.torch.importer import to_relay
from serde.torch.model import Graph, Input, Node, Ref, TorchModel
from serde.torch.options import TorchImportOptions


def read(
    op: str, outputs: Sequence[str], report: Report | None = None, **options: Any
) -> RelayModel:
    """Return a program of one operator of somebody's own as Relay."""
    node = Node(op, "node", [("x", Ref("x")), ("factor", 2.0)], list(outputs))
    graph = Graph(["x"], [node], [Ref("x"), *map(Ref, outputs)])
    names = ["same", *outputs]
    model = TorchModel(
        graph, [Input("x", "x", ("n", 3), "float32")], names, {}, "pt2", ranges={"n": (2, 6)}
    )
    return to_relay(model, TorchImportOptions(**options), report or Report())


def test_a_converter_of_the_users() -> None:
    def scale(given: Sequence[Any], dtypes: Sequence[str]) -> Any:
        assert dtypes == ["float32", ""]
        return relay.multiply(given[0], relay.const(given[1], "float32"))

    model = read("mine::scale", ["y"], custom_convert_map={"mine::scale": scale})
    assert model.meta.outputs == ("same", "y")


@pytest.mark.parametrize(
    ("result", "outputs", "message"),
    [
        (lambda x: None, ["y"], "expected 1 expressions, found 0 results"),
        (lambda x: 3, ["y"], "expected 1 expressions, found 3"),
        (lambda x: [x, x], ["y"], "expected 1 expressions, found 2 results"),
        (lambda x: x, ["y", "z"], "expected 2 expressions, found 1 results"),
        (lambda x: x, [], "expected 0 expressions, found 1 results"),
    ],
    ids=["nothing", "number", "too many", "too few", "result of a write"],
)
def test_results_of_such_a_converter_that_do_not_fit_are_refused(
    result: Any, outputs: list[str], message: str
) -> None:
    given = {"mine::op": lambda inputs, dtypes: result(inputs[0])}
    with pytest.raises(OptionError, match=message):
        read("mine::op", outputs, custom_convert_map=given)


def test_expressions_of_such_a_converter_that_have_no_type_are_a_gap() -> None:
    given = {"mine::op": lambda inputs, dtypes: relay.reshape(inputs[0], (5, 7, 11, 0, 0, 0))}
    with pytest.raises(UnsupportedModelError, match="mine::op"):
        read("mine::op", ["y"], custom_convert_map=given)


@pytest.mark.parametrize(
    ("shape", "note"),
    [
        ((4, 3), None),
        (("m", 3), None),
        ((7, 3), "axis 0 of x is 7, but the program was exported for lengths from 2 to 6"),
        ((4, "m"), "axis 1 of x is m, but the program was exported for 3"),
    ],
)
def test_lengths_that_the_program_was_not_exported_for_are_refused(
    shape: tuple[Any, ...], note: str | None
) -> None:
    def convert(report: Report, *allow: str) -> None:
        read(
            "mine::relu",
            ["y"],
            report,
            input_shapes={"x": shape},
            custom_convert_map={"mine::relu": lambda inputs, dtypes: relay.nn.relu(inputs[0])},
            allow=frozenset(allow),
        )

    report = Report()
    convert(report, "other-lengths")
    assert [each.reason.partition(":")[0] for each in report.allowed] == ([note] if note else [])
    if note:
        with pytest.raises(UnsupportedModelError, match=note):
            convert(Report())
    else:
        convert(Report())
