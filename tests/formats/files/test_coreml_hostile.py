"""Core ML models that ask for more than they hold: one error, found before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import serde
from serde.coreml.protos import message_class
from serde.errors import FormatError, LimitError, UnsupportedModelError

FLOAT32 = 65568
"""Of ``ArrayDataType``."""


def network(outputs: tuple[str, ...] = ("y",), shape: tuple[int, ...] = (2, 3)) -> tuple[Any, Any]:
    """A network of one input, ``x``, and its layers, of which there are none."""
    spec = message_class("Model.Model")(specificationVersion=4)
    array = spec.description.input.add(name="x").type.multiArrayType
    array.shape.extend(shape)
    array.dataType = FLOAT32
    for name in outputs:
        spec.description.output.add(name=name).type.multiArrayType.dataType = FLOAT32
    spec.neuralNetwork.arrayInputShapeMapping = 1
    return spec, spec.neuralNetwork.layers


def relu(layers: Any, source: str, name: str) -> None:
    """Add a layer of one input and one output."""
    layers.add(name=name, input=[source], output=[name]).activation.ReLU.SetInParent()


def read(spec: Any, **options: Any) -> Any:
    return serde.to_relay(spec.SerializeToString(), format="coreml", **options)


def single(kind: str, **fields: Any) -> Any:
    """A network of one layer without inputs."""
    spec, layers = network()
    message = getattr(layers.add(name="made", output=["y"]), kind)
    message.SetInParent()
    for name, value in fields.items():
        setattr(message, name, value)
    return spec


def branching(count: int) -> Any:
    """A loop whose iteration may end in each of some branches: what follows is in both ways."""
    spec, layers = network(shape=(1,))
    relu(layers, "x", "y")
    body = layers.add(name="loop").loop
    body.maxLoopIterations = 3
    for number in range(count):
        branch = body.bodyNetwork.layers.add(name=f"b{number}", input=["x"]).branch
        for side in (branch.ifBranch, branch.elseBranch):
            inner = side.layers.add(name=f"c{number}", input=["x"]).branch
            inner.ifBranch.layers.add(name=f"d{number}").loopContinue.SetInParent()
            inner.elseBranch.SetInParent()
    relu(body.bodyNetwork.layers, "y", "t")
    body.bodyNetwork.layers.add(name="copy", input=["t"], output=["y"]).copy.SetInParent()
    return spec


def crowded(count: int) -> Any:
    """A network of some tensors, all of which each of as many branches sees."""
    spec, layers = network(shape=(1,))
    relu(layers, "x", "c0")
    for number in range(count):
        relu(layers, f"c{number}", f"c{number + 1}")
        branch = layers.add(name=f"b{number}", input=["x"]).branch
        relu(branch.ifBranch.layers, "x", "q")
        branch.elseBranch.SetInParent()
    relu(layers, f"c{count}", "y")
    return spec


BOMBS: dict[str, tuple[Callable[[], Any], str]] = {
    "a range": (
        lambda: single("rangeStatic", endValue=1e12, stepSizeValue=1.0),
        r"made \(rangeStatic\): an array of [\d,]+ float64 would take .* --limit constants=",
    ),
    "a range of many steps": (
        lambda: single("rangeStatic", endValue=1.0, stepSizeValue=1e-30),
        r"made \(rangeStatic\): an array",
    ),
    "branches of branches": (lambda: branching(14), "--limit (nodes|depth)="),
}


@pytest.mark.parametrize(("make", "message"), BOMBS.values(), ids=BOMBS)
def test_models_beyond_their_limits(make: Callable[[], Any], message: str) -> None:
    spec = make()
    assert len(spec.SerializeToString()) < 3000
    with pytest.raises(LimitError, match=message):
        read(spec)


def test_tensors_that_every_branch_sees_are_counted() -> None:
    spec = crowded(40)
    with pytest.raises(LimitError, match=r"a network that sees [\d,]+ tensors would take"):
        read(spec, limits={"elements": 1000})
    assert read(spec).meta.outputs == ("y",)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a range to NaN": (
        lambda: single("rangeStatic", endValue=float("nan"), stepSizeValue=1.0),
        "values from 0.0 to nan in steps of 1.0",
    ),
    "a range without steps": (
        lambda: single("rangeStatic", endValue=5.0), "values from 0.0 to 5.0 in steps of 0.0",
    ),
    "an input that nothing counts": (
        lambda: network(shape=(2**62, 2**62))[0], "a tensor of the lengths",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_models_that_say_what_there_is_not(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        read(make())


def test_an_input_of_a_negative_length() -> None:
    with pytest.raises(FormatError, match="input x: expected a dimension of 0 or more, found -3"):
        read(network(shape=(2, -3))[0])


def loop_of(condition: str, iterations: int = 2) -> Any:
    spec, layers = network()
    relu(layers, "x", "y")
    loop = layers.add(name="loop").loop
    loop.maxLoopIterations = iterations
    loop.conditionVar = condition
    if condition:
        relu(loop.conditionNetwork.layers, "x", "asked")
    relu(loop.bodyNetwork.layers, "x", "unused")
    return spec


def test_a_loop_that_asks_for_no_tensor() -> None:
    with pytest.raises(UnsupportedModelError, match="no tensor is called 'other'"):
        read(loop_of("other"))


def test_a_loop_of_more_iterations_than_are_counted() -> None:
    with pytest.raises(UnsupportedModelError, match="a loop of 18446744073709551615 iterations"):
        read(loop_of("", 2**64 - 1))


def test_a_loop_over_what_could_not_be_converted() -> None:
    """What the loop writes again is missing: one line tells of its cause, and no other."""
    spec, layers = network()
    layers.add(name="odd", input=["x"], output=["y"]).custom.className = "Odd"
    body = layers.add(name="loop").loop
    body.maxLoopIterations = 2
    relu(body.bodyNetwork.layers, "y", "t")
    body.bodyNetwork.layers.add(name="copy", input=["t"], output=["y"]).copy.SetInParent()
    with pytest.raises(UnsupportedModelError) as caught:
        read(spec)
    assert [each.node for each in caught.value.report.issues] == ["odd"]


def test_a_network_gives_class_labels_only_as_a_classifier() -> None:
    """A dictionary as output is told by the layer that a classifier names, which others do not."""
    spec, layers = network()
    relu(layers, "x", "y")
    spec.description.output[0].type.dictionaryType.stringKeyType.SetInParent()
    assert read(spec).meta.outputs == ("y",)
