"""Dropout, and batch norm folded into the layer before it, against NumPy's batch norm."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import FoldBatchNorm, InferType

RNG = np.random.default_rng(5)
STATISTICS = ("gamma", "beta", "mean", "var")


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def _norm_of(data: np.ndarray, values: dict[str, np.ndarray], axis: int, **attrs: object) -> object:
    shape = [1] * data.ndim
    shape[axis] = -1
    gamma, beta, mean, var = (values[name].reshape(shape) for name in STATISTICS)
    result = (data - mean) / np.sqrt(var + attrs.get("epsilon", 1e-5))
    result = result * gamma if attrs.get("scale", True) else result
    return result + beta if attrs.get("center", True) else result


def _var(name: str, value: np.ndarray) -> relay.Var:
    return relay.var(name, shape=value.shape, dtype=value.dtype)


def _statistics(channels: int, dtype: str = "float64") -> dict[str, np.ndarray]:
    values = {name: RNG.normal(size=channels).astype(dtype) for name in STATISTICS}
    values["var"] = RNG.uniform(0.5, 2, size=channels).astype(dtype)
    return values


def _check(layer: Expr, axis: int, values: dict[Expr, np.ndarray], **attrs: object) -> None:
    """Check that a batch norm after `layer` is folded and that the numbers stay."""
    channels = layer.checked_type.shape[axis]
    stats = _statistics(channels)
    params = {name: _var(name, value) for name, value in stats.items()}
    norm = relay.nn.batch_norm(layer, *params.values(), axis=axis, **attrs)
    function = relay.Function([*values, *params.values()], relay.tanh(norm[0]))
    mod, changed = FoldBatchNorm(weights=frozenset({"w", "b", *STATISTICS})).run(
        InferType()(relay.IRModule.from_expr(function))
    )
    verify(mod)
    assert changed
    names = _calls(mod["main"])
    assert "nn.batch_norm" not in names
    assert names[-2:] == ["nn.bias_add", "tanh"]
    plain = run(relay.Function(list(values), layer), list(values.values()))
    want = np.tanh(_norm_of(plain, stats, axis, **attrs))
    got = run(mod["main"], [*values.values(), *stats.values()])
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


CONVS = {
    "conv1d": ("conv1d", (2, 3, 7), (4, 3, 3), {}, 1),
    "conv2d": ("conv2d", (1, 3, 6, 5), (4, 3, 3, 3), {"padding": (1, 1), "strides": (2, 1)}, 1),
    "conv2d in groups": ("conv2d", (1, 4, 5, 5), (6, 2, 3, 3), {"groups": 2}, 1),
    "depthwise": ("conv2d", (1, 4, 5, 5), (4, 1, 3, 3), {"groups": 4}, 1),
    "depthwise of two filters": (
        "conv2d",
        (1, 4, 5, 5),
        (4, 2, 3, 3),
        {"groups": 4, "channels": 8, "kernel_size": (3, 3)},
        1,
    ),
    "conv2d NHWC": (
        "conv2d",
        (1, 6, 5, 3),
        (3, 3, 3, 4),
        {"data_layout": "NHWC", "kernel_layout": "HWIO"},
        3,
    ),
    "conv2d NHWC HWOI": (
        "conv2d",
        (1, 6, 5, 3),
        (3, 3, 4, 3),
        {"data_layout": "NHWC", "kernel_layout": "HWOI"},
        -1,
    ),
    "conv3d": ("conv3d", (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), {}, 1),
    "conv1d_transpose": ("conv1d_transpose", (1, 3, 5), (3, 4, 3), {}, 1),
    "conv2d_transpose": ("conv2d_transpose", (1, 3, 4, 4), (3, 4, 3, 3), {"strides": (2, 2)}, 1),
    "conv2d_transpose in groups": (
        "conv2d_transpose",
        (1, 4, 4, 4),
        (4, 3, 3, 3),
        {"groups": 2},
        1,
    ),
    "conv3d_transpose": ("conv3d_transpose", (1, 2, 3, 3, 3), (2, 3, 2, 2, 2), {}, 1),
}


@pytest.mark.parametrize("bias", ["none", "bias_add", "add"])
@pytest.mark.parametrize("case", CONVS)
def test_a_batch_norm_after_a_convolution_is_folded(case: str, bias: str) -> None:
    name, data_shape, weight_shape, attrs, axis = CONVS[case]
    data, weight = RNG.normal(size=data_shape), RNG.normal(size=weight_shape)
    x, w = _var("x", data), _var("w", weight)
    layer = getattr(relay.nn, name)(x, w, **attrs)
    values: dict[Expr, np.ndarray] = {x: data, w: weight}
    if bias != "none":
        channels = layer.checked_type.shape[axis]
        shape = [1] * len(data_shape)
        shape[axis] = channels
        value = RNG.normal(size=channels if bias == "bias_add" else shape)
        b = _var("b", value)
        layer = relay.nn.bias_add(layer, b, axis) if bias == "bias_add" else relay.add(layer, b)
        values[b] = value
    _check(layer, axis, values)


@pytest.mark.parametrize("shape", [(2, 5), (2, 3, 5)])
@pytest.mark.parametrize("attrs", [{}, {"center": False}, {"scale": False, "epsilon": 0.01}])
def test_a_batch_norm_after_a_dense_layer_is_folded(
    shape: tuple[int, ...], attrs: dict[str, object]
) -> None:
    data, weight, bias = RNG.normal(size=shape), RNG.normal(size=(4, 5)), RNG.normal(size=4)
    x, w, b = _var("x", data), _var("w", weight), _var("b", bias)
    layer = relay.add(relay.nn.dense(x, w), b)
    _check(layer, len(shape) - 1, {x: data, w: weight, b: bias}, **attrs)


def _conv_and_norm() -> tuple[relay.Var, Expr, list[relay.Var]]:
    x, w = relay.var("x", shape=(1, 3, 6, 6)), relay.var("w", shape=(4, 3, 3, 3))
    stats = [relay.var(name, shape=(4,)) for name in STATISTICS]
    return x, relay.nn.conv2d(x, w), [w, *stats]


def _stays(function: relay.Function, **options: object) -> None:
    mod = InferType()(relay.IRModule.from_expr(function))
    weights = frozenset({"w", *STATISTICS})
    result, changed = FoldBatchNorm(weights=weights, **options).run(mod)
    assert not changed
    assert result is mod


def test_it_stays_where_the_layer_feeds_something_else() -> None:
    x, layer, weights = _conv_and_norm()
    norm = relay.nn.batch_norm(layer, *weights[1:])
    _stays(relay.Function([x, *weights], relay.add(norm[0], layer)))


def test_it_stays_where_the_statistics_are_used() -> None:
    x, layer, weights = _conv_and_norm()
    norm = relay.nn.batch_norm(layer, *weights[1:])
    _stays(relay.Function([x, *weights], relay.Tuple([norm[0], norm[1]])))


def test_it_stays_where_the_axis_is_another() -> None:
    x, w = relay.var("x", shape=(1, 3, 6, 6)), relay.var("w", shape=(4, 3, 3, 3))
    stats = [relay.var(name, shape=(4,)) for name in STATISTICS]
    norm = relay.nn.batch_norm(relay.nn.conv2d(x, w), *stats, axis=2)
    _stays(relay.Function([x, w, *stats], norm[0]))


def test_it_stays_where_a_statistic_is_an_input() -> None:
    x, layer, weights = _conv_and_norm()
    given = relay.var("given", shape=(4,))
    norm = relay.nn.batch_norm(layer, *weights[1:4], given)
    _stays(relay.Function([x, *weights[:4], given], norm[0]))


def test_it_stays_when_asked() -> None:
    x, layer, weights = _conv_and_norm()
    norm = relay.nn.batch_norm(layer, *weights[1:])
    _stays(relay.Function([x, *weights], norm[0]), fold_batch_norm=False)


def test_a_batch_norm_alone_is_expanded_only_when_asked() -> None:
    data, stats = RNG.normal(size=(2, 3, 4)), _statistics(3)
    x = _var("x", data)
    params = [_var(name, value) for name, value in stats.items()]
    norm = relay.nn.batch_norm(x, *params)
    function = relay.Function([x, *params], norm[0])
    _stays(function)
    mod = InferType()(relay.IRModule.from_expr(function))
    result = FoldBatchNorm(weights=frozenset(STATISTICS), expand=True)(mod)
    verify(result)
    assert _calls(result["main"])[-2:] == ["reshape", "add"]
    got = run(result["main"], [data, *stats.values()])
    np.testing.assert_allclose(got, _norm_of(data, stats, 1), rtol=1e-12, atol=1e-12)


def test_layers_in_a_row_are_all_folded() -> None:
    data = RNG.normal(size=(1, 4, 5, 5))
    x = _var("x", data)
    values: dict[relay.Var, np.ndarray] = {x: data}
    layer: Expr = x
    want = data
    for index in range(3):
        weight, stats = RNG.normal(size=(4, 4, 1, 1)), _statistics(4)
        w = _var(f"w{index}", weight)
        params = {n: _var(f"{n}{index}", v) for n, v in stats.items()}
        values |= {w: weight, **{params[n]: stats[n] for n in stats}}
        layer = relay.nn.batch_norm(relay.nn.conv2d(layer, w), *params.values())[0]
        want = _norm_of(np.einsum("nihw,oi->nohw", want, weight[:, :, 0, 0]), stats, 1)
    mod = InferType()(relay.IRModule.from_expr(relay.Function(list(values), layer)))
    names = frozenset(variable.name_hint for variable in values) - {"x"}
    result = FoldBatchNorm(weights=names)(mod)
    assert _calls(result["main"]).count("nn.conv2d") == 3
    assert "nn.batch_norm" not in _calls(result["main"])
    np.testing.assert_allclose(run(result["main"], list(values.values())), want, rtol=1e-9)


def test_dropout_is_its_operand() -> None:
    x = relay.var("x", shape=(2, 3))
    function = relay.Function([x], relay.exp(relay.nn.dropout(x, 0.3)))
    assert _calls(FoldBatchNorm().transform(function)) == ["exp"]
