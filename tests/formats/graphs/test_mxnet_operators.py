"""Single operators of MXNet: our Relay in the interpreter against MXNet itself."""

from __future__ import annotations

import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.oracle import run_mxnet

import serde
from serde.compat import import_mxnet
from serde.mxnet.ops import TABLE
from serde.relay.run.interpreter import run

Build = Callable[..., Any]

UNIT = ("arccos", "arcsin", "arctanh")
ABOVE_ONE = ("arccosh",)
POSITIVE = ("log", "log10", "log1p", "log2", "rcbrt", "rsqrt", "sqrt")
ANY = (
    "abs", "arcsinh", "arctan", "cbrt", "ceil", "cos", "cosh", "degrees", "erf", "exp", "expm1",
    "fix", "floor", "hard_sigmoid", "logical_not", "negative", "ones_like", "radians", "reciprocal",
    "relu", "rint", "round", "sigmoid", "sign", "sin", "sinh", "smooth_l1", "softmin", "softsign",
    "square", "tan", "tanh", "trunc", "zeros_like",
)  # fmt: skip
ON_INTEGERS = ("abs", "exp", "negative", "sign", "sqrt", "square")
BINARY = (
    "_equal", "_greater", "_greater_equal", "_hypot", "_lesser", "_lesser_equal", "_logical_and",
    "_logical_or", "_logical_xor", "_maximum", "_minimum", "_mod", "_not_equal", "_power",
)  # fmt: skip
BROADCAST = (
    "add", "div", "equal", "greater", "greater_equal", "hypot", "lesser", "lesser_equal",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "mul", "not_equal",
    "power", "sub",
)  # fmt: skip
SCALAR = (
    "_div", "_equal", "_greater", "_greater_equal", "_lesser", "_lesser_equal", "_logical_and",
    "_logical_or", "_logical_xor", "_maximum", "_minimum", "_minus", "_mod", "_mul", "_not_equal",
    "_plus", "_power", "_rdiv", "_rminus", "_rmod", "_rpower",
)  # fmt: skip


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def operator(mx: Any, name: str) -> Any:
    """An operator's symbol function, wherever MXNet keeps it."""
    for home in (mx.sym, mx.sym._internal, mx.sym.contrib):
        found = getattr(home, name.removeprefix("_contrib_"), None) or getattr(home, name, None)
        if found is not None:
            return found
    raise AttributeError(name)


def check(mx: Any, symbol: Any, inputs: dict[str, np.ndarray], tolerance: float = 2e-6) -> None:
    """Compare all outputs of a symbol of variables alone."""
    shapes = {name: value.shape for name, value in inputs.items()}
    dtypes = {name: value.dtype.name for name, value in inputs.items()}
    model = serde.to_relay(symbol, input_shapes=shapes, input_dtypes=dtypes)
    assert list(model.meta.outputs) == symbol.list_outputs()
    result = run(model.main, [inputs[p.name_hint] for p in model.main.params], mod=model.mod)
    found = result if isinstance(result, tuple) else (result,)
    expected = run_mxnet(symbol, {}, inputs)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def draw(name: str, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Values that include halves, zeros and negatives where the range allows them."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = rng.uniform(low, high, shape).astype(np.float32)
    special = [v for v in (-1.5, -0.5, 0.0, 0.5, 1.5, 2.5) if low < v < high]
    values.flat[: len(special)] = special[: values.size]
    return values


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        *((name, -1, 1) for name in UNIT),
        *((name, 1, 4) for name in ABOVE_ONE),
        *((name, 0, 4) for name in POSITIVE),
        *((name, -3, 3) for name in ANY),
    ],
)
def test_unary(mx: Any, name: str, low: float, high: float) -> None:
    data = draw(name, (3, 5), low, high)
    if name in ("reciprocal", "log", "log2", "log10", "rsqrt", "rcbrt", "arctanh"):
        data[data == 0] = 0.25
    check(mx, operator(mx, name)(mx.sym.var("x")), {"x": data})


@pytest.mark.parametrize("name", ON_INTEGERS)
def test_unary_of_integers(mx: Any, name: str) -> None:
    data = np.array([[0, 1, 2], [3, 4, 9]], np.int32)
    if name in ("abs", "negative", "sign"):
        data[0] *= -1
    check(mx, operator(mx, name)(mx.sym.var("x")), {"x": data})


def pair(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> dict[str, np.ndarray]:
    low = 0.25 if "power" in name else -3
    x, y = draw(name, left, low, 3), draw(name + "y", right, -3, 3)
    if "div" in name or "mod" in name:
        y[np.abs(y) < 0.2] = 0.7
    return {"x": np.round(x * 2) / 2 if "equal" in name else x, "y": y}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", [*BINARY, "elemwise_add", "elemwise_div", "_grad_add"])
def test_binary_of_one_shape(mx: Any, name: str) -> None:
    symbol = operator(mx, name)(mx.sym.var("x"), mx.sym.var("y"))
    check(mx, symbol, pair(name, (3, 5), (3, 5)))


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", BROADCAST)
def test_binary_that_broadcasts(mx: Any, name: str) -> None:
    symbol = operator(mx, f"broadcast_{name}")(mx.sym.var("x"), mx.sym.var("y"))
    check(mx, symbol, pair(name, (3, 1, 5), (1, 4, 5)))


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", SCALAR)
def test_scalar(mx: Any, name: str, dtype: str) -> None:
    data = draw(name, (3, 5), 0.25 if "power" in name else -3, 3)
    if name in ("_rdiv", "_rmod"):
        data = np.where(np.abs(data) < 1, 1.25, data)
    symbol = operator(mx, f"{name}_scalar")(mx.sym.var("x"), scalar=1.5)
    check(mx, symbol, {"x": data.astype(dtype)})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "mod"])
def test_integers(mx: Any, name: str) -> None:
    symbol = operator(mx, f"broadcast_{name}")(mx.sym.var("x"), mx.sym.var("y"))
    x = np.array([[-7, -3, 0, 5, 8]], np.int32)
    check(mx, symbol, {"x": x, "y": np.array([[2], [3]], np.int32)})


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype("float32")


CASES: dict[str, tuple[Build, dict[str, np.ndarray]]] = {
    "cast": (lambda s, x: s.Cast(x, dtype="int32"), {"x": f32(2, 3) * 3}),
    "cast_float16": (lambda s, x: s.cast(x, dtype="float16"), {"x": f32(2, 3)}),
    "amp_cast": (lambda s, x: s.amp_cast(x, dtype="float16"), {"x": f32(2, 3)}),
    "where": (
        lambda s, c, x, y: s.where(c, x, y),
        {"c": f32(2, 3) > 0, "x": f32(2, 3), "y": -f32(2, 3)},
    ),
    "where_rows": (
        lambda s, c, x, y: s.where(c, x, y),
        {"c": np.array([1, 0, -2], "f4"), "x": f32(3, 4), "y": -f32(3, 4)},
    ),
    "add_n": (
        lambda s, x, y, z: s.add_n(x, y, z),
        {"x": f32(2, 3), "y": -2 * f32(2, 3), "z": f32(2, 3)},
    ),
    "clip_integers": (
        lambda s, x: s.clip(x, a_min=-1.5, a_max=2.5),
        {"x": np.arange(-4, 5, dtype="i4")},
    ),
    "clip_beyond_int8": (
        lambda s, x: s.clip(x, a_min=-6.5, a_max=1e9),
        {"x": np.arange(-9, 9, dtype="i1")},
    ),
    "clip_beyond_uint8": (
        lambda s, x: s.clip(x, a_min=-1, a_max=6),
        {"x": np.arange(9, dtype="u1")},
    ),
    "sum_all": (lambda s, x: s.sum(x), {"x": f32(2, 3, 4)}),
    "sum_exclude": (lambda s, x: s.sum(x, axis=1, exclude=True), {"x": f32(2, 3, 4)}),
    "mean_keepdims": (lambda s, x: s.mean(x, axis=(0, -1), keepdims=True), {"x": f32(2, 3, 4)}),
    "max_axis": (lambda s, x: s.max(x, axis=1), {"x": f32(2, 3, 4)}),
    "min_all": (lambda s, x: s.min(x), {"x": f32(2, 3, 4)}),
    "prod": (lambda s, x: s.prod(x, axis=2), {"x": f32(2, 3, 4)}),
    "norm": (lambda s, x: s.norm(x), {"x": f32(2, 3, 4)}),
    "norm_1": (lambda s, x: s.norm(x, ord=1, axis=1, keepdims=True), {"x": f32(2, 3, 4)}),
    "argmax": (lambda s, x: s.argmax(x, axis=1), {"x": f32(2, 3, 4)}),
    "argmax_flat": (lambda s, x: s.argmax(x), {"x": f32(2, 3, 4)}),
    "argmin_keepdims": (lambda s, x: s.argmin(x, axis=-1, keepdims=True), {"x": f32(2, 3, 4)}),
    "argmax_channel": (lambda s, x: s.argmax_channel(x), {"x": f32(4, 5)}),
    "dot": (lambda s, x, y: s.dot(x, y, transpose_b=True), {"x": f32(2, 3), "y": f32(4, 3)}),
    "dot_vectors": (lambda s, x, y: s.dot(x, y), {"x": f32(3), "y": f32(3)}),
    "batch_dot": (
        lambda s, x, y: s.batch_dot(x, y, transpose_a=True),
        {"x": f32(2, 3, 4), "y": f32(2, 3, 5)},
    ),
    "batch_dot_4d": (
        lambda s, x, y: s.batch_dot(x, y, transpose_b=True),
        {"x": f32(2, 3, 4, 5), "y": f32(2, 3, 6, 5)},
    ),
    "expand_dims": (lambda s, x: s.expand_dims(x, axis=-1), {"x": f32(2, 3)}),
    "squeeze": (lambda s, x: s.squeeze(x), {"x": f32(1, 3, 1)}),
    "squeeze_axis": (lambda s, x: s.squeeze(x, axis=(0, -1)), {"x": f32(1, 3, 1)}),
    "squeeze_to_one": (lambda s, x: s.squeeze(x), {"x": f32(1, 1)}),
    "stack": (lambda s, x, y: s.stack(x, y, axis=1), {"x": f32(2, 3), "y": -f32(2, 3)}),
    "split_v2": (lambda s, x: s.split_v2(x, (1, 3), axis=1), {"x": f32(2, 4)}),
    "split_v2_sections": (
        lambda s, x: s.split_v2(x, 2, axis=1, squeeze_axis=False),
        {"x": f32(2, 4)},
    ),
    "tile": (lambda s, x: s.tile(x, reps=(2, 1, 3)), {"x": f32(2, 3)}),
    "repeat": (lambda s, x: s.repeat(x, repeats=2, axis=1), {"x": f32(2, 3)}),
    "repeat_flat": (lambda s, x: s.repeat(x, repeats=2), {"x": f32(2, 3)}),
    "reverse": (lambda s, x: s.reverse(x, axis=(0, 1)), {"x": f32(2, 3, 2)}),
    "broadcast_to": (lambda s, x: s.broadcast_to(x, shape=(0, 4)), {"x": f32(3, 1)}),
    "broadcast_axis": (
        lambda s, x: s.broadcast_axis(x, axis=(0, 2), size=(2, 4)),
        {"x": f32(1, 3, 1)},
    ),
    "broadcast_like": (lambda s, x, y: s.broadcast_like(x, y), {"x": f32(3, 1), "y": f32(3, 4)}),
    "broadcast_like_axes": (
        lambda s, x, y: s.broadcast_like(x, y, lhs_axes=(1,), rhs_axes=(0,)),
        {"x": f32(3, 1), "y": f32(4, 2)},
    ),
    "reshape_like": (lambda s, x, y: s.reshape_like(x, y), {"x": f32(2, 6), "y": f32(3, 4)}),
    "reshape_like_part": (
        lambda s, x, y: s.reshape_like(x, y, lhs_begin=1, lhs_end=2, rhs_begin=0, rhs_end=2),
        {"x": f32(5, 12), "y": f32(3, 4)},
    ),
    "slice_without_steps": (
        lambda s, x: s.slice(x, begin=(None, 1), end=(2, None), step=None),
        {"x": f32(3, 4)},
    ),
    "slice_of_open_steps": (
        lambda s, x: s.slice(x, begin=(None, None), end=(None, 0), step=(None, -2)),
        {"x": f32(3, 4)},
    ),
    "slice_like": (lambda s, x, y: s.slice_like(x, y, axes=(1,)), {"x": f32(3, 5), "y": f32(2, 4)}),
    "slice_like_all": (lambda s, x, y: s.slice_like(x, y), {"x": f32(3, 5), "y": f32(2, 4)}),
    "depth_to_space": (lambda s, x: s.depth_to_space(x, block_size=2), {"x": f32(1, 8, 2, 3)}),
    "space_to_depth": (lambda s, x: s.space_to_depth(x, block_size=2), {"x": f32(1, 2, 4, 6)}),
    "shape_array": (lambda s, x: s.shape_array(x), {"x": f32(2, 3)}),
    "size_array": (lambda s, x: s.size_array(x), {"x": f32(2, 3)}),
    "zeros_and_ones": (
        lambda s, x: x + s.zeros((2, 3)) + s.ones((2, 3)) + s.full((2, 3), 2.5),
        {"x": f32(2, 3)},
    ),
    "take": (
        lambda s, x, i: s.take(x, i, axis=1),
        {"x": f32(3, 5), "i": np.array([[0, 4, 7, -2]], "f4")},
    ),
    "take_wrap": (
        lambda s, x, i: s.take(x, i, mode="wrap"),
        {"x": f32(3, 5), "i": np.array([-1, 4, 2], "i4")},
    ),
    "one_hot": (
        lambda s, i: s.one_hot(i, depth=4, on_value=2.0, off_value=-1.0),
        {"i": np.array([0, 3, 5, -1], "f4")},
    ),
    "gather_nd": (
        lambda s, x, i: s.gather_nd(x, i),
        {"x": f32(3, 4, 2), "i": np.array([[0, 2], [1, 3]], "f4")},
    ),
    "sequence_mask": (
        lambda s, x, n: s.SequenceMask(x, n, use_sequence_length=True, value=-1.0),
        {"x": f32(4, 3, 2), "n": np.array([1, 4, 2], "f4")},
    ),
    "sequence_mask_axis": (
        lambda s, x, n: s.SequenceMask(x, n, use_sequence_length=True, axis=1),
        {"x": f32(3, 4), "n": np.array([1, 4, 2], "f4")},
    ),
    "softmax_temperature": (
        lambda s, x: s.softmax(x, temperature=2.0, axis=1),
        {"x": f32(2, 3, 4)},
    ),
    "log_softmax": (lambda s, x: s.log_softmax(x, temperature=0.5), {"x": f32(2, 3, 4)}),
}


@pytest.mark.parametrize("name", CASES)
def test_operator(mx: Any, name: str) -> None:
    build, inputs = CASES[name]
    arrays = {
        key: value.astype("float32") if value.dtype == bool else value
        for key, value in inputs.items()
    }
    check(mx, build(mx.sym, *[mx.sym.var(key) for key in arrays]), arrays)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BatchNorm_v1", "BatchNorm"),
        ("Convolution_v1", "Convolution"),
        ("Pooling_v1", "Pooling"),
        ("_contrib_SyncBatchNorm", "BatchNorm"),
    ],
)
def test_old_names_are_the_same_converters(old: str, new: str) -> None:
    first, second = TABLE.importer(old, 1), TABLE.importer(new, 1)
    assert first is not None
    assert second is not None
    assert first.function is second.function


@pytest.mark.parametrize("mode", ["size", "odd_scale"])
@pytest.mark.parametrize("scale", [0.29, 0.57, 1.1, 1.16])
def test_scaled_lengths_are_those_of_float32(mx: Any, mode: str, scale: float) -> None:
    """29 of 100 pixels, where the product in float64 is just below."""
    attrs = {"mode": mode, "scale_height": scale, "scale_width": scale}
    symbol = mx.sym.contrib.BilinearResize2D(mx.sym.var("x"), **attrs)
    shape = (1, 1, 100, 25)
    _, (expected,), _ = symbol.infer_shape(x=shape)
    model = serde.to_relay(symbol, input_shapes={"x": shape})
    assert model.main.body.checked_type.shape == expected
