"""Models of TFLite that TVM's importer reads, as TVM computes them and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("flatbuffers")
pytest.importorskip("onnxruntime")

import onnxruntime as runtime
from support.relax_imports import read_and_run, run_in_tvm
from support.relax_tflite import Net, Quantization
from tvm.relax.frontend.tflite import from_tflite

import serde

pytestmark = pytest.mark.wide

_random = np.random.default_rng(5)


def _floats(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> np.ndarray:
    return _random.integers(-60, 60, shape).astype(np.int8)


def _per_tensor(scale: float, zero: int) -> Quantization:
    return [scale], [zero], 0


def _net(net: Net) -> int:
    """Return a net of a convolution, an addition, pooling, a reshape, a layer and softmax."""
    x = net.input((1, 8, 8, 3))
    operands = [x, net.const(_floats(4, 3, 3, 3)), net.const(_floats(4))]
    y = net.call(
        "CONV_2D", operands, (1, 4, 4, 4), options="Conv2DOptions",
        Padding=0, StrideW=2, StrideH=2, FusedActivationFunction=1,
    )  # fmt: skip
    operands = [y, net.const(_floats(1, 3, 3, 4)), net.const(_floats(4))]
    z = net.call(
        "DEPTHWISE_CONV_2D", operands, (1, 4, 4, 4), options="DepthwiseConv2DOptions",
        Padding=0, StrideW=1, StrideH=1, DepthMultiplier=1, FusedActivationFunction=3,
    )  # fmt: skip
    y = net.call("ADD", [y, z], (1, 4, 4, 4), options="AddOptions")
    y = net.call(
        "AVERAGE_POOL_2D", [y], (1, 2, 2, 4), options="Pool2DOptions",
        Padding=0, StrideW=2, StrideH=2, FilterWidth=3, FilterHeight=3,
    )  # fmt: skip
    shape = net.const(np.array([1, 16], np.int32))
    y = net.call("RESHAPE", [y, shape], (1, 16), options="ReshapeOptions", NewShape=[1, 16])
    operands = [y, net.const(_floats(5, 16)), net.const(_floats(5))]
    y = net.call("FULLY_CONNECTED", operands, (1, 5), options="FullyConnectedOptions")
    return net.call("SOFTMAX", [y], (1, 5), options="SoftmaxOptions", Beta=1.0)


def _quantized_convolution(net: Net) -> int:
    operands = [
        net.input((1, 6, 6, 3), "int8", _per_tensor(0.05, -3)),
        net.const(_bytes(2, 3, 3, 3), ([0.01, 0.02], [0, 0], 0)),
        net.const(np.array([300, -200], np.int32), ([0.0005, 0.001], [0, 0], 0)),
    ]
    return net.call(
        "CONV_2D", operands, (1, 6, 6, 2), "int8", quantization=_per_tensor(0.1, 5),
        options="Conv2DOptions", Padding=0, StrideW=1, StrideH=1,
    )  # fmt: skip


def _quantized_sum(net: Net) -> int:
    operands = [
        net.input((2, 3), "int8", _per_tensor(0.05, -3)),
        net.input((2, 3), "int8", _per_tensor(0.03, 4)),
    ]
    result = _per_tensor(0.1, 5)
    return net.call("ADD", operands, (2, 3), "int8", quantization=result, options="AddOptions")


def _resized(net: Net) -> int:
    operands = [net.input((1, 4, 4, 2)), net.const(np.array([7, 9], np.int32))]
    return net.call(
        "RESIZE_BILINEAR", operands, (1, 7, 9, 2),
        options="ResizeBilinearOptions", HalfPixelCenters=True,
    )  # fmt: skip


def _looked_up(net: Net) -> int:
    operands = [net.const(_floats(5, 6)), net.input((2,), "int32")]
    return net.call("GATHER", operands, (2, 6), options="GatherOptions", Axis=0)


def _inputs(net: Net) -> list[np.ndarray]:
    made = {
        "float32": _floats,
        "int8": lambda *shape: _random.integers(-128, 128, shape).astype(np.int8),
        "int32": lambda *shape: _random.integers(0, 4, shape).astype(np.int32),
    }
    return [made[dtype](*shape) for shape, dtype in net.declared()]


@pytest.mark.parametrize(
    "build", [_net, _quantized_convolution, _quantized_sum, _resized, _looked_up]
)
def test_a_model_of_tflite_leads_to_onnx_runtime(build: Callable[[Net], int]) -> None:
    """Sums of floats that are rounded to integers may differ by one."""
    net = Net()
    module: Any = from_tflite(net.model(build(net)))
    arrays = _inputs(net)
    (expected,) = run_in_tvm(module, arrays)
    proto = serde.export_model(module, format="onnx")
    session = runtime.InferenceSession(proto.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    results = (
        *session.run(None, dict(zip(names, arrays, strict=True))),
        *read_and_run(module, arrays),
    )
    for found in results:
        assert found.dtype == expected.dtype
        if expected.dtype.kind == "i":
            apart = np.abs(found.astype(int) - expected.astype(int))
            assert apart.max() <= 1
            assert np.count_nonzero(apart) <= apart.size // 50
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
