"""Small ONNX models whose names come from the pool of those that hurt, and rows of blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.unlucky_names import draw_names

Array = np.ndarray
FLOAT = TensorProto.FLOAT

BINARY = ("Add", "Sub", "Mul", "Max")
UNARY = ("Sin", "Tanh", "Relu", "Sigmoid", "Neg")
WEIGHTED = ("Gemm", "MatMul", "Bias", "BatchNormalization")
NAMES = 16
NUMBERED = ("v", "x", "value_", "constant_")
"""What names begin with that are numbered, where none is left of those that were drawn."""


class NamedNet:
    """An ONNX model that grows node by node; each name is the next one of a list.

    Args:
        rng: The source of chance.
        names: Names that differ; where none is left, values are numbered.
    """

    def __init__(self, rng: random.Random, names: Sequence[str]) -> None:
        self.rng = rng
        self.draws = np.random.default_rng(rng.randrange(2**32))
        self.inputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, Array] = {}
        self.weights: list[TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        given = iter(names)
        stem = rng.choice(NUMBERED)
        rest = (name for n in count() if (name := f"{stem}{n}") not in names)
        self._names = (next(given, None) or next(rest) for _ in count())

    def name(self) -> str:
        """The next name."""
        return next(self._names)

    def input(self, *shape: int) -> str:
        """A further input."""
        name = self.name()
        self.inputs.append(helper.make_tensor_value_info(name, FLOAT, shape))
        self.feeds[name] = self.draws.normal(size=shape).astype(np.float32)
        return name

    def weight(self, *shape: int, positive: bool = False, name: str = "") -> str:
        """A further weight, of which no two are equal."""
        name = name or self.name()
        values = self.draws.normal(size=shape, scale=0.5 / np.sqrt(shape[0])).astype(np.float32)
        values = np.abs(values) + 0.5 if positive else values
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op: str, *operands: str, **attributes: object) -> str:
        """A further node, and the name of its result."""
        result, title = self.name(), self.name()
        self.nodes.append(helper.make_node(op, operands, [result], name=title, **attributes))
        return result

    def finish(self, outputs: Sequence[str], *shape: int) -> onnx.ModelProto:
        """The model with some of its values, which have one shape, as outputs."""
        made = [helper.make_tensor_value_info(each, FLOAT, shape) for each in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, made, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def named_net(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A graph of one to six inputs, some weights and several outputs, and values of its inputs."""
    rng = random.Random(seed)
    names = [each for each in draw_names(rng, NAMES) if each]
    rng.shuffle(names)
    net = NamedNet(rng, names)
    found = [net.input(3, 4) for _ in range(rng.randrange(1, 7))]
    for _ in range(rng.randrange(3, 9)):
        one, other = rng.choice(found), rng.choice(found)
        op = rng.choice((*BINARY, *UNARY, *WEIGHTED, "If"))
        found.append(_write(net, op, one, other))
    last = found[-1]
    for each in net.feeds:  # Nothing that is given stays unread.
        last = net.node("Add", last, each)
    computed = [each for each in found if each not in net.feeds]
    return net.finish([*rng.sample(computed, rng.randrange(1, 4)), last], 3, 4), net.feeds


def _write(net: NamedNet, op: str, one: str, other: str) -> str:
    if op in UNARY:
        return net.node(op, one)
    if op == "Gemm":
        return net.node(op, one, net.weight(4, 4), net.weight(4), transB=1)
    if op == "MatMul":
        return net.node(op, one, net.weight(4, 4))
    if op == "Bias":
        return net.node("Add", one, net.weight(4))
    if op == "BatchNormalization":
        plain = [net.weight(4), net.weight(4), net.weight(4)]
        return net.node(op, one, *plain, net.weight(4, positive=True))
    if op == "If":
        total = net.node("ReduceSum", one, keepdims=0)
        zero = net.node("Sub", total, total)
        return net.node("If", net.node("Greater", total, zero), **_branches(net, one, other))
    return net.node(op, one, other)


def _branches(net: NamedNet, one: str, other: str) -> dict[str, onnx.GraphProto]:
    """Two branches that read what is around them."""
    found = {}
    for branch, op in (("then_branch", "Add"), ("else_branch", "Mul")):
        inner, result = net.name(), net.name()
        nodes = [
            helper.make_node("Sin", [one], [inner], name=net.name()),
            helper.make_node(op, [inner, other], [result], name=net.name()),
        ]
        made = [helper.make_tensor_value_info(result, FLOAT, (3, 4))]
        found[branch] = helper.make_graph(nodes, branch, [], made)
    return found


Block = Callable[[NamedNet, str, str, Sequence[int]], str]
SIZES = (8, 12, 16, 24)


def row_of_blocks(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Blocks of all kinds in stages, two to five of the same sizes behind each other."""
    rng = random.Random(seed)
    net = NamedNet(rng, [each for each in draw_names(rng, NAMES) if each])
    x = net.input(2, 8, 24)
    stages = [*KINDS, *rng.choices(KINDS, k=3)]
    rng.shuffle(stages)
    number = count()
    for kind, title in zip(stages, draw_names(rng, len(stages)), strict=True):
        sizes = rng.choices(SIZES, k=4)
        for _ in range(rng.randrange(2, 6)):
            x = kind(net, x, f"{title}.{next(number)}", sizes)
    return net.finish([x], 2, 8, 24), net.feeds


def _linear(net: NamedNet, x: str, scope: str, before: int, after: int) -> str:
    product = net.node("MatMul", x, net.weight(before, after, name=f"{scope}.weight"))
    return net.node("Add", product, net.weight(after, name=f"{scope}.bias"))


def _conv(net: NamedNet, x: str, scope: str, before: int, after: int, width: int = 1) -> str:
    """A convolution that keeps the length."""
    dilation = 2 if width == 3 else 1
    kernel = net.weight(after, before // 2, width, name=f"{scope}.weight")
    pads = [dilation * (width // 2)] * 2
    bias = net.weight(after, name=f"{scope}.bias")
    return net.node("Conv", x, kernel, bias, group=2, pads=pads, dilations=[dilation])


def _short(net: NamedNet, x: str, scope: str, sizes: Sequence[int]) -> str:
    """A block that is given one number."""
    y = net.node("Relu", _linear(net, x, f"{scope}.first", 24, sizes[0]))
    return net.node("Tanh", net.node("Add", x, _linear(net, y, f"{scope}.second", sizes[0], 24)))


def _long(net: NamedNet, x: str, scope: str, sizes: Sequence[int]) -> str:
    """A block that is given so many numbers that its call takes several lines."""
    one, two, three, four = sizes
    y = net.node("Relu", _conv(net, x, f"{scope}.expand", 8, one))
    y = net.node("Sigmoid", _conv(net, y, f"{scope}.spatial", one, two, 3 if four < 16 else 5))
    y = net.node("Relu", _conv(net, y, f"{scope}.mix", two, three))
    y = net.node("Relu", _conv(net, y, f"{scope}.again", three, four, 3))
    y = net.node("Clip", _conv(net, y, f"{scope}.project", four, 8), *_limits(net))
    return net.node("Tanh", net.node("Add", x, y))


def _limits(net: NamedNet) -> tuple[str, str]:
    found = []
    for value in (np.finfo(np.float32).min, 6.0):
        found.append(net.name())
        net.weights.append(numpy_helper.from_array(np.float32(value), found[-1]))
    return found[0], found[1]


def _attention(net: NamedNet, x: str, scope: str, sizes: Sequence[int]) -> str:
    """Plain attention with a mask of the least number, and a product behind it."""
    q, k = (_linear(net, x, f"{scope}.attn.{each}", 24, sizes[0]) for each in "qk")
    v = _linear(net, x, f"{scope}.attn.v", 24, sizes[1])
    scores = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 1]))
    mask = net.name()
    least = np.triu(np.full((8, 8), np.finfo(np.float32).min), 1)
    net.weights.append(numpy_helper.from_array(least, mask))
    weights = net.node("Softmax", net.node("Add", scores, mask), axis=-1)
    found = _linear(net, net.node("MatMul", weights, v), f"{scope}.attn.out", sizes[1], 24)
    y = net.node("Add", x, found)
    inner = net.node("Relu", _linear(net, y, f"{scope}.mlp.first", 24, sizes[2]))
    inner = _linear(net, inner, f"{scope}.mlp.second", sizes[2], 24)
    return net.node("Tanh", net.node("Add", y, inner))


KINDS: Sequence[Block] = (_short, _long, _attention)
