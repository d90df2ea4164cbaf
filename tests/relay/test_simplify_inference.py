"""SimplifyInference: norms spelled out, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check_bodies, tensor

from serde.relay.transform import SimplifyInference

EACH = SimplifyInference()
SUFFIX = {"float32": "f", "float64": "f64", "float16": "f16"}


def _params(shape: tuple[int, ...], channels: int, dtype: str) -> str:
    vectors = ", ".join(f"%{name}: {tensor(channels, dtype=dtype)}" for name in "gbmv")
    return f"%x: {tensor(*shape, dtype=dtype)}, {vectors}"


def _expand(vector: str, rank: int, axis: int) -> str:
    count = rank - axis - 1
    return f"expand_dims({vector}, axis=1, num_newaxis={count})" if count else vector


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 4), 1), ((2, 4, 3, 3), 1), ((2, 3, 3, 4), 3), ((4, 2, 3), 0), ((2, 3, 4), -1),
     ((1, 4, 2, 2, 2), 1)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("scale", "center"), [(True, True), (False, True), (True, False)])
def test_batch_norm(
    shape: tuple[int, ...], axis: int, dtype: str, scale: bool, center: bool
) -> None:
    flags = f"axis={axis}, epsilon=0.25f, center={center}, scale={scale}"
    before = f"%0 = nn.batch_norm(%x, %g, %b, %m, %v, {flags});\n%0.0"
    one = f"1{SUFFIX[dtype]}"
    factor = f"divide({one}, sqrt(add(%v, 0.25{SUFFIX[dtype]})))"
    factor = f"multiply({factor}, %g)" if scale else factor
    shift = "multiply(negative(%m), %0)"
    shift = f"add({shift}, %b)" if center else shift
    rank, place = len(shape), axis % len(shape)
    data = f"multiply(%x, {_expand('%0', rank, place)})"
    after = f"%0 = {factor};\nadd({data}, {_expand(shift, rank, place)})"
    check_bodies(EACH, _params(shape, shape[axis], dtype), before, after)


def _standard(data: str, axes: list[int], suffix: str) -> str:
    rest = f"axis={axes}, keepdims=True"
    return (
        f"%1 = mean({data}, {rest});\n"
        f"%2 = sqrt(add(variance({data}, %1, {rest}), 0.25{suffix}));\n"
        f"%3 = divide(subtract({data}, %1), %2);\n"
    )


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 4), 1), ((2, 4), -1), ((2, 3, 4), 1), ((3, 2), 0)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("scale", "center"), [(True, True), (False, False)])
def test_layer_norm(
    shape: tuple[int, ...], axis: int, dtype: str, scale: bool, center: bool
) -> None:
    flags = f"axis={axis}, epsilon=0.25f, center={center}, scale={scale}"
    after = _standard("%x", [axis], SUFFIX[dtype]) + "%4 = {};\n%4"
    result = "%3"
    for wanted, operator, vector in ((scale, "multiply", "%g"), (center, "add", "%b")):
        if wanted:
            result = f"{operator}({result}, {_expand(vector, len(shape), axis % len(shape))})"
    params = _params(shape, shape[axis], dtype)
    check_bodies(EACH, params, f"nn.layer_norm(%x, %g, %b, {flags})", after.format(result))


@pytest.mark.parametrize(
    ("shape", "axis", "axes"),
    [((2, 4, 3, 3), 1, [2, 3]), ((2, 3, 3, 4), 3, [1, 2]), ((2, 4, 5), 1, [2])],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_instance_norm(shape: tuple[int, ...], axis: int, axes: list[int], dtype: str) -> None:
    flags = f"axis={axis}, epsilon=0.25f"
    product = f"multiply(%3, {_expand('%g', len(shape), axis)})"
    after = _standard("%x", axes, SUFFIX[dtype])
    after += f"add({product}, {_expand('%b', len(shape), axis)})"
    params = _params(shape, shape[axis], dtype)
    check_bodies(EACH, params, f"nn.instance_norm(%x, %g, %b, {flags})", after)


@pytest.mark.parametrize(
    ("shape", "axis", "groups", "parts", "axes"),
    [
        ((2, 4, 3, 3), 1, 2, [2, 2, 2, 3, 3], [2, 3, 4]),
        ((2, 6, 5), 1, 3, [2, 3, 2, 5], [2, 3]),
        ((2, 4), 1, 4, [2, 4, 1], [2]),
    ],
)
def test_group_norm(
    shape: tuple[int, ...], axis: int, groups: int, parts: list[int], axes: list[int]
) -> None:
    flags = f"num_groups={groups}, axis={axis}, epsilon=0.25f"
    after = f"%0 = reshape(%x, newshape={parts});\n" + _standard("%0", axes, "f")
    back = f"reshape(%3, newshape={list(shape)})"
    product = f"multiply({back}, {_expand('%g', len(shape), axis)})"
    after += f"add({product}, {_expand('%b', len(shape), axis)})"
    params = _params(shape, shape[axis], "float32")
    check_bodies(EACH, params, f"nn.group_norm(%x, %g, %b, {flags})", after)


@pytest.mark.parametrize("axis", [[0], [1], [0, 1]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_l2_normalize(axis: list[int], dtype: str) -> None:
    total = f"sum(multiply(%x, %x), axis={axis}, keepdims=True)"
    after = f"divide(%x, sqrt(maximum({total}, 0.25{SUFFIX[dtype]})))"
    params = f"%x: {tensor(2, 3, dtype=dtype)}"
    check_bodies(EACH, params, f"nn.l2_normalize(%x, eps=0.25f, axis={axis})", after)


@pytest.mark.parametrize("rate", ["0.5f", "0.1f"])
def test_dropout_goes(rate: str) -> None:
    before = f"%0 = nn.dropout(exp(%x), rate={rate});\n%1 = %0.0;\ntanh(%1)"
    check_bodies(EACH, f"%x: {tensor(2, 3)}", before, "tanh(exp(%x))", numbers=False)


@pytest.mark.parametrize("field", [1, 2])
def test_other_fields_of_a_batch_norm_stay(field: int) -> None:
    body = f"%0 = nn.batch_norm(%x, %g, %b, %m, %v);\n%0.{field}"
    check_bodies(EACH, _params((2, 4), 4, "float32"), body, body)


def test_norms_in_a_row() -> None:
    norm = "%{1} = nn.batch_norm({0}, %g, %b, %m, %v, epsilon=0.25f);\n%{2} = %{1}.0;\n"
    before = norm.format("%x", 0, 1) + norm.format("%1", 2, 3) + "%3"
    factor = "multiply(divide(1f, sqrt(add(%v, 0.25f))), %g)"
    step = "add(multiply({0}, %{1}), add(multiply(negative(%m), %{1}), %b))"
    after = f"%0 = {factor};\n%1 = {step.format('%x', 0)};\n%2 = {factor};\n{step.format('%1', 2)}"
    check_bodies(EACH, _params((2, 4), 4, "float32"), before, after)
