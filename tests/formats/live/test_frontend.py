"""The importers under TVM's names."""

from __future__ import annotations

import types

import numpy as np
import pytest

import serde.relay as relay
from serde.compat import import_mxnet


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def test_from_mxnet_gives_module_and_parameters(mx: types.ModuleType) -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((4, 3)), rng.standard_normal(4)
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    arrays = {"fc_weight": mx.nd.array(weight), "fc_bias": mx.nd.array(bias)}
    mod, params = relay.frontend.from_mxnet(symbol, {"data": (2, 3)}, arg_params=arrays)
    assert [param.name_hint for param in mod["main"].params] == ["data", "fc_weight", "fc_bias"]
    data = rng.standard_normal((2, 3)).astype("float32")
    run = relay.create_executor("graph", mod=mod, params=params).evaluate()
    expected = data @ weight.T.astype("float32") + bias.astype("float32")
    np.testing.assert_allclose(run(data).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_from_mxnet_takes_the_dtype_of_all_inputs(mx: types.ModuleType) -> None:
    symbol = mx.sym.var("a") + mx.sym.var("b")
    mod, params = relay.frontend.from_mxnet(symbol, {"a": (2,), "b": (2,)}, dtype="float64")
    assert params == {}
    assert mod["main"].body.checked_type == relay.TensorType((2,), "float64")
