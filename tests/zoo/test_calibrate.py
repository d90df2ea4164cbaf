"""Calibrated nets are good witnesses: outputs have spread and depend on the input."""

import types

import numpy as np
import pytest
from calibrate import calibrate, images

from serde.compat import import_mxnet


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def run(mx, symbol, args, aux, **inputs):
    """The first output at inference."""
    shapes = {name: values.shape for name, values in inputs.items()}
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **shapes)
    executor.copy_params_from(args, aux)
    arrays = {name: mx.nd.array(values) for name, values in inputs.items()}
    return executor.forward(is_train=False, **arrays)[0].asnumpy()


def check_dependence(mx, symbol, args, aux, shape):
    """Another input changes the outputs by more than a tenth of their deviation."""
    rng = np.random.default_rng(3)
    one, other = images(rng, shape), images(rng, shape)
    first = run(mx, symbol, args, aux, data=one)
    second = run(mx, symbol, args, aux, data=other)
    assert np.isfinite(first).all()
    assert 1e-3 < first.std() < 1e3
    assert (first - second).std() > 0.1 * first.std()


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("mobilenet0.25", 64),
        ("mobilenetv2_0.25", 64),
        ("resnet18_v1", 64),
        ("resnet18_v2", 64),
        ("squeezenet1.1", 224),
    ],
)
def test_zoo_nets_depend_on_their_input(mx: types.ModuleType, name: str, side: int) -> None:
    shape = (1, 3, side, side)
    net = mx.gluon.model_zoo.vision.get_model(name)
    check_dependence(mx, *calibrate(net, {"data": shape}, seed=1), shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("alexnet", 224),
        ("densenet121", 224),
        ("inceptionv3", 299),
        ("mobilenetv2_1.0", 224),
        ("resnet50_v1", 224),
        ("squeezenet1.0", 224),
        ("vgg11_bn", 224),
    ],
)
def test_large_zoo_nets_depend_on_their_input(mx: types.ModuleType, name: str, side: int) -> None:
    shape = (1, 3, side, side)
    net = mx.gluon.model_zoo.vision.get_model(name)
    check_dependence(mx, *calibrate(net, {"data": shape}, seed=1), shape)


def face_head(mx):
    """Convolution, BatchNorm with fix_gamma, PReLU, FullyConnected, loss head."""
    x = mx.sym.Convolution(mx.sym.var("data"), num_filter=8, kernel=(3, 3), name="conv")
    x = mx.sym.BatchNorm(x, fix_gamma=True, eps=2e-5, name="bn")
    x = mx.sym.LeakyReLU(x, act_type="prelu", name="prelu")
    x = mx.sym.Dropout(x, p=0.4)
    x = mx.sym.FullyConnected(x, num_hidden=16, name="fc")
    x = mx.sym.BatchNorm(x, fix_gamma=True, name="bn_fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def test_a_symbol_gets_telling_parameters(mx: types.ModuleType) -> None:
    symbol, args, aux = calibrate(face_head(mx), {"data": (1, 3, 16, 16)}, seed=2)
    assert "softmax_label" not in args
    assert set(args) == set(symbol.list_arguments()) - {"data", "softmax_label"}
    assert set(aux) == set(symbol.list_auxiliary_states())
    assert args["bn_gamma"].asnumpy().std() > 0.1
    assert (args["prelu_gamma"].asnumpy() > 0).all()
    check_dependence(mx, symbol, args, aux, (1, 3, 16, 16))


def test_statistics_are_those_of_the_normalised_tensor(mx: types.ModuleType) -> None:
    symbol, args, aux = calibrate(face_head(mx), {"data": (1, 3, 128, 128)}, seed=2)
    normalised = symbol.get_internals()["bn_output"]
    rng = np.random.default_rng(5)
    data = images(rng, (32, 3, 128, 128))
    values = run(
        mx,
        normalised,
        {k: args[k] for k in ("conv_weight", "conv_bias", "bn_gamma", "bn_beta")},
        {k: aux[k] for k in ("bn_moving_mean", "bn_moving_var")},
        data=data,
    )
    # gamma counts as one here, so each channel has beta as mean and about unit deviation;
    # about, since 64 patches of calibration data estimate both.
    np.testing.assert_allclose(values.mean((0, 2, 3)), args["bn_beta"].asnumpy(), atol=0.4)
    np.testing.assert_allclose(values.std((0, 2, 3)), 1.0, atol=0.3)


def test_a_seed_fixes_the_parameters(mx: types.ModuleType) -> None:
    shapes = {"data": (1, 3, 16, 16)}
    _, first, first_aux = calibrate(face_head(mx), shapes, seed=2)
    _, again, again_aux = calibrate(face_head(mx), shapes, seed=2)
    _, other, _ = calibrate(face_head(mx), shapes, seed=3)
    np.testing.assert_array_equal(first["fc_weight"].asnumpy(), again["fc_weight"].asnumpy())
    np.testing.assert_allclose(
        first_aux["bn_moving_var"].asnumpy(), again_aux["bn_moving_var"].asnumpy(), rtol=1e-6
    )
    assert not np.array_equal(first["fc_weight"].asnumpy(), other["fc_weight"].asnumpy())


def test_a_layer_deviates_as_asked(mx: types.ModuleType) -> None:
    x = mx.sym.Convolution(mx.sym.var("data"), num_filter=8, kernel=(3, 3), name="first")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="norm"), act_type="relu")
    x = mx.sym.Convolution(x, num_filter=16, kernel=(3, 3), name="before_exp")
    shape, sought = (4, 3, 24, 24), {r"before_\w+_weight": 0.25}
    symbol, args, aux = calibrate(x, {"data": shape}, seed=1, deviations=sought)
    found = run(mx, symbol, args, aux, data=images(np.random.default_rng(5), shape))
    within = found.std(axis=(0, 2, 3))
    assert 0.2 < np.sqrt((within**2).mean()) < 0.3
