"""FoldExplicitPadding: which pads go into the operator that follows, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check_bodies, tensor

from serde.relay.transform import FoldExplicitPadding

EACH = FoldExplicitPadding()
SPACE = {1: "W", 2: "HW", 3: "DHW"}
LOWEST = "-3.4028234663852886e+38f"


def _layout(rank: int, last: bool) -> str:
    return f"N{SPACE[rank]}C" if last else f"NC{SPACE[rank]}"


def _shape(rank: int, last: bool) -> tuple[int, ...]:
    return (1, *([6] * rank), 2) if last else (1, 2, *([6] * rank))


def _pad(rank: int, last: bool, width: list[int], value: str = "0f", mode: str = "constant") -> str:
    widths = [[0, 0], *([width] * rank), [0, 0]] if last else [[0, 0], [0, 0], *([width] * rank)]
    return f'nn.pad(%x, {value}, pad_width={widths}, pad_mode="{mode}")'


def _conv(rank: int, last: bool, data: str, padding: list[int]) -> str:
    kernel = f"{SPACE[rank]}IO" if last else f"OI{SPACE[rank]}"
    ones = [1] * rank
    return (
        f"nn.conv{rank}d({data}, %w, strides={ones}, padding={padding}, dilation={ones}, "
        f"channels=3, kernel_size={[2] * rank}, "
        f'data_layout="{_layout(rank, last)}", kernel_layout="{kernel}")'
    )


def _params(rank: int, last: bool) -> str:
    weight = (*([2] * rank), 2, 3) if last else (3, 2, *([2] * rank))
    return f"%x: {tensor(*_shape(rank, last))}, %w: {tensor(*weight)}"


@pytest.mark.thin(2)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("width", [[0, 0], [1, 1], [1, 0], [0, 2]])
@pytest.mark.parametrize("own", [[0, 0], [2, 0], [0, 1]])
def test_zeros_go_into_a_convolution(
    rank: int, last: bool, width: list[int], own: list[int]
) -> None:
    padding = [own[0]] * rank + [own[1]] * rank
    total = [own[0] + width[0]] * rank + [own[1] + width[1]] * rank
    before = _conv(rank, last, _pad(rank, last, width), padding)
    check_bodies(EACH, _params(rank, last), before, _conv(rank, last, "%x", total))


@pytest.mark.parametrize(
    ("value", "mode"), [("1f", "constant"), ("0f", "edge"), ("0f", "reflect"), ("%v", "constant")]
)
@pytest.mark.parametrize("rank", [1, 2])
def test_what_a_convolution_does_not_pad_with_stays(value: str, mode: str, rank: int) -> None:
    body = _conv(rank, False, _pad(rank, False, [1, 1], value, mode), [0] * (2 * rank))
    check_bodies(EACH, f"{_params(rank, False)}, %v: float32", body, body)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_pad_of_other_axes_stays(axis: int) -> None:
    widths = [[1, 1] if place == axis else [0, 0] for place in range(3)]
    pad = f"nn.pad(%x, 0f, pad_width={widths})"
    weight = (3, 2 if axis == 0 else 4, 2)
    body = _conv(1, False, pad, [0, 0])
    check_bodies(EACH, f"%x: {tensor(1, 2, 6)}, %w: {tensor(*weight)}", body, body)


def _pool(kind: str, rank: int, data: str, padding: list[int], count: str = "") -> str:
    ones = [1] * rank
    rest = f", count_include_pad={count}" if count else ""
    return (
        f"nn.{kind}_pool{rank}d({data}, pool_size={[2] * rank}, strides={ones}, dilation={ones}, "
        f'padding={padding}, layout="{_layout(rank, False)}"{rest})'
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("width", [[1, 1], [1, 0]])
@pytest.mark.parametrize("own", [0, 1])
def test_the_least_goes_into_a_maximum(rank: int, width: list[int], own: int) -> None:
    pad = _pad(rank, False, width, LOWEST)
    before = _pool("max", rank, pad, [own] * (2 * rank))
    after = _pool("max", rank, "%x", [own + width[0]] * rank + [own + width[1]] * rank)
    check_bodies(EACH, f"%x: {tensor(*_shape(rank, False))}", before, after)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_zeros_before_a_maximum_stay(rank: int) -> None:
    body = _pool("max", rank, _pad(rank, False, [1, 1]), [0] * (2 * rank))
    check_bodies(EACH, f"%x: {tensor(*_shape(rank, False))}", body, body)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("own", "count", "folds"),
    [(0, "True", True), (1, "True", True), (0, "False", True), (1, "False", False)],
)
def test_zeros_go_into_an_average(rank: int, own: int, count: str, folds: bool) -> None:
    before = _pool("avg", rank, _pad(rank, False, [1, 0]), [own] * (2 * rank), count)
    after = _pool("avg", rank, "%x", [own + 1] * rank + [own] * rank, "True")
    check_bodies(EACH, f"%x: {tensor(*_shape(rank, False))}", before, after if folds else before)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_the_least_integer(dtype: str) -> None:
    least = {"int8": -128, "uint8": 0, "int32": -(2**31)}[dtype]
    value = f'cast({least}, dtype="{dtype}")' if dtype != "int32" else str(least)
    if dtype != "int32":
        body = _pool("max", 1, _pad(1, False, [1, 1], value), [0, 0])
        check_bodies(EACH, f"%x: {tensor(1, 2, 6, dtype=dtype)}", body, body)
        return
    before = _pool("max", 1, _pad(1, False, [1, 1], value), [0, 0])
    check_bodies(EACH, f"%x: {tensor(1, 2, 6, dtype=dtype)}", before, _pool("max", 1, "%x", [1, 1]))


@pytest.mark.parametrize(("value", "folds"), [(10, True), (9, False), (0, False)])
def test_the_zero_point_goes_into_a_quantised_convolution(value: int, folds: bool) -> None:
    rest = (
        "strides=[1, 1], padding={}, dilation=[1, 1], groups=1, channels=3, kernel_size=[2, 2], "
        'data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype="int32"'
    )
    conv = "qnn.conv2d({}, %w, 10, 1, 1f, 1f, {})"
    pad = f"nn.pad(%x, {value}, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"
    params = f"%x: {tensor(1, 2, 6, 6, dtype='int8')}, %w: {tensor(3, 2, 2, 2, dtype='int8')}"
    before = conv.format(pad, rest.format([0, 0, 0, 0]))
    after = conv.format("%x", rest.format([1, 1, 1, 1])) if folds else before
    check_bodies(EACH, params, before, after, numbers=False)
