"""Sparse tensors of TFLite files, judged by LiteRT, which fills them up as it runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from ai_edge_litert import schema_py_generated as schema
from support.tflite_models import T, make_model, run_litert

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError

CASES = {
    "rows": ((4, 6), [0, 1], {}, "DS"),
    "columns": ((4, 6), [1, 0], {}, "DS"),
    "both axes": ((4, 6), [0, 1], {}, "SS"),
    "blocks": ((8, 8), [0, 1, 2, 3], {0: 4, 1: 2}, "DSDD"),
    "blocks along one axis": ((8, 8), [0, 1, 2], {1: 4}, "DSD"),
    "three axes": ((2, 3, 4), [0, 1, 2], {}, "DDS"),
}
"""Shapes, orders in which axes are walked, blocks, and which axes are dense and sparse."""


def vector(values: list[int]) -> Any:
    made = schema.Int32VectorT()
    made.values = values
    return made


def encode(x: np.ndarray, order: list[int], blocks: dict[int, int], kinds: str) -> tuple[Any, Any]:
    """Return values as they are stored, and what tells where they stand."""
    lengths = [n // blocks.get(axis, 1) for axis, n in enumerate(x.shape)] + list(blocks.values())
    split, names = [], []
    for axis, n in enumerate(x.shape):
        split += [n // blocks[axis], blocks[axis]] if axis in blocks else [n]
        names += [axis, x.ndim + list(blocks).index(axis)] if axis in blocks else [axis]
    walked = x.reshape(split).transpose([names.index(each) for each in order])
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap, sparsity.dimMetadata = order, list(blocks), []
    rows: list[tuple[int, ...]] = [()]
    for level, kind in enumerate(kinds):
        made = schema.DimensionMetadataT()
        length = lengths[order[level]]
        found = [[(*row, i) for i in range(length)] for row in rows]
        if kind == "S":
            found = [[each for each in group if walked[each].any()] for group in found]
            made.format = 1
            ends = list(itertools.accumulate(map(len, found), initial=0))
            made.arraySegmentsType = made.arrayIndicesType = 1
            made.arraySegments = vector(ends)
            made.arrayIndices = vector([each[-1] for group in found for each in group])
        else:
            made.denseSize = length
        rows = [each for group in found for each in group]
        sparsity.dimMetadata.append(made)
    return np.array([walked[each] for each in rows], x.dtype), sparsity


def sparse_model(x: np.ndarray, sparsity: Any, stored: np.ndarray) -> bytes:
    """Return a model that adds a sparse tensor to its input."""
    given = T(x.shape, str(x.dtype), x)
    model = schema.ModelT.InitFromObj(
        schema.Model.GetRootAs(make_model("DENSIFY", [given], [T(x.shape, str(x.dtype))]), 0)
    )
    graph = model.subgraphs[0]
    graph.tensors[0].sparsity = sparsity
    model.buffers[graph.tensors[0].buffer].data = np.frombuffer(stored.tobytes(), np.uint8)
    code, added = schema.OperatorCodeT(), schema.OperatorT()
    code.builtinCode = schema.BuiltinOperator.ADD
    model.operatorCodes.append(code)
    for name in (b"x", b"y"):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type = name, list(x.shape), graph.tensors[1].type
        graph.tensors.append(tensor)
    added.opcodeIndex, added.inputs, added.outputs = 1, [2, 1], [3]
    added.builtinOptionsType = schema.BuiltinOptions.AddOptions
    added.builtinOptions = schema.AddOptionsT()
    graph.operators.append(added)
    graph.inputs, graph.outputs = [2], [3]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("name", CASES)
def test_values_stand_where_litert_puts_them(name: str, tmp_path: Path) -> None:
    shape, order, blocks, kinds = CASES[name]
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape).astype("f4")
    x[rng.random(shape) < 0.7] = 0
    stored, sparsity = encode(x, order, blocks, kinds)
    data = sparse_model(x, sparsity, stored)
    feed = rng.normal(size=shape).astype("f4")
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    (expected,) = run_litert(data, [feed], optimised=True)
    np.testing.assert_array_equal(expected, x + feed)
    (found,) = RelayEngine(serde.to_relay(path)).run({"x": feed})
    np.testing.assert_array_equal(found, expected)
    again = serde.convert(path, tmp_path / "again.tflite", check=True)
    assert again.passed


@pytest.mark.parametrize("what", ["segments", "order", "size", "index"])
def test_parts_that_do_not_fit(what: str, tmp_path: Path) -> None:
    x = np.eye(4, dtype="f4")
    stored, sparsity = encode(x, [0, 1], {}, "DS")
    rows, columns = sparsity.dimMetadata
    if what == "segments":
        columns.arraySegments = vector([0, 3, 2, 3, 4])
    elif what == "order":
        sparsity.traversalOrder = [0, 7]
    elif what == "size":
        rows.denseSize = 2**30
    else:
        columns.arrayIndices = vector([0, 1, 2, 9])
    path = tmp_path / "net.tflite"
    path.write_bytes(sparse_model(x, sparsity, stored))
    with pytest.raises(FormatError):
        serde.to_relay(path)
