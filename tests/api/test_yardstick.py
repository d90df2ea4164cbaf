"""The exact result as a yardstick, against values spelled out in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.judging import (
    Array,
    Numbers,
    Run,
    judged,
    model_of,
    shifted,
    shifted_model,
    verdict_of,
)
from support.samples import all_samples, as_arrays, build

import serde.relay as relay
from serde.checking.data import as_check_data
from serde.checking.verdict import compare
from serde.checking.yardstick import Yardstick
from serde.core.report import Report
from serde.relay.ir.bodies import all_nodes, carried
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef, Sample, has_trait
from serde.relay.ir.traits import Ordering
from serde.relay.run.arithmetic import Exact, Rounded
from serde.relay.run.interpreter import run, run_with

# The arithmetic.


@pytest.mark.thin(2)
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_every_operator_runs_exactly(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    wanted = as_arrays(run(built.function, built.arrays))
    found = as_arrays(run_with(Exact(), built.function, built.arrays))
    for left, right in zip(wanted, found, strict=True):
        for a, b in zip(*[x if isinstance(x, list) else [x] for x in (left, right)], strict=True):
            narrow = a.dtype.name in ("bfloat16", "float16", "float32")
            assert b.dtype == (np.float64 if narrow else a.dtype)
            assert b.shape == a.shape


def test_weights_and_constants_are_widened_and_nothing_is_rounded_between() -> None:
    x, w = relay.var("x", shape=(3, 5)), relay.var("w", shape=(4, 5))
    body = relay.multiply(relay.nn.dense(x, w), relay.const(np.float32(0.1)))
    weight = np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5)
    values = np.linspace(-3, 2, 15, dtype="float32").reshape(3, 5)
    (exact,) = Yardstick(model_of(body, x, w, w=weight)).at({"x": values}).exact
    wanted = values.astype(float) @ weight.T.astype(float) * float(np.float32(0.1))
    np.testing.assert_allclose(exact, wanted, rtol=1e-15)


def test_casts_between_floats_do_nothing() -> None:
    x = relay.var("x", shape=(3,))
    body = relay.cast(relay.cast(x, dtype="float16"), dtype="float32")
    values = np.float32([0.1, 0.2, 0.3])
    (exact,) = Yardstick(model_of(body, x)).at({"x": values}).exact
    np.testing.assert_array_equal(exact, values.astype(float))


def test_rounding_to_float16_after_every_operator() -> None:
    x = relay.var("x", shape=(3,))
    body = relay.multiply(relay.add(x, relay.const(np.float32(0.1))), x)
    values = np.float32([0.123, 4.56, 7.89])
    half = values.astype("float16")
    wanted = (half + np.float16(0.1)) * half
    found = run_with(Rounded(), relay.Function([x], body), [values])
    np.testing.assert_array_equal(found, wanted.astype("float32"))


# The rule.


def test_another_rounding_is_right() -> None:
    # The exact result itself, which is farther from the source than the quick rule allows.
    verdict = verdict_of(shifted_model(), shifted, lambda inputs: [inputs["x"].copy()])
    assert verdict.passed
    assert verdict.distance == 0.0
    assert verdict.own == pytest.approx(2.8e-4, rel=0.2)


@pytest.mark.parametrize(("times", "passed"), [(3.0, True), (30.0, False)])
def test_a_target_may_be_some_times_as_far_off_as_the_source(times: float, passed: bool) -> None:
    def target(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"]
        return [x + np.float32(times) * (shifted(inputs)[0] - x)]

    verdict = verdict_of(shifted_model(), shifted, target)
    assert verdict.passed is passed
    assert verdict.factor == pytest.approx(times, rel=1e-2)


def test_one_element_that_is_off_fails() -> None:
    def target(inputs: Mapping[str, Array]) -> list[Array]:
        found = shifted(inputs)[0].copy()
        found[17] += 0.01
        return [found]

    assert verdict_of(shifted_model(), shifted, target).failed


def test_without_the_yardstick_the_tolerance_decides() -> None:
    verdict = verdict_of(
        shifted_model(), shifted, lambda inputs: [inputs["x"].copy()], yardstick=False
    )
    assert verdict.failed
    assert verdict.distance is None


def test_a_source_that_is_off_by_more_than_rounding_fails() -> None:
    # What the model was read as says x; its engine says otherwise, and the target follows x.
    x = relay.var("x", shape=(50,))
    report = judged(
        model_of(relay.copy(x), x),
        lambda inputs: [inputs["x"] * np.float32(1.01)],
        lambda inputs: [inputs["x"]],
    )
    assert not report.passed
    assert "which rounding does not explain" in report.verdicts[0].remark


class Fused(Numbers):
    """An engine that errs unless it is asked to run without its optimisations."""

    def unoptimized(self) -> Numbers:
        return Numbers(lambda inputs: [inputs["x"]])


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_engine_that_errs_is_asked_again_without_optimisations(side: str) -> None:
    x = relay.var("x", shape=(50,))
    right = Numbers(lambda inputs: [inputs["x"]])
    wrong = Fused(lambda inputs: [inputs["x"] * np.float32(1.5)])
    report = Report()
    pair = (wrong, right) if side == "source" else (right, wrong)
    compare(*pair, model_of(relay.copy(x), x), report=report)
    assert report.passed
    assert "numbers was asked again without its optimisations" in report.notes[0]


@pytest.mark.parametrize("scale", [1e-10, 1e-5, 1.0, 1e5])
@pytest.mark.parametrize(("error", "passed"), [(0.0, True), (1e-3, False)])
def test_the_scale_of_an_output_does_not_matter(scale: float, error: float, passed: bool) -> None:
    x = relay.var("x", shape=(50,))
    factor = np.float32(scale)
    model = model_of(relay.multiply(x, relay.const(factor)), x)

    def source(inputs: Mapping[str, Array]) -> list[Array]:
        return [inputs["x"] * factor]

    def target(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.nextafter(source(inputs)[0] + np.roll(source(inputs)[0], 1) * error, np.inf)]

    assert verdict_of(model, source, target).passed is passed


# float16.


def dense_model(scale: float = 1.0) -> tuple[Any, Array]:
    generator = np.random.default_rng(3)
    weight = (generator.standard_normal((40, 64)) / 8 * scale).astype("float32")
    x, w = relay.var("x", shape=(2, 64)), relay.var("w", shape=(40, 64))
    return model_of(relay.nn.dense(x, w), x, w, w=weight), weight


@pytest.mark.parametrize(
    ("scale", "error", "passed"),
    [
        (1.0, 0.0, True),
        (1e-3, 0.0, True),
        (1.0, 0.03, False),
        (1e-3, 0.2, False),
        (1e-10, 0, False),
    ],
)
def test_float16_is_judged_by_its_own_rounding(scale: float, error: float, passed: bool) -> None:
    model, weight = dense_model(scale)

    def target(inputs: Mapping[str, Array]) -> list[Array]:
        half = inputs["x"].astype("float16").astype("float32")
        product = half @ weight.astype("float16").astype("float32").T
        product += error * np.roll(product, 1)
        return [product.astype("float16").astype("float32")]

    verdict = verdict_of(model, lambda i: [i["x"] @ weight.T], target, float16=True)
    assert verdict.passed is passed
    assert verdict.failed is not passed


# What says nothing.


@pytest.mark.parametrize("value", [0.0, 3.5, np.nan])
def test_a_constant_output_says_nothing(value: float) -> None:
    x = relay.var("x", shape=(4,))
    model = model_of(relay.add(relay.multiply(x, relay.const(0.0)), relay.const(value)), x)
    report = judged(model, *[lambda inputs: [np.full(4, value, "float32")]] * 2)
    assert (report.passed, report.says_nothing) == (False, True)
    assert not report.verdicts[0].failed


def test_another_constant_differs() -> None:
    x = relay.var("x", shape=(4,))
    model = model_of(relay.multiply(x, relay.const(0.0)), x)
    verdict = verdict_of(
        model, lambda inputs: [np.zeros(4, "float32")], lambda inputs: [np.ones(4, "float32")]
    )
    assert verdict.failed


def test_what_depends_on_no_input_need_only_be_equal() -> None:
    x = relay.var("x", shape=(4, 4))
    model = model_of(relay.shape_of(x), x)
    shape = np.array([4, 4], "int32")
    assert verdict_of(model, lambda _: [shape], lambda _: [shape]).passed


def test_an_output_below_its_own_rounding_says_nothing() -> None:
    # 1e7 takes all but a few bits of x away: 1 is a step of the numbers there.
    x = relay.var("x", shape=(100,))
    big = np.float32(1e8)
    model = model_of(relay.subtract(relay.add(x, relay.const(big)), relay.const(big)), x)
    verdict = verdict_of(
        model,
        lambda inputs: [(inputs["x"] + big) - big],
        lambda inputs: [inputs["x"] + np.float32(1.0)],
    )
    assert not verdict.passed
    assert not verdict.failed


def test_one_silent_output_among_others_is_told() -> None:
    x = relay.var("x", shape=(4,))
    zero = relay.multiply(x, relay.const(0.0))
    model = model_of(relay.Tuple([relay.copy(x), zero]), x, outputs=("loud", "still"))

    def engine(inputs: Mapping[str, Array]) -> list[Array]:
        return [inputs["x"], np.zeros(4, "float32")]

    report = judged(model, engine, engine)
    assert report.passed
    assert [verdict.informative for verdict in report.verdicts] == [True, False]


# Operators that decide.

PIVOTS = frozenset(["serde.det", "serde.random_gamma", "serde.random_poisson", "serde.slogdet",
                    "serde.solve"])  # fmt: skip
"""They decide by order on the way to results in which it does not show."""


@pytest.mark.wide
@pytest.mark.parametrize(
    ("definition", "given"),
    [each for each in all_samples() if getattr(each.values[0], "decompose", None)],
)
def test_an_operator_decides_if_its_decomposition_does(definition: OpDef, given: Sample) -> None:
    call = build(definition, given).call
    if carried(call) or definition.name in PIVOTS:
        return
    operands = [None if _is_absent(each) else each for each in call.args]
    assert definition.decompose is not None
    body = definition.decompose(*operands, **call.attrs)
    assert definition.has(Ordering) or not any(
        has_trait(node, Ordering) for node in all_nodes(body)
    )


def _is_absent(operand: Expr) -> bool:
    return isinstance(operand, relay.Tuple) and not operand.fields


def _is_op(node: Call) -> bool:
    return isinstance(node.op, OpDef)


def _numbers(x: Expr) -> Expr:
    return relay.sum(x, axis=[1])


@pytest.mark.parametrize(
    "whole",
    [
        lambda x: relay.cast(relay.serde.round_even(_numbers(x)), dtype="int32"),
        lambda x: relay.serde.quantize_linear(
            _numbers(x),
            relay.const(np.float32(1)),
            relay.const(np.int8(0)),
            axis=0,
            out_dtype="int8",
        ),
        lambda x: relay.qnn.op.quantize(
            _numbers(x), relay.const(np.float32(1)), relay.const(0), out_dtype="int8"
        ),
    ],
)
def test_rounding_to_integers_may_fall_either_way(whole: Any) -> None:
    x = relay.var("x", shape=(8, 3))
    values = np.linspace(0.1, 2.2, 24, dtype="float32").reshape(8, 3)
    values[3] = np.float32([0.1, 0.2, 1.2])  # their sum is half a number but for rounding
    model = model_of(whole(x), x)
    dtype = model.main.body.type.dtype

    def source(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.round(values.sum(axis=1)).astype(dtype)]

    def target(at: int) -> Run:
        found = source({})[0].copy()
        found[at] += 1 if at != 3 or found[at] == 1 else -1
        return lambda inputs: [found]

    data = as_check_data(values)
    assert verdict_of(model, source, target(3), data=data).passed
    assert verdict_of(model, source, target(5), data=data).failed


# Draws.


def test_what_is_drawn_at_random_says_nothing_of_the_rest() -> None:
    x = relay.var("x", shape=(50,))
    drawn = relay.serde.bernoulli(relay.sigmoid(x))
    model = model_of(relay.Tuple([drawn, relay.tanh(x)]), x, outputs=("drawn", "rest"))

    def run(seed: int) -> Run:
        generator = np.random.default_rng(seed)
        return lambda inputs: [generator.integers(0, 2, 50).astype("float32"), np.tanh(inputs["x"])]

    report = judged(model, run(1), run(2))
    first, second = report.verdicts
    assert (first.passed, first.informative, first.remark) == (
        False,
        False,
        "it is drawn at random",
    )
    assert second.passed
    assert report.passed
    assert judged(model, run(1), lambda inputs: [run(2)(inputs)[0], inputs["x"]]).verdicts[1].failed


@pytest.mark.parametrize(("wrong", "passed"), [(0, True), (1, False)])
def test_integers_of_float16_that_are_all_off_by_one_differ(wrong: int, passed: bool) -> None:
    """Rounding moves some of them by one, either way."""
    x = relay.var("x", shape=(400,))
    factor = np.float32(1000)
    model = model_of(relay.cast(relay.multiply(x, relay.const(factor)), "int32"), x)

    def whole(inputs: Mapping[str, Array], dtype: str, more: int) -> list[Array]:
        return [(inputs["x"].astype(dtype) * factor.astype(dtype)).astype("int32") + more]

    verdict = verdict_of(
        model,
        lambda inputs: whole(inputs, "float32", 0),
        lambda inputs: whole(inputs, "float16", wrong),
        float16=True,
    )
    assert verdict.passed is passed


@pytest.mark.parametrize("error", [0.0, 4e-3, 5e-3])
def test_a_fault_below_many_roundings_of_float16_differs(error: float) -> None:
    """What is left in float32 at the end shows how little rounding there was before."""
    x = relay.var("x", shape=(8, 64))
    factor = np.float32(0.3)
    model = model_of(relay.nn.softmax(relay.multiply(x, relay.const(factor))), x)

    def softmax(inputs: Mapping[str, Array], dtype: str, wrong: float) -> list[Array]:
        scaled = (inputs["x"].astype(dtype) * factor.astype(dtype)).astype("float64")
        powers = np.exp(scaled - scaled.max(-1, keepdims=True))
        result = powers / powers.sum(-1, keepdims=True)
        result += wrong * result.std() * np.sign(inputs["x"])
        return [result.astype("float32")]

    verdict = verdict_of(
        model,
        lambda inputs: softmax(inputs, "float32", 0.0),
        lambda inputs: softmax(inputs, "float16", error),
        float16=True,
    )
    assert verdict.passed is (error == 0.0)
