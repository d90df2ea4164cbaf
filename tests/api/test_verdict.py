"""Verdicts, inputs and engines of a check, against values written out here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde._optional import require
from serde.checking.engines import engine_for_path, engine_for_source, run_engine
from serde.checking.inputs import input_ranges, random_inputs, resolve_dims
from serde.checking.verdict import Tolerance, compare, judge_output
from serde.errors import CheckError, MissingDependency, OptionError
from serde.relay.expr import Expr, Var
from serde.report import Report
from serde.weights import ArrayWeight

LOOSE = Tolerance(atol=0.1, rtol=0.0)


class FakeEngine:
    """Gives what a function of its inputs gives, and keeps the inputs."""

    def __init__(self, name: str, function: Any, outputs: Sequence[str] = ("out",)) -> None:
        self.name = name
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


# One output.


def test_figures_of_a_small_difference() -> None:
    verdict = judge_output(
        "y", np.array([3.0, -4.0], "float32"), np.array([3.0, -4.5], "float32"), LOOSE
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
    tolerance = Tolerance(atol=0.0, rtol=0.0625 / 2)
    assert judge_output("y", reference, np.array(found, "float32"), tolerance).passed is passed


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_default_tolerance_follows_the_scale_of_the_output(scale: float) -> None:
    reference = np.array([1.0, -1.0, 1.0, -1.0], "float32") * np.float32(scale)
    close = reference * np.float32(1 + 1.5e-4)
    far = reference * np.float32(1 + 3e-4)
    assert judge_output("y", reference, close, Tolerance()).passed
    assert not judge_output("y", reference, far, Tolerance()).passed


def test_an_output_of_mere_rounding_passes() -> None:
    reference = np.array([1e-9, -2e-9], "float32")
    assert judge_output("y", reference, np.zeros(2, "float32"), Tolerance()).passed


def test_float16_is_judged_more_loosely() -> None:
    reference = np.array([1.0, -1.0], "float16")
    assert judge_output("y", reference, reference * np.float16(1.01), Tolerance()).passed
    assert not judge_output("y", reference, reference * np.float16(1.1), Tolerance()).passed


def test_float64_is_judged_more_strictly() -> None:
    reference = np.array([1.0, -1.0])
    assert not judge_output("y", reference, reference * (1 + 1e-7), Tolerance()).passed


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_must_be_equal(dtype: str) -> None:
    reference = np.array([0, 1, 1], dtype)
    assert judge_output("y", reference, reference.copy(), Tolerance()).passed
    verdict = judge_output("y", reference, np.array([0, 1, 0], dtype), Tolerance())
    assert (verdict.passed, verdict.max_abs) == (False, 1.0)


def test_integers_that_are_one_float64_are_told_apart() -> None:
    reference = np.array([2**53], "int64")
    verdict = judge_output("y", reference, reference + 1, Tolerance())
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
    verdict = judge_output("y", np.float32(left), np.float32(right), Tolerance(1e9, 1e9))
    assert verdict.passed is passed
    assert verdict.max_abs == (0.0 if passed else math.inf)


def test_shapes_must_agree_even_where_they_broadcast() -> None:
    verdict = judge_output("y", np.ones((1, 3), "f"), np.ones((3,), "f"), LOOSE)
    assert (verdict.passed, verdict.shapes) == (False, ((1, 3), (3,)))


def test_dtypes_must_agree() -> None:
    verdict = judge_output("y", np.ones(3, "float32"), np.ones(3, "float64"), LOOSE)
    assert (verdict.passed, verdict.max_abs) == (False, 0.0)
    assert verdict.dtypes == ("float32", "float64")


def test_float16_may_stand_for_float32_where_it_was_asked_for() -> None:
    reference, found = np.ones(3, "float32"), np.ones(3, "float16")
    assert judge_output("y", reference, found, Tolerance(), float16=True).passed
    assert not judge_output("y", reference, found, Tolerance()).passed


def test_a_missing_output_does_not_pass() -> None:
    verdict = judge_output("y", np.ones(3, "float32"), None, LOOSE)
    assert (verdict.passed, verdict.dtypes[1]) == (False, "missing")


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_tensors_without_elements(shape: tuple[int, ...]) -> None:
    verdict = judge_output("y", np.ones(shape, "f"), np.ones(shape, "f"), Tolerance())
    assert (verdict.passed, verdict.max_abs, verdict.cosine) == (True, 0.0, 1.0)


def test_a_scalar() -> None:
    assert judge_output("y", np.float32(2.0), np.float32(2.0), Tolerance()).passed


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
    one = FakeEngine("one", lambda inputs: [inputs["x"]])
    two = FakeEngine("two", lambda inputs: [inputs["x"]], outputs=("other",))
    compare(one, two, identity_model(1), report=report)
    assert [(v.output, v.passed) for v in report.verdicts] == [("out", False)]


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
    compare(one, two, identity_model(3), report=report)
    assert [(v.output, v.passed) for v in report.verdicts] == [("act", False), ("act", True)]


def test_an_engine_that_gives_too_few_outputs_is_named() -> None:
    engine = FakeEngine("one", lambda inputs: [], outputs=("a", "b"))
    with pytest.raises(CheckError, match="one: expected 2 outputs, found 0"):
        run_engine(engine, {})


def test_no_outputs_is_no_success() -> None:
    engine = FakeEngine("one", lambda inputs: [], outputs=())
    with pytest.raises(CheckError, match="no outputs"):
        compare(engine, engine, identity_model(1), report=Report())


# Inputs.


def test_dynamic_dimensions_have_lengths() -> None:
    model = identity_model("N", 3, "H", "W")
    assert resolve_dims(model) == {"N": 2, "H": 64, "W": 64}
    assert resolve_dims(model, {"H": 5, "N": 1}) == {"N": 1, "H": 5, "W": 64}
    values = random_inputs(model, seed=0, lengths={"N": 1, "H": 5, "W": 6})
    assert values["x"].shape == (1, 3, 5, 6)


@pytest.mark.parametrize(
    ("dims", "message"),
    [({"Q": 3}, r"no dynamic dimension is called Q \(there are: N\)"), ({"N": 0}, "N: expected 1")],
)
def test_lengths_that_cannot_be(dims: dict[str, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        resolve_dims(identity_model("N"), dims)


def test_lengths_are_noted() -> None:
    engine = FakeEngine("one", lambda inputs: [inputs["x"]])
    report = Report()
    compare(engine, engine, identity_model("N", "T"), dims={"T": 7}, report=report)
    assert engine.seen[0]["x"].shape == (2, 7)
    assert report.notes == ["dynamic dimensions were checked at N=2, T=7"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "bool"])
def test_inputs_have_the_declared_dtype_and_follow_the_seed(dtype: str) -> None:
    model = identity_model(50, dtype=dtype)
    first, again, other = (
        random_inputs(model, seed=seed, lengths={})["x"] for seed in ((0, 0), (0, 0), (0, 1))
    )
    assert first.dtype == dtype
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_inputs_for_float16_are_values_that_it_holds() -> None:
    value = random_inputs(identity_model(100), seed=0, lengths={}, float16=True)["x"]
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, value.astype("float16").astype("float32"))


@pytest.mark.parametrize(("space", "whole"), [("BGR", True), ("GRAYSCALE_FLOAT16", False)])
def test_an_image_gets_pixels(space: str, whole: bool) -> None:
    model = identity_model(1, 3, 20, 20)
    model = model.evolve(meta=replace(model.meta, extra={"x.color_space": space}))
    value = random_inputs(model, seed=0, lengths={})["x"]
    assert value.dtype == np.float32
    assert bool(np.all(value == value.round())) == whole
    assert (value.max() > 200) == whole


def take_of(index: Expr) -> Expr:
    table = relay.var("table", shape=(7, 4))
    return relay.take(table, index, axis=0)


def ranges_of(body: Expr, *params: Var) -> dict[str, tuple[int, int]]:
    return input_ranges(model_of(body, *params), {"T": 9})


def test_an_index_stays_within_its_table() -> None:
    i = relay.var("i", shape=(500,), dtype="int32")
    table = relay.var("table", shape=(7, 4))
    model = model_of(
        relay.take(table, i, axis=0), i, table, weights={"table": np.zeros((7, 4), "float32")}
    )
    drawn = random_inputs(model, seed=0, lengths={})["i"]
    assert set(drawn.tolist()) == set(range(7))


def test_a_float_that_becomes_an_index_is_a_whole_number() -> None:
    i = relay.var("i", shape=(4, 100))
    table = relay.var("table", shape=(7, 4))
    index = relay.reshape(relay.cast(i, "int32"), (-1,))
    model = model_of(
        relay.take(table, index, axis=1), i, table, weights={"table": np.zeros((7, 4), "float32")}
    )
    drawn = random_inputs(model, seed=0, lengths={})["i"]
    assert drawn.dtype == np.float32
    assert set(drawn.ravel().tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_the_narrowest_consumer_decides() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    big, small = relay.var("big", shape=(100,)), relay.var("small", shape=(3,))
    body = relay.Tuple([relay.take(big, i), relay.take(small, i)])
    assert ranges_of(body, i, big, small) == {"i": (0, 2)}


def test_an_index_less_one_may_be_greater() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    table = relay.var("table", shape=(7,))
    shifted = relay.subtract(i, relay.const(1, "int32"))
    assert ranges_of(relay.take(table, shifted), i, table) == {"i": (1, 7)}


def test_a_pair_of_inputs_is_followed_through_a_tuple() -> None:
    i, j = (relay.var(name, shape=(2,), dtype="int32") for name in "ij")
    table = relay.var("table", shape=(7,))
    index = relay.concatenate([i, j], 0)
    assert ranges_of(relay.take(table, index), i, j, table) == {"i": (0, 6), "j": (0, 6)}


def test_a_let_is_followed() -> None:
    i, v = relay.var("i", shape=(2,), dtype="int32"), relay.var("v", shape=(2,), dtype="int32")
    table = relay.var("table", shape=(7,))
    body = relay.Let(v, relay.copy(i), relay.take(table, v))
    assert ranges_of(body, i, table) == {"i": (0, 6)}


def test_one_hot_needs_less_than_its_depth() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    on, off = relay.const(1.0), relay.const(0.0)
    body = relay.one_hot(i, on, off, depth=11, axis=-1, dtype="float32")
    assert ranges_of(body, i) == {"i": (0, 10)}


def test_lengths_of_sequences_are_at_least_one() -> None:
    data, n = relay.var("data", shape=("T", 2, 3)), relay.var("n", shape=(2,))
    assert ranges_of(relay.sequence_mask(data, n, 0.0, 0), data, n) == {"n": (1, 9)}


def test_lengths_of_reversed_sequences() -> None:
    data = relay.var("data", shape=(6, 2))
    n = relay.var("n", shape=(2,), dtype="int32")
    assert ranges_of(relay.reverse_sequence(data, n, 0, 1), data, n) == {"n": (1, 6)}


def test_coordinates_stay_within_the_shortest_axis_they_count() -> None:
    data, i = relay.var("data", shape=(6, 4, 9)), relay.var("i", shape=(2, 5), dtype="int64")
    assert ranges_of(relay.gather_nd(data, i), data, i) == {"i": (0, 3)}


def test_an_input_that_is_no_index_has_no_range() -> None:
    x = relay.var("x", shape=(5,))
    assert ranges_of(relay.tanh(x), x) == {}


# Engines.


def test_the_interpreter_tells_outputs_of_one_name_apart() -> None:
    x = relay.var("x", shape=(1, 3))
    model = model_of(relay.Tuple([relay.tanh(x), relay.negative(x)]), x)
    model = model.evolve(meta=relay.ModelMeta(outputs=("act", "act")))
    engine = engine_for_source("other", None, model)
    assert list(engine.outputs) == ["act", "act"]
    first, second = engine.run({"x": X})
    np.testing.assert_array_equal(first, np.tanh(X))
    np.testing.assert_array_equal(second, -X)


def write_onnx(path: Path, op: str = "Tanh") -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def absent(name: str) -> Any:
    raise MissingDependency(name, extra="check")


X = np.array([[0.5, -1.0, 2.0]], "float32")


def test_onnx_runtime_runs_an_onnx_file(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    engine = engine_for_path("onnx", write_onnx(tmp_path / "m.onnx"))
    assert engine.name.startswith("onnxruntime ")
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X), rtol=1e-6)


def test_without_onnx_runtime_the_reference_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.checking.engines.require", absent)
    engine = engine_for_path("onnx", write_onnx(tmp_path / "m.onnx"))
    assert engine.name.startswith("onnx.reference ")
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X), rtol=1e-6)


@pytest.mark.parametrize("runtime", [True, False])
def test_a_file_that_the_engine_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: bool
) -> None:
    if runtime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setattr("serde.checking.engines.require", absent)
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(CheckError, match=r"^onnx\S+ \S+ refuses .*m\.onnx"):
        engine_for_path("onnx", path)


def test_an_input_that_only_the_target_has(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    engine = engine_for_path("onnx", write_onnx(tmp_path / "m.onnx"))
    with pytest.raises(CheckError, match=r"the source has no input x \(there are: data\)"):
        run_engine(engine, {"data": X})


def test_the_interpreter_runs_what_no_framework_can() -> None:
    x, w = relay.var("x", shape=("N", 3)), relay.var("w", shape=(3,))
    weight = np.array([1.0, 2.0, 3.0], "float32")
    model = model_of(relay.add(relay.tanh(x), w), x, w, weights={"w": weight})
    engine = engine_for_source("other", None, model)
    assert engine.name == "relay interpreter"
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X) + weight, rtol=1e-6)


def mxnet_net() -> tuple[Any, dict[str, np.ndarray]]:
    """A dense layer with a loss head, its graph as a reader holds it."""

    def node(op: str, name: str, inputs: list[int] | None = None, **attrs: str) -> Any:
        entries = [SimpleNamespace(node=i, index=0) for i in inputs or []]
        return SimpleNamespace(
            op=op,
            name=name,
            inputs=entries,
            attrs=attrs,
            hidden={},
            subgraphs=(),
            control_deps=(),
        )

    nodes = [
        node("null", "data"),
        node("null", "fc_weight"),
        node("null", "fc_bias"),
        node("FullyConnected", "fc", [0, 1, 2], num_hidden="2"),
        node("null", "softmax_label"),
        node("SoftmaxOutput", "softmax", [3, 4]),
    ]
    graph = SimpleNamespace(nodes=nodes, attrs={}, heads=[SimpleNamespace(node=5, index=0)])
    arrays = {
        "fc_weight": np.array([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]], "float32"),
        "fc_bias": np.array([0.25, -0.25], "float32"),
    }
    weights = {name: ArrayWeight(value) for name, value in arrays.items()}
    return SimpleNamespace(graph=graph, arg=weights, aux={}), arrays


def test_mxnet_runs_its_own_models_and_fills_labels() -> None:
    try:
        require("mxnet")
    except MissingDependency:
        pytest.skip("mxnet is not installed")
    native, arrays = mxnet_net()
    x = relay.var("data", shape=(1, 3))
    engine = engine_for_source("mxnet", native, model_of(relay.tanh(x), x))
    assert engine.name.startswith("mxnet 1.")
    logits = X @ arrays["fc_weight"].T + arrays["fc_bias"]
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(engine.run({"data": X})[0], expected, rtol=1e-5)


def test_without_mxnet_the_interpreter_runs_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.checking.engines.require", absent)
    assert engine_for_source("mxnet", None, identity_model(3)).name == "relay interpreter"


def test_the_interpreter_runs_float16_models_of_mxnet() -> None:
    x, w = (relay.var(name, shape=(3,), dtype="float16") for name in "xw")
    weights = {"w": np.ones(3, "float16")}
    model = model_of(relay.add(x, w), x, w, weights=weights)
    assert engine_for_source("mxnet", None, model).name == "relay interpreter"
