"""Normalisation against ONNX Runtime and MXNet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_node
from support.mxnet_operators import run_mxnet_operator

import serde.relay as relay
from serde.errors import TypeInferenceError

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _vectors(seed: int, count: int, length: int) -> list[np.ndarray]:
    return [_normal(seed + index, length) for index in range(count)]


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_is_onnx(shape: tuple[int, ...]) -> None:
    x, (gamma, beta, mean) = _normal(1, *shape), _vectors(2, 3, 3)
    variance = np.abs(_normal(5, 3)) + 0.1
    expected = run_node("BatchNormalization", x, gamma, beta, mean, variance, epsilon=1e-3)
    found = run_kernel("nn.batch_norm", x, gamma, beta, mean, variance, epsilon=1e-3)
    np.testing.assert_allclose(found[0], expected, **CLOSE)
    np.testing.assert_array_equal(found[1], mean)
    np.testing.assert_array_equal(found[2], variance)


@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, True), (False, False)])
def test_batch_norm_may_leave_out_gamma_and_beta(center: bool, scale: bool) -> None:
    x, (gamma, beta, mean) = _normal(1, 2, 4, 3), _vectors(2, 3, 3)
    variance = np.abs(_normal(5, 3)) + 0.1
    expected = (x - mean) / np.sqrt(variance + 1e-5)
    expected = expected * (gamma if scale else 1) + (beta if center else 0)
    attrs = {"axis": -1, "center": center, "scale": scale}
    found = run_kernel("nn.batch_norm", x, gamma, beta, mean, variance, **attrs)
    np.testing.assert_allclose(found[0], expected, **CLOSE)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_layer_norm_is_mxnet(axis: int) -> None:
    x = _normal(1, 3, 4, 5) * 10
    gamma, beta = _vectors(2, 2, x.shape[axis])
    expected = run_mxnet_operator("LayerNorm", x, gamma, beta, axis=axis, eps=1e-3)
    found = run_kernel("nn.layer_norm", x, gamma, beta, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_layer_norm_of_halves_is_rounded_once() -> None:
    x = (_normal(1, 4, 64) * 300).astype(np.float16)
    ones, zeros = np.ones(64, np.float16), np.zeros(64, np.float16)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    found = run_kernel("nn.layer_norm", x, ones, zeros)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(2, 3, 8), (2, 3, 4, 5), (2, 3, 2, 3, 4)])
def test_instance_norm_is_onnx(shape: tuple[int, ...]) -> None:
    x, (gamma, beta) = _normal(1, *shape), _vectors(2, 2, 3)
    expected = run_node("InstanceNormalization", x, gamma, beta, epsilon=1e-4)
    found = run_kernel("nn.instance_norm", x, gamma, beta, epsilon=1e-4)
    np.testing.assert_allclose(found, expected, **CLOSE)
    last = run_kernel("nn.instance_norm", np.moveaxis(x, 1, -1), gamma, beta, axis=-1, epsilon=1e-4)
    np.testing.assert_allclose(np.moveaxis(last, -1, 1), expected, **CLOSE)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm_is_onnx(groups: int) -> None:
    x, (gamma, beta) = _normal(1, 2, 6, 4, 5), _vectors(2, 2, 6)
    expected = run_node(
        "GroupNormalization", x, gamma, beta, opset=21, num_groups=groups, epsilon=1e-4
    )
    found = run_kernel("nn.group_norm", x, gamma, beta, num_groups=groups, epsilon=1e-4)
    np.testing.assert_allclose(found, expected, **CLOSE)
    last = run_kernel(
        "nn.group_norm", np.moveaxis(x, 1, -1), gamma, beta, num_groups=groups, axis=3, epsilon=1e-4
    )
    np.testing.assert_allclose(np.moveaxis(last, -1, 1), expected, **CLOSE)


@pytest.mark.parametrize("size", [1, 3, 5, 9])
def test_lrn_is_onnx_and_mxnet(size: int) -> None:
    x = _normal(1, 2, 7, 4, 5) * 10
    attrs = {"alpha": 0.3, "beta": 0.6}
    found = run_kernel("nn.lrn", x, size=size, bias=1.5, **attrs)
    np.testing.assert_allclose(found, run_node("LRN", x, size=size, bias=1.5, **attrs), **CLOSE)
    expected = run_mxnet_operator("LRN", x, nsize=size, knorm=1.5, **attrs)
    np.testing.assert_allclose(found, expected, **CLOSE)
    last = run_kernel("nn.lrn", np.moveaxis(x, 1, 3), size=size, bias=1.5, axis=3, **attrs)
    np.testing.assert_allclose(np.moveaxis(last, 3, 1), expected, **CLOSE)


@pytest.mark.parametrize(("mode", "axis"), [("channel", (1,)), ("spatial", (2, 3))])
def test_l2_normalize_is_mxnet(mode: str, axis: tuple[int, ...]) -> None:
    x = _normal(1, 2, 3, 4, 5)
    expected = run_mxnet_operator("L2Normalization", x, eps=0.0, mode=mode)
    found = run_kernel("nn.l2_normalize", x, eps=0.0, axis=axis)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_l2_normalize_bounds_the_sum() -> None:
    x = np.array([[3, 4], [0.3, 0.4]], np.float32)
    found = run_kernel("nn.l2_normalize", x, eps=4.0, axis=(1,))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.15, 0.2]], **CLOSE)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_rms_norm_is_onnx(run: Any, axis: int) -> None:
    x = _normal(1, 3, 4, 5)
    gamma = _normal(2, *x.shape[axis:])
    expected = run_node("RMSNormalization", x, gamma, opset=23, axis=axis, epsilon=1e-3)
    found = run("serde.rms_norm", x, gamma, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_dropout_keeps_the_data() -> None:
    x = _normal(1, 2, 3)
    data, mask = run_kernel("nn.dropout", x, rate=0.9)
    np.testing.assert_array_equal(data, x)
    np.testing.assert_array_equal(mask, np.ones((2, 3), np.float32))


def test_untyped_vectors_take_their_shape() -> None:
    x = relay.var("x", shape=("n", 6, 4))
    names = [relay.var(name) for name in ("gamma", "beta", "mean", "variance")]
    y = relay.nn.batch_norm(x, *names)[0]
    relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, *names], y)))
    assert {repr(name.type) for name in names} == {"Tensor[(6), float32]"}


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("nn.batch_norm", [(2, 3), (4,), (3,), (3,), (3,)], {}, "4 values do not fit axis 1"),
        ("nn.layer_norm", [(2, 3), (3,), (2, 3)], {}, "rank 1"),
        ("nn.layer_norm", [(2, 3), (3,), (3,)], {"axis": 2}, "outside"),
        ("nn.group_norm", [(2, 6, 3), (6,), (6,)], {"num_groups": 4}, "do not form 4 groups"),
        ("nn.lrn", [(2, 6, 3, 3)], {"size": 4}, "odd"),
        ("nn.dropout", [(2, 6)], {"rate": 1.5}, "between 0 and 1"),
        ("serde.rms_norm", [(2, 3, 4), (3,)], {"axis": 1}, "does not scale"),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)


EXTENSIONS = [
    pytest.param("serde.lp_normalization", {}, "LpNormalization", {}, id="l2"),
    pytest.param("serde.lp_normalization", {"p": 1, "axis": 1}, "LpNormalization",
                 {"p": 1, "axis": 1}, id="l1"),
    pytest.param("serde.mean_variance_normalization", {"axes": (0, 2)},
                 "MeanVarianceNormalization", {"axes": [0, 2]}, id="mean_variance"),
]  # fmt: skip


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize(("name", "attrs", "op", "onnx_attrs"), EXTENSIONS)
def test_extension_is_onnx(name: str, attrs: Any, op: str, onnx_attrs: Any, run: Any) -> None:
    x = np.random.default_rng(9).normal(size=(3, 4, 5)).astype(np.float32)
    x[1, :, 2] = x[2, 1] = 0
    expected = run_node(op, x, **onnx_attrs)
    np.testing.assert_allclose(run(name, x, **attrs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_layer_norm_of_axes_is_onnx(axis: int, dtype: str) -> None:
    generator = np.random.default_rng(10)
    x = generator.normal(3, 2, (2, 3, 4)).astype(dtype)
    gamma, beta = (generator.normal(size=x.shape[axis:]).astype(dtype) for _ in range(2))
    expected = run_node("LayerNormalization", x, gamma, beta, opset=17, axis=axis, epsilon=1e-3)
    result, mean, inverse = run_kernel("serde.layer_norm", x, gamma, beta, axis=axis, epsilon=1e-3)
    close = 2e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(result, expected, rtol=close, atol=close)
    wide, axes = x.astype(np.float64), tuple(range(axis % 3, 3))
    np.testing.assert_allclose(mean, wide.mean(axes, keepdims=True), rtol=1e-5)
    spread = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(inverse, spread, rtol=1e-5)
    assert mean.dtype == inverse.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("serde.layer_norm", [(2, 3), (2,)], {}, "lengths 3 and 2 differ"),
        ("serde.layer_norm", [(2, 3), (3,)], {"stash_dtype": "int32"}, "floating-point type"),
        ("serde.lp_normalization", [(2, 3)], {"p": 3}, "attribute p"),
        ("serde.mean_variance_normalization", [(2, 3)], {}, "axis 2 is outside"),
    ],
)
def test_refusals_of_extensions(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)


@pytest.mark.parametrize("name", ["group_norm", "instance_norm", "layer_norm"])
def test_a_scale_has_the_dtype_of_the_data(name: str) -> None:
    """As in TVM, and in MXNet, whose batch normalisation alone takes others."""
    data = relay.var("data", shape=(2, 4, 4), dtype="float16")
    vectors = [relay.var(each, shape=(4,)) for each in ("gamma", "beta")]
    groups = {"num_groups": 2} if name == "group_norm" else {}
    with pytest.raises(TypeInferenceError, match="dtypes differ: float16, float32"):
        getattr(relay.nn, name)(data, *vectors, **groups)
