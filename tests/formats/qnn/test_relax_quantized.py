"""Quantised operators in TVM: the integers of Relay's kernels, with parameters that are inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_run import run_function

import serde.relay as relay

_WIDE = pytest.mark.wide


def _expect(function: relay.Function, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    module = relay.IRModule.from_expr(function)
    found = relay.create_executor("graph", mod=module).evaluate()(*arrays)
    return [np.asarray(each) for each in (found if isinstance(found, (list, tuple)) else [found])]


def _check(function: relay.Function, *arrays: np.ndarray) -> None:
    found, expected = run_function(function, *arrays), _expect(function, arrays)
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_array_equal(actual, wanted)


def _parameters(length: int) -> list[relay.Var]:
    shape = (length,) if length else ()
    return [relay.var("scale", shape=shape), relay.var("zero", shape=shape, dtype="int32")]


@_WIDE
@pytest.mark.parametrize(
    ("compute", "rounding", "target"),
    [
        ("None", "UPWARD", "int8"),
        ("None", "TONEAREST", "int32"),
        ("int64", "TONEAREST", "uint8"),
        ("float32", "UPWARD", "uint8"),
        ("float32", "TONEAREST", "int32"),
        ("float64", "UPWARD", "int32"),
        ("float64", "TONEAREST", "int16"),
    ],
)
def test_requantize_by_scales_that_are_inputs(compute: str, rounding: str, target: str) -> None:
    random = np.random.default_rng(0)
    dtypes = ("int8", "uint8", "int16", "int32", "int64")
    data = [relay.var(dtype, shape=(40, 7), dtype=dtype) for dtype in dtypes]
    parameters = [*_parameters(7), relay.var("out_scale", shape=())]
    parameters.append(relay.var("out_zero", shape=(), dtype="int32"))
    attributes = {"axis": 1, "rounding": rounding, "compute_dtype": compute, "out_dtype": target}
    results = [relay.qnn.op.requantize(x, *parameters, **attributes) for x in data]
    arrays = []
    for dtype in dtypes:
        info = np.iinfo(dtype)
        ends = max(info.min, -(2**20)), min(info.max, 2**20)
        arrays.append(random.integers(*ends, (40, 7)).astype(dtype))
    arrays.append((10.0 ** random.uniform(-6, 3, 7)).astype(np.float32))
    arrays.append(random.integers(-50, 50, 7).astype(np.int32))
    arrays += [np.array(0.37, np.float32), np.array(-4, np.int32)]
    _check(relay.Function([*data, *parameters], relay.Tuple(results)), *arrays)


@pytest.mark.parametrize(
    "scale", [0.5, *(pytest.param(scale, marks=_WIDE) for scale in (1e-6, 1e30, 0.0))]
)
def test_quantize_what_is_beyond_the_range(scale: float) -> None:
    values = [
        np.nan,
        np.inf,
        -np.inf,
        -0.0,
        1e38,
        0.5,
        -0.5,
        1.5,
        2.5,
        127.5,
        3e9,
        2147483520,
        1e-45,
    ]
    x, parameters = relay.var("x", shape=(len(values),)), _parameters(0)
    dtypes = ("int8", "uint8", "int16", "uint16", "int32")
    results = [relay.qnn.op.quantize(x, *parameters, out_dtype=dtype) for dtype in dtypes]
    function = relay.Function([x, *parameters], relay.Tuple(results))
    _check(
        function, np.array(values, np.float32), np.array(scale, np.float32), np.array(3, "int32")
    )


@_WIDE
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dequantize_along_an_axis(dtype: str) -> None:
    random = np.random.default_rng(0)
    x, parameters = relay.var("x", shape=(5, 4), dtype="int32"), _parameters(5)
    found = relay.qnn.op.dequantize(x, *parameters, axis=0, out_dtype=dtype)
    data = random.integers(-(2**31), 2**31 - 1, (5, 4)).astype(np.int32)
    scale = random.uniform(0, 1e-4, 5).astype(np.float32)
    _check(relay.Function([x, *parameters], found), data, scale, np.arange(5, dtype=np.int32))


@_WIDE
@pytest.mark.parametrize(
    ("groups", "layouts", "zeros", "out_dtype"),
    [
        (1, ("NCHW", "OIHW"), 4, "int32"),
        (2, ("NCHW", "OIHW"), 4, "int64"),
        (1, ("NHWC", "HWIO"), 0, "int32"),
        (2, ("NHWC", "HWIO"), 4, "int16"),
    ],
)
def test_convolve_with_zero_points_that_are_inputs(
    groups: int, layouts: tuple[str, str], zeros: int, out_dtype: str
) -> None:
    random = np.random.default_rng(0)
    lengths = {"N": 1, "C": 4, "H": 6, "W": 5}
    kernel = {"O": 4, "I": 4 // groups, "H": 3, "W": 2}
    shapes = [lengths[letter] for letter in layouts[0]], [kernel[letter] for letter in layouts[1]]
    x = relay.var("x", shape=shapes[0], dtype="uint8")
    w = relay.var("w", shape=shapes[1], dtype="int8")
    zero = relay.var("zero", shape=(), dtype="int32")
    weight_zero = relay.var("weight_zero", shape=(zeros,) if zeros else (), dtype="int32")
    found = relay.qnn.op.conv2d(
        x, w, zero, weight_zero, relay.const(0.5), relay.const(0.25), (3, 2), 4,
        strides=(2, 1), padding=(1, 0, 0, 2), groups=groups,
        data_layout=layouts[0], kernel_layout=layouts[1], out_dtype=out_dtype,
    )  # fmt: skip
    _check(
        relay.Function([x, w, zero, weight_zero], found),
        random.integers(0, 255, shapes[0]).astype(np.uint8),
        random.integers(-128, 127, shapes[1]).astype(np.int8),
        np.array(121, np.int32),
        np.arange(zeros, dtype=np.int32) if zeros else np.array(-3, np.int32),
    )


@_WIDE
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_multiply_matrices_with_zero_points_that_are_inputs(dtype: str) -> None:
    random = np.random.default_rng(0)
    x, w = relay.var("x", shape=(3, 70), dtype=dtype), relay.var("w", shape=(5, 70), dtype="int8")
    zero = relay.var("zero", shape=(), dtype="int32")
    weight_zero = relay.var("weight_zero", shape=(5,), dtype="int32")
    scales = relay.const(0.5), relay.const(np.full(5, 0.25, np.float32))
    found = relay.qnn.op.dense(x, w, zero, weight_zero, *scales, 5, "int32")
    info = np.iinfo(dtype)
    _check(
        relay.Function([x, w, zero, weight_zero], found),
        random.integers(info.min, info.max, (3, 70)).astype(dtype),
        random.integers(-128, 127, (5, 70)).astype(np.int8),
        np.array(9, np.int32),
        np.arange(-2, 3, dtype=np.int32),
    )
