"""MIL's branches, loops, states, classifiers, random numbers and boxes in Relay.

The programs are made by coremltools; expected values are spelled out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.mil import check_import, program_of

import serde
from serde.relay.ir.expr import Call
from serde.relay.ir.model import RelayModel
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run


def converted(build: Any, target: str = "iOS15", **shapes: tuple[int, ...]) -> RelayModel:
    """A program of float32 inputs, unchanged by coremltools' passes, as Relay."""
    ct = tools()
    from coremltools.converters.mil import Builder

    names = ", ".join(shapes)
    scope: dict[str, Any] = {"build": build}
    exec(f"def program({names}): return build({names})", scope)
    version = getattr(ct.target, target)
    specs = [Builder.TensorSpec(shape=shape) for shape in shapes.values()]
    program = Builder.program(input_specs=specs, opset_version=version)(scope["program"])
    model = ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=version,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )
    return serde.to_relay(model)


def results(model: RelayModel, **given: np.ndarray) -> list[np.ndarray]:
    values = given | {name: weight.array() for name, weight in model.params.items()}
    found = run(model.main, [values[p.name_hint] for p in model.main.params], mod=model.mod)
    return list(found) if isinstance(found, tuple) else [found]


X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


@pytest.mark.parametrize("bound", [-100.0, 100.0])
def test_cond(bound: float) -> None:
    """Branches see what is around them, and give several values."""
    from coremltools.converters.mil import Builder

    def build(x: Any) -> Any:
        doubled = Builder.mul(x=x, y=2.0)
        pred = Builder.greater(x=Builder.reduce_sum(x=x), y=np.float32(bound))
        weight = np.arange(12, dtype=np.float32).reshape(2, 6)[:, :3]
        return Builder.cond(
            pred=pred,
            _true_fn=lambda: (Builder.add(x=doubled, y=weight), Builder.relu(x=x)),
            _false_fn=lambda: (Builder.sub(x=x, y=weight), Builder.identity(x=doubled)),
        )

    weight = np.arange(12, dtype=np.float32).reshape(2, 6)[:, :3]
    wanted = [2 * X + weight, np.maximum(X, 0)] if bound < 0 else [X - weight, 2 * X]
    for ours, theirs in zip(results(converted(build, x=(2, 3)), x=X), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_cond_of_one_value() -> None:
    from coremltools.converters.mil import Builder

    def build(x: Any) -> Any:
        pred = Builder.less(x=Builder.reduce_max(x=x), y=np.float32(0))
        return Builder.cond(
            pred=pred, _true_fn=lambda: Builder.exp(x=x), _false_fn=lambda: Builder.square(x=x)
        )

    (found,) = results(converted(build, x=(2, 3)), x=X)
    np.testing.assert_array_equal(found, X * X)


@pytest.mark.parametrize("limit", [0.0, 5.0, 40.0])
def test_while_loop(limit: float) -> None:
    """The body takes a value from around it; a loop may not be entered at all."""
    from coremltools.converters.mil import Builder

    def build(x: Any) -> Any:
        step = Builder.add(x=Builder.abs(x=x), y=np.float32(1))
        count, total = Builder.while_loop(
            _cond=lambda count, total: Builder.less(
                x=Builder.reduce_sum(x=total, keep_dims=False), y=np.float32(limit)
            ),
            _body=lambda count, total: (Builder.add(x=count, y=1), Builder.add(x=total, y=step)),
            loop_vars=(np.int32(0), np.ones((2, 3), np.float32)),
        )
        return Builder.identity(x=count), Builder.identity(x=total)

    count, total = 0, np.ones((2, 3), np.float32)
    while total.sum() < limit:
        count, total = count + 1, total + np.abs(X) + 1
    found = results(converted(build, x=(2, 3)), x=X)
    assert int(found[0]) == count
    np.testing.assert_array_equal(found[1], total)


def test_loop_in_a_branch() -> None:
    from coremltools.converters.mil import Builder

    def halved(x: Any) -> Any:
        return Builder.while_loop(
            _cond=lambda y: Builder.greater(x=Builder.reduce_max(x=y), y=np.float32(1)),
            _body=lambda y: Builder.mul(x=y, y=0.5),
            loop_vars=(x,),
        )

    def build(x: Any) -> Any:
        pred = Builder.greater(x=Builder.reduce_max(x=x), y=np.float32(1))
        return Builder.cond(
            pred=pred, _true_fn=lambda: halved(x), _false_fn=lambda: Builder.relu(x=x)
        )

    (found,) = results(converted(build, x=(2, 3)), x=X)
    np.testing.assert_array_equal(found, X / 4)


def test_loop_whose_variable_grows() -> None:
    from coremltools.converters.mil import Builder

    def build(x: Any) -> Any:
        return Builder.while_loop(
            _cond=lambda count, rows: Builder.less(x=count, y=3),
            _body=lambda count, rows: (
                Builder.add(x=count, y=1),
                Builder.concat(values=(rows, x), axis=0),
            ),
            loop_vars=(np.int32(0), x),
        )[1]

    (found,) = results(converted(build, x=(2, 3)), x=X)
    np.testing.assert_array_equal(found, np.concatenate([X] * 4))


def test_states_become_inputs_and_outputs(tmp_path: Path) -> None:
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    @Builder.program(
        input_specs=[
            Builder.TensorSpec(shape=(2, 3), dtype=types.fp16),
            Builder.StateTensorSpec(shape=(2, 3), dtype=types.fp16),
        ],
        opset_version=ct.target.iOS18,
    )
    def program(x: Any, memory: Any) -> Any:
        before = Builder.read_state(input=memory)
        total = Builder.add(x=before, y=x)
        after = Builder.coreml_update_state(state=memory, value=total)
        return Builder.mul(x=after, y=np.float16(2), name="result")

    model = ct.convert(
        program,
        convert_to="mlprogram",
        minimum_deployment_target=ct.target.iOS18,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )
    model.save(str(tmp_path / "model.mlpackage"))
    found = serde.to_relay(tmp_path / "model.mlpackage")
    assert found.meta.inputs == ("x", "memory")
    assert found.meta.outputs == ("result", "memory_out")
    half = X.astype(np.float16)
    doubled, memory = results(found, x=half, memory=half + 1)
    np.testing.assert_array_equal(memory, 2 * half + 1)
    np.testing.assert_array_equal(doubled, 4 * half + 2)


@pytest.mark.parametrize("labels", [["cat", "dog", "bird"], [7, 8, 9]])
def test_classify(labels: list[Any]) -> None:
    ct = tools()
    from coremltools.converters.mil import Builder

    @Builder.program(input_specs=[Builder.TensorSpec(shape=(1, 3))])
    def program(x: Any) -> Any:
        return Builder.softmax(x=x, axis=-1, name="scores")

    model = ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.iOS15,
        classifier_config=ct.ClassifierConfig(labels),
        skip_model_load=True,
    )
    found = serde.to_relay(model)
    assert found.meta.labels == tuple(map(str, labels))
    assert len(found.meta.outputs) == 1
    x = np.array([[1, 2, 3]], np.float32)
    (scores,) = results(found, x=x)
    np.testing.assert_allclose(scores, np.exp(x) / np.exp(x).sum(), rtol=1e-6)


def drawn(op: str, attrs: dict[str, Any]) -> np.ndarray:
    """What an operator draws that has no inputs but constants."""
    from coremltools.converters.mil import Builder

    def build(x: Any) -> Any:
        numbers = getattr(Builder, op)(shape=np.array([200, 300], np.int32), **attrs)
        return Builder.add(x=numbers, y=x, name="result")

    (found,) = results(converted(build, x=(1,)), x=np.zeros(1, np.float32))
    assert found.shape == (200, 300)
    assert found.dtype == np.float32
    return found


@pytest.mark.parametrize("seed", [-1, 5])
def test_random_uniform(seed: int) -> None:
    found = drawn("random_uniform", {"low": np.float32(-1), "high": np.float32(3), "seed": seed})
    assert -1 <= found.min() < -0.99
    assert 2.99 < found.max() < 3
    np.testing.assert_allclose([found.mean(), found.var()], [1, 16 / 12], atol=0.02)


@pytest.mark.parametrize("seed", [-1, 5])
def test_random_normal(seed: int) -> None:
    found = drawn("random_normal", {"mean": np.float32(2), "stddev": np.float32(3), "seed": seed})
    np.testing.assert_allclose([found.mean(), found.std()], [2, 3], atol=0.05)


def test_random_bernoulli() -> None:
    found = drawn("random_bernoulli", {"prob": np.float32(0.2)})
    assert set(np.unique(found)) == {0, 1}
    np.testing.assert_allclose(found.mean(), 0.2, atol=0.01)


@pytest.mark.parametrize("mode", ["logits", "probs"])
@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4), (4,)])
def test_random_categorical(shape: tuple[int, ...], mode: str) -> None:
    chances = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    given = np.broadcast_to(np.log(chances) if mode == "logits" else chances, shape).copy()
    model = serde.to_relay(
        program_of("random_categorical", {"x": given}, {"mode": mode, "size": 20000})
    )
    (found,) = results(model, x=given)
    assert found.shape == (*shape[:-1], 20000)
    assert found.dtype == np.float32
    share = [(found == kind).mean() for kind in range(4)]
    np.testing.assert_allclose(share, chances, atol=0.015)


def test_random_numbers_are_drawn_anew() -> None:
    model = serde.to_relay(program_of("random_categorical", {"x": X}, {"size": 4}))
    names = {node.op.name for node in post_order(model.main.body) if isinstance(node, Call)}
    assert "serde.multinomial" in names


def overlap(one: np.ndarray, two: np.ndarray) -> float:
    low = np.maximum(one[:2] - one[2:] / 2, two[:2] - two[2:] / 2)
    high = np.minimum(one[:2] + one[2:] / 2, two[:2] + two[2:] / 2)
    common = np.maximum(high - low, 0).prod()
    return float(common / (one[2:].prod() + two[2:].prod() - common))


def suppressed(
    boxes: np.ndarray, scores: np.ndarray, bound: float, least: float, most: int, by_class: bool
) -> list[np.ndarray]:
    """As the documentation has it: the best first, none that overlaps a better one."""
    found = [
        np.zeros((len(boxes), most, 4), np.float32),
        np.zeros((len(boxes), most, scores.shape[2]), np.float32),
        np.full((len(boxes), most), -1, np.int32),
        np.zeros(len(boxes), np.int32),
    ]
    for image in range(len(boxes)):
        best, kind = scores[image].max(1), scores[image].argmax(1)
        kept: list[int] = []
        for index in np.argsort(-best, kind="stable"):
            rivals = [k for k in kept if not by_class or kind[k] == kind[index]]
            if best[index] < least or len(kept) == most:
                continue
            if all(overlap(boxes[image, k], boxes[image, index]) <= bound for k in rivals):
                kept.append(int(index))
        found[0][image, : len(kept)] = boxes[image, kept]
        found[1][image, : len(kept)] = scores[image, kept]
        found[2][image, : len(kept)] = kept
        found[3][image] = len(kept)
    return found


@pytest.mark.wide
@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize(("least", "most"), [(-100.0, 12), (0.25, 5), (100.0, 4), (0.0, 30)])
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
def test_non_maximum_suppression(target: str, least: float, most: int, by_class: bool) -> None:
    rng = np.random.default_rng(8)
    boxes = np.concatenate([rng.uniform(0, 3, (2, 20, 2)), rng.uniform(1, 2, (2, 20, 2))], 2)
    boxes, scores = boxes.astype(np.float32), rng.uniform(-1, 1, (2, 20, 3)).astype(np.float32)
    attrs = {"iou_threshold": np.float32(0.3), "max_boxes": most}
    attrs["per_class_suppression"] = by_class
    if target == "iOS17":
        wanted = suppressed(boxes, scores, 0.3, -np.inf, most, by_class)[:3]
        turned = [each.transpose(0, 2, 1) for each in (boxes, scores, *wanted[:2])]
        tensors, wanted = {"boxes": turned[0], "scores": turned[1]}, [*turned[2:], wanted[2]]
    else:
        attrs["score_threshold"] = np.float32(least)
        wanted = suppressed(boxes, scores, 0.3, least, most, by_class)
        tensors = {"boxes": boxes, "scores": scores}
    op = "non_maximum_suppression"
    check_import(op, tensors, attrs, target=target, expected=wanted)


def test_suppression_as_the_runtime_has_it() -> None:
    boxes = np.repeat(np.arange(4, dtype=np.float32), 4).reshape(1, 4, 4)
    scores = np.array([[[-3.5], [9.4], [2.3], [0.7]]], np.float32)
    attrs = {
        "iou_threshold": np.float32(0.2),
        "score_threshold": np.float32(0.4),
        "max_boxes": 2,
        "per_class_suppression": True,
    }
    wanted = [boxes[:, 1:3], scores[:, 1:3], np.array([[1, 2]], np.int32), np.array([2], np.int32)]
    tensors = {"boxes": boxes, "scores": scores}
    check_import("non_maximum_suppression", tensors, attrs, expected=wanted)
