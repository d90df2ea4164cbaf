"""Mixed precision: what is computed in the narrow type, written out, and what results are."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import ml_dtypes  # noqa: F401  # Gives NumPy the dtype bfloat16.
import numpy as np
import pytest

import serde.relay as relay
from serde.errors import OptionError, RelayError, SerdeError, Unsupported
from serde.relay.ir.attrs import get_op_attr, register_op_attr, reset_op_attr
from serde.relay.ir.expr import Call
from serde.relay.ir.verify import verify
from serde.relay.transform import InferType, PassContext, ToMixedPrecision
from serde.relay.tvm.passes import mixed_precision

HEAD = '#[version = "0.0.5"]\n'
KEY = "FTVMMixedPrecisionConversionType"
KEEP = {"relay.ToMixedPrecision.keep_orig_output_dtype": True}

MATRIX = {
    "follow": [
        "add({}, {})", "subtract({}, {})", "multiply({}, {})", "divide({}, {})",
        "maximum({}, {})", "minimum({}, {})", "less({}, {})", "less_equal({}, {})",
        "greater({}, {})", "greater_equal({}, {})", "sqrt({})", "sigmoid({})", "tanh({})",
        "fast_tanh({})", "fast_exp({})", "fast_erf({})", "nn.relu({})",
        "nn.leaky_relu({}, alpha=0.1f)",
        "copy({})", "reshape({}, newshape=[8, 4])", "transpose({}, axes=[1, 0])",
        "expand_dims({}, axis=1)", "tile({}, reps=[2, 1])", "max({}, axis=[1])",
        "min({}, axis=[0], keepdims=True)", "argmax({}, axis=[1])", "argmin({}, axis=[0])",
        "strided_slice({}, begin=[0, 1], end=[4, 7], strides=[1, 2], axes=None)",
        "nn.batch_flatten({})",
        "clip({}, a_min=-3f, a_max=3f)", "cast({}, dtype=\"int32\")", "nn.dropout({}).0",
        "cast_like({}, {})", "shape_of({}, dtype=\"int32\")",
        "split({}, indices_or_sections=2, axis=1).1", "broadcast_to_like({}, {})",
        # Not registered, which is as good.
        "abs({})", "negative({})", "floor({})", "reverse({}, axis=1)", "log({})", "rsqrt({})",
    ],
    "never": [
        "exp({})", "erf({})", "power({}, {})", "nn.softmax({})", "sum({}, axis=[1])", "mean({})",
        "sum({}, axis=[0, 1], keepdims=True)", "mean({}, axis=[1], exclude=True)",
        "clip({}, a_min=-1e39f, a_max=3f)",
    ],
}  # fmt: skip
IMAGE = {
    "follow": [
        "nn.max_pool2d({}, pool_size=[2, 2])", "nn.avg_pool2d({}, pool_size=[2, 2])",
        "nn.global_max_pool2d({})", "nn.adaptive_max_pool2d({}, output_size=[2, 2])",
        "nn.depth_to_space({}, block_size=2)", "squeeze({}, axis=[0])",
        "image.resize2d({}, size=[4, 4], roi=[0f, 0f, 0f, 0f])",
    ],
    "never": [
        "nn.global_avg_pool2d({})", "nn.adaptive_avg_pool2d({}, output_size=[2, 2])",
        "nn.l2_normalize({}, eps=0.001f, axis=[1])",
    ],
}  # fmt: skip
NARROW = ["float16", "bfloat16"]


def _cases(table: dict[str, list[str]]) -> list[object]:
    return [
        pytest.param(op, category == "follow", id=op.partition("(")[0] + f"-{index}")
        for category, ops in table.items()
        for index, op in enumerate(ops)
    ]


def _mod(text: str) -> relay.IRModule:
    mod = InferType()(relay.fromtext(HEAD + text))
    verify(mod)
    return mod


def _convert(mod: relay.IRModule, dtype: str = "float16") -> relay.IRModule:
    after = ToMixedPrecision(dtype, 2)(mod)
    verify(after)
    return after


def _same(found: relay.IRModule, wanted: str) -> None:
    relay.assert_structural_equal(found, _mod(wanted))


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("op", "follows"), _cases(MATRIX))
def test_behind_a_dense_layer(op: str, follows: bool, dtype: str) -> None:
    head = "def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(8, 6), float32])"
    before = f"{head} {{ %0 = nn.dense(%x, %w, units=8); {op.format('%0', '%0')} }}"
    dense = f"""%0 = cast(%x, dtype="{dtype}"); %1 = cast(%w, dtype="{dtype}");
        %2 = nn.dense(%0, %1, units=8, out_dtype="{dtype}");"""
    end = (
        op.format("%2", "%2")
        if follows
        else f'%3 = cast(%2, dtype="float32"); {op.format("%3", "%3")}'
    )
    _same(_convert(_mod(before), dtype), f"{head} {{ {dense} {end} }}")


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("op", "follows"), _cases(IMAGE))
def test_behind_a_convolution(op: str, follows: bool, dtype: str) -> None:
    head = "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 1, 1), float32])"
    conv = "nn.conv2d({}, {}, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1]"
    before = f"{head} {{ %0 = {conv.format('%x', '%w')}); {op.format('%0')} }}"
    narrow = f"""%0 = cast(%x, dtype="{dtype}"); %1 = cast(%w, dtype="{dtype}");
        %2 = {conv.format("%0", "%1")}, out_dtype="{dtype}");"""
    end = op.format("%2") if follows else f'%3 = cast(%2, dtype="float32"); {op.format("%3")}'
    _same(_convert(_mod(before), dtype), f"{head} {{ {narrow} {end} }}")


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "follows"), _cases(MATRIX))
def test_behind_a_softmax_nothing_changes(op: str, follows: bool) -> None:
    before = f"""def @main(%x: Tensor[(4, 8), float32]) {{
        %0 = nn.softmax(%x); {op.format("%0", "%0")} }}"""
    _same(_convert(_mod(before)), before)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "follows"), _cases(MATRIX))
def test_of_a_variable(op: str, follows: bool) -> None:
    head = "def @main(%x: Tensor[(4, 8), float32])"
    before = f"{head} {{ {op.format('%x', '%x')} }}"
    after = f'{head} {{ %0 = cast(%x, dtype="float16"); {op.format("%0", "%0")} }}'
    _same(_convert(_mod(before)), after if follows else before)


ALWAYS = {
    "nn.conv1d": ("(1, 3, 8)", "(4, 3, 3)", "padding=[1, 1], channels=4, kernel_size=[3]"),
    "nn.conv2d": (
        "(1, 3, 8, 8)", "(4, 3, 3, 3)", "padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]",
    ),
    "nn.conv3d": (
        "(1, 2, 4, 4, 4)", "(3, 2, 1, 1, 1)",
        "padding=[0, 0, 0, 0, 0, 0], channels=3, kernel_size=[1, 1, 1]",
    ),
    "nn.conv1d_transpose": (
        "(1, 3, 8)", "(3, 4, 3)", "channels=4, kernel_size=[3], padding=[1, 1]",
    ),
    "nn.conv2d_transpose": (
        "(1, 3, 8, 8)", "(3, 4, 3, 3)", "channels=4, kernel_size=[3, 3], padding=[1, 1, 1, 1]",
    ),
    "nn.conv3d_transpose": (
        "(1, 2, 4, 4, 4)", "(2, 3, 1, 1, 1)",
        "channels=3, kernel_size=[1, 1, 1], padding=[0, 0, 0, 0, 0, 0]",
    ),
    "nn.dense": ("(4, 6)", "(8, 6)", "units=8"),
    "nn.batch_matmul": ("(2, 3, 4)", "(2, 5, 4)", "transpose_b=True"),
}  # fmt: skip


@pytest.mark.parametrize("declared", ["", ', out_dtype="float32"', ', out_dtype="float16"'])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("op", ALWAYS)
def test_always_operators(op: str, dtype: str, declared: str) -> None:
    data, weight, attrs = ALWAYS[op]
    head = f"def @main(%x: Tensor[{data}, float32], %w: Tensor[{weight}, float32])"
    before = f"{head} {{ {op}(%x, %w, {attrs}{declared}) }}"
    after = f"""{head} {{ %0 = cast(%x, dtype="{dtype}"); %1 = cast(%w, dtype="{dtype}");
        {op}(%0, %1, {attrs}, out_dtype="{dtype}") }}"""
    _same(_convert(_mod(before), dtype), after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "zeros(shape=[2, 3], dtype=\"float32\")", "zeros(shape=[2, 3], dtype=\"float16\")",
            id="zeros-are-made-narrow",
        ),
        pytest.param(
            "zeros(shape=[2, 3], dtype=\"int32\")", "zeros(shape=[2, 3], dtype=\"int32\")",
            id="integer-zeros-stay",
        ),
        pytest.param(
            "ones(shape=[2], dtype=\"float64\")", "ones(shape=[2], dtype=\"float16\")",
            id="wide-ones-are-made-narrow",
        ),
    ],
)  # fmt: skip
def test_what_makes_tensors(before: str, after: str) -> None:
    _same(_convert(_mod(f"def @main() {{ {before} }}")), f"def @main() {{ {after} }}")


def test_a_constant_is_cast_not_folded() -> None:
    before = "def @main(%x: Tensor[(3), float32]) { add(%x, 2f) }"
    after = """def @main(%x: Tensor[(3), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(2f, dtype="float16"); add(%0, %1) }"""
    _same(_convert(_mod(before)), after)


def test_a_cast_is_made_once_and_undone_by_its_source() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = nn.dense(%x, %w, units=6); %1 = nn.dense(%0, %w, units=6);
        %2 = nn.softmax(%x); %3 = nn.softmax(%0); (%1, %2, %3) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(%w, dtype="float16");
        %2 = nn.dense(%0, %1, units=6, out_dtype="float16");
        %3 = nn.dense(%2, %1, units=6, out_dtype="float16");
        %4 = nn.softmax(%x); %5 = cast(%2, dtype="float32"); %6 = nn.softmax(%5);
        (%3, %4, %6) }"""
    _same(_convert(_mod(before)), after)


def test_float16_inputs_of_never_operators_become_float32() -> None:
    before = "def @main(%x: Tensor[(3), float16]) { nn.softmax(%x) }"
    after = """def @main(%x: Tensor[(3), float16]) {
        %0 = cast(%x, dtype="float32"); nn.softmax(%0) }"""
    _same(_convert(_mod(before)), after)


def test_one_wide_operand_keeps_a_follower_wide() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = nn.dense(%x, %w, units=6); %1 = exp(%x); add(%0, %1) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(%w, dtype="float16");
        %2 = nn.dense(%0, %1, units=6, out_dtype="float16"); %3 = exp(%x);
        %4 = cast(%2, dtype="float32"); add(%4, %3) }"""
    _same(_convert(_mod(before)), after)


def test_integers_do_not_keep_a_follower_wide() -> None:
    before = """def @main(%x: Tensor[(5, 6), float32], %i: Tensor[(2), int32]) {
        %0 = add(%i, 1); take(%x, %0, axis=0) }"""
    after = """def @main(%x: Tensor[(5, 6), float32], %i: Tensor[(2), int32]) {
        %0 = cast(%x, dtype="float16"); %1 = add(%i, 1); take(%0, %1, axis=0) }"""
    _same(_convert(_mod(before)), after)


def test_fields_of_a_tuple_are_cast_each() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = nn.dense(%x, %w, units=6); %1 = exp(%x); %2 = (%0, %1); concatenate(%2) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(%w, dtype="float16");
        %2 = nn.dense(%0, %1, units=6, out_dtype="float16"); %3 = cast(%2, dtype="float32");
        %4 = exp(%x); %5 = (%3, %4); concatenate(%5) }"""
    _same(_convert(_mod(before)), after)


def test_a_tuple_of_narrow_fields_follows() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = nn.dense(%x, %w, units=6); %1 = tanh(%0); %2 = (%0, %1); concatenate(%2, axis=1) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(%w, dtype="float16");
        %2 = nn.dense(%0, %1, units=6, out_dtype="float16"); %3 = tanh(%2); %4 = (%2, %3);
        concatenate(%4, axis=1) }"""
    _same(_convert(_mod(before)), after)


def test_lets_take_the_type_of_their_value() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        let %a: Tensor[(4, 6), float32] = nn.dense(%x, %w, units=6);
        let %b: Tensor[(4, 6), float32] = add(%a, %a);
        nn.softmax(%b) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        let %a: Tensor[(4, 6), float16] = nn.dense(cast(%x, dtype="float16"),
            cast(%w, dtype="float16"), units=6, out_dtype="float16");
        let %b: Tensor[(4, 6), float16] = add(%a, %a);
        nn.softmax(cast(%b, dtype="float32")) }"""
    _same(_convert(_mod(before)), after)


def test_functions_get_float32_and_convert_inside() -> None:
    before = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = nn.dense(%x, %w, units=6);
        %1 = fn (%y: Tensor[(4, 6), float32]) { tanh(%y) };
        %1(%0) }"""
    after = """def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(6, 6), float32]) {
        %0 = cast(%x, dtype="float16"); %1 = cast(%w, dtype="float16");
        %2 = nn.dense(%0, %1, units=6, out_dtype="float16"); %3 = cast(%2, dtype="float32");
        %4 = fn (%y: Tensor[(4, 6), float32]) { tanh(cast(%y, dtype="float16")) };
        %4(%3) }"""
    _same(_convert(_mod(before)), after)


def test_branches_that_agree_are_converted() -> None:
    before = """def @main(%c: bool, %x: Tensor[(4), float32]) {
        if (%c) { tanh(%x) } else { sigmoid(%x) } }"""
    found = _convert(_mod(before))
    x = np.linspace(-2, 2, 4).astype("float32")
    for which, function in ((True, np.tanh), (False, lambda v: 1 / (1 + np.exp(-v)))):
        value = relay.create_executor("debug", mod=found).evaluate()(np.bool_(which), x).numpy()
        assert value.dtype == np.float16
        np.testing.assert_allclose(value, function(x), atol=1e-3)


def test_branches_that_would_differ_are_refused() -> None:
    before = """def @main(%c: bool, %x: Tensor[(4), float32]) {
        if (%c) { tanh(%x) } else { exp(%x) } }"""
    with pytest.raises(Unsupported, match="branches would be"):
        ToMixedPrecision()(_mod(before))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """def @f(%y: Tensor[(4), float32]) -> Tensor[(4), float32] { tanh(%y) }
            def @main(%x: Tensor[(4), float32]) { sigmoid(@f(sqrt(%x))) }""",
            """def @f(%y: Tensor[(4), float32]) -> Tensor[(4), float32] {
                cast(tanh(cast(%y, dtype="float16")), dtype="float32") }
            def @main(%x: Tensor[(4), float32]) {
                sigmoid(@f(cast(sqrt(cast(%x, dtype="float16")), dtype="float32"))) }""",
            id="arguments-and-results-are-cast-back",
        ),
        pytest.param(
            """def @f(%y: Tensor[(4), float16], %i: int32) -> (Tensor[(4), float16], int32) {
                (negative(%y), %i) }
            def @main(%x: Tensor[(4), float16]) { (@f(tanh(%x), 3)).0 }""",
            """def @f(%y: Tensor[(4), float16], %i: int32) -> (Tensor[(4), float16], int32) {
                (negative(%y), %i) }
            def @main(%x: Tensor[(4), float16]) { (@f(tanh(%x), 3)).0 }""",
            id="what-is-narrow-stays",
        ),
    ],
)
def test_a_global_function_that_is_called_keeps_its_type(before: str, after: str) -> None:
    found = InferType()(ToMixedPrecision("float16", 2)(_mod(before)))
    verify(found)
    _same(found, after)


def test_recursion_and_tuples_between_global_functions_are_converted() -> None:
    before = """def @turn(%n: int32, %p: (Tensor[(4), float32], Tensor[(4), float32]))
            -> (Tensor[(4), float32], Tensor[(4), float32]) {
        if (less(%n, 1)) { %p } else {
            let %q = (tanh(%p.1), sigmoid(%p.0)); @turn(subtract(%n, 1), %q) } }
        def @main(%x: Tensor[(4), float32]) { @turn(3, (sqrt(%x), sqrt(%x))) }"""
    found = InferType()(ToMixedPrecision("float16", 2)(_mod(before)))
    verify(found)
    assert "float16" in found.astext()
    x = np.linspace(0.1, 2, 4).astype("float32")
    one = two = np.sqrt(x)
    for _ in range(3):
        one, two = np.tanh(two), 1 / (1 + np.exp(-one))
    values = relay.create_executor("debug", mod=found).evaluate()(x)
    for value, expected in zip(values, (one, two), strict=True):
        assert value.numpy().dtype == np.float32
        np.testing.assert_allclose(value.numpy(), expected, atol=2e-3)


@pytest.mark.parametrize(
    ("body", "end"),
    [
        pytest.param(
            "tanh(%x)", 'cast(tanh(cast(%x, dtype="float16")), dtype="float32")', id="call",
        ),
        pytest.param("exp(%x)", "exp(%x)", id="call-that-stays"),
        pytest.param(
            "(tanh(%x), exp(%x))",
            '(cast(tanh(cast(%x, dtype="float16")), dtype="float32"), exp(%x))', id="tuple",
        ),
        pytest.param("argmax(%x)", 'argmax(cast(%x, dtype="float16"))', id="integers"),
        pytest.param("split(%x, indices_or_sections=2).0",
                     'split(cast(%x, dtype="float16"), indices_or_sections=2).0', id="field"),
    ],
)  # fmt: skip
def test_results_keep_their_types_where_the_context_says_so(body: str, end: str) -> None:
    head = "def @main(%x: Tensor[(4), float32])"
    before = _mod(f"{head} {{ {body} }}")
    with PassContext(config=KEEP):
        found = ToMixedPrecision("float16", 2)(before)
    _same(found, f"{head} {{ {end} }}")


@pytest.fixture
def _own_rule() -> Iterator[None]:
    yield
    reset_op_attr("ceil", KEY)


@pytest.mark.usefixtures("_own_rule")
@pytest.mark.parametrize(
    ("verdict", "after"),
    [
        ([0, "float16", "float16"], '%0 = exp(%x); ceil(cast(%0, dtype="float16"))'),
        ([1, "float16", "float16"], "ceil(exp(%x))"),
        ([2, "float32", "float32"], "ceil(exp(%x))"),
        (
            [0, "float16", "float32"],
            '%0 = exp(%x); cast(ceil(cast(%0, dtype="float16")), dtype="float32")',
        ),
    ],
)
def test_an_operator_of_the_user(verdict: list[object], after: str) -> None:
    @mixed_precision.register_mixed_precision_conversion("ceil")
    def judge(call_node: Call, mixed_precision_type: str) -> list[object]:
        assert mixed_precision_type == "float16"
        return verdict

    head = "def @main(%x: Tensor[(4), float32])"
    found = _convert(_mod(f"{head} {{ ceil(exp(%x)) }}"))
    _same(found, f"{head} {{ {after} }}")


@pytest.mark.usefixtures("_own_rule")
def test_a_rule_of_another_length_is_refused() -> None:
    register_op_attr("ceil", KEY, lambda call_node, dtype: [0])
    with pytest.raises(RelayError, match="expected three values"):
        ToMixedPrecision()(_mod("def @main(%x: Tensor[(4), float32]) { ceil(%x) }"))


UNKNOWN = "def @main(%x: Tensor[(4), float32]) { ceil(ceil(%x)) }"


def test_operators_that_say_nothing_are_refused_in_mode_0() -> None:
    with pytest.raises(SerdeError, match=f"operators without {KEY}: ceil"):
        ToMixedPrecision("float16", 0)(_mod(UNKNOWN))


@pytest.mark.parametrize(("mode", "lines"), [(1, 1), (2, 0)])
def test_operators_that_say_nothing_are_told_in_mode_1(
    mode: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        ToMixedPrecision("float16", mode)(_mod(UNKNOWN))
    assert [r.getMessage() for r in caplog.records] == [
        f"operator ceil, 2 of the nodes, has no {KEY}"
    ] * lines


@pytest.mark.parametrize("mode", [-1, 3])
def test_there_are_three_modes(mode: int) -> None:
    with pytest.raises(OptionError, match="'int7' is no dtype"):
        ToMixedPrecision("int7")
    with pytest.raises(OptionError, match="missing_op_mode"):
        ToMixedPrecision("float16", mode)


@pytest.mark.parametrize("dtype", ["int8", "bool", "uint16"])
def test_the_narrow_type_is_floating_point(dtype: str) -> None:
    with pytest.raises(RelayError, match=f"expected a floating-point type, found {dtype}"):
        ToMixedPrecision(dtype)


@pytest.mark.parametrize(
    ("names", "category"),
    [
        (mixed_precision.DEFAULT_ALWAYS_LIST, 0),
        (mixed_precision.DEFAULT_FOLLOW_LIST, 1),
        (mixed_precision.DEFAULT_NEVER_LIST, 2),
    ],
)
def test_lists_are_registered(names: list[str], category: int) -> None:
    node = relay.exp(relay.var("x", shape=(2,)))
    assert [get_op_attr(name, KEY)(node, "float16")[0] for name in names] == [category] * len(names)
    assert len(set(names)) == len(names)


def test_numbers_are_about_the_same() -> None:
    mod = _mod("""def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32],
            %b: Tensor[(4), float32]) {
        %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
        %1 = nn.bias_add(%0, %b); %2 = nn.relu(%1);
        %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
        %4 = nn.batch_flatten(%3); nn.softmax(%4) }""")
    rng = np.random.default_rng(7)
    args = [rng.normal(size=s).astype("float32") / 4 for s in ((1, 3, 8, 8), (4, 3, 3, 3), (4,))]
    wide = relay.create_executor("debug", mod=mod).evaluate()(*args).numpy()
    narrow = relay.create_executor("debug", mod=_convert(mod)).evaluate()(*args).numpy()
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=0.01)
    assert not np.array_equal(narrow, wide)


@pytest.mark.usefixtures("_own_rule")
def test_one_rule_for_several_operators() -> None:
    mixed_precision.register_func_to_op_list(["ceil"])(mixed_precision.generic_never_op)
    assert get_op_attr("ceil", KEY) is mixed_precision.generic_never_op
    before = "def @main(%x: Tensor[(4), float32]) { ceil(tanh(%x)) }"
    after = """def @main(%x: Tensor[(4), float32]) {
        ceil(cast(tanh(cast(%x, dtype="float16")), dtype="float32")) }"""
    _same(_convert(_mod(before)), after)
