"""Quantised operators against rational numbers and integers written out here."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.golden import evaluate
from support.kernels import run_decomposed, run_kernel
from support.samples import build

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import OpDef, Sample, all_ops
from serde.relay.transform.decompose import decompose

DECOMPOSED = [
    pytest.param(definition, given, id=f"{name}-{index}")
    for name, definition in all_ops().items()
    for index, given in enumerate(definition.samples)
    if name.startswith("qnn.") and definition.decompose is not None
]


BOTH = pytest.mark.parametrize("run", [run_kernel, run_decomposed])


def _scale(*values: float) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def _zero(*values: int) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def _up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def _away(x: Fraction) -> int:
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x))


def _cut(value: int, dtype: str) -> int:
    info = np.iinfo(dtype)
    return min(max(value, info.min), info.max)


@pytest.mark.parametrize(("definition", "given"), DECOMPOSED)
def test_decomposition_is_the_kernel(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    body = decompose(built.call)
    function = infer_function(relay.Function(built.variables, body))
    (found,) = evaluate(function, list(built.arrays))
    (expected,) = built.run()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("rounding", "rounded"),
    [
        pytest.param("None", _up, id="default"),
        pytest.param("UPWARD", _up, id="up"),
        pytest.param("TONEAREST", _away, id="away"),
    ],
)
@pytest.mark.parametrize("compute_dtype", ["None", "int64", "float32", "float64"])
@pytest.mark.parametrize("ratio", [0.5, 0.25, 0.75, 2.0, 1.0])
@BOTH
def test_requantize_rounds(
    run: Any, rounding: str, rounded: Any, compute_dtype: str, ratio: float
) -> None:
    data = np.arange(-41, 42, dtype=np.int32)
    operands = (_scale(ratio), _zero(3), _scale(1.0), _zero(0))
    found = run("qnn.requantize", data, *operands, rounding=rounding,
                       compute_dtype=compute_dtype, out_dtype="int8")  # fmt: skip
    expected = [_cut(rounded((int(x) - 3) * Fraction(ratio)), "int8") for x in data]
    assert found.tolist() == expected


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@BOTH
def test_requantize_is_the_fixed_point_product(run: Any, rounding: str) -> None:
    """The ratio is rounded to 31 bits, the product is exact."""
    generator = np.random.default_rng(4)
    data = generator.integers(-(2**22), 2**22, 500).astype(np.int32)
    given, wanted = _scale(0.00317), _scale(0.0871)
    ratio = float(given) / float(wanted)
    fraction, exponent = math.frexp(ratio)
    mantissa = math.floor(fraction * 2**31 + 0.5)
    exact = Fraction(mantissa) * Fraction(2) ** (exponent - 31)
    rounded = _up if rounding == "UPWARD" else _away
    found = run("qnn.requantize", data, given, _zero(0), wanted, _zero(-7),
                       rounding=rounding, out_dtype="int32")  # fmt: skip
    assert found.tolist() == [rounded(int(x) * exact) - 7 for x in data]


@BOTH
def test_requantize_has_a_ratio_for_each_channel(run: Any) -> None:
    data = np.arange(-12, 12, dtype=np.int32).reshape(2, 3, 4)
    scales, zeros = _scale(0.5, 1.0, 4.0), _zero(1, 0, -2)
    found = run(
        "qnn.requantize", data, scales, zeros, _scale(2.0), _zero(5), axis=1, out_dtype="uint8"
    )
    for place in product(range(2), range(3), range(4)):
        real = (int(data[place]) - int(zeros[place[1]])) * Fraction(float(scales[place[1]])) / 2
        assert found[place] == _cut(_up(real) + 5, "uint8")


@pytest.mark.parametrize("ratio", [2.0**-40, 2.0**-33])
@BOTH
def test_tiny_ratio_gives_zero(run: Any, ratio: float) -> None:
    data = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    operands = (_scale(ratio), _zero(0), _scale(1.0), _zero(4))
    assert run("qnn.requantize", data, *operands, out_dtype="int8").tolist() == [4] * 5


def test_quantize_rounds_halves_away() -> None:
    data = np.array([-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 99, -99], np.float32)
    found = run_kernel("qnn.quantize", data, _scale(0.5), _zero(1), out_dtype="int8")
    assert found.tolist() == [-2, -1, 0, 2, 3, 4, 127, -128]


def test_quantize_saturates_int32() -> None:
    data = np.array([1e20, -1e20, np.inf, np.nan], np.float32)
    found = run_kernel("qnn.quantize", data, _scale(1.0), _zero(0), out_dtype="int32")
    assert found.tolist() == [2**31 - 1, -(2**31), 2**31 - 1, 0]


def test_dequantize_by_channel() -> None:
    data = np.array([[0, 128, 255], [1, 2, 3]], np.uint8)
    found = run_kernel("qnn.dequantize", data, _scale(0.5, 0.25), _zero(128, 2), axis=0,
                       out_dtype="float32")  # fmt: skip
    assert found.tolist() == [[-64.0, 0.0, 63.5], [-0.25, 0.0, 0.25]]


def test_dequantize_saturates_float16() -> None:
    data = np.array([-30000, 30000], np.int16)
    found = run_kernel("qnn.dequantize", data, _scale(4.0), _zero(0), out_dtype="float16")
    assert found.tolist() == [-65504.0, 65504.0]


@pytest.mark.parametrize(("name", "sign"), [("qnn.add", 1), ("qnn.subtract", -1)])
def test_sum_rounds_each_operand(name: str, sign: int) -> None:
    generator = np.random.default_rng(7)
    lhs, rhs = generator.integers(0, 256, (2, 300)).astype(np.uint8)
    found = run_kernel(
        name, lhs, rhs, _scale(0.5), _zero(3), _scale(0.75), _zero(100), _scale(2.0), _zero(20)
    )
    a = [_up((int(x) - 3) * Fraction(1, 4)) for x in lhs]
    b = [_up((int(x) - 100) * Fraction(3, 8)) for x in rhs]
    assert found.tolist() == [_cut(x + sign * y + 20, "uint8") for x, y in zip(a, b, strict=True)]


def test_product_is_rounded_once() -> None:
    generator = np.random.default_rng(8)
    lhs, rhs = generator.integers(-128, 128, (2, 300)).astype(np.int8)
    operands = (_scale(0.5), _zero(3), _scale(0.25), _zero(-5), _scale(4.0), _zero(1))
    found = run_kernel("qnn.mul", lhs, rhs, *operands)
    pairs = zip(lhs.tolist(), rhs.tolist(), strict=True)
    expected = [_cut(_up((a - 3) * (b + 5) * Fraction(1, 32)) + 1, "int8") for a, b in pairs]
    assert found.tolist() == expected


def test_product_by_channel_needs_one_axis() -> None:
    x = relay.var("x", shape=(3, 3), dtype="int8")
    one, many = relay.const(1.0, "float32"), relay.const(_scale(1, 2, 3))
    zero = relay.const(0, "int32")
    with pytest.raises(TypeInferenceError, match="one axis"):
        relay.qnn.op.mul(x, x, many, zero, one, zero, one, zero, lhs_axis=0, rhs_axis=1)


@pytest.mark.parametrize("zero_points", [(0, (0,)), (120, (7,)), (3, (1, -2, 5))])
def test_dense_is_a_sum_of_integers(zero_points: tuple[int, tuple[int, ...]]) -> None:
    generator = np.random.default_rng(9)
    data = generator.integers(0, 256, (4, 2000)).astype(np.uint8)
    weight = generator.integers(-128, 128, (3, 2000)).astype(np.int8)
    x_zero, w_zero = zero_points
    found = run_kernel("qnn.dense", data, weight, _zero(x_zero), _zero(*w_zero), _scale(1.0),
                       _scale(1.0), units=3, out_dtype="int32")  # fmt: skip
    wide = weight.astype(np.int64) - np.array(w_zero)[:, None]
    np.testing.assert_array_equal(found, (data.astype(np.int64) - x_zero) @ wide.T)


@pytest.mark.parametrize(("groups", "inner"), [(1, 4), (2, 2), (4, 1)])
def test_convolution_pads_with_the_zero_point(groups: int, inner: int) -> None:
    generator = np.random.default_rng(10)
    data = generator.integers(0, 256, (1, 4, 5, 6)).astype(np.uint8)
    weight = generator.integers(0, 256, (4, inner, 3, 2)).astype(np.uint8)
    w_zero = np.array([1, 2, 3, 4], np.int32)
    found = run_kernel("qnn.conv2d", data, weight, _zero(99), w_zero, _scale(1.0), _scale(1.0),
                       padding=(1, 0, 2, 1), strides=(2, 1), groups=groups,
                       out_dtype="int32")  # fmt: skip
    padded = np.pad(data, ((0, 0), (0, 0), (1, 2), (0, 1)), constant_values=99).astype(int) - 99
    kernel = weight.astype(int) - w_zero[:, None, None, None]
    expected = np.zeros(found.shape, int)
    for out, row, column in product(*map(range, found.shape[1:])):
        first = out // (4 // groups) * inner
        window = padded[0, first : first + inner, 2 * row : 2 * row + 3, column : column + 2]
        expected[0, out, row, column] = (window * kernel[out]).sum()
    np.testing.assert_array_equal(found, expected)


def test_transposed_convolution_spreads_integers() -> None:
    generator = np.random.default_rng(11)
    data = generator.integers(0, 256, (1, 2, 3, 3)).astype(np.uint8)
    weight = generator.integers(-128, 128, (2, 3, 2, 2)).astype(np.int8)
    w_zero = np.array([1, -2, 3], np.int32)
    found = run_kernel("qnn.conv2d_transpose", data, weight, _zero(7), w_zero, _scale(1.0),
                       _scale(1.0), strides=(2, 1), out_dtype="int32")  # fmt: skip
    expected = np.zeros((1, 3, 6, 4), int)
    kernel = weight.astype(int) - w_zero[None, :, None, None]
    for c, row, column in product(range(2), range(3), range(3)):
        value = int(data[0, c, row, column]) - 7
        expected[0, :, 2 * row : 2 * row + 2, column : column + 2] += value * kernel[c]
    np.testing.assert_array_equal(found, expected)


FUNCTIONS = {
    "qnn.abs": abs,
    "qnn.erf": math.erf,
    "qnn.exp": math.exp,
    "qnn.hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "qnn.log": lambda x: math.log(x) if x > 0 else (-math.inf if x == 0 else 0.0),
    "qnn.rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else (math.inf if x == 0 else 0.0),
    "qnn.sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "qnn.sqrt": lambda x: math.sqrt(x) if x >= 0 else 0.0,
    "qnn.tanh": math.tanh,
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_table_is_the_function(name: str) -> None:
    """All 256 numbers; a quotient nearer to a half than float32 tells may go either way."""
    data = np.arange(-128, 128, dtype=np.int8)
    found = run_kernel(name, data, _scale(0.03), _zero(5), _scale(0.017), _zero(-9))
    for number, level in zip(data.tolist(), found.tolist(), strict=True):
        real = float(np.float32(number - 5) * np.float32(0.03))
        steps = FUNCTIONS[name](real) / float(np.float32(0.017))
        if abs(steps) > 1e6:
            assert level == (127 if steps > 0 else -128)
        elif abs(abs(steps) % 1 - 0.5) > 1e-3:
            nothing = name in ("qnn.log", "qnn.rsqrt", "qnn.sqrt") and real < 0
            assert level == (0 if nothing else _cut(round(steps) - 9, "int8"))


def test_leaky_relu_rounds_each_term() -> None:
    data = np.arange(0, 256, dtype=np.uint8)
    operands = (_scale(0.5), _zero(100), _scale(1.0), _zero(41))
    found = run_kernel("qnn.leaky_relu", data, *operands, alpha=0.25)
    expected = []
    for number in data.tolist():
        level = _up(Fraction(number - 100, 2)) + 41
        below = _up(Fraction(level, 4)) + _up(Fraction(41 * 3, 4))
        expected.append(_cut(below if number < 100 else level, "uint8"))
    assert found.tolist() == expected


def test_softmax_is_close_to_the_real_one() -> None:
    generator = np.random.default_rng(12)
    data = generator.integers(-60, 60, (20, 8)).astype(np.int8)
    operands = (_scale(0.05), _zero(0), _scale(1 / 256), _zero(-128))
    found = (run_kernel("qnn.softmax", data, *operands).astype(float) + 128) / 256
    powers = np.exp(data * 0.05)
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), atol=0.02)


def test_softmax_of_equal_numbers() -> None:
    """1 / 4 is 32 / 128, which is 64 / 256."""
    data = np.full((1, 4), 17, np.int8)
    operands = (_scale(0.5), _zero(3), _scale(1 / 256), _zero(-128))
    assert run_kernel("qnn.softmax", data, *operands).tolist() == [[-64] * 4]


def test_average_is_cut_towards_zero() -> None:
    data = np.array([[[[-3, -2], [0, 0]], [[7, 4], [1, 1]]]], np.int8)
    same = (_scale(0.5), _zero(0))
    found = run_kernel("qnn.avg_pool2d", data, *same, *same, pool_size=(2, 2))
    assert found.tolist() == [[[[-1]], [[3]]]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_simulation_is_quantisation_in_float(dtype: str) -> None:
    data = np.random.default_rng(13).uniform(-90, 90, (4, 3)).astype(np.float32)
    scales, zeros = _scale(0.5, 0.25, 1.0), _zero(1, 2, 3)
    x = relay.var("x", shape=(4, 3))
    parameters = (relay.const(scales), relay.const(zeros))
    function = relay.Function([x], relay.qnn.op.simulated_quantize(x, *parameters, out_dtype=dtype))
    (found,) = evaluate(infer_function(function), [data])
    info = np.iinfo(dtype)
    whole = np.sign(data) * np.floor(np.abs(data / scales) + 0.5) + zeros
    np.testing.assert_array_equal(found, np.clip(whole, info.min, info.max).astype(np.float32))
    assert found.dtype == np.float32


def test_builders_take_what_tvm_takes() -> None:
    x = relay.var("x", shape=(1, 4, 5, 5), dtype="uint8")
    w = relay.var("w", shape=(8, 4, 3, 3), dtype="int8")
    zero, scale = relay.const(0, "int32"), relay.const(0.5, "float32")
    conv = relay.qnn.op.conv2d(x, w, zero, zero, scale, scale, (3, 3), 8, padding=1)
    assert repr(conv.type) == "Tensor[(1, 8, 5, 5), int32]"
    scaled = relay.qnn.op.requantize(conv, scale, zero, scale, zero)
    assert repr(scaled.type) == "Tensor[(1, 8, 5, 5), int8]"
    pooled = relay.qnn.op.avg_pool2d(
        scaled, scale, zero, scale, zero, 2, 2, (0, 0), 1, layout="NCHW"
    )
    assert repr(pooled.type) == "Tensor[(1, 8, 2, 2), int8]"
    bent = relay.qnn.op.leaky_relu(pooled, 0.1, scale, zero, scale, zero)
    assert bent.attrs["alpha"] == 0.1


@pytest.mark.parametrize(
    ("scale", "zero_point", "found"),
    [
        pytest.param(_scale(1, 2), _zero(0), "expected one number or 3", id="length"),
        pytest.param(np.float64(1), _zero(0), "expected float32, found float64", id="scale"),
        pytest.param(_scale(1), np.array(0, np.int8), "expected int32, found int8", id="zero"),
    ],
)
def test_parameters_are_checked(scale: Any, zero_point: Any, found: str) -> None:
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(TypeInferenceError, match=found):
        relay.qnn.op.quantize(x, relay.Constant(np.asarray(scale)), relay.const(zero_point))


def test_fixed_point_multiplies_int32_alone() -> None:
    with pytest.raises(TypeInferenceError, match="int32"):
        relay.fixed_point_multiply(relay.var("x", shape=(2,)), multiplier=2**30, shift=1)
