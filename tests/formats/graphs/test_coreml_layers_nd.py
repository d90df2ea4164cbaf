"""Layers of NeuralNetworks whose tensors have the axes they declare, against NumPy."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import Build, check_layers, evaluate, network_of

import serde
from serde.errors import UnsupportedModelError

F32 = np.float32


def draw(name: str, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Values that are the same each time."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.uniform(low, high, shape).astype(F32)


X = draw("x", 2, 3, 4)
Y = draw("y", 3, 4)
UNIT = draw("unit", 2, 5, low=-0.95, high=0.95)
ABOVE = draw("above", 2, 5, low=1.05)
erf = np.vectorize(math.erf)
soft = np.exp(X) / np.exp(X).sum(1, keepdims=True)
BITS = (X > 0).astype(F32)
OTHER = (Y > 0).astype(F32)
TABLE, SHIFT = draw("table", 6, 9), draw("shift", 6)
WORDS = np.array([[1.0], [8.0], [0.0]], F32)
MATRIX = draw("matrix", 4, 5)
SCALE, OFFSET = draw("scale", 3, 4), draw("offset", 3, 4)

FUNCTIONS: dict[str, tuple[str, np.ndarray, Any]] = {
    "ceil": ("ceil", X, np.ceil),
    "floor": ("floor", X, np.floor),
    "round": ("round", X, np.rint),
    "sign": ("sign", X, np.sign),
    "exp2": ("exp2", X, np.exp2),
    "sin": ("sin", X, np.sin),
    "cos": ("cos", X, np.cos),
    "tan": ("tan", UNIT, np.tan),
    "asin": ("asin", UNIT, np.arcsin),
    "acos": ("acos", UNIT, np.arccos),
    "atan": ("atan", X, np.arctan),
    "sinh": ("sinh", X, np.sinh),
    "cosh": ("cosh", X, np.cosh),
    "tanh": ("tanh", X, np.tanh),
    "asinh": ("asinh", X, np.arcsinh),
    "acosh": ("acosh", ABOVE, np.arccosh),
    "atanh": ("atanh", UNIT, np.arctanh),
    "erf": ("erf", X, erf),
    "copy": ("copy", X, lambda x: x),
    "not": ("logical", BITS, lambda x: 1 - x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    method, data, function = FUNCTIONS[name]
    extra = {"mode": "NOT"} if method == "logical" else {}
    check_layers(
        lambda b: getattr(b, f"add_{method}")(
            "l", ["x"] if method == "logical" else "x", "y", **extra
        ),
        {"x": data},
        np.asarray(function(data), F32),
        exact=True,
    )


PAIRS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "add": ("add_broadcastable", {}, np.add),
    "subtract": ("subtract_broadcastable", {}, np.subtract),
    "multiply": ("multiply_broadcastable", {}, np.multiply),
    "divide": ("divide_broadcastable", {}, np.divide),
    "floor_div": ("floor_div_broadcastable", {}, np.floor_divide),
    "mod": ("mod_broadcastable", {}, np.mod),
    "max": ("max_broadcastable", {}, np.maximum),
    "min": ("min_broadcastable", {}, np.minimum),
    "greater": ("greater_than", {}, np.greater),
    "greater_equal": ("greater_than", {"use_greater_than_equal": True}, np.greater_equal),
    "less": ("less_than", {}, np.less),
    "less_equal": ("less_than", {"use_less_than_equal": True}, np.less_equal),
    "equal": ("equal", {}, np.equal),
    "not_equal": ("not_equal", {}, np.not_equal),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pair(name: str) -> None:
    method, attrs, function = PAIRS[name]
    x, y = np.round(X), np.where(np.round(Y) == 0, 1, np.round(Y)).astype(F32)
    check_layers(
        lambda b: getattr(b, f"add_{method}")("l", ["x", "z"], "y", **attrs),
        {"x": x, "z": y},
        np.asarray(function(x, y), F32),
        exact=True,
    )


@pytest.mark.parametrize("name", ["greater_than", "less_than", "equal", "not_equal"])
def test_comparison_with_a_number(name: str) -> None:
    function = {"greater_than": np.greater, "less_than": np.less}.get(name, getattr(np, name, None))
    x = np.round(X)
    check_layers(
        lambda b: getattr(b, f"add_{name}")("l", ["x"], "y", alpha=1.0),
        {"x": x},
        np.asarray(function(x, 1), F32),
        exact=True,
    )


@pytest.mark.parametrize(
    ("mode", "function"), [("AND", np.logical_and), ("OR", np.logical_or), ("XOR", np.logical_xor)]
)
def test_logic(mode: str, function: Any) -> None:
    check_layers(
        lambda b: b.add_logical("l", ["x", "z"], "y", mode),
        {"x": BITS, "z": OTHER},
        np.asarray(function(BITS, OTHER), F32),
        exact=True,
    )


def windows(x: np.ndarray, size: int, step: int) -> np.ndarray:
    count = (x.shape[1] - size) // step + 1
    return np.stack([x[:, i * step : i * step + size] for i in range(count)], 1)


def scattered(ufunc: Any) -> np.ndarray:
    out = X.copy()
    for at, slices in ((2, 0), (0, 1)):
        out[:, at] = ufunc(out[:, at], S[:, slices])
    return out


S = draw("s", 2, 2, 4, low=0.5)
INDICES = np.array([2, 0], F32)
ALONG = np.array([[[1, 0, -1, 2]]] * 2, F32)
BLOCK = draw("block", 1, 3, 4)
order = np.argsort(-X, axis=-1, kind="stable")

CASES: dict[str, tuple[Build, dict[str, np.ndarray], np.ndarray | list[np.ndarray]]] = {
    "clip": (lambda b: b.add_clip("l", "x", "y", -1, 0.5), {"x": X}, np.clip(X, -1, 0.5)),
    "clamped_relu": (
        lambda b: b.add_clamped_relu("l", "x", "y", 0.25, 1.5),
        {"x": X},
        np.minimum(np.where(X >= 0, X, X / 4), 1.5),
    ),
    "gelu": (
        lambda b: b.add_gelu("l", "x", "y"), {"x": X}, X * (1 + erf(X / np.sqrt(2))) / 2
    ),
    "gelu_tanh": (
        lambda b: b.add_gelu("l", "x", "y", "TANH_APPROXIMATION"),
        {"x": X},
        X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3))) / 2,
    ),
    "gelu_sigmoid": (
        lambda b: b.add_gelu("l", "x", "y", "SIGMOID_APPROXIMATION"),
        {"x": X},
        X / (1 + np.exp(-1.702 * X)),
    ),
    "softmax": (lambda b: b.add_softmax_nd("l", "x", "y", 1), {"x": X}, soft),
    "where": (
        lambda b: b.add_where_broadcastable("l", ["c", "x", "z"], "y"),
        {"c": BITS, "x": X, "z": Y},
        np.where(BITS != 0, X, Y),
    ),
    "tile": (lambda b: b.add_tile("l", "x", "y", [1, 2, 3]), {"x": X}, np.tile(X, (1, 2, 3))),
    "tile_counted": (
        lambda b: b.add_tile("l", ["x", "n"], "y"),
        {"x": X, "n": np.array([[1, 2, 3]], F32)},
        np.tile(X, (1, 2, 3)),
    ),
    "stack": (
        lambda b: b.add_stack("l", ["x", "z"], "y", -1), {"x": X, "z": X + 1},
        np.stack([X, X + 1], -1),
    ),
    "gather": (
        lambda b: b.add_gather("l", ["x", "i"], "y", 1),
        {"x": X, "i": np.array([2, -1, 0, 0], F32)},
        X[:, [2, -1, 0, 0]],
    ),
    "gather_nd": (
        lambda b: b.add_gather_nd("l", ["x", "i"], "y"),
        {"x": X, "i": np.array([[0, 2], [1, 1]], F32)},
        X[[0, 1], [2, 1]],
    ),
    "gather_along": (
        lambda b: b.add_gather_along_axis("l", ["x", "i"], "y", 1),
        {"x": X, "i": ALONG},
        np.take_along_axis(X, ALONG.astype(int), 1),
    ),
    "scatter_update": (
        lambda b: b.add_scatter("l", ["x", "i", "s"], "y", 1, "UPDATE"),
        {"x": X, "i": INDICES, "s": S},
        scattered(lambda a, b: b),
    ),
    "scatter_sub": (
        lambda b: b.add_scatter("l", ["x", "i", "s"], "y", 1, "SUB"),
        {"x": X, "i": INDICES, "s": S},
        scattered(np.subtract),
    ),
    "scatter_div": (
        lambda b: b.add_scatter("l", ["x", "i", "s"], "y", 1, "DIV"),
        {"x": X, "i": INDICES, "s": S},
        scattered(np.divide),
    ),
    "scatter_max": (
        lambda b: b.add_scatter("l", ["x", "i", "s"], "y", 1, "MAX"),
        {"x": X, "i": INDICES, "s": S},
        scattered(np.maximum),
    ),
    "scatter_nd": (
        lambda b: b.add_scatter_nd("l", ["x", "i", "s"], "y", "ADD"),
        {"x": X, "i": np.array([[0, 2], [1, -3]], F32), "s": S[0]},
        X + np.array([[0 * S[0, 0], 0 * S[0, 0], S[0, 0]], [S[0, 1], 0 * S[0, 0], 0 * S[0, 0]]]),
    ),
    "scatter_along": (
        lambda b: b.add_scatter_along_axis("l", ["x", "i", "s"], "y", 0, "UPDATE"),
        {"x": X, "i": np.array(BITS[:1]), "s": BLOCK},
        np.stack([np.where(BITS[0] == 0, BLOCK[0], X[0]), np.where(BITS[0] == 1, BLOCK[0], X[1])]),
    ),
    "reverse": (
        lambda b: b.add_reverse("l", "x", "y", [False, True, True]), {"x": X}, X[:, ::-1, ::-1]
    ),
    "reverse_sequence": (
        lambda b: b.add_reverse_sequence("l", ["x", "n"], "y", 0, 1),
        {"x": X, "n": np.array([2, 3], F32)},
        np.stack([X[0][[1, 0, 2]], X[1][::-1]]),
    ),
    "split": (
        lambda b: b.add_split_nd("l", "x", ["y0", "y1"], -1, split_sizes=[1, 3]),
        {"x": X},
        [X[..., :1], X[..., 1:]],
    ),
    "split_even": (
        lambda b: b.add_split_nd("l", "x", ["y0", "y1"], 0, 2), {"x": X}, [X[:1], X[1:]]
    ),
    "concat": (
        lambda b: b.add_concat_nd("l", ["x", "z"], "y", -2), {"x": X, "z": X + 1},
        np.concatenate([X, X + 1], 1),
    ),
    "concat_interleaved": (
        lambda b: b.add_concat_nd("l", ["x", "z"], "y", 1, True), {"x": X, "z": X + 9},
        np.stack([X, X + 9], 2).reshape(2, 6, 4),
    ),
    "transpose": (
        lambda b: b.add_transpose("l", (2, 0, 1), "x", "y"), {"x": X}, X.transpose(2, 0, 1)
    ),
    "slice_static": (
        lambda b: b.add_slice_static(
            "l", "x", "y", begin_ids=[0, -1, 1], end_ids=[1, -3, 9], strides=[1, -1, 2],
            begin_masks=[True, False, False], end_masks=[True, False, True],
            squeeze_masks=[False, False, False],
        ),
        {"x": X},
        X[:, -1:-3:-1, 1::2],
    ),
    "slice_squeezed": (
        lambda b: b.add_slice_static(
            "l", "x", "y", begin_ids=[-1, 0, 1], end_ids=[0, 0, 3], strides=[1, 1, 1],
            begin_masks=[False, True, False], end_masks=[False, True, False],
            squeeze_masks=[True, False, False],
        ),
        {"x": X},
        X[-1, :, 1:3],
    ),
    "slice_dynamic": (
        lambda b: (
            b.add_load_constant_nd("c", "c", np.array([0, 1, 1.0]), (3,)),
            b.add_load_constant_nd("e", "e", np.array([2, 3, 4.0]), (3,)),
            b.add_slice_dynamic("l", ["x", "c", "e"], "y", strides=[1, 1, 2]),
        ),
        {"x": X},
        X[:, 1:3, 1:4:2],
    ),
    "slice_computed": (
        lambda b: b.add_slice_dynamic("l", ["x", "c", "e"], "y", strides=[1, 1, 2]),
        {"x": X, "c": np.array([0, 1, 1], F32), "e": np.array([2, 3, 4], F32)},
        X[:, 1:3, 1:4:2],
    ),
    "slice_by_size": (
        lambda b: (
            b.add_load_constant_nd("c", "c", np.array([1.0]), (1,)),
            b.add_slice_by_size("l", ["x", "c"], "y", 2, 2),
        ),
        {"x": X},
        X[..., 1:3],
    ),
    "sliding_windows": (
        lambda b: b.add_sliding_windows("l", "x", "y", 1, 2, 1), {"x": X}, windows(X, 2, 1)
    ),
    "topk": (
        lambda b: b.add_topk("l", ["x"], ["y0", "y1"], 2, -1), {"x": X},
        [np.sort(X)[..., ::-1][..., :2], order[..., :2].astype(F32)],
    ),
    "bottomk": (
        lambda b: b.add_topk("l", ["x"], ["y0", "y1"], 2, 1, True), {"x": X},
        [np.sort(X, 1)[:, :2], np.argsort(X, 1)[:, :2].astype(F32)],
    ),
    "argmax": (
        lambda b: b.add_argmax("l", "x", "y", -2), {"x": X},
        X.argmax(1, keepdims=True).astype(F32),
    ),
    "argmin": (
        lambda b: b.add_argmin("l", "x", "y", 0, False), {"x": X},
        X.argmin(0).astype(F32),
    ),
    "argsort": (
        lambda b: b.add_argsort("l", "x", "y", -1, True), {"x": X}, order.astype(F32)
    ),
    "embedding": (
        lambda b: b.add_embedding_nd("l", "x", "y", 9, 6, TABLE, SHIFT), {"x": WORDS},
        TABLE.T[[1, 8, 0]] + SHIFT,
    ),
    "matmul": (
        lambda b: b.add_batched_mat_mul("l", ["x", "z"], "y", transpose_b=True),
        {"x": X, "z": X[::-1].copy()},
        X @ X[::-1].transpose(0, 2, 1),
    ),
    "matmul_weight": (
        lambda b: b.add_batched_mat_mul(
            "l", ["x"], "y", weight_matrix_rows=4, weight_matrix_columns=5, W=MATRIX,
            bias=MATRIX[0],
        ),
        {"x": X},
        X @ MATRIX + MATRIX[0],
    ),
    "inner_product": (
        lambda b: b.add_inner_product("l", MATRIX.T, None, 4, 5, False, "x", "y"),
        {"x": X},
        X @ MATRIX,
    ),
    "fill_like": (lambda b: b.add_fill_like("l", "x", "y", 2.5), {"x": X}, np.full_like(X, 2.5)),
    "fill_static": (
        lambda b: (
            b.add_fill_static("f", "f", (2, 3, 4), 2.5),
            b.add_add_broadcastable("l", ["x", "f"], "y"),
        ),
        {"x": X},
        X + F32(2.5),
    ),
    "fill_dynamic": (
        lambda b: (
            b.add_get_shape("s", "x", "s"),
            b.add_fill_dynamic("l", "s", "y", 2.5),
        ),
        {"x": X},
        np.full_like(X, 2.5),
    ),
    "broadcast_like": (
        lambda b: b.add_broadcast_to_like("l", ["z", "x"], "y"), {"z": Y, "x": X},
        np.broadcast_to(Y, X.shape),
    ),
    "broadcast_static": (
        lambda b: b.add_broadcast_to_static("l", "x", "y", (5, 2, 3, 4)), {"x": X},
        np.broadcast_to(X, (5, 2, 3, 4)),
    ),
    "broadcast_dynamic": (
        lambda b: (
            b.add_get_shape("s", "x", "s"),
            b.add_broadcast_to_dynamic("l", ["z", "s"], "y"),
        ),
        {"z": Y, "x": X},
        np.broadcast_to(Y, X.shape),
    ),
    "squeeze": (
        lambda b: b.add_squeeze("l", "x", "y", [0, -1]), {"x": X[:1, :, :1]}, X[0, :, 0]
    ),
    "squeeze_all": (
        lambda b: b.add_squeeze("l", "x", "y", squeeze_all=True), {"x": X[:1, :, :1]}, X[0, :, 0]
    ),
    "expand_dims": (
        lambda b: b.add_expand_dims("l", "x", "y", [0, -1]), {"x": X}, X[None, ..., None]
    ),
    "flatten_to_2d": (
        lambda b: b.add_flatten_to_2d("l", "x", "y", 2), {"x": X}, X.reshape(6, 4)
    ),
    "flatten_to_2d_back": (
        lambda b: b.add_flatten_to_2d("l", "x", "y", -2), {"x": X}, X.reshape(2, 12)
    ),
    "reshape_like": (
        lambda b: b.add_reshape_like("l", ["x", "z"], "y"), {"x": X, "z": X.reshape(8, 3)},
        X.reshape(8, 3),
    ),
    "reshape_static": (
        lambda b: b.add_reshape_static("l", "x", "y", (6, -1)), {"x": X}, X.reshape(6, 4)
    ),
    "reshape_dynamic": (
        lambda b: (
            b.add_load_constant_nd("c", "c", np.array([4.0, -1]), (2,)),
            b.add_reshape_dynamic("l", ["x", "c"], "y"),
        ),
        {"x": X},
        X.reshape(4, 6),
    ),
    "rank_preserving": (
        lambda b: b.add_rank_preserving_reshape("l", "x", "y", (0, 2, -1)), {"x": X},
        X.reshape(2, 2, 6),
    ),
    "get_shape": (lambda b: b.add_get_shape("l", "x", "y"), {"x": X}, np.array([2, 3, 4], F32)),
    "constant_pad": (
        lambda b: b.add_constant_pad("l", ["x"], "y", 0.5, False, [0, 0, 1, 2, 0, 3]),
        {"x": X},
        np.pad(X, ((0, 0), (1, 2), (0, 3)), constant_values=0.5),
    ),
    "constant_pad_to": (
        lambda b: b.add_constant_pad("l", ["x"], "y", 0.5, True, [0, 0, 5, 0, 0, 6]),
        {"x": X},
        np.pad(X, ((0, 0), (2, 0), (0, 2)), constant_values=0.5),
    ),
    "where_nonzero": (
        lambda b: b.add_where_nonzero("l", "x", "y"), {"x": BITS}, np.argwhere(BITS).astype(F32)
    ),
    "band": (
        lambda b: b.add_matrix_band_part("l", "x", "y", 1, -1), {"x": X}, np.triu(X, -1)
    ),
    "lower": (lambda b: b.add_lower_triangular("l", "x", "y", 1), {"x": X}, np.tril(X, 1)),
    "upper": (lambda b: b.add_upper_triangular("l", "x", "y", -1), {"x": X}, np.triu(X, -1)),
    "layer_norm": (
        lambda b: b.add_layer_normalization("l", "x", "y", [3, 4], SCALE, OFFSET, 0.01),
        {"x": X},
        (X - X.mean((1, 2), keepdims=True)) / np.sqrt(X.var((1, 2), keepdims=True) + 0.01) * SCALE
        + OFFSET,
    ),
    "one_hot": (
        lambda b: b.add_one_hot("l", ["x"], "y", 9, -1, 2.0, -1.0), {"x": WORDS[:, 0]},
        np.where(np.arange(9) == WORDS, 2, -1),
    ),
    "cumsum": (
        lambda b: b.add_cumsum("l", ["x"], "y", 1), {"x": X}, X.cumsum(1)
    ),
    "cumsum_back": (
        lambda b: b.add_cumsum("l", ["x"], "y", -1, True, True), {"x": X},
        X[..., ::-1].cumsum(-1)[..., ::-1] - X,
    ),
    "range": (
        lambda b: b.add_range_dynamic("l", ["e"], "y", 1, 2), {"e": np.array([8], F32)},
        np.array([1, 3, 5, 7], F32),
    ),
    "range_static": (
        lambda b: (
            b.add_range_static("r", "r", end=4, start=0, step=1),
            b.add_add_broadcastable("l", ["x", "r"], "y"),
        ),
        {"x": X},
        X + np.arange(4),
    ),
    "global_pooling_3d": (
        lambda b: b.add_global_pooling3d("l", "x", "y", "AVERAGE"), {"x": X.reshape(1, 2, 3, 2, 2)},
        X.reshape(1, 2, 3, 2, 2).mean((2, 3, 4), keepdims=True),
    ),
    "pooling_3d": (
        lambda b: b.add_pooling3d("l", "x", "y", "MAX", 3, 2, 1, 1, 2, 1),
        {"x": X.reshape(1, 2, 3, 2, 2)},
        X.reshape(1, 2, 3, 2, 2).max((2, 3), keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CASES)
def test_layer(name: str) -> None:
    build, inputs, expected = CASES[name]
    wanted = (
        [each.astype(F32) for each in expected]
        if isinstance(expected, list)
        else np.ascontiguousarray(expected, F32)
    )
    check_layers(build, inputs, wanted, exact=True)


REDUCTIONS: dict[str, Any] = {
    "l1": lambda x, **k: np.abs(x).sum(**k),
    "l2": lambda x, **k: np.sqrt(np.square(x).sum(**k)),
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "logsum": lambda x, **k: np.log(x.sum(**k)),
    "sumsquare": lambda x, **k: np.square(x).sum(**k),
    "logsumexp": lambda x, **k: np.log(np.exp(x).sum(**k)),
}


@pytest.mark.parametrize(
    ("axes", "keeps", "whole"),
    [([1], False, False), ([0, -1], True, False), (None, False, True), (None, True, True)],
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, axes: list[int] | None, keeps: bool, whole: bool) -> None:
    data = np.abs(X) + F32(0.1)
    expected = REDUCTIONS[name](data, axis=tuple(axes) if axes else None, keepdims=keeps)
    check_layers(
        lambda b: getattr(b, f"add_reduce_{name}")("l", "x", "y", axes, keeps, whole),
        {"x": data},
        np.atleast_1d(np.asarray(expected, F32)),
        exact=True,
    )


RANDOM: dict[str, tuple[Build, float, float]] = {
    "normal_like": (lambda b: b.add_random_normal_like("l", "x", "y", 2.0, 0.5, 3), 2, 0.5),
    "uniform_like": (lambda b: b.add_random_uniform_like("l", "x", "y", 1, 3, 3), 2, 12**-0.5 * 2),
    "bernoulli_like": (lambda b: b.add_random_bernoulli_like("l", "x", "y", 0.25, 3), 0.25, 0.4330),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers(name: str) -> None:
    build, mean, deviation = RANDOM[name]
    data = np.zeros((100, 200), F32)
    model = serde.to_relay(network_of(build, {"x": data}, exact=True))
    (found,) = evaluate(model, {"x": data})
    assert found.shape == data.shape
    assert found.mean() == pytest.approx(mean, abs=0.02)
    assert found.std() == pytest.approx(deviation, abs=0.02)


def test_symbolic_batch() -> None:
    weight = draw("w", 5, 4)

    def build(b: Any) -> None:
        b.add_inner_product("d", weight, None, 4, 5, False, "x", "d")
        b.add_softmax_nd("s", "d", "y", -1)

    data = draw("batch", 6, 4)
    scores = np.exp(data @ weight.T)
    model = check_layers(
        build,
        {"x": data},
        scores / scores.sum(1, keepdims=True),
        exact=True,
        shapes={"x": ("n", 4)},
    )
    assert str(model.main.type.ret_type.shape[0]) == "n"


def test_a_layer_of_the_user() -> None:
    def build(b: Any) -> None:
        layer = b.nn_spec.layers.add()
        layer.name = "mine"
        layer.input.append("x")
        layer.output.append("y")
        layer.custom.className = "MyLayer"

    with pytest.raises(UnsupportedModelError, match="a layer of the user's class MyLayer"):
        serde.to_relay(network_of(build, {"x": X}, exact=True))
