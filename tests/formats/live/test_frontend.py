"""The importers under TVM's names."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import serde.relay as relay
from serde.compat import import_mxnet
from serde.errors import OptionError


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


def small_net(mx: types.ModuleType) -> Any:
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="norm")
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


@pytest.mark.parametrize("batch", [2, relay.Any()])
def test_weights_without_values_are_inputs(mx: types.ModuleType, batch: Any) -> None:
    net = small_net(mx)
    mod, params = relay.frontend.from_mxnet(net, {"data": (batch, 2, 5, 5)})
    assert params == {}
    bound = net.simple_bind(mx.cpu(), data=(2, 2, 5, 5), grad_req="null")
    arrays = {**bound.arg_dict, **bound.aux_dict}
    del arrays["softmax_label"]
    rng = np.random.default_rng(1)
    for array in arrays.values():
        array[:] = rng.uniform(0.5, 1.5, array.shape)
    names = [param.name_hint for param in mod["main"].params]
    assert sorted(names) == sorted(arrays)
    found = relay.create_executor(mod=mod).evaluate()(*(arrays[name].asnumpy() for name in names))
    np.testing.assert_allclose(found, bound.forward()[0].asnumpy(), rtol=1e-5, atol=1e-6)


def test_shapes_that_mxnet_refuses_are_named(mx: types.ModuleType) -> None:
    with pytest.raises(OptionError, match=r"^shape: .*Input data should be 4D"):
        relay.frontend.from_mxnet(small_net(mx), {"data": (2, 2, 5)})


def test_parameters_have_the_methods_of_tvm(mx: types.ModuleType) -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, no_bias=True, name="fc")
    arrays = {"fc_weight": mx.nd.ones((4, 3))}
    _, params = relay.frontend.from_mxnet(symbol, {"data": (2, 3)}, arg_params=arrays)
    for give in (params["fc_weight"].numpy, params["fc_weight"].asnumpy):
        assert type(give()) is np.ndarray
        np.testing.assert_array_equal(give(), np.ones((4, 3)))


def product_model() -> onnx.ModelProto:
    shapes = {"a": [2, 3, 4], "b": [2, 4, 5], "c": [2, 3, 5]}
    a, b, c = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "g", [a, b], [c])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_batches_are_spelt_as_asked(transposed: bool) -> None:
    config = {"use_nt_batch_matmul": transposed}
    mod, _ = relay.frontend.from_onnx(product_model(), convert_config=config)
    assert mod["main"].body.attrs.transpose_b is transposed
    a, b = (np.random.default_rng(0).random(s, "float32") for s in ((2, 3, 4), (2, 4, 5)))
    found = relay.create_executor(mod=mod).evaluate()(a, b)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)


def test_other_spellings_of_products_are_refused() -> None:
    with pytest.raises(OptionError, match="convert_config has no 'use_welder_matmul' of True"):
        relay.frontend.from_onnx(product_model(), convert_config={"use_welder_matmul": True})
