"""FoldConstant: which calls become constants, in text."""

from __future__ import annotations

import numpy as np
import pytest
from support.pass_texts import check, check_bodies, parse, tensor

import serde.relay as relay
from serde.relay.ir.expr import Constant, Function, If, Let, Tuple, TupleGetItem
from serde.relay.transform import FoldConstant, FoldConstantExpr, InferType

F = f"%x: {tensor(2, 3)}"
FOLD = FoldConstant()


FOLDED = [
    ("add(2f, 3f)", "5f"),
    ("multiply(add(2f, 3f), 2f)", "10f"),
    ("subtract(2, 5)", "-3"),
    ("divide(7f64, 2f64)", "3.5f64"),
    ("power(2f, 5f)", "32f"),
    ("maximum(3i64, 4i64)", "4i64"),
    ("less(2f, 3f)", "True"),
    ("logical_and(True, False)", "False"),
    ('cast(3.5f, dtype="int32")', "3"),
    ("negative(2f)", "-2f"),
    ("sqrt(16f)", "4f"),
    ("floor_divide(-7, 2)", "-4"),
    ("clip(9f, a_min=0f, a_max=6f)", "6f"),
    ("where(True, 1f, 2f)", "1f"),
    ("copy(4f)", "4f"),
]


@pytest.mark.parametrize(("before", "after"), FOLDED)
@pytest.mark.parametrize("rest", ["({}, %x)", "{}"])
def test_calls_of_constants_are_their_value(before: str, after: str, rest: str) -> None:
    check_bodies(FOLD, F, rest.format(before), rest.format(after))


FLOATS = [case for case in FOLDED if case[1].endswith("f")]


@pytest.mark.parametrize(("before", "after"), FLOATS)
def test_a_constant_is_an_operand_like_any_other(before: str, after: str) -> None:
    check_bodies(FOLD, F, f"add(%x, {before})", f"add(%x, {after})")


@pytest.mark.parametrize(("before", "after"), FLOATS)
def test_constants_fold_on(before: str, after: str) -> None:
    found = FOLD(parse(f"def @main({F}) {{ exp({before}) }}"))["main"].body
    assert isinstance(found, Constant)
    np.testing.assert_allclose(found.data, np.exp(np.float32(after.removesuffix("f"))), rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (4,), (8, 9, 10), (1, 0, 3)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("name", ["shape_of", "ndarray_size"])
def test_shapes_and_sizes_of_known_tensors(shape: tuple[int, ...], dtype: str, name: str) -> None:
    x, y = (relay.var(each, shape=shape) for each in "xy")
    body = getattr(relay, name)(relay.add(x, y), dtype)
    found = FOLD(InferType()(relay.IRModule.from_expr(Function([x, y], body))))["main"].body
    wanted = np.array(shape if name == "shape_of" else int(np.prod(shape)), dtype)
    assert isinstance(found, Constant)
    assert found.data.dtype == wanted.dtype
    np.testing.assert_array_equal(found.data, wanted)


@pytest.mark.parametrize("name", ["shape_of", "ndarray_size"])
def test_shapes_of_unknown_tensors_stay(name: str) -> None:
    body = f'{name}(exp(%x), dtype="int32")'
    check_bodies(FOLD, "%x: Tensor[(?, 3), float32]", body, body)


@pytest.mark.parametrize(
    "body",
    [
        'ones(shape=[2, 3], dtype="float32")',
        'zeros(shape=[2, 3], dtype="int32")',
        'add(%x, ones(shape=[2, 3], dtype="float32"))',
        "nn.dropout(2f)",
        "add(nn.dropout(2f).0, 1f)",
        "add(%x, 1f)",
        "exp(%x)",
        'full(2f, shape=[2, 3], dtype="float32")',
        "add(%x, full_like(1f, 2f))",
        "add(%x, zeros_like(3f))",
        "multiply(%x, ones_like(3f))",
    ],
)
def test_what_has_no_operands_or_draws_or_is_not_constant_stays(body: str) -> None:
    before = body
    if "(nn.dropout" in body:
        before = "%0 = nn.dropout(2f);\n%1 = %0.0;\nadd(%1, 1f)"
    check_bodies(FOLD, F, before, before, numbers="dropout" not in body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("let %a = 2f;\nadd(%x, %a)", "add(%x, 2f)"),
        ("let %a = 2f;\nlet %b = add(%a, %a);\nadd(%x, %b)", "add(%x, 4f)"),
        ("let %a = exp(%x);\nlet %b = 2f;\nadd(%a, %b)", "let %a = exp(%x);\nadd(%a, 2f)"),
        ("let %a = (2f, %x);\nadd(%a.1, %a.0)", "let %a = (2f, %x);\nadd(%a.1, %a.0)"),
        ("let %a = add(1f, 1f);\nlet %b = multiply(%x, %a);\nexp(%b)",
         "let %b = multiply(%x, 2f);\nexp(%b)"),
        ("if (less(1f, 2f)) { exp(%x) } else { sqrt(%x) }", "exp(%x)"),
        ("if (less(2f, 1f)) { exp(%x) } else { sqrt(%x) }", "sqrt(%x)"),
        ("if (True) { if (False) { %x } else { exp(%x) } } else { %x }", "exp(%x)"),
        ("%0 = (%x, add(2f, 3f));\n%1 = %0.1;\nadd(%x, %1)", "add(%x, 5f)"),
        ("%0 = (%x, 2f);\n%1 = %0.0;\nexp(%1)", "exp(%x)"),
        ("let %f = fn (%y: float32) { add(%y, add(1f, 1f)) };\nadd(%x, %f(3f))",
         "let %f = fn (%y: float32) { add(%y, 2f) };\nadd(%x, %f(3f))"),
    ],
)  # fmt: skip
def test_lets_branches_and_fields(before: str, after: str) -> None:
    check_bodies(FOLD, F, before, after)


def test_calls_of_functions_stay() -> None:
    text = f"def @f(%y: float32) {{ add(%y, 1f) }}\ndef @main({F}) {{ add(%x, @f(2f)) }}\n"
    check(FOLD, text, text)


@pytest.mark.parametrize("key", ["Primitive", "Composite"])
def test_the_inside_of_primitive_functions_stays(key: str) -> None:
    value = "1" if key == "Primitive" else '"own"'
    text = "def @main(%x: float32) {{ %0 = fn (%y: float32, {}={}) {{ add(%y, {}) }}; %0(%x) }}\n"
    inside = "5f" if key == "Composite" else "add(2f, 3f)"
    check(FOLD, text.format(key, value, "add(2f, 3f)"), text.format(key, value, inside))


def test_functions_for_another_compiler_stay() -> None:
    text = (
        'def @f(%y: float32, Compiler="other", global_symbol="f") { add(%y, add(2f, 3f)) }\n'
        "def @main(%x: float32) { add(@f(%x), add(2f, 3f)) }\n"
    )
    found = FOLD(parse(text))
    assert "5f" not in found["f"].astext()
    assert "5f" in found["main"].astext()


QUANTIZED = {
    "quantize": ('qnn.quantize(3f, 0.5f, 0, axis=-1, out_dtype="int8")', "int8", 6),
    "dequantize": ('qnn.dequantize(cast(4, dtype="int8"), 0.5f, 0, out_dtype="float32")',
                   "float32", 2.0),
    "requantize": ('qnn.requantize(8, 2f, 0, 1f, 1, out_dtype="int32")', "int32", 17),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("fold_qnn", [False, True])
def test_quantised_operators_fold_if_asked(name: str, fold_qnn: bool) -> None:
    text, dtype, number = QUANTIZED[name]
    found = FoldConstant(fold_qnn)(parse(f"def @main() {{ {text} }}"))["main"].body
    assert isinstance(found, Constant) == fold_qnn
    if isinstance(found, Constant):
        assert str(found.data.dtype) == dtype
        assert found.data == number


@pytest.mark.parametrize("axis", [0, 1])
def test_tuples_of_constants_are_constant(axis: int) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    body = relay.concatenate([relay.const(a), relay.const(b)], axis=axis)
    found = FoldConstantExpr(body)
    assert isinstance(found, Constant)
    np.testing.assert_array_equal(found.data, np.concatenate([a, b], axis))


def test_several_results_become_a_tuple() -> None:
    body = relay.split(relay.const(np.arange(4.0)), 2).astuple()
    found = FoldConstantExpr(body)
    assert isinstance(found, Tuple)
    assert [list(field.data) for field in found.fields] == [[0, 1], [2, 3]]
    assert isinstance(FoldConstantExpr(TupleGetItem(body, 1)), Constant)


def test_indices_are_clipped_as_the_kernel_does() -> None:
    values = relay.const(np.arange(3.0, dtype="float32"))
    found = FoldConstantExpr(relay.take(values, relay.const(7), axis=0, mode="clip"))
    assert isinstance(found, Constant)
    assert found.data == 2


@pytest.mark.wide
def test_a_long_chain_folds() -> None:
    y = relay.const(0.0)
    for _ in range(20_000):
        y = relay.add(y, relay.const(1.0))
    found = FoldConstantExpr(y)
    assert isinstance(found, Constant)
    assert found.data == 20_000


@pytest.mark.wide
def test_nested_lets_do_not_recurse() -> None:
    variables = [relay.Var(f"v{index}") for index in range(20_000)]
    body = variables[-1]
    for before, after in zip(reversed(variables[:-1]), reversed(variables[1:]), strict=True):
        body = Let(after, relay.add(before, relay.const(1)), body)
    body = Let(variables[0], relay.const(0), body)
    mod = InferType()(relay.IRModule.from_expr(body))
    assert FOLD(mod)["main"].body.data == len(variables) - 1


def test_both_branches_fold_where_the_condition_is_not_known() -> None:
    params = f"{F}, %c: bool"
    before = "if (%c) { add(%x, add(1f, 1f)) } else { add(%x, add(2f, 1f)) }"
    after = "if (%c) { add(%x, 2f) } else { add(%x, 3f) }"
    check_bodies(FOLD, params, before, after)
    assert isinstance(parse(f"def @main({params}) {{ {after} }}")["main"].body, If)
