"""Checkpoints of 16 bits, and mixed ones: as ``Module.set_params`` has them, or as they are."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.runtime import open_session

import serde
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.errors import UnsupportedModelError

X = np.random.default_rng(4).random((2, 3, 8, 8), np.float32)

WIDENED = "weights of 16 bits are computed as float32"
AS_THEY_ARE = "weights of 16 bits are computed as they are"


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


@pytest.fixture(scope="module")
def checkpoint(mx: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=5, name="fc")
    generator = np.random.default_rng(3)
    shapes, _, aux_shapes = net.infer_shape(data=X.shape)
    args = {
        name: mx.nd.array(generator.normal(size=shape) / 3)
        for name, shape in zip(net.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    names = zip(net.list_auxiliary_states(), aux_shapes, strict=True)
    aux = {name: mx.nd.array(generator.uniform(0.5, 1.5, shape)) for name, shape in names}
    return net, args, aux


def narrowed(args: dict[str, Any], *names: str) -> dict[str, Any]:
    return {
        key: value.astype("float16") if key.startswith(names) else value
        for key, value in args.items()
    }


def of_module(mx: Any, net: Any, args: Any, aux: Any) -> np.ndarray:
    """What a net of float32 computes after ``set_params``."""
    module = mx.mod.Module(net, data_names=["data"], label_names=None)
    module.bind([("data", X.shape)], for_training=False)
    module.set_params(args, aux)
    module.forward(mx.io.DataBatch([mx.nd.array(X)]), is_train=False)
    return module.get_outputs()[0].asnumpy()


def run(net: Any, params: Any, report: Report, **options: Any) -> tuple[str, np.ndarray]:
    """The dtype of the input, and the output."""
    proto = serde.export_model(
        net, params, format="onnx", input_shapes={"data": X.shape}, report=report, **options
    )
    session = open_session(proto.SerializeToString())
    dtype = "float16" if "16" in session.get_inputs()[0].type else "float32"
    return dtype, session.run(None, {"data": X.astype(dtype)})[0]


ALL, BUT_NORM = ("conv", "bn", "fc"), ("conv", "fc")


@pytest.mark.wide
@pytest.mark.parametrize(
    ("names", "options"),
    [
        (ALL, {"input_dtypes": {"data": "float32"}}),
        (BUT_NORM, {"input_dtypes": "float32"}),
        (ALL, {"widen_weights": True}),
        (BUT_NORM, {"widen_weights": True}),
        (("conv",), {}),
        (("fc_weight",), {}),
    ],
)
def test_as_float32(mx: Any, checkpoint: Any, names: Any, options: dict[str, Any]) -> None:
    net, args, aux = checkpoint
    narrow, report = narrowed(args, *names), Report()
    dtype, found = run(net, (narrow, aux), report, **options)
    assert dtype == "float32"
    np.testing.assert_allclose(found, of_module(mx, net, narrow, aux), rtol=1e-5, atol=1e-6)
    assert any(note.startswith(WIDENED) for note in report.notes)


@pytest.mark.parametrize("names", [ALL, BUT_NORM])
def test_as_they_are(mx: Any, checkpoint: Any, names: Any) -> None:
    net, args, aux = checkpoint
    narrow, report = narrowed(args, *names), Report()
    dtype, found = run(net, (narrow, aux), report)
    assert (dtype, found.dtype) == ("float16", np.float16)
    np.testing.assert_allclose(found, of_module(mx, net, narrow, aux), rtol=0.02, atol=0.01)
    assert any(note.startswith(AS_THEY_ARE) for note in report.notes)


def test_an_input_of_the_graph_that_is_float32(mx: Any) -> None:
    """``mx.sym.var("data", dtype="float32")`` says so."""
    data = mx.sym.var("data", dtype="float32")
    net = mx.sym.FullyConnected(data, num_hidden=5, no_bias=True, name="fc")
    weights = {"fc_weight": mx.nd.ones((5, 192), dtype="float16")}
    assert run(net, weights, Report())[0] == "float32"


def test_both_kinds_left_as_they_are_are_refused(checkpoint: Any) -> None:
    net, args, aux = checkpoint
    params = narrowed(args, "conv"), aux
    with pytest.raises(UnsupportedModelError, match="dtypes differ"):
        serde.to_relay(net, params, input_shapes={"data": X.shape}, widen_weights=False)


def test_casts_of_the_graph_count(mx: Any) -> None:
    """A net of automatic mixed precision has an input of float32 and weights of float16."""
    cast = mx.sym.amp_cast(mx.sym.var("data"), dtype="float16")
    net = mx.sym.FullyConnected(cast, num_hidden=5, no_bias=True, name="fc")
    weights = {"fc_weight": mx.nd.ones((5, 192), dtype="float16")}
    report = Report()
    model = serde.to_relay(
        net, weights, input_shapes={"data": X.shape}, input_dtypes={"data": "float32"},
        report=report,
    )  # fmt: skip
    assert model.params["fc_weight"].dtype == "float16"
    assert any(note.startswith(AS_THEY_ARE) for note in report.notes)


def test_what_is_looked_up_says_nothing(mx: Any) -> None:
    """MXNet's tokens are float32 by default."""
    table = mx.sym.Embedding(mx.sym.var("tokens"), input_dim=7, output_dim=4, name="e")
    net = mx.sym.FullyConnected(table, num_hidden=2, no_bias=True, name="fc")
    weights = {
        "e_weight": mx.nd.ones((7, 4), dtype="float16"),
        "fc_weight": mx.nd.ones((2, 4), dtype="float16"),
    }
    model = serde.to_relay(
        net, weights, input_shapes={"tokens": (2, 1)}, input_dtypes={"tokens": "float32"}
    )
    assert {weight.dtype for weight in model.params.values()} == {"float16"}
