"""MXNet's parts of attention, ranges as long as an axis, and softmax over lengths."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, same
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.ir.model import RelayModel
from serde.relay.run.interpreter import run

mx = import_mxnet()
sym = mx.sym
DTYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8")


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def named(*names: str) -> list[Any]:
    return [sym.var(name) for name in names]


@pytest.mark.parametrize("heads", [1, 3])
def test_interleaved_self_attention(heads: int) -> None:
    x, y = named("x", "y")
    joined = normal(5, 2, 36)
    agree(sym.contrib.interleaved_matmul_selfatt_qk(x, heads=heads), {"x": joined})
    weights = normal(2 * heads, 5, 5)
    net = sym.contrib.interleaved_matmul_selfatt_valatt(x, y, heads=heads)
    agree(net, {"x": joined, "y": weights})


@pytest.mark.parametrize("heads", [1, 3])
def test_interleaved_attention_of_an_encoder(heads: int) -> None:
    x, y = named("x", "y")
    keys_values = normal(5, 2, 24)
    net = sym.contrib.interleaved_matmul_encdec_qk(x, y, heads=heads)
    agree(net, {"x": normal(7, 2, 12), "y": keys_values})
    net = sym.contrib.interleaved_matmul_encdec_valatt(x, y, heads=heads)
    agree(net, {"x": keys_values, "y": normal(2 * heads, 7, 5)})


def test_self_attention_of_any_batch_and_time() -> None:
    """The layout of gluonnlp's BERT: a softmax over the length of each sample."""
    x, n = named("x", "n")
    products = sym.contrib.interleaved_matmul_selfatt_qk(x, heads=2)
    lengths = sym.broadcast_axis(sym.expand_dims(n, axis=1), axis=1, size=2)
    lengths = sym.reshape(lengths, shape=(-1, 0), reverse=True)
    weights = sym.softmax(products, lengths, use_length=True)
    net = sym.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=2)
    model = serde.to_relay(
        net,
        input_shapes={"x": ("time", "batch", 24), "n": ("batch", "time")},
        input_dtypes={"n": "int32"},
    )
    proto = serde.from_relay(model, format="onnx")
    assert len(proto.graph.node) <= 26
    ends = np.array([[3, 0, 4, 1], [1, 2, 2, 4], [4, 4, 0, 0]], np.int32)
    inputs = {"x": normal(4, 3, 24), "n": ends}
    same(run_onnx(proto.SerializeToString(), inputs)[1], run_mxnet(net, {}, inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_division_by_the_root_of_the_width(dtype: str) -> None:
    (x,) = named("x")
    agree(sym.contrib.div_sqrt_dim(x), {"x": np.arange(30).reshape(2, 3, 5).astype(dtype)})


RANGES = [
    {},
    {"axis": 0},
    {"axis": -1},
    {"axis": 1, "start": 2, "step": -0.5},
    {"axis": 1, "repeat": 2},
    {"repeat": 3},
    {"axis": 1, "repeat": -2},
    {"axis": 0, "start": 1.7, "step": 2.6},
]


@pytest.mark.parametrize("attrs", RANGES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_range_as_long_as_an_axis(dtype: str, attrs: dict[str, Any]) -> None:
    (x,) = named("x")
    agree(sym.contrib.arange_like(x, **attrs), {"x": np.zeros((2, 3, 5), dtype)})


@pytest.mark.wide
@pytest.mark.parametrize("attrs", RANGES, ids=str)
def test_range_as_long_as_an_open_axis(attrs: dict[str, Any]) -> None:
    (x,) = named("x")
    net = sym.contrib.arange_like(x, **attrs)
    model = serde.to_relay(net, input_shapes={"x": ("a", "b", "c")})
    proto = serde.from_relay(model, format="onnx")
    inputs = {"x": np.zeros((2, 3, 5), np.float32)}
    expected = run_mxnet(net, {}, inputs)
    same(run_onnx(proto.SerializeToString(), inputs)[1], expected)
    same([run(model.main, list(inputs.values()), mod=model.mod)], expected)


LENGTHS = {-1: (2, 3), 1: (2, 4), 0: (3, 4)}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("axis", LENGTHS)
def test_softmax_over_lengths(axis: int, dtype: str) -> None:
    x, y = named("x", "y")
    longest = (2, 3, 4)[axis]
    ends = np.random.default_rng(axis + 1).integers(0, longest + 1, LENGTHS[axis]).astype(dtype)
    net = sym.softmax(x, y, axis=axis, use_length=True)
    agree(net, {"x": normal(2, 3, 4), "y": ends})


@pytest.mark.parametrize(
    ("data", "result", "tolerance"),
    [
        ("float16", None, 2e-3),
        # MXNet sums float16 in float16 whatever the result is to be.
        ("float16", "float32", 2e-3),
        ("float64", "float32", None),
        # MXNet computes float32 in float32 whatever the result is to be.
        ("float32", "float64", 2e-7),
        ("float64", None, None),
    ],
)
def test_softmax_over_lengths_in_another_dtype(
    data: str, result: str | None, tolerance: float | None
) -> None:
    x, y = named("x", "y")
    attrs = {} if result is None else {"dtype": result}
    net = sym.softmax(x, y, use_length=True, temperature=2.5, **attrs)
    ends = np.array([[0, 1, 4], [2, 3, 4]], np.int32)
    agree(net, {"x": normal(2, 3, 4, dtype=data), "y": ends}, tolerance=tolerance)


@pytest.mark.parametrize("narrow", ["softmax", "log_softmax", "softmin"])
def test_softmax_rounds_to_a_narrower_dtype_at_the_end(narrow: str) -> None:
    (x,) = named("x")
    net = getattr(sym, narrow)(x, dtype="float32")
    agree(net, {"x": normal(3, 4, dtype="float64") * 1e3})


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_batch_dot(rank: int, transpose_a: bool, transpose_b: bool) -> None:
    x, y = named("x", "y")
    batch = (2, 3, 2)[: rank - 2]
    left = normal(*batch, *((5, 4) if transpose_a else (4, 5)))
    right = normal(*batch, *((6, 5) if transpose_b else (5, 6)))
    net = sym.batch_dot(x, y, transpose_a=transpose_a, transpose_b=transpose_b)
    agree(net, {"x": left, "y": right})


def test_batch_dot_of_an_open_batch() -> None:
    x, y = named("x", "y")
    net = sym.batch_dot(x, y, transpose_b=True)
    shapes = {"x": ("batch", 3, "queries", 4), "y": ("batch", 3, "keys", 4)}
    model = serde.to_relay(net, input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx")
    assert [node.op_type for node in proto.graph.node] == ["Transpose", "MatMul"]
    inputs = {"x": normal(2, 3, 5, 4), "y": normal(2, 3, 6, 4)}
    same(run_onnx(proto.SerializeToString(), inputs)[1], run_mxnet(net, {}, inputs))


def test_head_count_that_does_not_fit_is_refused() -> None:
    (x,) = named("x")
    net = sym.contrib.interleaved_matmul_selfatt_qk(x, heads=5)
    with pytest.raises(serde.UnsupportedModelError, match="an axis of 36 in 5 heads of 3 parts"):
        serde.to_relay(net, input_shapes={"x": (5, 2, 36)})


def window(op: str, w: int, symmetric: bool, **shapes: tuple[Any, ...]) -> RelayModel:
    """A sliding window of MXNet's later development, as its file has it."""
    names = list(shapes)
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    attrs = {"w": str(w), "symmetric": str(symmetric)}
    inputs = [[place, 0, 0] for place in range(len(names))]
    nodes.append(
        {"op": f"_contrib_sldwin_atten_{op}", "name": op, "attrs": attrs, "inputs": inputs}
    )
    graph = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    dtypes = {"dilation": "int32", "valid_length": "int32"}
    return serde.to_relay(
        json.dumps(graph),
        input_shapes=shapes,
        input_dtypes={name: dtypes.get(name, "float32") for name in names},
    )


def reached(times: int, dilation: np.ndarray, w: int, symmetric: bool) -> np.ndarray:
    """The place that each query sees in each step: (time, heads, steps)."""
    steps = np.arange(-w, w + 1 if symmetric else 1)
    return np.arange(times)[:, None, None] + dilation[:, None] * steps


def compared(model: RelayModel, inputs: dict[str, np.ndarray], wanted: np.ndarray) -> None:
    same([run(model.main, list(inputs.values()), mod=model.mod)], [wanted])
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), inputs)[1], [wanted])


WINDOWS = pytest.mark.parametrize(
    ("w", "symmetric", "open_"),
    [(2, True, False), (2, False, False), (1, True, True), (3, False, True), (0, True, False)],
)
DILATION = np.array([1, 2, 3], np.int32)


@WINDOWS
def test_window_scores(w: int, symmetric: bool, open_: bool) -> None:
    query, key = normal(2, 6, 3, 4), normal(2, 6, 3, 4) + 1
    places = reached(6, DILATION, w, symmetric)
    wanted = np.zeros((2, 6, 3, places.shape[2]), np.float32)
    for time, head, step in np.ndindex(*places.shape):
        place = places[time, head, step]
        if 0 <= place < 6:
            wanted[:, time, head, step] = (query[:, time, head] * key[:, place, head]).sum(-1)
    shape = ("batch", "time", 3, 4) if open_ else query.shape
    model = window("score", w, symmetric, query=shape, key=shape, dilation=(3,))
    compared(model, {"query": query, "key": key, "dilation": DILATION}, wanted)


@pytest.mark.wide
@WINDOWS
def test_window_context(w: int, symmetric: bool, open_: bool) -> None:
    places = reached(6, DILATION, w, symmetric)
    score, value = normal(2, 6, 3, places.shape[2]), normal(2, 6, 3, 4)
    wanted = np.zeros((2, 6, 3, 4), np.float32)
    for time, head, step in np.ndindex(*places.shape):
        place = places[time, head, step]
        if 0 <= place < 6:
            wanted[:, time, head] += score[:, time, head, step, None] * value[:, place, head]
    shapes = {
        "score": ("batch", "time", 3, places.shape[2]) if open_ else score.shape,
        "value": ("batch", "time", 3, 4) if open_ else value.shape,
    }
    model = window("context", w, symmetric, **shapes, dilation=(3,))
    compared(model, {"score": score, "value": value, "dilation": DILATION}, wanted)


@WINDOWS
def test_window_mask(w: int, symmetric: bool, open_: bool) -> None:
    places = reached(6, DILATION, w, symmetric)
    ends = np.array([6, 4], np.int32)
    within = (places >= 0) & (places < ends[:, None, None, None])
    own = np.arange(6)[:, None, None] < ends[:, None, None, None]
    wanted = (within & own).astype(np.float32)
    shape = ("batch", "time", 3, places.shape[2]) if open_ else wanted.shape
    lengths = ("batch",) if open_ else (2,)
    model = window("mask_like", w, symmetric, score=shape, dilation=(3,), valid_length=lengths)
    inputs = {"score": wanted + 7, "dilation": DILATION, "valid_length": ends}
    fed = {name: inputs[name] for name in model.meta.inputs}
    compared(model, fed, wanted)
