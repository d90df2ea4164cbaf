"""Operators of MXNet's ``contrib`` namespace, sequences and sparse storage, against MXNet."""

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
FLOATS = ("float16", "float32", "float64")
DTYPES = (*FLOATS, "int8", "int32", "int64", "uint8")
HALVES = [[-2.5, -0.5, 0.0, 0.5, 1.5, 2.6]]


def named(*names: str) -> list[Any]:
    return [sym.var(name) for name in names]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def of(dtype: str) -> np.ndarray:
    return np.abs(HALVES).astype(dtype) if dtype == "uint8" else np.array(HALVES).astype(dtype)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["round_ste", "sign_ste", "gradientmultiplier"])
def test_straight_through(op: str, dtype: str) -> None:
    (x,) = named("x")
    agree(getattr(sym.contrib, op)(x), {"x": of(dtype)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attrs", [{}, {"a": 1.5, "b": 2.0, "c": 3.0}, {"c": -0.75}], ids=str)
def test_quadratic(attrs: dict[str, float], dtype: str) -> None:
    (x,) = named("x")
    agree(sym.contrib.quadratic(x, **attrs), {"x": of(dtype)})


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attrs", [{}, {"rtol": 0.5, "atol": 0.1}], ids=str)
@pytest.mark.parametrize("apart", [0, 1])
def test_allclose(apart: int, attrs: dict[str, float], dtype: str) -> None:
    x, y = named("x", "y")
    inputs = {"x": of(dtype), "y": of(dtype) + np.array(apart, dtype)}
    agree(sym.contrib.allclose(x, y, **attrs), inputs)


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.inf, np.inf),
        (np.inf, -np.inf),
        (np.inf, 1.0),
        (1.0, np.inf),
        (np.nan, np.nan),
        (np.nan, 1.0),
    ],
)
def test_allclose_of_no_numbers(left: float, right: float, equal_nan: bool) -> None:
    x, y = named("x", "y")
    inputs = {"x": np.array([left, 0], np.float32), "y": np.array([right, 0], np.float32)}
    agree(sym.contrib.allclose(x, y, equal_nan=equal_nan), inputs)


@pytest.mark.wide
@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_last_of_a_sequence(dtype: str, axis: int, rank: int) -> None:
    x, y = named("x", "y")
    data = np.arange(48).reshape(2, 3, *(4, 2)[: rank - 2], -1)[..., 0].astype(dtype)
    agree(sym.SequenceLast(x, axis=axis), {"x": data})
    ends = np.array([1, 2, 2] if axis == 0 else [1, 3]).astype(dtype)
    net = sym.SequenceLast(x, y, axis=axis, use_sequence_length=True)
    agree(net, {"x": data, "y": ends})


@pytest.mark.parametrize("axis", [0, 1])
def test_last_of_sequences_of_any_length(axis: int) -> None:
    x, y = named("x", "y")
    net = sym.SequenceLast(x, y, axis=axis, use_sequence_length=True)
    model = serde.to_relay(
        net, input_shapes={"x": ("a", "b", 4), "y": ("b" if axis == 0 else "a",)}
    )
    proto = serde.from_relay(model, format="onnx")
    # MXNet cuts off what is behind the point of a length.
    ends = np.array([1.7, 2, 1] if axis == 0 else [1.7, 3], np.float32)
    inputs = {"x": normal(2, 3, 4), "y": ends}
    same(run_onnx(proto.SerializeToString(), inputs)[1], run_mxnet(net, {}, inputs))


@pytest.mark.parametrize("attrs", [{}, {"fix_gamma": False, "eps": 0.1}], ids=str)
def test_batch_norm_with_relu(attrs: dict[str, Any]) -> None:
    """MXNet has it for four axes of float32 alone."""
    net = sym.contrib.BatchNormWithReLU(sym.var("x"), name="n", output_mean_var=True, **attrs)
    values = np.linspace(0.5, 2, 3, dtype=np.float32)
    params = {"n_gamma": values, "n_beta": 1 - values, "n_moving_mean": values / 4}
    params["n_moving_var"] = values * 2
    inputs = {"x": normal(2, 3, 4, 5)}
    model = serde.to_relay(net, params=params, input_shapes={"x": (2, 3, 4, 5)})
    assert list(model.meta.outputs) == net.list_outputs()
    proto = serde.from_relay(model, format="onnx")
    same(run_onnx(proto.SerializeToString(), inputs)[1], run_mxnet(net, params, inputs))


def test_sparse_embedding_clips_as_the_dense_one_does() -> None:
    x, y = named("x", "y")
    net = sym.contrib.SparseEmbedding(x, y, input_dim=3, output_dim=2)
    agree(net, {"x": np.array([1, 0, 5, -1], np.float32), "y": normal(3, 2)})


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_cast_of_storage_keeps_the_values(stype: str) -> None:
    (x,) = named("x")
    net = sym.cast_storage(sym.cast_storage(x, stype=stype), stype="default")
    agree(net, {"x": normal(3, 4) * np.eye(3, 4, dtype=np.float32)})


@pytest.mark.parametrize("shape", [(3, 4), (4, 2, 3)])
def test_retained_rows(shape: tuple[int, ...]) -> None:
    x, y = named("x", "y")
    net = sym.sparse.retain(sym.cast_storage(x, stype="row_sparse"), y)
    agree(net, {"x": normal(*shape), "y": np.array([0, 2], np.float32)})


@pytest.mark.parametrize(
    "attrs", [{"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": 0}], ids=str
)
def test_square_sum(attrs: dict[str, Any]) -> None:
    (x,) = named("x")
    net = sym._internal._square_sum(sym.cast_storage(x, stype="row_sparse"), **attrs)
    agree(net, {"x": normal(3, 4)})


@pytest.mark.parametrize("ends", [(4, 4), (1, 3), (0, 2)])
def test_hawkes_process(ends: tuple[int, int]) -> None:
    inputs = {
        "lda": np.array([[1.5, 2.0, 3.0], [0.5, 1.0, 2.0]], np.float32),
        "alpha": np.array([0.2, 0.3, 0.4], np.float32),
        "beta": np.array([1.0, 2.0, 0.3], np.float32),
        "state": np.array([[1, 2, 3], [0, 0.5, 0]], np.float32),
        "lags": np.array([[0.6, 0.7, 0.8, 0.9], [1, 2, 3, 4]], np.float32),
        "marks": np.array([[0, 1, 2, 1], [1, 2, 1, 1]], np.int32),
        "valid_length": np.array(ends, np.float32),
        "max_time": np.array([10, 12], np.float32),
    }
    net = sym.contrib.hawkesll(*named(*inputs))
    # Sums of logarithms up to 60 in another order.
    model = agree(net, inputs, tolerance=1e-6 * 60)
    assert list(model.meta.outputs) == net.list_outputs()


LABELS = np.array([[1, 2, 2], [3, 0, 0]], np.float32)
CTC: dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]] = {
    "padded": ({}, {"label": LABELS}),
    "last": ({"blank_label": "last"}, {"label": np.array([[1, 2, 2], [3, -1, 0]], np.float32)}),
    "integers": ({}, {"label": LABELS.astype(np.int32)}),
    "empty": ({}, {"label": np.array([[0, 1], [1, 1]], np.float32)}),
    "data lengths": (
        {"use_data_lengths": True},
        {"label": LABELS, "times": np.array([4, 3], np.float32)},
    ),
    "both lengths": (
        {"use_data_lengths": True, "use_label_lengths": True},
        {
            "label": LABELS,
            "times": np.array([5, 3], np.float32),
            "counts": np.array([2, 0], np.float32),
        },
    ),
}


@pytest.mark.parametrize("case", CTC)
def test_ctc_loss(case: str) -> None:
    attrs, given = CTC[case]
    net = sym.CTCLoss(*named("data", *given), **attrs)
    # The logarithm of a sum of exponentials, in another order.
    model = agree(net, {"data": normal(6, 2, 5), **given}, tolerance=5e-6, returns=True)
    assert list(model.meta.outputs) == net.list_outputs()


def test_ctc_loss_of_too_short_a_sequence_is_zero() -> None:
    net = sym.CTCLoss(*named("data", "label"))
    label = np.array([[1, 1], [1, 2]], np.float32)
    agree(net, {"data": normal(2, 2, 5), "label": label}, tolerance=5e-6)


def test_ctc_loss_of_any_batch_and_time() -> None:
    net = sym.CTCLoss(*named("data", "label"))
    shapes = {"data": ("time", "batch", 9), "label": ("batch", 4)}
    proto = serde.from_relay(serde.to_relay(net, input_shapes=shapes), format="onnx")
    label = np.random.default_rng(1).integers(0, 9, (3, 4)).astype(np.float32)
    inputs = {"data": normal(40, 3, 9) * 4, "label": label}
    expected = run_mxnet(net, {}, inputs)
    same(run_onnx(proto.SerializeToString(), inputs)[1], expected, 5e-6)


def node_of(op: str, attrs: dict[str, str], **shapes: tuple[int, ...]) -> RelayModel:
    """The operator as a file has it; MXNet runs it on a GPU only, or not at all."""
    names = list(shapes)
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[place, 0, 0] for place in range(len(names))]
    nodes.append({"op": op, "name": "node", "attrs": attrs, "inputs": inputs})
    graph = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return serde.to_relay(json.dumps(graph), input_shapes=shapes)


def compared(model: RelayModel, inputs: dict[str, np.ndarray], wanted: np.ndarray) -> None:
    same([run(model.main, list(inputs.values()), mod=model.mod)], [wanted], 1e-5)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), inputs)[1], [wanted], 1e-5)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 2, 5)])
def test_fft(shape: tuple[int, ...]) -> None:
    data = normal(*shape)
    found = np.fft.fft(data)
    wanted = np.stack([found.real, found.imag], -1).reshape(*shape[:-1], -1).astype(np.float32)
    model = node_of("_contrib_fft", {"compute_size": "128"}, data=shape)
    compared(model, {"data": data}, wanted)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 2, 10)])
def test_ifft(shape: tuple[int, ...]) -> None:
    data = normal(*shape)
    wanted = np.fft.ifft(data[..., ::2] + 1j * data[..., 1::2]).real * (shape[-1] // 2)
    compared(node_of("_contrib_ifft", {}, data=shape), {"data": data}, wanted.astype(np.float32))


def test_count_sketch() -> None:
    data = normal(3, 4)
    places, signs = np.array([[0, 1, 0, 2]], np.float32), np.array([[1, -1, 1, 1]], np.float32)
    wanted = np.stack([data[:, 0] + data[:, 2], -data[:, 1], data[:, 3]], axis=1)
    attrs = {"out_dim": "3", "processing_batch_size": "32"}
    model = node_of("_contrib_count_sketch", attrs, data=(3, 4), h=(1, 4), s=(1, 4))
    compared(model, {"data": data, "h": places, "s": signs}, wanted)


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("Custom", "runs Python code of the model's author"),
        ("_CustomFunction", "runs Python code of the model's author"),
        ("_Native", "runs Python code of the model's author"),
        ("_NDArray", "runs Python code of the model's author"),
        ("_contrib_getnnz", "does not tell a stored zero from none"),
        ("_contrib_edge_id", "does not tell a stored zero from none"),
        ("_contrib_dgl_adjacency", "a graph in csr storage"),
        ("_contrib_dgl_subgraph", "a graph in csr storage"),
    ],
)
def test_refusals_name_the_reason(op: str, reason: str) -> None:
    with pytest.raises(serde.UnsupportedModelError, match=reason) as caught:
        node_of(op, {"op_type": "mine"}, data=(3, 4))
    assert [(issue.op, issue.node) for issue in caught.value.report.issues] == [(op, "node")]
