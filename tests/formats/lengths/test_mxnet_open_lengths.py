"""Shapes with several open lengths: MXNet computes at two sizes what ONNX Runtime does.

MXNet has no lengths that are computed: an axis becomes as long as another, or as a vector that is
made as long.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import serde
from serde.compat import import_mxnet

SIZES = ({"b": 2, "n": 6, "c": 3, "m": 5}, {"b": 3, "n": 5, "c": 2, "m": 4})
CONSTANTS = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "three": np.array([3]),
    "one_two": np.array([1, 2]),
    "rows": np.array([-1, 4]),
    "far": np.array([2**31 - 1]),
    "unit": np.ones((1, 1), np.float32),
    "line": np.arange(3, dtype=np.float32)[None],
    "pad2": np.array([0, 2, 0, 3]),
    "pad3": np.array([0, 0, 1, 0, 1, 0]),
    "pad4": np.array([1, 1, 2, 0, 0, 1, 1, 2]),
    "mirror4": np.array([0, 1, 2, 0, 0, 1, 1, 2]),
}


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def node(op: str, inputs: str, output: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def lengths(*parts: str) -> list[NodeProto]:
    """Nodes that join lengths of ``x``, b and n, and constants to ``shape``."""
    return [
        node("Shape", "x", "all"),
        node("Gather", "all zero", "b"),
        node("Gather", "all one", "n"),
        node("Concat", " ".join(parts), "shape", axis=0),
    ]


NETS: dict[str, tuple[Sequence[str | int], list[NodeProto]]] = {
    "expand": (
        ["b", "n"],
        [*lengths("b", "n"), node("Expand", "unit shape", "e"), node("Add", "x e", "y")],
    ),
    "expand to rows": (
        ["b", "n"],
        [*lengths("b", "three"), node("Expand", "line shape", "e"),
         node("Concat", "x e", "y", axis=1)],
    ),
    "expand twice to one": (
        ["b", "n"],
        [*lengths("b", "n", "n"), node("Unsqueeze", "x one", "u"), node("Expand", "u shape", "y")],
    ),
    "expand flags": (
        ["b", "n"],
        [*lengths("b", "one", "n", "n"), node("Cast", "x", "flag", to=TensorProto.BOOL),
         node("Unsqueeze", "flag one_two", "u"), node("Expand", "u shape", "e"),
         node("Cast", "e", "y", to=TensorProto.FLOAT)],
    ),
    "expand to a sum": (
        ["b", "n"],
        [node("Concat", "x x", "w", axis=1), node("Pad", "w pad2", "z"),
         node("Shape", "z", "shape"), node("Expand", "unit shape", "e"),
         node("Concat", "z e", "y", axis=0)],
    ),
    "expand to a difference": (
        ["b", "n"],
        [node("Slice", "x two far one", "z"), node("Shape", "z", "shape"),
         node("Expand", "unit shape", "e"), node("Concat", "z e", "y", axis=0)],
    ),
    "zeros": (
        ["b", "n"],
        [*lengths("b", "n"), node("ConstantOfShape", "shape", "z"),
         node("Concat", "z x", "y", axis=0)],
    ),
    "rows and back": (
        ["b", "n", 4],
        [node("Reshape", "x rows", "flat"), node("Relu", "flat", "r"), node("Shape", "x", "shape"),
         node("Reshape", "r shape", "y")],
    ),
    **{f"pad2 {mode}": (["b", "n"], [node("Pad", "x pad2", "y", mode=mode)])
       for mode in ("constant", "edge", "reflect")},
    "pad3": (["b", 4, "n"], [node("Pad", "x pad3", "y")]),
    **{f"pad4 {mode}": (["b", "c", "n", "m"], [node("Pad", "x pad4", "y", mode=mode)])
       for mode in ("constant", "edge")},
    "pad4 reflect": (["b", "c", "n", "m"], [node("Pad", "x mirror4", "y", mode="reflect")]),
    "pad integers": (
        ["b", "n"],
        [node("Cast", "x", "i", to=TensorProto.INT32), node("Pad", "i pad2", "y")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_mxnet_computes_it_at_two_sizes(name: str, mx: types.ModuleType, tmp_path: Path) -> None:
    shape, nodes = NETS[name]
    path = tmp_path / "net.onnx"
    used = {each for made in nodes for each in made.input}
    constants = [numpy_helper.from_array(CONSTANTS[each], each) for each in used & CONSTANTS.keys()]
    kind = TensorProto.INT32 if name == "pad integers" else TensorProto.FLOAT
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        nodes, "net", [x], [helper.make_tensor_value_info("y", kind, None)], constants
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    serde.convert(path, tmp_path / "net-symbol.json")
    session = onnxruntime.InferenceSession(path)
    for sizes in SIZES:
        fixed = [each if isinstance(each, int) else sizes[each] for each in shape]
        given = np.random.default_rng(0).normal(size=fixed).astype(np.float32) * 3
        (expected,) = session.run(None, {"x": given})
        found = run(mx, tmp_path / "net", {"x": given})
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def run(mx: types.ModuleType, stem: Path, given: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return what MXNet's executor computes of a pair of files."""
    symbol = mx.sym.load(f"{stem}-symbol.json")
    loaded = mx.nd.load(f"{stem}-0000.params")
    params = {key[4:]: value for key, value in loaded.items()} if loaded else {}
    values = {name: mx.nd.array(each, dtype=each.dtype) for name, each in given.items()}
    return symbol.bind(mx.cpu(), {**params, **values}).forward()[0].asnumpy()
