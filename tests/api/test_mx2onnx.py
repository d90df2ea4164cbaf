"""The drop-in for ``mx.onnx``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracle import run_mxnet

from serde.compat import import_mxnet, mx2onnx
from serde.errors import MissingDependency, OptionError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X = np.random.default_rng(2).normal(size=(2, 3, 8, 8)).astype(np.float32)
SHAPES = [(2, 3, 8, 8)]


@pytest.fixture(scope="module")
def mx() -> Any:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def symbol(mx: Any) -> Any:
    """A Module-style net whose head makes a label of its own."""
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="relu")
    net = mx.sym.Pooling(net, global_pool=True, pool_type="avg", kernel=(1, 1))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=5, name="fc"), name="softmax")


@pytest.fixture(scope="module")
def states(mx: Any, symbol: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments and auxiliary states."""
    generator = np.random.default_rng(3)
    shapes, _, aux_shapes = symbol.infer_shape(data=X.shape)
    names = zip(symbol.list_arguments(), shapes, strict=True)
    args = {
        name: mx.nd.array(generator.normal(size=shape) / 3)
        for name, shape in names
        if name not in ("data", "softmax_label")
    }
    aux_names = zip(symbol.list_auxiliary_states(), aux_shapes, strict=True)
    aux = {name: mx.nd.array(generator.uniform(0.5, 1.5, shape)) for name, shape in aux_names}
    return args, aux


@pytest.fixture(scope="module")
def wanted(symbol: Any, states: tuple[dict[str, Any], dict[str, Any]]) -> np.ndarray:
    args, aux = states
    return run_mxnet(symbol, {**args, **aux}, {"data": X})[0]


def session(path: str | Path) -> Any:
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def check(path: str, wanted: np.ndarray) -> None:
    """The names are those that MXNet's exporter gave."""
    run = session(path)
    assert [each.name for each in run.get_inputs()] == ["data"]
    assert [each.name for each in run.get_outputs()] == ["softmax"]
    np.testing.assert_allclose(run.run(["softmax"], {"data": X})[0], wanted, rtol=2e-5, atol=2e-6)


def test_files(mx: Any, symbol: Any, states: Any, wanted: Any, tmp_path: Path) -> None:
    mx.model.save_checkpoint(str(tmp_path / "net"), 3, symbol, *states)
    target = str(tmp_path / "net.onnx")
    files = (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0003.params"))
    assert mx2onnx.export_model(*files, SHAPES, np.float32, target) == target
    check(target, wanted)


@pytest.mark.parametrize("form", ["bare", "prefixed", "list"])
def test_objects(form: str, symbol: Any, states: Any, wanted: Any, tmp_path: Path) -> None:
    args, aux = states
    params = {
        "bare": {**args, **aux},
        "prefixed": {
            **{f"arg:{name}": value for name, value in args.items()},
            **{f"aux:{name}": value for name, value in aux.items()},
        },
        "list": [args, aux],
    }[form]
    target = str(tmp_path / "net.onnx")
    assert mx2onnx.export_model(symbol, params, SHAPES, [np.float32], target) == target
    check(target, wanted)


def test_older_names_of_arguments(symbol: Any, states: Any, wanted: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "net.onnx")
    mx2onnx.export_model(
        symbol, list(states), input_shape=SHAPES, input_type=np.float32, onnx_file_path=target
    )
    check(target, wanted)


def test_file_is_called_model_by_default(
    symbol: Any, states: Any, wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mx2onnx.export_model(symbol, list(states), SHAPES) == "model.onnx"
    check("model.onnx", wanted)


@pytest.mark.parametrize(
    ("shapes", "shown"),
    [
        (None, ["data_0", "data_1", "data_2", "data_3"]),
        ([(None, 3, 8, 8)], ["data_0", 3, 8, 8]),
        ([("batch", 3, "height", None)], ["batch", 3, "height", "data_3"]),
    ],
)
def test_lengths_may_change(
    shapes: Any, shown: list[Any], symbol: Any, states: Any, wanted: Any, tmp_path: Path
) -> None:
    target = str(tmp_path / "net.onnx")
    mx2onnx.export_model(
        symbol, list(states), [(7, 3, 9, 9)] if shapes is None else [(7, 3, 8, 8)], np.float32,
        target, dynamic=True, dynamic_input_shapes=shapes,
    )  # fmt: skip
    assert session(target).get_inputs()[0].shape == shown
    check(target, wanted)


def test_shapes_between_are_noted_on_request(symbol: Any, states: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "net.onnx")
    mx2onnx.export_model(symbol, list(states), SHAPES, np.float32, target)
    assert not onnx.load(target).graph.value_info
    mx2onnx.export_model(symbol, list(states), SHAPES, np.float32, target, run_shape_inference=True)
    assert onnx.load(target).graph.value_info


def test_verbose_logs(
    symbol: Any, states: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = str(tmp_path / "net.onnx")
    with caplog.at_level(logging.INFO):
        mx2onnx.export_model(symbol, list(states), SHAPES, np.float32, target, verbose=True)
    assert target in caplog.text


def test_another_label_is_an_input(mx: Any, tmp_path: Path) -> None:
    """MXNet's exporter left out the label of the last node alone."""
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    net = mx.sym.SoftmaxOutput(dense, mx.sym.var("truth"), name="softmax")
    target = str(tmp_path / "net.onnx")
    weights = {"fc_weight": mx.nd.ones((2, 4))}
    mx2onnx.export_model(net, weights, [(3, 4), (3,)], np.float32, target)
    assert [each.name for each in session(target).get_inputs()] == ["data", "truth"]


def test_a_dtype_for_each_input(mx: Any, tmp_path: Path) -> None:
    net = mx.sym.broadcast_add(mx.sym.var("a"), mx.sym.cast(mx.sym.var("b"), dtype="float32"))
    target = str(tmp_path / "net.onnx")
    mx2onnx.export_model(net, {}, [(2, 3), (1, 3)], [np.float32, np.int32], target)
    inputs = session(target).get_inputs()
    assert [each.type for each in inputs] == ["tensor(float)", "tensor(int32)"]


def test_states_of_a_layer_are_outputs_by_number(mx: Any, tmp_path: Path) -> None:
    layer = mx.sym.RNN(
        mx.sym.var("data"), mx.sym.var("w"), mx.sym.var("h"), mx.sym.var("c"), mode="lstm",
        state_size=4, num_layers=1, state_outputs=True, name="lstm",
    )  # fmt: skip
    target = str(tmp_path / "net.onnx")
    weights = {"w": mx.nd.ones((4 * 4 * (3 + 4 + 2),))}
    mx2onnx.export_model(layer, weights, [(5, 2, 3), (1, 2, 4), (1, 2, 4)], onnx_file_path=target)
    assert [each.name for each in session(target).get_outputs()] == ["lstm", "lstm1", "lstm2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_types": [np.float32] * 2}, "2 in_types for 1 in_shapes"),
        ({"in_shapes": []}, "0 in_shapes for the inputs data"),
        ({"in_shapes": None}, "in_shapes is missing"),
        ({"dynamic_input_shapes": SHAPES}, "without dynamic=True"),
        ({"dynamic": True, "dynamic_input_shapes": [(2, 3)]}, "differ in number or rank"),
    ],
)
def test_arguments_that_do_not_fit(
    changes: dict[str, Any], message: str, symbol: Any, states: Any, tmp_path: Path
) -> None:
    target = tmp_path / "net.onnx"
    arguments = {"in_shapes": SHAPES, "onnx_file_path": str(target), **changes}
    with pytest.raises(OptionError, match=message):
        mx2onnx.export_model(symbol, list(states), **arguments)
    assert not target.exists()


def test_a_file_and_an_object_do_not_go_together(symbol: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="should either be files or objects"):
        mx2onnx.export_model(symbol, str(tmp_path / "net.params"), SHAPES)


def test_operator_support() -> None:
    found = mx2onnx.get_operator_support()
    assert found == sorted(set(found))
    assert {"null", "Convolution", "FullyConnected", "elemwise_add", "_Plus"} <= set(found)
    assert mx2onnx.get_operator_support(13) == found
    assert mx2onnx.get_operator_support(10) == []
