"""Transforms and blocks of ONNX whose lengths, axes and sizes are known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from support.onnx_suite import interpret

import serde

RNG = np.random.default_rng(0)


def model_of(text: str, opset: int = 20) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {text}')


def assert_like_numpy(proto: onnx.ModelProto, expected: np.ndarray, **given: Any) -> None:
    """Compare the Relay model, and that written again in ONNX Runtime, with NumPy's numbers."""
    model = serde.to_relay(proto)
    written = serde.from_relay(model, format="onnx", opset=20)
    session = onnxruntime.InferenceSession(written.SerializeToString())
    for (found,) in (interpret(model, given), session.run(None, given)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=2e-4)


def parts(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag], -1).astype(np.float32)


@pytest.mark.parametrize("length", [5, 8, 11])
@pytest.mark.parametrize("onesided", [0, 1])
def test_a_length_that_is_an_input(length: int, onesided: int) -> None:
    body = f"{{ y = DFT <onesided = {onesided}> (x, n) }}"
    proto = model_of(f"(float[N, L, 1] x, int64 n) => (float[N, M, 2] y) {body}")
    x = RNG.standard_normal((2, 8, 1)).astype(np.float32)
    transform = np.fft.rfft if onesided else np.fft.fft
    assert_like_numpy(proto, parts(transform(x[..., 0], n=length)), x=x, n=np.array(length))


@pytest.mark.parametrize("axis", [1, 2, -2, -3])
def test_an_axis_that_is_an_input(axis: int) -> None:
    proto = model_of(
        "(float[2, 6, 5, 1] x, int64 axis) => (float[2, M, K, 2] y)"
        " { y = DFT <onesided = 1> (x, , axis) }"
    )
    x = RNG.standard_normal((2, 6, 5, 1)).astype(np.float32)
    wanted = parts(np.fft.rfft(x[..., 0], axis=axis if axis > 0 else axis + 1))
    assert_like_numpy(proto, wanted, x=x, axis=np.array(axis))


@pytest.mark.parametrize("length", [None, 7, 8, 9])
def test_the_real_signal_of_an_open_number_of_frequencies(length: int | None) -> None:
    attrs = "<onesided = 1, inverse = 1>"
    inputs = "float[N, F, 2] x" + ("" if length is None else ", int64 n")
    proto = model_of(
        f"({inputs}) => (float[N, M, 1] y) {{ y = DFT {attrs} (x{', n' * (length is not None)}) }}"
    )
    signal = RNG.standard_normal((2, length or 8))
    given = {"x": parts(np.fft.rfft(signal)), **({} if length is None else {"n": np.array(length)})}
    assert_like_numpy(proto, signal[..., None].astype(np.float32), **given)


@pytest.mark.parametrize("known", ["step", "length", "both", "none"])
@pytest.mark.parametrize("windowed", [False, True])
def test_frames_of_an_open_signal(windowed: bool, known: str) -> None:
    constants = {"step": "int64 step = {3}", "size": "int64 size = {8}"}
    fixed = {"step": ["step"], "length": ["size"], "both": ["step", "size"], "none": []}[known]
    inputs = {
        "x": "float[N, L, 1] x",
        "step": "int64 step",
        "w": "float[W] w",
        "size": "int64 size",
    }
    left_out = {*fixed, *([] if windowed else ["w"])}
    names = [name for name in inputs if name not in left_out]
    declared = ", ".join(inputs[name] for name in names)
    held = f"<{', '.join(constants[each] for each in fixed)}>" if fixed else ""
    call = f"STFT (x, step, {'w' if windowed else ''}, size)"
    proto = model_of(f"({declared}) => (float[N, F, K, 2] y) {held} {{ y = {call} }}", 17)
    x = RNG.standard_normal((2, 29, 1)).astype(np.float32)
    window = np.hanning(8).astype(np.float32)
    frames = np.stack([x[:, start : start + 8, 0] for start in range(0, 22, 3)], axis=1)
    wanted = parts(np.fft.rfft(frames * (window if windowed else 1)))
    given = {"x": x, "step": np.array(3), "w": window, "size": np.array(8)}
    assert_like_numpy(proto, wanted, **{name: given[name] for name in names})


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("known", [False, True])
def test_blocks_of_images_of_computed_lengths(known: bool, dtype: str) -> None:
    """The block may be an input, too; ONNX's reference is the judge."""
    block = "" if known else ", int64[2] block"
    held = "<int64[2] block = {3, 2}>" if known else ""
    attrs = "<strides = [2, 1], pads = [1, 0, 0, 1], dilations = [1, 2]>"
    proto = model_of(
        f"({dtype}[N, R, L] x, int64[2] image{block}) => ({dtype}[N, C, H, W] y) {held}"
        f"{{ y = Col2Im {attrs} (x, image, block) }}"
    )
    x = RNG.integers(-8, 8, (2, 18, 2 * 4)).astype(
        np.dtype(dtype.replace("float", "float32") if dtype == "float" else dtype)
    )
    given = {"x": x, "image": np.array([4, 5])}
    given |= {} if known else {"block": np.array([3, 2])}
    (wanted,) = ReferenceEvaluator(proto).run(None, given)
    assert wanted.shape == (2, 3, 4, 5)
    assert_like_numpy(proto, wanted, **given)
