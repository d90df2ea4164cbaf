"""Text against what TVM 0.18 printed, and texts read back."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.golden import GoldenCall, golden_calls
from support.programs import build_program, call_texts, programs
from support.samples import Symbols, all_samples, build, each_array, uses_sequences

import serde.relay as relay
from serde.errors import ParseError, RelayError, TypeInferenceError
from serde.relay.ir import registry
from serde.relay.ir.compare import first_difference
from serde.relay.ir.expr import Constant, Let, Var
from serde.relay.ir.registry import Array, OpDef, Sample
from serde.relay.ir.types import TensorType
from serde.relay.text.parser import parse_expr
from serde.relay.transform import InferType

LONG = 100_000

DEVIATIONS = {
    "const_nan": "a NaN constant is in the metadata, because TVM cannot read the nanf it prints",
    "digit_name": "a name that had to change travels in serde.names",
    "odd_name": "TVM prints a name that it cannot read",
}
"""Recorded cases from which strict text differs on purpose."""


def untyped(golden: GoldenCall) -> relay.IRModule:
    function = golden.build()
    return relay.IRModule({"main": relay.Function(function.params, function.body)})


CALLS = [case("tvm-text", golden.name, golden) for golden in golden_calls()]
EXACT_CALLS = [
    case("tvm-text", golden.name, golden)
    for golden in golden_calls()
    if golden.name not in DEVIATIONS
]
EXACT_PROGRAMS = sorted(set(programs()) - set(DEVIATIONS))


def test_gaps_are_cases() -> None:
    assert unknown_gaps("tvm-text", set(call_texts())) == []


@pytest.mark.parametrize("golden", EXACT_CALLS)
def test_call_prints_as_tvm(golden: GoldenCall) -> None:
    assert untyped(golden).astext(strict=True) == golden.record["text"]


@pytest.mark.wide
@pytest.mark.parametrize("golden", EXACT_CALLS)
def test_typed_call_prints_as_tvm(golden: GoldenCall) -> None:
    assert InferType()(untyped(golden)).astext(strict=True) == golden.record["typed"]


@pytest.mark.parametrize("name", EXACT_PROGRAMS)
def test_program_prints_as_tvm(name: str) -> None:
    assert build_program(name).astext(strict=True) == programs()[name]["text"]


@pytest.mark.parametrize("name", EXACT_PROGRAMS)
def test_typed_program_prints_as_tvm(name: str) -> None:
    assert InferType()(build_program(name)).astext(strict=True) == programs()[name]["typed"]


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["text", "typed"])
@pytest.mark.parametrize("golden", CALLS)
def test_text_of_tvm_is_read(golden: GoldenCall, name: str) -> None:
    found = relay.fromtext(golden.record[name])
    difference = first_difference(found, rounded(InferType()(untyped(golden))))
    assert difference is None


@pytest.mark.parametrize("which", ["text", "typed"])
@pytest.mark.parametrize("name", sorted(set(programs()) - {"odd_name"}))
def test_program_of_tvm_is_read(name: str, which: str) -> None:
    found = relay.fromtext(programs()[name][which])
    assert first_difference(found, InferType()(build_program(name))) is None


def rounded(mod: relay.IRModule) -> relay.IRModule:
    """Return `mod` with floats as six digits hold them, which is all that TVM prints."""
    from serde.relay.ir.expr import Attrs, Call, Expr
    from serde.relay.ir.visit import rewrite

    def replace(_old: Expr, new: Expr) -> Expr:
        if isinstance(new, Constant) and not new.data.ndim and new.data.dtype.kind == "f":
            return Constant(np.array(float(f"{float(new.data):g}"), dtype=new.data.dtype))
        if isinstance(new, Call) and any(isinstance(v, float) for v in new.attrs.values()):
            attrs = {
                name: float(f"{value:g}") if isinstance(value, float) else value
                for name, value in new.attrs.items()
            }
            call = Call(new.op, new.args, Attrs(attrs))
            call.type = new.type
            return call
        return new

    functions = {v: rewrite(f, replace) for v, f in mod.functions.items()}
    return mod.with_functions(functions)  # type: ignore[arg-type]


def test_odd_name_in_strict_text() -> None:
    assert build_program("odd_name").astext(strict=True) == (
        '#[version = "0.0.5"]\n'
        "def @main(%stage1_conv_0_out: Tensor[(2, 3), float32], "
        'serde=1, serde.names="stage1_conv_0_out=stage1.conv-0:out") {\n'
        "  exp(%stage1_conv_0_out)\n}\n"
    )


def test_digit_name_in_strict_text() -> None:
    assert build_program("digit_name").astext(strict=True) == (
        '#[version = "0.0.5"]\n'
        'def @main(%v0weight: Tensor[(2, 3), float32], serde=1, serde.names="v0weight=0weight") {\n'
        "  exp(%v0weight)\n}\n"
    )


def test_nan_in_strict_text() -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.add(x, relay.const(math.nan)))
    text = mod.astext(strict=True)
    assert "  add(%x, meta[relay.Constant][0])\n" in text
    assert "nanf" not in text
    assert first_difference(relay.fromtext(text), mod) is None


def test_text_that_tvm_cannot_read_is_refused() -> None:
    with pytest.raises(ParseError, match=r"<text>:2:18: expected"):
        relay.fromtext(programs()["odd_name"]["text"])


# Round trips.


@pytest.mark.thin(2)
@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
@pytest.mark.parametrize("name", sorted(programs()))
def test_program_round_trip(name: str, strict: bool) -> None:
    mod = InferType()(build_program(name))
    found = relay.fromtext(mod.astext(strict=strict))
    assert first_difference(found, mod) is None
    assert found.astext(strict=strict) == mod.astext(strict=strict)
    relay.verify(found)


@pytest.mark.wide
@pytest.mark.parametrize("golden", CALLS)
def test_call_round_trip(golden: GoldenCall) -> None:
    mod = untyped(golden)
    found = relay.fromtext(mod.astext())
    assert first_difference(found, mod) is None
    relay.verify(found)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_sample_round_trip(definition: OpDef, given: Sample) -> None:
    mod = InferType()(relay.IRModule({"main": build(definition, given).function}))
    text = mod.astext()
    found = relay.fromtext(text)
    assert first_difference(found, mod) is None
    assert found.astext() == text
    relay.verify(found)


SPECTRAL = ("serde.eig", "serde.eigh", "serde.svd")
"""Operators of which plain Relay can make nothing."""


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), all_samples())
def test_sample_round_trip_in_strict_text(definition: OpDef, given: Sample) -> None:
    mod = InferType()(relay.IRModule({"main": build(definition, given).function}))
    if uses_sequences(mod["main"]) or definition.name in SPECTRAL:
        with pytest.raises(RelayError, match="TVM's text cannot hold"):
            mod.astext(strict=True)
        return
    text = mod.astext(strict=True)
    found = relay.fromtext(text)
    assert first_difference(rounded(found), rounded(mod)) is None
    assert found.astext(strict=True) == text


FIXED = (
    "serde.bernoulli",
    "serde.causal_conv1d",
    "serde.dequantize_blocks",
    "serde.dequantize_sparse",
    "serde.lut_to_dense",
    "serde.lut_to_sparse",
    "serde.sparse_to_dense",
    "serde.random_gamma",
    "serde.random_normal",
    "serde.random_poisson",
    "serde.random_uniform",
    "serde.resize",
    "serde.deform_conv2d",
    "serde.max_pool_with_places",
)
"""Operators whose decomposition needs shapes that are fixed."""


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), all_samples())
def test_symbolic_sample_round_trip(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    kept = frozenset(
        (number, axis)
        for number, value in enumerate(built.arrays)
        for axis in range(1, each_array(value)[0].ndim)
    )
    try:
        function = build(definition, given, Symbols(shared=True, kept=kept)).function
    except RelayError:
        pytest.skip("the operator needs these lengths")
    mod = InferType()(relay.IRModule({"main": function}))
    assert first_difference(relay.fromtext(mod.astext()), mod) is None
    if uses_sequences(mod["main"]) or definition.name in SPECTRAL:
        return
    shapes = [each.type.concrete_shape for each in function.params]
    if definition.name in FIXED and None in shapes:
        with pytest.raises(TypeInferenceError, match="needs a fixed shape to"):
            mod.astext(strict=True)
        return
    strict = relay.fromtext(mod.astext(strict=True))
    assert first_difference(rounded(strict), rounded(mod)) is None


def scalar_module(data: Any) -> relay.IRModule:
    return InferType()(relay.IRModule({"main": relay.Function([], Constant(data))}))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_are_exact(dtype: str) -> None:
    seed = 20240229
    bits = np.random.default_rng(seed).integers(0, 256, (500, np.dtype(dtype).itemsize))
    values = np.frombuffer(bits.astype(np.uint8).tobytes(), dtype)
    edges = np.array([0.0, -0.0, 1 / 3, 1.00001e-5, np.inf, -np.inf, np.nan, 6e4], dtype)
    limits = np.finfo(dtype)
    ends = np.array([limits.max, limits.tiny, limits.smallest_subnormal, limits.eps], dtype)
    values = np.concatenate([values, edges, ends])
    mod = InferType()(
        relay.IRModule({"main": relay.Function([], relay.Tuple([Constant(v) for v in values]))})
    )
    found = relay.fromtext(mod.astext())["main"].body
    assert [field.data.tobytes() for field in found.fields] == [v.tobytes() for v in values]


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (0.1, "float32", "0.1f"),
        (1 / 3, "float32", "0.33333334f"),
        (1 / 3, "float64", "0.3333333333333333f64"),
        (123456.0, "float32", "123456f"),
        (1e-5, "float16", "1e-05f16"),
        (math.inf, "float64", "inff64"),
        (-math.inf, "float32", "-inff"),
        (-7, "int16", "-7i16"),
        (-(2**31), "int32", "-2147483648"),
        (-(2**63), "int64", "-9223372036854775808i64"),
        (True, "bool", "True"),
    ],
)
def test_scalar_text(value: Any, dtype: str, shown: str) -> None:
    mod = scalar_module(np.array(value, dtype))
    assert f"\n  {shown} /* ty=" in mod.astext()
    assert first_difference(relay.fromtext(mod.astext()), mod) is None


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint64", "bfloat16", "float8_e5m2"])
def test_scalars_in_the_metadata(dtype: str) -> None:
    mod = InferType()(relay.IRModule({"main": relay.Function([], relay.const(3, dtype))}))
    for strict in (False, True):
        text = mod.astext(strict=strict)
        assert "meta[relay.Constant][0]" in text
        assert first_difference(relay.fromtext(text), mod) is None


def test_attribute_floats_are_exact() -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.nn.leaky_relu(x, 1 / 3))
    assert "alpha=0.3333333333333333f" in mod.astext()
    assert relay.fromtext(mod.astext())["main"].body.attrs.alpha == 1 / 3


ODD_NAMES = [
    "stage1.conv-0:out", "0weight", "", "let", "a b", "größe", 'q"\\', "x&y=z%", "%a", "_x",
    "\udc80", "a\nb", "x" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
def test_odd_names_come_back(strict: bool) -> None:
    params = [relay.var(name, shape=(2,)) for name in ODD_NAMES]
    helper = relay.GlobalVar("help.er-1")
    inner = relay.var("in.ner", shape=(2,))
    total = params[0]
    for param in params[1:]:
        total = relay.add(total, param)
    local = Var("lo.cal")
    body = Let(local, total, helper(local))
    main = relay.Function(params, body)
    functions = {helper: relay.Function([inner], relay.exp(inner)), relay.GlobalVar("main"): main}
    mod = InferType()(relay.IRModule(functions))
    found = relay.fromtext(mod.astext(strict=strict))
    assert [param.name_hint for param in found["main"].params] == ODD_NAMES
    assert found["main"].body.var.name_hint == "lo.cal"
    assert found["help.er-1"].params[0].name_hint == "in.ner"
    assert first_difference(found, mod) is None


def test_names_are_counted_in_each_function_alone() -> None:
    text = """#[version = "0.0.5"]
def @first(%x: Tensor[(2), float32]) {
  exp(%x)
}

def @main(%x: Tensor[(2), float32]) {
  @first(%x)
}
"""
    mod = relay.fromtext(text)
    assert mod["main"].params[0].name_hint == "x"
    assert "def @main(%x: " in mod.astext()


def dims_module() -> relay.IRModule:
    h, n = relay.symbol("H"), relay.symbol("seq-len")
    x = relay.var("x", shape=(n, 3, (h + 1) // 2, 2 * h * h - n + 1, relay.Any()))
    return InferType()(relay.IRModule.from_expr(relay.exp(x)))


def test_dimensions_have_names_in_the_dialect() -> None:
    mod = dims_module()
    text = mod.astext()
    assert 'Tensor[("seq-len", 3, floordiv(H + 1, 2), ' in text
    assert first_difference(relay.fromtext(text), mod) is None


def test_dimensions_have_no_names_in_strict_text() -> None:
    mod = dims_module()
    text = mod.astext(strict=True)
    assert "%x: Tensor[(?, 3, ?, ?, ?), float32]" in text
    assert first_difference(relay.fromtext(text), mod) is None


def test_dimensions_inside_closures_come_back_from_strict_text() -> None:
    x, k, f = relay.var("x", shape=("N",)), relay.var("k", shape=("N",)), Var("f")
    function = relay.Function([k], relay.exp(k), TensorType(("N",)))
    mod = InferType()(relay.IRModule({"main": relay.Function([x], Let(f, function, f(x)))}))
    assert first_difference(relay.fromtext(mod.astext(strict=True)), mod) is None


def test_carried_types_must_agree_with_the_text() -> None:
    text = dims_module().astext(strict=True).replace("3, ?, ?, ?)", "4, ?, ?, ?)")
    with pytest.raises(ParseError, match=r"serde\.types says"):
        relay.fromtext(text)


def test_symbolic_attribute_is_refused_in_strict_text() -> None:
    x = relay.var("x", shape=(1, 3))
    mod = relay.IRModule.from_expr(relay.broadcast_to(x, (relay.symbol("N"), 3)))
    assert "shape=[N, 3]" in mod.astext()
    assert first_difference(relay.fromtext(mod.astext()), mod) is None
    with pytest.raises(RelayError, match="cannot hold the dimension N"):
        mod.astext(strict=True)


# Extension operators.


def gelu_module() -> relay.IRModule:
    x = relay.var("x", shape=("N", 3))
    call = relay.serde.gelu(relay.exp(x))
    return InferType()(relay.IRModule.from_expr(call))


def test_extension_call_is_a_composite_in_strict_text() -> None:
    mod = gelu_module()
    text = mod.astext(strict=True)
    assert 'Composite="serde.gelu"' in text
    assert " serde.gelu(" not in text
    assert first_difference(relay.fromtext(text), mod) is None
    assert " serde.gelu(" in mod.astext()


def test_composite_with_another_body_stays() -> None:
    text = gelu_module().astext(strict=True)
    changed = text.replace("erf(", "tanh(")
    assert changed != text
    found = relay.fromtext(changed)
    assert isinstance(found["main"].body.op, relay.Function)
    assert " serde.gelu(" not in found.astext()


# Scale.


def chain(length: int) -> relay.IRModule:
    x = relay.var("x", shape=(2, 3))
    value: Any = x
    for _ in range(length):
        value = relay.exp(value)
    return InferType()(relay.IRModule.from_expr(value))


@pytest.mark.slow
def test_long_chain() -> None:
    mod = chain(LONG)
    text = mod.astext()
    assert text.count("\n") == LONG + 3
    found = relay.fromtext(text)
    assert first_difference(found, mod) is None
    relay.verify(found)


@pytest.mark.slow
def test_long_chain_of_lets() -> None:
    x = relay.var("x", shape=(2, 3))
    variables = [x, *[Var(f"l{i}") for i in range(LONG)]]
    body: Any = variables[-1]
    for before, variable in zip(variables[-2::-1], variables[:0:-1], strict=True):
        body = Let(variable, relay.exp(before), body)
    mod = InferType()(relay.IRModule({"main": relay.Function([x], body)}))
    found = relay.fromtext(mod.astext())
    assert first_difference(found, mod) is None
    relay.verify(found)


@pytest.mark.wide
def test_nothing_depends_on_the_recursion_limit() -> None:
    mod = chain(3000)
    limit = sys.getrecursionlimit()
    text = mod.astext(strict=True)
    assert relay.structural_equal(relay.fromtext(text), mod)
    assert sys.getrecursionlimit() == limit


# What the grammar allows beyond what is printed.


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("fn (%x: int32) { %x + %x * %x }", "fn (%x: int32) { add(%x, multiply(%x, %x)) }"),
        ("fn (%x: int32) { %x - %x - %x }", "fn (%x: int32) { subtract(subtract(%x, %x), %x) }"),
        ("fn (%x: int32) { %x + 1 < %x }", "fn (%x: int32) { less(add(%x, 1), %x) }"),
        ("fn (%x: int32) { (%x, %x).0 }", "fn (%x: int32) { %0 = (%x, %x); %0.0 }"),
        ("fn (%x: int32) { (%x) }", "fn (%x: int32) { %x }"),
        ("fn (%x: int32) { { %x } }", "fn (%x: int32) { %x }"),
        ("fn (%x: int32) { --1 }", "fn (%x: int32) { 1i32 }"),
        ("fn (%x: int32) { /* a /* b */ c */ 1i // end\n }", "fn (%x: int32) { 1 }"),
        ("fn (%x: Tensor[(), int32]) { 4294967296 }", "fn (%x: int32) { 4294967296i64 }"),
        ("fn (%x: uint1) { %x }", "fn (%x: bool) { %x }"),
        ("fn (%x: int32,) { let %y: _ = %x; %y }", "fn (%x: int32) { let %z = %x; %z }"),
        (
            "fn (%x: int32) { fn (%y: int32) { %y }(%x) }",
            "fn (%z: int32) { %0 = fn (%y: int32) { %y }; %0(%z) }",
        ),
        ("fn (%x: int32) { exp(1f); %x }", "fn (%x: int32) { let %unused = exp(1f); %x }"),
    ],
)
def test_spellings(text: str, other: str) -> None:
    assert first_difference(parse_expr(text), parse_expr(other)) is None


def test_expression_with_free_variables() -> None:
    x = relay.var("x", shape=(2,))
    expr = relay.add(relay.exp(x), relay.const(1.0))
    text = expr.astext()
    assert text == (
        '#[version = "0.0.5"]\nfree_var %x: Tensor[(2), float32];\n%0 = exp(%x);\nadd(%0, 1f)'
    )
    assert first_difference(parse_expr(text), expr, map_free_vars=True) is None
    assert parse_expr(text).type is None
    assert parse_expr(text, infer=True).type == TensorType((2,))


def test_let_that_is_an_operand_reads_back() -> None:
    a, inner = relay.var("a", shape=(2,)), Var("l", TensorType((2,)))
    body = relay.add(Let(inner, relay.exp(a), relay.log(inner)), a)
    mod = InferType()(relay.IRModule({"main": relay.Function([a], body)}))
    assert first_difference(relay.fromtext(mod.astext()), mod) is None


def test_shared_let_and_function_read_back() -> None:
    a, inner, k = relay.var("a", shape=(2,)), Var("l", TensorType((2,))), relay.var("k", shape=(2,))
    let = Let(inner, relay.exp(a), relay.log(inner))
    function = relay.Function([k], relay.exp(k))
    body = relay.add(relay.add(let, let), relay.add(function(a), function(let)))
    mod = InferType()(relay.IRModule({"main": relay.Function([a], body)}))
    assert first_difference(relay.fromtext(mod.astext()), mod) is None


def test_function_attributes_read_back() -> None:
    x = relay.var("x", shape=(2,))
    attrs = {"Compiler": "a\tb\"c\\\u00e9", "Primitive": 1, "relay.reshape_only": True, "f": 0.1,
             "list": (1, (2, "x"))}  # fmt: skip
    mod = InferType()(relay.IRModule({"main": relay.Function([x], x, None, attrs=attrs)}))
    assert relay.fromtext(mod.astext())["main"].attrs == attrs


@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
def test_module_attributes_read_back(strict: bool) -> None:
    x = relay.var("x", shape=(2,))
    attrs = {"producer name": 'a "quoted" one', "version": 3, "sizes": (1, 2)}
    mod = InferType()(relay.IRModule({"main": relay.Function([x], x)}, attrs=attrs))
    found = relay.fromtext(mod.astext(strict=strict))
    assert found.attrs == attrs
    assert first_difference(found, mod) is None


def _repeat_type(data: TensorType, *, body: relay.Function, count: int) -> TensorType:
    return data


def _repeat(data: Array, *, body: relay.Function, count: int) -> Array:
    return data


def test_function_as_an_attribute_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = OpDef("serde.test_repeat", _repeat, _repeat_type, [])
    monkeypatch.setitem(registry._OPS, "serde.test_repeat", definition)
    x, k = relay.var("x", shape=("N",)), relay.var("k", shape=("N",))
    body = relay.Function([k], relay.log(relay.exp(k)), TensorType(("N",)))
    call = registry.call("serde.test_repeat", x, body=body, count=3)
    mod = InferType()(relay.IRModule({"main": relay.Function([x], call)}))
    text = mod.astext()
    assert "serde.test_repeat(%x, body=%1, count=3)" in text
    found = relay.fromtext(text)
    assert first_difference(found, mod) is None
    assert found.astext() == text
    relay.verify(found)
    with pytest.raises(RelayError, match="no body in plain Relay"):
        mod.astext(strict=True)


def test_plain_spelling_of_attributes_that_tvm_puts_in_the_metadata() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 9), float32]) {
  cumsum(%x, axis=1, exclusive=True)
}
"""
    tvm = relay.fromtext(call_texts()["cumsum"]["text"])
    assert first_difference(relay.fromtext(text), tvm) is None


def test_split_with_a_plain_number_as_before_018() -> None:
    text = """#[version = "0.0.5"]
def @main(%x0: Tensor[(6, 4), float32]) {
  split(%x0, indices_or_sections=3)
}
"""
    tvm = relay.fromtext(call_texts()["split_n"]["text"])
    assert first_difference(relay.fromtext(text), tvm) is None
    assert "indices_or_sections=3" in tvm.astext()


def test_text_stands_in_place_in_the_metadata_where_tvm_keeps_it_so() -> None:
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.annotation.compiler_begin(x, "dnnl"))
    mod = InferType()(relay.IRModule.from_expr(function))
    text = mod.astext(strict=True)
    assert '"attrs": {"compiler": "dnnl"}' in text
    relay.assert_structural_equal(relay.fromtext(text), mod)


def test_str_has_neither_header_nor_metadata() -> None:
    mod = build_program("meta_constant")
    assert str(mod) == (
        "def @main(%a: Tensor[(2, 3), float32]) {\n"
        "  %0 = multiply(%a, meta[relay.Constant][0]);\n"
        "  add(%0, meta[relay.Constant][0])\n}\n"
    )


def test_a_name_whose_spelling_is_taken_comes_back() -> None:
    names = ["a.b", "a_b", "a-b", "a_b1"]
    variables = [relay.var(name, shape=(2,)) for name in names]
    mod = relay.IRModule.from_expr(relay.Function(variables, relay.Tuple(variables)))
    back = relay.fromtext(InferType()(mod).astext())
    assert [param.name_hint for param in back["main"].params] == names
