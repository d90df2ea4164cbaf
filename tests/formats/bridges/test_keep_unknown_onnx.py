"""Operators of other domains in ONNX: converted by users' functions, and kept as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import OptionError, RelayError, UnsupportedModelError
from serde.onnx import foreign as own
from serde.relay.ir.dims import Any as AnyDim, symbol
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

RNG = np.random.default_rng(11)
W = RNG.normal(size=(5, 4)).astype(np.float32)
X = RNG.normal(size=(2, 5)).astype(np.float32)


class Wobble(OpRun):
    """``(gain * x + offsets[0]) * tanh(x)``, and a second input, if there is one, added."""

    op_domain = "com.acme"

    def _run(self, x, y=None, gain=None, mode=None, offsets=None):  # type: ignore[no-untyped-def]
        found = (x * np.float32(gain) + np.float32(offsets[0])) * np.tanh(x)
        return ((found if y is None else found + y).astype(x.dtype),)


def wobble(
    ctx: Any, x: Any, y: Any = None, *, gain: float, mode: str = "", offsets: Any = ()
) -> Any:
    scaled = relay.multiply(x, relay.const(np.float32(gain)))
    moved = relay.add(scaled, relay.const(np.float32(offsets[0])))
    found = relay.multiply(moved, relay.tanh(x))
    return found if y is None else relay.add(found, y)


@pytest.fixture
def reference() -> Iterator[None]:
    """ONNX's reference implementation knows the operator during a test."""
    before = dict(own.REFERENCE_OPS)
    own.register_reference_ops(Wobble)
    yield
    own.REFERENCE_OPS.clear()
    own.REFERENCE_OPS.update(before)


def net(
    length: int | str = "N",
    *,
    declared: list[Any] | None = None,
    inputs: list[str] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A product, an operator of another domain, and a Relu behind it."""
    given = {"gain": 1.5, "mode": "fast", "offsets": [0.25, 2.0], **attributes}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Wobble", inputs or ["h"], ["a"], name="wob", domain="com.acme", **given),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [length, 4])],
        [numpy_helper.from_array(W, "w")],
    )
    shape = [length, 4] if declared is None else declared
    if shape:
        graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, shape))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def expected(model: onnx.ModelProto) -> np.ndarray:
    return ReferenceEvaluator(model, new_ops=[Wobble]).run(None, {"x": X})[0]


def by_relay(model: Any) -> Any:
    weights = [model.params[each.name_hint].array() for each in model.main.params[1:]]
    return run(model.mod["main"], [X, *weights])


def kept_node(model: Any) -> Foreign:
    (found,) = filter(is_foreign, post_order(model.main))
    return Foreign.of(found)  # type: ignore[arg-type]


def test_without_anything_it_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="keep_unknown keeps it as it is"):
        serde.to_relay(net())


@pytest.mark.parametrize("name", ["com.acme::Wobble", "com.acme.Wobble"])
@pytest.mark.parametrize("length", ["N", 2])
def test_a_function_converts_it(name: str, length: int | str) -> None:
    report = Report()
    found = serde.to_relay(net(length), converters={name: wobble}, report=report)
    np.testing.assert_allclose(by_relay(found), expected(net(length)), rtol=1e-6, atol=1e-6)
    assert [(each.op, each.node) for each in report.fallbacks] == [("Wobble", "wob")]


@pytest.mark.parametrize("name", ["Wobble", "com.other::Wobble", "acme::Wobble", "wobble"])
def test_another_name_does_not(name: str) -> None:
    with pytest.raises(UnsupportedModelError):
        serde.to_relay(net(), converters={name: wobble})


@pytest.mark.parametrize("length", ["N", 2])
def test_kept_it_is_run_by_onnx(length: int | str, reference: None) -> None:
    found = serde.to_relay(net(length), keep_unknown=True)
    np.testing.assert_allclose(by_relay(found), expected(net(length)), rtol=1e-6, atol=1e-6)
    node = kept_node(found)
    assert (node.framework, node.domain, node.name, node.version) == (
        "onnx", "com.acme", "Wobble", 3,
    )  # fmt: skip
    assert node.attributes == {"gain": 1.5, "mode": "fast", "offsets": (0.25, 2.0)}
    dim = symbol(length) if isinstance(length, str) else length
    assert node.results == (TensorType((dim, 4), "float32"),)


def test_nothing_runs_what_nobody_registered() -> None:
    found = serde.to_relay(net(), keep_unknown=True)
    with pytest.raises(RelayError, match=r"com\.acme::Wobble: nothing runs it"):
        by_relay(found)


@pytest.mark.parametrize("strict", [False, True])
def test_kept_it_comes_through_text(strict: bool) -> None:
    found = serde.to_relay(net(), keep_unknown=True)
    again = relay.fromtext(found.mod.astext(strict=strict))
    assert relay.structural_equal(found.mod, again)


ATTRIBUTES: dict[str, Any] = {
    "a float": 0.1,
    "a float that is whole": 2.0,
    "an integer": -3,
    "text": "größe",
    "bytes": b"\xff\x00",
    "floats": [0.5, 2.0],
    "integers": [1, 2**40],
    "texts": ["a", "b"],
    "bytes among texts": ["a", b"\xfe"],
    "a tensor": numpy_helper.from_array(np.arange(6, dtype=np.int8).reshape(2, 3)),
    "a tensor of float16": numpy_helper.from_array(np.array([0.5, 1], np.float16)),
    "tensors": [numpy_helper.from_array(np.ones(2, np.float32))] * 2,
}


@pytest.mark.parametrize("title", ATTRIBUTES)
def test_onnx_gets_it_back_as_it_was(title: str) -> None:
    source = net(extra=ATTRIBUTES[title])
    written = serde.from_relay(serde.to_relay(source, keep_unknown=True), format="onnx")
    before, after = (next(n for n in m.graph.node if n.domain) for m in (source, written))
    assert (after.op_type, after.domain, after.name) == ("Wobble", "com.acme", "wob")
    values = [
        {each.name: (each.type, helper.get_attribute_value(each)) for each in node.attribute}
        for node in (before, after)
    ]
    plain = [
        {name: (kind, _comparable(value)) for name, (kind, value) in found.items()}
        for found in values
    ]
    assert plain[0] == plain[1]
    assert {each.domain: each.version for each in written.opset_import} == {"": 17, "com.acme": 3}
    (info,) = written.graph.value_info
    assert [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim] == ["N", 4]


def _comparable(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        array = numpy_helper.to_array(value)
        return (str(array.dtype), array.tolist())
    if not isinstance(value, (int, float, bytes)):
        return [_comparable(each) for each in value]
    return value


@pytest.mark.parametrize(
    "kind", [onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS, onnx.AttributeProto.STRINGS]
)
def test_an_empty_list_keeps_its_kind(kind: int) -> None:
    source = net()
    source.graph.node[1].attribute.append(onnx.AttributeProto(name="none", type=kind))
    written = serde.from_relay(serde.to_relay(source, keep_unknown=True), format="onnx")
    node = next(n for n in written.graph.node if n.domain)
    (found,) = [each for each in node.attribute if each.name == "none"]
    assert found.type == kind


def test_a_second_round_gives_the_same() -> None:
    once = serde.from_relay(serde.to_relay(net(), keep_unknown=True), format="onnx")
    twice = serde.from_relay(serde.to_relay(once, keep_unknown=True), format="onnx")
    assert once.SerializeToString(deterministic=True) == twice.SerializeToString(deterministic=True)


def test_an_input_that_is_left_out_stays_so(reference: None) -> None:
    class Last(OpRun):
        op_domain = "com.acme"

        def _run(self, *xs):  # type: ignore[no-untyped-def]
            return (xs[-1] * 2,)

    own.register_reference_ops(Last)
    source = net(inputs=["h", "", "h"])
    source.graph.node[1].op_type = "Last"
    del source.graph.node[1].attribute[:]
    found = serde.to_relay(source, keep_unknown=True)
    assert kept_node(found).absent == (1,)
    np.testing.assert_allclose(by_relay(found), np.maximum(X @ W * 2, 0), rtol=1e-5)
    written = serde.from_relay(found, format="onnx")
    assert list(next(n for n in written.graph.node if n.domain).input)[1] == ""

    seen: list[Any] = []

    def last(ctx: Any, x: Any, y: Any, z: Any) -> Any:
        seen.append(y)
        return z

    with pytest.raises(UnsupportedModelError, match="input 1 is left out"):
        serde.to_relay(source, converters={"com.acme::Last": last})

    def lenient(ctx: Any, x: Any, y: Any | None, z: Any) -> Any:
        seen.append(y)
        return z

    serde.to_relay(source, converters={"com.acme::Last": lenient})
    assert seen == [None]


@pytest.mark.parametrize(
    ("told", "shape"),
    [
        ({"wob": "float32[N,4]"}, (symbol("N"), 4)),
        ({"a": "float32[?,4]"}, (AnyDim(), 4)),
        ({"com.acme::Wobble": "float32[2,4]"}, (2, 4)),
        ({"Wobble": "float32[2,4]"}, (2, 4)),
        ({"wob": "float32[2,4]", "a": "float32[9,9]"}, (2, 4)),
    ],
)
def test_types_may_be_told(told: dict[str, str], shape: tuple[Any, ...]) -> None:
    source = net(declared=[])
    with pytest.raises(UnsupportedModelError, match="the types of its results are not known"):
        serde.to_relay(source, keep_unknown=True)
    found = serde.to_relay(source, keep_unknown=True, result_types=told)
    assert kept_node(found).results == (TensorType(shape, "float32"),)


def test_lengths_that_are_given_hold_for_declared_types() -> None:
    found = serde.to_relay(net("N"), keep_unknown=True, input_shapes={"x": (2, 5)})
    assert kept_node(found).results == (TensorType((2, 4), "float32"),)


def test_a_length_that_no_input_shows_is_open() -> None:
    found = serde.to_relay(net(2, declared=["M", 4]), keep_unknown=True)
    assert kept_node(found).results == (TensorType((AnyDim(), 4), "float32"),)


def test_a_type_that_is_wrong_is_found_when_it_runs(reference: None) -> None:
    found = serde.to_relay(net(2, declared=[2, 7]), keep_unknown=True)
    with pytest.raises(RelayError, match="declared to give"):
        by_relay(found)


def test_a_kept_operator_may_be_the_output() -> None:
    source = net(declared=[])
    del source.graph.node[2]
    source.graph.node[1].output[0] = "y"
    found = serde.to_relay(source, keep_unknown=True)
    assert found.main.body.type == TensorType((symbol("N"), 4), "float32")
    written = serde.from_relay(found, format="onnx")
    assert [each.name for each in written.graph.output] == ["y"]
    assert not written.graph.value_info


@pytest.mark.parametrize("op", ["Relu", "ai.onnx::Relu"])
def test_a_function_takes_the_place_of_an_operator_that_is_known(op: str) -> None:
    found = serde.to_relay(
        net(), converters={op: lambda ctx, x: relay.negative(x), "com.acme::Wobble": wobble}
    )
    plain = net()
    plain.graph.node[2].op_type = "Neg"
    np.testing.assert_allclose(by_relay(found), expected(plain), rtol=1e-6, atol=1e-6)


def test_a_local_function_is_expanded_unless_the_user_has_one() -> None:
    source = net(gain=None, mode=None, offsets=None)
    body = [helper.make_node("Neg", ["i"], ["o"])]
    source.functions.append(
        helper.make_function("com.acme", "Wobble", ["i"], ["o"], body, source.opset_import[:1])
    )
    found = serde.to_relay(source, keep_unknown=True)
    np.testing.assert_allclose(by_relay(found), np.maximum(-(X @ W), 0), rtol=1e-5)
    changed = serde.to_relay(source, converters={"com.acme::Wobble": lambda ctx, x: relay.exp(x)})
    np.testing.assert_allclose(by_relay(changed), np.exp(X @ W), rtol=1e-4)


def test_an_operator_in_a_branch_is_kept(reference: None) -> None:
    inner = net()
    node = inner.graph.node[1]
    branches = [
        helper.make_graph([each], name, [], [helper.make_tensor_value_info(out, 1, ["N", 4])])
        for name, out, each in (
            ("yes", "t", helper.make_node(
                "Wobble", ["h"], ["t"], name="inside", domain="com.acme", gain=1.5, offsets=[0.25],
            )),
            ("no", "e", helper.make_node("Neg", ["h"], ["e"])),
        )
    ]  # fmt: skip
    choice = helper.make_node(
        "If", ["c"], ["a"], name="if", then_branch=branches[0], else_branch=branches[1]
    )
    inner.graph.node.remove(node)
    inner.graph.node.insert(1, choice)
    inner.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    report = Report()
    found = serde.to_relay(inner, keep_unknown=True, report=report)
    assert [each.node for each in report.fallbacks] == ["if/then/inside"]
    weights = [found.params["w"].array()]
    for flag in (True, False):
        h = X @ W
        want = (h * 1.5 + 0.25) * np.tanh(h) if flag else -h
        result = run(found.mod["main"], [X, np.array(flag), *weights])
        np.testing.assert_allclose(result, np.maximum(want, 0), rtol=1e-4, atol=1e-5)
    written = serde.from_relay(found, format="onnx")
    choice = next(n for n in written.graph.node if n.op_type == "If")
    inside = helper.get_attribute_value(choice.attribute[0]).node
    assert "com.acme" in {each.domain for each in [*inside]} | {
        n.domain for a in choice.attribute for n in helper.get_attribute_value(a).node
    }


def test_graphs_inside_are_not_kept() -> None:
    body = helper.make_graph([], "body", [], [])
    with pytest.raises(UnsupportedModelError, match="attribute body is a graph, which is not kept"):
        serde.to_relay(net(body=body), keep_unknown=True)


def test_a_large_tensor_is_not_kept() -> None:
    table = numpy_helper.from_array(np.zeros(300_000, np.float32))
    with pytest.raises(UnsupportedModelError, match="attribute table is a tensor of 1200000 bytes"):
        serde.to_relay(net(table=table), keep_unknown=True)


def test_what_a_converter_refuses_stays_refused() -> None:
    """Only unknown operators are kept: what is wrong with a known one is told."""
    source = net()
    source.graph.node[2].op_type = "LeakyRelu"
    source.graph.node[2].attribute.append(helper.make_attribute("slope", 0.5))
    with pytest.raises(UnsupportedModelError, match="unknown attribute slope") as caught:
        serde.to_relay(source, keep_unknown=True)
    assert [each.node for each in caught.value.report.issues] == ["relu"]


def test_microsofts_operator_runs_in_onnx_runtime() -> None:
    """One of ONNX Runtime's own that serde has no converter for."""
    pytest.importorskip("onnxruntime")
    source = net(gain=None, mode=None, offsets=None, inputs=["h", "bias"])
    bias = np.array([0.5, -1, 2, 0.25], np.float32)
    source.graph.initializer.append(numpy_helper.from_array(bias, "bias"))
    node = source.graph.node[1]
    node.op_type, node.domain = "GemmFastGelu", "com.microsoft"
    source.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    try:
        found = serde.to_relay(source, keep_unknown=True)
    except UnsupportedModelError:
        pytest.fail("an operator that no converter reads is kept")
    assert kept_node(found).full_name == "com.microsoft::GemmFastGelu"


def test_two_versions_of_one_domain_cannot_be_written() -> None:
    x = relay.var("x", shape=(2, 5))
    type_ = TensorType((2, 5), "float32")
    calls: Any = x
    for version in (1, 2):
        each = Foreign(
            framework="onnx", name="A", domain="com.acme", version=version, results=(type_,)
        )
        calls = each.build([calls])
    mod = relay.IRModule.from_expr(relay.Function([x], calls))
    with pytest.raises(UnsupportedModelError, match="in version 2, beside 1"):
        serde.from_relay(mod, format="onnx")


def test_a_library_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no such library"):
        own.register_library(tmp_path / "libacme.so")


# Writing by functions.


def as_mul(ctx: Any, x: Any, *, gain: float, **rest: Any) -> Any:
    return ctx.emit("Mul", x, ctx.const(np.float32(gain)))


@pytest.mark.parametrize("name", ["com.acme::Wobble", "Wobble"])
def test_a_function_writes_what_was_kept(name: str) -> None:
    found = serde.to_relay(net(), keep_unknown=True)
    report = Report()
    written = serde.from_relay(found, format="onnx", converters={name: as_mul}, report=report)
    assert [each.op_type for each in written.graph.node] == ["Gemm", "Mul", "Relu"]
    (result,) = ReferenceEvaluator(written).run(None, {"x": X})
    np.testing.assert_allclose(result, np.maximum(X @ W * 1.5, 0), rtol=1e-5)
    (told,) = report.fallbacks
    assert told.reason.startswith("written by converter as_mul of")


def test_one_function_may_write_all_that_was_kept() -> None:
    def write(ctx: Any, inputs: Any, *, name: str, domain: str, attributes: str) -> Any:
        assert (name, domain) == ("Wobble", "com.acme")
        assert '"gain": 1.5' in attributes
        (x,) = inputs
        return ctx.emit("Neg", x)

    found = serde.to_relay(net(), keep_unknown=True)
    written = serde.from_relay(found, format="onnx", converters={"serde.foreign": write})
    assert [each.op_type for each in written.graph.node] == ["Gemm", "Neg", "Relu"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx: 1, "takes 0 tensors, the node has 1"),
        (lambda ctx, x, y, **a: x, "takes 2 tensors, the node has 1"),
        (lambda ctx, x: x, "unknown attribute gain=1.5"),
        (lambda ctx, x, *, nothing, **a: x, "attribute nothing is missing"),
        (lambda ctx, x, **a: 3, "expected 1 value that ctx gives, found 3"),
        (lambda ctx, x, **a: None, "expected 1 value that ctx gives, found None"),
        (lambda ctx, x, **a: (x, x), "expected 1 value that ctx gives, found 2 values"),
        (lambda ctx, x, **a: 1 / 0, "ZeroDivisionError"),
        (lambda ctx, x, **a: ctx.emit("NoSuchOperator", x), "NoSuchOperator"),
        (lambda ctx, x, **a: ctx.emit("Relu", x, slope=1), "slope"),
    ],
)
def test_a_function_that_writes_wrongly_is_named(function: Any, message: str) -> None:
    found = serde.to_relay(net(), keep_unknown=True)
    with pytest.raises(OptionError, match=rf"<lambda> of Wobble .*node wob.*{message}"):
        serde.from_relay(found, format="onnx", converters={"Wobble": function})


def test_a_function_writes_an_operator_of_relay_before_any_pass() -> None:
    x = relay.var("x", shape=(2, 5))
    net_ = relay.Function([x], relay.nn.relu(relay.nn.softmax(x, axis=0)))
    mod = relay.IRModule.from_expr(net_)

    def softmax(ctx: Any, x: Any, *, axis: int) -> Any:
        assert axis == 0
        return ctx.emit("Abs", x)

    report = Report()
    written = serde.from_relay(
        mod, format="onnx", converters={"nn.softmax": softmax}, report=report
    )
    assert [each.op_type for each in written.graph.node] == ["Abs", "Relu"]
    assert [each.op for each in report.fallbacks] == ["nn.softmax"]


def test_an_attribute_that_is_not_taken_must_be_the_default() -> None:
    x = relay.var("x", shape=(2, 5))

    def softmax(ctx: Any, x: Any) -> Any:
        return ctx.emit("Abs", x)

    for axis, fits in ((-1, True), (0, False)):
        mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x, axis=axis)))
        if fits:
            serde.from_relay(mod, format="onnx", converters={"nn.softmax": softmax})
        else:
            with pytest.raises(OptionError, match="unknown attribute axis=0"):
                serde.from_relay(mod, format="onnx", converters={"nn.softmax": softmax})


def test_operands_come_as_the_operator_has_them() -> None:
    x, y = relay.var("x", shape=(2, 5)), relay.var("y", shape=(2, 5))
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.concatenate([x, y, x], axis=1)))

    def concatenate(ctx: Any, data: Any, *, axis: int) -> Any:
        assert isinstance(data, tuple)
        assert len(data) == 3
        return ctx.emit("Concat", data[2], data[0], data[1], axis=axis)

    written = serde.from_relay(mod, format="onnx", converters={"concatenate": concatenate})
    (node,) = written.graph.node
    assert list(node.input) == ["x", "x", "y"]


def test_several_results_are_written() -> None:
    x = relay.var("x", shape=(2, 6))
    parts = relay.split(x, 3, axis=1)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(parts[0], parts[2])))

    def split(ctx: Any, data: Any, *, indices_or_sections: Any, axis: int) -> Any:
        assert indices_or_sections == 3
        return ctx.emit_tuple("Split", data, outputs=3, axis=axis)

    written = serde.from_relay(mod, format="onnx", opset=11, converters={"split": split})
    data = RNG.normal(size=(2, 6)).astype(np.float32)
    (result,) = ReferenceEvaluator(written).run(None, {"x": data})
    np.testing.assert_allclose(result, data[:, :2] + data[:, 4:])


@pytest.mark.parametrize("global_", [False, True], ids=["literal", "global"])
def test_a_composite_function_is_written_by_its_name(global_: bool) -> None:
    p = relay.var("p", shape=(2, 5))
    attrs = {"Composite": "acme.double_relu", "strength": 3}
    body = relay.Function([p], relay.nn.relu(relay.nn.relu(p)))
    for name, value in attrs.items():
        body = body.with_attr(name, value)
    x = relay.var("x", shape=(2, 5))
    if global_:
        callee = relay.GlobalVar("fused")
        main = relay.Function([x], relay.negative(relay.Call(callee, [x])))
        mod = relay.IRModule({callee: body, relay.GlobalVar("main"): main})
    else:
        mod = relay.IRModule({"main": relay.Function([x], relay.negative(relay.Call(body, [x])))})
    mod = relay.transform.InferType()(mod)

    def write(ctx: Any, x: Any, *, strength: int, body: Any = None) -> Any:
        assert strength == 3
        assert isinstance(body, relay.Function)
        return ctx.emit("Relu", x)

    plain = serde.from_relay(mod, format="onnx")
    assert [each.op_type for each in plain.graph.node].count("Relu") >= 1
    report = Report()
    written = serde.from_relay(
        mod, format="onnx", converters={"acme.double_relu": write}, report=report
    )
    assert [each.op_type for each in written.graph.node] == ["Relu", "Neg"]
    assert [each.op for each in report.fallbacks] == ["acme.double_relu"]


def test_a_check_of_what_was_written_back(tmp_path: Path, reference: None) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(net(2), source)
    serde.convert(source, target, keep_unknown=True)
    report = serde.check(source, target, keep_unknown=True)
    assert report.passed
    assert report.engines == ("relay interpreter", "relay interpreter")
