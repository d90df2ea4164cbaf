"""Verdicts of a check, against values written out here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.checking.verdict import Rule, Tolerance, compare, judge_output
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.engine.base import Engine, run_engine
from serde.errors import CheckError
from serde.relay.ir.expr import Expr, Var

LOOSE = Tolerance(atol=0.1, rtol=0.0)


class FakeEngine(Engine):
    """Gives what a function of its inputs gives, and keeps the inputs."""

    def __init__(self, name: str, function: Any, outputs: Sequence[str] = ("out",)) -> None:
        self.name = name
        self.inputs: Mapping[str, str] = {}
        self.outputs = outputs
        self.seen: list[Mapping[str, np.ndarray]] = []
        self._function = function

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        self.seen.append(inputs)
        return self._function(inputs)


def model_of(body: Expr, *params: Var, weights: Mapping[str, Any] | None = None) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    held = {name: ArrayWeight(value) for name, value in (weights or {}).items()}
    return relay.RelayModel(mod, held, relay.ModelMeta(outputs=("out",)))


def identity_model(*shape: int | str, dtype: str = "float32") -> Any:
    x = relay.var("x", shape=shape, dtype=dtype)
    return model_of(relay.copy(x), x)


def twice_model(*shape: int | str) -> Any:
    x = relay.var("x", shape=shape)
    model = model_of(relay.Tuple([relay.copy(x), relay.copy(x)]), x)
    return model.evolve(meta=relay.ModelMeta(outputs=("out", "more")))


# One output.


def test_figures_of_a_small_difference() -> None:
    verdict = judge_output(
        "y", np.array([3.0, -4.0], "float32"), np.array([3.0, -4.5], "float32"), Rule(LOOSE)
    )
    assert verdict.max_abs == 0.5
    assert verdict.max_rel == 0.125
    assert verdict.cosine == pytest.approx(27 / (5 * math.sqrt(9 + 20.25)))
    assert not verdict.passed


@pytest.mark.parametrize(
    ("found", "passed"), [([1.0, 2.0625], True), ([1.0, 2.125], False), ([1.25, 2.0], False)]
)
def test_relative_tolerance_counts_for_each_element(found: list[float], passed: bool) -> None:
    reference = np.array([1.0, 2.0], "float32")
    rule = Rule(Tolerance(atol=0.0, rtol=0.0625 / 2))
    assert judge_output("y", reference, np.array(found, "float32"), rule).passed is passed


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize(
    ("tolerance", "passed"),
    [
        (Tolerance(), False),
        (Tolerance(rtol=0.1), False),
        (Tolerance(atol=0.5, rtol=0.1), False),
        (Tolerance(atol=1.0), True),
    ],
)
def test_integers_have_no_relative_tolerance(
    dtype: str, tolerance: Tolerance, passed: bool
) -> None:
    reference = np.array([100, 20, 3], dtype)
    found = np.array([101, 20, 3], dtype)
    for quick in (False, True):
        assert judge_output("y", reference, found, Rule(tolerance, quick=quick)).passed is passed
        assert judge_output("y", reference, reference, Rule(tolerance, quick=quick)).passed


@pytest.mark.parametrize("given", [None, Tolerance(rtol=1e-2)], ids=["measured", "relative"])
@pytest.mark.parametrize("elements", [slice(None), slice(3, 4)], ids=["all", "one"])
def test_one_unit_of_thousands_differs(elements: slice, given: Tolerance | None) -> None:
    x = relay.var("x", shape=(4, 8), dtype="int32")
    model = model_of(relay.multiply(x, relay.const(1000)), x)

    def off_by_one(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        found = inputs["x"] * 1000
        found[:, elements] += 1
        return [found]

    source = FakeEngine("source", lambda inputs: [inputs["x"] * 1000])
    report = Report("check", "onnx", "onnx")
    compare(source, FakeEngine("target", off_by_one), model, report=report, tolerance=given)
    assert [(each.passed, each.max_abs) for each in report.verdicts] == [(False, 1.0)]


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_default_tolerance_follows_the_scale_of_the_output(scale: float) -> None:
    reference = np.array([1.0, -1.0, 1.0, -1.0], "float32") * np.float32(scale)
    close = reference * np.float32(1 + 1.5e-4)
    far = reference * np.float32(1 + 3e-4)
    assert judge_output("y", reference, close, Rule()).passed
    assert not judge_output("y", reference, far, Rule()).passed


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("scale", [1e-10, 1e-5, 1.0, 1e5])
def test_zeros_are_no_small_output(dtype: str, scale: float) -> None:
    reference = np.array([1.0, -2.0, 0.5], "float32") * np.float32(scale)
    rule = Rule(float16=dtype == "float16")
    assert judge_output("y", reference, reference.copy(), rule).passed
    assert not judge_output("y", reference, np.zeros(3, "float32"), rule).passed


def test_steps_of_small_float16_are_no_difference() -> None:
    reference = np.array([1e-6, -2e-6, 0.5e-6], "float32")
    rounded = reference.astype("float16")
    assert judge_output("y", reference, rounded, Rule(float16=True)).passed


def test_what_all_elements_have_in_common_does_not_widen_the_tolerance() -> None:
    reference = np.array([1000.0, 1001.0, 1002.0], "float32")
    verdict = judge_output("y", reference, reference[::-1], Rule(quick=True))
    assert not verdict.passed
    assert verdict.cosine > 0.99999


def test_float16_is_judged_more_loosely() -> None:
    reference = np.array([1.0, -1.0], "float16")
    assert judge_output("y", reference, reference * np.float16(1.01), Rule()).passed
    assert not judge_output("y", reference, reference * np.float16(1.1), Rule()).passed


def test_float64_is_judged_more_strictly() -> None:
    reference = np.array([1.0, -1.0])
    assert not judge_output("y", reference, reference * (1 + 1e-7), Rule()).passed


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_must_be_equal(dtype: str) -> None:
    reference = np.array([0, 1, 1], dtype)
    assert judge_output("y", reference, reference.copy(), Rule()).passed
    verdict = judge_output("y", reference, np.array([0, 1, 0], dtype), Rule())
    assert (verdict.passed, verdict.max_abs) == (False, 1.0)


def test_integers_that_are_one_float64_are_told_apart() -> None:
    reference = np.array([2**53], "int64")
    verdict = judge_output("y", reference, reference + 1, Rule())
    assert (verdict.passed, verdict.max_abs) == (False, 1.0)


@pytest.mark.parametrize(
    ("left", "right", "passed"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], True),
        ([np.nan, 1.0], [0.0, 1.0], False),
        ([0.0, 1.0], [np.nan, 1.0], False),
        ([np.inf, 1.0], [np.inf, 1.0], True),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([np.inf, 1.0], [3e38, 1.0], False),
        ([3e38, 1.0], [np.inf, 1.0], False),
    ],
)
def test_what_is_not_finite_must_agree(left: list[float], right: list[float], passed: bool) -> None:
    verdict = judge_output("y", np.float32(left), np.float32(right), Rule(Tolerance(1e9, 1e9)))
    assert verdict.passed is passed
    assert verdict.max_abs == (0.0 if passed else math.inf)


def test_shapes_must_agree_even_where_they_broadcast() -> None:
    verdict = judge_output("y", np.ones((1, 3), "f"), np.ones((3,), "f"), Rule(LOOSE))
    assert (verdict.passed, verdict.shapes) == (False, ((1, 3), (3,)))


def test_dtypes_must_agree() -> None:
    verdict = judge_output("y", np.ones(3, "float32"), np.ones(3, "float64"), Rule(LOOSE))
    assert (verdict.passed, verdict.max_abs) == (False, 0.0)
    assert verdict.dtypes == ("float32", "float64")


def test_float16_may_stand_for_float32_where_it_was_asked_for() -> None:
    reference, found = np.ones(3, "float32"), np.ones(3, "float16")
    assert judge_output("y", reference, found, Rule(float16=True)).passed
    assert not judge_output("y", reference, found, Rule()).passed


def test_a_missing_output_does_not_pass() -> None:
    verdict = judge_output("y", np.ones(3, "float32"), None, Rule(LOOSE))
    assert (verdict.passed, verdict.dtypes[1]) == (False, "missing")


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_tensors_without_elements(shape: tuple[int, ...]) -> None:
    verdict = judge_output("y", np.ones(shape, "f"), np.ones(shape, "f"), Rule())
    assert (verdict.passed, verdict.max_abs, verdict.cosine) == (True, 0.0, 1.0)


def test_a_scalar() -> None:
    assert judge_output("y", np.float32(2.0), np.float32(2.0), Rule()).passed


# Several runs of two engines.


def test_compare_keeps_the_worst_run() -> None:
    errors = iter([0.0, 0.25, 0.0])
    good = FakeEngine("good", lambda inputs: [np.ones(2, "float32")])
    bad = FakeEngine("bad", lambda inputs: [np.ones(2, "float32") + next(errors)])
    report = Report()
    compare(good, bad, identity_model(2), runs=3, report=report, tolerance=LOOSE)
    assert [(v.output, v.max_abs, v.passed) for v in report.verdicts] == [("out", 0.25, False)]
    assert report.engines == ("good", "bad")
    assert not report.passed


def test_both_engines_get_the_same_inputs_and_each_run_others() -> None:
    one = FakeEngine("one", lambda inputs: [inputs["x"]])
    two = FakeEngine("two", lambda inputs: [inputs["x"]])
    report = Report()
    compare(one, two, identity_model(4), runs=2, report=report)
    assert one.seen == two.seen
    assert not np.array_equal(one.seen[0]["x"], one.seen[1]["x"])
    assert report.passed


def test_an_output_that_the_target_lacks_is_a_failed_verdict() -> None:
    report = Report()
    one = FakeEngine("one", lambda inputs: [inputs["x"], inputs["x"]], outputs=("out", "more"))
    two = FakeEngine("two", lambda inputs: [inputs["x"]])
    compare(one, two, twice_model(3), report=report)
    assert [(v.output, v.passed) for v in report.verdicts] == [("out", True), ("more", False)]
    assert report.verdicts[1].remark == "the target has no such output"


def test_an_engine_that_fails_is_named() -> None:
    def fail(inputs: Any) -> Any:
        raise RuntimeError("out of paper\nand a long story")

    engine = FakeEngine("gizmo 3.1", fail)
    with pytest.raises(CheckError, match=r"^gizmo 3.1 failed: RuntimeError: out of paper$"):
        compare(engine, engine, identity_model(1), report=Report())


def test_an_output_that_is_not_finite_is_noted() -> None:
    engine = FakeEngine("one", lambda inputs: [np.float32([np.nan])])
    report = Report()
    compare(engine, engine, identity_model(1), report=report)
    assert report.notes == ["output out of the source is not finite everywhere"]


def test_outputs_of_one_name_are_compared_each() -> None:
    outputs = ("act", "act")
    one = FakeEngine("one", lambda inputs: [inputs["x"], inputs["x"]], outputs)
    two = FakeEngine("two", lambda inputs: [-inputs["x"], inputs["x"]], outputs)
    report = Report()
    compare(one, two, twice_model(3), report=report)
    assert [(v.output, v.passed) for v in report.verdicts] == [("act", False), ("act", True)]


def test_an_engine_that_gives_too_few_outputs_is_named() -> None:
    engine = FakeEngine("one", lambda inputs: [], outputs=("a", "b"))
    with pytest.raises(CheckError, match="one: expected 2 outputs, found 0"):
        run_engine(engine, {})


def test_no_outputs_is_no_success() -> None:
    engine = FakeEngine("one", lambda inputs: [], outputs=())
    with pytest.raises(CheckError, match="no outputs"):
        compare(engine, engine, identity_model(1), report=Report())


def test_lengths_are_noted() -> None:
    engine = FakeEngine("one", lambda inputs: [inputs["x"]])
    report = Report()
    compare(engine, engine, identity_model("N", "T"), dims={"T": 7}, report=report)
    assert engine.seen[0]["x"].shape == (2, 7)
    assert report.notes == ["dynamic dimensions were checked at N=2, T=7"]
