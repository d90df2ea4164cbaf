"""Quantised graphs as TFLite has them: operators on int8, within a step of numbers rounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_cases import CASES
from support.tflite_models import T, make_model, run_litert

import serde
import serde.relay as relay
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.run.interpreter import run
from serde.tflite.codec import load

RNG = np.random.default_rng(7)
X, Y, Z = (0.05, 3), (0.08, -5), (0.11, 9)
"""Scales and zero points."""


def const(value: Any, dtype: str = "float32") -> Expr:
    return relay.const(np.asarray(value), dtype)


def quantize(x: Expr, at: tuple[float, int], dtype: str = "int8") -> Expr:
    return relay.qnn.op.quantize(x, const(at[0]), const(at[1], "int32"), out_dtype=dtype)


def dequantize(x: Expr, at: tuple[float, int]) -> Expr:
    return relay.qnn.op.dequantize(x, const(at[0]), const(at[1], "int32"))


def weight(shape: tuple[int, ...], axis: int | None = None) -> Expr:
    """Return weights that are stored as int8, with a scale for each entry of an axis or one."""
    codes = const(RNG.integers(-127, 128, shape), "int8")
    scale = RNG.uniform(0.005, 0.02, () if axis is None else shape[axis])
    zero = np.zeros(scale.shape if axis is not None else (), np.int8)
    points = const(zero, "int8")
    return call("serde.dequantize_linear", codes, const(scale), points, axis=axis or 0)


def exported(body: Expr, variables: list[Var]) -> bytes:
    names = tuple(each.name_hint for each in variables)
    module = IRModule({"main": relay.Function(variables, body)})
    return serde.export_model(RelayModel(module, {}, ModelMeta(names, ("y",))), format="tflite")


def operators(data: bytes) -> list[str]:
    """Return operators with the types of their results."""
    graph = load(data).subgraphs[0]
    return [f"{each.name} {graph.tensors[each.outputs[0]].dtype}" for each in graph.operators]


def codes(shape: tuple[int, ...], dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def check(body: Expr, variables: list[Var], steps: int = 1) -> list[str]:
    """Compare what LiteRT gives for codes with Relay's numbers; return operators."""
    data = exported(body, variables)
    feeds = [codes(each.type.shape, each.type.dtype) for each in variables]
    (found,) = run_litert(data, feeds)
    expected = run(relay.Function(variables, body), feeds)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    distance = np.abs(found.astype(int) - expected.astype(int))
    assert distance.max() <= steps
    return operators(data)


IMAGE = (1, 8, 8, 4)
CONV = {"data_layout": "NHWC", "kernel_layout": "OHWI", "channels": 6, "kernel_size": (3, 3)}


def conv(x: Expr, axis: int | None, bias: bool, **more: Any) -> Expr:
    found = relay.nn.conv2d(x, weight((6, 3, 3, 4), axis), **{**CONV, "padding": (1, 1), **more})
    return relay.nn.bias_add(found, const(RNG.normal(size=6)), axis=3) if bias else found


def depthwise(x: Expr) -> Expr:
    found = relay.nn.conv2d(
        x, weight((4, 1, 3, 3), 0), channels=4, groups=4, kernel_size=(3, 3), strides=(2, 2),
        data_layout="NHWC", kernel_layout="OIHW",
    )  # fmt: skip
    return relay.nn.bias_add(found, const(RNG.normal(size=4)), axis=3)


def transposed(x: Expr) -> Expr:
    kind = {**CONV, "strides": (2, 2)}
    found = relay.nn.conv2d_transpose(x, weight((6, 3, 3, 4), 0), **kind)
    return relay.nn.bias_add(found, const(RNG.normal(size=6)), axis=3)


ONE: dict[str, tuple[tuple[int, ...], Callable[[Expr], Expr], list[str]]] = {
    "conv": (IMAGE, lambda x: conv(x, 0, True), ["CONV_2D"]),
    "conv of one scale": (IMAGE, lambda x: conv(x, None, False), ["CONV_2D"]),
    "conv and relu": (IMAGE, lambda x: relay.nn.relu(conv(x, 0, True)), ["CONV_2D"]),
    "conv and relu6": (IMAGE, lambda x: relay.clip(conv(x, 0, True), 0, 6), ["CONV_2D"]),
    "conv that is padded": (
        IMAGE, lambda x: conv(x, 0, True, padding=(1, 0, 0, 1)), ["PAD", "CONV_2D"]
    ),
    "depthwise": (IMAGE, depthwise, ["DEPTHWISE_CONV_2D"]),
    "dense": ((3, 5), lambda x: relay.nn.dense(x, weight((7, 5), 0)), ["FULLY_CONNECTED"]),
    "matmul": ((3, 5), lambda x: relay.nn.matmul(x, weight((5, 7), 1)), ["FULLY_CONNECTED"]),
    "rows": (
        (2, 3, 5), lambda x: call("serde.matmul", x, weight((5, 7), 1)), ["FULLY_CONNECTED"]
    ),
    "mean": (IMAGE, lambda x: relay.mean(x, (1, 2)), ["MEAN"]),
    "relu": (IMAGE, relay.nn.relu, ["RELU"]),
    "relu6": (IMAGE, lambda x: relay.clip(x, 0, 6), ["RELU6"]),
    "leaky": (IMAGE, lambda x: relay.nn.leaky_relu(x, 0.2), ["LEAKY_RELU"]),
    "softmax": ((3, 5), relay.nn.softmax, ["SOFTMAX", "QUANTIZE"]),
    "sigmoid": (IMAGE, relay.sigmoid, ["LOGISTIC", "QUANTIZE"]),
    "tanh": (IMAGE, relay.tanh, ["TANH", "QUANTIZE"]),
    "twice": (IMAGE, lambda x: relay.add(x, x), ["ADD"]),
    "abs": (IMAGE, relay.abs, ["ABS"]),
    "exp": (IMAGE, lambda x: relay.exp(x), ["EXP"]),
    "gelu": (IMAGE, relay.serde.gelu, ["GELU"]),
    "hard_swish": (IMAGE, relay.serde.hard_swish, ["HARD_SWISH"]),
    "prelu": (IMAGE, lambda x: relay.nn.prelu(x, weight((4,)), axis=3), ["PRELU"]),
    "transposed": (IMAGE, lambda x: transposed(x), ["TRANSPOSE_CONV"]),
}  # fmt: skip
"""Operators of one operand: its shape, the operator, and what is written between codes."""


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ONE)
def test_one_operand(name: str) -> None:
    shape, build, wanted = ONE[name]
    x = relay.var("x", shape=shape, dtype="int8")
    body = quantize(build(dequantize(x, X)), Y if "relu" not in name else (0.03, -100))
    assert check(body, [x]) == [f"{each} int8" for each in wanted]


SHORT_X, SHORT_Y = (0.0002, 0), (0.0005, 0)
SHORTS = (
    "conv", "conv of one scale", "conv and relu", "conv that is padded", "depthwise", "dense",
    "mean", "relu", "relu6", "leaky", "twice", "transposed",
)  # fmt: skip


@pytest.mark.parametrize("name", SHORTS)
def test_codes_of_16_bits(name: str) -> None:
    """Weights are of 8 bits, biases of 64, and no code has a zero point."""
    shape, build, wanted = ONE[name]
    x = relay.var("x", shape=shape, dtype="int16")
    body = quantize(build(dequantize(x, SHORT_X)), SHORT_Y, "int16")
    assert check(body, [x]) == [f"{each} int16" for each in wanted]


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "tanh", "exp", "gelu", "hard_swish"])
def test_tables_of_16_bits_are_further_off(name: str) -> None:
    """LiteRT's are up to four steps off, or there are none: computed on numbers."""
    shape, build, _ = ONE[name]
    x = relay.var("x", shape=shape, dtype="int16")
    body = quantize(build(dequantize(x, SHORT_X)), SHORT_Y, "int16")
    found = check(body, [x])
    assert (found[0], found[-1]) == ("DEQUANTIZE float32", "QUANTIZE int16")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_greater_of_two_scales(op: str, dtype: str) -> None:
    pair = [relay.var(each, shape=(2, 3, 8), dtype=dtype) for each in "ab"]
    scales = (X, Z) if dtype == "int8" else (SHORT_X, SHORT_Y)
    real = call(op, *map(dequantize, pair, scales))
    found = check(quantize(real, scales[1], dtype), pair)
    assert found == [f"QUANTIZE {dtype}", f"{op.upper()} {dtype}"]


@pytest.mark.parametrize("op", ["max", "min"])
def test_greatest_of_codes(op: str) -> None:
    x = relay.var("x", shape=IMAGE, dtype="int8")
    body = quantize(call(op, dequantize(x, X), axis=(1, 2)), X)
    assert check(body, [x], steps=0) == [f"REDUCE_{op.upper()} int8"]


@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
def test_two_operands(op: str) -> None:
    pair = [relay.var(each, shape=(2, 3, 8), dtype="int8") for each in "ab"]
    real = call(op, dequantize(pair[0], X), dequantize(pair[1], Y))
    name = {"add": "ADD", "subtract": "SUB", "multiply": "MUL"}[op]
    assert check(quantize(real, Z), pair) == [f"{name} int8"]


def test_concatenation() -> None:
    """One operand has another scale than the result."""
    pair = [relay.var(each, shape=(2, 3, 8), dtype="int8") for each in "ab"]
    real = relay.concatenate([dequantize(pair[0], X), dequantize(pair[1], Z)], axis=1)
    assert check(quantize(real, Z), pair) == ["QUANTIZE int8", "CONCATENATION int8"]


POOL = {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1), "layout": "NHWC"}
NEAREST = {
    "layout": "NHWC", "method": "nearest_neighbor", "rounding_method": "floor",
    "coordinate_transformation_mode": "asymmetric",
}  # fmt: skip
SAME: dict[str, tuple[Callable[[Expr], Expr], list[str]]] = {
    "reshape": (lambda x: relay.reshape(x, (8, -1)), ["RESHAPE"]),
    "transpose": (lambda x: relay.transpose(x, (0, 3, 1, 2)), ["TRANSPOSE"]),
    "pad": (lambda x: relay.nn.pad(x, [(0, 0), (1, 2), (0, 0), (0, 0)]), ["PAD"]),
    "max_pool2d": (lambda x: relay.nn.max_pool2d(x, **POOL), ["PADV2", "MAX_POOL_2D"]),
    "avg_pool2d": (
        lambda x: relay.nn.avg_pool2d(x, (2, 2), (2, 2), layout="NHWC"), ["AVERAGE_POOL_2D"]
    ),
    "slice": (lambda x: relay.strided_slice(x, [0, 1, 0, 0], [1, 7, 8, 4]), ["STRIDED_SLICE"]),
    "resize2d": (lambda x: relay.image.resize2d(x, (16, 16), **NEAREST),
                 ["RESIZE_NEAREST_NEIGHBOR"]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", SAME)
def test_what_keeps_the_scale(name: str, dtype: str) -> None:
    """What a graph is given as uint8, or gives, is of int8 between."""
    build, wanted = SAME[name]
    x = relay.var("x", shape=IMAGE, dtype=dtype)
    found = check(quantize(build(dequantize(x, X)), X, dtype), [x], steps=name == "avg_pool2d")
    ends = ["QUANTIZE int8", "QUANTIZE uint8"] if dtype == "uint8" else []
    if ends and name == "transpose":  # It goes behind all that an input goes through.
        assert found == [*ends, "TRANSPOSE uint8"]
    else:
        assert found == [*ends[:1], *(f"{each} int8" for each in wanted), *ends[1:]]


def legacy(shape: tuple[int, ...]) -> Expr:
    """Return weights of uint8 with a zero point."""
    codes = const(RNG.integers(0, 256, shape), "uint8")
    return call("serde.dequantize_linear", codes, const(0.01), const(113, "uint8"), axis=0)


def mixed(x: Expr) -> Expr:
    """Return a convolution of one point by such weights, on codes again."""
    kind = {**CONV, "channels": 4, "kernel_size": (1, 1)}
    found = relay.nn.conv2d(x, legacy((4, 1, 1, 4)), **kind)
    return dequantize(quantize(found, LEGACY, "uint8"), LEGACY)


LEGACY = (0.03, 100)
LEGACY_ONE = {
    name: ONE[name]
    for name in ("mean", "relu", "relu6", "leaky", "sigmoid", "tanh", "twice", "gelu", "hard_swish")
} | {
    "conv": (IMAGE, lambda x: relay.nn.conv2d(x, legacy((6, 3, 3, 4)), **CONV), ["CONV_2D"]),
    "dense": (
        IMAGE,
        lambda x: relay.nn.dense(relay.reshape(x, (64, 4)), legacy((7, 4))),
        ["FULLY_CONNECTED"],
    ),
    "softmax": (IMAGE, relay.nn.softmax, ["SOFTMAX", "QUANTIZE"]),
}
"""Operators in a net whose weights are uint8 with zero points."""


@pytest.mark.parametrize("name", LEGACY_ONE)
def test_weights_of_uint8_keep_their_zero_points(name: str) -> None:
    _, build, wanted = LEGACY_ONE[name]
    x = relay.var("x", shape=IMAGE, dtype="uint8")
    real = build(mixed(dequantize(x, (0.05, 131))))
    found = check(quantize(real, (0.08, 100), "uint8"), [x], steps=2)
    assert found == ["CONV_2D uint8", *(f"{each} uint8" for each in wanted)]


@pytest.mark.parametrize("name", SAME)
def test_what_keeps_the_scale_of_uint8(name: str) -> None:
    build, wanted = SAME[name]
    x = relay.var("x", shape=IMAGE, dtype="uint8")
    found = check(quantize(build(mixed(dequantize(x, X))), LEGACY, "uint8"), [x], steps=2)
    assert found == ["CONV_2D uint8", *(f"{each} uint8" for each in wanted)]


@pytest.mark.parametrize("name", SAME)
def test_codes_of_16_bits_keep_the_scale(name: str) -> None:
    build, wanted = SAME[name]
    x = relay.var("x", shape=IMAGE, dtype="int16")
    body = quantize(build(dequantize(x, SHORT_X)), SHORT_X, "int16")
    assert check(body, [x]) == [f"{each} int16" for each in wanted]


def test_numbers_of_uint8_are_codes_of_int8() -> None:
    x = relay.var("x", shape=(3, 5))
    inner = dequantize(quantize(x, (0.05, 131), "uint8"), (0.05, 131))
    real = relay.nn.dense(inner, weight((7, 5), 0))
    body = dequantize(quantize(real, (0.08, 120), "uint8"), (0.08, 120))
    data = exported(body, [x])
    assert operators(data) == ["QUANTIZE int8", "FULLY_CONNECTED int8", "DEQUANTIZE float32"]
    feed = RNG.normal(size=(3, 5)).astype("f4")
    (found,) = run_litert(data, [feed])
    assert np.abs(found - run(relay.Function([x], body), [feed])).max() <= 0.0801


@pytest.mark.parametrize("why", ["filter with a zero point", "average of another scale", "sin"])
def test_what_no_kernel_holds_is_computed_on_numbers(why: str) -> None:
    x = relay.var("x", shape=IMAGE, dtype="int8")
    real = dequantize(x, X)
    if why == "sin":
        real = relay.sin(real)
    elif why == "average of another scale":
        real = relay.nn.avg_pool2d(real, (2, 2), (2, 2), layout="NHWC")
    else:
        kernel = const(RNG.integers(-99, 99, (6, 3, 3, 4)), "int8")
        w = call("serde.dequantize_linear", kernel, const(0.01), const(4, "int8"), axis=0)
        real = relay.nn.conv2d(real, w, **CONV)
    found = check(quantize(real, Y), [x])
    assert found[0] == "DEQUANTIZE float32"
    assert found[-1] == "QUANTIZE int8"


def test_weights_alone_stay_stored_as_codes() -> None:
    x = relay.var("x", shape=(3, 5))
    body = relay.nn.dense(x, weight((7, 5), 0))
    data = exported(body, [x])
    assert operators(data) == ["DEQUANTIZE float32", "FULLY_CONNECTED float32"]
    graph = load(data).subgraphs[0]
    stored = graph.tensors[graph.operators[0].inputs[0]]
    assert stored.quantization is not None
    assert (stored.dtype, len(stored.quantization.scales)) == ("int8", 7)
    feed = RNG.normal(size=(3, 5)).astype("f4")
    np.testing.assert_allclose(
        run_litert(data, [feed])[0], run(relay.Function([x], body), [feed]), rtol=1e-5, atol=1e-5
    )


def test_zero_points_that_depend_on_the_run_are_computed() -> None:
    x, zero = relay.var("x", shape=(3, 5)), relay.var("zero", shape=(), dtype="int32")
    body = relay.qnn.op.quantize(x, const(0.05), zero, out_dtype="int8")
    assert "QUANTIZE int8" not in operators(exported(body, [x, zero]))


def test_uint16_is_refused() -> None:
    x = relay.var("x", shape=(3, 5))
    with pytest.raises(UnsupportedModelError, match="uint16"):
        exported(quantize(x, (0.05, 7), "uint16"), [x])


@pytest.mark.parametrize("limits", [None, "relu", "relu6"])
def test_integer_sums_become_a_convolution(limits: str | None) -> None:
    """Relay rounds as the kernel does, but takes the product of the scales as float32."""
    x = relay.var("x", shape=IMAGE, dtype="int8")
    scales = RNG.uniform(0.005, 0.02, 6).astype("f4")
    kernel = const(RNG.integers(-127, 128, (6, 3, 3, 4)), "int8")
    zero = const(0, "int32")
    sums = relay.qnn.op.conv2d(
        x, kernel, const(X[1], "int32"), zero, const(X[0]), const(scales), **CONV
    )
    sums = relay.nn.bias_add(sums, const(RNG.integers(-900, 900, 6), "int32"), axis=3)
    body = relay.qnn.op.requantize(
        sums, const(np.float32(X[0]) * scales), zero, const(Y[0]), const(Y[1], "int32"),
        axis=3, out_dtype="int8",
    )  # fmt: skip
    if limits is not None:
        body = relay.clip(body, Y[1], 127 if limits == "relu" else Y[1] + round(6 / Y[0]))
    limited = [] if limits is None else ["RESHAPE int8", "MAXIMUM int8", "MINIMUM int8"]
    assert check(body, [x]) == ["CONV_2D int8", *limited]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_whole_operators_of_onnx(dtype: str) -> None:
    """QLinearConv and QLinearMatMul; graphs that are given uint8 work on int8 inside."""
    zero = 3 if dtype == "int8" else 131
    x = relay.var("x", shape=(1, 4, 8, 8), dtype=dtype)
    scales, zeros = const(RNG.uniform(0.005, 0.02, 6)), const(np.zeros(6, np.int8), "int8")
    found = call(
        "serde.qlinear_conv2d", x, const(RNG.integers(-99, 99, (6, 4, 3, 3)), "int8"),
        const(RNG.integers(-900, 900, 6), "int32"), const(0.05), const(zero, dtype), scales, zeros,
        const(0.2), const(zero, dtype), out_dtype=dtype,
    )  # fmt: skip
    kernels = [each for each in check(found, [x]) if "TRANSPOSE" not in each]
    assert [each for each in kernels if "QUANTIZE" not in each] == ["CONV_2D int8"]
    rows = relay.var("x", shape=(3, 6), dtype=dtype)
    product = call(
        "serde.qlinear_matmul", rows, const(RNG.integers(-99, 99, (6, 6)), "int8"), const(0.05),
        const(zero, dtype), scales, zeros, const(0.1), const(zero, dtype), out_dtype=dtype,
    )  # fmt: skip
    assert "FULLY_CONNECTED int8" in check(product, [rows])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MEAN",
                                "MUL", "QUANTIZE again", "RELU6", "SOFTMAX"])  # fmt: skip
def test_what_is_read_is_written_again(op: str, dtype: str, tmp_path: Path) -> None:
    """The kernels are the same ones, and so are their results."""
    names = [each for each in CASES if each.startswith(f"{op} ") and f" {dtype}" in each]
    source = CASES[next(each for each in names if "codes" in each or "again" in each)]
    path = tmp_path / "net.tflite"
    path.write_bytes(source)
    model = serde.to_relay(path, read_quantized="qdq")
    data = serde.export_model(model, format="tflite")
    graph = load(source).subgraphs[0]
    feeds = [codes(graph.tensors[i].shape, dtype) for i in graph.inputs]
    assert op.split()[0] in [each.name for each in load(data).subgraphs[0].operators]
    has_filter = dtype == "uint8" and op in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
    assert has_filter or all(each.endswith("int8") for each in operators(data))
    try:
        (expected,) = run_litert(source, feeds)
    except RuntimeError:
        return
    distance = run_litert(data, feeds)[0].astype(int) - expected.astype(int)
    assert np.abs(distance).max() <= (dtype == "uint8")


@pytest.mark.parametrize("scale", [0.3, 0.9])
def test_codes_that_are_halved_are_rounded_twice(scale: float, tmp_path: Path) -> None:
    """LiteRT's reference kernel rounds behind its mantissa, and again behind its shift."""
    given = T((256,), "int8", scale=0.1, zero=-5)
    data = make_model(
        "QUANTIZE", [given], [T((256,), "int8", scale=scale, zero=7)], "QuantizeOptions"
    )
    (tmp_path / "net.tflite").write_bytes(data)
    model = serde.to_relay(tmp_path / "net.tflite")
    feed = np.arange(-128, 128).astype(np.int8)
    (found,) = RelayEngine(model).run({model.inputs()[0].name_hint: feed})
    np.testing.assert_array_equal(found, run_litert(data, [feed])[0])


def test_exact_results_are_those_of_numbers() -> None:
    x = relay.var("x", shape=(3, 5), dtype="int8")
    body = quantize(relay.nn.dense(dequantize(x, X), weight((7, 5), 0)), Y)
    module = IRModule({"main": relay.Function([x], body)})
    model = RelayModel(module, {}, ModelMeta(("x",), ("y",)))
    data = serde.export_model(model, format="tflite", write_quantized="exact")
    assert "FULLY_CONNECTED float32" in operators(data)
    feed = codes((3, 5))
    np.testing.assert_array_equal(run_litert(data, [feed])[0], run(module["main"], [feed]))


def _net(batch: Any) -> Any:
    """Return a small net as ONNX."""
    onnx = pytest.importorskip("onnx")
    helper, draw = onnx.helper, np.random.default_rng(3).normal
    weights = {
        "w": draw(size=(8, 3, 3, 3)), "b": draw(size=8), "d": draw(size=(8, 1, 3, 3)),
        "p": draw(size=(8, 8, 1, 1)), "f": draw(size=(8, 10)), "g": draw(size=10),
    }  # fmt: skip
    values = [onnx.numpy_helper.from_array(0.3 * v.astype("f4"), k) for k, v in weights.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "d"], ["c2"], pads=[1, 1, 1, 1], group=8, strides=[2, 2]),
        helper.make_node("Conv", ["c2", "p"], ["c3"]),
        helper.make_node("Add", ["c2", "c3"], ["a"]),
        helper.make_node("MaxPool", ["a"], ["m"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["m"], ["q"]),
        helper.make_node("Flatten", ["q"], ["s"]),
        helper.make_node("Gemm", ["s", "f", "g"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=1),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [tensor("x", 1, [batch, 3, 8, 8])], [tensor("y", 1, [batch, 10])], values
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.exact_sums
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("form", "dtype"), [("QDQ", "QInt8"), ("QDQ", "QUInt8")])
@pytest.mark.parametrize("batch", [1, "N"])
def test_net_of_onnx_runtime(
    form: str, dtype: str, per_channel: bool, batch: Any, tmp_path: Path
) -> None:
    """Every operator is one on codes; of ten there are a few steps of a probability between."""
    runtime = pytest.importorskip("onnxruntime")
    tools = pytest.importorskip("onnxruntime.quantization")
    feeds = iter([{"x": RNG.normal(size=(1, 3, 8, 8)).astype("f4")} for _ in range(4)])

    class Reader(tools.CalibrationDataReader):
        def get_next(self) -> Any:
            return next(feeds, None)

    source, path = tmp_path / "net.onnx", tmp_path / "quantized.onnx"
    source.write_bytes(_net(batch).SerializeToString())
    tools.quantize_static(
        source, path, Reader(), quant_format=tools.QuantFormat[form], per_channel=per_channel,
        activation_type=tools.QuantType[dtype], weight_type=tools.QuantType.QInt8,
        extra_options={"WeightSymmetric": True},
    )  # fmt: skip
    target = tmp_path / "net.tflite"
    serde.convert(path, target)
    made = operators(target.read_bytes())
    assert made[-1] == "DEQUANTIZE float32"
    assert all(each.endswith(" int8") for each in made[:-1])
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = RNG.normal(size=(1 if batch == 1 else 3, 3, 8, 8)).astype("f4")
    (found,) = run_litert(target.read_bytes(), [x])
    assert np.abs(found - session.run(None, {"x": x})[0]).max() <= 3 / 256
    report = serde.check(path, target, dims={} if batch == 1 else {"N": 2})
    assert report.passed
    assert any("each a step off or none" in note for note in report.notes)


def test_a_net_on_codes_with_other_weights_differs(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    points = [array(np.float32(0.02), "s"), array(np.int8(0), "z"), array(np.float32(0.05), "t")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "t", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["d", "t", "z"], ["y"]),
    ]
    shaped = helper.make_tensor_value_info
    for name, values in ("net", codes((5, 7))), ("other", codes((5, 7))):
        weights = [array(values, "w"), *points]
        graph = helper.make_graph(
            nodes, "net", [shaped("x", 1, [3, 5])], [shaped("y", 1, [3, 7])], weights
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(made, tmp_path / f"{name}.onnx")
    serde.convert(tmp_path / "net.onnx", tmp_path / "net.tflite", check=True)
    assert not serde.check(tmp_path / "other.onnx", tmp_path / "net.tflite").passed


def test_codes_of_an_axis_of_open_length_have_no_scale_each() -> None:
    """LiteRT counts them against the length that stands in the file."""
    x = relay.var("x", shape=(2, symbol("n")), dtype="int8")
    scale, zero = const([0.1, 0.2, 0.3]), const([1, 2, 3], "int8")
    body = call("serde.dequantize_linear", x, scale, zero, axis=1)
    feeds = [codes((2, 3))]
    (found,) = run_litert(exported(body, [x]), feeds)
    np.testing.assert_allclose(found, run(relay.Function([x], body), feeds), rtol=1e-6)
