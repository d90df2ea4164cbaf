"""Operators of ONNX Runtime's own domain through Relay and back, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_microsoft import RNG, check, floats, levels, model_of, needs_newer_runtime
from support.onnx_suite import interpret
from support.runtime import open_session

import serde
from serde.errors import UnsupportedModelError


@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize("whole", [False, True])
def test_skip_layer_norm(skip: tuple[int, ...], whole: bool) -> None:
    inputs = [floats(2, 3, 8), floats(*skip), floats(8)]
    check("SkipLayerNormalization", [*inputs, *([floats(8), floats(8)] if whole else [])])


def test_skip_layer_norm_gives_its_sum() -> None:
    model, given = model_of(
        "SkipLayerNormalization",
        [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)],
        4,
        "com.microsoft",
        set(),
        {"epsilon": 0.25},
    )
    model.graph.node[0].output[1] = model.graph.node[0].output[2] = ""
    del model.graph.output[1:3]
    expected = open_session(model.SerializeToString()).run(None, given)
    for wanted, found in zip(expected, interpret(serde.to_relay(model), given), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_norm(bias: bool) -> None:
    inputs = [floats(2, 3, 8), floats(2, 3, 8), floats(8)]
    check("SkipSimplifiedLayerNormalization", [*inputs, floats(8)] if bias else inputs)


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_norm(axis: int) -> None:
    shape = (2, 3, 8)[axis:]
    inputs = [floats(2, 3, 8), floats(*shape)]
    check("SimplifiedLayerNormalization", inputs, domain="", axis=axis, epsilon=0.5, stash_type=1)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_embed_layer_norm(segments: bool, masked: bool) -> None:
    ids = RNG.integers(0, 9, (2, 5)).astype(np.int32)
    kinds = RNG.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    check(
        "EmbedLayerNormalization",
        [
            ids,
            kinds if segments else None,
            floats(9, 8),
            floats(6, 8),
            floats(2, 8) if segments else None,
            floats(8),
            floats(8),
            *([mask] if masked else []),
        ],
        outputs=2,
    )


@pytest.mark.parametrize(
    ("op", "shapes", "attrs"),
    [
        ("Gelu", [(2, 3, 8)], {}),
        ("BiasGelu", [(2, 3, 8), (8,)], {}),
        ("FastGelu", [(2, 3, 8)], {}),
        ("FastGelu", [(2, 3, 8), (8,)], {}),
        ("QuickGelu", [(2, 3, 8)], {"alpha": 1.25}),
        ("FusedMatMul", [(2, 3, 4), (2, 4, 5)], {"alpha": 0.5}),
        ("FusedMatMul", [(2, 4, 3), (2, 5, 4)], {"transA": 1, "transB": 1}),
        ("FusedMatMul", [(4, 2, 3), (2, 3, 5)], {"transBatchA": 1}),
        ("FusedMatMul", [(4, 2, 3, 5), (2, 3, 5, 6)], {"transBatchA": 1}),
        ("FusedMatMul", [(4, 2, 3, 5), (2, 3, 4, 6)], {"transBatchA": 1, "transA": 1}),
        ("FusedMatMul", [(2, 3, 4, 5), (6, 2, 3, 5)], {"transBatchB": 1, "transB": 1}),
        ("TransposeMatMul", [(4, 3), (4, 5)], {"transA": 1, "alpha": 2.0}),
        ("FusedGemm", [(3, 4), (4, 5), (5,)], {"activation": "Relu", "beta": 0.5}),
        (
            "FusedGemm",
            [(4, 3), (5, 4), (3, 1)],
            {"activation": "LeakyRelu", "activation_alpha": 0.25, "transA": 1, "transB": 1},
        ),
        ("FusedConv", [(1, 4, 6, 5), (6, 2, 3, 3), (6,)], {"activation": "Relu", "group": 2}),
        (
            "FusedConv",
            [(1, 3, 5, 5), (2, 3, 3, 3), (2,), (1, 2, 5, 5)],
            {"activation": "Relu", "pads": [1, 1, 1, 1]},
        ),
        (
            "FusedConv",
            [(1, 3, 5, 5), (2, 3, 3, 3)],
            {"activation": "Clip", "activation_params": [-0.25, 1.5], "strides": [2, 1]},
        ),
        (
            "FusedConv",
            [(1, 3, 5, 5), (2, 3, 3, 3)],
            {"activation": "HardSigmoid", "activation_params": [0.25, 0.5]},
        ),
    ],
)
def test_floats(op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> None:
    check(op, [floats(*shape) for shape in shapes], **attrs)


def test_bias_softmax_as_documented() -> None:
    """ONNX Runtime has no kernel of it for processors."""
    x, bias = floats(2, 3, 4, 5), floats(1, 3, 4, 5)
    attrs = {"axis": 2, "is_inner_broadcast": 0}
    model, given = model_of("BiasSoftmax", [x, bias], 1, "com.microsoft", set(), attrs)
    total = (x + bias).reshape(6, 20)
    powers = np.exp(total - total.max(1, keepdims=True))
    expected = (powers / powers.sum(1, keepdims=True)).reshape(x.shape)
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


def test_bias_add_as_documented() -> None:
    """ONNX Runtime has no kernel of it for processors."""
    x, bias, skip = floats(2, 6, 4), floats(4), floats(2, 6, 4)
    model, given = model_of("BiasAdd", [x, bias, skip], 1, "com.microsoft", set(), {})
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, x + bias + skip, 1e-6)


def test_nhwc_conv_as_documented() -> None:
    """ONNX Runtime has no kernel of it for processors; its Conv gives the numbers."""
    x, w, b = floats(1, 6, 5, 4), floats(6, 2, 3, 3), floats(6)
    attrs = {"group": 2, "pads": [1, 0, 1, 2]}
    model, given = model_of("NhwcConv", [x, w, b], 1, "com.microsoft", set(), attrs)
    turned = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    plain, fed = model_of("Conv", [turned, w, b], 1, "", set(), attrs)
    (expected,) = open_session(plain.SerializeToString()).run(None, fed)
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, expected.transpose(0, 2, 3, 1), 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nhwc_max_pool(dtype: str) -> None:
    attrs = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    check("NhwcMaxPool", [levels(dtype, 2, 7, 6, 3)], **attrs)


@pytest.mark.parametrize("indices", [(3, 2), (2, 1)])
def test_gather_nd(indices: tuple[int, ...]) -> None:
    places = RNG.integers(0, 3, indices).astype(np.int64)
    check("GatherND", [floats(3, 4, 5), places])


@needs_newer_runtime
def test_expand_dims() -> None:
    check("ExpandDims", [floats(3, 4), np.array(1, np.int32)], fixed={1})


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize(("depth", "block"), [(64, 32), (40, 16)])
@pytest.mark.parametrize("bits", [4, 8])
def test_matmul_nbits(bits: int, depth: int, block: int, points: bool) -> None:
    blocks = -(-depth // block)
    packed = levels("uint8", 6, blocks, block * bits // 8)
    scales = np.abs(floats(6 * blocks)) * 0.1
    row = -(-blocks * bits // 8)
    inputs = [floats(3, depth), packed, scales, *([levels("uint8", 6 * row)] if points else [])]
    check(
        "MatMulNBits",
        inputs,
        fixed={1, 2, 3},
        rtol=1e-4,
        atol=1e-3,
        K=depth,
        N=6,
        bits=bits,
        block_size=block,
    )


HALF, QUARTER = np.float32(0.5), np.float32(0.25)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("right", [(2, 3, 8), (8,)])
def test_quantized_binary(op: str, dtype: str, right: tuple[int, ...]) -> None:
    """Scales are powers of two, with which every order of the steps rounds alike."""
    kind = np.dtype(dtype).type
    left = [levels(dtype, 2, 3, 8), HALF, kind(4)]
    check(op, [*left, levels(dtype, *right), QUARTER, kind(9), np.float32(8), kind(100)],
          fixed={1, 2, 4, 5, 6, 7})  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.25}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}),
    ],
)
def test_quantized_unary(op: str, dtype: str, attrs: dict[str, Any]) -> None:
    kind = np.dtype(dtype).type
    scale = np.float32(1 / 256) if op != "QLinearLeakyRelu" else HALF
    zero = kind(np.iinfo(dtype).min) if op != "QLinearLeakyRelu" else kind(5)
    inputs = [levels(dtype, 2, 3, 8), np.float32(0.03125), kind(4), scale, zero]
    check(op, inputs, fixed={1, 2, 3, 4}, **attrs)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("last", [0, 1])
def test_quantized_average_pools(dtype: str, last: int) -> None:
    kind = np.dtype(dtype).type
    inputs = [levels(dtype, 1, 4, 6, 5), HALF, kind(4), QUARTER, kind(-9 if dtype == "int8" else 9)]
    fixed = {1, 2, 3, 4}
    check("QLinearGlobalAveragePool", inputs, fixed=fixed, channels_last=last)
    window = {"kernel_shape": [2, 2], "strides": [2, 1], "channels_last": last}
    check("QLinearAveragePool", inputs, fixed=fixed, **window)
    check(
        "QLinearAveragePool", inputs, fixed=fixed, pads=[1, 0, 0, 1], count_include_pad=1, **window
    )


def test_quantized_concat() -> None:
    parts = [levels("uint8", 2, 3), HALF, np.uint8(4), levels("uint8", 2, 5), QUARTER, np.uint8(9)]
    inputs = [HALF, np.uint8(3), *parts]
    check("QLinearConcat", inputs, fixed={0, 1, 3, 4, 6, 7}, axis=1)


def test_quantized_where() -> None:
    condition = RNG.integers(0, 2, (2, 3)).astype(bool)
    parts = [levels("uint8", 2, 3), HALF, np.uint8(4), levels("uint8", 2, 3), QUARTER, np.uint8(9)]
    check("QLinearWhere", [condition, *parts, np.float32(1), np.uint8(7)],
          fixed={2, 3, 5, 6, 7, 8})  # fmt: skip


@pytest.mark.exact_sums
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("turn", [0, 1])
def test_qgemm(turn: int, quantized: bool) -> None:
    shape = (5, 4) if turn else (4, 5)
    inputs = [
        levels("uint8", 3, 4), np.float32(0.02), np.uint8(120),
        levels("int8", *shape), np.float32(0.03), np.int8(0),
        RNG.integers(-900, 900, 5).astype(np.int32),
        *([np.float32(0.2), np.uint8(128)] if quantized else []),
    ]  # fmt: skip
    check("QGemm", inputs, fixed={1, 2, 4, 5, 6, 7, 8}, transB=turn)


@pytest.mark.parametrize("op", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_real_products(op: str, columns: bool, bias: bool) -> None:
    scale = np.linspace(0.01, 0.05, 5, dtype=np.float32) if columns else np.array([0.02], "float32")
    point = np.arange(5, dtype=np.uint8) if columns else np.array([7], np.uint8)
    added = [floats(5)] if bias else []
    if op == "DynamicQuantizeMatMul":
        check(op, [floats(2, 3, 4), levels("uint8", 4, 5), scale, point, *added])
        return
    left = [levels("uint8", 2, 3, 4), levels("uint8", 4, 5), np.float32(0.1), scale]
    check(op, [*left, np.uint8(3), point, *added], rtol=1e-4)


def test_products_of_16_bits() -> None:
    # The sums go beyond 32 bits, and wrap around as ONNX Runtime's do.
    check("MatMulInteger16", [levels("int16", 2, 3, 40), levels("int16", 40, 5)])


@pytest.mark.parametrize("axis", [0, 1])
def test_linear_quantization(axis: int) -> None:
    count = (3, 4)[axis]
    scale = (2.0 ** -np.arange(count)).astype(np.float32)
    point = np.arange(count).astype(np.uint16)
    check("QuantizeLinear", [floats(3, 4) * 50, scale, point], axis=axis)
    check("DequantizeLinear", [levels("uint16", 3, 4), scale, point], axis=axis)


MASKS: dict[str, Any] = {
    "none": None,
    "ends": np.array([3, 4], np.int32),
    "both ends": np.array([3, 4, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1], [0, 1, 1, 1]], np.int32),
    "rows": np.tril(np.ones((2, 4, 4), np.int32)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask: str, causal: int) -> None:
    inputs = [floats(2, 4, 8), floats(8, 24) * 0.5, floats(24), MASKS[mask]]
    check("Attention", inputs, num_heads=2, unidirectional=causal)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_a_past(causal: int) -> None:
    inputs = [floats(2, 3, 8), floats(8, 24) * 0.5, floats(24), None, floats(2, 2, 2, 5, 4)]
    check("Attention", inputs, outputs=2, num_heads=2, unidirectional=causal)


def test_attention_with_sizes_and_bias() -> None:
    inputs = [floats(2, 4, 8), floats(8, 28), floats(28), None, None, floats(1, 2, 4, 4)]
    check("Attention", inputs, num_heads=2, qkv_hidden_sizes=[8, 8, 12], scale=0.3)


@pytest.mark.parametrize("mask", ["none", "ends", "keys"])
def test_multi_head_attention(mask: str) -> None:
    inputs = [floats(2, 3, 8), floats(2, 4, 8), floats(2, 4, 12), floats(28), MASKS[mask]]
    check("MultiHeadAttention", inputs, num_heads=2)


def test_multi_head_attention_with_a_past() -> None:
    past = [floats(2, 2, 5, 4), floats(2, 2, 5, 4)]
    inputs = [floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 8), None, None, None, *past]
    check("MultiHeadAttention", inputs, outputs=3, num_heads=2, unidirectional=1, scale=0.4)


@pytest.mark.parametrize("given", [0, 1])
def test_a_past_of_keys_needs_one_of_values(given: int) -> None:
    past: list[Any] = [None, None]
    past[given] = floats(2, 2, 5, 4)
    inputs = [floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 8), None, None, None, *past]
    attrs = {"num_heads": 2}
    model, _ = model_of("MultiHeadAttention", inputs, 1, "com.microsoft", set(), attrs)
    with pytest.raises(UnsupportedModelError, match="keys of the past without values"):
        serde.to_relay(model)


def test_multi_head_attention_of_keys_with_heads() -> None:
    inputs = [floats(2, 3, 8), floats(2, 2, 5, 4), floats(2, 2, 5, 4)]
    check("MultiHeadAttention", inputs, num_heads=2)


@pytest.mark.parametrize("parts", [3, 2])
def test_multi_head_attention_of_packed_tensors(parts: int) -> None:
    """ONNX Runtime has no kernel of it for processors, but one of what is packed."""
    packed = floats(2, 3, 2, parts, 4)
    loose = [packed[:, :, :, index].reshape(2, 3, 8) for index in range(parts)]
    query = [] if parts == 3 else [floats(2, 5, 8)]
    attrs = {"num_heads": 2}
    plain, fed = model_of("MultiHeadAttention", [*query, *loose], 1, "com.microsoft", set(), attrs)
    (expected,) = open_session(plain.SerializeToString()).run(None, fed)
    model, given = model_of(
        "MultiHeadAttention", [*query, packed], 1, "com.microsoft", set(), attrs
    )
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


@pytest.mark.exact_sums
@pytest.mark.parametrize("mask", ["none", "ends"])
def test_qattention(mask: str) -> None:
    scale = np.full(24, 0.02, np.float32)
    inputs = [
        levels("uint8", 2, 4, 8), levels("int8", 8, 24), floats(24), np.float32(0.02), scale,
        MASKS[mask], np.uint8(128), np.zeros(24, np.int8),
    ]  # fmt: skip
    check("QAttention", inputs, fixed={1, 2, 3, 4, 6, 7}, rtol=1e-4, num_heads=2)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("form", ["flat", "heads", "partial"])
def test_rotary_embedding(form: str, interleaved: int) -> None:
    x = floats(2, 3, 16) if form == "flat" else floats(2, 2, 3, 8)
    width = 4 if form == "partial" else 8
    angles = floats(10, width // 2)
    ids = RNG.integers(0, 10, (2, 3)).astype(np.int64)
    extra = {"rotary_embedding_dim": 4, "num_heads": 2} if form == "partial" else {}
    places = np.array([4], np.int64) if form == "heads" else ids
    inputs = [x, places, np.cos(angles), np.sin(angles)]
    check("RotaryEmbedding", inputs, interleaved=interleaved, **extra)


def test_what_is_left_out_is_refused_by_name() -> None:
    inputs = [floats(2, 4, 4)]
    model, _ = model_of("Inverse", inputs, 1, "com.microsoft", set(), {})
    with pytest.raises(UnsupportedModelError, match=r"com\.microsoft\.Inverse|Inverse"):
        serde.to_relay(model)


@needs_newer_runtime
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attrs", [{}, {"local_window_size": 2}, {"softcap": 2.0, "scale": 0.4}])
def test_group_query_attention_of_a_prompt(packed: bool, attrs: dict[str, Any]) -> None:
    parts = [floats(2, 5, 32), floats(2, 5, 16), floats(2, 5, 16)]
    inputs = [np.concatenate(parts, -1), None, None] if packed else parts
    lengths = [np.array([4, 4], np.int32), np.array(5, np.int32)]
    inputs = [*inputs, None, None, *lengths]
    check("GroupQueryAttention", inputs, outputs=3, fixed={6}, num_heads=4, kv_num_heads=2, **attrs)


@pytest.mark.parametrize("fixed", [{6}, set()])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(("step", "ends"), [(1, [5, 3]), (1, [5, 5]), (2, [6]), (2, [4])])
def test_group_query_attention_of_a_step(
    step: int, ends: list[int], rotary: bool, fixed: set[int]
) -> None:
    batch = len(ends)
    new = [floats(batch, step, width) for width in (64, 32, 32)]
    past = [floats(batch, 2, 5, 16), floats(batch, 2, 5, 16)]
    angles = floats(16, 8)
    inputs = [
        *new, *past, np.array(ends, np.int32), np.array(max(ends) + 1, np.int32),
        *([np.cos(angles), np.sin(angles)] if rotary else []),
    ]  # fmt: skip
    attrs = {"do_rotary": int(rotary), "num_heads": 4, "kv_num_heads": 2}
    check("GroupQueryAttention", inputs, outputs=3, fixed=fixed, **attrs)


@pytest.mark.exact_sums
@pytest.mark.parametrize("last", [0, 1])
def test_qlinear_conv(last: int) -> None:
    x = levels("uint8", *((1, 6, 5, 4) if last else (1, 4, 6, 5)))
    scales = np.array([0.01, 0.02, 0.004, 0.03, 0.01, 0.05], np.float32)
    inputs = [
        x, np.float32(0.02), np.uint8(131),
        levels("int8", 6, 2, 3, 3), scales, np.zeros(6, np.int8),
        np.float32(0.11), np.uint8(120), RNG.integers(-900, 900, 6).astype(np.int32),
    ]  # fmt: skip
    attrs = {"group": 2, "pads": [1, 0, 1, 2], "channels_last": last}
    check("QLinearConv", inputs, fixed=set(range(1, 9)), **attrs)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -1, 2])
def test_trilu(k: int | None, upper: int) -> None:
    inputs = [floats(2, 4, 5), *([] if k is None else [np.array(k, np.int64)])]
    check("Trilu", inputs, upper=upper)


def test_unique() -> None:
    check("Unique", [np.array([3, 1, 3, 2, 1, 7], np.float32)], outputs=3)
