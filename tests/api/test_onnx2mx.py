"""The drop-in for ``mxnet.contrib.onnx``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serde.compat import import_mxnet, onnx2mx
from serde.errors import MissingDependency

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A convolution, a batch normalisation and a dense layer."""
    generator = np.random.default_rng(1)
    weights = {
        "w": generator.normal(size=(4, 3, 3, 3)),
        "scale": generator.uniform(0.5, 1.5, 4),
        "shift": generator.normal(size=4),
        "mean": generator.normal(size=4),
        "var": generator.uniform(0.5, 1.5, 4),
        "dense": generator.normal(size=(5, 4 * 6 * 6)) / 9,
        "bias": generator.normal(size=5),
    }
    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "w"], ["c"]),
        make("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
        make("Relu", ["n"], ["r"]),
        make("Flatten", ["r"], ["f"]),
        make("Gemm", ["f", "dense", "bias"], ["y"], transB=1),
    ]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "net",
        [info("x", 1, ["batch", 3, 8, 8])],
        [info("y", 1, ["batch", 5])],
        [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    target = tmp_path / "net.onnx"
    onnx.save(model, target)
    return target


def mxnet():
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


X = np.random.default_rng(2).normal(size=(2, 3, 8, 8)).astype(np.float32)


def wanted(path: Path) -> np.ndarray:
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


def test_metadata_names_inputs_without_values(path: Path) -> None:
    assert onnx2mx.get_model_metadata(path) == {
        "input_tensor_data": [("x", (0, 3, 8, 8))],
        "output_tensor_data": [("y", (0, 5))],
    }


def test_symbol_and_parameters_run_in_a_module(path: Path) -> None:
    mx = mxnet()
    symbol, arg_params, aux_params = onnx2mx.import_model(path)
    assert set(aux_params) == {"mean", "var"}
    module = mx.mod.Module(symbol, data_names=["x"], label_names=None)
    module.bind(for_training=False, data_shapes=[("x", X.shape)])
    module.set_params(arg_params, aux_params)
    module.forward(mx.io.DataBatch([mx.nd.array(X)]))
    found = module.get_outputs()[0].asnumpy()
    np.testing.assert_allclose(found, wanted(path), rtol=2e-5, atol=2e-5)


def test_gluon_block_runs(path: Path) -> None:
    mx = mxnet()
    block = onnx2mx.import_to_gluon(path, mx.cpu())
    found = block(mx.nd.array(X)).asnumpy()
    np.testing.assert_allclose(found, wanted(path), rtol=2e-5, atol=2e-5)
