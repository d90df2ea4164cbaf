"""Nodes by TVM's Python API: what they tell, their spans, their texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import ParseError, RelayError
from serde.relay.ir.registry import OpDef

VERSION = '#[version = "0.0.5"]\n'


def test_a_constant_gives_its_value_as_tvms_does() -> None:
    constant = relay.const([1, 2])
    assert constant.data.numpy().tolist() == [1, 2]
    assert type(constant.data.asnumpy()) is np.ndarray
    constant.data.numpy()[0] = 9
    assert constant.data.tolist() == [1, 2]
    assert relay.const(0, relay.scalar_type("int64")).data.dtype == np.int64


def test_variables_know_their_identity() -> None:
    x = relay.var("x")
    assert x.vid.name_hint == "x"
    assert x.same_as(x)
    assert not x.same_as(relay.var("x"))


def test_attributes_by_kind() -> None:
    call = relay.nn.conv2d(relay.var("x"), relay.var("w"), padding=1, groups=2)
    assert call.attrs.get_int_tuple("padding") == (1, 1, 1, 1)
    assert call.attrs.get_int("groups") == 2
    assert call.attrs.get_str("data_layout") == "NCHW"
    assert "strides" in call.attrs


def test_attributes_of_a_function_are_set_and_taken_away_in_copies() -> None:
    function = relay.Function([], relay.const(1))
    marked = function.with_attr("Inline", 1).with_attr({"a": "b", "c": 2})
    assert function.attrs == {}
    assert marked.attrs == {"Inline": 1, "a": "b", "c": 2}
    assert marked.without_attr("a").attrs == {"Inline": 1, "c": 2}
    assert marked.without_attr("none").attrs == marked.attrs
    assert function.with_attrs({"x": 1}).attrs == {"x": 1}


X, Y = relay.var("x", "float32"), relay.var("y", "float32")
COPIES: dict[str, tuple[Callable[..., Any], relay.Expr, dict[str, Any]]] = {
    "call": (relay.expr.CallWithFields, relay.add(X, Y), {"args": [Y, X]}),
    "callee": (relay.expr.CallWithFields, relay.add(X, Y), {"op": relay.op.get("subtract")}),
    "tuple": (relay.expr.TupleWithFields, relay.Tuple([X, Y]), {"fields": [Y]}),
    "field": (relay.expr.TupleGetItemWithFields, relay.TupleGetItem(relay.Tuple([X, Y]), 0),
              {"index": 1}),
    "let": (relay.expr.LetWithFields, relay.Let(X, Y, X), {"body": Y}),
    "if": (relay.expr.IfWithFields, relay.If(relay.const(True), X, Y), {"true_branch": Y}),
    "constant": (relay.expr.ConstantWithFields, relay.const(1), {"data": np.array(2)}),
    "variable": (relay.expr.VarWithFields, X, {"type_annotation": relay.scalar_type("int8")}),
    "function": (relay.function.FunctionWithFields, relay.Function([X, Y], X), {"body": Y}),
    "attributes": (relay.function.FunctionWithFields, relay.Function([X], X),
                   {"attrs": {"Inline": 1}}),
}  # fmt: skip


@pytest.mark.parametrize("case", COPIES)
def test_a_copy_has_the_given_fields_and_keeps_the_others(case: str) -> None:
    copy, node, fields = COPIES[case]
    assert copy(node) is node
    new = copy(node, **fields)
    assert new is not node
    assert type(new) is type(node)
    for name in type(node).__slots__:
        if name in fields:
            wanted = fields[name]
            assert (
                tuple(getattr(new, name)) == tuple(wanted)
                if isinstance(wanted, list)
                else np.array_equal(getattr(new, name), wanted)
            )
        elif name != "type":
            assert getattr(new, name) is getattr(node, name) or getattr(new, name) == getattr(
                node, name
            )


def test_a_copy_of_a_variable_may_take_another_name_and_place() -> None:
    span = relay.Span("source", 1, 1, 2, 2)
    renamed = relay.expr.VarWithFields(X, "z", span=span)
    assert renamed.name_hint == "z"
    assert renamed.span is span
    assert renamed.type_annotation == X.type_annotation
    with pytest.raises(RelayError, match="virtual devices"):
        relay.expr.VarWithFields(X, virtual_device=object())


def test_numbers_are_no_operands_of_infix_operators() -> None:
    for wrong in (lambda: X + 1, lambda: X * 2.0, lambda: X / 3):
        with pytest.raises(TypeError, match="const"):
            wrong()


# Spans.


def test_the_places_of_a_span() -> None:
    span = relay.Span(relay.SourceName("net"), 3, 4, 5, 6)
    assert span.source_name.name == "net"
    assert (span.line, span.end_line, span.column, span.end_column) == (3, 4, 5, 6)
    assert repr(span) == "net:3:5"
    assert span == relay.Span("net", 3, 4, 5, 6)
    assert span != relay.Span("net", 3, 4, 5, 7)
    assert len({span, relay.Span("net", 3, 4, 5, 6)}) == 1


def test_a_row_of_spans_names_the_first() -> None:
    spans = [relay.Span("a", 1, 1, 2, 2), relay.Span("b", 3, 3, 4, 4)]
    row = relay.SequentialSpan(spans)
    assert (row.source_name, row.line, row.column) == ("a", 1, 2)
    assert row.spans == tuple(spans)
    assert row == relay.SequentialSpan(spans)
    assert row != spans[0]


def _placed(node: relay.Call, name: str, line: int) -> relay.Call:
    span = relay.Span(relay.SourceName(name), line, line, 7, 7)
    return relay.Call(node.op, node.args, node.attrs, node.type_args, span)


def test_text_shows_places_but_not_mere_names_of_layers() -> None:
    inner = _placed(relay.exp(X), "first", 2)
    outer = relay.log(inner)
    outer.span = relay.Span("layer")
    assert str(relay.Function([X], outer)) == (
        "fn (%x: float32) {\n  %0 = exp(%x) /* span=first:2:7 */;\n  log(%0)\n}"
    )


# Texts.


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (relay.const(42, "int16"), "42i16"),
        (relay.const(3.0, "float64"), "3f64"),
        (relay.Tuple([]), "()"),
        (relay.op.get("nn.relu"), "nn.relu"),
        (relay.GlobalVar("f"), "@f"),
        (relay.add(X, Y), "free_var %x: float32;\nfree_var %y: float32;\nadd(%x, %y)"),
        (relay.Let(X, relay.const(1.0), X), "let %x: float32 = 1f;\n%x"),
        (relay.TupleGetItem(relay.Tuple([relay.const(1)]), 0), "%0 = (1,);\n%0.0"),
    ],
)
def test_str_is_the_text_without_header(expr: relay.Expr, text: str) -> None:
    assert str(expr) == text
    assert expr.astext(show_meta_data=False) == text
    assert expr.astext() == VERSION + text


def test_metadata_are_left_out_where_they_are_not_wanted() -> None:
    expr = relay.add(relay.const([1, 2]), relay.const([3, 4]))
    assert "#[metadata]" in expr.astext()
    assert str(expr) == "add(meta[relay.Constant][0], meta[relay.Constant][1])"


def test_an_annotation_takes_the_place_of_types() -> None:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.exp(relay.add(X, Y))))
    shown = mod.astext(
        annotate=lambda node: f" /* {node.op.name} */" if isinstance(node, relay.Call) else ""
    )
    assert "%0 = add(%x, %y) /* add */;\n  exp(%0) /* exp */" in shown
    assert "ty=" not in shown
    assert relay.exp(X).astext(False, lambda _node: "!") == "free_var %x: float32!;\nexp(%x)!"


@pytest.mark.parametrize("name", ["add", "nn.global_avg_pool2d", "qnn.quantize"])
def test_the_name_of_an_operator_is_an_expression(name: str) -> None:
    found = relay.parse_expr(name)
    assert isinstance(found, OpDef)
    assert found is relay.op.get(name)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("(let %a = 1; 3) + 2", "%0 = { let %a = 1; 3 }; add(%0, 2)"),
        ("add((let %a = 1; let %b = %a; %b), 2)",
         "%0 = { let %a = 1; let %b = %a; %b }; add(%0, 2)"),
        ("(%0 = exp(1f); let %a = %0; %a)", "let %a = exp(1f); %a"),
    ],
)  # fmt: skip
def test_lets_in_parentheses(text: str, same: str) -> None:
    relay.assert_structural_equal(relay.parse_expr(text), relay.parse_expr(same))


def test_a_let_that_is_an_operand_prints_in_parentheses() -> None:
    value = relay.Let(X, relay.const(1.0), X)
    expr = relay.add(value, value)
    assert str(expr) == "%0 = (\n  let %x: float32 = 1f;\n  %x\n);\nadd(%0, %0)"
    relay.assert_structural_equal(relay.parse_expr(expr.astext()), expr)


def test_names_in_parentheses_end_with_them() -> None:
    with pytest.raises(ParseError, match="not defined"):
        relay.parse_expr("(let %a = 1; %a) + %a")


def test_a_module_and_constants_that_a_text_names() -> None:
    first = relay.parse(f"{VERSION}def @f(%y: Tensor[(2), float32]) {{ negative(%y) }}")
    table = {"relay.Constant": [relay.const(np.array([1.5, 2.5], "float32"))]}
    body = "add(@f(%x), meta[relay.Constant][0])"
    text = f"{VERSION}def @main(%x: Tensor[(2), float32]) {{ {body} }}"
    mod = relay.parse(text, "net.txt", first, table)
    assert sorted(each.name_hint for each in mod.get_global_vars()) == ["f", "main"]
    result = relay.create_executor(mod=mod).evaluate()(np.array([1, 2], "float32"))
    np.testing.assert_array_equal(result, [0.5, 0.5])
    with pytest.raises(ParseError, match="no meta"):
        relay.parse(text, "net.txt", first, {"relay.Constant": []})


# Nodes and what they tell.

PLACE = relay.Span("layer", 3, 1)
GOLDEN = Path(__file__).parents[1] / "golden/tvm"


@pytest.mark.parametrize(
    "node",
    [
        relay.var("x", span=PLACE),
        relay.var("x", "int8", span=PLACE),
        relay.var("x", shape=(2,), span=PLACE),
        relay.const(1.5, span=PLACE),
        relay.const(2, "int8", PLACE),
        relay.const(relay.const(2.0, "float64").data, span=PLACE),
    ],
)
def test_variables_and_constants_have_a_place(node: relay.Expr) -> None:
    assert node.span is PLACE


def test_the_call_behind_several_results() -> None:
    halves = relay.split(relay.var("x", shape=(4, 6)), 2)
    assert halves.asobject() is halves.astuple() is halves[1].tuple_value
    for index in (2, -1):
        with pytest.raises(IndexError, match=f"field {index} of a tuple with 2 fields"):
            halves[index]


@pytest.mark.parametrize(
    "name", ["nn.conv2d", "nn.batch_norm", "where", "concatenate", "qnn.requantize", "zeros"]
)
def test_operands_of_an_operator(name: str) -> None:
    recorded = json.loads((GOLDEN / "relay_ops.json").read_text())[name]["inputs"]
    names = [each.strip("()").removesuffix(" tuple") for each in recorded]
    kinds = ["Tuple" if "tuple" in each else "Tensor" for each in recorded]
    op = relay.op.get(name)
    assert [(each.name, each.type_info) for each in op.arguments] == list(
        zip(names, kinds, strict=True)
    )
    assert op.num_inputs == len(names)
    assert op.description


def test_the_type_of_one_expression() -> None:
    x = relay.var("x", shape=(4, 6))
    untyped = relay.Call(relay.op.get("nn.relu"), [x])
    assert relay.transform.InferTypeLocal(untyped) == relay.TensorType((4, 6))
    whole = relay.transform.InferTypeLocal(relay.Function([x], untyped))
    assert str(whole) == "fn (Tensor[(4, 6), float32]) -> Tensor[(4, 6), float32]"
    pair = relay.transform.InferTypeLocal(relay.split(x, 2, axis=1))
    assert str(pair) == "(Tensor[(4, 3), float32], Tensor[(4, 3), float32])"


@pytest.mark.parametrize("name", ["max", "avg"])
@pytest.mark.parametrize(
    ("rank", "layout", "axes"), [(1, "NCW", (2,)), (1, "NWC", (1,)), (3, "NCDHW", (2, 3, 4))]
)
def test_global_pools(name: str, rank: int, layout: str, axes: tuple[int, ...]) -> None:
    data = np.random.default_rng(2).normal(size=(2, 3, 4, 5, 6)[: rank + 2]).astype("float32")
    build = getattr(relay.nn, f"global_{name}_pool{rank}d")
    pooled = build(relay.const(data), layout=layout)
    assert pooled.op.name == f"nn.adaptive_{name}_pool{rank}d"
    assert pooled.attrs.output_size == (1,) * rank
    reduce = {"max": np.max, "avg": np.mean}[name]
    found = relay.create_executor().evaluate(pooled)
    np.testing.assert_allclose(found, reduce(data, axes, keepdims=True), rtol=1e-6)
