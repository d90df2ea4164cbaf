"""A model of every format goes into a store and comes back whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import serde
from serde.fleet.stores.listing import expand

WEIGHT = np.random.default_rng(11).normal(size=(16, 3, 3, 3)).astype(np.float32)
X = np.random.default_rng(12).normal(size=(1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A convolution as ONNX."""
    x = helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", 1, [1, 16, 6, 6])
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(WEIGHT, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "options", "files"),
    [
        ("net.onnx", {"save_as_external_data": False}, 1),
        ("data.onnx", {"save_as_external_data": True}, 2),
        ("net-symbol.json", {}, 2),
        ("net.relay", {}, 2),
        pytest.param("net.mlpackage", {"compute_precision": "float32"}, 3, marks=pytest.mark.wide),
        ("net_nnef", {}, 2),
        ("net.nnef.tgz", {}, 1),
    ],
)
def test_there_and_back(
    net: Path, tmp_path: Path, name: str, options: dict[str, object], files: int
) -> None:
    import fsspec

    pytest.importorskip({"mlpackage": "coremltools"}.get(name.rpartition(".")[2], "numpy"))
    pytest.importorskip("nnef" if "nnef" in name else "numpy")
    url = f"memory://{tmp_path.name}/{name}"
    serde.convert(net, url, **options)
    assert len(fsspec.filesystem("memory").find(f"/{tmp_path.name}")) == files
    assert [found.url for found in expand(f"memory://{tmp_path.name}/")] == [url]
    shapes = {"input_shapes": {"x": X.shape}} if name.endswith("symbol.json") else {}
    serde.convert(url, tmp_path / "back.onnx", **shapes)
    expected = onnxruntime.InferenceSession(net).run(None, {"x": X})[0]
    session = onnxruntime.InferenceSession(tmp_path / "back.onnx")
    found = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_source_for_pytorch_goes_there_weights_first(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    sent: list[str] = []
    fs = fsspec.filesystem("memory")
    put = type(fs).pipe_file

    def pipe_file(self: object, path: str, value: bytes, **options: object) -> None:
        sent.append(path.rpartition("/")[2])
        put(self, path, value, **options)

    monkeypatch.setattr(type(fs), "pipe_file", pipe_file)
    serde.convert(net, f"memory://{tmp_path.name}/net_torch")
    assert sent == ["model.safetensors", "model.py", "config.json"]
    assert list(expand(f"memory://{tmp_path.name}/")) == []  # Such a folder is not read.
