"""Signatures of TFLite models, which name inputs and outputs in an order of their own."""

from __future__ import annotations

from pathlib import Path

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import Node, T, make_graph, make_model, run_litert, schema

import serde
from serde.engine.interpreter import RelayEngine


def named(names: dict[str, int]) -> list[object]:
    found = []
    for name, number in names.items():
        made = schema.TensorMapT()
        made.name, made.tensorIndex = name, number
        found.append(made)
    return found


def test_names_in_another_order(tmp_path: Path) -> None:
    """What is read has the order of the graph, and so has what LiteRT runs in a check."""
    tensors = [T((2,)), T((3,)), T((2,)), T((3,))]
    nodes = [Node("NEG", [0], [2], {}, "NegOptions"), Node("ABS", [1], [3], {}, "AbsOptions")]
    data = make_graph(tensors, nodes, [0, 1], [2, 3])
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = "main", 0
    signature.inputs = named({"a": 1, "b": 0})
    signature.outputs = named({"c": 3, "d": 2})
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "net.tflite"
    path.write_bytes(bytes(builder.Output()))
    read = serde.to_relay(path)
    assert (read.meta.inputs, read.meta.outputs) == (("b", "a"), ("d", "c"))
    feed = {"a": np.float32([1, -2, 3]), "b": np.float32([4, -5])}
    found = RelayEngine(read).run(feed)
    np.testing.assert_array_equal(found[0], [-4, 5])
    np.testing.assert_array_equal(found[1], [1, 2, 3])
    assert serde.convert(path, tmp_path / "again.tflite", check=True).passed
    assert serde.check(path, tmp_path / "again.tflite").passed


def test_states_of_codes_stay_codes(tmp_path: Path) -> None:
    """What is kept of one run has the type and the scale that the next run reads."""
    rng = np.random.default_rng(1)
    steps, units, width = 3, 4, 5
    state = T((1, units * steps), "int16", scale=0.001, is_variable=True)
    given = [
        T((1, width), "int8", scale=0.05),
        T((units, width), "int8", rng.integers(-99, 99, (units, width)), scale=0.01),
        T((units, steps), "int16", rng.integers(-9999, 9999, (units, steps)), scale=0.0001),
        T((units,), "int32", rng.integers(-99, 99, units), scale=1e-7),
        state,
    ]
    data = make_model(
        "SVDF", given, [T((1, units), "int8", scale=0.1, zero=-128)], "SVDFOptions",
        version=3, rank=1, fusedActivationFunction=1,
    )  # fmt: skip
    (tmp_path / "net.tflite").write_bytes(data)
    model = serde.to_relay(tmp_path / "net.tflite")
    kept, later = model.inputs()[1].type, model.main.body.type.fields[1]
    assert (later.shape, later.dtype) == (kept.shape, kept.dtype) == ((1, units * steps), "int16")
    x = rng.integers(-99, 99, (1, width)).astype(np.int8)
    feed = dict(zip(model.meta.inputs, [x, np.zeros(kept.shape, np.int16)], strict=True))
    found = RelayEngine(model).run(feed)[0]
    distance = np.abs(found.astype(int) - run_litert(data, [x])[0].astype(int))
    assert distance.max() <= 1
