"""Regions in bodies: patterns are found there, what a loop captures and is a weight is theirs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import serde
import serde.relay as relay
from serde.core import Report
from serde.relay.dataflow_pattern import is_constant, is_op, wildcard
from serde.relay.ir import all_nodes
from serde.relay.ir.foreign import is_foreign
from serde.relay.op.contrib.onnx import partition_for_onnx
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build
from serde.target.partition import partition_model
from serde.target.splitting import split

NAME = "com.acme::ScaleRelu"
W = np.array([1.5, -2.0, 0.5, 1.0], np.float32)
RNG = np.random.default_rng(8)

LOOP = """y = Loop (n, , x) <body = turn (int64 i, bool going, float[2, 4] s)
  => (bool on, float[2, 4] next) { on = Identity (going) %s }>"""
BODIES = {
    "a branch": """y = If (c) <then_branch = then () => (float[2, 4] o) {
      t = Mul (x, w) o = Relu (t) },
      else_branch = else () => (float[2, 4] p) { p = Neg (x) }>""",
    "a loop": LOOP % "t = Mul (s, w) r = Relu (t) next = Tanh (r)",
    "a loop with a constant of its own": LOOP % """
      k = Constant <value = float[4] {1.5, -2, 0.5, 1}> ()
      t = Mul (s, k) r = Relu (t) next = Tanh (r)""",
    "a branch in a loop": LOOP % """next = If (c) <then_branch = then () => (float[2, 4] o) {
      t = Mul (s, w) r = Relu (t) o = Tanh (r) },
      else_branch = else () => (float[2, 4] p) { p = Neg (s) }>""",
    "a loop in a loop": LOOP % """next = Loop (n, , s) <body = inner (int64 j, bool h,
      float[2, 4] u) => (bool g, float[2, 4] v) { g = Identity (h)
      t = Mul (u, w) r = Relu (t) v = Tanh (r) }>""",
    "a scan": """q, y = Scan <num_scan_inputs = 1, body = turn (float[4] s, float[4] e)
      => (float[4] next, float[4] o) {
      a = Add (s, e) t = Mul (a, w) next = Relu (t) o = Tanh (next) }> (w, x)""",
}  # fmt: skip
PATTERNS: dict[str, Any] = {
    "text": "fn (%a, %b) { nn.relu(multiply(%a, %b)) }",
    "a pattern": is_op("nn.relu")(is_op("multiply")(wildcard(), wildcard())),
    "a pattern with a weight": is_op("nn.relu")(is_op("multiply")(wildcard(), is_constant())),
}


@functools.cache
def model(name: str) -> onnx.ModelProto:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> net (float[2, 4] x, bool c) '
        f"=> (float[2, 4] y) <int64 n = {{3}}, float[4] w> {{ {BODIES[name]} }}"
    )
    made.graph.initializer.append(numpy_helper.from_array(W, "w"))
    return made


X = RNG.normal(size=(2, 4)).astype(np.float32)
FEEDS = {"x": X, "c": np.array(True)}


@functools.cache
def expected(name: str) -> np.ndarray:
    """What ONNX Runtime gives for the whole, which was never split."""
    runtime = pytest.importorskip("onnxruntime")
    (result,) = runtime.InferenceSession(model(name).SerializeToString()).run(None, FEEDS)
    return result


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", BODIES)
def test_a_match_in_a_body_is_one_node_with_its_weight(
    name: str, pattern: str, tmp_path: Path
) -> None:
    # The toolchain takes the operator with a weight alone: its second input must be one.
    supported = {
        "operators": {NAME: {"constant": ["1"]}},
        "composites": {NAME: {"pattern": PATTERNS[pattern]}},
    }
    report = Report()
    found = split(model(name), supported=supported, report=report)
    assert [each.nodes for each in found.partition.regions] == [{NAME: 1}], report.notes
    (region,) = found.module.imported_modules
    assert len(region.inputs) == 1
    (value,) = map(numpy_helper.to_array, region.proto().graph.initializer)
    np.testing.assert_array_equal(value, W)
    onnx.checker.check_model(region.proto(), full_check=True)
    for path in (tmp_path / "split", tmp_path / "split.zip"):
        loaded = OnnxModule.load(found.module.save(path))
        (result,) = HybridExecutor(loaded).run(FEEDS)
        np.testing.assert_allclose(result, expected(name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pattern", ["text", "a pattern"])
@pytest.mark.parametrize("name", BODIES)
def test_a_composite_whose_region_is_too_small_is_spelled_out(name: str, pattern: str) -> None:
    supported = {"composites": {NAME: {"pattern": PATTERNS[pattern]}}, "operators": ["Exp"]}
    given = serde.to_relay(model(name))
    main = partition_model(given, supported=supported, min_nodes=9).model.main
    assert not [node for node in all_nodes(main.body) if is_foreign(node)]
    assert "nn.relu" in main.astext()


@pytest.mark.parametrize("name", BODIES)
def test_a_weight_that_regions_alone_read_leaves_the_host(name: str) -> None:
    found = build(partition_model(serde.to_relay(model(name)), supported=["Mul", "Relu"]).model)
    (part,) = found.hosts.values()
    assert any(map(is_foreign, all_nodes(part.main.body)))
    # It is the first state of the scan, too.
    assert list(part.params) == (["w"] if name == "a scan" else [])
    (result,) = HybridExecutor(found).run(FEEDS)
    np.testing.assert_allclose(result, expected(name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inner", [False, True], ids=["a loop", "a loop in a loop"])
def test_a_weight_that_is_made_for_a_region_is_its_own(inner: bool) -> None:
    """A dense layer is a MatMul of the transposed weight where there is no Gemm."""
    runtime = pytest.importorskip("onnxruntime")

    def loop(make: Any) -> Any:
        i = relay.var("i", shape=(), dtype="int64")
        s, w = relay.var("s", shape=(2, 4)), relay.var("w", shape=(4, 4))
        turn = relay.tanh(make(s, w))
        body = relay.Function([i, s, w], relay.Tuple([relay.const(True, "bool"), turn]))
        most = relay.const(3, "int64")
        return lambda x, v: relay.serde.loop(most, None, [x], [v], body=body)[0]

    whole = loop(loop(relay.nn.dense) if inner else relay.nn.dense)
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 4))
    mod = relay.IRModule.from_expr(relay.Function([x, w], whole(x, w)))
    params = {"w": RNG.normal(size=(4, 4)).astype(np.float32)}
    proto = serde.from_relay((mod, params), format="onnx")
    (want,) = runtime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})
    found = split((mod, params), supported=["MatMul"]).module
    (region,) = found.imported_modules
    assert (region.nodes, len(region.inputs)) == (("MatMul",), 1)
    (value,) = map(numpy_helper.to_array, region.proto().graph.initializer)
    np.testing.assert_array_equal(value, params["w"].T)
    assert not any(part.params for part in found.hosts.values())
    np.testing.assert_allclose(HybridExecutor(found).run(X)[0], want, rtol=1e-5, atol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("name", BODIES)
def test_code_of_tvm_calls_regions_in_bodies(name: str) -> None:
    pytest.importorskip("tvm")
    found = split(model(name), supported=["Mul", "Relu"]).module
    executor = HybridExecutor(found, host="tvm")
    (result,) = executor.run(FEEDS)
    np.testing.assert_allclose(result, expected(name), rtol=1e-5, atol=1e-6)


@pytest.mark.wide
def test_regions_of_one_name_are_those_of_the_module_that_runs() -> None:
    """TVM has one table of functions for all modules, of which both have a region of one name."""
    pytest.importorskip("tvm")
    found = [split(model("a scan"), supported=[each]).module for each in ("Relu", "Add")]
    assert found[0].regions.keys() == found[1].regions.keys()
    assert [len(each.inputs) for part in found for each in part.imported_modules] == [1, 2]
    executors = [HybridExecutor(each, host="tvm") for each in found]
    for executor in (*executors, *executors):
        (result,) = executor.run(FEEDS)
        np.testing.assert_allclose(result, expected("a scan"), rtol=1e-5, atol=1e-6)


def test_two_loops_of_one_body_keep_what_differs() -> None:
    """A body that two loops share captures two weights: neither is its own."""
    s, w = relay.var("s", shape=(2, 4)), relay.var("w", shape=(4,))
    i = relay.var("i", shape=(), dtype="int64")
    turn = relay.tanh(relay.nn.relu(relay.multiply(s, w)))
    body = relay.Function([i, s, w], relay.Tuple([relay.const(True, "bool"), turn]))
    x, a, b = (relay.var(n, shape=d) for n, d in (("x", (2, 4)), ("a", (4,)), ("b", (4,))))
    value = x
    for weight in (a, b):
        value = relay.serde.loop(relay.const(2, "int64"), None, [value], [weight], body=body)
        value = relay.TupleGetItem(value, 0) if not isinstance(value, relay.Call) else value
    mod = relay.IRModule.from_expr(relay.Function([x, a, b], value))
    params = {"a": W, "b": W[::-1].copy()}
    found = build(partition_for_onnx(mod, params, supported=["Mul", "Relu"]))
    want = X
    for weight in params.values():
        for _ in range(2):
            want = np.tanh(np.maximum(want * weight, 0))
    np.testing.assert_allclose(HybridExecutor(found).run(X)[0], want, rtol=1e-5)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_recursion_has_regions_inside(pattern: str, tmp_path: Path) -> None:
    """It calls itself twice, which no loop can say."""
    pytest.importorskip("onnxruntime")
    x, s, w = (relay.var(n, shape=d) for n, d in (("x", (2, 4)), ("s", (2, 4)), ("w", (4,))))
    n, i = (relay.var(name, shape=(), dtype="int32") for name in "ni")
    f, less = relay.var("f"), relay.subtract(i, relay.const(1, "int32"))
    left = relay.Call(f, [less, relay.nn.relu(relay.multiply(s, w))])
    right = relay.Call(f, [less, relay.exp(relay.negative(relay.abs(s)))])
    both = relay.If(relay.less_equal(i, relay.const(0, "int32")), s, relay.add(left, right))
    function = relay.Function([i, s], both, relay.TensorType((2, 4), "float32"))
    body = relay.Let(f, function, relay.tanh(relay.Call(f, [n, x])))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, n, w], body)))
    supported = {"operators": ["Exp", "Neg", "Abs"], "composites": {NAME: {
        "pattern": PATTERNS[pattern]}}}  # fmt: skip
    found = build(partition_for_onnx(mod, {"w": W}, supported=supported))
    assert [each.nodes for each in found.imported_modules] == [("ScaleRelu", "Abs", "Neg", "Exp")]

    def recur(count: int, value: np.ndarray) -> np.ndarray:
        if count <= 0:
            return value
        return recur(count - 1, np.maximum(value * W, 0)) + recur(count - 1, np.exp(-abs(value)))

    loaded = OnnxModule.load(found.save(tmp_path / "split.zip"))
    (result,) = HybridExecutor(loaded).run(X, np.int32(3))
    np.testing.assert_allclose(result, np.tanh(recur(3, X)), rtol=1e-5)
