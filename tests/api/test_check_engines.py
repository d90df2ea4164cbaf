"""Engines of a check: what runs which model, and how it ends where one fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.tiers import first_of

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.checking.engines import engine_for_path
from serde.core.optional import require
from serde.core.weights import ArrayWeight
from serde.engine.base import run_engine
from serde.engine.fitting import cast_exactly
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError, FormatError, MissingDependency
from serde.relay.ir.expr import Expr, Var


def model_of(body: Expr, *params: Var, weights: Mapping[str, Any] | None = None) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    held = {name: ArrayWeight(value) for name, value in (weights or {}).items()}
    return relay.RelayModel(mod, held, relay.ModelMeta(outputs=("out",)))


def identity_model(*shape: int | str, dtype: str = "float32") -> Any:
    x = relay.var("x", shape=shape, dtype=dtype)
    return model_of(relay.copy(x), x)


def test_the_interpreter_tells_outputs_of_one_name_apart() -> None:
    x = relay.var("x", shape=(1, 3))
    model = model_of(relay.Tuple([relay.tanh(x), relay.negative(x)]), x)
    model = model.evolve(meta=relay.ModelMeta(outputs=("act", "act")))
    engine = RelayEngine(model)
    assert len(engine.outputs) == 2
    first, second = engine.run({"x": X})
    np.testing.assert_array_equal(first, np.tanh(X))
    np.testing.assert_array_equal(second, -X)


def write_onnx(path: Path, op: str = "Tanh") -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def absent(_name: str) -> bool:
    return False


X = np.array([[0.5, -1.0, 2.0]], "float32")


@pytest.mark.wide
def test_onnx_runtime_runs_an_onnx_file(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    engine = engine_for_path(get_bridge("onnx"), write_onnx(tmp_path / "m.onnx"))
    assert engine.name.startswith("onnxruntime ")
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X), rtol=1e-6)


def test_without_onnx_runtime_the_reference_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.onnx.engine.is_installed", absent)
    engine = engine_for_path(get_bridge("onnx"), write_onnx(tmp_path / "m.onnx"))
    assert engine.name.startswith("onnx.reference ")
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X), rtol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("runtime", [True, False])
def test_a_file_that_the_engine_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: bool
) -> None:
    if runtime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setattr("serde.onnx.engine.is_installed", absent)
    path = write_onnx(tmp_path / "m.onnx", "Unknown")
    with pytest.raises(CheckError, match=r"^onnx\S+ \S+ refuses .*m\.onnx"):
        engine_for_path(get_bridge("onnx"), path)


@pytest.mark.wide
@pytest.mark.parametrize("kept", [0, 40])
def test_a_malformed_target_is_no_refusal(tmp_path: Path, kept: int) -> None:
    source = write_onnx(tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(source.read_bytes()[:kept])
    with pytest.raises(FormatError):
        serde.check(source, tmp_path / "b.onnx")


def test_an_input_that_only_the_target_has() -> None:
    x, y = relay.var("x", shape=(1, 3)), relay.var("y", shape=(1, 3))
    engine = RelayEngine(model_of(relay.add(x, y), x, y))
    with pytest.raises(CheckError, match=r"the source has no input x \(there are: data\)"):
        run_engine(engine, {"data": X})


def test_inputs_of_other_names_go_by_their_place() -> None:
    x, y = relay.var("x", shape=(1, 3)), relay.var("y", shape=(1, 3))
    engine = RelayEngine(model_of(relay.subtract(x, y), x, y))
    (found,) = run_engine(engine, {"a": X, "b": 2 * X})
    np.testing.assert_array_equal(found, -X)


def test_equal_names_belong_together_whatever_their_place() -> None:
    x, y = relay.var("x", shape=(1, 3)), relay.var("y", shape=(1, 3))
    engine = RelayEngine(model_of(relay.subtract(x, y), x, y))
    (found,) = run_engine(engine, {"y": 2 * X, "data": X})
    np.testing.assert_array_equal(found, -X)


def test_the_interpreter_runs_what_no_framework_can() -> None:
    x, w = relay.var("x", shape=("N", 3)), relay.var("w", shape=(3,))
    weight = np.array([1.0, 2.0, 3.0], "float32")
    model = model_of(relay.add(relay.tanh(x), w), x, w, weights={"w": weight})
    engine = RelayEngine(model)
    assert engine.name == "relay interpreter"
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X) + weight, rtol=1e-6)


def mxnet_net() -> tuple[Any, dict[str, np.ndarray]]:
    """A dense layer with a loss head, its graph as a reader holds it."""

    def node(op: str, name: str, inputs: list[int] | None = None, **attrs: str) -> Any:
        entries = [SimpleNamespace(node=i, index=0) for i in inputs or []]
        return SimpleNamespace(
            op=op, name=name, inputs=entries, attrs=attrs, hidden={}, subgraphs=(), control_deps=()
        )

    nodes = [
        node("null", "data"),
        node("null", "fc_weight"),
        node("null", "fc_bias"),
        node("FullyConnected", "fc", [0, 1, 2], num_hidden="2"),
        node("null", "softmax_label"),
        node("SoftmaxOutput", "softmax", [3, 4]),
    ]
    graph = SimpleNamespace(nodes=nodes, attrs={}, heads=[SimpleNamespace(node=5, index=0)])
    arrays = {
        "fc_weight": np.array([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]], "float32"),
        "fc_bias": np.array([0.25, -0.25], "float32"),
    }
    weights = {name: ArrayWeight(value) for name, value in arrays.items()}
    return SimpleNamespace(graph=graph, arg=weights, aux={}), arrays


@pytest.mark.wide
def test_mxnet_runs_its_own_models_and_fills_labels() -> None:
    try:
        require("mxnet")
    except MissingDependency:
        pytest.skip("mxnet is not installed")
    native, arrays = mxnet_net()
    x = relay.var("data", shape=(1, 3))
    engine = get_bridge("mxnet").engine(native, model_of(relay.tanh(x), x))
    assert engine.name.startswith("mxnet 1.")
    logits = X @ arrays["fc_weight"].T + arrays["fc_bias"]
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(engine.run({"data": X})[0], expected, rtol=1e-5)


def test_without_mxnet_the_interpreter_runs_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.mxnet.engine.is_installed", absent)
    assert get_bridge("mxnet").engine(None, identity_model(3)).name == "relay interpreter"


def test_the_interpreter_runs_float16_models_of_mxnet() -> None:
    x, w = (relay.var(name, shape=(3,), dtype="float16") for name in "xw")
    weights = {"w": np.ones(3, "float16")}
    model = model_of(relay.add(x, w), x, w, weights=weights)
    assert get_bridge("mxnet").engine(None, model).name == "relay interpreter"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([1, -7], "int64"), "int32"),
        (np.array([2**24], "int64"), "float32"),
        (np.array([0.5, np.nan, -np.inf], "float16"), "float32"),
        (np.array([0.5, np.nan, -np.inf], "float32"), "float16"),
        (np.array([3.0, 0.0], "float32"), "uint8"),
        (np.array([0, 1], "int32"), "bool"),
        (np.array([True]), "float32"),
        (np.zeros((0, 3), "int64"), "int8"),
    ],
)
def test_values_that_another_dtype_holds(value: np.ndarray, dtype: str) -> None:
    found = cast_exactly(value, dtype)
    assert found is not None
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype("float64"), value.astype("float64"))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([2**31], "int64"), "int32"),
        (np.array([-1], "int64"), "uint64"),
        (np.array([2**24 + 1], "int64"), "float32"),
        (np.array([2**63 - 1], "int64"), "float64"),
        (np.array([0.1], "float32"), "float16"),
        (np.array([1e6], "float32"), "float16"),
        (np.array([1.5], "float32"), "int32"),
        (np.array([np.nan], "float32"), "int32"),
        (np.array([2.0**63], "float64"), "int64"),
        (np.array([2], "int32"), "bool"),
    ],
)
def test_values_that_another_dtype_does_not_hold(value: np.ndarray, dtype: str) -> None:
    assert cast_exactly(value, dtype) is None


def test_tokens_take_the_dtype_that_the_model_declares() -> None:
    x = relay.var("tokens", shape=(3,), dtype="int32")
    engine = RelayEngine(model_of(relay.copy(x), x))
    (found,) = run_engine(engine, {"tokens": np.array([1, 2, 3], "int64")})
    assert found.dtype == np.int32
    with pytest.raises(CheckError, match="input tokens: expected int32, found values of int64"):
        run_engine(engine, {"tokens": np.array([1, 2, 2**40], "int64")})


# Files beside a source.


def exported_tokens(folder: Path) -> Path:
    """A lookup as MXNet itself exports it: its symbol tells no shape, its tokens no dtype."""
    try:
        mx = require("mxnet")
    except MissingDependency:
        pytest.skip("mxnet is not installed")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Embedding(11, 4), mx.gluon.nn.Dense(3, flatten=False))
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    net(mx.nd.zeros((2, 5)))
    net.export(str(folder / "net"))
    return folder / "net-symbol.json"


@pytest.mark.parametrize("dtype", first_of(["int32", "int64", "float32"], ["int32"]))
def test_a_symbol_without_shapes_gets_those_of_the_source(tmp_path: Path, dtype: str) -> None:
    symbol = exported_tokens(tmp_path)
    tokens = {"input_shapes": {"data": ("N", 5)}, "input_dtypes": {"data": dtype}}
    serde.convert(symbol, tmp_path / "a.onnx", **tokens)
    report = serde.check(tmp_path / "a.onnx", symbol)
    assert report.passed
    assert report.engines is not None
    assert report.engines[1].startswith("mxnet ")


def test_tokens_of_64_bits_suit_a_model_that_takes_32(tmp_path: Path) -> None:
    symbol = exported_tokens(tmp_path)
    for dtype in ("int64", "int32"):
        tokens = {"input_shapes": {"data": ("N", 5)}, "input_dtypes": {"data": dtype}}
        serde.convert(symbol, tmp_path / f"{dtype}.relay", **tokens)
    assert serde.check(tmp_path / "int64.relay", tmp_path / "int32.relay").passed
    assert serde.check(tmp_path / "int32.relay", tmp_path / "int64.relay").passed


def test_halves_suit_a_model_that_takes_floats(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 50), dtype="float16")
    half = model_of(relay.tanh(relay.cast(x, "float32")), x)
    y = relay.var("y", shape=(2, 50))
    whole = model_of(relay.tanh(y), y)
    for name, model in (("half", half), ("whole", whole)):
        serde.from_relay(model, path=tmp_path / f"{name}.relay")
    for one, other in (("half", "whole"), ("whole", "half")):
        assert serde.check(tmp_path / f"{one}.relay", tmp_path / f"{other}.relay").passed
