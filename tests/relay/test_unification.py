"""Types that no walk forward finds: expected types are TVM's, written out."""

from __future__ import annotations

from typing import Any

import pytest
from support.samples import all_samples, build

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Call, Function, If, Let, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import OpDef, Sample
from serde.relay.ir.types import FuncType, TensorType
from serde.relay.ir.visit import rewrite
from serde.relay.text.parser import parse_expr
from serde.relay.transform import InferType

HEADER = '#[version = "0.0.5"]\n'
A = "Tensor[(2, 3), float32]"
I = "int32"  # noqa: E741


def types_of(text: str) -> dict[str, str]:
    """The types of all functions in a text."""
    mod = relay.fromtext(HEADER + text)
    return {variable.name_hint: repr(variable.type) for variable in mod.functions}


def main_type(text: str) -> str:
    """The type of `main` in a text."""
    return types_of(text)["main"]


SAME_TYPE = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "copy",
    "cos", "cosh", "erf", "exp", "fast_erf", "fast_exp", "fast_tanh", "floor", "log", "log10",
    "log2", "logical_not", "negative", "nn.fast_softmax", "nn.leaky_relu", "nn.log_softmax",
    "nn.relu", "nn.softmax", "ones_like", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc", "zeros_like",
]  # fmt: skip
DTYPES = {"bitwise_not": "int32", "logical_not": "bool"}


@pytest.mark.parametrize("name", SAME_TYPE)
def test_result_types_the_operand(name: str) -> None:
    type_ = f"Tensor[(2, 3), {DTYPES.get(name, 'float32')}]"
    found = main_type(f"def @main(%x) -> {type_} {{ {name}(%x) }}")
    assert found == f"fn ({type_}) -> {type_}"


@pytest.mark.parametrize("name", SAME_TYPE)
def test_primitive_function_of_untyped_parameters(name: str) -> None:
    type_ = f"Tensor[(4, N), {DTYPES.get(name, 'float32')}]"
    text = f"%0 = fn (%p, Primitive=1) {{ {name}(%p) }};"
    found = main_type(f"def @main(%a: {type_}) {{ {text} %0(%a) }}")
    assert found == f"fn ({type_}) -> {type_}"


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("2, 3", "2, 3", "2, 3"),
        ("2, 3", "3", "2, 3"),
        ("3", "2, 3", "2, 3"),
        ("2, 1", "1, 3", "2, 3"),
        ("5, 1, 4", "3, 1", "5, 3, 4"),
        ("N, 3", "N, 3", "N, 3"),
        ("N, 3", "1, 3", "N, 3"),
        ("N, 3", "4, 3", "4, 3"),
        ("N", "M", "?"),
        ("?, 3", "1, 3", "?, 3"),
        ("?, 3", "2, 3", "2, 3"),
        ("?", "?", "?"),
    ],
)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("add", "float32"),
        ("subtract", "float32"),
        ("multiply", "float32"),
        ("maximum", "float32"),
        ("less", "bool"),
        ("equal", "bool"),
    ],
)
def test_broadcast_inside_a_function(
    name: str, dtype: str, left: str, right: str, result: str
) -> None:
    one, other, out = f"Tensor[({left}), float32]", f"Tensor[({right}), float32]", ""
    out = f"Tensor[({result}), {dtype}]"
    text = f"%0 = fn (%p, %q) {{ {name}(%p, %q) }}; %0(%a, %b)"
    found = main_type(f"def @main(%a: {one}, %b: {other}) {{ {text} }}")
    assert found == f"fn ({one}, {other}) -> {out}"


@pytest.mark.parametrize(
    ("call", "data", "weights", "result"),
    [
        ("nn.dense(%x, %w, units=4)", "(2, 3)", "(4, 3)", "(2, 4)"),
        ("nn.dense(%x, %w, units=4)", "(N, 3)", "(4, 3)", "(N, 4)"),
        ("nn.conv1d(%x, %w, channels=4, kernel_size=[3])", "(1, 2, 8)", "(4, 2, 3)", "(1, 4, 6)"),
        (
            "nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3])",
            "(1, 2, 8, 8)",
            "(4, 2, 3, 3)",
            "(1, 4, 6, 6)",
        ),
        (
            "nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3], groups=2)",
            "(1, 2, 8, 8)",
            "(4, 1, 3, 3)",
            "(1, 4, 6, 6)",
        ),
        (
            'nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3], data_layout="NHWC",'
            ' kernel_layout="HWIO")',
            "(1, 8, 8, 2)",
            "(3, 3, 2, 4)",
            "(1, 6, 6, 4)",
        ),
        (
            "nn.conv3d(%x, %w, channels=4, kernel_size=[1, 1, 1])",
            "(1, 2, 8, 8, 8)",
            "(4, 2, 1, 1, 1)",
            "(1, 4, 8, 8, 8)",
        ),
        (
            "nn.conv2d_transpose(%x, %w, channels=4, kernel_size=[2, 2])",
            "(1, 2, 8, 8)",
            "(2, 4, 2, 2)",
            "(1, 4, 9, 9)",
        ),
        ("nn.bias_add(%x, %w)", "(2, 3)", "(3)", "(2, 3)"),
        ("nn.bias_add(%x, %w, axis=0)", "(2, 3)", "(2)", "(2, 3)"),
        ("nn.prelu(%x, %w)", "(2, 3, 4)", "(3)", "(2, 3, 4)"),
        ("nn.prelu(%x, %w, axis=2)", "(2, 3, 4)", "(4)", "(2, 3, 4)"),
        ("nn.batch_norm(%x, %w, %w, %w, %w).0", "(2, 3, 4)", "(3)", "(2, 3, 4)"),
        ("nn.batch_norm(%x, %w, %w, %w, %w, axis=-1).0", "(2, 3, 4)", "(4)", "(2, 3, 4)"),
        ("nn.layer_norm(%x, %w, %w)", "(2, 3, 4)", "(4)", "(2, 3, 4)"),
        ("nn.instance_norm(%x, %w, %w)", "(2, 3, 4)", "(3)", "(2, 3, 4)"),
        ("nn.group_norm(%x, %w, %w, num_groups=3)", "(2, 3, 4)", "(3)", "(2, 3, 4)"),
    ],
)
@pytest.mark.parametrize("place", ["main", "primitive", "let", "global"])
def test_operators_type_their_weights(
    place: str, call: str, data: str, weights: str, result: str
) -> None:
    x, w, y = (f"Tensor[{shape}, float32]" for shape in (data, weights, result))
    body = {
        "main": f"def @main(%x: {x}, %w) {{ {call} }}",
        "primitive": f"def @main(%a: {x}, %b) {{ %9 = fn (%x, %w) {{ {call} }}; %9(%a, %b) }}",
        "let": f"def @main(%a: {x}, %w) {{ let %f = fn (%x) {{ {call} }}; %f(%a) }}",
        "global": f"def @f(%x, %w) {{ {call} }} def @main(%a: {x}, %b) {{ @f(%a, %b) }}",
    }[place]
    assert main_type(body) == f"fn ({x}, {w}) -> {y}"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("split(%x, indices_or_sections=2)", "(Tensor[(1, 3), float32], Tensor[(1, 3), float32])"),
        ("split(%x, indices_or_sections=2).0", "Tensor[(1, 3), float32]"),
        ("split(%x, indices_or_sections=3, axis=1).2", "Tensor[(2, 1), float32]"),
        ("transpose(%x, axes=None)", "Tensor[(3, 2), float32]"),
        ("nn.batch_flatten(%x)", A),
        ("reshape(%x, newshape=[3, -1])", "Tensor[(3, 2), float32]"),
        ("expand_dims(%x, axis=0)", "Tensor[(1, 2, 3), float32]"),
        ("squeeze(expand_dims(%x, axis=0))", A),
        ("sum(%x)", "float32"),
        ("sum(%x, axis=[1])", "Tensor[(2), float32]"),
        ("mean(%x, axis=[0], keepdims=True)", "Tensor[(1, 3), float32]"),
        ("argmax(%x, axis=[1])", "Tensor[(2), int32]"),
        ('cast(%x, dtype="int8")', "Tensor[(2, 3), int8]"),
        ("concatenate((%x, %x))", "Tensor[(4, 3), float32]"),
        ("concatenate((%x, %x), axis=1)", "Tensor[(2, 6), float32]"),
        ("stack((%x, %x))", "Tensor[(2, 2, 3), float32]"),
        ("(%x, %x)", f"({A}, {A})"),
        ("(%x, (%x, 1)).1.1", I),
        ("(%x, 1).1", I),
        ('shape_of(%x, dtype="int32")', "Tensor[(2), int32]"),
        ("isnan(%x)", "Tensor[(2, 3), bool]"),
        ("nn.dropout(%x)", f"({A}, {A})"),
        ("nn.pad(%x, 0f, pad_width=[[1, 1], [0, 0]])", "Tensor[(4, 3), float32]"),
        ("where(greater(%x, 0f), %x, zeros_like(%x))", A),
        ("take(%x, 0, axis=0)", "Tensor[(3), float32]"),
        ("broadcast_to(%x, shape=[4, 2, 3])", "Tensor[(4, 2, 3), float32]"),
        ("tile(%x, reps=[2, 1])", "Tensor[(4, 3), float32]"),
        ("strided_slice(%x, begin=[0], end=[1], strides=[1], axes=[0])", "Tensor[(1, 3), float32]"),
        ("%x", A),
        ("let %y = exp(%x); let %z = %y; add(%y, %z)", A),
        ("let %y = (%x, %x); %y.0", A),
        ("if (True) { %x } else { exp(%x) }", A),
    ],
)
@pytest.mark.parametrize("place", ["inner", "let", "global", "argument"])
def test_untyped_parameter(place: str, call: str, result: str) -> None:
    function = f"fn (%x) {{ {call.replace('.1.1', '.1')} }}"
    if ".1.1" in call:
        function = "fn (%x) { %1 = (%x, (%x, 1)); %2 = %1.1; %2.1 }"
    body = {
        "inner": f"def @main(%a: {A}) {{ %8 = {function}; %8(%a) }}",
        "let": f"def @main(%a: {A}) {{ let %f = {function}; %f(%a) }}",
        "global": f"def @f{function[3:]} def @main(%a: {A}) {{ @f(%a) }}",
        "argument": (
            f"def @main(%a: {A}) {{ let %f = {function};"
            " let %run = fn (%g, %v) { %g(%v) }; %run(%f, %a) }"
        ),
    }[place]
    assert main_type(body) == f"fn ({A}) -> {result}"


FACTORIAL = "if (equal(%n, 0)) { 1 } else { multiply(%n, FACT(subtract(%n, 1))) }"
RECURSIONS = [
    # A global function without a declared result.
    (f"def @main(%n: int32) {{ {FACTORIAL.replace('FACT', '@main')} }}", f"fn ({I}) -> {I}"),
    # The same bound by a let, with and without a typed parameter.
    (
        f"def @main(%k: int32) {{ let %f = fn (%n: int32) "
        f"{{ {FACTORIAL.replace('FACT', '%f')} }}; %f(%k) }}",
        f"fn ({I}) -> {I}",
    ),
    (
        f"def @main(%k: int32) {{ let %f = fn (%n) "
        f"{{ {FACTORIAL.replace('FACT', '%f')} }}; %f(%k) }}",
        f"fn ({I}) -> {I}",
    ),
    (
        f"def @f(%n) {{ {FACTORIAL.replace('FACT', '@f')} }} def @main(%k: int32) {{ @f(%k) }}",
        f"fn ({I}) -> {I}",
    ),
    # Mutual recursion.
    (
        "def @even(%n: int32) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }"
        "def @odd(%n: int32) { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }"
        "def @main(%n: int32) { @even(%n) }",
        "fn (int32) -> bool",
    ),
    (
        "def @even(%n) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }"
        "def @odd(%n) { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }"
        "def @main(%n: int32) { @odd(%n) }",
        "fn (int32) -> bool",
    ),
    # The call comes first.
    (
        f"def @main(%c: bool, %x: {A}) {{ if (%c) {{ @main(%c, exp(%x)) }} else {{ %x }} }}",
        f"fn (bool, {A}) -> {A}",
    ),
    # Results that are tuples, and fields of them.
    (
        f"def @main(%c: bool, %x: {A}) "
        "{ if (%c) { (%x, 1) } else { %0 = @main(%c, %x); (exp(%0.0), add(%0.1, 1)) } }",
        f"fn (bool, {A}) -> ({A}, {I})",
    ),
    (
        f"def @main(%c: bool, %x: {A}) "
        "{ if (%c) { (%x, 1) } else { %0 = @main(%c, %x); (%0.0, 2) } }",
        f"fn (bool, {A}) -> ({A}, {I})",
    ),
    # A length that differs from turn to turn is anonymous.
    (
        "def @main(%c: bool, %x: Tensor[(N), float32]) "
        "{ if (%c) { %x } else { @main(%c, concatenate((%x, %x))) } }",
        "fn (bool, Tensor[(N), float32]) -> Tensor[(?), float32]",
    ),
    (
        "def @main(%c: bool, %x: Tensor[(?), float32]) "
        "{ if (%c) { %x } else { @main(%c, concatenate((%x, %x))) } }",
        "fn (bool, Tensor[(?), float32]) -> Tensor[(?), float32]",
    ),
    (
        "def @main(%c: bool, %x: Tensor[(N), float32]) "
        "{ if (%c) { %x } else { @main(%c, exp(%x)) } }",
        "fn (bool, Tensor[(N), float32]) -> Tensor[(N), float32]",
    ),
    # One inside another.
    (
        "def @main(%k: int32) { let %f = fn (%n) { let %g = fn (%m) "
        "{ if (equal(%m, 0)) { %n } else { %g(subtract(%m, 1)) } };"
        " if (equal(%n, 0)) { %g(1) } else { %f(subtract(%g(%n), 1)) } }; %f(%k) }",
        f"fn ({I}) -> {I}",
    ),
    # A function that returns one.
    (
        f"def @main(%x: {A}) {{ let %f = fn (%a) {{ fn (%b) {{ add(%a, %b) }} }};"
        " let %g = %f(%x); %g(1f) }",
        f"fn ({A}) -> {A}",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%a) {{ let %h = fn (%b) {{ (%a, %b) }}; %h }};"
        " let %g = %f(%x); %g(1) }",
        f"fn ({A}) -> ({A}, {I})",
    ),
]


@pytest.mark.parametrize(("text", "expected"), RECURSIONS, ids=range(len(RECURSIONS)))
def test_functions_that_call_themselves(text: str, expected: str) -> None:
    assert main_type(text) == expected


@pytest.mark.parametrize(("text", "expected"), RECURSIONS, ids=range(len(RECURSIONS)))
def test_inference_again_finds_the_same(text: str, expected: str) -> None:
    mod = relay.fromtext(HEADER + text)
    before = mod.astext()
    again, changed = InferType().run(mod)
    assert not changed
    assert again.astext() == before
    assert main_type(before.split("\n", 1)[1]) == expected


DECLARATIONS = [
    # What is declared types what has no type.
    (f"def @main(%x) {{ let %y: {A} = exp(%x); %y }}", f"fn ({A}) -> {A}"),
    (f"def @main(%x) {{ let %y: {A} = %x; %y }}", f"fn ({A}) -> {A}"),
    (f"def @main(%x, %y) -> ({A}, int32) {{ (%x, %y) }}", f"fn ({A}, {I}) -> ({A}, {I})"),
    (f"def @main(%x) -> {A} {{ nn.relu(tanh(negative(%x))) }}", f"fn ({A}) -> {A}"),
    (f"def @main(%x) {{ %0 = fn (%y: {A}) {{ exp(%y) }}; %0(%x) }}", f"fn ({A}) -> {A}"),
    (f"def @f(%y: {A}) {{ exp(%y) }} def @main(%x) {{ @f(%x) }}", f"fn ({A}) -> {A}"),
    (f"def @main(%x: ({A}, int32)) {{ let %y = %x; %y.1 }}", f"fn (({A}, {I})) -> {I}"),
    (f"def @main(%f: fn ({A}) -> int32, %x) {{ %f(%x) }}", f"fn (fn ({A}) -> {I}, {A}) -> {I}"),
    (f"def @main(%f, %x: {A}) -> int32 {{ %f(%x) }}", f"fn (fn ({A}) -> {I}, {A}) -> {I}"),
    # Branches type each other, and the condition is a truth.
    (f"def @main(%c, %x: {A}) {{ if (%c) {{ %x }} else {{ %x }} }}", f"fn (bool, {A}) -> {A}"),
    (
        f"def @main(%c: bool, %x: {A}, %y) {{ if (%c) {{ %x }} else {{ %y }} }}",
        f"fn (bool, {A}, {A}) -> {A}",
    ),
    (
        f"def @main(%c: bool, %x, %y: {A}) {{ if (%c) {{ exp(%x) }} else {{ %y }} }}",
        f"fn (bool, {A}, {A}) -> {A}",
    ),
    (
        f"def @main(%c: bool, %x, %y) -> {A} {{ if (%c) {{ %x }} else {{ %y }} }}",
        f"fn (bool, {A}, {A}) -> {A}",
    ),
    (
        f"def @main(%c: bool, %x, %y: {A}) {{ if (%c) {{ (%x, %y) }} else {{ (%y, %x) }} }}",
        f"fn (bool, {A}, {A}) -> ({A}, {A})",
    ),
    (
        "def @main(%c: bool, %x: Tensor[(2), float32], %y: Tensor[(3), float32]) "
        "{ let %f = fn (%p, %q) { if (%c) { %p } else { %q } }; %f(%x, %y) }",
        "fn (bool, Tensor[(2), float32], Tensor[(3), float32]) -> Tensor[(?), float32]",
    ),
    # What comes later types what came before.
    (f"def @main(%x, %y: {A}) {{ let %f = fn (%z) {{ %z }};"
     " let %a = %f(%x); let %b = %f(%y); %a }", f"fn ({A}, {A}) -> {A}"),
    (
        "def @main(%x: Tensor[(2, 3), float32], %w) {"
        " let %a = exp(%w); let %b = nn.dense(%x, %a, units=4); %b }",
        "fn (Tensor[(2, 3), float32], Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32]",
    ),
    (
        "def @main(%x: Tensor[(2, 3), float32], %w) {"
        " let %a = add(%w, 1f); let %b = nn.dense(%x, %w, units=4); (%a, %b) }",
        "fn (Tensor[(2, 3), float32], Tensor[(4, 3), float32])"
        " -> (Tensor[(4, 3), float32], Tensor[(2, 4), float32])",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DECLARATIONS, ids=range(len(DECLARATIONS)))
def test_what_types_a_variable(text: str, expected: str) -> None:
    assert main_type(text) == expected


REFUSALS = [
    # What nothing types is named.
    ("def @main(%x) { %x }", r"Var\(x\) has no type"),
    ("def @main(%x) { exp(%x) }", r"Call\(exp, 1 args\): Var\(x\) has no type \(operands: _\)"),
    (
        f"def @main(%x: {A}, %y) {{ add(%x, %y) }}",
        r"Call\(add, 2 args\): Var\(y\) has no type \(operands: Tensor\[\(2, 3\), float32\], _\)",
    ),
    ("def @main(%x) { %x.0 }", r"TupleGetItem\(0\): Var\(x\) has no type"),
    ("def @main(%x: int32, %y) { concatenate((%x, %y)) }", r"\(operands: \(int32, _\)\)"),
    ("def @main(%c: bool, %x, %y) { if (%c) { %x } else { %y } }", "If has no type: its branches"),
    ("def @main(%x: int32) { @main(%x) }", "has no type"),
    ("def @main(%x: int32) { let %f = fn (%y: int32) { %f(%y) }; %f(%x) }", "has no type"),
    ("def @main(%x: int32) { let %f = fn (%y) { %y }; %x }", "has no type"),
    # Two types meet, and both are named.
    (f"def @main(%x) -> {A} {{ let %y: int32 = exp(%x); %x }}", "expected .*float32.*found int32|"
     "expected int32, found .*float32"),
    (
        f"def @main(%x: {A}) -> int32 {{ let %f = fn (%y) {{ %y }}; %f(%x) }}",
        r"expected .*int32, found .*Tensor\[\(2, 3\), float32\]",
    ),
    (
        f"def @main(%x: {A}, %n: int32) {{ let %f = fn (%y) {{ %y }}; (%f(%x), %f(%n)) }}",
        r"argument 0: expected Tensor\[\(2, 3\), float32\], found int32",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%y) {{ %y }}; (%f(%x), %f(exp(sum(%x)))) }}",
        r"argument 0: expected Tensor\[\(2, 3\), float32\], found float32",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%y) {{ %y }}; %f(%x, %x) }}",
        "expected 1 arguments, found 2",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%y) {{ %y(%x) }}; %f(%x) }}",
        r"Var\(y\) is called but is Tensor\[\(2, 3\), float32\]|expected .*found",
    ),
    (
        f"def @main(%c: bool, %x: {A}) {{ let %f = fn (%y) {{ if (%c) {{ %y }} else {{ 1 }} }};"
        " %f(%x) }",
        "Tensor.*int32|int32.*Tensor",
    ),
    (
        "def @main(%n: int32) { if (equal(%n, 0)) { 1f } else { add(@main(%n), 1) } }",
        "float32.*int32|int32.*float32",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%y) {{ %y.0 }}; %f(%x) }}",
        r"TupleGetItem\(0\): no such field in Tensor\[\(2, 3\), float32\]",
    ),
    (
        f"def @main(%x: {A}) {{ let %f = fn (%y) {{ %y.2 }}; %f((%x, %x)) }}",
        r"TupleGetItem\(2\): no such field in \(Tensor",
    ),
    (
        f"def @main(%x: {A}, %c) {{ let %f = fn (%y) {{ if (%y) {{ %x }} else {{ %x }} }};"
        " %f(%x) }",
        r"bool.*Tensor\[\(2, 3\), float32\]|Tensor.*bool",
    ),
    # A type would contain itself.
    ("def @main(%x: int32) { let %f = fn (%g) { %g(%g) }; %f(%f) }", "contain itself"),
    ("def @main(%c: bool, %x) { if (%c) { %x } else { (%x, %x) } }", "contain itself"),
    # What an operator refuses it refuses of inferred types, too.
    (f"def @main(%x: {A}) {{ let %f = fn (%y) {{ add(%y, 1) }}; %f(%x) }}", "add: dtypes differ"),
    (
        f"def @main(%x: {A}, %w) {{ let %f = fn (%y) {{ nn.conv2d(%y, %w, channels=4,"
        " kernel_size=[1, 1]) }; %f(%x) }",
        "nn.conv2d",
    ),
    (f"def @main(%x: {A}, %b) {{ let %f = fn (%y) {{ nn.bias_add(%y, %b) }}; %f((%x, %x)) }}",
     r"operand data: expected a tensor, found \(Tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals_name_both_sides(text: str, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message) as raised:
        relay.fromtext(HEADER + text)
    assert raised.value.line == 2  # type: ignore[attr-defined]


def test_module_is_written_out() -> None:
    text = (
        "def @step(%s, %w) { nn.relu(nn.dense(%s, %w, units=3)) }\n"
        f"def @main(%a: {A}, %w) {{ let %x = @step(%a, %w); let %y = %x; @step(%y, %w) }}"
    )
    square = "Tensor[(3, 3), float32]"
    expected = relay.fromtext(
        f"{HEADER}def @step(%s: {A}, %w: {square}) -> {A} {{ nn.relu(nn.dense(%s, %w, units=3)) }}"
        f"def @main(%a: {A}, %w: {square}) -> {A} "
        f"{{ let %x: {A} = @step(%a, %w); let %y: {A} = %x; @step(%y, %w) }}"
    )
    relay.assert_structural_equal(relay.fromtext(HEADER + text), expected)


def test_variables_stay_untyped_where_inference_fails() -> None:
    x, y = Var("x"), Var("y")
    inner = Function([x], relay.exp(x))
    function = Function([y], relay.Tuple([inner(relay.const(1.0)), relay.exp(y)]))
    with pytest.raises(TypeInferenceError, match=r"Var\(y\)"):
        infer_function(function)
    assert x.type is None
    assert y.type is None


def test_split_of_an_untyped_value_is_indexed() -> None:
    x, a = Var("x"), relay.var("a", shape=(4, 3))
    parts = relay.split(x, 2)
    assert len(parts) == 2
    assert len(relay.split(x, [1, 2], axis=1)) == 3
    function = infer_function(Function([a], Function([x], relay.add(parts[0], parts[1]))(a)))
    assert function.ret_type == TensorType((2, 3))


def test_parse_expr_infers_where_it_is_asked() -> None:
    text = f"fn (%x: {A}) {{ exp(%x) }}"
    function = parse_expr(text)
    assert isinstance(function, Function)
    assert function.body.type is None
    assert parse_expr(text, infer=True).type == FuncType([TensorType((2, 3))], TensorType((2, 3)))
    assert parse_expr("fn (%x: int32) { exp(%x) }").type is None
    with pytest.raises(TypeInferenceError, match="exp: expected a floating-point tensor"):
        parse_expr("fn (%x: int32) { exp(%x) }", infer=True)


@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_every_operator_in_a_function_without_types(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    untyped = {variable: Var(variable.name_hint) for variable in built.variables}
    body = rewrite(built.call, lambda _old, new: new, dict(untyped))
    call = Function(untyped.values(), body)(*built.variables)
    function = infer_function(Function(built.variables, call))
    assert function.ret_type == built.call.type
    assert [each.type for each in untyped.values()] == [each.type for each in built.variables]


@pytest.mark.wide
def test_long_untyped_chains_take_no_recursion() -> None:
    x, a = Var("x"), relay.var("a", shape=(2,))
    value: Any = x
    for _ in range(20_000):
        value = relay.add(value, relay.exp(value))
    function = infer_function(Function([a], Function([x], value)(a)))
    assert function.ret_type == TensorType((2,))


@pytest.mark.wide
def test_long_chains_of_calls_take_no_recursion() -> None:
    a = relay.var("a", shape=(2,))
    body: Any = a
    bindings = []
    for index in range(3_000):
        x, f = Var("x"), Var(f"f{index}")
        bindings.append((f, Function([x], relay.exp(x))))
        body = Call(f, [If(relay.const(True), body, body)])
    for f, function in reversed(bindings):
        body = Let(f, function, body)
    assert infer_function(Function([a], body)).ret_type == TensorType((2,))
