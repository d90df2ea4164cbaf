"""Parts of models: values computed by numpy, written out here, or by MXNet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.runtime import run_onnx

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import OptionError
from serde.relay.ir.expr import Span
from serde.relay.ir.verify import verify
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, cut

X = np.linspace(-1.0, 2.0, 6, dtype="float32").reshape(2, 3)
W = np.array([0.5, -1.5, 2.0], dtype="float32")


def named(value: Any, name: str) -> Any:
    value.span = Span(name)
    return value


def model() -> relay.RelayModel:
    """``scaled = x * w``, ``halves = split(scaled)``, ``out = tanh(halves[1]) + y``, ``low``."""
    x = relay.var("x", shape=(2, 3), dtype="float32")
    y = relay.var("y", shape=(1, 3), dtype="float32")
    w = relay.var("w", shape=(3,), dtype="float32")
    unused = relay.var("z", shape=(3,), dtype="float32")
    scaled = named(relay.multiply(x, w), "scaled")
    halves = relay.split(scaled, 2, axis=0)
    first, second = halves[0], halves[1]
    named(first.tuple_value, "halves")
    bent = named(relay.tanh(second), "bent")
    out = named(relay.add(bent, y), "sum")
    low = named(relay.subtract(first, relay.add(first, relay.const(1.0))), "low")
    main = relay.Function([x, y, w, unused], relay.Tuple([out, low]))
    mod = InferType()(relay.IRModule.from_expr(main))
    meta = relay.ModelMeta(inputs=("x", "y"), outputs=("out", "low"), labels=("a", "b"))
    params = {"w": ArrayWeight(W), "z": ArrayWeight(W)}
    return relay.RelayModel(mod, params, meta, {"scaled_value": scaled})


def evaluate(part: relay.RelayModel, **inputs: np.ndarray) -> Any:
    verify(part.mod)
    assert part.meta.inputs == tuple(inputs)
    assert [each.name_hint for each in part.inputs()] == list(inputs)
    values = {**inputs, **{name: weight.array() for name, weight in part.params.items()}}
    return run(part.main, [values[p.name_hint] for p in part.main.params], mod=part.mod)


def test_no_names_are_the_whole_model() -> None:
    whole = model()
    assert cut(whole) is whole


def test_outputs_alone_keep_the_inputs_and_weights_they_need() -> None:
    part = cut(model(), outputs=["scaled"])
    np.testing.assert_array_equal(evaluate(part, x=X), X * W)
    assert set(part.params) == {"w"}
    assert part.meta.outputs == ("scaled",)
    assert part.meta.labels == ()


def test_an_input_takes_the_type_that_was_inferred() -> None:
    part = cut(model(), inputs=["bent", "y"], outputs=["out"])
    bent = part.inputs()[0]
    assert bent.type == relay.TensorType((1, 3), "float32")
    assert part.params == {}
    assert part.meta.labels == ()
    np.testing.assert_array_equal(evaluate(part, bent=X[:1], y=X[1:]), X[:1] + X[1:])


def test_both_ends_and_one_result_of_several() -> None:
    part = cut(model(), inputs=["scaled"], outputs=["halves:1", "halves:0"])
    second, first = evaluate(part, scaled=X)
    np.testing.assert_array_equal(second, X[1:])
    np.testing.assert_array_equal(first, X[:1])


def test_one_result_of_several_becomes_an_input() -> None:
    part = cut(model(), inputs=["halves:1"], outputs=["bent"])
    assert part.meta.inputs == ("halves:1",)
    np.testing.assert_allclose(run(part.main, [X[1:]], mod=part.mod), np.tanh(X[1:]), rtol=1e-6)


def test_outputs_stay_where_only_inputs_are_named() -> None:
    part = cut(model(), inputs=["y", "scaled"])
    out, low = evaluate(part, y=X[:1], scaled=X)
    np.testing.assert_allclose(out, np.tanh(X[1:]) + X[:1], rtol=1e-6)
    np.testing.assert_array_equal(low, X[:1] - (X[:1] + np.float32(1.0)))
    assert part.meta.labels == ("a", "b")


def test_a_weight_becomes_an_input() -> None:
    part = cut(model(), inputs=["x", "w"], outputs=["scaled"])
    np.testing.assert_array_equal(evaluate(part, x=X, w=2 * W), X * (2 * W))
    assert part.params == {}


def test_names_of_values_that_the_source_gives() -> None:
    part = cut(model(), outputs=["scaled_value"])
    np.testing.assert_array_equal(evaluate(part, x=X), X * W)


def test_a_module_with_lets() -> None:
    x = relay.var("x", shape=(3,), dtype="float32")
    a, b = relay.var("a"), relay.var("b")
    inner = relay.Let(b, named(relay.exp(a), "b"), relay.negative(b))
    body = relay.Let(a, named(relay.multiply(x, relay.const(2.0)), "a"), inner)
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], body)))
    whole = relay.RelayModel(mod, {}, relay.ModelMeta(inputs=("x",), outputs=("out",)))
    part = cut(whole, inputs=["a"], outputs=["b"])
    np.testing.assert_allclose(evaluate(part, a=W), np.exp(W), rtol=1e-6)


@pytest.mark.wide
def test_a_long_chain() -> None:
    x = relay.var("x", shape=(3,), dtype="float32")
    value: Any = x
    for i in range(50_000):
        value = named(relay.negative(value), f"n{i}")
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], value)))
    whole = relay.RelayModel(mod, {}, relay.ModelMeta(inputs=("x",), outputs=("out",)))
    part = cut(whole, inputs=["n10"], outputs=["n49999"])
    np.testing.assert_array_equal(evaluate(part, n10=W), -W)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], ["scald"], "outputs: no value or node is called 'scald'; near it: scaled"),
        (["qqq"], [], "inputs: no value or node is called 'qqq'; there are, for example: x, y, w"),
        ([], ["halves"], "halves has several results; say halves:0 for the first"),
        (["scaled"], ["sum"], "scaled do not separate the part: sum also depends on y"),
        (["scaled"], [], "do not separate the part: out also depends on y"),
        (["x", "scaled"], ["bent"], "inputs: no output depends on x"),
        (["x", "y"], ["scaled"], "inputs: no output depends on y"),
        (["x", "x"], ["scaled"], "inputs: x is given twice"),
        ([], ["low", "low"], "outputs: low is given twice"),
        (["out", "sum"], ["out"], "inputs: out and sum are the same value"),
    ],
)
def test_what_cannot_be_cut_out(inputs: list[str], outputs: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        cut(model(), inputs, outputs)


def test_nodes_of_one_name_are_told_apart_by_no_number() -> None:
    x = relay.var("x", shape=(4,), dtype="float32")
    one, two = named(relay.exp(x), "same"), named(relay.tanh(x), "same")
    body = relay.Tuple([named(relay.negative(one), "a"), named(relay.negative(two), "b")])
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], body)))
    whole = relay.RelayModel(mod, {}, relay.ModelMeta(inputs=("x",), outputs=("p", "q")))
    with pytest.raises(OptionError, match="same has several results; name what they go into"):
        cut(whole, outputs=["same"])


def onnx_model() -> bytes:
    """Relu, Split and Add; only the split has a name for its node."""
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[N, 4] x) => (float[N, 2] total) {
        bent = Relu (x)
        left, right = Split <axis = 1> (bent)
        shifted = Exp (right)
        total = Add (left, shifted)
    }
    """
    model = onnx.parser.parse_model(text)
    model.graph.node[1].name = "halves"
    return model.SerializeToString()


def test_values_of_an_onnx_model_are_called_as_its_tensors(tmp_path: Path) -> None:
    source, target = tmp_path / "whole.onnx", tmp_path / "part.onnx"
    source.write_bytes(onnx_model())
    serde.convert(source, target, inputs=["right", "left"], outputs=["shifted", "total"])
    right, left = X[:, :2], X[:, 1:]
    names, (shifted, total) = run_onnx(target, {"right": right, "left": left})
    assert names == ["shifted", "total"]
    np.testing.assert_allclose(shifted, np.exp(right), rtol=1e-6)
    np.testing.assert_allclose(total, left + np.exp(right), rtol=1e-6)


def test_results_of_an_onnx_node_are_numbered(tmp_path: Path) -> None:
    source, target = tmp_path / "whole.onnx", tmp_path / "part.onnx"
    source.write_bytes(onnx_model())
    serde.convert(source, target, inputs="bent", outputs=["halves:1", "left"])
    bent = np.arange(8, dtype="float32").reshape(2, 4)
    _, (second, first) = run_onnx(target, {"bent": bent})
    np.testing.assert_array_equal(second, bent[:, 2:])
    np.testing.assert_array_equal(first, bent[:, :2])


def net(mx: Any) -> Any:
    """Two convolutions, a split and a dense layer, with a batch norm and dropout on the way."""
    x = mx.sym.Convolution(mx.sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv0")
    x = mx.sym.BatchNorm(x, name="bn0", fix_gamma=False)
    x = mx.sym.Dropout(mx.sym.Activation(x, act_type="relu", name="relu0"), p=0.5, name="drop0")
    left, right = mx.sym.split(x, num_outputs=2, axis=1, name="parts")
    x = mx.sym.Convolution(left * right, num_filter=4, kernel=(3, 3), name="conv1")
    return mx.sym.FullyConnected(x, num_hidden=5, name="fc1")


@pytest.fixture(scope="module")
def mxnet() -> Any:
    from serde.compat import import_mxnet
    from serde.errors import MissingDependency

    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def values_of(
    mx: Any, symbol: Any, shape: tuple[int, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Seeded parameters of a symbol, and its auxiliary states."""
    rng = np.random.default_rng(3)
    shapes, _, states = symbol.infer_shape(data=shape)
    arg = {
        name: mx.nd.array(rng.uniform(0.1, 1.0, size))
        for name, size in zip(symbol.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: mx.nd.array(rng.uniform(0.5, 1.0, size))
        for name, size in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    return arg, aux


@pytest.mark.wide
@pytest.mark.parametrize(
    ("outputs", "internals"),
    [
        (["relu0"], ["relu0_output"]),
        (["drop0_output"], ["drop0_output"]),
        (["bn0"], ["bn0_output"]),
        (["parts:1", "parts_output0"], ["parts_output1", "parts_output0"]),
        (["conv1_output", "fc1_output"], ["conv1_output", "fc1_output"]),
    ],
)
def test_parts_of_an_mxnet_net(
    mxnet: Any, tmp_path: Path, outputs: list[str], internals: list[str]
) -> None:
    symbol = net(mxnet)
    arg, aux = values_of(mxnet, symbol, (2, 3, 9, 9))
    data = np.random.default_rng(1).standard_normal((2, 3, 9, 9)).astype("float32")
    inner = symbol.get_internals()
    group = mxnet.sym.Group([inner[name] for name in internals])
    feed = {"data": mxnet.nd.array(data), **arg}
    bound = group.bind(mxnet.cpu(), feed, aux_states=aux, grad_req="null")
    expected = [value.asnumpy() for value in bound.forward(is_train=False)]
    path = serde.export_model(
        symbol, {**arg, **aux}, path=tmp_path / "part.onnx",
        input_shapes={"data": (2, 3, 9, 9)}, outputs=outputs,
    )  # fmt: skip
    names, found = run_onnx(path, {"data": data})
    assert names == outputs
    for left, right in zip(expected, found, strict=True):
        np.testing.assert_allclose(right, left, rtol=1e-4, atol=1e-5)


def test_a_head_of_an_mxnet_net_from_its_features(mxnet: Any, tmp_path: Path) -> None:
    symbol = net(mxnet)
    arg, aux = values_of(mxnet, symbol, (2, 3, 9, 9))
    features = np.random.default_rng(1).standard_normal((2, 4, 5, 5)).astype("float32")
    head = mxnet.sym.FullyConnected(mxnet.sym.Variable("conv1"), num_hidden=5, name="fc1")
    bound = head.bind(
        mxnet.cpu(),
        {"conv1": mxnet.nd.array(features), **{n: arg[n] for n in ("fc1_weight", "fc1_bias")}},
    )
    expected = bound.forward()[0].asnumpy()
    model = serde.export_model(
        symbol, {**arg, **aux}, format="onnx",
        input_shapes={"data": (2, 3, 9, 9)}, inputs=["conv1"],
    )  # fmt: skip
    assert {tensor.name for tensor in model.graph.initializer} == {"fc1_weight", "fc1_bias"}
    names, (found,) = run_onnx(model.SerializeToString(), {"conv1": features})
    assert names == ["fc1_output"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.wide
def test_a_part_is_checked_against_the_same_part(mxnet: Any, tmp_path: Path) -> None:
    symbol = net(mxnet)
    arg, aux = values_of(mxnet, symbol, (2, 3, 9, 9))
    report = serde.convert(
        symbol, tmp_path / "part.onnx", params={**arg, **aux}, check=True,
        input_shapes={"data": (2, 3, 9, 9)}, inputs="relu0", outputs="conv1",
    )  # fmt: skip
    assert report.passed
    assert [verdict.output for verdict in report.verdicts] == ["conv1"]
    assert report.engines is not None
    assert report.engines[0] == "relay interpreter"


def test_a_part_as_relay(mxnet: Any) -> None:
    symbol = net(mxnet)
    arg, aux = values_of(mxnet, symbol, (2, 3, 9, 9))
    given: dict[str, Any] = {"input_shapes": {"data": ("N", 3, 9, 9)}}
    part = serde.to_relay(symbol, {**arg, **aux}, outputs=["relu0"], **given)
    whole = serde.to_relay(symbol, {**arg, **aux}, **given)
    assert set(part.params) == {name for name in whole.params if name.startswith(("conv0", "bn0"))}
    late = serde.from_relay(whole, format="onnx", outputs=["relu0"])
    assert [each.name for each in late.graph.output] == ["relu0"]
    with pytest.raises(OptionError, match="unknown option outputz"):
        serde.to_relay(symbol, arg, outputz=["relu0"], **given)
