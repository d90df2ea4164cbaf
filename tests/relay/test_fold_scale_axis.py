"""Scales of channels in the weights of layers, with the numbers they gave before."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Function
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    BackwardFoldScaleAxis,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    InferType,
    Pass,
    fold_weights,
)
from serde.weights import ArrayWeight

RNG = np.random.default_rng(2)
LAYERS = {
    "conv2d": ("conv2d", (1, 4, 6, 6), (5, 4, 3, 3), {}, 1),
    "conv2d NHWC": (
        "conv2d", (1, 6, 6, 4), (3, 3, 4, 5),
        {"data_layout": "NHWC", "kernel_layout": "HWIO"}, 3,
    ),
    "padded": ("conv2d", (1, 4, 6, 6), (5, 4, 3, 3), {"padding": (1, 1)}, 1),
    "conv1d": ("conv1d", (1, 4, 6), (5, 4, 3), {}, 1),
    "conv3d": ("conv3d", (1, 4, 3, 3, 3), (5, 4, 2, 2, 2), {}, 1),
    "conv2d_transpose": ("conv2d_transpose", (1, 4, 3, 3), (4, 5, 2, 2), {"strides": (2, 2)}, 1),
    "dense": ("dense", (3, 4), (5, 4), {}, 1),
}  # fmt: skip
GROUPED = ("conv2d", (1, 4, 6, 6), (6, 2, 3, 3), {"groups": 2}, 1)


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def _var(name: str, shape: tuple[int, ...]) -> relay.Var:
    return relay.var(name, shape=shape, dtype="float64")


def _along(rank: int, axis: int, channels: int) -> tuple[int, ...]:
    """Return the shape that broadcasts along one axis."""
    return (channels, *(1,) * (rank - 1 - axis % rank))


def _module(body: Expr) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(Function(free_vars(body), body)))


def _weights(mod: relay.IRModule) -> frozenset[str]:
    return frozenset(p.name_hint for p in mod["main"].params) - {"x"}


def _check(kind: type[Pass], mod: relay.IRModule) -> None:
    """Fold; no multiplication is left once weights are, and the numbers agree."""
    each = kind(weights=_weights(mod))
    after, changed = each.run(mod)
    assert changed
    verify(after)
    inputs = [RNG.normal(size=p.checked_type.concrete_shape) for p in mod["main"].params]
    want = run(mod["main"], inputs)
    np.testing.assert_allclose(run(after["main"], inputs), want, rtol=1e-12, atol=1e-12)
    named = zip(mod["main"].params, inputs, strict=True)
    params = {p.name_hint: ArrayWeight(value) for p, value in named if p.name_hint != "x"}
    assert "multiply" not in _names(fold_weights(RelayModel(after, params)).main)
    assert not each.run(after)[1]


@pytest.mark.parametrize("bias", ["none", "bias_add", "add"])
@pytest.mark.parametrize("case", [*LAYERS, "grouped"])
def test_a_scale_goes_into_the_layer_before(case: str, bias: str) -> None:
    name, shape, kernel, attrs, axis = LAYERS.get(case, GROUPED)
    y = getattr(relay.nn, name)(_var("x", shape), _var("w", kernel), **attrs)
    channels = y.checked_type.shape[axis]
    along = _along(len(shape), axis, channels)
    if bias == "add":
        y = relay.add(y, _var("b", along))
    elif bias == "bias_add":
        y = relay.nn.bias_add(y, _var("b", (channels,)), axis)
    _check(BackwardFoldScaleAxis, _module(relay.multiply(y, _var("s", along))))


@pytest.mark.parametrize("case", LAYERS)
def test_a_scale_goes_into_the_layer_after(case: str) -> None:
    name, shape, kernel, attrs, axis = LAYERS[case]
    scale = _var("s", _along(len(shape), axis, shape[axis]))
    x = relay.multiply(scale, _var("x", shape))
    _check(ForwardFoldScaleAxis, _module(getattr(relay.nn, name)(x, _var("w", kernel), **attrs)))


def test_scales_in_a_row_on_both_sides_are_folded() -> None:
    x, s = _var("x", (1, 4, 6, 6)), _var("s", (4, 1, 1))
    y = relay.nn.conv2d(relay.multiply(x, s), _var("w", (5, 4, 3, 3)))
    y = relay.multiply(relay.multiply(y, _var("t", (5, 1, 1))), _var("u", (1, 1, 1)))
    _check(FoldScaleAxis, _module(y))


def _stays(kind: type[Pass], body: Expr) -> None:
    mod = _module(body)
    assert kind(weights=_weights(mod)).run(mod) == (mod, False)


def test_a_layer_used_elsewhere_stays() -> None:
    y = relay.nn.dense(_var("x", (3, 4)), _var("w", (5, 4)))
    _stays(FoldScaleAxis, relay.add(y, relay.multiply(y, _var("s", (5,)))))


def test_a_scale_along_another_axis_stays() -> None:
    y = relay.nn.conv2d(_var("x", (1, 4, 6, 6)), _var("w", (5, 4, 3, 3)))
    _stays(FoldScaleAxis, relay.multiply(y, _var("s", (4, 1))))


def test_a_scale_of_grouped_channels_stays_before_the_layer() -> None:
    x = relay.multiply(_var("x", (1, 4, 6, 6)), _var("s", (4, 1, 1)))
    _stays(ForwardFoldScaleAxis, relay.nn.conv2d(x, _var("w", (6, 2, 3, 3)), groups=2))


def test_a_scale_that_is_computed_stays() -> None:
    x = _var("x", (3, 4))
    y = relay.nn.dense(x, _var("w", (4, 4)))
    _stays(FoldScaleAxis, relay.multiply(y, relay.sum(x, axis=0)))
