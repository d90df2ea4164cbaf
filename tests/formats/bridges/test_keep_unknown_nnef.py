"""Fragments of NNEF without a body: converted by users' functions, and kept as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.engine import foreign as engine
from serde.errors import OptionError, RelayError, UnsupportedModelError
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

nnef = pytest.importorskip("nnef")

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)
ONE = TensorType((2, 3), "float32")
HEAD = "version 1.0;\nextension KHR_enable_fragment_definitions;\n"
DECLARED = (
    "fragment wobble(x: tensor<scalar>, more: tensor<scalar>[], gain: scalar, mode: string, "
    "axes: integer[], exact: logical) -> (y: tensor<scalar>);"
)
BODY = """
graph net(x) -> (y)
{
    x = external(shape = [2, 3]);
    h = tanh(x);
    a = wobble(h, [x, h], gain = 1.5, mode = 'fast', axes = [1, 2], exact = true);
    y = relu(a);
}
"""
TOLD = {"a": "float32[2,3]"}
WANT = np.maximum((np.tanh(X) + X) * np.float32(1.5), 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "net", HEAD + DECLARED + BODY)


def write(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "graph.nnef").write_text(text)
    return path


def wobble(ctx: Any, x: Any, first: Any, second: Any, *, gain: float, **rest: Any) -> Any:
    assert rest == {"mode": "fast", "axes": (1, 2), "exact": True}
    return relay.multiply(relay.add(x, first), relay.const(np.float32(gain)))


@pytest.fixture
def kernel() -> Iterator[None]:
    before = dict(engine._KERNELS)
    serde.register_kernel("wobble", lambda x, y, z, *, gain, **rest: (x + y) * np.float32(gain))
    yield
    engine._KERNELS.clear()
    engine._KERNELS.update(before)


def kept_node(model: Any) -> Foreign:
    (found,) = filter(is_foreign, post_order(model.main))
    return Foreign.of(found)  # type: ignore[arg-type]


def test_without_anything_it_is_refused(folder: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="a fragment without a body"):
        serde.to_relay(folder)


@pytest.mark.wide
def test_a_function_converts_it(folder: Path) -> None:
    report = Report()
    found = serde.to_relay(folder, converters={"wobble": wobble}, report=report)
    np.testing.assert_allclose(run(found.mod["main"], [X]), WANT, rtol=1e-6)
    assert [(each.op, each.node) for each in report.fallbacks] == [("wobble", "a")]


@pytest.mark.wide
def test_what_custom_convert_map_gives_stays(folder: Path) -> None:
    def old(inputs: list[Any], attributes: dict[str, Any]) -> Any:
        return relay.multiply(relay.add(inputs[0], inputs[1]), relay.const(np.float32(1.5)))

    found = serde.to_relay(folder, custom_convert_map={"wobble": old})
    np.testing.assert_allclose(run(found.mod["main"], [X]), WANT, rtol=1e-6)


@pytest.mark.wide
def test_kept_it_needs_types(folder: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="the types of its results are not known"):
        serde.to_relay(folder, keep_unknown=True)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["a", "wobble"])
def test_kept_it_is_run_by_a_kernel(folder: Path, name: str, kernel: None) -> None:
    found = serde.to_relay(folder, keep_unknown=True, result_types={name: "float32[2,3]"})
    np.testing.assert_allclose(run(found.mod["main"], [X]), WANT, rtol=1e-6)
    node = kept_node(found)
    assert (node.framework, node.name, node.results) == ("nnef", "wobble", (ONE,))
    assert node.plain_attributes == {"gain": 1.5, "mode": "fast", "axes": (1, 2), "exact": True}


@pytest.mark.wide
def test_without_a_kernel_nothing_runs_it(folder: Path) -> None:
    found = serde.to_relay(folder, keep_unknown=True, result_types=TOLD)
    with pytest.raises(RelayError, match="nothing here runs operators of nnef"):
        run(found.mod["main"], [X])


@pytest.mark.wide
@pytest.mark.parametrize("strict", [False, True])
def test_kept_it_comes_through_text(folder: Path, strict: bool) -> None:
    found = serde.to_relay(folder, keep_unknown=True, result_types=TOLD)
    again = relay.fromtext(found.mod.astext(strict=strict))
    assert relay.structural_equal(found.mod, again)


@pytest.mark.parametrize("fragments", [False, True])
def test_nnef_gets_it_back_as_it_was(folder: Path, tmp_path: Path, fragments: bool) -> None:
    found = serde.to_relay(folder, keep_unknown=True, result_types=TOLD)
    target = serde.from_relay(
        found, format="nnef", path=tmp_path / "again", nnef_fragments=fragments
    )
    text = (target / "graph.nnef").read_text()
    assert (
        "fragment wobble(x: tensor<scalar>, more: tensor<scalar>[], gain: scalar, mode: string, "
        "axes: integer[], exact: logical) -> (y0: tensor<scalar>);"
    ) in text
    assert "a = wobble(h, [x, h], gain = 1.5, mode = 'fast', axes = [1, 2], exact = true);" in text
    again = serde.to_relay(target, keep_unknown=True, result_types=TOLD)
    assert relay.structural_equal(found.mod, again.mod)


@pytest.mark.wide
def test_a_fragment_with_a_body_is_expanded_unless_the_user_has_one(tmp_path: Path) -> None:
    text = (
        HEAD + "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>) { y = add(x, x); }\n"
        "graph net(x) -> (y) { x = external(shape = [2, 3]); h = tanh(x); y = twice(h); }\n"
    )
    path = write(tmp_path / "net", text)
    for options in ({}, {"keep_unknown": True}):
        found = serde.to_relay(path, **options)
        np.testing.assert_allclose(run(found.mod["main"], [X]), 2 * np.tanh(X), rtol=1e-6)
    own = serde.to_relay(path, converters={"twice": lambda ctx, x: relay.exp(x)})
    np.testing.assert_allclose(run(own.mod["main"], [X]), np.exp(np.tanh(X)), rtol=1e-6)


@pytest.mark.wide
def test_a_function_takes_the_place_of_a_fragment_of_the_standard(folder: Path) -> None:
    found = serde.to_relay(
        folder, converters={"wobble": wobble, "tanh": lambda ctx, x: relay.negative(x)}
    )
    np.testing.assert_array_equal(run(found.mod["main"], [X]), np.zeros_like(X))


@pytest.mark.wide
def test_several_results_are_kept(tmp_path: Path, kernel: None) -> None:
    text = (
        HEAD + "fragment pair(x: tensor<scalar>) -> (y: tensor<scalar>, z: tensor<logical>);\n"
        "graph net(x) -> (y, z) { x = external(shape = [2, 3]); y, z = pair(x); }\n"
    )
    path = write(tmp_path / "net", text)
    serde.register_kernel("pair", lambda x: (x * 2, x > 0))
    found = serde.to_relay(path, keep_unknown=True, result_types={"y": "float32[2,3],bool[2,3]"})
    results = run(found.mod["main"], [X])
    np.testing.assert_array_equal(results[0], X * 2)
    np.testing.assert_array_equal(results[1], X > 0)
    target = serde.from_relay(found, format="nnef", path=tmp_path / "again")
    declared = "fragment pair(x: tensor<scalar>) -> (y0: tensor<scalar>, y1: tensor<logical>);"
    assert declared in (target / "graph.nnef").read_text()


def foreign(**changes: Any) -> relay.IRModule:
    given = {"framework": "onnx", "name": "wobble", "domain": "com.acme", "results": (ONE,)}
    x = relay.var("x", ONE)
    call = Foreign(**{**given, **changes}).build([x])
    return relay.IRModule.from_expr(relay.Function([x], call))


@pytest.mark.wide
def test_an_operator_of_onnx_becomes_a_fragment(tmp_path: Path) -> None:
    mod = foreign(attributes={"gain": 0.5, "axes": (1, 2), "mode": "fast", "flag": False})
    with pytest.raises(UnsupportedModelError, match="an operator of onnx"):
        serde.from_relay(mod, format="nnef")
    path = serde.from_relay(mod, format="nnef", path=tmp_path / "n", custom_ops=["wobble"])
    text = (path / "graph.nnef").read_text()
    assert (
        "fragment wobble(x0: tensor<scalar>, gain: scalar, axes: integer[], mode: string, "
        "flag: logical) -> (y0: tensor<scalar>);"
    ) in text
    again = kept_node(
        serde.to_relay(path, keep_unknown=True, result_types={"wobble": "float32[2,3]"})
    )
    assert again.plain_attributes == {"gain": 0.5, "axes": (1, 2), "mode": "fast", "flag": False}


def test_no_name_of_a_fragment_is_taken_twice(tmp_path: Path) -> None:
    """The graph's own name, and parameters that are numbered as the writer's are."""
    mod = foreign(name="network", attributes={"x0": 0.5, "y0": 1})
    path = serde.from_relay(mod, format="nnef", path=tmp_path / "n", custom_ops=["network"])
    text = (path / "graph.nnef").read_text()
    assert "fragment network(x01: tensor<scalar>, x0: scalar, y0: integer)" in text
    nnef.parse_string(text, stdlib="", lowered=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "é"}, "no name of a fragment of a model's own"),
        ({"name": "tensor"}, "no name of a fragment of a model's own"),
        ({"name": "relu"}, "no name of a fragment of a model's own"),
        ({"name": "a-b"}, "no name of a fragment of a model's own"),
        ({"name": "a(); graph x"}, "no name of a fragment of a model's own"),
        ({"absent": (1,)}, "leaves out an input"),
        ({"attributes": {"a b": 1}}, "no name of an attribute"),
        ({"attributes": {"a": b"1"}}, "no literal of NNEF says a="),
        ({"attributes": {"a": "it's"}}, "no text of NNEF says a="),
        ({"attributes": {"a": 2**40}}, "no literal of NNEF says"),
        ({"attributes": {"a": np.ones(2)}}, "no literal of NNEF says a="),
    ],
)
def test_what_nnef_cannot_say_is_refused(changes: dict[str, Any], message: str) -> None:
    names = [str(changes.get("name", "wobble"))]
    with pytest.raises(UnsupportedModelError, match=message):
        serde.from_relay(foreign(**changes), format="nnef", custom_ops=names)


def test_one_fragment_has_one_declaration() -> None:
    x = relay.var("x", ONE)
    first = Foreign(framework="nnef", name="w", attributes={"a": 1}, results=(ONE,)).build([x])
    second = Foreign(framework="nnef", name="w", attributes={"b": 1}, results=(ONE,)).build([first])
    mod = relay.IRModule.from_expr(relay.Function([x], second))
    with pytest.raises(UnsupportedModelError, match="in use with other parameters"):
        serde.from_relay(mod, format="nnef")


def test_a_function_writes_an_operator(tmp_path: Path) -> None:
    x = relay.var("x", ONE)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.leaky_relu(x, 0.25)))

    def leaky(ctx: Any, x: Any, *, alpha: float) -> Any:
        return ctx.emit("max", x, ctx.emit("mul", x, alpha))

    path = serde.from_relay(
        mod, format="nnef", path=tmp_path / "n", converters={"nn.leaky_relu": leaky}
    )
    again = serde.to_relay(path)
    want = np.where(X > 0, X, 0.25 * X)
    np.testing.assert_allclose(run(again.mod["main"], [X]), want, rtol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx, *xs, **a: 3, "expected 1 Relay expressions, found 3"),
        (lambda ctx, *xs, **a: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_function_that_is_wrong_is_named(folder: Path, function: Any, message: str) -> None:
    with pytest.raises(OptionError, match=rf"<lambda> of wobble .*node a .*{message}"):
        serde.to_relay(folder, converters={"wobble": function})
