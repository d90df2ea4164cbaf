"""Resizing of PyTorch: lengths and factors, each kernel, and factors that give no whole length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

torch = pytest.importorskip("torch")

from support.torch_functions import assert_equal_results, sequences, trace  # noqa: E402
from support.torch_runner import load  # noqa: E402

import serde  # noqa: E402
from serde.core.report import Report  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.torch.importer import to_relay  # noqa: E402
from serde.torch.model import Graph, Input, Node, Ref, TorchModel  # noqa: E402
from serde.torch.options import TorchImportOptions  # noqa: E402

interpolate = torch.nn.functional.interpolate

SIZES: list[dict[str, Any]] = [
    {"scale_factor": 2}, {"scale_factor": 1.7}, {"size": (7, 9)}, {"size": (3, 4)},
    {"scale_factor": 0.6}, {"scale_factor": (2, 1.5)}, {"size": (10, 12)}, {"size": (29, 31)},
    {"scale_factor": 1.3, "recompute_scale_factor": True}, {"size": (1, 1)},
]  # fmt: skip
KERNELS: list[dict[str, Any]] = [
    {"mode": "nearest"}, {"mode": "nearest-exact"}, {"mode": "area"},
    {"mode": "bilinear"}, {"mode": "bilinear", "align_corners": True},
    {"mode": "bilinear", "antialias": True},
    {"mode": "bicubic"}, {"mode": "bicubic", "align_corners": True},
    {"mode": "bicubic", "antialias": True},
]  # fmt: skip
IMAGES = sequences((1, 2, 5, 6))[0]


def label(values: dict[str, Any]) -> str:
    return " ".join(map(str, values.values()))


@pytest.mark.parametrize("size", SIZES, ids=label)
@pytest.mark.parametrize("kernel", KERNELS, ids=label)
def test_images(size: dict[str, Any], kernel: dict[str, Any]) -> None:
    def function(x):
        return interpolate(x, **size, **kernel)

    assert_equal_results(trace(function, IMAGES), function, IMAGES)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
@pytest.mark.parametrize(
    "size", [{"scale_factor": 2}, {"scale_factor": 1.7}, {"size": 7}], ids=label
)
def test_other_ranks(rank: int, mode: str, size: dict[str, Any]) -> None:
    (x,) = sequences((1, 2, 5, 3, 4)[: 2 + rank])
    name = mode if mode != "linear" else {1: "linear", 3: "trilinear"}[rank]

    def function(x):
        return interpolate(x, mode=name, **size)

    assert_equal_results(trace(function, x), function, x)


@pytest.mark.parametrize("length", [5, 7, 11, 13, 49])
@pytest.mark.parametrize("size", [6, 10, 14, 33, 98, 147])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_elements_are_those_of_pytorch(length: int, size: int, mode: str) -> None:
    """PyTorch finds them in float32, which may round to another element."""
    x = torch.arange(float(length)).reshape(1, 1, length)

    def function(x):
        return interpolate(x, size=size, mode=mode)

    assert_equal_results(trace(function, x), function, x)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float64"])
def test_nearest_of_other_dtypes(dtype: str) -> None:
    x = (IMAGES * 10).abs().to(getattr(torch, dtype))

    def function(x):
        return interpolate(x, size=(7, 11))

    assert_equal_results(trace(function, x), function, x)


@pytest.mark.parametrize("size", [*SIZES[:6], {"size": 9}, {"scale_factor": 1.5}], ids=label)
@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[2], *KERNELS[4:7]], ids=label)
def test_interpolate_of_scripts(size: dict[str, Any], kernel: dict[str, Any]) -> None:
    """Scripts call the function by one name, and leave its meaning to the operator."""
    arguments = {"size": None, "scale_factor": None, **size, **kernel}
    given = [(name, list(each) if isinstance(each, tuple) else each)
             for name, each in arguments.items()]  # fmt: skip
    node = Node("aten::__interpolate", "resize", [("input", Ref("x")), *given], ["y"])
    graph = Graph(["x"], [node], [Ref("y")])
    model = TorchModel(graph, [Input("x", "x", IMAGES.shape, "float32")], ["y"], {}, "torchscript")
    (found,) = RelayEngine(to_relay(model, TorchImportOptions(), Report())).run(
        {"x": IMAGES.numpy()}
    )
    expected = interpolate(IMAGES, **size, **kernel)
    torch.testing.assert_close(torch.from_numpy(found.copy()), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "size", "roi"),
    [
        ('mode = "nearest", nearest_mode = "round_prefer_ceil"', (10, 8), (0.1, 0.1, 0.8, 0.8)),
        ('mode = "nearest", nearest_mode = "floor"', (10, 8), (0.1, 0.1, 0.8, 0.8)),
        ('mode = "linear"', (10, 4), (0.1, 0.0, 0.8, 1.0)),
        ('mode = "linear"', (5, 8), (0.0, -0.2, 1.0, 0.7)),
    ],
)
def test_a_cropped_region_is_written(
    attributes: str, size: tuple[int, int], roi: tuple[float, ...], tmp_path: Path
) -> None:
    """PyTorch has no function for it, whatever elements the whole image would be read at."""
    rows, columns = size
    top, left, bottom, right = roi
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[1, 2, 5, 4] x) => (float[1, 2, {rows}, {columns}] y)
        <float[8] roi = {{0, 0, {top}, {left}, 1, 1, {bottom}, {right}}},
         int64[4] sizes = {{1, 2, {rows}, {columns}}}> {{
          y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", {attributes},
                      extrapolation_value = 9.0> (x, roi, , sizes)
        }}"""
    )
    onnx.save(proto, tmp_path / "net.onnx")
    serde.convert(tmp_path / "net.onnx", tmp_path / "net_torch", target_format="torch")
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 4)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (expected,) = session.run(None, {"x": x})
    found = load(tmp_path / "net_torch")(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
