"""Fake quantisation: the integer forms written out, and that their numbers are about the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.affine_type import TensorAffineType, TupleAffineType
from serde.relay.ir.attrs import register_op_attr, reset_op_attr
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.verify import verify
from serde.relay.transform import DivToMul, FakeQuantizationToInteger, InferType
from serde.relay.tvm.passes import fake_quantization_to_integer as rules

HEAD = '#[version = "0.0.5"]\n'
KEY = "FTVMFakeQuantizationToInteger"
SEED = 20


def _mod(text: str) -> relay.IRModule:
    mod = InferType()(relay.fromtext(HEAD + text))
    verify(mod)
    return mod


def _arguments(mod: relay.IRModule) -> list[np.ndarray]:
    rng = np.random.default_rng(SEED)
    args = []
    for param in mod["main"].params:
        shape, dtype = param.type.concrete_shape, param.type.dtype
        if dtype == "float32":
            args.append(rng.normal(size=shape).astype(dtype) * 20)
        else:
            low, high = (-900, 900) if dtype == "int32" else (np.iinfo(dtype).min, 100)
            args.append(rng.integers(low, high, shape).astype(dtype))
    return args


def _run(mod: relay.IRModule) -> np.ndarray:
    return relay.create_executor("vm", mod=mod).evaluate()(*_arguments(mod)).numpy()


def _check(before: str, after: str, steps: int = 0, **options: object) -> None:
    """Check the module made of another, and that results differ by a number of steps at most."""
    mod, wanted = _mod(before), _mod(after)
    found = FakeQuantizationToInteger(**options)(mod)
    verify(found)
    relay.assert_structural_equal(found, wanted)
    a, b = _run(mod), _run(found)
    assert a.dtype == b.dtype
    if a.dtype.kind == "f":
        np.testing.assert_allclose(b, a, rtol=1e-6)
    else:
        assert np.abs(a.astype(int) - b.astype(int)).max() <= steps


def _int8(x: str, scale: str = "0.5f", zero: str = "3", axis: int = -1) -> str:
    return f'qnn.dequantize({x}, {scale}, {zero}, out_dtype="float32", axis={axis})'


def _quantize(x: str, scale: str = "0.5f", zero: str = "3", dtype: str = "int8") -> str:
    return f'qnn.quantize({x}, {scale}, {zero}, out_dtype="{dtype}", axis=-1)'


def _requantize(x: str, parameters: str, dtype: str = "int8", axis: int = -1) -> str:
    return f'qnn.requantize({x}, {parameters}, axis={axis}, out_dtype="{dtype}")'


ALIKE = {
    "reshape": "reshape({}, newshape=[3, 32])",
    "squeeze": "squeeze({}, axis=[0])",
    "strided_slice": "strided_slice({}, begin=[0, 1], end=[1, 3], strides=[1], axes=None)",
    "transpose": "transpose({}, axes=[0, 2, 3, 1])",
    "expand_dims": "expand_dims({}, axis=2)",
    "max_pool2d": "nn.max_pool2d({}, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])",
    "batch_flatten": "nn.batch_flatten({})",
    "depth_to_space": "nn.depth_to_space({}, block_size=2)",
    "max": "max({})",
    "max-axis": "max({}, axis=[1], keepdims=True)",
    "min": "min({}, axis=[2])",
    "broadcast_to": "broadcast_to({}, shape=[2, 4, 4, 6])",
    "split": "split({}, indices_or_sections=2, axis=3).0",
    "split-places": "split({}, indices_or_sections=[1, 3], axis=1).2",
    "topk": 'topk({}, k=2, axis=-1, ret_type="values", dtype="int32")',
    "take": "take({}, [2, 0, 1], axis=3)",
    "resize2d": 'image.resize2d({}, size=[8, 12], roi=[0f, 0f, 0f, 0f], layout="NCHW", '
    'method="nearest_neighbor", coordinate_transformation_mode="asymmetric")',
}
IMAGE = "def @main(%x: Tensor[(1, 4, 4, 6), int8])"


def _text(op: str, x: str) -> str:
    """Return an operator of `x`; lists of indices are constants."""
    return op.format(x)


@pytest.mark.parametrize("op", [name for name in ALIKE if name != "take"])
@pytest.mark.parametrize("scale", ["0.5f", "0.7f"])
def test_what_arranges_or_chooses_elements_works_on_integers(op: str, scale: str) -> None:
    result = _text(ALIKE[op], "%x")
    if scale != "0.5f":
        result = _requantize(result, f"0.5f, 3, {scale}, 3")
    before = f"{IMAGE} {{ {_quantize(_text(ALIKE[op], _int8('%x')), scale)} }}"
    _check(before, f"{IMAGE} {{ {result} }}", steps=0 if scale == "0.5f" else 1)


def test_take_works_on_integers() -> None:
    head = "def @main(%x: Tensor[(6, 4), int8])"
    mod = _mod(f"{head} {{ %x }}")
    x = mod["main"].params[0]
    indices = relay.const(np.array([2, 0, 5], "int32"))
    real = relay.qnn.op.dequantize(x, relay.const(0.5), relay.const(3))
    end = relay.qnn.op.quantize(relay.take(real, indices, axis=0), relay.const(0.5), relay.const(3))
    found = FakeQuantizationToInteger(hard_fail=True)(relay.IRModule.from_expr(end))
    relay.assert_structural_equal(found, relay.IRModule.from_expr(relay.take(x, indices, axis=0)))


def test_of_topk_values_alone_have_a_form() -> None:
    body = 'topk({}, k=2, axis=-1, ret_type="both", dtype="int32").0'
    text = f"{IMAGE} {{ {_quantize(body.format(_int8('%x')))} }}"
    _check(text, text)
    with pytest.raises(RelayError, match="ret_type: expected values"):
        FakeQuantizationToInteger(hard_fail=True)(_mod(text))


@pytest.mark.parametrize(
    ("scale", "zero", "dtype", "steps"),
    [("0.5f", "3", "int8", None), ("0.5f", "4", "int8", 0), ("1f", "3", "int8", 1),
     ("0.5f", "3", "uint8", 0), ("0.1f", "0", "int32", 0)],
)  # fmt: skip
def test_scales_are_compared(scale: str, zero: str, dtype: str, steps: int | None) -> None:
    before = f"{IMAGE} {{ {_quantize(_int8('%x'), scale, zero, dtype)} }}"
    same = f"{IMAGE} {{ %x }}"
    other = f"{IMAGE} {{ {_requantize('%x', f'0.5f, 3, {scale}, {zero}', dtype)} }}"
    _check(before, same if steps is None else other, steps or 0)


AVERAGES = {
    "nn.avg_pool2d": (
        "nn.avg_pool2d({}, pool_size=[2, 3], strides=[2, 3], padding=[0, 0, 0, 0])", True,
    ),
    "nn.global_avg_pool2d": ("nn.global_avg_pool2d({})", False),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", AVERAGES)
def test_averages_are_of_int32_in_the_scale_wanted(op: str, dtype: str) -> None:
    text, saturates = AVERAGES[op]
    before = f"{IMAGE} {{ {_quantize(text.format(_int8('%x')), '0.25f', '7', dtype)} }}"
    level = _requantize("%x", "0.5f, 3, 0.25f, 7", "int32")
    mean = text.format(level)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if saturates:
        after = f'cast(clip({mean}, a_min={low}f, a_max={high}f), dtype="{dtype}")'
    else:
        after = _requantize(mean, "0.25f, 7, 0.25f, 7", dtype)
    _check(before, f"{IMAGE} {{ {after} }}", steps=1)


def test_averages_in_the_scale_that_is_there_are_cast() -> None:
    text = "nn.avg_pool2d({}, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])"
    before = f"{IMAGE} {{ {_quantize(text.format(_int8('%x')))} }}"
    mean = text.format('cast(%x, dtype="int32")')
    after = f'cast(clip({mean}, a_min=-128f, a_max=127f), dtype="int8")'
    _check(before, f"{IMAGE} {{ {after} }}", steps=1)


def test_adaptive_averages() -> None:
    head = "def @main(%x: Tensor[(1, 4, 6), int8])"
    text = "nn.adaptive_avg_pool1d({}, output_size=[1])"
    before = f"{head} {{ {_quantize(text.format(_int8('%x')), '0.25f', '7')} }}"
    mean = text.format(_requantize("%x", "0.5f, 3, 0.25f, 7", "int32"))
    _check(before, f"{head} {{ {_requantize(mean, '0.25f, 7, 0.25f, 7')} }}", steps=1)


def test_means_are_of_int32() -> None:
    before = f"{IMAGE} {{ {_quantize('mean(' + _int8('%x') + ', axis=[2, 3])')} }}"
    after = f'{IMAGE} {{ cast(mean(cast(%x, dtype="int32"), axis=[2, 3]), dtype="int8") }}'
    _check(before, after, steps=1)


BINARY = {"add": "qnn.add", "subtract": "qnn.subtract", "multiply": "qnn.mul"}
TWO = "def @main(%x: Tensor[(2, 6), int8], %y: Tensor[(2, 6), int8])"


@pytest.mark.parametrize("zero", ["0", "-5"])
@pytest.mark.parametrize("scale", ["0.25f", "0.9f", "30f"])
@pytest.mark.parametrize("op", BINARY)
def test_arithmetic(op: str, scale: str, zero: str) -> None:
    real = f"{op}({_int8('%x')}, {_int8('%y', '0.3f', '-2')})"
    before = f"{TWO} {{ {_quantize(real, scale, zero)} }}"
    after = f"{BINARY[op]}(%x, %y, 0.5f, 3, 0.3f, -2, {scale}, {zero}, lhs_axis=-1, rhs_axis=-1)"
    _check(before, f"{TWO} {{ {after} }}", steps=2)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("op", BINARY)
def test_arithmetic_with_a_constant(op: str, side: str) -> None:
    head = "def @main(%x: Tensor[(2, 6), int8])"
    pair = ["1.5f", _int8("%x")] if side == "left" else [_int8("%x"), "1.5f"]
    level = ['qnn.quantize(1.5f, 0.5f, 3, out_dtype="int8")', "%x"]
    level = level if side == "left" else level[::-1]
    before = f"{head} {{ {_quantize(f'{op}({pair[0]}, {pair[1]})', '1f', '0')} }}"
    after = f"{BINARY[op]}({level[0]}, {level[1]}, 0.5f, 3, 0.5f, 3, 1f, 0)"
    _check(before, f"{head} {{ {after} }}", steps=2)


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize(
    ("scales", "wanted", "left", "right"),
    [
        (("0.5f", "0.5f"), "0.5f", "%x", "%y"),
        (("0.5f", "0.25f"), "0.5f", "%x", _requantize("%y", "0.25f, 3, 0.5f, 3")),
        (
            ("0.5f", "0.25f"), "1f",
            _requantize("%x", "0.5f, 3, 1f, 3"), _requantize("%y", "0.25f, 3, 1f, 3"),
        ),
    ],
    ids=["alike", "one", "both"],
)  # fmt: skip
def test_extrema(op: str, scales: tuple[str, str], wanted: str, left: str, right: str) -> None:
    real = f"{op}({_int8('%x', scales[0])}, {_int8('%y', scales[1])})"
    before = f"{TWO} {{ {_quantize(real, wanted)} }}"
    _check(before, f"{TWO} {{ {op}({left}, {right}) }}", steps=1)


FUNCTIONS = ["abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh"]


@pytest.mark.parametrize("wanted", ["0.01f", "0.25f"])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_one_number(op: str, wanted: str) -> None:
    head = "def @main(%x: Tensor[(2, 6), int8])"
    real = f"{op}(" + _int8("%x", "0.05f", "-128") + ")"
    before = f"{head} {{ {_quantize(real, wanted, '-9')} }}"
    after = f"{head} {{ qnn.{op}(%x, 0.05f, -128, {wanted}, -9) }}"
    _check(before, after, steps=1)


@pytest.mark.parametrize("alpha", ["0.1f", "0.5f"])
def test_leaky_rectifiers(alpha: str) -> None:
    head = "def @main(%x: Tensor[(2, 6), int8])"
    text = f"nn.leaky_relu({_int8('%x')}, alpha={alpha})"
    before = f"{head} {{ {_quantize(text, '0.3f', '-4')} }}"
    after = f"{head} {{ qnn.leaky_relu(%x, 0.5f, 3, 0.3f, -4, alpha={alpha}) }}"
    _check(before, after, steps=1)


@pytest.mark.parametrize(
    ("low", "high", "least", "greatest"),
    [("0f", "6f", "3f", "15f"), ("-3.3f", "3.3f", "-3f", "9f"), ("-90f", "90f", "-177f", "183f")],
)
def test_clips_are_of_integers(low: str, high: str, least: str, greatest: str) -> None:
    before = _quantize(f"clip({_int8('%x')}, a_min={low}, a_max={high})")
    after = f"clip(%x, a_min={least}, a_max={greatest})"
    _check(f"{IMAGE} {{ {before} }}", f"{IMAGE} {{ {after} }}", steps=1)


def test_rectifiers_cut_at_the_zero_point() -> None:
    before = _quantize(f"nn.relu({_int8('%x')})")
    found = FakeQuantizationToInteger()(_mod(f"{IMAGE} {{ {before} }}"))
    body = found["main"].body
    assert isinstance(body, Call)
    assert body.op.name == "maximum"
    assert body.args[1].data.dtype == np.int8
    assert body.args[1].data == 3
    x = _arguments(found)[0]
    np.testing.assert_array_equal(_run(found), np.maximum(x, 3))


def _vector(x: Expr, scale: list[float], zero: list[int], axis: int) -> Expr:
    return relay.qnn.op.dequantize(x, relay.const(scale), relay.const(zero), axis=axis)


@pytest.mark.parametrize("axis", [1, 3, -1])
@pytest.mark.parametrize("op", ["relu", "clip"])
def test_bounds_for_each_channel(op: str, axis: int) -> None:
    shape = (2, 3, 4, 3)
    scale, zero = [1.0, 0.5, 0.25], [7, -3, 0]
    x = relay.var("x", shape=shape, dtype="int8")
    real = _vector(x, scale, zero, axis)
    real = relay.nn.relu(real) if op == "relu" else relay.clip(real, -1.0, 2.0)
    end = relay.qnn.op.quantize(real, relay.const(scale), relay.const(zero), axis, "int8")
    found = FakeQuantizationToInteger(hard_fail=True)(relay.IRModule.from_expr(end))
    spread = [1, 1, 1, 1]
    spread[axis] = 3
    s, z = np.reshape(scale, spread), np.reshape(zero, spread)
    data = _arguments(found)[0]
    low = z if op == "relu" else np.trunc(-1 / s) + z
    high = np.full_like(z, 127) if op == "relu" else np.trunc(2 / s) + z
    np.testing.assert_array_equal(_run(found), np.clip(data, low, high).astype("int8"))
    assert "dequantize" not in found.astext()


CONV = "def @main(%x: Tensor[(1, 2, 5, 5), int8], %w: Tensor[(3, 2, 3, 3), int8])"
WINDOW = "padding=[1, 1, 1, 1], channels=3, kernel_size=[3, 3]"


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("x_zero", "w_zero"), [("0", "0"), ("3", "0"), ("3", "-2")])
def test_convolutions(dtype: str, x_zero: str, w_zero: str) -> None:
    real = f"nn.conv2d({_int8('%x', zero=x_zero)}, {_int8('%w', '0.25f', w_zero)}, {WINDOW})"
    before = f"{CONV} {{ {_quantize(real, '64f', '1', dtype)} }}"
    sums = f'qnn.conv2d(%x, %w, {x_zero}, {w_zero}, 0.5f, 0.25f, {WINDOW}, out_dtype="int32")'
    after = _requantize(sums, "0.125f, 0, 64f, 1", dtype, axis=1)
    _check(before, f"{CONV} {{ {after} }}", steps=1)


def test_convolutions_transposed() -> None:
    head = "def @main(%x: Tensor[(1, 2, 5, 5), int8], %w: Tensor[(2, 3, 3, 3), int8])"
    real = f"nn.conv2d_transpose({_int8('%x')}, {_int8('%w', '0.25f', '0')}, "
    real += "channels=3, kernel_size=[3, 3], padding=[0, 0, 0, 0])"
    before = f"{head} {{ {_quantize(real, '64f', '1')} }}"
    sums = "qnn.conv2d_transpose(%x, %w, 3, 0, 0.5f, 0.25f, channels=3, kernel_size=[3, 3], "
    sums += 'padding=[0, 0, 0, 0], out_dtype="int32")'
    _check(before, f"{head} {{ {_requantize(sums, '0.125f, 0, 64f, 1', axis=1)} }}", steps=1)


def test_convolutions_of_channels_last_have_their_axis() -> None:
    head = "def @main(%x: Tensor[(1, 5, 5, 2), int8], %w: Tensor[(3, 3, 2, 3), int8])"
    window = f'{WINDOW}, data_layout="NHWC", kernel_layout="HWIO"'
    real = f"nn.conv2d({_int8('%x')}, {_int8('%w', '0.25f', '0')}, {window})"
    sums = f'qnn.conv2d(%x, %w, 3, 0, 0.5f, 0.25f, {window}, out_dtype="int32")'
    before = f"{head} {{ {_quantize(real, '64f', '1')} }}"
    _check(before, f"{head} {{ {_requantize(sums, '0.125f, 0, 64f, 1', axis=3)} }}", steps=1)


DENSE = "def @main(%x: Tensor[(4, 6), int8], %w: Tensor[(5, 6), int8]"


@pytest.mark.parametrize("units", ["None", "5"])
def test_dense_layers(units: str) -> None:
    real = f"nn.dense({_int8('%x')}, {_int8('%w', '0.25f', '-1')}, units={units})"
    before = f"{DENSE}) {{ {_quantize(real, '32f', '1')} }}"
    sums = f'qnn.dense(%x, %w, 3, -1, 0.5f, 0.25f, units={units}, out_dtype="int32")'
    _check(before, f"{DENSE}) {{ {_requantize(sums, '0.125f, 0, 32f, 1', axis=1)} }}", steps=1)


@pytest.mark.parametrize(
    ("scale", "bias"),
    [("0.125f", "%b"), ("0.5f", _requantize("%b", "0.5f, 0, 0.125f, 0", "int32", axis=0))],
)
def test_a_bias_gets_the_scale_of_the_sums(scale: str, bias: str) -> None:
    real = f"nn.dense({_int8('%x')}, {_int8('%w', '0.25f', '0')}, units=None)"
    head = f"{DENSE}, %b: Tensor[(5), int32])"
    real = f"nn.bias_add({real}, {_int8('%b', scale, '0')})"
    before = f"{head} {{ {_quantize(real, '9f')} }}"
    sums = 'qnn.dense(%x, %w, 3, 0, 0.5f, 0.25f, units=None, out_dtype="int32")'
    after = _requantize(f"nn.bias_add({sums}, {bias})", "0.125f, 0, 9f, 3", axis=1)
    _check(before, f"{head} {{ {after} }}", steps=1)


def test_a_bias_that_is_added_in_one_scale_is_added_in_integers() -> None:
    real = f"nn.dense({_int8('%x')}, {_int8('%w', '0.25f', '0')}, units=None)"
    head = f"{DENSE}, %b: Tensor[(5), int32])"
    real = f"add({real}, " + _int8("%b", "0.125f", "0") + ")"
    before = f"{head} {{ {_quantize(real, '9f')} }}"
    sums = 'qnn.dense(%x, %w, 3, 0, 0.5f, 0.25f, units=None, out_dtype="int32")'
    after = _requantize(f"add({sums}, %b)", "0.125f, 0, 9f, 3", axis=1)
    _check(before, f"{head} {{ {after} }}", steps=1)


def test_batches_of_matrices() -> None:
    head = "def @main(%x: Tensor[(2, 3, 4), int8], %y: Tensor[(2, 5, 4), int8])"
    real = f"nn.batch_matmul({_int8('%x')}, {_int8('%y', '0.25f', '1')}, transpose_b=True)"
    before = f"{head} {{ {_quantize(real, '64f', '1')} }}"
    sums = 'qnn.batch_matmul(%x, %y, 3, 1, 0.5f, 0.25f, out_dtype="int32", transpose_b=True)'
    _check(before, f"{head} {{ {_requantize(sums, '0.125f, 0, 64f, 1')} }}", steps=1)


def test_matrices_that_lie_otherwise_have_no_form() -> None:
    head = "def @main(%x: Tensor[(2, 3, 4), int8], %y: Tensor[(2, 4, 5), int8])"
    real = f"nn.batch_matmul({_int8('%x')}, {_int8('%y')}, transpose_b=False)"
    text = f"{head} {{ {_quantize(real, '64f')} }}"
    _check(text, text)


@pytest.mark.parametrize("axis", [0, 1])
def test_joins_rescale_each_part(axis: int) -> None:
    parts = f"({_int8('%x')}, {_int8('%y', '0.25f', '-1')})"
    before = f"{TWO} {{ {_quantize(f'concatenate({parts}, axis={axis})', '0.75f', '2')} }}"
    operands = "(%x, %y), (0.5f, 0.25f), (3, -1), 0.75f, 2"
    _check(before, f"{TWO} {{ qnn.concatenate({operands}, axis={axis}) }}", steps=1)


@pytest.mark.parametrize("value", ["0f", "-100f", "2.5f"])
def test_padding_is_quantised(value: str) -> None:
    pad = "nn.pad({}, {}, pad_width=[[0, 0], [0, 0], [1, 1], [0, 2]])"
    before = f"{IMAGE} {{ {_quantize(pad.format(_int8('%x'), value))} }}"
    level = f'qnn.quantize({value}, 0.5f, 3, out_dtype="int8")'
    _check(before, f"{IMAGE} {{ {pad.format('%x', level)} }}", steps=0)


def test_regions_end_at_each_quantisation() -> None:
    inner = _quantize(f"nn.batch_flatten({_int8('%x')})", "0.25f", "0")
    real = "sigmoid(" + _int8(inner, "0.25f", "0") + ")"
    before = f"{IMAGE} {{ {_quantize(real, '0.01f', '0')} }}"
    level = _requantize("nn.batch_flatten(%x)", "0.5f, 3, 0.25f, 0")
    _check(before, f"{IMAGE} {{ qnn.sigmoid({level}, 0.25f, 0, 0.01f, 0) }}", steps=1)


UNCHANGED = {
    "variable": IMAGE + " { " + _quantize('cast(%x, dtype="float32")') + " }",
    "unknown-operator": IMAGE + " { " + _quantize("ceil(" + _int8("%x") + ")") + " }",
    "nothing-quantised": f"{IMAGE} {{ nn.relu({_int8('%x')}) }}",
    "softmax-unasked": IMAGE + " { " + _quantize("nn.softmax(" + _int8("%x") + ")") + " }",
    "constant": f"def @main() {{ {_quantize('1.5f')} }}",
    "branch": "def @main(%c: bool, %x: Tensor[(3), int8]) { "
    + _quantize(f"if (%c) {{ {_int8('%x')} }} else {{ {_int8('%x', '1f')} }}") + " }",
}  # fmt: skip


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_regions_without_a_form_stay(text: str) -> None:
    mod = _mod(text)
    assert FakeQuantizationToInteger()(mod) is mod


@pytest.mark.parametrize(
    ("name", "message"),
    [("unknown-operator", "ceil has no FTVM"), ("softmax-unasked", "nn.softmax has no FTVM")],
)
def test_regions_without_a_form_are_refused_if_asked(name: str, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        FakeQuantizationToInteger(hard_fail=True)(_mod(UNCHANGED[name]))


@pytest.mark.parametrize("name", ["variable", "nothing-quantised", "constant", "branch"])
def test_what_is_no_region_is_not_refused(name: str) -> None:
    mod = _mod(UNCHANGED[name])
    assert FakeQuantizationToInteger(hard_fail=True)(mod) is mod


def test_softmax_if_asked() -> None:
    head = "def @main(%x: Tensor[(4, 7), int8])"
    real = "nn.softmax(" + _int8("%x", "0.1f", "3") + ")"
    before = f"{head} {{ {_quantize(real, '0.01f', '0')} }}"
    after = f"{head} {{ qnn.softmax(%x, 0.1f, 3, 0.01f, 0, axis=-1) }}"
    _check(before, after, steps=4, hard_fail=True, optional_qnn_ops=["nn.softmax"])


@pytest.fixture
def _ceil_rule() -> Iterator[None]:
    yield
    reset_op_attr("ceil", KEY)


@pytest.mark.usefixtures("_ceil_rule")
def test_a_rule_of_the_user() -> None:
    @rules.register_fake_quantization_to_integer("ceil")
    def convert(expr: Call, types: dict[Expr, TensorAffineType]) -> list[object]:
        assert types[expr].scale.data == np.float32(1)
        assert types[expr.args[0]].zero_point.data == 0
        return [expr.args[0], types[expr.args[0]]]

    real = "ceil(" + _int8("%x", "1f", "0") + ")"
    before = f"{IMAGE} {{ {_quantize(real, '1f', '0')} }}"
    _check(before, f"{IMAGE} {{ %x }}")


@pytest.mark.usefixtures("_ceil_rule")
@pytest.mark.parametrize("wrong", [[], [None, None], "no"])
def test_a_rule_that_returns_something_else_is_refused(wrong: object) -> None:
    register_op_attr("ceil", KEY, lambda expr, types: wrong)
    real = "ceil(" + _int8("%x") + ")"
    text = f"{IMAGE} {{ {_quantize(real)} }}"
    assert FakeQuantizationToInteger()(_mod(text)) is not None
    with pytest.raises(RelayError, match="FTVMFakeQuantizationToInteger of ceil returned"):
        FakeQuantizationToInteger(hard_fail=True)(_mod(text))


QAT = {
    "one": ("nn.batch_flatten({dq})", "{dq_of}(nn.batch_flatten(%x){p})"),
    "two": (
        "reshape(nn.batch_flatten({dq}), newshape=[4, 24])",
        "{dq_of}(reshape(nn.batch_flatten(%x), newshape=[4, 24]){p})",
    ),
    "then-real": ("exp(transpose({dq}, axes=None))", "exp({dq_of}(transpose(%x, axes=None){p}))"),
    "real-first": ("transpose(exp({dq}), axes=None)", "transpose(exp({dq}), axes=None)"),
    "not-enabled": ("add({dq}, {dq})", "add({dq}, {dq})"),
    "clip": ("clip({dq}, a_min=0f, a_max=6f)", "{dq_of}(clip(%x, a_min=0f, a_max=96f){p})"),
}  # fmt: skip


@pytest.mark.parametrize("name", QAT)
def test_dequantisation_moves_behind_what_needs_no_quantisation(name: str) -> None:
    parameters = ', 0.0625f, 0, out_dtype="float32", axis=-1'
    words = {"dq": f"qnn.dequantize(%x{parameters})", "dq_of": "qnn.dequantize", "p": parameters}
    before, after = (f"{IMAGE} {{ {text.format(**words)} }}" for text in QAT[name])
    _check(before, after, use_qat=True)


@pytest.mark.wide
def test_a_chain_of_a_thousand_regions_is_linear() -> None:
    x = relay.var("x", shape=(3,), dtype="int8")
    node: Expr = x
    for _ in range(1000):
        real = relay.qnn.op.dequantize(node, relay.const(0.5), relay.const(0))
        node = relay.qnn.op.quantize(relay.nn.relu(real), relay.const(0.5), relay.const(0))
    found = FakeQuantizationToInteger(hard_fail=True)(relay.IRModule.from_expr(node))
    assert "quantize" not in found.astext()


def _affine(scale: float = 1.0, zero: int = 0, dtype: str = "int8", axis: int = -1) -> object:
    return TensorAffineType(relay.const(scale), relay.const(zero), dtype, axis)


@pytest.mark.parametrize(
    "other",
    [_affine(2.0), _affine(zero=1), _affine(dtype="uint8"), _affine(axis=1),
     TupleAffineType([_affine()]), 1],
    ids=["scale", "zero", "dtype", "axis", "tuple", "number"],
)  # fmt: skip
def test_affine_types_that_differ(other: object) -> None:
    assert _affine() == _affine()
    assert _affine() != other
    assert TupleAffineType([_affine()]) == TupleAffineType([_affine()])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("divisor", [4.0, 3.0, -0.7, [2.0, 5.0, -8.0]])
def test_division_by_a_constant_becomes_multiplication(dtype: str, divisor: object) -> None:
    x = relay.var("x", shape=(2, 3), dtype=dtype)
    mod = relay.IRModule.from_expr(relay.divide(x, relay.const(divisor, dtype)))
    found = DivToMul()(mod)
    body = found["main"].body
    assert body.op.name == "multiply"
    wide = np.float64 if dtype == "float64" else np.float32
    inverse = (wide(1) / np.asarray(divisor, dtype).astype(wide)).astype(dtype)
    np.testing.assert_array_equal(body.args[1].data, inverse)
    assert body.args[1].data.dtype == dtype


@pytest.mark.parametrize(
    ("divisor", "dtype"), [(0.0, "float32"), ([1.0, 0.0, 2.0], "float32"), (3, "int32")]
)
def test_division_that_stays(divisor: object, dtype: str) -> None:
    x = relay.var("x", shape=(2, 3), dtype=dtype)
    mod = relay.IRModule.from_expr(relay.divide(x, relay.const(divisor, dtype)))
    assert DivToMul()(mod) is mod
