"""Signatures of TFLite models, which name inputs and outputs in an order of their own."""

from __future__ import annotations

from pathlib import Path

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import Node, T, make_graph, schema

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
