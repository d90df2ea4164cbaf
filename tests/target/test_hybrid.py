"""Split models run: by ONNX Runtime, by runners of vendors, and beside the whole."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.partitions import check_random

import serde
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import CheckError, OptionError, RelayError
from serde.relay.run.interpreter import run as run_relay
from serde.target import HostEngine, HybridExecutor, OnnxModule, regions
from serde.target.onnx import build, partition_for_onnx
from serde.target.regions import register_runner, runner_names


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(12, 60))]
)
def test_a_random_graph_runs_in_parts_as_it_does_whole(seed: int) -> None:
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 2_000))
def test_many_random_graphs_run_in_parts_as_they_do_whole(seed: int) -> None:
    check_random(seed)


def two_parts() -> relay.IRModule:
    """A region, the host, and a region that reads both."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    inner = relay.nn.relu(relay.add(x, y))
    return relay.IRModule.from_expr(
        relay.Function([x, y], relay.Tuple([relay.add(relay.exp(inner), inner), inner]))
    )


@pytest.fixture
def module() -> OnnxModule:
    return build(partition_for_onnx(two_parts(), supported=["Relu", "Add"]))


X, Y = np.float32([[1, -2, 3], [0, 5, -6]]), np.float32([[1, 1, -1], [2, -9, 9]])
INNER = np.float32([[2, 0, 2], [2, 0, 3]])
EXPECTED = np.exp(INNER) + INNER


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((X, Y), {}),
        ((X,), {"y": Y}),
        ((), {"y": Y, "x": X}),
        (({"x": X, "y": Y},), {}),
        (({"y": Y, "x": X.tolist()},), {}),
        ((X.tolist(), Y), {}),
        ((np.asfortranarray(X), Y[:, :]), {}),
    ],
)
def test_inputs_go_by_position_or_by_name(
    module: OnnxModule, args: Sequence[Any], named: dict[str, Any]
) -> None:
    executor = serde.HybridExecutor(module)
    assert (executor.inputs, executor.outputs) == (("x", "y"), ("output0", "output1"))
    for results in (executor.run(*args, **named), executor(*args, **named)):
        np.testing.assert_allclose(results[0], EXPECTED, rtol=1e-6)
        np.testing.assert_array_equal(results[1], INNER)


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((X,), {}, "expected inputs x, y; missing y"),
        ((), {}, "expected inputs x, y; missing x, y"),
        ((X, Y, X), {}, "expected inputs x, y; found more"),
        ((X,), {"x": X}, "missing|found more|x"),
        ((X, Y), {"z": X}, "expected inputs x, y; unknown z"),
        ((X,), {"z": X}, "expected inputs x, y; missing y, unknown z"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    module: OnnxModule, args: Sequence[Any], named: dict[str, Any], message: str
) -> None:
    if named.get("x") is X:
        assert HybridExecutor(module).run(*args, **named)  # by position, what no name tells
        return
    with pytest.raises(OptionError, match=message):
        HybridExecutor(module).run(*args, **named)


@pytest.mark.parametrize(
    "value", [X.astype(np.float64), X.astype(np.int32), X[:1], X[0], np.float32(1)]
)
def test_an_input_of_another_type_is_refused(module: OnnxModule, value: Any) -> None:
    with pytest.raises(RelayError, match="x"):
        HybridExecutor(module).run(value, Y)


def test_a_trace_shows_what_each_part_took_and_gave(module: OnnxModule) -> None:
    executor = HybridExecutor(module)
    results, records = executor.trace(X, Y)
    np.testing.assert_allclose(results[0], EXPECTED, rtol=1e-6)
    assert [(each.kind, each.name) for each in records] == [
        ("region", "tvmgen_default_onnx_main_0"),
        ("host", "host_0"),
        ("region", "tvmgen_default_onnx_main_1"),
    ]
    first, host, second = records
    assert list(first.inputs) == ["x", "y"]
    np.testing.assert_array_equal(first.inputs["x"], X)
    np.testing.assert_array_equal(first.outputs["onnx_0_o0"], INNER)
    np.testing.assert_array_equal(host.inputs["onnx_0_o0"], INNER)
    np.testing.assert_allclose(host.outputs["host_0_o0"], np.exp(INNER), rtol=1e-6)
    assert set(second.inputs) == {"host_0_o0", "onnx_0_o0"}
    assert all(each.seconds > 0 for each in records)
    assert executor.seconds == {each.name: each.seconds for each in records}


def test_a_function_of_the_module_runs_the_whole_or_a_region(module: OnnxModule) -> None:
    main = module.get_function("main")(X, y=Y)
    np.testing.assert_allclose(main[0], EXPECTED, rtol=1e-6)
    np.testing.assert_array_equal(module["tvmgen_default_onnx_main_0"](X, Y), INNER)
    with pytest.raises(OptionError, match="no function is called other"):
        module.get_function("other")
    region = module.imported_modules[0]
    with pytest.raises(OptionError, match="no function is called main"):
        region.get_function("main")


def test_execution_providers_are_chosen(module: OnnxModule) -> None:
    run = HybridExecutor(module, providers=["CPUExecutionProvider"]).run(X, Y)
    np.testing.assert_array_equal(run[1], INNER)
    with pytest.raises(OptionError, match="execution provider NoSuchProvider is not there; known"):
        HybridExecutor(module, providers=["NoSuchProvider"])


def test_the_reference_implementation_is_a_runner(module: OnnxModule) -> None:
    run = HybridExecutor(module, runner="reference").run(X, Y)
    np.testing.assert_allclose(run[0], EXPECTED, rtol=1e-6)


@pytest.fixture
def own_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registrations end with the test."""
    monkeypatch.setattr(regions, "_RUNNERS", dict(regions._RUNNERS))


Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def double_runner(region: Any, *, factor: float = 2.0) -> Run:
    """Multiplies what the region would give, so that it is seen who ran it."""
    held = regions.open_runner("onnxruntime", region)
    return lambda arrays: [np.float32(factor) * each for each in held(arrays)]


@pytest.mark.usefixtures("own_runners")
def test_a_vendor_registers_a_runner(module: OnnxModule) -> None:
    assert serde.register_runner("double", double_runner) is double_runner
    assert {"double", "onnxruntime", "reference"} <= set(runner_names())
    inner = 2 * INNER
    for options, factor in (({}, 2), ({"factor": 3.0}, 3)):
        results = HybridExecutor(module, runner="double", **options).run(X, Y)
        np.testing.assert_array_equal(results[1], factor * INNER)
    results = HybridExecutor(module, runner="double").run(X, Y)
    np.testing.assert_allclose(results[0], 2 * (np.exp(inner) + inner), rtol=1e-6)


@pytest.mark.usefixtures("own_runners")
@pytest.mark.parametrize("name", ["double", "onnxruntime", "reference"])
def test_a_name_is_not_taken_twice(name: str) -> None:
    if name == "double":
        register_runner(name, double_runner)
    with pytest.raises(OptionError, match=f"a runner is called {name} already"):
        register_runner(name, double_runner)
    register_runner(name, double_runner, override=True)


@pytest.mark.parametrize(("name", "runner"), [("", double_runner), ("fast", 3)])
def test_a_runner_is_a_function_with_a_name(name: str, runner: Any) -> None:
    with pytest.raises(OptionError, match="expected a name and a function"):
        register_runner(name, runner)


def test_an_unknown_runner_is_refused(module: OnnxModule) -> None:
    with pytest.raises(OptionError, match="no runner is called fast; known: onnxruntime, ref"):
        HybridExecutor(module, runner="fast")


@pytest.mark.usefixtures("own_runners")
@pytest.mark.parametrize(
    ("runner", "error", "message"),
    [
        (lambda _region: 3, OptionError, "expected a function, found 3"),
        (lambda _region: lambda arrays: [], OptionError, "expected 1 results, found 0"),
    ],
)
def test_a_runner_that_does_not_do_its_part_is_named(
    module: OnnxModule, runner: Any, error: type[Exception], message: str
) -> None:
    register_runner("broken", runner)
    with pytest.raises(error, match=message):
        HybridExecutor(module, runner="broken").run(X, Y)


class Entry:
    """An entry point of another package."""

    def __init__(self, name: str, value: str, runner: Any) -> None:
        self.name, self.value, self._runner = name, value, runner

    def load(self) -> Any:
        if isinstance(self._runner, Exception):
            raise self._runner
        return self._runner


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets packages offer runners."""

    def entries(*offered: Entry) -> None:
        def find(group: str) -> Sequence[Entry]:
            return offered if group == "serde.runners" else ()

        monkeypatch.setattr(importlib.metadata, "entry_points", find)

    regions._offered.cache_clear()
    monkeypatch.setattr(regions, "_offered", regions._offered.__wrapped__)
    return entries


def test_a_package_offers_a_runner(module: OnnxModule, offer: Callable[..., None]) -> None:
    offer(Entry("vendor", "vendor.serde:run", double_runner))
    assert "vendor" in runner_names()
    results = HybridExecutor(module, runner="vendor").run(X, Y)
    np.testing.assert_array_equal(results[1], 2 * INNER)


def test_a_package_that_does_not_load_is_named(
    module: OnnxModule, offer: Callable[..., None]
) -> None:
    offer(Entry("vendor", "vendor.serde:run", ImportError("no driver")))
    with pytest.raises(OptionError, match=r"vendor\.serde:run does not load: no driver"):
        HybridExecutor(module, runner="vendor")
    assert HybridExecutor(module).run(X, Y)


def test_two_packages_with_one_name_are_refused(
    module: OnnxModule, offer: Callable[..., None]
) -> None:
    offer(Entry("vendor", "a:run", double_runner), Entry("vendor", "b:run", double_runner))
    with pytest.raises(OptionError, match="runner vendor is claimed by a:run and b:run"):
        HybridExecutor(module, runner="vendor")


class Recording(HostEngine):
    """A host engine that notes what it is asked for."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def open(self, part: Any, others: Any) -> Run:
        self.parts.append(part)

        def run(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            return [run_relay(part.main, list(arrays))]

        return run


def test_another_engine_runs_the_host(module: OnnxModule) -> None:
    host = Recording()
    results = HybridExecutor(module, host=host).run(X, Y)
    np.testing.assert_allclose(results[0], EXPECTED, rtol=1e-6)
    assert len(host.parts) == 1


def test_a_region_that_the_runtime_refuses_is_named(module: OnnxModule) -> None:
    module.imported_modules[1].native.proto.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(CheckError, match="refuses region tvmgen_default_onnx_main_1"):
        HybridExecutor(module)


def results_of(body: relay.Expr, inputs: Sequence[relay.Expr], *args: Any) -> list[np.ndarray]:
    mod = relay.IRModule.from_expr(relay.Function(list(inputs), body))
    return HybridExecutor(build(partition_for_onnx(mod, supported=["Relu"]))).run(*args)


def test_an_input_and_a_constant_may_be_results() -> None:
    x = relay.var("x", shape=(2, 3))
    held = relay.const(np.arange(3, dtype=np.float32))
    found = results_of(relay.Tuple([x, held, relay.nn.relu(x), held]), [x], X)
    for result, expected in zip(found, (X, np.arange(3), np.maximum(X, 0), np.arange(3)),
                                strict=True):  # fmt: skip
        np.testing.assert_array_equal(result, expected)


def test_a_model_without_regions_runs() -> None:
    x = relay.var("x", shape=(2, 3))
    np.testing.assert_array_equal(results_of(relay.negative(x), [x], X)[0], -X)


def test_tuples_go_in_field_by_field() -> None:
    both = relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((2, 3))])
    pair = relay.Var("pair", both)
    body = relay.exp(relay.nn.relu(relay.add(relay.TupleGetItem(pair, 0),
                                             relay.TupleGetItem(pair, 1))))  # fmt: skip
    found = results_of(body, [pair], X, Y)
    np.testing.assert_allclose(found[0], np.exp(INNER), rtol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("length", [1, 4])
def test_named_dimensions_have_the_length_of_each_run(length: int) -> None:
    x = relay.var("x", shape=("N", 3, 2))
    symbol = x.type.shape[0]
    flat = relay.reshape(relay.exp(relay.nn.relu(x)), (symbol, 6))
    body = relay.nn.relu(relay.sum(flat, axis=0))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.reshape(relay.exp(body), (2, 3))))
    values = np.random.default_rng(1).normal(size=(length, 3, 2)).astype(np.float32)
    expected = np.exp(np.exp(np.maximum(values, 0)).reshape(length, 6).sum(0)).reshape(2, 3)
    for supported in (["Relu"], ["Relu", "Exp"], None):
        module = build(partition_for_onnx(mod, supported=supported))
        np.testing.assert_allclose(HybridExecutor(module).run(values)[0], expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8_e4m3fn"])
def test_what_the_runtime_has_no_arrays_of_is_told(dtype: str) -> None:
    x = relay.var("x", shape=(2, 4), dtype=dtype)
    mod = relay.IRModule.from_expr(relay.nn.relu(relay.cast(x, "float32")))
    module = build(partition_for_onnx(mod, opset=21))
    with pytest.raises(CheckError, match=f"onnx_0_i0 is {dtype}, of which onnxruntime takes no"):
        HybridExecutor(module)
    values = np.ones((2, 4)).astype(numpy_dtype(dtype))
    (result,) = HybridExecutor(module, runner="reference").run(values)
    np.testing.assert_array_equal(result, np.ones((2, 4), np.float32))
