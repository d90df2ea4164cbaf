"""Weights of TFLite whose scales belong to blocks, which lie in a tensor of their own."""

from __future__ import annotations

from pathlib import Path

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from ai_edge_litert import interpreter
from support.tflite_models import Node, T, make_graph, schema

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError

RNG = np.random.default_rng(2)
ROWS, COLUMNS, BLOCK = 8, 64, 32
CODES = RNG.integers(-7, 8, (ROWS, COLUMNS)).astype(np.int8)
SCALES = RNG.uniform(0.005, 0.02, (ROWS, COLUMNS // BLOCK)).astype(np.float16)


def blockwise(zero: int = 0, scales: int = 2, zeros: int = 3, block: int = BLOCK) -> bytes:
    """Return a dense layer; the first tensors are its input and its weights."""
    tensors = [
        T((3, COLUMNS)),
        T((ROWS, COLUMNS), "int8", CODES),
        T(SCALES.shape, "float16", SCALES),
        T(SCALES.shape, "int32", np.full(SCALES.shape, zero)),
        T((3, ROWS)),
    ]
    node = Node("FULLY_CONNECTED", [0, 1], [4], {}, "FullyConnectedOptions", 13)
    model = schema.ModelT.InitFromObj(
        schema.Model.GetRootAs(make_graph(tensors, [node], [0], [4]), 0)
    )
    details = schema.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = scales, zeros, block
    quantization = schema.QuantizationParametersT()
    quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
    quantization.details = details
    weights = model.subgraphs[0].tensors[1]
    weights.quantization, weights.type = quantization, schema.TensorType.INT4
    low, high = CODES.reshape(-1, 2).T.astype(np.uint8) & 15
    model.buffers[weights.buffer].data = low | high << 4
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("zeros", [0, 3])
def test_blocks_are_widened(tmp_path: Path, zeros: int) -> None:
    """Exactly; XNNPACK, whose kernel alone knows blocks, quantises each row of the input."""
    path, x = tmp_path / "net.tflite", RNG.normal(size=(3, COLUMNS)).astype("f4")
    path.write_bytes(blockwise(zeros=zeros))
    model = serde.to_relay(path)
    (found,) = RelayEngine(model).run({model.meta.inputs[0]: x})
    weights = CODES * np.repeat(SCALES.astype("f4"), BLOCK, axis=1)
    np.testing.assert_allclose(found, x @ weights.T, rtol=1e-4, atol=1e-4)
    made = interpreter.Interpreter(model_content=path.read_bytes())
    made.allocate_tensors()
    made.set_tensor(0, x)
    made.invoke()
    assert np.abs(made.get_tensor(4) - found).max() < 0.02 * found.std()


@pytest.mark.parametrize(
    "change", [{"zero": 3}, {"scales": 99}, {"scales": 0}, {"zeros": 77}, {"block": 24}]
)
def test_blocks_that_are_refused(tmp_path: Path, change: dict[str, int]) -> None:
    (tmp_path / "net.tflite").write_bytes(blockwise(**change))
    with pytest.raises(UnsupportedModelError, match="quantised by blocks"):
        serde.to_relay(tmp_path / "net.tflite")
