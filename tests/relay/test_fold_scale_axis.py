"""Scales folded into layers, in text: layouts, what stands between, and what stops it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from support.pass_texts import check_bodies, tensor

import serde.relay as relay
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.expr import Expr, Function
from serde.relay.ir.module import IRModule
from serde.relay.transform import (
    BackwardFoldScaleAxis,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    InferType,
    PassContext,
)

FORWARD, BACKWARD = ForwardFoldScaleAxis(), BackwardFoldScaleAxis()


@dataclass(frozen=True)
class Layer:
    """A layer, shapes of scales of its data and its result, and how they look beside the weight."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    attrs: str
    before: tuple[int, ...]
    into: str
    after: tuple[int, ...]
    back: str
    op: str = "nn.conv2d"

    def call(self, data: str, weight: str = "%w") -> str:
        return f"{self.op}({data}, {weight}, {self.attrs})"


def _conv(channels: int, data: str, kernel: str, groups: int = 1, size: str = "[1, 1]") -> str:
    rank = size.count("1")
    pads = ", ".join(["0"] * 2 * rank)
    ones = ", ".join(["1"] * rank)
    return (
        f"strides=[{ones}], padding=[{pads}], dilation=[{ones}], groups={groups}, "
        f'channels={channels}, kernel_size={size}, data_layout="{data}", kernel_layout="{kernel}"'
    )


def _expand(vector: str, count: int) -> str:
    return f"expand_dims({vector}, axis=1, num_newaxis={count})" if count else vector


LAYERS = {
    "NCHW": Layer(
        (1, 4, 3, 3), (6, 4, 1, 1), _conv(6, "NCHW", "OIHW"),
        (4, 1, 1), _expand("{}", 2),
        (6, 1, 1), _expand("{}", 3),
    ),
    "NHWC": Layer(
        (1, 3, 3, 4), (1, 1, 4, 6), _conv(6, "NHWC", "HWIO"),
        (4,), _expand("{}", 1), (6,), "{}",
    ),
    "depthwise": Layer(
        (1, 4, 3, 3), (4, 1, 1, 1), _conv(4, "NCHW", "OIHW", 4),
        (4, 1, 1), _expand("{}", 3),
        (4, 1, 1), _expand("{}", 3),
    ),
    "NCDHW": Layer(
        (1, 4, 2, 3, 3), (6, 4, 1, 1, 1), _conv(6, "NCDHW", "OIDHW", size="[1, 1, 1]"),
        (4, 1, 1, 1), _expand("{}", 3),
        (6, 1, 1, 1), _expand("{}", 4), "nn.conv3d",
    ),
    "dense": Layer(
        (2, 4), (6, 4), "units=None",
        (4,), "{}", (6,), _expand("{}", 1), "nn.dense",
    ),
    "NCHW2c": Layer(
        (1, 2, 3, 3, 2), (3, 2, 1, 1, 2, 2), _conv(6, "NCHW2c", "OIHW2i2o"),
        (1, 2, 1, 1, 2), "reshape({}, newshape=[1, 2, 1, 1, 2, 1])",
        (1, 3, 1, 1, 2), "reshape({}, newshape=[3, 1, 1, 1, 1, 2])",
    ),
}  # fmt: skip

SQUEEZE = {
    "NCHW": "squeeze({}, axis=[1, 2])", "depthwise": "squeeze({}, axis=[1, 2])",
    "NCDHW": "squeeze({}, axis=[1, 2, 3])", "NCHW2c": "squeeze({}, axis=[0, 2, 3])",
    "NHWC": "{}", "dense": "{}",
}  # fmt: skip
BESIDE = {
    "NCHW": (_expand("{}", 2), _expand("{}", 2)),
    "depthwise": (_expand("{}", 2), _expand("{}", 2)),
    "NCDHW": (_expand("{}", 3), _expand("{}", 3)),
    "NCHW2c": (
        "reshape({}, newshape=[1, 2, 1, 1, 2])", "reshape({}, newshape=[1, 3, 1, 1, 2])",
    ),
    "NHWC": ("{}", "{}"), "dense": ("{}", "{}"),
}  # fmt: skip
"""How a scale without other axes looks beside the data, and beside the result."""


def _params(layer: Layer, scale: tuple[int, ...]) -> str:
    types = {"x": layer.data, "w": layer.weight, "s": scale, "b": scale}
    return ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in types.items())


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("left", [True, False])
def test_a_scale_goes_into_the_layer_after(name: str, left: bool) -> None:
    layer = LAYERS[name]
    product = "multiply(%s, %x)" if left else "multiply(%x, %s)"
    weight = f"multiply(%w, {layer.into.format(SQUEEZE[name].format('%s'))})"
    params = _params(layer, layer.before)
    check_bodies(FORWARD, params, layer.call(product), layer.call("%x", weight))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("left", [True, False])
def test_a_scale_goes_into_the_layer_before(name: str, left: bool) -> None:
    layer = LAYERS[name]
    product = "multiply(%s, {})" if left else "multiply({}, %s)"
    weight = f"multiply(%w, {layer.back.format(SQUEEZE[name].format('%s'))})"
    before = product.format(layer.call("%x"))
    check_bodies(BACKWARD, _params(layer, layer.after), before, layer.call("%x", weight))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("operator", ["add", "subtract"])
@pytest.mark.parametrize("left", [True, False])
def test_what_is_added_before_the_layer_is_divided(name: str, operator: str, left: bool) -> None:
    layer = LAYERS[name]
    order = f"{operator}(%b, {{}})" if left else f"{operator}({{}}, %b)"
    before = layer.call(order.format("multiply(%x, %s)"))
    divided = f"divide(%b, {BESIDE[name][0].format('%0')})"
    weight = f"multiply(%w, {layer.into.format('%0')})"
    data = f"{operator}({divided}, %x)" if left else f"{operator}(%x, {divided})"
    after = layer.call(data, weight)
    squeezed = SQUEEZE[name].format("%s")
    shared = after.replace("%0", "%s") if squeezed == "%s" else f"%0 = {squeezed};\n{after}"
    check_bodies(FORWARD, _params(layer, layer.before), before, shared)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("operator", ["add", "subtract"])
@pytest.mark.parametrize("left", [True, False])
def test_what_is_added_after_the_layer_is_multiplied(name: str, operator: str, left: bool) -> None:
    layer = LAYERS[name]
    order = f"{operator}(%b, {{}})" if left else f"{operator}({{}}, %b)"
    before = f"multiply({order.format(layer.call('%x'))}, %s)"
    grown = f"multiply(%b, {BESIDE[name][1].format('%0')})"
    scaled = layer.call("%x", f"multiply(%w, {layer.back.format('%0')})")
    after = f"{operator}({grown}, {scaled})" if left else f"{operator}({scaled}, {grown})"
    squeezed = SQUEEZE[name].format("%s")
    shared = after.replace("%0", "%s") if squeezed == "%s" else f"%0 = {squeezed};\n{after}"
    check_bodies(BACKWARD, _params(layer, layer.after), before, shared)


def _built(name: str, scale: np.ndarray, between: str, *, forward: bool) -> IRModule:
    """Return a module with a constant scale, which texts do not hold."""
    layer = LAYERS[name]
    x, w = relay.var("x", shape=layer.data), relay.var("w", shape=layer.weight)
    attrs = {"groups": 4, "channels": 4} if name == "depthwise" else {}
    activate = {
        "relu": relay.nn.relu, "leaky_relu": lambda y: relay.nn.leaky_relu(y, alpha=0.1),
        "sigmoid": relay.sigmoid,
    }[between]  # fmt: skip

    def conv(data: Expr) -> Expr:
        return relay.nn.conv2d(data, w, kernel_size=(1, 1), **attrs)

    product = relay.multiply(x if forward else activate(conv(x)), relay.const(scale))
    body = conv(activate(product)) if forward else product
    return InferType()(IRModule.from_expr(Function([x, w], body)))


@pytest.mark.parametrize("name", ["NCHW", "depthwise"])
@pytest.mark.parametrize("between", ["relu", "leaky_relu", "sigmoid"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("forward", [True, False])
def test_through_a_rectifier_goes_what_is_not_negative(
    name: str, between: str, sign: int, forward: bool
) -> None:
    shape = LAYERS[name].before if forward else LAYERS[name].after
    scale = (sign * np.arange(1, shape[0] + 1, dtype="float32")).reshape(shape)
    mod = _built(name, scale, between, forward=forward)
    after, changed = (FORWARD if forward else BACKWARD).run(mod)
    assert changed == (sign == 1 and between != "sigmoid")
    assert after["main"].astext().count("multiply") == 1
    data = [np.random.default_rng(0).normal(size=p.checked_type.concrete_shape).astype("float32")
            for p in mod["main"].params]  # fmt: skip
    results = [relay.create_executor(mod=each).evaluate()(*data) for each in (mod, after)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [1, -3])
def test_a_bias_is_scaled_too(axis: int) -> None:
    layer = LAYERS["NCHW"]
    params = f"%x: {tensor(*layer.data)}, %w: {tensor(*layer.weight)}, %s: {tensor(6, 1, 1)}"
    params += f", %b: {tensor(6)}"
    bias = f"nn.bias_add({{}}, {{}}, axis={axis})"
    before = f"multiply({bias.format(layer.call('%x'), '%b')}, %s)"
    weight = f"multiply(%w, {_expand('%0', 3)})"
    after = bias.format(layer.call("%x", weight), "multiply(%b, %0)")
    check_bodies(BACKWARD, params, before, f"%0 = squeeze(%s, axis=[1, 2]);\n{after}")


STAYS = {
    "rectified": "nn.relu(multiply(%x, %s))",
    "another axis": "multiply(%x, %t)",
    "a whole tensor": "multiply(%x, %x)",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_a_layer_cannot_take_stays(name: str) -> None:
    layer = LAYERS["NCHW"]
    params = f"{_params(layer, (4, 1, 1))}, %t: {tensor(3)}"
    body = layer.call(STAYS[name])
    check_bodies(FORWARD, params, body, body)


def test_a_grouped_convolution_takes_nothing() -> None:
    attrs = _conv(6, "NCHW", "OIHW", 2)
    params = f"%x: {tensor(1, 4, 3, 3)}, %w: {tensor(6, 2, 1, 1)}, %s: {tensor(4, 1, 1)}"
    params += f", %t: {tensor(6, 1, 1)}"
    body = f"multiply(nn.conv2d(multiply(%x, %s), %w, {attrs}), %t)"
    check_bodies(FORWARD, params, body, body)
    check_bodies(BACKWARD, params, body, body)


@pytest.mark.parametrize("rest", ["(nn.conv2d(%0, %w, {0}), %0)", "nn.conv2d(%0, %w, {0})\n"])
def test_every_use_of_a_product_must_come_to_a_layer(rest: str) -> None:
    layer = LAYERS["NCHW"]
    before = f"%0 = multiply(%x, %s);\n{rest.format(layer.attrs)}"
    if "(nn" in rest:
        check_bodies(FORWARD, _params(layer, (4, 1, 1)), before, before)
        return
    weight = f"multiply(%w, {_expand('squeeze(%s, axis=[1, 2])', 2)})"
    check_bodies(FORWARD, _params(layer, (4, 1, 1)), before, layer.call("%x", weight))


def test_two_layers_share_a_scale() -> None:
    layer = LAYERS["NCHW"]
    before = f"%0 = multiply(%x, %s);\nadd({layer.call('%0')}, {layer.call('exp(%0)')})"
    check_bodies(FORWARD, _params(layer, (4, 1, 1)), before, before)
    before = f"%0 = multiply(%x, %s);\nadd({layer.call('%0')}, {layer.call('%0')})"
    weight = f"multiply(%w, {_expand('%0', 2)})"
    after = f"add({layer.call('%x', weight)}, {layer.call('%x', weight)})"
    after = f"%0 = squeeze(%s, axis=[1, 2]);\n{after}"
    check_bodies(FORWARD, _params(layer, (4, 1, 1)), before, after)


@pytest.mark.parametrize("operator", ["add", "subtract"])
def test_two_layers_below_one_scale(operator: str) -> None:
    layer = LAYERS["NCHW"]
    before = f"multiply({operator}({layer.call('%x')}, nn.relu({layer.call('%x')})), %s)"
    check_bodies(BACKWARD, _params(layer, (6, 1, 1)), before, before)
    before = f"multiply({operator}({layer.call('%x')}, {layer.call('exp(%x)')}), %s)"
    weight = f"multiply(%w, {_expand('%0', 3)})"
    after = f"{operator}({layer.call('%x', weight)}, {layer.call('exp(%x)', weight)})"
    after = f"%0 = squeeze(%s, axis=[1, 2]);\n{after}"
    check_bodies(BACKWARD, _params(layer, (6, 1, 1)), before, after)


def test_a_layer_used_elsewhere_stays() -> None:
    layer = LAYERS["NCHW"]
    body = f"%0 = {layer.call('%x')};\n(multiply(%0, %s), %0)"
    check_bodies(BACKWARD, _params(layer, (6, 1, 1)), body, body)


@pytest.mark.parametrize("forward", [True, False])
def test_a_scalar_is_repeated(forward: bool) -> None:
    layer = LAYERS["NCHW"]
    vector = f"repeat(expand_dims(2f, axis=0), repeats={4 if forward else 6}, axis=0)"
    params = _params(layer, (6, 1, 1))
    if forward:
        weight = f"multiply(%w, {_expand(vector, 2)})"
        check_bodies(FORWARD, params, layer.call("multiply(%x, 2f)"), layer.call("%x", weight))
    else:
        weight = f"multiply(%w, {_expand(vector, 3)})"
        before = f"multiply(nn.relu({layer.call('%x')}), 2f)"
        check_bodies(BACKWARD, params, before, f"nn.relu({layer.call('%x', weight)})")


@pytest.mark.parametrize("level", [0, 2, 3, 4])
def test_all_three_run_from_level_three(level: int) -> None:
    x = relay.var("x", shape=(1, 4, 3, 3))
    w = relay.const(np.ones((6, 4, 1, 1), "float32"))
    body = relay.multiply(relay.nn.relu(relay.nn.conv2d(x, w)), relay.const(3.0))
    mod = InferType()(IRModule.from_expr(body))
    with PassContext(opt_level=level):
        after = FoldScaleAxis()(mod)
    if level < 3:
        assert_structural_equal(after, mod)
        return
    wanted = relay.nn.relu(relay.nn.conv2d(x, relay.const(np.full((6, 4, 1, 1), 3, "float32"))))
    assert_structural_equal(after, InferType()(IRModule.from_expr(wanted)))


@pytest.mark.wide
def test_a_long_chain_of_rectifiers() -> None:
    layer = LAYERS["NCHW"]
    x, w = relay.var("x", shape=layer.data), relay.var("w", shape=layer.weight)
    y = relay.nn.conv2d(x, w)
    for _ in range(20_000):
        y = relay.nn.relu(y)
    mod = InferType()(IRModule.from_expr(relay.multiply(y, relay.const(2.0))))
    after, changed = BACKWARD.run(mod)
    assert changed
    assert after["main"].body.op.name == "nn.relu"


@pytest.mark.parametrize("operator", ["add", "subtract"])
@pytest.mark.parametrize(
    ("values", "folds"), [((1, 0, 2, 3), False), ((-1, 1, 2, 3), True)], ids=["zero", "no zero"]
)
def test_nothing_is_divided_by_zero(operator: str, values: tuple[float, ...], folds: bool) -> None:
    x = relay.var("x", shape=(1, 4, 5, 5))
    scale = relay.const(np.array(values, "float32").reshape(4, 1, 1))
    weight = relay.const(np.arange(72, dtype="float32").reshape(2, 4, 3, 3))
    one = relay.const(np.ones((4, 1, 1), "float32"))
    shifted = getattr(relay, operator)(relay.multiply(x, scale), one)
    layer = relay.nn.conv2d(shifted, weight, kernel_size=(3, 3), channels=2)
    mod = InferType()(IRModule.from_expr(Function([x], layer)))
    data = np.linspace(-1, 1, 100, dtype="float32").reshape(1, 4, 5, 5)
    found = FORWARD(mod)
    assert (found is not mod) == folds
    before, after = (relay.create_executor(mod=m).evaluate()(data).numpy() for m in (mod, found))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("int8", "int32"), ("uint8", "int32"), ("float16", "float32"), ("int32", "int32")],
)
@pytest.mark.parametrize("forward", [True, False])
def test_a_scale_is_computed_in_its_dtype(dtype: str, result: str, forward: bool) -> None:
    x = relay.var("x", shape=(1, 4, 5, 5), dtype=dtype)
    scale = np.array((1, 9, 30, 2)).reshape(4, 1, 1)
    weight = relay.const((np.arange(144) % 5).reshape(4, 4, 3, 3).astype(dtype))
    data = relay.multiply(x, relay.const(scale.astype(dtype))) if forward else x
    layer = relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=4, out_dtype=result)
    if not forward:
        layer = relay.multiply(layer, relay.const(scale.astype(result)))
    mod = InferType()(IRModule.from_expr(Function([x], layer)))
    numbers = np.arange(100).reshape(1, 4, 5, 5).astype(dtype)
    found = (FORWARD if forward else BACKWARD)(mod)
    before, after = (relay.create_executor(mod=m).evaluate()(numbers).numpy() for m in (mod, found))
    np.testing.assert_allclose(after, before, rtol=1e-2)
    assert (found is not mod) == (dtype == "int32" or (forward and dtype == "float16"))
