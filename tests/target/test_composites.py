"""Composites as operators of a toolchain's own: by text, by pattern, and by functions there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.partitions import check_random

import serde.relay as relay
from serde.core import Report
from serde.errors import OptionError
from serde.relay.dataflow_pattern import is_constant, is_expr, is_op, is_tuple, wildcard
from serde.relay.ir import OpDef, RelayModel, all_nodes, free_vars, symbol
from serde.relay.op.contrib.onnx import partition_for_onnx
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build
from serde.target.splitting import split

RNG = np.random.default_rng(21)
NAME = "com.acme::ConvRelu"
TEXT = "fn (%x, %w, %b) { nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b)) }"
PATTERN = is_op("nn.relu")(
    is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), is_constant()), is_constant())
)
Attributes = Callable[[relay.Call], Any]


def strides(relu: Any) -> dict[str, Any]:
    return {"strides": relu.args[0].args[0].attrs["strides"]}


def net() -> tuple[relay.IRModule, dict[str, np.ndarray]]:
    """Two layers that differ in their strides, and what stays on the host behind them."""
    params: dict[str, np.ndarray] = {}
    y = relay.var("x", shape=(1, 3, 8, 8))
    for index, step in enumerate((1, 2)):
        params[f"w{index}"] = RNG.normal(size=(3, 3, 3, 3)).astype(np.float32) / 4
        params[f"b{index}"] = RNG.normal(size=3).astype(np.float32)
        w, b = (relay.var(f"{name}{index}", shape=params[f"{name}{index}"].shape) for name in "wb")
        y = relay.nn.conv2d(
            y, w, padding=(1, 1), strides=(step, step), channels=3, kernel_size=(3, 3)
        )
        y = relay.nn.relu(relay.nn.bias_add(y, b))
    body = relay.exp(relay.tanh(y))
    return relay.IRModule.from_expr(relay.Function(free_vars(body), body)), params


X = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)


def in_onnx_runtime(module: relay.IRModule, params: Mapping[str, Any], *inputs: Any) -> list[Any]:
    """What ONNX Runtime gives for the whole, which was never split."""
    import onnxruntime

    import serde

    model = serde.from_relay((module, dict(params)), format="onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


@pytest.mark.parametrize(
    ("pattern", "told"), [(TEXT, ["strides"]), (PATTERN, strides)], ids=["text", "pattern"]
)
def test_a_match_is_one_node_with_its_weights_and_a_function(
    pattern: Any, told: Any, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    mod, params = net()
    composites = {NAME: {"pattern": pattern, "attributes": told}}
    found = split((mod, params), supported={"operators": ["Exp"], "composites": composites})
    region = found.module.imported_modules[0].proto()
    onnx.checker.check_model(region, full_check=True)
    nodes = [(each.domain, each.op_type) for each in region.graph.node]
    assert nodes == [("com.acme", "ConvRelu")] * 2
    values = {each.name: numpy_helper.to_array(each) for each in region.graph.initializer}
    for index, node in enumerate(region.graph.node):
        assert helper.get_attribute_value(node.attribute[0]) == [index + 1, index + 1]
        np.testing.assert_array_equal(values[node.input[1]], params[f"w{index}"])
        np.testing.assert_array_equal(values[node.input[2]], params[f"b{index}"])
    # They stand for different things, which their overloads tell apart.
    assert [each.overload for each in region.functions] == ["", "1"]
    assert [each.overload for each in region.graph.node] == ["", "1"]
    assert region.ir_version == 10
    assert found.partition.regions[0].nodes == {NAME: 2}
    (want,) = in_onnx_runtime(mod, params, X)
    loaded = OnnxModule.load(found.module.save(tmp_path / "split"))
    for runner in ("onnxruntime", "reference"):
        (result,) = HybridExecutor(loaded, runner=runner).run(X)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pattern", [TEXT, PATTERN], ids=["text", "pattern"])
@pytest.mark.parametrize(
    ("supported", "min_nodes", "why"),
    [
        ({NAME: {"dtypes": ["float16"]}, "Exp": True}, 1, "is not taken where it matches: 0 is"),
        ({NAME: {"max_inputs": 2}, "Exp": True}, 1, "is not taken where it matches: 3 inputs"),
        (["Exp"], 4, None),
    ],
)
def test_what_is_not_taken_is_spelled_out(
    pattern: Any, supported: Any, min_nodes: int, why: str | None
) -> None:
    mod, params = net()
    listed = {"operators": supported, "composites": {NAME: {"pattern": pattern}}}
    report = Report()
    found = partition_for_onnx(mod, params, supported=listed, min_nodes=min_nodes, report=report)
    plain = partition_for_onnx(mod, params, supported=["Exp"], min_nodes=min_nodes)
    relay.assert_structural_equal(found, plain)
    if why is not None:
        assert any(note.startswith(f"{NAME}: {why}") for note in report.notes)


V = "Tensor[(2, 4), float32]"
PAIR = f"""#[version = "0.0.5"]
def @main(%x: {V}, %y: {V}) {{
  %0 = fn (%p: {V}, %q: {V}, Composite="com.acme::Pair", alpha=2, note="hi") -> {V}
    {{ exp(add(nn.relu(%p), %q)) }};
  tanh(%0(%x, sigmoid(%y)))
}}"""


def test_a_composite_function_becomes_an_operator_where_its_name_is_listed() -> None:
    pytest.importorskip("onnxruntime")
    mod = relay.transform.InferType()(relay.fromtext(PAIR))
    module = build(partition_for_onnx(mod, supported=["com.acme::Pair", "Tanh"]))
    (region,) = module.imported_modules
    node = region.proto().graph.node[0]
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        "alpha": 2, "note": b"hi",
    }  # fmt: skip
    x, y = RNG.normal(size=(2, 2, 4)).astype(np.float32)
    want = np.tanh(np.exp(np.maximum(x, 0) + 1 / (1 + np.exp(-y))))
    np.testing.assert_allclose(HybridExecutor(module).run(x, y)[0], want, rtol=1e-5)
    unlisted = partition_for_onnx(mod, supported=["Tanh"])
    assert "com.acme::Pair" in unlisted["main"].astext()


def small(make: Callable[[Any], Any], shape: Any = (4, 6)) -> relay.IRModule:
    x = relay.var("x", relay.TensorType(shape, "float32"))
    return relay.IRModule.from_expr(relay.Function([x], make(x)))


FORMS: dict[str, tuple[Callable[[Any], Any], Any, int]] = {
    "operands of commutative operators in either order": (
        lambda x: relay.multiply(relay.const(0.5), relay.add(relay.exp(x), x)),
        "fn (%a, %b) { multiply(add(%a, exp(%b)), 0.5f) }", 2),
    "a parameter that is read twice": (
        lambda x: relay.multiply(relay.add(x, x), relay.exp(x)),
        "fn (%a, %b) { multiply(add(%a, %a), %b) }", 2),
    "a constant that a parameter stands for": (
        lambda x: relay.multiply(relay.const(0.5), x), "fn (%a, %k) { multiply(%a, %k) }", 2),
    "a constant of one element of a pattern": (
        lambda x: relay.multiply(relay.const(0.5), x), is_op("multiply")(wildcard(), is_constant()),
        1),
    "a constant that the pattern fixes": (
        lambda x: relay.multiply(relay.const(0.5), x),
        is_op("multiply")(wildcard(), is_expr(relay.const(0.5))), 1),
    "a vector that is a constant": (
        lambda x: relay.multiply(x, relay.const(np.arange(6, dtype=np.float32))),
        is_op("multiply")(wildcard(), is_constant()), 2),
    "several results": (
        lambda x: relay.multiply(*relay.split(relay.tanh(x), 2, axis=1)),
        is_op("split")(is_op("tanh")(wildcard())), 1),
}  # fmt: skip


@pytest.mark.parametrize("lengths", [(4, 6), (symbol("N"), 6)], ids=["fixed", "named"])
@pytest.mark.parametrize("name", FORMS)
def test_forms_of_patterns(name: str, lengths: Any) -> None:
    pytest.importorskip("onnxruntime")
    make, pattern, inputs = FORMS[name]
    mod = small(make, lengths)
    composites = {"com.acme::Own": {"pattern": pattern}}
    supported = {"operators": ["Exp", "Split", "Mul"], "composites": composites}
    module = build(partition_for_onnx(mod, supported=supported))
    nodes = [n for r in module.imported_modules for n in r.proto().graph.node]
    assert [len(n.input) for n in nodes if n.op_type == "Own"] == [inputs]
    for region in module.imported_modules:
        onnx.checker.check_model(region.proto(), full_check=True)
    x = RNG.normal(size=(4, 6)).astype(np.float32)
    (want,) = in_onnx_runtime(mod, {}, x)
    (result,) = HybridExecutor(module).run(x)
    np.testing.assert_allclose(result, want, rtol=1e-6)


def drawn(node: Any, depth: int, rng: np.random.Generator) -> Any:
    """A pattern of what a node is, some of what it reads left open."""
    if isinstance(node, relay.Tuple):
        return is_tuple([wildcard() for _ in node.fields])
    if not is_plain(node) or depth < 0:
        return wildcard()
    depths = [depth - 1 if rng.random() < 0.6 else -1 for _ in node.args]
    return is_op(node.op.name)(*(drawn(*each, rng) for each in zip(node.args, depths, strict=True)))


def is_plain(node: Any) -> bool:
    return isinstance(node, relay.Call) and isinstance(node.op, OpDef) and not node.op.carries


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(8, 60))]
)
def test_random_graphs_with_patterns_of_their_own(seed: int) -> None:
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(seed)

    def composites(model: RelayModel) -> dict[str, Any]:
        calls = [node for node in all_nodes(model.main.body) if is_plain(node)]
        chosen = [calls[rng.integers(len(calls))] for _ in range(5)] if calls else []
        patterns = [drawn(each, int(rng.integers(1, 3)), rng) for each in chosen]
        return {f"x.y::Own{index}": {"pattern": each} for index, each in enumerate(patterns)}

    check_random(seed, composites)


def test_a_pattern_that_matches_nothing_is_told() -> None:
    composites = {
        "com.acme::Never": {"pattern": "fn (%x) { nn.softmax(%x) }"},
        "com.acme::NotTaken": {"pattern": is_op("exp")(wildcard()), "attributes": lambda _: None},
    }
    supported = {"operators": ["com.acme::Scale"], "composites": composites}
    report = Report()
    partition_for_onnx(small(relay.exp), supported=supported, report=report)
    nothing = "nothing in the model is it, or matches its pattern"
    assert report.notes == [
        f"com.acme::Never: {nothing}",
        "com.acme::NotTaken: its function takes no match",
        f"com.acme::Scale: {nothing}",
    ]


MISTAKES: dict[str, tuple[str, Any, str]] = {
    "no domain": ("Own", "fn (%x) { exp(%x) }", "Own: expected an operator of a domain"),
    "ONNX's domain": ("ai.onnx::Own", "fn (%x) { exp(%x) }", "expected an operator of a domain"),
    "no pattern": ("a::B", None, "expected Relay's text, or a pattern"),
    "a number": ("a::B", 3, "expected Relay's text, or a pattern"),
    "no Relay": ("a::B", "exp(%x", "composite a::B: <text>:1:5: %x is not defined here"),
    "no function": ("a::B", "fn (%x) { %x }", "composite a::B: expected a function that ends"),
    "an unknown operator": ("a::B", "fn (%x) { nosuch(%x) }", "no Relay operator is called nosu"),
    "a parameter too many": ("a::B", "fn (%x, %y) { exp(%x) }", "expected one call with y"),
    "an attribute of no call": ("a::B", ("fn (%x) { exp(%x) }", ["axis"]), "one call with axis"),
    "an attribute of two calls": (
        "a::B", ("fn (%x) { sum(sum(%x, axis=[0]), axis=[0]) }", ["axis"]), "one call with axis"),
    "no names of attributes": ("a::B", ("fn (%x) { exp(%x) }", 3), "attributes: expected a list"),
    "a function that fails": (
        "a::B", (is_op("exp")(wildcard()), lambda _: 1 // 0), "its function fails: ZeroDivision"),
    "no attributes": (
        "a::B", (is_op("exp")(wildcard()), lambda _: "x"), "its function fails: ValueError"),
    "an attribute that is none": (
        "a::B", (is_op("exp")(wildcard()), lambda _: {"x": object()}), "expected a number, text"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_one_line(name: str) -> None:
    operator, given, message = MISTAKES[name]
    pattern, *told = given if isinstance(given, tuple) else (given,)
    composites = {operator: {"pattern": pattern, **({"attributes": told[0]} if told else {})}}
    with pytest.raises(OptionError) as caught:
        partition_for_onnx(small(relay.exp), supported={"composites": composites})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
