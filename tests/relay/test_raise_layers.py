"""Layers that models spell out, found as what they are; NumPy spelled out here is the judge."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import serde.relay as relay
from serde.relay import transform
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

X = Var("x", TensorType((2, 5, 8), "float32"))
G, B = (Var(name, TensorType((8,), "float32")) for name in "gb")
W = Var("w", TensorType((8, 4), "float32"))
BIAS = Var("bias", TensorType((4,), "float32"))


def number(value: float) -> Expr:
    return relay.const(np.float32(value))


def mean(x: Expr, axis: int = -1) -> Expr:
    return relay.mean(x, axis=(axis,), keepdims=True)


def erf_gelu(root: float = math.sqrt(2)) -> Expr:
    return relay.multiply(
        relay.multiply(X, relay.add(relay.erf(relay.divide(X, number(root))), number(1))),
        number(0.5),
    )


def tf_gelu() -> Expr:
    inner = relay.erf(relay.multiply(number(math.sqrt(0.5)), X))
    return relay.multiply(relay.multiply(number(0.5), X), relay.add(number(1), inner))


def tanh_gelu(share: float = 0.044715) -> Expr:
    cube = relay.power(X, number(3))
    inner = relay.add(X, relay.multiply(number(share), cube))
    chance = relay.add(relay.tanh(relay.multiply(number(math.sqrt(2 / math.pi)), inner)), number(1))
    return relay.multiply(relay.multiply(X, number(0.5)), chance)


def fast_gelu() -> Expr:
    """As GPT-2's fast form has it."""
    part = relay.multiply(relay.multiply(X, number(0.044715)), X)
    inner = relay.multiply(
        relay.multiply(X, number(math.sqrt(2 / math.pi))), relay.add(number(1), part)
    )
    return relay.multiply(relay.multiply(number(0.5), X), relay.add(number(1), relay.tanh(inner)))


def quick_gelu(factor: float = 1.702) -> Expr:
    return relay.multiply(X, relay.sigmoid(relay.multiply(X, number(factor))))


def hard_swish(form: str, three: float = 3.0, most: float = 6.0) -> Expr:
    """Return the product of a value and a gate in the forms of MXNet and of PyTorch."""
    gate = relay.clip(relay.add(X, number(three)), 0.0, most)
    if form == "quotient of the gate":
        return relay.multiply(X, relay.divide(gate, number(6)))
    if form == "quotient of the product":
        return relay.divide(relay.multiply(X, gate), number(6))
    return relay.multiply(relay.multiply(gate, number(1 / 6)), X)


def hard_gate(a: Given) -> np.ndarray:
    return a["x"] * np.clip(a["x"] + 3, 0, 6) / 6


def torch_norm(gamma: Expr | None = G, beta: Expr | None = B, axis: int = -1) -> Expr:
    centred = relay.subtract(X, mean(X, axis))
    power = mean(relay.power(centred, number(2)), axis)
    found = relay.divide(centred, relay.sqrt(relay.add(power, number(1e-12))))
    found = found if gamma is None else relay.multiply(found, gamma)
    return found if beta is None else relay.add(found, beta)


def keras_norm() -> Expr:
    middle = mean(X)
    centred = relay.subtract(X, middle)
    power = mean(relay.multiply(centred, centred))
    factor = relay.multiply(relay.rsqrt(relay.add(power, number(1e-12))), G)
    shift = relay.subtract(B, relay.multiply(middle, factor))
    return relay.add(relay.multiply(X, factor), shift)


def norm_of_two_axes() -> Expr:
    axes = {"axis": (1, 2), "keepdims": True}
    centred = relay.subtract(X, relay.mean(X, **axes))
    power = relay.mean(relay.multiply(centred, centred), **axes)
    found = relay.multiply(centred, relay.rsqrt(relay.add(power, number(1e-12))))
    return relay.multiply(found, relay.reshape(relay.concatenate([G] * 5, 0), (5, 8)))


def product(bias: Expr | None = BIAS) -> Expr:
    found = call("serde.matmul", X, W)
    return found if bias is None else relay.add(bias, found)


Q, V = (Var(name, TensorType((2, 3, 5, 4), "float32")) for name in "qv")
KT = Var("kt", TensorType((2, 3, 4, 5), "float32"))


def attention(scale: float, form: str) -> Expr:
    q, k = Q, KT
    if form == "both":
        q, k = relay.multiply(Q, number(scale)), relay.multiply(KT, number(scale))
    elif form == "query":
        q = relay.multiply(Q, number(scale))
    scores = call("serde.matmul", q, k)
    if form == "divide":
        scores = relay.divide(scores, number(scale))
    return call("serde.matmul", relay.nn.softmax(scores), V)


@pytest.mark.parametrize(
    ("form", "scale", "total"),
    [("query", 0.5, 0.5), ("divide", 2.0, 0.5), ("both", 0.75, 0.5625), ("none", 1.0, 1.0)],
)
def test_attention_without_a_mask(form: str, scale: float, total: float) -> None:
    function = infer_function(Function([Q, KT, V], attention(scale, form)))
    found = transform.RaiseLayers(lambda _node: True).transform(function)
    assert operators(found) == ["transpose", "serde.attention"]
    rng = np.random.default_rng(8)
    shapes = [(2, 3, 5, 4), (2, 3, 4, 5), (2, 3, 5, 4)]
    q, k, v = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    scores = np.exp(q @ k * total)
    wanted = scores / scores.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(run(found, [q, k, v]), wanted, rtol=1e-5, atol=1e-6)


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = {"x": (2, 5, 8), "g": (8,), "b": (8,), "w": (8, 4), "bias": (4,)}
    return {k: rng.normal(0.2, 1.5, shape).astype(np.float32) for k, shape in shapes.items()}


def gelu(x: np.ndarray) -> np.ndarray:
    chance = [0.5 * (1 + math.erf(each / math.sqrt(2))) for each in x.reshape(-1).tolist()]
    return x * np.reshape(chance, x.shape)


def gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def norm(
    x: np.ndarray, g: np.ndarray | float = 1.0, b: np.ndarray | float = 0.0, axis: object = -1
) -> np.ndarray:
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis, keepdims=True) + 1e-12) * g + b


Given = dict[str, np.ndarray]
FORMS: dict[str, tuple[Callable[[], Expr], str, Callable[[Given], np.ndarray]]] = {
    "erf": (erf_gelu, "serde.gelu", lambda a: gelu(a["x"])),
    "erf-tf": (tf_gelu, "serde.gelu", lambda a: gelu(a["x"])),
    "tanh": (tanh_gelu, "serde.gelu", lambda a: gelu_by_tanh(a["x"])),
    "tanh-fast": (fast_gelu, "serde.gelu", lambda a: gelu_by_tanh(a["x"])),
    **{
        form: (lambda form=form: hard_swish(form), "serde.hard_swish", hard_gate)
        for form in ("quotient of the gate", "quotient of the product", "sixth of the gate")
    },
    "sigmoid": (quick_gelu, "serde.swish", lambda a: a["x"] / (1 + np.exp(-1.702 * a["x"]))),
    "norm": (torch_norm, "nn.layer_norm", lambda a: norm(a["x"], a["g"], a["b"])),
    "norm-factor": (
        lambda: torch_norm(beta=None), "nn.layer_norm", lambda a: norm(a["x"], a["g"]),
    ),
    "norm-bare": (lambda: torch_norm(None, None), "nn.layer_norm", lambda a: norm(a["x"])),
    "norm-of-axis-1": (
        lambda: torch_norm(None, None, 1), "nn.layer_norm", lambda a: norm(a["x"], axis=1),
    ),
    "norm-keras": (keras_norm, "nn.layer_norm", lambda a: norm(a["x"], a["g"], a["b"])),
    "norm-of-two": (
        norm_of_two_axes, "serde.layer_norm", lambda a: norm(a["x"], a["g"], axis=(1, 2)),
    ),
    "dense": (product, "nn.dense", lambda a: a["x"] @ a["w"] + a["bias"]),
    "dense-bare": (lambda: product(None), "nn.dense", lambda a: a["x"] @ a["w"]),
}  # fmt: skip


def raised(body: Expr) -> Function:
    function = infer_function(Function([X, G, B, W, BIAS], body))
    return transform.RaiseLayers(lambda _node: True, {"g", "b", "w", "bias"}).transform(function)


def operators(function: Function) -> list[str]:
    nodes = post_order(function.body)
    return [n.op.name for n in nodes if isinstance(n, Call) and isinstance(n.op, OpDef)]


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    build, layer, expected = FORMS[name]
    function = raised(build())
    assert layer in operators(function)
    assert not {"mean", "erf", "tanh", "sigmoid", "serde.matmul", "add"} & {*operators(function)}
    given = arrays()
    found = run(function, [given[param.name_hint] for param in function.params])
    exact = {key: value.astype(np.float64) for key, value in given.items()}
    np.testing.assert_allclose(found, expected(exact), rtol=2e-5, atol=2e-5)


OTHERS: dict[str, Callable[[], Expr]] = {
    "another root": lambda: erf_gelu(1.4142),
    "another share": lambda: tanh_gelu(0.0447),
    "another factor": lambda: quick_gelu(1.7),
    "another limit of a gate": lambda: hard_swish("quotient of the gate", most=5.0),
    "another middle of a gate": lambda: hard_swish("quotient of the product", three=2.0),
    "a factor of other axes": lambda: torch_norm(
        relay.reshape(relay.strided_slice(G, [0], [5], [1]), (5, 1)), None
    ),
    "a bias of rows": lambda: product(relay.reshape(relay.concatenate([BIAS] * 5, 0), (5, 4))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_means_something_else_stays(name: str) -> None:
    body = OTHERS[name]()
    function = raised(body)
    names = operators(function)
    layers = {"serde.gelu", "serde.hard_swish", "serde.swish"} & {*names}
    assert not layers
    assert "multiply" in names or "add" in names
    given = arrays()
    values = [given[param.name_hint] for param in function.params]
    before = run(infer_function(Function(function.params, body)), values)
    np.testing.assert_allclose(run(function, values), before, rtol=2e-5, atol=2e-5)


def test_what_is_used_elsewhere_stays() -> None:
    found = erf_gelu()
    inner = next(n for n in post_order(found) if isinstance(n, Call) and n.op.name == "erf")
    names = operators(raised(Tuple([found, inner])))
    assert "erf" in names
    assert "serde.gelu" not in names


def test_a_matrix_that_is_computed_stays() -> None:
    square = relay.multiply(X, X)
    other = TupleGetItem(Tuple([relay.reshape(relay.sum(square, axis=(0, 1)), (8, 1))]), 0)
    assert "nn.dense" not in operators(raised(call("serde.matmul", X, other)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_norm_of_two_axes_is_as_precise_as_it_was(dtype: str) -> None:
    x = Var("x", TensorType((2, 5, 8), dtype))
    axes = {"axis": (1, 2), "keepdims": True}
    centred = relay.subtract(x, relay.mean(x, **axes))
    power = relay.mean(relay.multiply(centred, centred), **axes)
    epsilon = relay.Constant(np.array(1e-12, dtype))
    body = relay.divide(centred, relay.sqrt(relay.add(power, epsilon)))
    plain = infer_function(Function([x], body))
    function = transform.RaiseLayers(lambda _node: True).transform(plain)
    assert "serde.layer_norm" in operators(function)
    given = (np.random.default_rng(1).standard_normal((2, 5, 8)) + 1e3).astype(dtype)
    wide = given.astype(np.float64)
    wanted = (wide - wide.mean((1, 2), keepdims=True)) / wide.std((1, 2), keepdims=True)
    found = run(function, [given])
    np.testing.assert_allclose(found, wanted, atol=float(np.finfo(dtype).eps) * 4e3)


def test_a_mean_over_no_axes_is_no_norm() -> None:
    centred = relay.subtract(X, relay.mean(X, axis=(), keepdims=True))
    power = relay.mean(relay.multiply(centred, centred), axis=(), keepdims=True)
    body = relay.divide(centred, relay.sqrt(relay.add(power, number(1e-5))))
    assert "mean" in operators(raised(body))


def test_layers_that_a_target_lacks_stay() -> None:
    function = infer_function(Function([X, G, B], torch_norm()))
    assert transform.RaiseLayers(lambda _node: False).transform(function) is function
