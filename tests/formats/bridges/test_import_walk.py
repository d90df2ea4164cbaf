"""The walk into Relay that all formats share, by a format of tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.core.limits import Limits, spending
from serde.core.report import Issue, Report
from serde.core.weights import ArrayWeight
from serde.errors import (
    FormatError,
    LimitError,
    OptionError,
    Unsupported,
    UnsupportedModelError,
    raise_if_refused,
)
from serde.relay.ir.expr import Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.walk.assembly import Assembly
from serde.walk.import_context import ImportContext
from serde.walk.importer import Graph, ImportWalk, Node
from serde.walk.scope import Scope
from serde.walk.table import ConverterTable

OPS = ConverterTable("tuples")
Names = Scope[str, Expr]


@dataclass(frozen=True)
class Port:
    """An input as the format declares it."""

    name: str
    shape: tuple[int | str, ...] | None = (2,)


@dataclass(frozen=True)
class Step:
    """A node of the format: its operator, outputs, inputs, and perhaps a graph inside."""

    op: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    body: Body | None = None


@dataclass(frozen=True)
class Body:
    """A graph of the format."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]


class Context(ImportContext):
    """A context that knows the graph inside its node."""

    body: Body | None = None


class Walk(ImportWalk[Body, Step, Names]):
    """The hooks of the format."""

    def declare(self, entry: Any, shape: Any, dtype: str | None, scope: Names) -> Var | None:
        if dtype == "bool":
            raise Unsupported("bool is no dtype of tuples")
        lengths = entry.shape if shape is None else shape
        if lengths is None:
            return None
        variable = Var(entry.name, TensorType(lengths, dtype or "float32"))
        scope.define(entry.name, variable)
        return variable

    def read(self, graph: Body, scope: Names) -> Graph[Step]:
        nodes = [Node(each.op, f"{each.op}_{i}", each.outputs, each)
                 for i, each in enumerate(graph.steps)]  # fmt: skip
        return Graph(graph.inputs, nodes, graph.outputs)

    def convert(self, node: Node[Step], scope: Names, label: str) -> Sequence[Expr]:
        ctx = Context(1, label, len(node.outputs), walk=self, scope=scope)
        ctx.body = node.source.body
        return self.call(OPS, ctx, node.op, [scope.find(name) for name in node.source.inputs], {})


@OPS.imports("add")
def import_add(ctx: Context, x: Expr, y: Expr) -> Expr:
    return relay.add(x, y)


@OPS.imports("here")
def import_here(ctx: Context) -> list[Expr]:
    """The outputs of the graph inside, which sees the values around it."""
    return ctx.subgraph(ctx.body, label="body")


@OPS.imports("scan")
def import_scan(ctx: Context, first: Expr, rows: Expr) -> list[Expr]:
    row = TensorType(ctx.static_shape(rows)[1:], ctx.type(rows).dtype)
    params = [Var("state", first.type), Var("row", row)]
    function, captures = ctx.closure(ctx.body, params, label="body")
    found = call("serde.scan", (first,), (rows,), tuple(captures), body=function)
    return [TupleGetItem(found, 0)]


def walk_over(
    body: Body, *ports: Port, weights: dict[str, Any] | None = None, **options: Any
) -> tuple[RelayModel, Report]:
    report, names = Report(), [each.name for each in ports]
    walk, scope = Walk(report, Assembly(names)), Names(source="net.tuples")
    for name, value in (weights or {}).items():
        scope.define(name, walk.assembly.tensor(ArrayWeight(np.float32(value)), name))
    shapes, dtypes = options.get("shapes", {}), options.get("dtypes", {})
    inputs = walk.inputs(ports, scope, shapes, dtypes, weights=weights or ())
    outputs = walk.run(walk.read(body, scope), scope)
    raise_if_refused(report)
    meta = ModelMeta(tuple(names), body.outputs)
    return walk.assembly.model(inputs, outputs, meta, scope.expressions()), report


SUM = Body((), (Step("add", ("y",), ("x", "w")),), ("y",))


def test_weights_are_named_and_values_known_by_name() -> None:
    model, _ = walk_over(SUM, Port("x"), weights={"w": [1, 2]})
    assert [each.name_hint for each in model.main.params] == ["x", "w"]
    assert list(model.params) == ["w"]
    assert model.values["y"] is model.main.body


def test_scalar_weights_are_constants() -> None:
    model, _ = walk_over(SUM, Port("x"), weights={"w": 3})
    assert not model.params
    assert isinstance(model.values["w"], Constant)


@pytest.mark.parametrize(
    ("ports", "options", "message"),
    [
        ([Port("x"), Port("x")], {}, "a second input is called 'x'"),
        ([Port("")], {}, "an input without a name"),
    ],
)
def test_faults_of_inputs(ports: list[Port], options: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=f"net.tuples.*{message}"):
        walk_over(SUM, *ports, **options)


@pytest.mark.parametrize(
    ("ports", "options", "message"),
    [
        ([Port("x"), Port("z")], {"shapes": {"": (2,)}}, "a shape without a name, but .* x, z"),
        ([Port("x"), Port("z")], {"dtypes": {"": "int8"}}, "a dtype without a name, but"),
        ([Port("x")], {"shapes": {"u": (2,)}}, "no input is called u; inputs: x"),
        ([Port("x")], {"dtypes": {"w": "int8"}}, "w is a weight of the model, not an input"),
        ([Port("x", None)], {}, r"the shape of x is missing; give --input-shape x:1,3,224,224"),
        ([Port("x", None), Port("z", None)], {}, "the shapes of x, z are missing"),
    ],
)
def test_options_that_fit_no_input(
    ports: list[Port], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        walk_over(SUM, *ports, weights={"w": 1}, **options)


def test_shape_without_a_name_is_that_of_the_only_input() -> None:
    model, _ = walk_over(SUM, Port("x", None), weights={"w": 1}, shapes={"": ("N", 3)})
    assert repr(model.inputs()[0].type) == "Tensor[(N, 3), float32]"


def test_inputs_that_relay_has_not_are_gaps() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        walk_over(SUM, Port("x"), weights={"w": 1}, dtypes={"x": "bool"})
    assert caught.value.report.issues == [Issue("input", "x", "bool is no dtype of tuples")]


def test_gap_is_recorded_once_and_under_its_path() -> None:
    inner = Body((), (Step("lost", ("a",), ("x",)), Step("add", ("b",), ("a", "x"))), ("b",))
    outer = Body((), (Step("here", ("y",), (), inner), Step("add", ("z",), ("y", "x"))), ("z",))
    with pytest.raises(UnsupportedModelError) as caught:
        walk_over(outer, Port("x"))
    assert caught.value.report.issues == [Issue("lost", "here_0/body/lost_0", "no importer")]


def test_output_that_a_converter_does_not_give() -> None:
    body = Body((), (Step("add", ("y", "more"), ("x", "x")),), ("more",))
    with pytest.raises(UnsupportedModelError) as caught:
        walk_over(body, Port("x"))
    assert caught.value.report.issues == [
        Issue("add", "add_0", "output 1 is used but not converted")
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Body((), (), ("y",)), "output 'y' is given by no node or input"),
        (Body((), (*SUM.steps, *SUM.steps), ("y",)), "y: the name is given twice"),
        (Body((), (Step("here", ("y",), (), Body(("a",), (), ("a",))),), ("y",)),
         "here_0/body: expected 0 inputs, found 1"),
    ],
)  # fmt: skip
def test_faults_of_graphs(body: Body, message: str) -> None:
    with pytest.raises(FormatError, match=f"net.tuples.*{message}"):
        walk_over(body, Port("x"), weights={"w": 1})


def nested(depth: int) -> Body:
    body = Body((), (Step("add", ("y",), ("x", "x")),), ("y",))
    for _ in range(depth):
        body = Body((), (Step("here", ("y",), (), body),), ("y",))
    return body


def test_graphs_inside_see_what_is_around_them_to_a_depth() -> None:
    depth = Limits().depth
    model, _ = walk_over(nested(depth), Port("x"))
    assert "add(%x, %x)" in model.mod.astext()
    with pytest.raises(LimitError, match=f"--limit depth={depth + 1} allows it"):
        walk_over(nested(depth + 1), Port("x"))


@pytest.mark.wide
def test_graphs_that_are_read_again_and_again_are_counted() -> None:
    body = Body((), (Step("add", ("y",), ("x", "x")),), ("y",))
    for _ in range(14):
        steps = (Step("here", ("y",), (), body), Step("here", ("z",), (), body))
        body = Body((), steps, ("z",))
    with pytest.raises(LimitError, match="--limit nodes="), spending({}):
        walk_over(body, Port("x"))


def test_function_of_a_loop_captures_values_and_weights_once() -> None:
    step = Body(("s", "r"), (
        Step("add", ("a",), ("s", "r")),
        Step("add", ("b",), ("a", "x")),
        Step("add", ("c",), ("b", "x")),
        Step("add", ("d",), ("c", "w")),
    ), ("d",))  # fmt: skip
    loop = Body((), (Step("scan", ("y",), ("first", "rows"), step),), ("y",))
    ports = Port("x"), Port("first"), Port("rows", (3, 2))
    model, _ = walk_over(loop, *ports, weights={"w": [5, 6]})
    item = model.main.body
    assert isinstance(item, TupleGetItem)
    body = item.tuple_value.attrs["body"]  # type: ignore[attr-defined]
    assert isinstance(body, Function)
    assert [each.name_hint for each in body.params] == ["state", "row", "x", "w"]
    assert isinstance(body.body, Tuple)
    x, first, rows = (np.float32(each) for each in ([1, 2], [10, 20], [[1, 1], [2, 2], [3, 3]]))
    found = relay.create_executor("debug", mod=model.mod).evaluate()(
        x, first, rows, np.float32([5, 6])
    )
    np.testing.assert_array_equal(np.asarray(found), first + rows.sum(0) + 3 * (2 * x + [5, 6]))
