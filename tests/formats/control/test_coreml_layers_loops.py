"""Branches and loops of NeuralNetworks, and the layers that end them.

Where iterations end, a loop adds a step to ``y`` and counts its turns in ``n``; the networks
differ in where they leave an iteration. The executor is ``support/nn_layers.py``, in which a break
is an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import check_layers, network_of
from support.coreml_models import tools
from support.coreml_networks import check_network, network
from support.nn_layers import evaluate_network

import serde
from serde.errors import LimitError, UnsupportedModelError

F32 = np.float32
DATA = {
    "x": np.array([0.5, -1.0], F32),
    "step": np.array([2.0], F32),
    "one": np.ones(1, F32),
    "zero": np.zeros(1, F32),
}
Body = Callable[[Any], object]


def inside(message: Any) -> Any:
    """A builder of a network within a layer."""
    neural = tools().models.neural_network
    return neural.NeuralNetworkBuilder(nn_spec=message, disable_rank5_shape_mapping=True)


def add_step(b: Any, name: str = "y", step: str = "step") -> None:
    """Add to a tensor that is there."""
    made = f"{name}_{step}_{len(b.nn_spec.layers)}"
    b.add_add_broadcastable(f"add_{made}", [name, step], made)
    b.add_copy(f"copy_{made}", made, name)


def choose(b: Any, alpha: float, yes: Body, no: Body | None = None, of: str = "n") -> None:
    """Add a branch, which is taken if a tensor is greater than a number."""
    name = f"more_{of}_{alpha}_{len(b.nn_spec.layers)}"
    b.add_greater_than(name, [of], name, alpha=alpha)
    branch = b.add_branch(f"if_{name}", name).branch
    yes(inside(branch.ifBranch))
    if no is not None:
        no(inside(branch.elseBranch))


def leave(b: Any) -> None:
    b.add_loop_break("leave")


def skip(b: Any) -> None:
    b.add_loop_continue("skip")


def looped(body: Body, most: int, below: float | None) -> Body:
    """A network with one loop, which counts its turns and how often its condition is asked."""

    def build(b: Any) -> None:
        for name, start in (("y", "x"), ("n", "zero"), ("asked", "zero")):
            b.add_copy(f"start_{name}", start, name)
        condition = None if below is None else "going"
        loop = b.add_loop("loop", condition=condition, max_iterations=most).loop
        inner = inside(loop.bodyNetwork)
        add_step(inner, "n", "one")
        body(inner)
        if below is not None:
            test = inside(loop.conditionNetwork)
            add_step(test, "asked", "one")
            test.add_less_than("going", ["n"], "going", alpha=below)
        for index, name in enumerate(("y", "n", "asked")):
            b.add_copy(f"end_{name}", name, f"y{index}")

    return build


def nested(b: Any) -> None:
    """An exit within a branch within a branch: the step after it is for all but the fourth turn."""
    choose(b, 1.5, lambda i: (choose(i, 3.5, leave), add_step(i, "y", "one")))
    add_step(b)


def only_one_gives(b: Any) -> None:
    """A tensor that the branch without an exit gives alone is used behind both."""
    choose(b, 2.5, leave, lambda i: i.add_add_broadcastable("t", ["y", "n"], "t"))
    b.add_copy("later", "t", "y")


def both_end(b: Any) -> None:
    choose(b, 3.5, lambda i: (add_step(i), leave(i)), lambda i: (add_step(i, "y", "one"), skip(i)))
    add_step(b, "y", "n")


def one_after_the_other(b: Any) -> None:
    choose(b, 4.5, leave)
    add_step(b)
    choose(b, 2.5, skip)
    add_step(b, "y", "n")
    choose(b, 1.5, skip)
    add_step(b)


def inner_loop(b: Any) -> None:
    """What a loop within the loop breaks is itself alone."""
    loop = b.add_loop("within", max_iterations=5).loop
    inner = inside(loop.bodyNetwork)
    add_step(inner)
    choose(inner, 1.5, leave)
    add_step(inner, "y", "one")
    choose(b, 2.5, leave)
    add_step(b, "y", "n")


BODIES: dict[str, Body] = {
    "a break": lambda b: (choose(b, 2.5, leave), add_step(b)),
    "a break otherwise": lambda b: (choose(b, 2.5, add_step, leave), add_step(b)),
    "a break after a step": lambda b: choose(b, 2.5, lambda i: (add_step(i), leave(i))),
    "a break at once": lambda b: (leave(b), add_step(b)),
    "a continue": lambda b: (choose(b, 2.5, skip), add_step(b)),
    "a continue at once": lambda b: (skip(b), add_step(b)),
    "a break at the end": lambda b: (add_step(b), choose(b, 2.5, leave)),
    "one after the other": one_after_the_other,
    "a branch in a branch": nested,
    "a tensor of one branch": only_one_gives,
    "both branches": both_end,
    "a loop in a loop": inner_loop,
}


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_branch(value: float) -> None:
    def build(b: Any) -> None:
        branch = b.add_branch("branch", "c")
        for part, factor in ((branch.branch.ifBranch, 2.0), (branch.branch.elseBranch, -3.0)):
            inner = inside(part)
            inner.add_activation(f"a{factor}", "LINEAR", "x", f"z{factor}", [factor, 0])
            inner.add_copy(f"c{factor}", f"z{factor}", "y")

    data = {"x": DATA["x"], "c": np.array([value], F32)}
    check_layers(build, data, DATA["x"] * F32(2 if value else -3), exact=True)


@pytest.mark.parametrize(
    ("most", "bound", "expected"), [(3, None, 3), (0, 10.0, 5), (2, 10.0, 2), (9, 4.0, 2)]
)
def test_loop(most: int, bound: float | None, expected: int) -> None:
    """Two is added to a tensor again and again, while it is small enough or so many times."""

    def build(b: Any) -> None:
        b.add_activation("start", "LINEAR", "x", "y", [1, 0])
        condition = None if bound is None else "going"
        loop = b.add_loop(
            "loop", body_network=None, input_name=None, condition=condition,
            condition_network=None, max_iterations=most,
        ).loop  # fmt: skip
        inner = inside(loop.bodyNetwork)
        inner.add_add_broadcastable("add", ["y", "z"], "sum")
        inner.add_copy("copy", "sum", "y")
        if bound is not None:
            asked = inside(loop.conditionNetwork)
            asked.add_less_than("less", ["y"], "going", alpha=bound)

    data = {"x": np.array([0.5], F32), "z": np.array([2], F32)}
    check_layers(build, data, np.array([0.5 + 2 * expected], F32), exact=True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("below", [None, 6.0, 2.0])
@pytest.mark.parametrize("most", [0, 3, 9])
@pytest.mark.parametrize("name", BODIES)
def test_iterations_end(name: str, most: int, below: float | None) -> None:
    """After a break the condition is not asked; an iteration that is cut short counts."""
    build = looped(BODIES[name], most, below)
    outputs = ["y0", "y1", "y2"]
    expected = evaluate_network(network_of(build, DATA, outputs, exact=True), DATA)
    check_layers(build, DATA, [expected[each] for each in outputs], exact=True)


@pytest.mark.parametrize("times", [0, 2, 7])
def test_iterations_as_many_as_are_asked_for(times: int) -> None:
    def build(b: Any) -> None:
        b.add_copy("start", "x", "y")
        b.add_copy("start_n", "zero", "n")
        loop = b.add_loop("loop", input_name="times").loop
        inner = inside(loop.bodyNetwork)
        add_step(inner, "n", "one")
        choose(inner, 4.5, leave)
        add_step(inner)
        b.add_copy("end", "y", "y0")
        b.add_copy("end_n", "n", "y1")

    data = {**DATA, "times": np.array([times], F32)}
    steps, turns = min(times, 4), min(times, 5)
    expected = [data["x"] + 2 * F32(steps), np.array([turns], F32)]
    check_layers(build, data, expected, exact=True)


def test_a_state_that_grows() -> None:
    """Its length is open inside the loop and behind it."""

    def build(b: Any) -> None:
        b.add_copy("start", "x", "y")
        loop = b.add_loop("loop", body_network=None, max_iterations=3).loop
        inner = inside(loop.bodyNetwork)
        inner.add_concat_nd("join", ["y", "step"], "longer", axis=0)
        inner.add_add_broadcastable("add", ["longer", "one"], "sum")
        inner.add_copy("copy", "sum", "y")

    expected = np.array([3.5, 2, 5, 4, 3], F32)
    check_layers(build, DATA, expected, exact=True)


def test_a_network_that_is_read_is_written_again() -> None:
    build = looped(one_after_the_other, 9, 6.0)
    spec = network_of(build, DATA, ["y0", "y1", "y2"], exact=True)
    expected = evaluate_network(spec, DATA)
    model = network(serde.to_relay(spec), "iOS13")
    check_network(model, DATA, [expected[name] for name in ("y0", "y1", "y2")])


@pytest.mark.parametrize("end", [leave, skip])
@pytest.mark.parametrize("deep", [False, True])
def test_an_end_outside_of_a_loop(end: Body, deep: bool) -> None:
    def build(b: Any) -> None:
        choose(b, 2.5, end, of="x") if deep else end(b)
        b.add_copy("end", "x", "y")

    with pytest.raises(UnsupportedModelError, match="not in the body of a loop"):
        serde.to_relay(network_of(build, DATA, exact=True))


def test_an_end_in_the_condition_of_a_loop() -> None:
    def build(b: Any) -> None:
        loop = b.add_loop("loop", condition="x").loop
        leave(inside(loop.conditionNetwork))
        add_step(inside(loop.bodyNetwork), "x", "one")
        b.add_copy("end", "x", "y")

    with pytest.raises(UnsupportedModelError, match="not in the body of a loop"):
        serde.to_relay(network_of(build, DATA, exact=True))


@pytest.mark.wide
@pytest.mark.parametrize("ways", [12, 40])
def test_too_many_ends(ways: int) -> None:
    """What follows a branch within a branch is there twice, so that it would grow without end."""

    def body(b: Any) -> None:
        for index in range(ways):
            choose(b, index, lambda i, n=index: choose(i, 9.5 + n, leave))

    spec = network_of(looped(body, 9, None), DATA, ["y0"], exact=True)
    with pytest.raises(LimitError, match=r"--limit (nodes|depth)="):
        serde.to_relay(spec)


def test_what_a_refused_branch_gives_is_not_missing() -> None:
    def build(b: Any) -> None:
        def own(i: Any) -> None:
            layer = i.nn_spec.layers.add(name="mine", input=["x"], output=["z"])
            layer.custom.className = "Mine"

        choose(b, 0.0, own, lambda i: i.add_copy("c", "x", "z"), of="one")
        b.add_copy("end", "z", "y")

    with pytest.raises(UnsupportedModelError, match="a layer of the user's class Mine"):
        serde.to_relay(network_of(build, DATA, exact=True))
