"""SimplifyExpr: what each of its rewrites makes of an expression, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check_bodies, tensor

from serde.relay.transform import SimplifyExpr, SimplifyExprPostAlterOp

NUMBER = {"float32": "f", "float64": "f64", "float16": "f16", "int32": "", "int64": "i64"}
X = f"%x: {tensor(2, 3, 4)}"


def _params(dtype: str, *names: str) -> str:
    return ", ".join(f"%{name}: {tensor(2, 3, dtype=dtype)}" for name in names)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(
    ("operator", "left", "number", "filled"),
    [
        ("add", False, 0, "zeros"),
        ("add", True, 0, "zeros"),
        ("subtract", False, 0, "zeros"),
        ("multiply", False, 1, "ones"),
        ("multiply", True, 1, "ones"),
        ("divide", False, 1, "ones"),
    ],
)
@pytest.mark.parametrize("kind", ["scalar", "filled", "like", "lower"])
def test_what_changes_nothing_goes(
    dtype: str, operator: str, left: bool, number: int, filled: str, kind: str
) -> None:
    neutral = {
        "scalar": f"{number}{NUMBER[dtype]}",
        "filled": f'{filled}(shape=[2, 3], dtype="{dtype}")',
        "like": f"{filled}_like(%x)",
        "lower": f'{filled}(shape=[3], dtype="{dtype}")',
    }[kind]
    args = f"{neutral}, %x" if left else f"%x, {neutral}"
    check_bodies(SimplifyExpr(), _params(dtype, "x"), f"{operator}({args})", "%x")


@pytest.mark.parametrize("operator", ["add", "multiply", "subtract", "divide"])
@pytest.mark.parametrize("left", [True, False])
def test_a_tensor_that_broadcasts_stays(operator: str, left: bool) -> None:
    name = "zeros" if operator in ("add", "subtract") else "ones"
    wide = f'{name}(shape=[5, 2, 3], dtype="float32")'
    body = f"{operator}({wide}, %x)" if left else f"{operator}(%x, {wide})"
    check_bodies(SimplifyExpr(), _params("float32", "x"), body, body)


@pytest.mark.parametrize("operator", ["subtract", "divide"])
def test_the_left_of_a_difference_or_quotient_is_a_scalar(operator: str) -> None:
    name, number = ("zeros", 0) if operator == "subtract" else ("ones", 1)
    before = f'{operator}({name}(shape=[2, 3], dtype="float32"), %x)'
    check_bodies(SimplifyExpr(), _params("float32", "x"), before, f"{operator}({number}f, %x)")


@pytest.mark.parametrize("operator", ["add", "multiply", "subtract", "divide", "maximum", "power"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("like", [True, False])
def test_a_filled_tensor_is_its_value(operator: str, dtype: str, like: bool) -> None:
    number = f"3{NUMBER[dtype]}"
    full = f"full_like(%x, {number})" if like else f'full({number}, shape=[2, 3], dtype="{dtype}")'
    check_bodies(
        SimplifyExpr(), _params(dtype, "x"), f"{operator}(%x, {full})", f"{operator}(%x, {number})"
    )


LIKE = {
    "zeros_like": ("zeros_like(%x)", "zeros(shape=[2, 3], dtype={0})"),
    "ones_like": ("ones_like(%x)", "ones(shape=[2, 3], dtype={0})"),
    "full_like": ("full_like(%x, %v)", "full(%v, shape=[2, 3], dtype={0})"),
    "reshape_like": ("reshape_like(%y, %x)", "reshape(%y, newshape=[2, 3])"),
    "broadcast_to_like": ("broadcast_to_like(%z, %x)", "broadcast_to(%z, shape=[2, 3])"),
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_like_operators_name_the_shape(name: str, dtype: str) -> None:
    types = {"x": (2, 3), "y": (6,), "z": (3,), "v": ()}
    params = ", ".join(f"%{n}: {tensor(*shape, dtype=dtype)}" for n, shape in types.items())
    before, after = LIKE[name]
    check_bodies(SimplifyExpr(), params, before, after.format(f'"{dtype}"'))


def test_like_operators_of_unknown_shape_stay() -> None:
    params = "%x: Tensor[(?, 3), float32]"
    check_bodies(SimplifyExpr(), params, "zeros_like(%x)", "zeros_like(%x)")


def test_a_cast_like_an_unknown_shape_is_a_cast() -> None:
    params = "%x: Tensor[(?, 3), float32], %y: Tensor[(?, ?), int32]"
    check_bodies(SimplifyExpr(), params, "cast_like(%x, %y)", 'cast(%x, dtype="int32")')


def test_reshape_like_a_part_names_the_whole_shape() -> None:
    params = f"%x: {tensor(2, 3, 4)}, %y: {tensor(6, 2, 2)}"
    before = "reshape_like(%x, %y, lhs_begin=2, lhs_end=None, rhs_begin=1, rhs_end=None)"
    check_bodies(SimplifyExpr(), params, before, "reshape(%x, newshape=[2, 3, 2, 2])")


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        (["reshape(%x, newshape=[6, 4])", "reshape({}, newshape=[8, 3])"], [8, 3]),
        (["reshape(%x, newshape=[-1])", "reshape({}, newshape=[4, 6])"], [4, 6]),
        (["reshape(%x, newshape=[0, -1])", "reshape({}, newshape=[3, 0, 4])"], None),
        (["reshape(%x, newshape=[6, 4])", "contrib_reverse_reshape({}, newshape=[-1, 0])"], [6, 4]),
        (
            ["contrib_reverse_reshape(%x, newshape=[-1, 0])", "reshape({}, newshape=[2, 12])"],
            [2, 12],
        ),
        (
            [
                "reshape(%x, newshape=[24])",
                "reshape({}, newshape=[2, 12])",
                "reshape({}, newshape=[12, 2])",
            ],
            [12, 2],
        ),
    ],
)
def test_reshapes_in_a_row_become_one(steps: list[str], shape: list[int] | None) -> None:
    if shape is None:
        steps, shape = [steps[0], "reshape({}, newshape=[3, -1, 4])"], [3, 2, 4]
    before = "%x"
    for step in steps:
        before = step.replace("%x", before).format(before)
    check_bodies(SimplifyExpr(), X, before, f"reshape(%x, newshape={shape})")


def test_one_reshape_stays() -> None:
    body = "reshape(%x, newshape=[6, 4])"
    check_bodies(SimplifyExpr(), X, body, body)


TRANSPOSES = [
    ((0, 2, 1), (0, 2, 1), None),
    ((1, 2, 0), (2, 0, 1), None),
    ((1, 2, 0), (1, 2, 0), (2, 0, 1)),
    ((2, 1, 0), (0, 2, 1), (2, 0, 1)),
    ((0, 1, 2), (2, 1, 0), (2, 1, 0)),
    ((-1, 0, 1), (0, 1, 2), (2, 0, 1)),
    ((2, 0, 1), (-1, -3, -2), (1, 2, 0)),
]


@pytest.mark.parametrize(("first", "second", "wanted"), TRANSPOSES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_transposes_in_a_row_become_one(
    first: tuple[int, ...], second: tuple[int, ...], wanted: tuple[int, ...] | None, dtype: str
) -> None:
    before = f"transpose(transpose(%x, axes={list(first)}), axes={list(second)})"
    after = "%x" if wanted is None else f"transpose(%x, axes={list(wanted)})"
    check_bodies(SimplifyExpr(), f"%x: {tensor(2, 3, 4, dtype=dtype)}", before, after)


def test_reversing_twice_changes_nothing() -> None:
    check_bodies(SimplifyExpr(), X, "transpose(transpose(%x, axes=None), axes=None)", "%x")


def _layouts(data: str, *pairs: tuple[str, str]) -> str:
    for source, target in pairs:
        data = f'layout_transform({data}, src_layout="{source}", dst_layout="{target}")'
    return data


LAYOUTS = {
    "same": ((2, 8, 3, 5), [("NCHW", "NCHW")], "%x"),
    "back": ((2, 8, 3, 5), [("NCHW", "NHWC"), ("NHWC", "NCHW")], "%x"),
    "blocks and back": ((2, 8, 3, 5), [("NCHW", "NCHW4c"), ("NCHW4c", "NCHW")], "%x"),
    "other blocks and back": ((2, 2, 3, 5, 4), [("NCHW4c", "NCHW2c"), ("NCHW2c", "NCHW4c")], "%x"),
    "into other blocks": (
        (2, 2, 3, 5, 4),
        [("NCHW4c", "NCHW"), ("NCHW", "NCHW8c")],
        _layouts("%x", ("NCHW4c", "NCHW8c")),
    ),
    "around": (
        (2, 8, 3, 5),
        [("NCHW", "NHWC"), ("NHWC", "CHWN")],
        "transpose(%x, axes=[1, 2, 3, 0])",
    ),
    "last into blocks": (
        (2, 3, 5, 8),
        [("NHWC", "NCHW"), ("NCHW", "NCHW4c")],
        _layouts("%x", ("NHWC", "NCHW4c")),
    ),
    "blocks into last": (
        (2, 2, 3, 5, 4),
        [("NCHW4c", "NCHW"), ("NCHW", "NHWC")],
        _layouts("%x", ("NCHW4c", "NHWC")),
    ),
    "kernels": ((4, 8, 3, 3), [("OIHW", "OIHW2i4o"), ("OIHW2i4o", "OIHW")], "%x"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_in_a_row_become_one(name: str) -> None:
    shape, pairs, after = LAYOUTS[name]
    check_bodies(SimplifyExpr(), f"%x: {tensor(*shape)}", _layouts("%x", *pairs), after)


@pytest.mark.parametrize(
    ("axes", "layout", "source"),
    [
        ([0, 3, 1, 2], "NCHW", "NHWC"),
        ([0, 2, 3, 1], "NHWC", "NCHW"),
        ([1, 0, 2, 3], "NCHW", "CNHW"),
    ],
)
def test_a_transpose_goes_into_blocks(axes: list[int], layout: str, source: str) -> None:
    target = f"{layout}4c"
    shape = [
        8 if letter == "C" else length for letter, length in zip(source, (4, 3, 5, 7), strict=True)
    ]
    before = _layouts(f"transpose(%x, axes={axes})", (layout, target))
    after = _layouts("%x", (source, target))
    check_bodies(SimplifyExpr(), f"%x: {tensor(*shape)}", before, after)


@pytest.mark.parametrize(("axes", "target"), [([0, 2, 3, 1], "NHWC"), ([1, 0, 2, 3], "CNHW")])
def test_a_transpose_goes_into_what_leaves_blocks(axes: list[int], target: str) -> None:
    before = f"transpose({_layouts('%x', ('NCHW4c', 'NCHW'))}, axes={axes})"
    after = _layouts("%x", ("NCHW4c", target))
    check_bodies(SimplifyExpr(), f"%x: {tensor(2, 2, 3, 5, 4)}", before, after)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool", "uint8"])
def test_a_cast_to_the_same_dtype_goes(dtype: str) -> None:
    check_bodies(SimplifyExpr(), _params(dtype, "x"), f'cast(%x, dtype="{dtype}")', "%x")


WIDER = [
    ("int8", "int16", "int32"),
    ("int8", "int32", "int64"),
    ("uint8", "uint16", "uint32"),
    ("int16", "float32", "int32"),
    ("float16", "float32", "float64"),
    ("uint8", "float32", "int8"),
    ("bool", "uint8", "int32"),
    ("int32", "float64", "int64"),
    ("int8", "float16", "float32"),
]
NARROWER = [
    ("float32", "int32", "float32"),
    ("int64", "int32", "int64"),
    ("int64", "bool", "int32"),
    ("float64", "float32", "float64"),
    ("float32", "bfloat16", "float32"),
    ("uint8", "int8", "int32"),
    ("int32", "float16", "float32"),
    ("float16", "bfloat16", "float32"),
    ("int8", "uint8", "float32"),
    ("int8", "uint8", "int32"),
    ("int32", "float32", "int64"),
    ("int16", "float16", "float32"),
]


@pytest.mark.parametrize(("source", "between", "target"), [*WIDER, *NARROWER])
def test_the_first_of_two_casts_goes_if_it_loses_nothing(
    source: str, between: str, target: str
) -> None:
    before = f'cast(cast(%x, dtype="{between}"), dtype="{target}")'
    after = f'cast(%x, dtype="{target}")' if (source, between, target) in WIDER else before
    if source == target and after != before:
        after = "%x"
    check_bodies(SimplifyExpr(), _params(source, "x"), before, after)


def _clip(data: str, low: float, high: float) -> str:
    return f"clip({data}, a_min={low}f, a_max={high}f)"


CLIPS = [
    ("int32", (0.0, 255.0), ["uint8", "int32"], []),
    ("int32", (0.0, 255.0), ["uint8", "int16", "int32"], []),
    ("float32", (0.0, 255.0), ["uint8", "int32"], ["int32"]),
    ("float32", (0.0, 255.0), ["int8", "int16", "int32"], ["int8", "int32"]),
    ("int32", (-128.0, 127.0), ["int8", "int32"], []),
    ("int32", (-129.0, 127.0), ["int8", "int32"], ["int8", "int32"]),
    ("int32", (0.0, 256.0), ["uint8", "int32"], ["uint8", "int32"]),
    ("int32", (0.0, 100.0), ["int8"], ["int8"]),
    ("float32", (0.0, 1.0), ["int8", "float32"], ["int8", "float32"]),
    ("float32", (0.0, 255.0), ["uint8", "int8"], ["uint8", "int8"]),
    ("float32", (0.0, 1.0), ["float64", "float32"], []),
    ("int32", (0.0, 255.0), ["int8", "uint8", "int32"], ["int8", "uint8", "int32"]),
    ("int32", (-4000.0, 4000.0), ["float16", "int32"], ["float16", "int32"]),
    ("int32", (-2000.0, 2000.0), ["float16", "int32"], []),
    ("int64", (0.0, 65535.0), ["uint16", "int64"], []),
]


@pytest.mark.parametrize(("dtype", "bounds", "casts", "kept"), CLIPS)
def test_casts_that_hold_what_a_clip_lets_through_go(
    dtype: str, bounds: tuple[float, float], casts: list[str], kept: list[str]
) -> None:
    bodies = []
    for names in (casts, kept):
        body = _clip("%x", *bounds)
        for name in names:
            body = f'cast({body}, dtype="{name}")'
        bodies.append(body)
    check_bodies(SimplifyExpr(), _params(dtype, "x"), *bodies)


@pytest.mark.parametrize(
    ("dtype", "cast", "first", "second", "joint"),
    [
        ("int32", "uint8", (3, 250), (20, 255), (20, 250)),
        ("int64", "int8", (-100, 127), (-120, 60), (-100, 60)),
        ("int32", "uint8", (3, 300), (20, 255), None),
        ("int32", "uint8", (0, 100), (150, 200), None),
        ("int32", "int16", (0, 100), (0.5, 200), None),
        ("float32", "uint8", (3, 250), (20, 255), None),
    ],
)
def test_two_clips_around_a_cast_are_one(
    dtype: str,
    cast: str,
    first: tuple[float, float],
    second: tuple[float, float],
    joint: tuple[float, float] | None,
) -> None:
    before = _clip(f'cast({_clip("%x", *first)}, dtype="{cast}")', *second)
    after = f'cast({_clip("%x", *joint)}, dtype="{cast}")' if joint else before
    check_bodies(SimplifyExpr(), _params(dtype, "x"), before, after)


@pytest.mark.parametrize(
    ("dtype", "low", "high", "goes"),
    [
        ("uint8", 0, 255, True),
        ("uint8", -3, 300, True),
        ("uint8", 1, 255, False),
        ("int8", -128, 127, True),
        ("int8", -127, 127, False),
        ("int32", 0, 6, False),
        ("int16", -32768, 32767, True),
        ("float32", -1, 1, False),
    ],
)
def test_a_clip_to_all_of_its_dtype_goes(dtype: str, low: int, high: int, goes: bool) -> None:
    body = _clip("%x", low, high)
    check_bodies(SimplifyExpr(), _params(dtype, "x"), body, "%x" if goes else body)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_a_tensor_twice_is_a_product(dtype: str) -> None:
    after = f"multiply(%x, 2{NUMBER[dtype]})"
    check_bodies(SimplifyExpr(), _params(dtype, "x"), "add(%x, %x)", after)


@pytest.mark.parametrize("operator", ["add", "multiply"])
@pytest.mark.parametrize(
    "order", ["{0}({0}(%x, 3{1}), 5{1})", "{0}({0}(3{1}, %x), 5{1})", "{0}(5{1}, {0}(%x, 3{1}))"]
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_two_constants_become_one(operator: str, order: str, dtype: str) -> None:
    number = {"add": 8, "multiply": 15}[operator]
    after = f"{operator}(%x, {number}{NUMBER[dtype]})"
    check_bodies(SimplifyExpr(), _params(dtype, "x"), order.format(operator, NUMBER[dtype]), after)


@pytest.mark.parametrize(
    "before",
    [
        "multiply(add(%x, 3{0}), 2{0})",
        "multiply(add(3{0}, %x), 2{0})",
        "multiply(2{0}, add(%x, 3{0}))",
        "multiply(2{0}, add(3{0}, %x))",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_sum_comes_after_a_product(before: str, dtype: str) -> None:
    suffix = NUMBER[dtype]
    after = f"add(multiply(%x, 2{suffix}), 6{suffix})"
    check_bodies(SimplifyExpr(), _params(dtype, "x"), before.format(suffix), after)


def test_sums_and_products_of_constants_collect() -> None:
    before = "add(multiply(add(multiply(%x, 2f), 1f), 3f), 4f)"
    check_bodies(SimplifyExpr(), _params("float32", "x"), before, "add(multiply(%x, 6f), 7f)")


@pytest.mark.parametrize("number", ["1f", "2f", "2.5f", "%y"])
def test_a_quotient_by_a_root_is_a_product(number: str) -> None:
    after = "rsqrt(%x)" if number == "1f" else f"multiply({number}, rsqrt(%x))"
    check_bodies(SimplifyExpr(), _params("float32", "x", "y"), f"divide({number}, sqrt(%x))", after)


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
@pytest.mark.parametrize("axis", [0, 1])
def test_order_is_asked_of_quantised_numbers(name: str, axis: int) -> None:
    rest = f'axis={axis}, dtype="int32"' if name == "argsort" else f"axis=[{axis}]"
    before = f'{name}(qnn.dequantize(%x, 0.5f, 0, out_dtype="float32"), {rest})'
    check_bodies(SimplifyExpr(), _params("int8", "x"), before, f"{name}(%x, {rest})")


XX, XY, YY = "multiply(%x, %x)", "multiply(%x, %y)", "multiply(%y, %y)"
FORMS = [
    (f"add(add({XX}, multiply({XY}, 2{{0}})), {YY})", (1, 1)),
    (f"add(add(multiply({XY}, 2{{0}}), {XX}), {YY})", (1, 1)),
    (f"add(add({XX}, {YY}), multiply(2{{0}}, {XY}))", (1, 1)),
    (f"add(add(multiply(%x, multiply(5{{0}}, %y)), {XX}), multiply(6{{0}}, {YY}))", (3, 2)),
    (f"add(add({XX}, multiply(4{{0}}, {YY})), multiply(4{{0}}, {XY}))", (2, 2)),
]


@pytest.mark.parametrize(("before", "roots"), FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_quadratic_form_is_a_product(before: str, roots: tuple[int, int], dtype: str) -> None:
    suffix = NUMBER[dtype]
    terms = ["%y" if root == 1 else f"multiply(%y, {root}{suffix})" for root in roots]
    sums = [f"add(%x, {term})" for term in terms]
    after = f"multiply({sums[0]}, {sums[1]})"
    if roots[0] == roots[1]:
        after = f"%0 = {sums[0]};\nmultiply(%0, %0)"
    check_bodies(SimplifyExpr(), _params(dtype, "x", "y"), before.format(suffix), after)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_form_without_real_roots_stays(dtype: str) -> None:
    body = "add(add(multiply(%x, %x), multiply(%x, %y)), multiply(%y, %y))"
    check_bodies(SimplifyExpr(), _params(dtype, "x", "y"), body, body)


def test_a_form_of_integers_without_integer_roots_stays() -> None:
    body = (
        "add(add(multiply(multiply(%x, %y), 5), multiply(2, multiply(%x, %x))),"
        " multiply(2, multiply(%y, %y)))"
    )
    check_bodies(SimplifyExpr(), _params("int32", "x", "y"), body, body)


AFTER_LAYOUTS = {
    "identity": ("add(%x, 0f)", "%x"),
    "reshapes": (
        "reshape(reshape(%x, newshape=[24]), newshape=[4, 6])",
        "reshape(%x, newshape=[4, 6])",
    ),
    "cast": ('cast(%x, dtype="float32")', "%x"),
    "casts": ('cast(cast(%x, dtype="float64"), dtype="float32")', "%x"),
    "twice": ("add(%x, %x)", None),
    "root": ("divide(1f, sqrt(%x))", None),
    "transposes": ("transpose(transpose(%x, axes=[2, 1, 0]), axes=[2, 1, 0])", None),
    "like": ("zeros_like(%x)", None),
    "sums": ("add(add(%x, 1f), 2f)", None),
}


@pytest.mark.parametrize("name", AFTER_LAYOUTS)
def test_after_a_change_of_layouts_fewer_rewrites_run(name: str) -> None:
    before, after = AFTER_LAYOUTS[name]
    check_bodies(SimplifyExprPostAlterOp(), X, before, before if after is None else after)


@pytest.mark.parametrize("each", [SimplifyExpr(), SimplifyExprPostAlterOp()])
def test_what_several_use_is_rewritten_once(each: SimplifyExpr) -> None:
    before = "%0 = add(%x, 0f);\n%1 = exp(%0);\n(multiply(%1, %0), %0)"
    check_bodies(each, X, before, "%0 = exp(%x);\n(multiply(%0, %x), %x)")
