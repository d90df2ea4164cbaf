"""Nets of several kinds of repeated blocks and of functions of one name, with names that hurt.

Each is written with and without fragments, read by Khronos' parser and by serde, and what either
reads computes what the net does, spelled out in NumPy.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nnef_reference import run as run_graph
from support.unlucky_names import draw_names

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.transform.infer_type import InferType

nnef = pytest.importorskip("nnef")

SHAPE = (2, 3)
UNARY: dict[str, tuple[Callable[[Expr], Expr], Callable[[Any], Any]]] = {
    "tanh": (relay.tanh, np.tanh),
    "sin": (relay.sin, np.sin),
    "cos": (relay.cos, np.cos),
    "abs": (relay.abs, np.abs),
    "negative": (relay.negative, np.negative),
    "sigmoid": (relay.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "relu": (relay.nn.relu, lambda x: np.maximum(x, 0)),
}
BINARY: dict[str, tuple[Callable[[Expr, Expr], Expr], Callable[[Any, Any], Any]]] = {
    "add": (relay.add, np.add),
    "mul": (relay.multiply, np.multiply),
    "sub": (relay.subtract, np.subtract),
}


@dataclass
class Both:
    """A value, as an expression and as numbers."""

    expr: Expr
    data: np.ndarray

    def apply(self, op: str, *others: Both) -> Both:
        """The result of an operator."""
        build, compute = UNARY[op] if op in UNARY else BINARY[op]
        given = [self, *others]
        return Both(build(*(x.expr for x in given)), compute(*(x.data for x in given)))


@dataclass
class Net:
    """A net that is being made.

    Attributes:
        rng: The source of chance.
        names: Names that are left.
        functions: Functions of the module.
    """

    rng: random.Random
    names: list[str]
    params: dict[str, ArrayWeight] = field(default_factory=dict)
    vars: list[Var] = field(default_factory=list)
    functions: dict[GlobalVar, Function] = field(default_factory=dict)

    def variable(self) -> Both:
        """An input or a weight, whose name is the next."""
        values = np.random.default_rng(self.rng.randrange(2**32)).standard_normal(SHAPE)
        self.vars.append(relay.var(self.names.pop(), shape=SHAPE))
        return Both(self.vars[-1], values.astype("float32"))

    def weight(self) -> Both:
        """A weight."""
        made = self.variable()
        self.params[self.vars[-1].name_hint] = ArrayWeight(made.data)
        return made

    def kind(self) -> list[tuple[str, str]]:
        """The steps of a block: the operator, and where its second operand comes from."""
        steps = [(self.rng.choice([*UNARY]), "") for _ in range(self.rng.randint(2, 4))]
        for _ in range(self.rng.randint(1, 4)):
            step = (self.rng.choice([*BINARY]), self.rng.choice(("weight", "weight", "input")))
            steps.insert(self.rng.randrange(len(steps)), step)
        return steps

    def block(self, x: Both, steps: list[tuple[str, str]]) -> Both:
        """A block behind a value."""
        entered = x
        for op, second in steps:
            others = [] if not second else [entered if second == "input" else self.weight()]
            x = x.apply(op, *others)
        return x

    def call(self, x: Both, steps: list[tuple[str, str]], name: str, *, as_global: bool) -> Both:
        """The call of a function whose body is a block; its weights are parameters."""
        inner = relay.var("x", shape=SHAPE)
        params, args = [inner], [x.expr]
        y = entered = Both(inner, x.data)
        for op, second in steps:
            others = [entered] if second == "input" else []
            if second == "weight":
                outer = self.weight()
                args.append(outer.expr)
                params.append(relay.var(f"p{len(params)}", shape=SHAPE))
                others = [Both(params[-1], outer.data)]
            y = y.apply(op, *others)
        function = Function(params, y.expr)
        if not as_global:
            return Both(Call(function.with_attr("Composite", name), args), y.data)
        self.functions[GlobalVar(name)] = function
        return Both(Call([*self.functions][-1], args), y.data)

    def model(self, outputs: list[Both]) -> RelayModel:
        """The model; its outputs have the names that are next."""
        names = tuple(self.names.pop() for _ in outputs)
        main = Function(self.vars, relay.Tuple([each.expr for each in outputs]))
        typed = InferType()(IRModule({GlobalVar("main"): main, **self.functions}))
        inputs = tuple(x.name_hint for x in self.vars if x.name_hint not in self.params)
        return RelayModel(typed, self.params, ModelMeta(inputs, names))


def draw(seed: int) -> tuple[RelayModel, dict[str, np.ndarray], list[np.ndarray]]:
    """A net with its inputs and what it computes."""
    rng = random.Random(seed)
    net = Net(rng, draw_names(rng, 400))
    x = net.variable()
    given = {net.vars[0].name_hint: x.data}
    kinds = [net.kind() for _ in range(rng.randint(3, 5))]
    shared = net.names.pop()
    outputs = []
    for kind in kinds:
        for _ in range(rng.randint(4, 6)):
            x = net.block(x, kind).apply("tanh")  # products would outgrow float32
        outputs.append(x.apply("tanh"))
    for place in range(rng.randint(3, 4)):
        x = net.call(x, net.kind(), shared, as_global=False)
        if place < 2:
            x = net.call(x, net.kind(), net.names.pop(), as_global=True)
    return net.model([*outputs, x.apply("cos")]), given, [
        *(each.data for each in outputs), np.cos(x.data),
    ]  # fmt: skip


def read_strictly(folder: Path, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What Khronos' parser reads computes, by the specification."""
    text = (folder / "graph.nnef").read_text(encoding="utf-8")
    lowered = re.findall(r"^fragment (\w+)", text, re.MULTILINE)
    graph = nnef.load_graph(str(folder), stdlib="", lowered=lowered)
    nnef.infer_shapes(graph)
    found = run_graph(graph, dict(zip(graph.inputs, feeds, strict=True)))
    return [found[name] for name in graph.outputs]


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(3, 120))]


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS)
def test_fragments_keep_their_meaning_under_any_names(seed: int, tmp_path: Path) -> None:
    model, given, expected = draw(seed)
    for fragments in (False, True):
        folder = tmp_path / f"{fragments}_nnef"
        serde.from_relay(model, format="nnef", path=folder, nnef_fragments=fragments)
        back = serde.to_relay(folder)
        own = RelayEngine(back).run(dict(zip(back.meta.inputs, given.values(), strict=True)))
        for found in (read_strictly(folder, [*given.values()]), own):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
