"""TVM's analyses: what an expression holds, whether it has a form, what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError

VERSION = '#[version = "0.0.5"]\n'


def parse(text: str) -> relay.Expr:
    return relay.parse_expr(text, infer=True)


def module(text: str) -> relay.IRModule:
    return relay.fromtext(VERSION + text)


CHAIN = """
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32],
          %v: Tensor[(4, 4, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %v, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1]);
  %3 = add(%2, %0);
  %4 = split(%3, indices_or_sections=2, axis=1);
  %5 = %4.0;
  %6 = %4.1;
  multiply(%5, %6)
}
"""


# Walks.


def names(nodes: Any) -> list[str]:
    return [each.name_hint for each in nodes]


VARIABLES = {
    "free": ("free_var %a: float32; free_var %b: float32; add(%b, %a)", "b a", "", "b a"),
    "function": (
        "free_var %c: float32; fn (%a: float32, %b: float32) { add(add(%a, %c), %b) }",
        "c",
        "a b",
        "a b c",
    ),
    "let": (
        "free_var %x: float32; let %y = exp(%x); let %z = log(%y); add(%z, %x)",
        "x",
        "y z",
        "y x z",
    ),
    "shadow": ("fn (%a: float32) { let %a = exp(%a); %a }", "", "a a", "a a"),
    "callee first": ("free_var %f: fn (float32) -> float32; free_var %x: float32; %f(%x)",
                     "f x", "", "f x"),
    "match": ("free_var %p: (float32, float32); match (%p) { (%a, %b) => add(%a, %b) }",
              "p", "a b", "p a b"),
    "branches": (
        "free_var %c: bool; free_var %t: float32; free_var %e: float32;"
        " if (%c) { %t } else { %e }",
        "c t e", "", "c t e",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VARIABLES)
def test_variables_come_in_the_order_in_which_they_are_met(case: str) -> None:
    text, free, bound, all_ = VARIABLES[case]
    expr = relay.parse_expr(text)
    assert names(relay.analysis.free_vars(expr)) == free.split()
    assert names(relay.analysis.bound_vars(expr)) == bound.split()
    assert names(relay.analysis.all_vars(expr)) == all_.split()


def test_every_node_is_visited_once_after_what_it_needs() -> None:
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    expr = relay.add(shared, relay.log(shared))
    seen: list[relay.Expr] = []
    relay.analysis.post_order_visit(expr, seen.append)
    exp, log, add = (relay.op.get(name) for name in ("exp", "log", "add"))
    assert seen == [add, exp, x, shared, log, expr.args[1], expr]


def test_a_deep_chain_is_walked_without_recursion() -> None:
    x = relay.var("x", shape=(2,))
    expr: relay.Expr = x
    for _ in range(5000):
        expr = relay.exp(expr)
    count = 0

    def visit(_node: relay.Expr) -> None:
        nonlocal count
        count += 1

    relay.analysis.post_order_visit(expr, visit)
    assert count == 5002  # the calls, the variable and the operator
    assert relay.analysis.well_formed(expr)


@pytest.mark.parametrize(
    ("text", "dtypes"),
    [
        ('fn (%x: Tensor[(2), int8]) { cast(%x, dtype="float16") }', {"int8", "float16"}),
        ("fn (%x: (float32, Tensor[(2), uint8])) { %x.1 }", {"float32", "uint8"}),
        ("fn (%x: int64) { less(%x, 1i64) }", {"int64", "bool"}),
    ],
)
def test_dtypes_of_all_tensors(text: str, dtypes: set[str]) -> None:
    assert relay.analysis.all_dtypes(parse(text)) == dtypes


# Forms.


def _bound_twice() -> relay.Expr:
    x = relay.var("x", "float32")
    return relay.Let(x, relay.const(1.0), relay.Let(x, relay.const(2.0), x))


def _used_outside() -> relay.Expr:
    x = relay.var("x", "float32")
    return relay.Tuple([relay.Let(x, relay.const(1.0), x), x])


def _one_parameter_of_two() -> relay.Expr:
    x = relay.var("x", "float32")
    return relay.Tuple([relay.Function([x], x), relay.Function([x], x)])


def _parameter_twice() -> relay.Expr:
    x = relay.var("x", "float32")
    return relay.Function([x, x], x)


@pytest.mark.parametrize(
    "build", [_bound_twice, _used_outside, _one_parameter_of_two, _parameter_twice]
)
def test_what_is_not_well_formed(build: Any) -> None:
    assert not relay.analysis.well_formed(build())


@pytest.mark.parametrize("text", [v[0] for v in VARIABLES.values()] + [CHAIN])
def test_what_is_well_formed(text: str) -> None:
    value = module(text) if text is CHAIN else relay.parse_expr(text)
    assert relay.analysis.well_formed(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1f", True), ("(1, 2)", True), ("(1, (2, 3f))", True), ("add(1, 2)", False),
     ("free_var %x: int32; (1, %x)", False)],
)  # fmt: skip
def test_constants(text: str, expected: bool) -> None:
    assert relay.analysis.check_constant(relay.parse_expr(text)) is expected


# Counts.


def test_operators_are_counted() -> None:
    assert relay.analysis.list_op_freqs(module(CHAIN)) == {
        "nn.conv2d": 2, "nn.relu": 1, "add": 1, "split": 1, "multiply": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("operators", "count"),
    [(["nn.conv2d"], 2), (["nn.relu"], 1), (["nn.conv2d", "nn.relu", "add"], 4), (["exp"], 0),
     (["split", "multiply"], 2), ([], 0)],
)  # fmt: skip
def test_layers_of_the_longest_chain(operators: list[str], count: int) -> None:
    mod = module(CHAIN)
    assert relay.analysis.count_layers(mod, operators) == count
    assert relay.analysis.count_layers(mod["main"], valid_ops=operators) == count


def test_layers_side_by_side_count_as_one() -> None:
    x = relay.var("x", shape=(2, 2))
    left, right = relay.nn.dense(x, x), relay.nn.dense(relay.exp(x), x)
    assert relay.analysis.count_layers(relay.add(left, right), ["nn.dense"]) == 1
    assert relay.analysis.count_layers(relay.nn.dense(left, right), ["nn.dense"]) == 2


def _shaped(*shapes: tuple[int, ...]) -> list[relay.Var]:
    return [relay.var(f"p{i}", shape=shape) for i, shape in enumerate(shapes)]


def _macs(name: str, shapes: list[tuple[int, ...]], **attrs: Any) -> int:
    call = getattr(relay.nn, name)(*_shaped(*shapes), **attrs)
    count: int = relay.analysis.get_total_mac_number(call)
    return count


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "count"),
    [
        ("conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"kernel_size": (3, 3), "channels": 4},
         4 * 6 * 6 * 3 * 3 * 3),
        ("conv2d", [(2, 4, 5, 5), (8, 2, 1, 1)], {"kernel_size": (1, 1), "groups": 2},
         2 * 8 * 5 * 5 * 2),
        ("conv2d", [(1, 8, 8, 3), (3, 3, 3, 4)],
         {"kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWIO"},
         4 * 6 * 6 * 3 * 3 * 3),
        ("conv2d_transpose", [(1, 3, 4, 4), (3, 5, 2, 2)],
         {"kernel_size": (2, 2), "strides": (2, 2), "channels": 5}, 5 * 8 * 8 * 2 * 2 * 3),
        ("dense", [(7, 5), (3, 5)], {}, 7 * 5 * 3),
        ("batch_matmul", [(2, 7, 5), (2, 3, 5)], {}, 2 * 7 * 5 * 3),
        ("relu", [(2, 3)], {}, 0),
    ],
)  # fmt: skip
def test_multiplications_are_counted(
    name: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], count: int
) -> None:
    assert _macs(name, shapes, **attrs) == count


def test_multiplications_of_several_layers_add_up_and_a_shared_one_counts_once() -> None:
    x, w = _shaped((2, 3), (3, 3))
    product = relay.nn.dense(x, w)
    assert relay.analysis.get_total_mac_number(relay.add(product, product)) == 18
    assert relay.analysis.get_total_mac_number(relay.nn.dense(product, w)) == 36


def test_multiplications_need_lengths_but_no_types() -> None:
    x = relay.var("x", shape=(relay.Any(), 3))
    w = relay.var("w", shape=(4, 3))
    with pytest.raises(RelayError, match="known shape"):
        relay.analysis.get_total_mac_number(relay.nn.dense(x, w))
    assert relay.analysis.get_total_mac_number(relay.nn.dense(relay.var("x"), w)) == 0


def _fake(between: Any, count: int = 1) -> relay.IRModule:
    inputs = [relay.var(f"x{i}", shape=(4, 4), dtype="int8") for i in range(count)]
    scale, zero = relay.const(0.5), relay.const(0)
    values = [relay.qnn.op.dequantize(x, scale, zero) for x in inputs]
    return relay.IRModule.from_expr(relay.qnn.op.quantize(between(*values), scale, zero))


@pytest.mark.parametrize(
    ("between", "count", "expected"),
    [
        (lambda a, b: relay.nn.dense(a, b), 2, {"nn.dense": 1}),
        (lambda a: relay.reshape(relay.transpose(a), (2, 8)), 1, {"transpose": 1, "reshape": 1}),
        (lambda *x: relay.concatenate(x, axis=1), 3, {"concatenate": 1}),
        (lambda a: a, 1, {}),
        (lambda a: relay.add(relay.exp(a), relay.exp(relay.log(a))), 1,
         {"add": 1, "exp": 2, "log": 1}),
    ],
)  # fmt: skip
def test_operators_between_dequantised_and_quantised(
    between: Any, count: int, expected: dict[str, int]
) -> None:
    assert relay.analysis.list_fake_quantized_op_freqs(_fake(between, count)) == expected


def test_operators_on_floats_are_not_fake_quantised() -> None:
    assert relay.analysis.list_fake_quantized_op_freqs(module(CHAIN)) == {}


# Parts.

PARTS = {
    0: "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])",
    1: "%0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);\nnn.relu(%0)",
}


@pytest.mark.parametrize("number", PARTS)
def test_an_intermediate_value_as_a_module(number: int) -> None:
    found = relay.analysis.extract_intermdeiate_expr(module(CHAIN), number)
    expected = module(
        "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {"
        f"{PARTS[number]} }}"
    )
    relay.assert_structural_equal(relay.transform.InferType()(found), expected)


@pytest.mark.parametrize(
    ("number", "kind"), [(4, relay.Call), (5, relay.TupleGetItem), (6, relay.TupleGetItem)]
)
def test_intermediate_values_are_numbered_as_temporaries(number: int, kind: type) -> None:
    found = relay.analysis.extract_intermdeiate_expr(module(CHAIN), number)["main"]
    assert type(found.body) is kind


@pytest.mark.parametrize("number", [-1, 8, 99])
def test_an_intermediate_value_must_be_there(number: int) -> None:
    with pytest.raises(RelayError, match="8 intermediate values"):
        relay.analysis.extract_intermdeiate_expr(module(CHAIN), number)


def test_weights_that_reach_a_product_transposed() -> None:
    x, w, v = _shaped((2, 3), (3, 4), (5, 4))
    first = relay.nn.dense(x, relay.transpose(w, axes=[1, 0]))
    assert relay.analysis.search_fc_transpose(relay.nn.dense(first, v)) == ["p1"]
    assert relay.analysis.search_fc_transpose(relay.nn.dense(first, relay.exp(v))) == ["p1"]
    assert relay.analysis.search_fc_transpose(v) == []


def test_what_goes_into_functions_and_comes_out() -> None:
    mod = module("""
def @both(%a: Tensor[(2), float32], %b: Tensor[(2), float32], Compiler="other") {
  (add(%a, %b), subtract(%a, %b))
}
def @one(%a: Tensor[(2), float32], Compiler="other") { negative(%a) }
def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
  %0 = @both(%x, %y);
  @one(%0.1)
}
""")
    x, y = np.array([3, 5], "float32"), np.array([1, 7], "float32")
    found = relay.analysis.get_calibration_data(mod, {"x": x, "y": y})
    both, one = mod.get_global_var("both"), mod.get_global_var("one")
    np.testing.assert_array_equal(found[both]["inputs"], [x, y])
    np.testing.assert_array_equal(found[both]["outputs"], [x + y, x - y])
    np.testing.assert_array_equal(found[one]["inputs"], [x - y])
    np.testing.assert_array_equal(found[one]["outputs"], [y - x])
    assert set(found) == {both, one}


# Type variables.

A, B = relay.TypeVar("a"), relay.TypeVar("b")
PAIR = relay.Function([relay.Var("x", A)], relay.Var("y", B), None, [A])
TYPE_VARIABLES = {
    "type": (relay.FuncType([A], B, [A]), [B], [A], [A, B]),
    "variable": (relay.Var("x", relay.TupleType([A, B])), [A, B], [], [A, B]),
    "function": (PAIR, [B], [A], [A, B]),
    "result": (relay.Function([], relay.const(1), B, [A]), [B], [A], [A, B]),
    "let": (relay.Let(relay.Var("x", A), relay.const(1), relay.Var("y", B)), [A, B], [], [A, B]),
    "arguments": (relay.Call(relay.GlobalVar("f"), [], None, [B]), [B], [], [B]),
    "tensor": (relay.TensorType((2,)), [], [], []),
}


@pytest.mark.parametrize("case", TYPE_VARIABLES)
def test_type_variables(case: str) -> None:
    value, free, bound, all_ = TYPE_VARIABLES[case]
    assert relay.analysis.free_type_vars(value) == free
    assert relay.analysis.bound_type_vars(value) == bound
    assert relay.analysis.all_type_vars(value) == all_


def test_a_constructor_binds_the_type_variables_of_its_data_type() -> None:
    mod = module("type Box[A] { Put(A) }\ndef @main() { 1 }")
    (data,) = mod.type_definitions.values()
    (put,) = data.constructors
    assert relay.analysis.bound_type_vars(put, mod) == list(data.type_vars)
    assert relay.analysis.bound_type_vars(put) == []
