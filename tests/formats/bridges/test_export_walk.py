"""The walk from Relay, with a toy format that has nothing but its hooks and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import Array, ArrayWeight, Weight
from serde.errors import ConverterBug, Unsupported, UnsupportedModelError
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, If, Span, Tuple, TupleGetItem, Var
from serde.relay.ir.leaves import leaves
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.transform import InferType
from serde.walk.export_context import ExportContext, Writing
from serde.walk.exporter import ExportWalk, Known, name_outputs
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable

TABLE = ConverterTable("toy")


@dataclass(frozen=True)
class Value:
    """A name in the toy's graph."""

    name: str
    type: Any = None
    data: Array | None = field(default=None, compare=False)


class Context(ExportContext[Value]):
    """Writes lines such as ``relu: x -> relu``."""

    def __init__(self) -> None:
        super().__init__(TABLE, 1, Scope())
        self.lines: list[Any] = []
        self.count = 0

    def emit(self, op: str, *inputs: Value) -> Value:
        self.count += 1
        value = Value(f"%{self.count}", self.result)
        self.lines.append((self.source, op, [each.name for each in inputs], value.name))
        return value

    def const(self, value: Any, dtype: Any = None) -> Value:
        data = np.array(value, dtype)
        return Value(str(data.tolist()), TensorType(data.shape, data.dtype), data)

    def type(self, x: Value) -> TensorType:
        if not isinstance(x.type, TensorType):
            raise ConverterBug(x.name)
        return x.type

    def typed(self, x: Value, type_: Any) -> Value:
        return replace(x, type=type_)

    @contextmanager
    def block(self, step: str) -> Iterator[list[Any]]:
        around, self.lines = self.lines, []
        try:
            with self.inside(self.scope.inner(step)):
                yield self.lines
        finally:
            self.lines = around

    def lengths(self, values: Sequence[int]) -> Value:
        return self.const(values, "int64")

    def axis_length(self, x: Value, axis: int) -> Value:
        return self.emit(f"length{axis}", x)

    def join_lengths(self, parts: Sequence[Value]) -> Value:
        return self.emit("join", *parts)

    def combine_lengths(self, operator: str, one: Value, other: Value) -> Value:
        return self.emit(operator, one, other)


class Walk(ExportWalk[Value]):
    """The hooks of the toy."""

    _context: Context

    def parameter(self, name: str, type_: Any, weight: Weight | None) -> Value:
        if type_.dtype == "float64":
            raise Unsupported("the toy has no float64")
        return Value(name, type_)

    @contextmanager
    def branch(self, scope: Scope, values: Known[Value]) -> Iterator[Known[Value]]:
        with super().branch(scope, values) as seen, self._context.block(""):
            yield seen

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> Any:
        return [*self._context.lines, [each.name for each in results]]

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[Any]
    ) -> Sequence[Value]:
        value = self._context.emit("if", condition)
        self._context.lines[-1] = (*self._context.lines[-1], *branches)
        return [value]


@TABLE.exports("tanh", "negative", "exp")
def export_unary(ctx: Context, x: Value) -> Value:
    return ctx.emit("unary", x)


@TABLE.exports("add")
def export_add(ctx: Context, a: Value, b: Value) -> Value:
    return ctx.emit("binary", a, b)


@TABLE.exports("nn.dense")
def export_dense(
    ctx: Context, x: Value, w: Value, *bias: Value, units: int | None, out_dtype: str
) -> Value:
    return ctx.emit("dense", x, w, *bias)


@TABLE.exports("sigmoid")
def export_sigmoid(ctx: Context, x: Value) -> Value:
    return ctx.spell(lambda a: relay.negative(relay.add(a, relay.exp(a))), x)


@TABLE.exports("broadcast_to")
def export_broadcast(ctx: Context, x: Value, *, shape: tuple[Any, ...]) -> Value:
    return ctx.emit("broadcast", x, ctx.shape(shape))


@TABLE.exports("sqrt")
def export_sqrt(ctx: Context, x: Value) -> Value:
    raise Unsupported("the toy draws no roots")


@TABLE.exports("serde.loop")
def export_loop(
    ctx: Context,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> Writing[list[Value]]:
    number = Value("i", TensorType((), "int64"))
    with ctx.block(f"{ctx.source}/body") as lines:
        found = leaves((yield from ctx.body(body, [number, *state, *captures])))
        lines.append([each.name for each in found])
    value = ctx.emit("loop", *state)
    ctx.lines[-1] = (*ctx.lines[-1], lines)
    return [value]


def vector(name: str = "x") -> Var:
    return relay.var(name, shape=(3,))


def write(body: Expr | IRModule, **params: Array) -> tuple[list[Any], Report]:
    """Return the lines that a body becomes, and the report; the last line names the results."""
    mod = InferType()(body if isinstance(body, IRModule) else IRModule.from_expr(body))
    weights: dict[str, Weight] = {name: ArrayWeight(each) for name, each in params.items()}
    model = RelayModel(mod, weights, ModelMeta(("x",), ("y",)))
    context, report = Context(), Report()
    walk = Walk(model, TABLE, context, report)
    walk.declare()
    found = walk.write()
    return [*context.lines, [each.name for each in found]], report


def gaps(body: Expr | IRModule) -> list[tuple[str, str]]:
    return [(issue.node, issue.reason) for issue in write(body)[1].issues]


def test_names_of_nodes_inputs_and_constants() -> None:
    x = vector()
    one = relay.tanh(x)
    one.span = Span("first")
    lines, report = write(relay.add(one, relay.const(np.ones(3, np.float32))))
    assert lines == [
        ("first", "unary", ["x"], "%1"),
        ("add", "binary", ["%1", "[1.0, 1.0, 1.0]"], "%2"),
        ["%2"],
    ]
    assert not report.issues


def test_a_bias_goes_into_the_layer_before_it() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    body = relay.nn.bias_add(relay.nn.dense(x, w), relay.var("b", shape=(4,)))
    lines, _ = write(body, w=np.ones((4, 3), np.float32), b=np.ones(4, np.float32))
    assert lines == [("dense", "dense", ["x", "w", "b"], "%1"), ["%1"]]


def test_a_branch_holds_what_it_alone_needs() -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), vector()
    shared = relay.exp(x)
    lines, _ = write(If(c, relay.negative(shared), relay.tanh(shared)))
    assert lines == [
        ("exp", "unary", ["x"], "%1"),
        (
            "if",
            "if",
            ["c"],
            "%4",
            [("negative", "unary", ["%1"], "%2"), ["%2"]],
            [("tanh", "unary", ["%1"], "%3"), ["%3"]],
        ),
        ["%4"],
    ]


def test_a_function_goes_where_it_is_called() -> None:
    x, a = vector(), vector("a")
    half, body = GlobalVar("half"), Function([a], relay.tanh(a))
    main = Function([x], relay.negative(Call(half, [x])))
    mod = IRModule({GlobalVar("main"): main, half: body})
    assert write(mod)[0] == [
        ("tanh", "unary", ["x"], "%1"),
        ("negative", "unary", ["%1"], "%2"),
        ["%2"],
    ]


def test_an_expression_that_is_spelled_out_has_the_name_of_its_node() -> None:
    lines, _ = write(relay.sigmoid(vector()))
    assert lines == [
        ("sigmoid", "unary", ["x"], "%1"),
        ("sigmoid", "binary", ["x", "%1"], "%2"),
        ("sigmoid", "unary", ["%2"], "%3"),
        ["%3"],
    ]


def test_lengths_are_computed_once_where_all_see_them() -> None:
    x = relay.var("x", shape=("N", 3))
    row = vector("row")
    one = relay.broadcast_to(relay.tanh(row), x.type.shape)
    two = relay.broadcast_to(relay.exp(row), x.type.shape)
    lines, _ = write(Function([x, row], relay.add(relay.add(one, two), x)))
    assert [line[1] for line in lines[:-1]].count("length0") == 1


def looped(x: Expr, body: Expr, state: Var, name: str = "lp") -> Expr:
    i = Var("i", TensorType((), "int64"))
    function = Function([i, state], Tuple([relay.const(True), body]))
    limit = relay.const(2, "int64")
    loop = call("serde.loop", limit, None, (x,), (), body=function, span=Span(name))
    return TupleGetItem(loop, 0)


def test_a_body_is_written_when_its_converter_asks() -> None:
    x, a = vector(), vector("a")
    lines, _ = write(looped(x, relay.tanh(a), a))
    assert lines == [
        ("lp", "loop", ["x"], "%2", [("tanh", "unary", ["x"], "%1"), ["True", "%1"]]),
        ["%2"],
    ]


def test_gaps_have_paths_and_one_line_a_cause() -> None:
    c, x, a = relay.var("c", shape=(), dtype="bool"), vector(), vector("a")
    branch = If(c, relay.tanh(relay.sqrt(x)), x, Span("gate"))
    after = relay.negative(looped(branch, relay.sqrt(a), a))
    assert gaps(after) == [("gate/then/sqrt", "the toy draws no roots")]
    assert gaps(looped(x, relay.sqrt(a), a)) == [("lp/body/sqrt", "the toy draws no roots")]


def test_a_body_that_is_not_reached_shows_the_operators_that_are_missing() -> None:
    x, a = vector(), vector("a")
    found = gaps(looped(relay.sqrt(x), relay.erf(a), a))
    assert found == [("sqrt", "the toy draws no roots"), ("lp/body/erf", "no exporter")]


def test_an_input_that_is_refused_is_one_line() -> None:
    x = relay.var("x", shape=(3,), dtype="float64")
    assert gaps(relay.tanh(relay.negative(x))) == [("x", "the toy has no float64")]


@pytest.mark.wide
@pytest.mark.parametrize("depth", [3, 3000])
def test_depth_costs_no_recursion(depth: int) -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), vector()
    value: Expr = relay.negative(x)
    for _ in range(depth):
        value = If(c, relay.exp(value), x)
    lines, report = write(Function([c, x], value))
    assert not report.issues
    for _ in range(depth):
        assert len(lines) == 2
        lines = lines[0][4]
        if len(lines) == 3:
            lines = [lines[0], lines[2]]


@pytest.mark.wide
@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"format": "onnx"}, 31),
        ({"format": "coreml", "minimum_deployment_target": "iOS17"}, 44),
        ({"format": "coreml", "minimum_deployment_target": "iOS14"}, 32),
    ],
)
def test_what_no_file_can_hold_is_one_refusal(options: dict[str, Any], most: int) -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), vector()
    value: Expr = relay.negative(x)
    for depth in range(1, 1001):
        value = If(c, relay.exp(value), x)
        if depth == most:
            serde.export_model(IRModule({"main": Function([c, x], value)}), **options)
    with pytest.raises(UnsupportedModelError, match=f"more than {most} subgraphs") as caught:
        serde.export_model(IRModule({"main": Function([c, x], value)}), **options)
    assert len(caught.value.report.issues) == 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("m-symbol.json", {}),
        ("m.onnx", {}),
        ("m.mlpackage", {"compute_precision": "float32"}),
        ("m.mlmodel", {"minimum_deployment_target": "iOS14"}),
    ],
)
def test_a_conditional_may_give_a_tuple_of_tuples(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    c, x = relay.var("c", shape=(1,), dtype="bool"), vector()
    one = Tuple([relay.exp(x), Tuple([x, relay.tanh(x)])])
    two = Tuple([x, Tuple([relay.negative(x), x])])
    mod = IRModule({"main": Function([c, x], If(relay.reshape(c, ()), one, two))})
    model = serde.to_relay((InferType()(mod), {}), format="relay")
    serde.from_relay(model, path=tmp_path / name, **options)
    files = sorted(tmp_path.iterdir())
    back = serde.to_relay(files if len(files) > 1 else files[0])
    values = np.array([0.5, -1, 2], np.float32)
    run = relay.create_executor("graph", mod=back.mod).evaluate()
    wanted = {True: [np.exp(values), values, np.tanh(values)], False: [values, -values, values]}
    for flag, arrays in wanted.items():
        given = np.array([flag]).astype(back.main.params[0].checked_type.dtype)
        np.testing.assert_allclose(list(run(given, values)), arrays, rtol=1e-6)


@pytest.mark.parametrize("format_name", ["onnx", "mxnet", "coreml"])
def test_a_body_that_takes_something_from_around_is_refused(format_name: str) -> None:
    x, y, a = vector(), vector("y"), vector("a")
    mod = InferType()(IRModule({"main": Function([x, y], looped(x, relay.add(a, y), a))}))
    with pytest.raises(UnsupportedModelError, match="a body takes y from around it"):
        serde.from_relay(serde.to_relay((mod, {}), format="relay"), format=format_name)


@pytest.mark.parametrize("format_name", ["onnx", "mxnet", "coreml"])
def test_a_function_that_calls_itself_is_refused(format_name: str) -> None:
    x, a = vector(), vector("a")
    c, b = (relay.var(name, shape=(), dtype="bool") for name in "cb")
    again = GlobalVar("again", relay.FuncType([a.checked_type, b.checked_type], a.checked_type))
    body = Function([a, b], If(b, relay.exp(Call(again, [a, b])), a), a.checked_type)
    mod = IRModule({again: body, GlobalVar("main"): Function([x, c], Call(again, [x, c]))})
    with pytest.raises(UnsupportedModelError, match="calls itself"):
        serde.from_relay(serde.to_relay((InferType()(mod), {}), format="relay"), format=format_name)


@pytest.mark.parametrize("depth", [2, 300])
def test_loops_inside_each_other(depth: int) -> None:
    a = vector(f"a{depth}")
    body: Expr = relay.tanh(a)
    for level in range(depth - 1, 0, -1):
        around = vector(f"a{level}")
        body, a = looped(around, body, a, f"lp{level}"), around
    x = vector()
    lines, report = write(looped(x, body, a, "lp0"))
    assert not report.issues
    for _ in range(depth):
        (name, op, _inputs, _output, lines), _results = lines
        assert (name[:2], op) == ("lp", "loop")
    assert lines[0][0] == "tanh"


def test_outputs_are_renamed_or_copied() -> None:
    copied: list[tuple[str, str]] = []

    def copy(value: Value, name: str) -> str:
        copied.append((value.name, name))
        return f"copy of {value.name}"

    values = [Value("a"), Value("x"), Value("a")]
    renamed = name_outputs(values, ["p", "q", "r"], lambda value: value.name, {"a"}, copy)
    assert copied == [("x", "q"), ("a", "r")]
    assert renamed == {"a": "p", "copy of x": "q", "copy of a": "r"}
