"""Layouts that are asked for, and how the operators behind a convolution follow them."""

import pytest
from support.layout_cases import assert_becomes, assert_same_numbers, program

from serde.relay.ir.compare import structural_equal
from serde.relay.transform import ConvertLayout, PassContext, Sequential

PARAMS = {
    "x": "(1, 6, 6, 4)",
    "w": "(3, 3, 4, 8)",
    "b": "(8)",
    "v": "(1, 6, 6, 8)",
    "m": "(6, 8)",
    "s": "(1)",
    "one": "(1, 1, 1, 8)",
}
FIRST = {"nn.conv2d": ["NCHW", "default"]}
_ATTRS = "padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]"
BEFORE = f'%9 = nn.conv2d(%x, %w, {_ATTRS}, data_layout="NHWC", kernel_layout="HWIO");\n'
AFTER = f"""%0 = [NHWC>NCHW %x];
%1 = [HWIO>OIHW %w];
%9 = nn.conv2d(%0, %1, {_ATTRS});
"""


def _check(before: str, after: str) -> None:
    assert_becomes(ConvertLayout(FIRST), PARAMS, BEFORE + before, AFTER + after)


UNARY = (
    "abs", "acosh", "asinh", "atan", "ceil", "copy", "cos", "cosh", "erf", "exp",
    "floor", "isfinite", "isinf", "isnan", "log", "log10", "log2", "negative",
    "nn.relu", "ones_like", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc", "zeros_like",
)  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_an_elementwise_operator_follows(name: str) -> None:
    _check(f"{name}(%9)", f"%10 = {name}(%9); [NCHW>NHWC %10]")


WITH_ATTRIBUTES = (
    'cast({}, dtype="int32")', "clip({}, a_min=0f, a_max=1f)", "nn.leaky_relu({}, alpha=0.2f)",
)  # fmt: skip


@pytest.mark.parametrize("call", WITH_ATTRIBUTES)
def test_one_with_attributes_follows(call: str) -> None:
    _check(call.format("%9"), f"%10 = {call.format('%9')}; [NCHW>NHWC %10]")


BINARY = (
    "add", "divide", "equal", "greater", "greater_equal", "less", "less_equal", "maximum",
    "minimum", "multiply", "not_equal", "power", "subtract",
)  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", BINARY)
def test_operands_of_one_rank_come_in_one_layout(name: str) -> None:
    _check(f"{name}(%9, %v)", f"%10 = [NHWC>NCHW %v]; %11 = {name}(%9, %10); [NCHW>NHWC %11]")


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["add", "maximum", "multiply", "subtract", "less"])
@pytest.mark.parametrize(
    ("operand", "moved"),
    [
        ("%b", "%10 = expand_dims(%b, axis=0, num_newaxis=3); %11 = [NHWC>NCHW %10];"),
        ("%m", "%10 = expand_dims(%m, axis=0, num_newaxis=2); %11 = [NHWC>NCHW %10];"),
        ("%one", "%11 = [NHWC>NCHW %one];"),
    ],
    ids=["vector", "matrix", "ones"],
)
@pytest.mark.parametrize("left", [False, True])
def test_an_operand_of_lower_rank_gets_axes_in_front(
    name: str, operand: str, moved: str, left: bool
) -> None:
    before = f"{name}({operand}, %9)" if left else f"{name}(%9, {operand})"
    if operand == "%one" and left:
        # The first of two operands of one rank says the layout, as in TVM.
        _check(before, f"%10 = [NCHW>NHWC %9]; {name}(%one, %10)")
        return
    after = f"{name}(%11, %9)" if left else f"{name}(%9, %11)"
    _check(before, f"{moved} %12 = {after}; [NCHW>NHWC %12]")


@pytest.mark.parametrize("scalar", ["2f", "%s"])
def test_a_single_number_stays(scalar: str) -> None:
    _check(f"add(%9, {scalar})", f"%10 = add(%9, {scalar}); [NCHW>NHWC %10]")


REDUCED = [
    # What is left of NHWC, of NCHW, and whether they differ.
    ("axis=[1, 2]", "axis=[2, 3]", "NC", "NC"),
    ("axis=[3]", "axis=[1]", "NHW", "NHW"),
    ("axis=[-1]", "axis=[1]", "NHW", "NHW"),
    ("axis=[0]", "axis=[0]", "HWC", "CHW"),
    ("axis=[1]", "axis=[2]", "NWC", "NCW"),
    ("axis=[2]", "axis=[3]", "NHC", "NCH"),
    ("axis=[1, 3]", "axis=[1, 2]", "NW", "NW"),
    ("axis=[0, 1, 2]", "axis=[0, 2, 3]", "C", "C"),
    ("axis=[0, 3]", "axis=[0, 1]", "HW", "HW"),
    ("axis=[1, 2], keepdims=True", "axis=[2, 3], keepdims=True", "NHWC", "NCHW"),
    ("axis=[3], keepdims=True", "axis=[1], keepdims=True", "NHWC", "NCHW"),
    ("axis=[0, 3], exclude=True", "axis=[0, 1], exclude=True", "NC", "NC"),
    ("axis=[3], exclude=True", "axis=[1], exclude=True", "C", "C"),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod"])
@pytest.mark.parametrize(("before", "after", "old", "new"), REDUCED)
def test_a_reduction_keeps_the_order_of_what_is_left(
    name: str, before: str, after: str, old: str, new: str
) -> None:
    if old == new:
        _check(f"{name}(%9, {before})", f"{name}(%9, {after})")
    else:
        _check(f"{name}(%9, {before})", f"%10 = {name}(%9, {after}); [{new}>{old} %10]")


BIASES = {
    "last axis": (
        "nn.bias_add(%9, %b, axis=3)",
        "%10 = expand_dims(%b, axis=0, num_newaxis=3); %11 = [NHWC>NCHW %10]; "
        "%12 = add(%9, %11); [NCHW>NHWC %12]",
    ),
    "another axis": (
        "%10 = mean(%m, axis=[1]); nn.bias_add(%9, %10, axis=2)",
        "%10 = mean(%m, axis=[1]); %11 = expand_dims(%10, axis=1); "
        "%12 = expand_dims(%11, axis=0, num_newaxis=2); %13 = [NHWC>NCHW %12]; "
        "%14 = add(%9, %13); [NCHW>NHWC %14]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BIASES)
def test_a_bias_is_added_by_its_canonical_form(case: str) -> None:
    before, after = BIASES[case]
    mod = program(PARAMS, BEFORE + before)
    with PassContext(opt_level=3):
        found = Sequential([ConvertLayout(FIRST)])(mod)
    assert structural_equal(found["main"], program(PARAMS, AFTER + after)["main"])
    assert_same_numbers(mod, found)


FOLLOWING = {
    "two users": (
        "%10 = nn.relu(%9); %11 = nn.batch_flatten(%10); (%10, %11)",
        "%10 = nn.relu(%9); %12 = [NCHW>NHWC %10]; %11 = nn.batch_flatten(%12); (%12, %11)",
    ),
    "layer norm": (
        "nn.layer_norm(%9, %b, %b, axis=3)",
        "%10 = nn.layer_norm(%9, %b, %b, axis=1); [NCHW>NHWC %10]",
    ),
    "layer norm from the end": (
        "nn.layer_norm(%9, %b, %b)",
        "%10 = nn.layer_norm(%9, %b, %b, axis=1); [NCHW>NHWC %10]",
    ),
    "instance norm": (
        "nn.instance_norm(%9, %b, %b, axis=3)",
        "%10 = nn.instance_norm(%9, %b, %b, axis=1); [NCHW>NHWC %10]",
    ),
    "batch norm": (
        "%10 = nn.batch_norm(%9, %b, %b, %b, %b, axis=3); %10.0",
        "%10 = nn.batch_norm(%9, %b, %b, %b, %b, axis=1); %11 = %10.0; [NCHW>NHWC %11]",
    ),
    "l2 normalize": (
        "nn.l2_normalize(%9, eps=1e-05f, axis=[3])",
        "%10 = nn.l2_normalize(%9, eps=1e-05f, axis=[1]); [NCHW>NHWC %10]",
    ),
    "prelu says its axis by number": (
        "nn.prelu(%9, %b, axis=3)",
        "%10 = [NCHW>NHWC %9]; nn.prelu(%10, %b, axis=3)",
    ),
    "dropout": (
        "%10 = nn.dropout(%9); %10.0",
        "%10 = nn.dropout(%9); %11 = %10.0; [NCHW>NHWC %11]",
    ),
    "concatenate": (
        "%10 = nn.relu(%9); %11 = (%9, %10); concatenate(%11, axis=3)",
        "%10 = nn.relu(%9); %11 = (%9, %10); %12 = concatenate(%11, axis=1); [NCHW>NHWC %12]",
    ),
    "concatenate from the end": (
        "%11 = (%9, %9); concatenate(%11, axis=-2)",
        "%11 = (%9, %9); %12 = concatenate(%11, axis=3); [NCHW>NHWC %12]",
    ),
    "concatenate with what has the old layout": (
        "%11 = (%v, %9); concatenate(%11, axis=3)",
        "%10 = [NCHW>NHWC %9]; %11 = (%v, %10); concatenate(%11, axis=3)",
    ),
    "squeeze": (
        "squeeze(%9, axis=[0])",
        "%10 = squeeze(%9, axis=[0]); [CHW>HWC %10]",
    ),
    "squeeze of means": (
        "%10 = mean(%9, axis=[1, 2], keepdims=True); squeeze(%10, axis=[1, 2])",
        "%10 = mean(%9, axis=[2, 3], keepdims=True); squeeze(%10, axis=[2, 3])",
    ),
    "squeeze of all of length 1": (
        "%10 = mean(%9, axis=[1], keepdims=True); squeeze(%10)",
        "%10 = mean(%9, axis=[2], keepdims=True); %11 = squeeze(%10, axis=[0, 2]); "
        "[CW>WC %11]",
    ),
    "split": (
        "%10 = split(%9, indices_or_sections=2, axis=3); %11 = %10.0; %12 = %10.1; (%11, %12)",
        "%10 = split(%9, indices_or_sections=2, axis=1); %11 = %10.0; %12 = %10.1; "
        "%13 = [NCHW>NHWC %11]; %14 = [NCHW>NHWC %12]; (%13, %14)",
    ),
    "split at places": (
        "%10 = split(%9, indices_or_sections=[1, 5], axis=-1); %10.2",
        "%10 = split(%9, indices_or_sections=[1, 5], axis=1); %11 = %10.2; [NCHW>NHWC %11]",
    ),
    "strided slice": (
        "strided_slice(%9, begin=[0, 1, 2, 3], end=[1, 5, 6, 7], strides=[1, 2, 1, 1], axes=None)",
        "%10 = strided_slice(%9, begin=[0, 3, 1, 2], end=[1, 7, 5, 6], strides=[1, 1, 2, 1], "
        "axes=None); "
        "[NCHW>NHWC %10]",
    ),
    "strided slice of some axes": (
        "strided_slice(%9, begin=[1, 2], end=[5, 6], strides=[1, 1], axes=[1, 3])",
        "%10 = strided_slice(%9, begin=[1, 2], end=[5, 6], strides=[1, 1], axes=[2, 1]); "
        "[NCHW>NHWC %10]",
    ),
    "pad": (
        "nn.pad(%9, 0f, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]])",
        "%10 = nn.pad(%9, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]); [NCHW>NHWC %10]",
    ),
    "transpose into the new order": (
        "transpose(%9, axes=[0, 3, 1, 2])",
        "transpose(%9, axes=[0, 1, 2, 3])",
    ),
    "transpose": (
        "transpose(%9, axes=[3, 0, 2, 1])",
        "transpose(%9, axes=[1, 0, 3, 2])",
    ),
    "transpose of all": ("transpose(%9, axes=None)", "transpose(%9, axes=[1, 3, 2, 0])"),
    "transpose from the end": (
        "transpose(%9, axes=[0, -1, -3, -2])",
        "transpose(%9, axes=[0, 1, 2, 3])",
    ),
    "max pool": (
        'nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2], layout="NHWC")',
        "%10 = nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2]); [NCHW>NHWC %10]",
    ),
    "average pool": (
        'nn.avg_pool2d(%9, pool_size=[3, 3], layout="NHWC")',
        "%10 = nn.avg_pool2d(%9, pool_size=[3, 3]); [NCHW>NHWC %10]",
    ),
    "global pools": (
        '%10 = nn.global_avg_pool2d(%9, layout="NHWC"); '
        '%11 = nn.global_max_pool2d(%9, layout="NHWC"); add(%10, %11)',
        "%10 = nn.global_avg_pool2d(%9); %11 = nn.global_max_pool2d(%9); "
        "%12 = add(%10, %11); [NCHW>NHWC %12]",
    ),
    "adaptive pool": (
        'nn.adaptive_avg_pool2d(%9, output_size=[2, 3], layout="NHWC")',
        "%10 = nn.adaptive_avg_pool2d(%9, output_size=[2, 3]); [NCHW>NHWC %10]",
    ),
    "pool with a layout of its result": (
        'nn.max_pool2d(%9, pool_size=[2, 2], layout="NHWC", out_layout="NHWC")',
        "%10 = [NCHW>NHWC %9]; "
        'nn.max_pool2d(%10, pool_size=[2, 2], layout="NHWC", out_layout="NHWC")',
    ),
    "resize": (
        'image.resize2d(%9, size=[12, 12], roi=[0f, 0f, 0f, 0f], layout="NHWC")',
        "%10 = image.resize2d(%9, size=[12, 12], roi=[0f, 0f, 0f, 0f]); [NCHW>NHWC %10]",
    ),
    "upsampling moves no axis that grows": (
        'nn.upsampling(%9, scale_h=2f, scale_w=2f, layout="NHWC")',
        "%10 = [NCHW>NHWC %9]; "
        'nn.upsampling(%10, scale_h=2f, scale_w=2f, layout="NHWC")',
    ),
    "topk": (
        "topk(%9, k=2, axis=3, ret_type=\"values\")",
        "%10 = topk(%9, k=2, axis=1, ret_type=\"values\"); [NCHW>NHWC %10]",
    ),
    "slice like another that follows": (
        "%10 = nn.relu(%9); slice_like(%9, %10, axes=[1, 2])",
        "%10 = nn.relu(%9); %11 = slice_like(%9, %10, axes=[2, 3]); [NCHW>NHWC %11]",
    ),
    "slice like a variable": (
        "slice_like(%9, %v, axes=[1, 2])",
        "%10 = [NCHW>NHWC %9]; slice_like(%10, %v, axes=[1, 2])",
    ),
    "cast like": (
        "%10 = nn.relu(%9); cast_like(%9, %10)",
        "%10 = nn.relu(%9); %11 = cast_like(%9, %10); [NCHW>NHWC %11]",
    ),
    "argmax along one axis": (
        "argmax(%9, axis=[3])",
        "argmax(%9, axis=[1])",
    ),
    "argmax over axes whose order changes": (
        "argmax(%9, axis=[2, 3])",
        "%10 = [NCHW>NHWC %9]; argmax(%10, axis=[2, 3])",
    ),
    "argmin over axes whose order stays": (
        "argmin(%9, axis=[1, 2], keepdims=True)",
        "%10 = argmin(%9, axis=[2, 3], keepdims=True); [NCHW>NHWC %10]",
    ),
    "variance": (
        "%10 = mean(%9, axis=[3], keepdims=True); variance(%9, %10, axis=[3])",
        "%10 = mean(%9, axis=[1], keepdims=True); variance(%9, %10, axis=[1])",
    ),
    "a tuple": (
        "%10 = nn.relu(%9); (%9, %10, %b)",
        "%10 = nn.relu(%9); %11 = [NCHW>NHWC %9]; %12 = [NCHW>NHWC %10]; (%11, %12, %b)",
    ),
    "a field of a tuple": (
        "%10 = (%9, %b); %11 = %10.0; nn.relu(%11)",
        "%10 = nn.relu(%9); [NCHW>NHWC %10]",
    ),
    "reduction of all": ("sum(%9)", "%10 = [NCHW>NHWC %9]; sum(%10)"),
    "reshape": (
        "reshape(%9, newshape=[6, 48])",
        "%10 = [NCHW>NHWC %9]; reshape(%10, newshape=[6, 48])",
    ),
    "softmax": (
        "nn.softmax(%9, axis=3)",
        "%10 = [NCHW>NHWC %9]; nn.softmax(%10, axis=3)",
    ),
    "log softmax": (
        "nn.log_softmax(%9)",
        "%10 = [NCHW>NHWC %9]; nn.log_softmax(%10)",
    ),
    "shape": (
        'shape_of(%9, dtype="int32")',
        '%10 = [NCHW>NHWC %9]; shape_of(%10, dtype="int32")',
    ),
    "take": (
        "%10 = take(%9, 1, axis=3); nn.relu(%10)",
        "%11 = [NCHW>NHWC %9]; %10 = take(%11, 1, axis=3); nn.relu(%10)",
    ),
    "reverse": ("reverse(%9, axis=1)", "%10 = [NCHW>NHWC %9]; reverse(%10, axis=1)"),
    "expand dims": (
        "expand_dims(%9, axis=4)",
        "%10 = [NCHW>NHWC %9]; expand_dims(%10, axis=4)",
    ),
    "tile": ("tile(%9, reps=[1, 2, 1, 1])", "%10 = [NCHW>NHWC %9]; tile(%10, reps=[1, 2, 1, 1])"),
    "where": (
        "%10 = less(%9, 1f); where(%10, %9, %v)",
        "%10 = less(%9, 1f); %11 = [NCHW>NHWC %10]; %12 = [NCHW>NHWC %9]; where(%11, %12, %v)",
    ),
    "it goes back once": (
        "%10 = nn.softmax(%9); %11 = nn.log_softmax(%9); add(%10, %11)",
        "%12 = [NCHW>NHWC %9]; %10 = nn.softmax(%12); %11 = nn.log_softmax(%12); add(%10, %11)",
    ),
    "old and new meet": (
        "%10 = nn.softmax(%9); add(%9, %10)",
        "%12 = [NCHW>NHWC %9]; %10 = nn.softmax(%12); %13 = [NHWC>NCHW %10]; "
        "%14 = add(%9, %13); [NCHW>NHWC %14]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWING)
def test_what_stands_behind_a_convolution(case: str) -> None:
    _check(*FOLLOWING[case])
