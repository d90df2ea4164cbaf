"""Layers of NeuralNetworks that compute element by element, functions and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from support.nn_table import F32, LAYERS, Array, layer, weights


def plain(names: Mapping[str, Callable[[Array], Array]]) -> None:
    """Register functions of one tensor."""
    for name, function in names.items():
        LAYERS[name] = lambda xs, p, f=function: f(xs[0])


def pairs(names: Mapping[str, Callable[[Array, Array], Array]]) -> None:
    """Register functions of two tensors."""
    for name, function in names.items():
        LAYERS[name] = lambda xs, p, f=function: f(*xs)


def compared(function: Callable[[Array, Any], Array]) -> Callable[..., Array]:
    """Return a comparison with a second tensor, or with a number."""
    return lambda xs, p: function(xs[0], xs[1] if len(xs) > 1 else F32(p.alpha))


def gauss(x: Array) -> Array:
    """The error function, by its series and its continued fraction in float64."""
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x.astype(np.float64)).astype(F32)


plain(
    {
        "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
        "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil,
        "copy": lambda x: x, "cos": np.cos, "cosh": np.cosh, "erf": gauss,
        "exp2": np.exp2, "floor": np.floor, "logicalNot": lambda x: x == 0, "round": np.rint,
        "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
        "getShape": lambda x: np.array(x.shape), "whereNonZero": np.argwhere,
    }
)  # fmt: skip
pairs(
    {
        "addBroadcastable": np.add, "divideBroadcastable": np.divide,
        "floorDivBroadcastable": lambda a, b: np.floor(a / b), "maxBroadcastable": np.maximum,
        "minBroadcastable": np.minimum, "modBroadcastable": np.mod,
        "multiplyBroadcastable": np.multiply, "powBroadcastable": np.power,
        "subtractBroadcastable": np.subtract,
        "logicalAnd": np.logical_and, "logicalOr": np.logical_or, "logicalXor": np.logical_xor,
        "broadcastToLike": lambda x, y: np.broadcast_to(x, y.shape),
        "broadcastToDynamic": lambda x, s: np.broadcast_to(x, s.astype(int)),
        "reshapeDynamic": lambda x, s: x.reshape(zeros_kept(x, s)),
        "gatherND": lambda x, i: x[tuple(np.moveaxis(i.astype(int), -1, 0))],
    }
)  # fmt: skip
for _name, _function in {
    "equal": np.equal, "notEqual": np.not_equal, "lessThan": np.less,
    "lessEqual": np.less_equal, "greaterThan": np.greater, "greaterEqual": np.greater_equal,
}.items():  # fmt: skip
    LAYERS[_name] = compared(_function)


def zeros_kept(x: Array, shape: Array) -> list[int]:
    """Return a shape, in which 0 stands for the length that there is."""
    return [x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape)]


@layer("add")
def add(xs: Sequence[Array], p: Any) -> Array:
    return xs[0] + F32(p.alpha) if len(xs) == 1 else sum(xs)


@layer("multiply")
def multiply(xs: Sequence[Array], p: Any) -> Array:
    return xs[0] * F32(p.alpha) if len(xs) == 1 else np.multiply(*xs)


@layer("unary")
def unary(xs: Sequence[Array], p: Any) -> Array:
    x = xs[0] * F32(p.scale or 1) + F32(p.shift)
    name = p.Operation.Name(p.type)
    table = {
        "SQRT": np.sqrt, "RSQRT": lambda v: 1 / np.sqrt(v + F32(p.epsilon or 1e-6)),
        "INVERSE": lambda v: 1 / (v + F32(p.epsilon or 1e-6)),
        "POWER": lambda v: np.power(v, F32(p.alpha)), "EXP": np.exp, "LOG": np.log,
        "ABS": np.abs, "THRESHOLD": lambda v: np.maximum(v, F32(p.alpha)),
    }  # fmt: skip
    return table[name](x)


@layer("clip")
def clip(xs: Sequence[Array], p: Any) -> Array:
    return np.clip(xs[0], F32(p.minVal), F32(p.maxVal))


@layer("activation")
def activation(xs: Sequence[Array], p: Any) -> Array:
    x, kind = xs[0], p.WhichOneof("NonlinearityType")
    own = getattr(p, kind)
    if kind == "PReLU":
        alpha = weights(own.alpha, (-1, 1, 1))
        return np.where(x >= 0, x, alpha * x)
    table = {
        "ReLU": lambda: np.maximum(x, 0), "leakyReLU": lambda: np.where(x >= 0, x, own.alpha * x),
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "sigmoidHard": lambda: np.clip(own.alpha * x + own.beta, 0, 1),
        "ELU": lambda: np.where(x > 0, x, own.alpha * np.expm1(x)),
        "softplus": lambda: np.logaddexp(x, 0), "softsign": lambda: x / (1 + np.abs(x)),
    }  # fmt: skip
    return table[kind]()


@layer("gelu")
def gelu(xs: Sequence[Array], p: Any) -> Array:
    x = xs[0]
    if p.mode == 1:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    if p.mode == 2:
        return x / (1 + np.exp(F32(-1.702) * x))
    return 0.5 * x * (1 + gauss(x / np.sqrt(F32(2))))


@layer("softmaxND")
def softmax(xs: Sequence[Array], p: Any) -> Array:
    e = np.exp(xs[0] - xs[0].max(p.axis, keepdims=True))
    return e / e.sum(p.axis, keepdims=True)


@layer("whereBroadcastable")
def where(xs: Sequence[Array], p: Any) -> Array:
    return np.where(xs[0] != 0, xs[1], xs[2])


@layer("cumSum")
def cumsum(xs: Sequence[Array], p: Any) -> Array:
    x = np.flip(xs[0], p.axis) if p.reverse else xs[0]
    found = np.cumsum(x, p.axis)
    found = found - x if p.excludeFinalSum else found
    return np.flip(found, p.axis) if p.reverse else found


@layer("loadConstantND")
def load_constant(xs: Sequence[Array], p: Any) -> Array:
    return weights(p.data, list(p.shape))


@layer("randomNormalStatic")
def random_normal(xs: Sequence[Array], p: Any) -> Array:
    return np.random.default_rng(0).normal(p.mean, p.stdDev, list(p.outputShape))


@layer("randomUniformStatic")
def random_uniform(xs: Sequence[Array], p: Any) -> Array:
    return np.random.default_rng(0).uniform(p.minVal, p.maxVal, list(p.outputShape))


@layer("categoricalDistribution")
def categorical(xs: Sequence[Array], p: Any) -> Array:
    assert p.isLogits
    assert p.temperature == 1
    rng = np.random.default_rng(0)
    chances = softmax([xs[0]], type("P", (), {"axis": -1}))
    return np.stack([rng.choice(len(row), p.numSamples, p=row / row.sum()) for row in chances])
