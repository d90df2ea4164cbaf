"""MXNet's operators on images with channels last, against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.mxnet_check import agree
from support.mxnet_invoke import operator_graph

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

DTYPES = ["uint8", "float32", "float64"]
RUN = [13, 21]
"""Versions whose random numbers ONNX Runtime draws; it has no RandomUniform of 22."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def image(*shape: int, dtype: str = "float32", seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).uniform(0, 255, shape).astype(dtype)}


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int8", "int32", "int64"])
@pytest.mark.parametrize("shape", [(4, 5, 3), (2, 4, 5, 1)])
def test_to_tensor(mx: Any, shape: Any, dtype: str) -> None:
    # ONNX Runtime does not round to float16 before it widens
    bound = 5e-4 if dtype == "float16" else None
    agree(mx.sym.image.to_tensor(mx.sym.var("x")), image(*shape, dtype=dtype), tolerance=bound)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int32"])
@pytest.mark.parametrize(("shape", "mean", "std"), [
    ((3, 4, 5), (0.1, 2.0, 3.5), (2.0, 0.7, 3.0)),
    ((3, 4, 5), (0.5,), (0.2, 0.3, 0.4)),
    ((2, 1, 4, 5), (0.5,), (2.0,)),
    ((2, 3, 4, 5), (0.1, 2.0, 3.5), (2.0,)),
])  # fmt: skip
def test_normalize(mx: Any, shape: Any, mean: Any, std: Any, dtype: str) -> None:
    inputs = image(*shape, dtype="float32")
    inputs["x"] = (inputs["x"] / 6 + 4).astype(dtype)
    agree(mx.sym.image.normalize(mx.sym.var("x"), mean=mean, std=std), inputs)


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
@pytest.mark.parametrize("shape", [(5, 6, 3), (2, 5, 6, 1)])
def test_crop(mx: Any, shape: Any, dtype: str) -> None:
    symbol = mx.sym.image.crop(mx.sym.var("x"), x=1, y=2, width=4, height=3)
    agree(symbol, image(*shape, dtype=dtype))


def test_crop_outside(mx: Any) -> None:
    symbol = mx.sym.image.crop(mx.sym.var("x"), x=-1, y=2, width=2, height=2)
    with pytest.raises(UnsupportedModelError, match="outside of the image"):
        serde.to_relay(symbol, input_shapes={"x": (5, 6, 3)})


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
@pytest.mark.parametrize("side", ["left_right", "top_bottom"])
def test_flip(mx: Any, side: str, dtype: str) -> None:
    """Of an odd length MXNet does not write the middle, which stays as the memory is."""
    agree(getattr(mx.sym.image, f"flip_{side}")(mx.sym.var("x")), image(4, 6, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int32"])
def test_lighting(mx: Any, dtype: str) -> None:
    symbol = mx.sym.image.adjust_lighting(mx.sym.var("x"), alpha=(0.5, 0.3, -0.7))
    agree(symbol, image(8, 9, 3, dtype=dtype))


FACTORS = [(1.0, 1.0), (0.3, 0.3), (1.7, 1.7)]


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
@pytest.mark.parametrize(("low", "high"), FACTORS)
@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation"])
def test_one_factor(mx: Any, name: str, low: float, high: float, dtype: str) -> None:
    """Where the range of the factor is one number, nothing is left to chance."""
    symbol = getattr(mx.sym.image, f"random_{name}")(
        mx.sym.var("x"), min_factor=low, max_factor=high
    )
    # MXNet sums the grey of an image in float32, pixel by pixel: 1e-7 of 42 times 255 is off;
    # an integer may be cut off on the other side then
    bound = 1.0 if dtype in ("uint8", "int32") and name != "brightness" else 1e-4
    agree(symbol, image(6, 7, 3, dtype=dtype), tolerance=bound, opsets=RUN)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("turn", [0.0, 0.25, 0.5, 0.9, 1.3])
def test_one_hue(mx: Any, turn: float, dtype: str) -> None:
    inputs = image(6, 7, 3, dtype=dtype)
    inputs["x"][0, 0] = 77
    inputs["x"][0, 1] = [10, 200, 200]
    inputs["x"][0, 2] = [200, 10, 200]
    symbol = mx.sym.image.random_hue(mx.sym.var("x"), min_factor=turn, max_factor=turn)
    # MXNet turns hue in degrees of float32: 3e-5 of 360
    agree(symbol, inputs, tolerance=2e-4, opsets=RUN)


RANGES: list[tuple[str, dict[str, float]]] = [
    ("brightness", {"min_factor": 0.5, "max_factor": 1.5}),
    ("contrast", {"min_factor": 0.5, "max_factor": 1.5}),
    ("saturation", {"min_factor": 0.5, "max_factor": 1.5}),
    ("hue", {"min_factor": 0.0, "max_factor": 1.0}),
    ("color_jitter", {"brightness": 0.3, "contrast": 0.2, "saturation": 0.1, "hue": 0.2}),
    ("color_jitter", {"brightness": 0.3, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}),
    ("lighting", {"alpha_std": 0.1}),
    ("flip_left_right", {}),
    ("flip_top_bottom", {}),
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("name", "attrs"), RANGES)
def test_chance(mx: Any, name: str, attrs: dict[str, float], dtype: str) -> None:
    """Two hundred runs of ours have the shape, the dtype and the moments of as many of MXNet's."""
    mx.random.seed(11)
    onnxruntime.set_seed(11)
    inputs = image(4, 6, 3, dtype=dtype)
    symbol = getattr(mx.sym.image, f"random_{name}")(mx.sym.var("x"), **attrs)
    given = mx.nd.array(inputs["x"], dtype=dtype)
    theirs = np.stack(
        [getattr(mx.nd.image, f"random_{name}")(given, **attrs).asnumpy() for _ in range(200)]
    )
    model = serde.to_relay(symbol, input_shapes={"x": (4, 6, 3)}, input_dtypes={"x": dtype})
    single = run(model.main, [inputs["x"]], mod=model.mod)
    assert (single.shape, single.dtype) == (inputs["x"].shape, inputs["x"].dtype)
    proto = serde.from_relay(model, format="onnx", opset=21).SerializeToString()
    session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
    ours = np.stack([session.run(None, inputs)[0] for _ in range(200)])
    assert ours.dtype == theirs.dtype
    spread = theirs.std(0) + 1e-3
    # the mean of 200 draws lies within a quarter of their deviation of another such mean
    assert (np.abs(ours.mean(0) - theirs.mean(0)) <= 0.4 * spread + 1e-3).all()
    assert (np.abs(ours.std(0) - theirs.std(0)) <= 0.35 * spread + 1e-3).all()


@pytest.mark.parametrize("name", ["hue", "contrast", "lighting"])
def test_four_channels(mx: Any, name: str) -> None:
    attrs = {} if name == "lighting" else {"min_factor": 0.5, "max_factor": 1.5}
    symbol = getattr(mx.sym.image, f"random_{name}")(mx.sym.var("x"), **attrs)
    with pytest.raises(UnsupportedModelError, match="4 channels"):
        serde.to_relay(symbol, input_shapes={"x": (5, 4, 4)})


SIZES = [((5, 7), (9, 4)), ((6, 8), (3, 4)), ((9, 8), (3, 2)), ((4, 3), (8, 6)), ((5, 4), (5, 4)),
         ((13, 11), (7, 5)), ((1, 6), (3, 2))]  # fmt: skip


@pytest.mark.parametrize(("interp", "dtype"), [
    *((way, dtype) for way in (0, 1, 3, 4) for dtype in DTYPES),
    *((way, dtype) for way in (2, 5) for dtype in ("float32", "float64")),
])  # fmt: skip
@pytest.mark.parametrize(("old", "new"), SIZES)
def test_resize(mx: Any, old: Any, new: Any, interp: int, dtype: str) -> None:
    symbol = mx.sym.image.resize(mx.sym.var("x"), size=new[::-1], interp=interp)
    # OpenCV's weights are of float32, those of Lanczos from other sums of sines: 3e-7 of 255 off
    bound = 0.0 if dtype == "uint8" else 1e-4 if interp == 4 else 2e-6
    agree(symbol, image(*old, 3, dtype=dtype), tolerance=bound)


@pytest.mark.parametrize("way", [2, 5])
def test_resize_of_bytes_that_depends_on_vectors(mx: Any, way: int) -> None:
    symbol = mx.sym.image.resize(mx.sym.var("x"), size=(3, 4), interp=way)
    with pytest.raises(UnsupportedModelError, match="as its vectors fall"):
        serde.to_relay(symbol, input_shapes={"x": (6, 7, 3)}, input_dtypes={"x": "uint8"})


@pytest.mark.parametrize("attrs", [
    {"size": 4}, {"size": (4,)}, {"size": 4, "keep_ratio": True}, {"size": (3, 5)},
    {"size": (3, 5), "keep_ratio": True},
])  # fmt: skip
@pytest.mark.parametrize("shape", [(9, 7, 3), (5, 7, 1), (2, 7, 9, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_resize_to(mx: Any, shape: Any, attrs: dict[str, Any], dtype: str) -> None:
    symbol = mx.sym.image.resize(mx.sym.var("x"), **attrs)
    agree(symbol, image(*shape, dtype=dtype), opsets=[13, 17, 21])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_resize_as_of_a_file(mx: Any, dtype: str) -> None:
    agree(
        operator_graph("_cvimresize", ["x"], {"w": 4, "h": 5, "interp": 1}),
        image(7, 6, 3, dtype=dtype),
    )


@pytest.mark.parametrize("attrs", [
    {}, {"value": 7.0}, {"values": (1.0, 2.0, 3.0)}, {"values": (1.0, 2.0)},
    {"type": 1}, {"type": 2}, {"type": 3}, {"type": 4},
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_border(mx: Any, attrs: dict[str, Any], dtype: str) -> None:
    sides = {"top": 1, "bot": 2, "left": 3, "right": 0}
    symbol = operator_graph("_cvcopyMakeBorder", ["x"], {**sides, **attrs})
    agree(symbol, image(5, 4, 3, dtype=dtype))
