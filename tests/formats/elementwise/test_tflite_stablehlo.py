"""StableHLO's operators in TFLite files: LiteRT runs some of them, NumPy says what others give."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import Node, T, join_graphs, make_graph, make_model, run_litert

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError

UNARY: dict[str, Callable[..., Any]] = {
    "ABS": np.abs,
    "COSINE": np.cos,
    "EXPONENTIAL": np.exp,
    "FLOOR": np.floor,
    "LOG": np.log,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "NEGATE": np.negative,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "TANH": np.tanh,
}
BINARY: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "DIVIDE": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MULTIPLY": np.multiply,
    "POWER": np.power,
    "SUBTRACT": np.subtract,
}
RUN = {
    "ADD", "AND", "GATHER", "MAXIMUM", "MINIMUM", "MULTIPLY", "PAD", "REDUCE_WINDOW", "SCATTER",
    "SHIFT_LEFT",
}  # fmt: skip
"""What LiteRT 2.3 has kernels for."""


def check(path: Path, name: str, data: bytes, feeds: list[np.ndarray], wanted: Any) -> None:
    expected = np.asarray(wanted)
    ran = False
    for optimised in (False, True):
        with suppress(RuntimeError, ValueError):
            (given,) = run_litert(data, feeds, optimised=optimised)
            np.testing.assert_allclose(given, expected, rtol=1e-5)
            ran = True
    assert ran or name not in RUN
    path.write_bytes(data)
    model = serde.to_relay(path)
    (found,) = RelayEngine(model).run(dict(zip(model.meta.inputs, feeds, strict=True)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_arithmetic(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    function = {**UNARY, **BINARY}[name]
    feeds = [rng.uniform(0.1, 2, (2, 3)).astype(np.float32) for _ in range(1 + (name in BINARY))]
    data = make_model(f"STABLEHLO_{name}", [T((2, 3)) for _ in feeds], [T((2, 3))])
    check(tmp_path / "net.tflite", name, data, feeds, function(*feeds))


@pytest.mark.parametrize("name", ["AND", "OR"])
def test_truth(tmp_path: Path, name: str) -> None:
    pair = [np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)]
    data = make_model(f"STABLEHLO_{name}", [T((4,), "bool")] * 2, [T((4,), "bool")])
    wanted = getattr(np, f"logical_{name.lower()}")(*pair)
    check(tmp_path / "net.tflite", name, data, pair, wanted)


def test_shapes(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    path, given = tmp_path / "net.tflite", T((2, 3))
    data = make_model("STABLEHLO_RESHAPE", [given], [T((3, 2))])
    check(path, "RESHAPE", data, [x], x.reshape(3, 2))
    data = make_model("STABLEHLO_CONVERT", [given], [T((2, 3), "int32")])
    check(path, "CONVERT", data, [x], x.astype(np.int32))
    data = make_model(
        "STABLEHLO_CONCATENATE", [given, given], [T((2, 6))], "StablehloConcatenateOptions",
        dimension=1,
    )  # fmt: skip
    check(path, "CONCATENATE", data, [x, x], np.concatenate([x, x], 1))
    mask = x > 2
    data = make_model("STABLEHLO_SELECT", [T((2, 3), "bool"), given, given], [given])
    check(path, "SELECT", data, [mask, x, -x], np.where(mask, x, -x))


SCALAR = T(())


def two(op: str, dtype: str = "float32") -> bytes:
    """Return a graph of two scalars."""
    compares = op == "STABLEHLO_COMPARE"
    more = {"comparisonDirection": 5, "kind": "StablehloCompareOptions"} if compares else {}
    return make_model(op, [T((), dtype)] * 2, [T((), "bool" if compares else dtype)], **more)


def draw(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def windows(x: np.ndarray) -> np.ndarray:
    """Return maxima over windows of 2 by 3, two apart, padded by 1 in front."""
    padded = np.pad(x, [(1, 0), (0, 2)], constant_values=-1)
    seen = np.lib.stride_tricks.sliding_window_view(padded, (2, 3))[::2, ::1]
    return np.maximum(seen.max((2, 3)), -1)


def scattered(x: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> np.ndarray:
    found = x.copy()
    for (row,), update in zip(rows, updates, strict=True):
        if 0 <= row < len(x):
            found[row] += update
    return found


X, Y = draw(2, 3, 4), draw(3, 4, 5, seed=4)
ROWS = np.array([[2], [0], [2], [7]], np.int32)
INT = np.int32
CASES: dict[str, tuple[str, list[Any], Any, dict[str, Any], list[bytes]]] = {
    "clamp": ("CLAMP", [np.float32(-0.5), X, np.float32(0.4)], X.clip(-0.5, 0.4), {}, []),
    "cbrt": ("CBRT", [X], np.cbrt(X), {}, []),
    "remainder": ("REMAINDER", [X, np.float32([0.3] * 4)], np.fmod(X, np.float32(0.3)), {}, []),
    "shift": ("SHIFT_LEFT", [INT([3, -5]), INT([2, 1])], INT([12, -10]), {}, []),
    "broadcast": (
        "BROADCAST_IN_DIM", [draw(3, 1)], np.broadcast_to(draw(3, 1)[:, None], (3, 2, 4)).copy(),
        {"broadcastDimensions": [0, 2]}, [],
    ),
    "transpose": ("TRANSPOSE", [X], X.transpose(2, 0, 1).copy(), {"permutation": [2, 0, 1]}, []),
    "iota": ("IOTA", [], np.arange(3, dtype=INT)[:, None].repeat(2, 1), {"iotaDimension": 0}, []),
    "pad": (
        "PAD", [draw(3, 2), np.float32(9)],
        np.pad(np.insert(draw(3, 2), [1, 2], 9, axis=0), [(0, 2), (0, 0)], constant_values=9)[1:],
        {"edgePaddingLow": [-1, 0], "edgePaddingHigh": [2, 0], "interiorPadding": [1, 0]}, [],
    ),
    "slice": (
        "SLICE", [X], X[:, 1:3, 0:4:2].copy(),
        {"startIndices": [0, 1, 0], "limitIndices": [2, 3, 4], "strides": [1, 1, 2]}, [],
    ),
    "dynamic slice": (
        "DYNAMIC_SLICE", [X, INT(1), INT(-2), INT(9)], X[1:2, 0:2, 2:4].copy(),
        {"sliceSizes": [1, 2, 2]}, [],
    ),
    "dot": (
        "DOT_GENERAL", [X, Y], np.einsum("bkj,kjl->bl", X, Y),
        {"lhsContractingDimensions": [1, 2], "rhsContractingDimensions": [0, 1]}, [],
    ),
    "dot by batches": (
        "DOT_GENERAL", [X, draw(5, 4, 2, seed=5)],
        np.einsum("bij,ljb->bil", X, draw(5, 4, 2, seed=5)),
        {"lhsContractingDimensions": [2], "rhsContractingDimensions": [1],
         "lhsBatchingDimensions": [0], "rhsBatchingDimensions": [2]}, [],
    ),
    "reduce": (
        "REDUCE", [X, np.float32(0.5)], X.sum((0, 2)) + np.float32(0.5),
        {"dimensions": [0, 2], "bodySubgraphIndex": 1}, [two("STABLEHLO_ADD")],
    ),
    "reduce window": (
        "REDUCE_WINDOW", [draw(5, 6), np.float32(-1)], windows(draw(5, 6)),
        {"windowDimensions": [2, 3], "windowStrides": [2, 1], "padding": [1, 0, 0, 2],
         "bodySubgraphIndex": 1}, [two("STABLEHLO_MAXIMUM")],
    ),
    "sort": (
        "SORT", [X], np.sort(X, 1), {"dimension": 1, "comparatorSubgraphIndex": 1},
        [two("STABLEHLO_COMPARE")],
    ),
    "gather": (
        "GATHER", [X, INT([[1, 0], [0, 3]])], np.stack([X[1, :, 0:2], X[0, :, 2:4]]),
        {"offsetDims": [1, 2], "collapsedSliceDims": [0], "startIndexMap": [0, 2],
         "indexVectorDim": 1, "sliceSizes": [1, 3, 2]}, [],
    ),
    "gather in another order": (
        "GATHER", [X, INT([2, 0, 9, 1])], X[:, [2, 0, 2, 1]].transpose(0, 1, 2).copy(),
        {"offsetDims": [0, 2], "collapsedSliceDims": [1], "startIndexMap": [1],
         "indexVectorDim": 1, "sliceSizes": [2, 1, 4]}, [],
    ),
    "scatter": (
        "SCATTER", [draw(4, 5), ROWS, draw(4, 5, seed=6)],
        scattered(draw(4, 5), ROWS, draw(4, 5, seed=6)),
        {"updateWindowDims": [1], "insertedWindowDims": [0], "scatterDimsToOperandDims": [0],
         "indexVectorDim": 1, "updateComputationSubgraphIndex": 1}, [two("STABLEHLO_ADD")],
    ),
}  # fmt: skip
"""Operator, operands, result, options, and further graphs."""


@pytest.mark.parametrize("name", CASES)
def test_more(tmp_path: Path, name: str) -> None:
    """What operands are no inputs are constants: scalars and indices."""
    op, given, wanted, options, graphs = CASES[name]
    wanted = np.asarray(wanted)
    tensors = [
        T(each.shape, str(each.dtype), None if each.dtype == np.float32 and each.ndim else each)
        for each in map(np.asarray, given)
    ]
    kind = "".join(word.capitalize() for word in op.split("_"))
    made = [T(wanted.shape, str(wanted.dtype))]
    data = make_model(
        f"STABLEHLO_{op}", tensors, made, f"Stablehlo{kind}Options" if options else "", **options
    )
    feeds = [np.asarray(x) for x, t in zip(given, tensors, strict=True) if t.data is None]
    check(tmp_path / "net.tflite", op, join_graphs(data, *graphs), feeds, wanted)


def test_convolution(tmp_path: Path) -> None:
    """LiteRT's own convolution gives what axes in another order give."""
    x, w = draw(1, 6, 7, 4), draw(8, 3, 2, 2, seed=5)
    given = [T(x.shape), T(w.shape, data=w), T((8,), data=np.zeros(8))]
    own = make_model(
        "CONV_2D", given, [T((1, 3, 4, 8))], "Conv2DOptions", 6, padding=0, strideW=2, strideH=2
    )
    (expected,) = run_litert(own, [x], optimised=True)
    data = make_model(
        "STABLEHLO_CONVOLUTION",
        [T((4, 1, 6, 7)), T((3, 2, 2, 8), data=w.transpose(1, 2, 3, 0))],
        [T((1, 8, 3, 4))],
        "StablehloConvolutionOptions",
        windowStrides=[2, 2], padding=[0, 1, 0, 1], inputBatchDimension=1,
        inputFeatureDimension=0, inputSpatialDimensions=[2, 3], kernelInputFeatureDimension=2,
        kernelOutputFeatureDimension=3, kernelSpatialDimensions=[0, 1], outputBatchDimension=0,
        outputFeatureDimension=1, outputSpatialDimensions=[2, 3], featureGroupCount=2,
        batchGroupCount=1,
    )  # fmt: skip
    moved = x.transpose(3, 0, 1, 2).copy()
    check(tmp_path / "net.tflite", "", data, [moved], expected.transpose(0, 3, 1, 2))


def test_cases_and_loops(tmp_path: Path) -> None:
    branches = [
        make_model(f"STABLEHLO_{each}", [SCALAR], [SCALAR]) for each in ("NEGATE", "ABS", "FLOOR")
    ]
    kind = "StablehloCaseOptions"
    data = make_model(
        "STABLEHLO_CASE", [T((), "int32"), SCALAR], [SCALAR], kind, branchSubgraphIndices=[1, 2, 3]
    )
    whole = join_graphs(data, *branches)
    for index, wanted in ((0, 2.5), (1, 2.5), (2, -3.0), (9, -3.0)):
        feeds = [np.array(index, INT), np.array(-2.5, np.float32)]
        check(tmp_path / "net.tflite", "", whole, feeds, np.float32(wanted))
    test = make_graph(
        [SCALAR, T((), data=100.0), T((), "bool")],
        [Node("STABLEHLO_COMPARE", [0, 1], [2], {"comparisonDirection": 5},
              "StablehloCompareOptions")],
        [0], [2],
    )  # fmt: skip
    step = make_graph([SCALAR, SCALAR], [Node("STABLEHLO_ADD", [0, 0], [1])], [0], [1])
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    loop = make_model("STABLEHLO_WHILE", [SCALAR], [SCALAR], "StablehloWhileOptions", **options)
    whole = join_graphs(loop, test, step)
    check(tmp_path / "net.tflite", "", whole, [np.array(3, np.float32)], np.float32(192))


def test_random_numbers_are_refused_by_name(tmp_path: Path) -> None:
    data = make_model("RANDOM_UNIFORM", [T((1,), "int32")], [T((1,))])
    (tmp_path / "net.tflite").write_bytes(data)
    with pytest.raises(UnsupportedModelError, match="other numbers in every run"):
        serde.to_relay(tmp_path / "net.tflite")
