"""Variables without a value: labels kept or left out, parameters that a file lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runtime import run_onnx

import serde
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import MissingDependency, OptionError
from serde.relay.ir.dims import symbol as length
from serde.relay.ir.types import TensorType


@pytest.fixture(scope="module")
def mx() -> Any:
    """MXNet."""
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


HEADS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "softmax": (lambda sym, x: sym.SoftmaxOutput(x, name="head"), (2, 5)),
    "softmax of an image": (
        lambda sym, x: sym.SoftmaxOutput(x, multi_output=True, name="head"),
        (2, 5, 3, 4),
    ),
    "softmax that keeps the shape": (
        lambda sym, x: sym.SoftmaxOutput(x, preserve_shape=True, name="head"),
        (2, 5, 3),
    ),
    "linear": (lambda sym, x: sym.LinearRegressionOutput(x, name="head"), (2, 5)),
    "linear, one value": (lambda sym, x: sym.LinearRegressionOutput(x, name="head"), (4, 1)),
    "mae": (lambda sym, x: sym.MAERegressionOutput(x, name="head"), (2, 5, 3)),
    "logistic": (lambda sym, x: sym.LogisticRegressionOutput(x, name="head"), (2, 5)),
    "svm": (lambda sym, x: sym.SVMOutput(x, name="head"), (2, 5)),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_kept_label_has_the_shape_that_mxnet_infers(mx: Any, case: str) -> None:
    build, shape = HEADS[case]
    symbol = build(mx.sym, mx.sym.relu(mx.sym.var("data"), name="relu"))
    expected, _, _ = symbol.infer_shape(data=shape)
    model = serde.to_relay(symbol, {}, input_shapes={"data": shape}, keep_labels=True)
    assert list(model.meta.inputs) == symbol.list_arguments()
    types = [TensorType(sizes, "float32") for sizes in expected]
    assert [variable.type for variable in model.inputs()] == types


def test_a_kept_label_follows_the_batch(mx: Any) -> None:
    symbol = mx.sym.SoftmaxOutput(mx.sym.var("data"), multi_output=True, name="softmax")
    given: dict[str, Any] = {"input_shapes": {"data": ("N", 3, "H", "W")}, "keep_labels": True}
    label = serde.to_relay(symbol, {}, **given).inputs()[1]
    assert label.type == TensorType(("N", length("H") * length("W")), "float32")
    given["input_shapes"]["softmax_label"] = ("N", 7)
    label = serde.to_relay(symbol, {}, **given).inputs()[1]
    assert label.type == TensorType(("N", 7), "float32")


def trained(mx: Any) -> tuple[Any, dict[str, Any]]:
    """A symbol with a loss head, and its parameters."""
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    rng = np.random.default_rng(0)
    params = {
        "fc_weight": mx.nd.array(rng.standard_normal((4, 8))),
        "fc_bias": mx.nd.array(rng.standard_normal(4)),
    }
    return mx.sym.SoftmaxOutput(x, name="softmax"), params


@pytest.mark.wide
def test_labels_are_dropped_or_kept_by_a_flag(mx: Any, tmp_path: Path) -> None:
    symbol, params = trained(mx)
    mx.model.save_checkpoint(str(tmp_path / "m"), 0, symbol, params, {})
    source, target = str(tmp_path / "m-symbol.json"), str(tmp_path / "m.onnx")
    command = ["convert", source, target, "--input-shape", "data:2,8", "-q", "--check"]
    data = np.random.default_rng(1).standard_normal((2, 8)).astype("float32")
    scores = symbol.bind(
        mx.cpu(), {"data": mx.nd.array(data), "softmax_label": mx.nd.zeros(2), **params}
    ).forward()[0]
    assert main([*command, "--drop-labels"]) == 0
    _, (without,) = run_onnx(Path(target), {"data": data})
    assert main([*command, "--keep-labels"]) == 0
    _, (kept,) = run_onnx(Path(target), {"data": data, "softmax_label": np.float32([0, 1])})
    np.testing.assert_allclose(without, scores.asnumpy(), rtol=1e-5)
    np.testing.assert_array_equal(without, kept)


def test_a_label_of_an_unknown_shape_is_asked_for(mx: Any) -> None:
    data, like = mx.sym.var("data"), mx.sym.var("like")
    symbol = mx.sym.relu(mx.sym._internal._identity_with_attr_like_rhs(data, like))
    given: dict[str, Any] = {"input_shapes": {"data": (2, 3)}, "keep_labels": True}
    with pytest.raises(OptionError, match="the shape of like is missing"):
        serde.to_relay(symbol, {}, **given)


def test_parameters_that_the_file_lacks_are_called_so(mx: Any, tmp_path: Path) -> None:
    symbol, params = trained(mx)
    prefix = str(tmp_path / "m")
    shapes = {"input_shapes": {"data": (2, 8)}}
    mx.model.save_checkpoint(prefix, 0, symbol, {"fc_weight": params["fc_weight"]}, {})
    message = r"fc_bias is not in the parameter file .*m-0000\.params; is it the one of this symbol"
    with pytest.raises(OptionError, match=message):
        serde.to_relay(f"{prefix}-symbol.json", **shapes)
    with pytest.raises(OptionError, match="fc_bias is not in the parameters; is it"):
        serde.to_relay(symbol, {"fc_weight": params["fc_weight"]}, **shapes)
    with pytest.raises(OptionError, match="no parameters; fc_weight, fc_bias are needed: give"):
        serde.to_relay(symbol, {}, **shapes)
    with pytest.raises(OptionError, match=r"the shape of data is missing; give --input-shape"):
        serde.to_relay(symbol, params)


def test_a_parameter_with_a_shape_is_an_input(mx: Any) -> None:
    symbol, params = trained(mx)
    given = {"input_shapes": {"data": (2, 8), "fc_bias": (4,)}}
    model = serde.to_relay(symbol, {"fc_weight": params["fc_weight"]}, **given)
    assert model.meta.inputs == ("data", "fc_bias")
