"""Mixtures of experts, quantised tables and gated layers, against ONNX Runtime or its formulas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as pybind
from support.onnx_microsoft import RNG, check, floats, levels, model_of, needs_newer_runtime
from support.onnx_suite import interpret
from support.runtime import newest_runtime_opset, open_session

import serde
from serde.errors import UnsupportedModelError

EXPERTS, TOKENS = 4, 5


def judge_by(expected: np.ndarray, op: str, inputs: list[Any], **attrs: Any) -> None:
    """Compare with a formula what ONNX Runtime has no kernel of for processors."""
    model, given = model_of(op, inputs, 1, "com.microsoft", set(), attrs)
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def attributes_of(op: str) -> set[str]:
    schemas = pybind.get_all_operator_schema()
    return {name for x in schemas if x.name == op for name in x.attributes}


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@needs_newer_runtime
@pytest.mark.parametrize(
    ("activation", "extra"),
    [
        ("relu", {}),
        ("gelu", {"normalize_routing_weights": 1}),
        ("silu", {"k": 2}),
        ("identity", {"k": 2, "normalize_routing_weights": 1}),
        ("swiglu", {"k": 2, "normalize_routing_weights": 1}),
        ("swiglu", {"k": 4, "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.5}),
    ],
)
def test_mixture_of_experts(activation: str, extra: dict[str, Any]) -> None:
    fused = activation == "swiglu"
    inner = 12 if fused else 6
    layers = [floats(EXPERTS, inner, 8), floats(EXPERTS, inner), floats(EXPERTS, 8, 6)]
    inputs = [floats(1, TOKENS, 8), floats(TOKENS, EXPERTS), *layers, floats(EXPERTS, 8)]
    attrs = {"activation_type": activation, "swiglu_fusion": int(fused), **extra}
    check("MoE", inputs, fixed={2, 3, 4, 5}, **attrs)


GATED = {
    "silu": lambda gate, up: gate * logistic(gate) * up,
    "relu2": lambda gate, up: np.maximum(gate, 0) ** 2 * up,
    "swiglu": lambda gate, up: (
        np.minimum(gate, 0.5) * logistic(np.minimum(gate, 0.5)) * np.clip(up, -0.5, 0.5)
    ),
    "geglu": lambda gate, up: tanh_gelu(gate) * up,
}


@pytest.mark.parametrize(
    ("activation", "fusion"),
    [("silu", 0), ("relu2", 0), ("swiglu", 0), ("swiglu", 2), ("geglu", 1), ("geglu", 2)],
)
def test_mixture_of_gated_experts_as_documented(activation: str, fusion: int) -> None:
    """ONNX Runtime has three layers, and other fusions, on graphics processors alone."""
    x, router = floats(TOKENS, 8), floats(TOKENS, EXPERTS)
    gate, up, last = floats(EXPERTS, 6, 8), floats(EXPERTS, 6, 8), floats(EXPERTS, 8, 6)
    hidden = GATED[activation](x @ gate.swapaxes(1, 2), x @ up.swapaxes(1, 2))
    every = hidden @ last.swapaxes(1, 2)
    shares = np.exp(router) / np.exp(router).sum(1, keepdims=True)
    best = router.argmax(1)
    rows = np.arange(TOKENS)
    expected = shares[rows, best, None] * every[best, rows]
    inputs = [x, router, gate, None, last, None, up]
    if fusion:
        axis = 2 if fusion == 1 else 1
        whole = np.stack([gate, up], axis).reshape(EXPERTS, 12, 8)
        inputs = [x, router, whole, None, last]
    attrs: dict[str, Any] = {"activation_type": activation, "swiglu_fusion": fusion}
    attrs |= {"swiglu_limit": 0.5} if activation == "swiglu" else {}
    judge_by(expected, "MoE", inputs, **attrs)


@needs_newer_runtime
@pytest.mark.parametrize(
    ("bits", "block", "points", "weighted"),
    [(4, 0, True, False), (4, 32, True, True), (4, 32, False, False), (2, 32, True, False),
     (8, 0, True, True), (8, 0, False, False)],
)  # fmt: skip
def test_quantized_mixture_of_experts(bits: int, block: int, points: bool, weighted: bool) -> None:
    """In blocks of 8 bits ONNX Runtime rounds the data, too."""
    width, inner = 64, 32
    sizes = [(2 * inner, width), (width, inner)]
    inputs = [floats(TOKENS, width), floats(TOKENS, EXPERTS)]
    for rows, depth in sizes:
        blocks = (depth // block,) if block else ()
        scales = RNG.uniform(0.5, 1, (EXPERTS, rows, *blocks)).astype(np.float32) * 2.0**-bits
        packed = levels("uint8", EXPERTS, rows, depth * bits // 8)
        inputs += [packed, scales, floats(EXPERTS, rows)]
    inputs += [None] * 3
    for rows, depth in sizes:
        line = (rows, -(-depth // block * bits // 8)) if block else (-(-rows * bits // 8),)
        inputs.append(levels("uint8", EXPERTS, *line) if points else None)
    inputs += [None, np.abs(floats(TOKENS, EXPERTS))] if weighted else []
    check(
        "QMoE",
        inputs,
        fixed=set(range(2, 13)),
        rtol=1e-4,
        atol=1e-3,
        k=2,
        expert_weight_bits=bits,
        activation_type="swiglu",
        swiglu_fusion=1,
        normalize_routing_weights=1,
        **({"block_size": block} if block else {}),
    )


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({"quant_type": "fp8"}, "quant_type='fp8'"),
        ({"weights_prepacked": 1}, "weights_prepacked=1"),
        ({"normalize_routing_weights": 0}, "kernels read in two ways"),
        ({"use_sparse_mixer": 1}, "use_sparse_mixer"),
        ({"expert_weight_bits": 3}, "weights of 3 bits"),
        ({"activation_type": "swiglu"}, "swiglu_fusion=0"),
        ({"k": 7}, "k=7 of 4 experts"),
    ],
)
def test_mixtures_that_are_refused(attrs: dict[str, Any], reason: str) -> None:
    layers = [levels("uint8", EXPERTS, 8, 4), np.abs(floats(EXPERTS, 8)), floats(EXPERTS, 8)]
    inputs = [floats(TOKENS, 8), floats(TOKENS, EXPERTS), *layers, *layers]
    given = {"normalize_routing_weights": 1, **attrs}
    model, _ = model_of("QMoE", inputs, 1, "com.microsoft", set(range(2, 8)), given)
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(model)


@needs_newer_runtime
@pytest.mark.parametrize(("dtype", "axis"), [("int4", 0), ("uint4", 1)])
def test_rows_of_tables_of_four_bits(dtype: str, axis: int) -> None:
    """Along any axis, and without zero points from zero on."""
    narrow = getattr(ml_dtypes, dtype)
    table = RNG.integers(-8 if dtype == "int4" else 0, 8, (32, 64)).astype(narrow)
    scales = np.abs(floats(2, 64) if axis else floats(32, 4))
    inputs = [table, RNG.integers(-32, 32, (2, 3)), scales]
    attrs = {"block_size": 16, "gather_axis": axis, "quantize_axis": 1 - axis}
    model, given = model_of("GatherBlockQuantized", inputs, 1, "com.microsoft", {0, 2}, attrs)
    model.opset_import[0].version, model.ir_version = 21, 10
    (expected,) = open_session(model.SerializeToString()).run(None, given)
    (found,) = interpret(serde.to_relay(model), given)
    np.testing.assert_allclose(found, expected, 1e-6)


def test_weights_of_another_rank_are_refused() -> None:
    layers = [levels("uint8", EXPERTS, 8), floats(EXPERTS, 8), floats(EXPERTS, 8)]
    inputs = [floats(TOKENS, 8), floats(TOKENS, EXPERTS), *layers, *layers]
    attrs = {"normalize_routing_weights": 1}
    model, _ = model_of("QMoE", inputs, 1, "com.microsoft", set(range(2, 8)), attrs)
    with pytest.raises(UnsupportedModelError, match="weights of Tensor"):
        serde.to_relay(model)


@pytest.mark.parametrize("axes", [(0, 2), (-3, 1), (1, 1)])
def test_axes_of_quantized_tables_that_are_refused(axes: tuple[int, int]) -> None:
    inputs = [levels("uint8", 10, 16), np.zeros(3, np.int64), floats(10, 2)]
    attrs = {"gather_axis": axes[0], "quantize_axis": axes[1], "block_size": 16}
    model, _ = model_of("GatherBlockQuantized", inputs, 1, "com.microsoft", {0, 2}, attrs)
    with pytest.raises(UnsupportedModelError, match=r"gather_axis|along one axis"):
        serde.to_relay(model)


@needs_newer_runtime
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows_of_quantized_tables(bits: int, points: bool) -> None:
    """An index from the end counts; one outside the table gives zeros."""
    table, scales = levels("uint8", 10, 64 * bits // 8), np.abs(floats(10, 2))
    indices = np.array([[0, 9, -1], [-10, 10, -11]], np.int64)
    inputs = [table, indices, scales, *([levels("uint8", 10, -(-bits // 4))] if points else [])]
    check("GatherBlockQuantized", inputs, fixed={0, 2, 3}, bits=bits, block_size=32)


@needs_newer_runtime
@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
def test_gated_rms_norm(activation: str) -> None:
    check("GatedRMSNorm", [floats(2, 3, 8), floats(4), floats(2, 3, 8)], activation=activation)


def normalize_groups(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Four groups of two channels, and silu behind."""
    groups = x.reshape(2, 12, 4, 2)
    centred = groups - groups.mean((1, 3), keepdims=True)
    unit = centred / np.sqrt(groups.var((1, 3), keepdims=True) + 1e-5)
    normal = unit.reshape(x.shape) * gamma + beta
    return normal * logistic(normal)


@pytest.mark.parametrize("last", [0, 1])
def test_group_norm_as_documented(last: int) -> None:
    x, gamma, beta = floats(2, 3, 4, 8), floats(8), floats(8)
    expected = normalize_groups(x, gamma, beta)
    if not last:
        x, expected = (np.ascontiguousarray(each.transpose(0, 3, 1, 2)) for each in (x, expected))
    judge_by(expected, "GroupNorm", [x, gamma, beta], activation=1, groups=4, channels_last=last)


@pytest.mark.parametrize("shape", [(2, 8), (2, 1, 1, 8), (2, 3, 4, 8)])
def test_group_norm_behind_a_sum_as_documented(shape: tuple[int, ...]) -> None:
    x, gamma, beta, skip, bias = (
        floats(2, 3, 4, 8), floats(8), floats(8), floats(*shape), floats(8)
    )  # fmt: skip
    expected = normalize_groups(x + skip.reshape(2, *shape[1:-1] or (1, 1), 8) + bias, gamma, beta)
    judge_by(expected, "SkipGroupNorm", [x, gamma, beta, skip, bias], activation=1, groups=4)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("limit", [0.0, 0.75])
def test_swiglu_as_documented(packed: bool, limit: float) -> None:
    gate, up = floats(3, 4), floats(3, 4)
    first = np.minimum(gate, limit) if limit else gate
    second = np.clip(up, -limit, limit) if limit else up
    expected = first * logistic(1.5 * first) * (second + 0.25)
    inputs = [np.concatenate([gate, up], 1)] if packed else [gate, up]
    attrs = {"activation_alpha": 1.5, "activation_beta": 0.25, "limit": limit}
    judge_by(expected, "SwiGLU", inputs, **attrs)


def test_bias_split_gelu_as_documented() -> None:
    x, bias = floats(2, 3, 8), floats(8)
    left, right = np.split(x + bias, 2, -1)
    model, given = model_of("Gelu", [right], 1, "com.microsoft", set(), {})
    (gelu,) = interpret(serde.to_relay(model), given)
    judge_by(left * gelu, "BiasSplitGelu", [x, bias])


def test_nhwc_fused_conv_as_documented() -> None:
    x, w, b, z = floats(1, 4, 5, 3), floats(2, 3, 1, 1), floats(2), floats(1, 4, 5, 2)
    expected = np.maximum(x @ w[:, :, 0, 0].T + b + z, 0)
    judge_by(expected, "NhwcFusedConv", [x, w, b, z], activation="Relu")


OPSETS = [
    17,
    pytest.param(
        27,
        marks=pytest.mark.skipif(
            newest_runtime_opset() < 27, reason="ONNX Runtime before 1.32 ends at 26"
        ),
    ),
]

RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True),
         "gated_delta": (True, True)}  # fmt: skip


@needs_newer_runtime
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("rule", "queries", "length", "past"),
    [
        ("linear", 4, 3, False),
        ("gated", 4, 3, True),
        ("delta", 2, 1, True),
        ("gated_delta", 4, 11, False),
        ("gated_delta", 1, 3, True),
    ],
)
def test_linear_attention(rule: str, queries: int, length: int, past: bool, opset: int) -> None:
    """With one head of queries for two of keys, too, which ONNX does not have."""
    decayed, delta = RULES[rule]
    key = floats(2, length, 8)
    inputs = [floats(2, length, queries * 4), key / 3, floats(2, length, 6)]
    inputs.append(floats(2, 2, 4, 3) if past else None)
    inputs.append(-np.abs(floats(2, length, 8 if past else 2)) if decayed else None)
    inputs += [np.abs(floats(2, length, 2)) / 3] if delta else []
    while inputs[-1] is None:
        inputs.pop()
    attrs = {"q_num_heads": queries, "kv_num_heads": 2, "update_rule": rule}
    check("LinearAttention", inputs, outputs=2, target=opset, **attrs)


@needs_newer_runtime
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("size", "length", "past", "last"),
    [(4, 5, True, 0), (4, 2, False, 0), (1, 3, False, 0), (3, 4, True, 1)],
)
def test_causal_conv(size: int, length: int, past: bool, last: int, opset: int) -> None:
    if last and "channels_last" not in attributes_of("CausalConvWithState"):
        pytest.skip("this ONNX Runtime has channels in front alone")
    shape, state = (
        ((2, length, 3), (2, size - 1, 3)) if last else ((2, 3, length), (2, 3, size - 1))
    )
    inputs = [floats(*shape), floats(3, 1, size), floats(3), *([floats(*state)] if past else [])]
    attrs: dict[str, Any] = {"activation": "silu", **({"channels_last": 1} if last else {})}
    check("CausalConvWithState", inputs, outputs=2, target=opset, **attrs)


@needs_newer_runtime
def test_linear_attention_gate() -> None:
    inputs = [floats(2, 3, 4), floats(4), -np.abs(floats(4)), floats(2, 3, 4)]
    check("LinearAttentionGate", inputs, outputs=2)


@needs_newer_runtime
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("layout", "sections", "interleaved"),
    [(0, [2, 1, 1], 0), (0, [1, 0, 3], 1), (1, [2, 1, 1], 0), (1, [4, 0, 0], 0)],
)
def test_rotary_embedding_of_three_positions(
    layout: int, sections: list[int], interleaved: int, flat: bool
) -> None:
    angles, x = floats(9, 4), floats(2, 5, 16) if flat else floats(2, 2, 5, 8)
    inputs = [x, RNG.integers(0, 9, (3, 2, 5)), np.cos(angles), np.sin(angles)]
    attrs = {"mrope_section": sections, "mrope_layout": layout, "interleaved": interleaved}
    check("MRotaryEmbedding", inputs, num_heads=2, **attrs)
