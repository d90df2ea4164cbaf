"""Raising of chains by patterns."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from support.samples import build

import serde.relay as relay
from serde.relay.ir.compare import first_difference
from serde.relay.ir.registry import Sample, all_ops, call, get
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import Compose, Decompose, Match, Pattern, extension_patterns
from serde.relay.tvm.passes.extension_forms import FORMS

X = np.random.default_rng(2).normal(size=(2, 3)).astype("float32")
MATRIX = relay.TensorType((2, 3))


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def _raised(function: relay.Function) -> relay.Function:
    mod = Compose(extension_patterns())(relay.IRModule.from_expr(function))
    verify(mod)
    return mod["main"]


def test_a_gelu_spelled_out_is_found_whatever_the_order_of_its_operands() -> None:
    x = relay.var("x", MATRIX)
    for_each = relay.erf(relay.multiply(relay.const(np.float32(np.sqrt(0.5))), x))
    body = relay.multiply(
        relay.add(relay.const(1.0), for_each), relay.multiply(relay.const(0.5), x)
    )
    result = _raised(relay.Function([x], relay.tanh(body)))
    assert _calls(result) == ["serde.gelu", "tanh"]
    want = run(relay.Function([x], relay.tanh(body)), [X])
    np.testing.assert_allclose(run(result, [X]), want, rtol=1e-5, atol=1e-6)


def test_scalar_attributes_are_read_from_constants() -> None:
    x = relay.var("x", MATRIX)
    line = relay.add(relay.multiply(x, relay.const(0.3)), relay.const(0.6))
    result = _raised(relay.Function([x], relay.clip(line, 0.0, 1.0)))
    assert _calls(result) == ["serde.hard_sigmoid"]
    assert dict(result.body.attrs) == {"alpha": 0.3, "beta": 0.6}


def test_another_bound_is_no_hard_sigmoid() -> None:
    x = relay.var("x", MATRIX)
    line = relay.add(relay.multiply(x, relay.const(0.3)), relay.const(0.6))
    function = relay.Function([x], relay.clip(line, 0.0, 2.0))
    assert Compose(extension_patterns()).transform(function) is function


def test_what_is_used_outside_is_left() -> None:
    x = relay.var("x", MATRIX)
    gate = relay.sigmoid(x)
    function = relay.Function([x], relay.Tuple([relay.multiply(x, gate), gate]))
    assert Compose(extension_patterns()).transform(function) is function


def test_the_larger_pattern_wins() -> None:
    x = relay.var("x", MATRIX)
    plain = Decompose(frozenset()).transform(relay.Function([x], call("serde.mish", x)))
    assert _calls(_raised(plain)) == ["serde.mish"]


def test_chains_that_feed_each_other_are_all_raised() -> None:
    x = relay.var("x", MATRIX)
    body = x
    for _ in range(1000):
        body = relay.multiply(body, relay.sigmoid(body))
    result = _raised(relay.Function([x], body))
    assert _calls(result) == ["serde.silu"] * 1000


def test_a_pattern_of_a_bridge() -> None:
    a, b = relay.var("a"), relay.var("b")
    template = relay.Call(relay.add(relay.var("p", MATRIX), relay.var("q", MATRIX)).op, [a, b])
    negated = relay.Call(relay.negative(relay.var("p", MATRIX)).op, [template])

    def build_difference(match: Match) -> relay.Expr | None:
        if not isinstance(match.bound["b"], relay.Var):
            return None
        return relay.subtract(relay.negative(match.bound["a"]), match.bound["b"])

    pattern = Pattern("difference", negated, build_difference)
    x, y = relay.var("x", MATRIX), relay.var("y", MATRIX)
    body = relay.negative(relay.add(relay.exp(x), y))
    result = Compose((pattern,)).transform(relay.Function([x, y], body))
    assert _calls(result) == ["exp", "negative", "subtract"]
    np.testing.assert_allclose(run(result, [X, 2 * X]), -(np.exp(X) + 2 * X), rtol=1e-6)
    refused = relay.Function([x, y], relay.negative(relay.add(y, relay.exp(x))))
    assert Compose((pattern,)).transform(refused) is refused


def _forms() -> list[object]:
    return [
        pytest.param(name, form, dtype, id=f"{name}-{index}-{dtype}")
        for index, (name, form) in enumerate(FORMS)
        for dtype in ("float64", "float32")
    ]


@pytest.mark.parametrize(("name", "form", "dtype"), _forms())
def test_each_form_is_found_in_its_decomposition(name: str, form: Sample, dtype: str) -> None:
    operands = [
        replace(each, dtype=dtype if each.dtype == "float64" else each.dtype)
        for each in form.operands
    ]
    built = build(get(name), Sample(tuple(operands), form.attrs))
    plain = Decompose(
        lambda node: node.op.name != name and not node.op.name.startswith("serde.")
    ).transform(built.function)
    assert _calls(_raised(plain)) == [name]


def test_passes_that_no_conversion_runs_are_not_loaded() -> None:
    code = (
        "import sys, serde.relay, serde.onnx.bridge, serde.mxnet.bridge, serde.coreml.bridge;"
        "assert not [name for name in sys.modules if 'relay.tvm' in name];"
        "serde.relay.transform.FoldConstant()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _samples() -> list[object]:
    return [
        pytest.param(definition, each, id=f"{name}-{index}")
        for name, definition in all_ops().items()
        if definition.decompose is not None
        for index, each in enumerate(definition.samples)
    ]


@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), _samples())
def test_composing_then_legalizing_is_the_identity(definition: object, given: Sample) -> None:
    built = build(definition, given)
    plain = Decompose(frozenset()).transform(built.function)
    raised = Compose(extension_patterns()).transform(plain)
    again = Decompose(frozenset()).transform(raised)
    assert first_difference(again, plain) is None
