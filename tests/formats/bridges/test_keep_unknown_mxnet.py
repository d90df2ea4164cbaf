"""A ``Custom`` of MXNet: converted by a user's function, and kept; the same numbers as MXNet's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.errors import MissingDependency, OptionError, RelayError, UnsupportedModelError
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

RNG = np.random.default_rng(7)
DATA = RNG.normal(size=(2, 5)).astype(np.float32)
WEIGHTS = {
    name: RNG.normal(size=shape).astype(np.float32)
    for name, shape in {
        "a_weight": (4, 5),
        "a_bias": (4,),
        "b_weight": (3, 4),
        "b_bias": (3,),
    }.items()
}
SHAPES = {"data": (2, 5)}


@pytest.fixture(scope="module")
def mx() -> Any:
    try:
        mxnet = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    _register(mxnet)
    return mxnet


def _register(mx: Any) -> None:
    """Register an operator of one result, and one of two with an input more."""

    class Swish(mx.operator.CustomOp):
        def __init__(self, beta: float) -> None:
            super().__init__()
            self.beta = beta

        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            x = in_data[0]
            self.assign(out_data[0], req[0], x * mx.nd.sigmoid(x * self.beta))

    @mx.operator.register("serde_test_swish")
    class SwishProp(mx.operator.CustomOpProp):
        def __init__(self, beta: str = "1.0") -> None:
            super().__init__(need_top_grad=False)
            self.beta = float(beta)

        def infer_shape(self, in_shape):  # type: ignore[no-untyped-def]
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Swish(self.beta)

    class Split(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            x, y = in_data
            self.assign(out_data[0], req[0], x + y)
            self.assign(out_data[1], req[1], x.sum(axis=1))

    @mx.operator.register("serde_test_split")
    class SplitProp(mx.operator.CustomOpProp):
        def list_arguments(self):  # type: ignore[no-untyped-def]
            return ["x", "y"]

        def list_outputs(self):  # type: ignore[no-untyped-def]
            return ["whole", "sums"]

        def infer_shape(self, in_shape):  # type: ignore[no-untyped-def]
            return in_shape, [in_shape[0], (in_shape[0][0],)], []

        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Split()


def net(mx: Any) -> Any:
    x = mx.sym.var("data")
    x = mx.sym.FullyConnected(x, num_hidden=4, name="a")
    x = mx.sym.Custom(x, op_type="serde_test_swish", beta="1.5", name="act")
    return mx.sym.FullyConnected(x, num_hidden=3, name="b")


def by_mxnet(mx: Any, symbol: Any, weights: Any = WEIGHTS) -> list[np.ndarray]:
    args = {name: mx.nd.array(value) for name, value in {**weights, "data": DATA}.items()}
    known = {name: args[name] for name in symbol.list_arguments()}
    bound = symbol.bind(mx.cpu(), args=known, grad_req="null")
    return [each.asnumpy() for each in bound.forward(is_train=False)]


def read(mx: Any, symbol: Any, **options: Any) -> Any:
    params = {name: mx.nd.array(value) for name, value in WEIGHTS.items()}
    known = {name: value for name, value in params.items() if name in symbol.list_arguments()}
    return serde.to_relay(symbol, known, format="mxnet", input_shapes=SHAPES, **options)


def by_relay(model: Any) -> Any:
    weights = [model.params[each.name_hint].array() for each in model.main.params[1:]]
    return run(model.mod["main"], [DATA, *weights])


def swish(ctx: Any, x: Any, *, beta: float = 1.0) -> Any:
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, relay.const(np.float32(beta)))))


def test_without_anything_it_is_refused(mx: Any) -> None:
    with pytest.raises(UnsupportedModelError, match="Custom"):
        read(mx, net(mx))


@pytest.mark.parametrize("name", ["serde_test_swish", "Custom::serde_test_swish"])
def test_a_function_converts_it(mx: Any, name: str) -> None:
    report = Report()
    found = read(mx, net(mx), converters={name: swish}, report=report)
    np.testing.assert_allclose(by_relay(found), by_mxnet(mx, net(mx))[0], rtol=1e-5, atol=1e-6)
    assert not any(map(is_foreign, post_order(found.main)))
    (told,) = report.fallbacks
    assert (told.op, told.node) == ("Custom", "act")
    assert told.reason.startswith(f"read by converter swish of {name} (test_keep_unknown_mxnet.py")


def test_what_a_function_converts_goes_on_to_other_formats(mx: Any) -> None:
    found = read(mx, net(mx), converters={"serde_test_swish": swish})
    written = serde.from_relay(found, format="onnx")
    (result,) = ReferenceEvaluator(written).run(None, {"data": DATA})
    np.testing.assert_allclose(result, by_mxnet(mx, net(mx))[0], rtol=1e-5, atol=1e-6)


def test_kept_it_is_run_by_mxnet(mx: Any) -> None:
    report = Report()
    found = read(mx, net(mx), keep_unknown=True, report=report)
    (kept,) = filter(is_foreign, post_order(found.main))
    node = Foreign.of(kept)  # type: ignore[arg-type]
    assert (node.framework, node.domain, node.name) == ("mxnet", "", "serde_test_swish")
    assert node.plain_attributes == {"beta": "1.5"}
    assert node.results == (TensorType((2, 4), "float32"),)
    np.testing.assert_allclose(by_relay(found), by_mxnet(mx, net(mx))[0], rtol=1e-6, atol=1e-6)
    assert [(each.op, each.node) for each in report.fallbacks] == [("serde_test_swish", "act")]


@pytest.mark.parametrize("strict", [False, True])
def test_kept_it_comes_through_text(mx: Any, strict: bool) -> None:
    found = read(mx, net(mx), keep_unknown=True)
    again = relay.fromtext(found.mod.astext(strict=strict))
    assert relay.structural_equal(found.mod, again)


def test_mxnet_gets_it_back_as_it_was(mx: Any) -> None:
    found = read(mx, net(mx), keep_unknown=True)
    symbol, params = serde.from_relay(found, format="mxnet")
    weights = {name: value.asnumpy() for name, value in params.items()}
    np.testing.assert_allclose(
        by_mxnet(mx, symbol, weights)[0], by_mxnet(mx, net(mx))[0], rtol=1e-6, atol=1e-6
    )
    attributes = symbol.attr_dict()["act"]
    assert attributes["op_type"] == "serde_test_swish"
    assert attributes["beta"] == "1.5"


def test_several_results_are_kept(mx: Any) -> None:
    x = mx.sym.var("data")
    both = mx.sym.Custom(x, x, op_type="serde_test_split", name="both")
    for symbol in (mx.sym.Group([both[0], both[1]]), both[1] * 2, both[0] * 2):
        found = read(mx, symbol, keep_unknown=True)
        (kept,) = filter(is_foreign, post_order(found.main))
        types = Foreign.of(kept).results  # type: ignore[arg-type]
        assert types == (TensorType((2, 5), "float32"), TensorType((2,), "float32"))
        results = by_relay(found)
        results = results if isinstance(results, tuple) else (results,)
        for result, want in zip(results, by_mxnet(mx, symbol), strict=True):
            np.testing.assert_allclose(result, want, rtol=1e-6)


def test_two_nodes_are_two_entries_of_the_report(mx: Any) -> None:
    x = mx.sym.var("data")
    for name in ("one", "two"):
        x = mx.sym.Custom(x, op_type="serde_test_swish", name=name)
    for options in ({"keep_unknown": True}, {"converters": {"serde_test_swish": swish}}):
        report = Report()
        found = read(mx, x, report=report, **options)
        assert [each.node for each in report.fallbacks] == ["one", "two"]
        np.testing.assert_allclose(by_relay(found), by_mxnet(mx, x)[0], rtol=1e-5, atol=1e-6)


def test_one_that_is_not_registered_needs_types(mx: Any, tmp_path: Path) -> None:
    path = tmp_path / "net-symbol.json"
    net(mx).save(str(path))
    path.write_text(path.read_text().replace("serde_test_swish", "serde_test_elsewhere"))
    params = {name: mx.nd.array(value) for name, value in WEIGHTS.items()}
    given = {"params": params, "input_shapes": SHAPES, "keep_unknown": True}
    with pytest.raises(UnsupportedModelError, match="the types of its results are not known"):
        serde.to_relay(path, **given)
    for name in ("act", "serde_test_elsewhere"):
        found = serde.to_relay(path, **given, result_types={name: "float32[2,4]"})
        assert found.main.body.type == TensorType((2, 3), "float32")
    with pytest.raises(RelayError, match="import the module that registers it"):
        by_relay(found)


def test_types_of_too_few_results_are_refused(mx: Any) -> None:
    x = mx.sym.var("data")
    both = mx.sym.Custom(x, x, op_type="serde_test_split", name="both")
    with pytest.raises(UnsupportedModelError, match="2 results are used, and types of 1 are told"):
        read(mx, mx.sym.Group(list(both)), keep_unknown=True, result_types={"both": "float32[2,5]"})


def test_types_that_are_told_come_before_those_inferred(mx: Any) -> None:
    found = read(mx, net(mx), keep_unknown=True, result_types={"act": "float32[?,4]"})
    (kept,) = filter(is_foreign, post_order(found.main))
    assert Foreign.of(kept).results[0].concrete_shape is None  # type: ignore[arg-type]
    np.testing.assert_allclose(by_relay(found), by_mxnet(mx, net(mx))[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", ["onnx", "nnef", "coreml"])
def test_another_format_asks_for_consent(mx: Any, target: str, tmp_path: Path) -> None:
    found = read(mx, net(mx), keep_unknown=True)
    with pytest.raises(
        UnsupportedModelError, match="an operator of mxnet that Relay does not know"
    ):
        serde.from_relay(found, format=target)
    suffix = {"onnx": ".onnx", "nnef": "", "coreml": ".mlpackage"}[target]
    report = Report()
    path = serde.from_relay(
        found, format=target, path=tmp_path / f"net{suffix}", custom_ops=["serde_test_swish"],
        report=report,
    )  # fmt: skip
    assert path.exists()
    (told,) = report.fallbacks
    assert told.reason == "written as a custom operator, which mxnet does not run"


def test_onnx_gets_a_node_of_mxnets_domain(mx: Any) -> None:
    found = read(mx, net(mx), keep_unknown=True)
    written = serde.from_relay(found, format="onnx", custom_ops=["serde_test_swish"])
    (node,) = [each for each in written.graph.node if each.domain]
    assert (node.domain, node.op_type) == ("mxnet", "serde_test_swish")
    assert [(each.name, each.s) for each in node.attribute] == [("beta", b"1.5")]
    assert "mxnet" in {each.domain for each in written.opset_import}


def test_a_function_writes_it(mx: Any) -> None:
    def write(ctx: Any, x: Any, *, beta: str) -> Any:
        inner = ctx.emit("Sigmoid", ctx.emit("Mul", x, ctx.const(np.float32(float(beta)))))
        return ctx.emit("Mul", x, inner)

    found = read(mx, net(mx), keep_unknown=True)
    for name in ("serde_test_swish",):
        report = Report()
        written = serde.from_relay(found, format="onnx", converters={name: write}, report=report)
        (result,) = ReferenceEvaluator(written).run(None, {"data": DATA})
        np.testing.assert_allclose(result, by_mxnet(mx, net(mx))[0], rtol=1e-5, atol=1e-6)
        assert report.fallbacks[0].reason.startswith("written by converter")


def test_a_function_takes_the_place_of_an_operator_that_is_known(mx: Any) -> None:
    x = mx.sym.Activation(mx.sym.var("data"), act_type="relu", name="act")

    def negate(ctx: Any, x: Any, *, act_type: str) -> Any:
        assert act_type == "relu"
        return relay.negative(x)

    found = read(mx, x, converters={"Activation": negate})
    np.testing.assert_array_equal(by_relay(found), -DATA)


def test_attributes_have_the_types_of_the_signature(mx: Any) -> None:
    x = mx.sym.Custom(mx.sym.var("data"), op_type="serde_test_swish", beta="2", name="act")
    seen: list[Any] = []

    def typed(ctx: Any, x: Any, *, beta: int) -> Any:
        seen.append(beta)
        return x

    def untyped(ctx, x, *, beta):  # type: ignore[no-untyped-def]
        seen.append(beta)
        return x

    def rest(ctx: Any, *xs: Any, **attributes: Any) -> Any:
        seen.append(attributes)
        return xs[0]

    for function in (typed, untyped, rest):
        read(mx, x, converters={"serde_test_swish": function})
    assert seen == [2, "2", {"beta": "2"}]


def _wrong(result: Any) -> Any:
    def f(ctx: Any, x: Any, *, beta: float) -> Any:
        return result() if callable(result) else result

    return f


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (3, "expected 1 Relay expressions, found 3"),
        ("x", "expected 1 Relay expressions, found 'x'"),
        (None, "expected 1 Relay expressions, found None"),
        ((), "expected 1 Relay expressions, found 0"),
        (np.zeros(3), "expected 1 Relay expressions"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: {}["a"], "KeyError"),
        (lambda: relay.no_such_operator, "AttributeError"),
    ],
)
def test_a_result_that_is_wrong_names_function_and_node(mx: Any, result: Any, message: str) -> None:
    with pytest.raises(OptionError, match=rf"converter .*\bf of serde_test_swish .*act.*{message}"):
        read(mx, net(mx), converters={"serde_test_swish": _wrong(result)})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx: None, "expected at most 0 inputs, found 1"),
        (lambda ctx, x: x, "unknown attribute beta='1.5'"),
        (lambda ctx, x, y, *, beta: x, "expected at least 2 inputs, found 1"),
        (lambda ctx, x, *, beta, more: x, "attribute more is missing"),
    ],
)
def test_a_signature_that_does_not_fit_is_a_gap_of_the_node(
    mx: Any, function: Any, message: str
) -> None:
    with pytest.raises(UnsupportedModelError, match="act") as caught:
        read(mx, net(mx), converters={"serde_test_swish": function})
    (issue,) = [each for each in caught.value.report.issues if message in each.reason]
    assert "of serde_test_swish (test_keep_unknown_mxnet.py" in issue.reason


def test_a_function_may_say_that_it_cannot(mx: Any) -> None:
    from serde.errors import Unsupported

    def cannot(ctx: Any, x: Any, *, beta: float) -> Any:
        raise Unsupported("beta is too large", hint="train again")

    with pytest.raises(UnsupportedModelError, match=r"beta is too large \(train again\)"):
        read(mx, net(mx), converters={"serde_test_swish": cannot})


@pytest.mark.parametrize("name", ["save", "load", "array", "_cvimread_", "__class__", "Custom"])
def test_only_operators_of_mxnet_are_run(mx: Any, name: str, tmp_path: Path) -> None:
    node = Foreign(
        framework="mxnet", name=name, attributes={"fname": str(tmp_path / "written")},
        results=(TensorType((2, 5), "float32"),),
    )  # fmt: skip
    x = relay.var("x", shape=(2, 5))
    with pytest.raises(RelayError):
        run(relay.Function([x], node.build([x])), [DATA])
    assert not list(tmp_path.iterdir())


def test_check_runs_a_model_with_a_kept_operator(mx: Any, tmp_path: Path) -> None:
    path = tmp_path / "net-symbol.json"
    net(mx).save(str(path))
    mx.nd.save(
        str(tmp_path / "net-0000.params"),
        {f"arg:{name}": mx.nd.array(value) for name, value in WEIGHTS.items()},
    )
    target = tmp_path / "out.onnx"
    given = {"input_shapes": SHAPES, "converters": {"serde_test_swish": swish}}
    serde.convert(path, target, **given)
    kept = serde.check(path, target, input_shapes=SHAPES, keep_unknown=True)
    assert kept.passed
    assert serde.check(path, target, **given).passed
