"""Nets with operators that nobody knows, split and run whole: as their own frameworks run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.core import Report
from serde.errors import CheckError, MissingDependency, OptionError
from serde.onnx import foreign
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.visit import post_order
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build, partition_for_onnx
from serde.target.splitting import split

RNG = np.random.default_rng(13)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
X = RNG.normal(size=(2, 5)).astype(np.float32)
W = RNG.normal(size=(5, 4)).astype(np.float32)


def hybrid(model: Any, regions: int) -> list[np.ndarray]:
    """What a model gives, run in parts of which ONNX Runtime takes some."""
    pytest.importorskip("onnxruntime")
    params = {name: weight.array() for name, weight in model.params.items()}
    split = partition_for_onnx(model.mod, params)
    functions = {each.name_hint: body for each, body in split.functions.items()}
    inside = [each for name, each in functions.items() if name != "main"]
    assert not any(is_foreign(n) for each in inside for n in post_order(each))
    module = build(split)
    executor = HybridExecutor(module)
    assert len(module.regions) == regions
    return executor.run(X)


class Wobble(OpRun):
    op_domain = "com.acme"

    def _run(self, x, gain=None):  # type: ignore[no-untyped-def]
        return ((x * np.float32(gain) * np.tanh(x)).astype(x.dtype),)


def wobble(ctx: Any, x: Any, *, gain: float) -> Any:
    return relay.multiply(relay.multiply(x, relay.const(np.float32(gain))), relay.tanh(x))


@pytest.fixture
def reference() -> Iterator[None]:
    before = dict(foreign.REFERENCE_OPS)
    foreign.register_reference_ops(Wobble)
    yield
    foreign.REFERENCE_OPS.clear()
    foreign.REFERENCE_OPS.update(before)


def onnx_net() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Wobble", ["h"], ["a"], name="wob", domain="com.acme", gain=1.5),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in SHAPES.items()]
    graph = helper.make_graph(
        nodes, "net", ends[:1], ends[2:], [numpy_helper.from_array(W, "w")], value_info=[ends[1]]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


SHAPES = {"x": [2, 5], "a": [2, 4], "y": [2, 4]}


def test_an_operator_of_another_domain_of_onnx(reference: None) -> None:
    model = onnx_net()
    (want,) = ReferenceEvaluator(model, new_ops=[Wobble]).run(None, {"x": X})
    kept = serde.to_relay(model, keep_unknown=True)
    np.testing.assert_allclose(hybrid(kept, 2)[0], want, rtol=1e-5, atol=1e-6)
    converted = serde.to_relay(model, converters={"com.acme::Wobble": wobble})
    np.testing.assert_allclose(hybrid(converted, 1)[0], want, rtol=1e-5, atol=1e-6)


def test_a_custom_operator_of_mxnet() -> None:
    try:
        mx = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))

    class Swish(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            self.assign(out_data[0], req[0], in_data[0] * mx.nd.sigmoid(in_data[0]))

    @mx.operator.register("serde_target_swish")
    class SwishProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):  # type: ignore[no-untyped-def]
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Swish()

    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, no_bias=True, name="a")
    x = mx.sym.Custom(x, op_type="serde_target_swish", name="act")
    net = mx.sym.Activation(x, act_type="relu", name="end")
    params = {"a_weight": mx.nd.array(W.T)}
    bound = net.bind(mx.cpu(), args={**params, "data": mx.nd.array(X)}, grad_req="null")
    want = bound.forward(is_train=False)[0].asnumpy()
    given: dict[str, Any] = {"format": "mxnet", "input_shapes": {"data": (2, 5)}}
    kept = serde.to_relay(net, params, keep_unknown=True, **given)
    np.testing.assert_allclose(hybrid(kept, 2)[0], want, rtol=1e-5, atol=1e-6)

    def swish(ctx: Any, x: Any) -> Any:
        return relay.multiply(x, relay.sigmoid(x))

    converted = serde.to_relay(net, params, converters={"serde_target_swish": swish}, **given)
    np.testing.assert_allclose(hybrid(converted, 1)[0], want, rtol=1e-5, atol=1e-6)


def test_an_operator_of_a_library_of_torch() -> None:
    torch = pytest.importorskip("torch")
    library = torch.library.Library("serde_target", "DEF")
    library.define("wobble(Tensor x, float gain) -> Tensor")
    library.impl("wobble", lambda x, gain: x * gain * x.tanh(), "CompositeExplicitAutograd")
    torch.library.register_fake("serde_target::wobble", lambda x, gain: torch.empty_like(x))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.from_numpy(W))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return torch.relu(torch.ops.serde_target.wobble(x @ self.weight, 1.5))

    net = Net().eval()
    want = net(torch.from_numpy(X)).detach().numpy()
    scripted = torch.jit.script(net)
    given: dict[str, Any] = {"input_shapes": {"x": (2, 5)}}
    kept = serde.to_relay(scripted, keep_unknown=True, **given)
    np.testing.assert_allclose(hybrid(kept, 2)[0], want, rtol=1e-5, atol=1e-6)
    converted = serde.to_relay(scripted, converters={"serde_target::wobble": wobble}, **given)
    np.testing.assert_allclose(hybrid(converted, 1)[0], want, rtol=1e-5, atol=1e-6)
    library._destroy()


def test_a_kept_operator_comes_back_from_a_saved_module(reference: None, tmp_path: Any) -> None:
    pytest.importorskip("onnxruntime")
    model = onnx_net()
    (want,) = ReferenceEvaluator(model, new_ops=[Wobble]).run(None, {"x": X})
    kept = serde.to_relay(model, keep_unknown=True)
    split = partition_for_onnx(kept.mod, {"w": W})
    build(split).save(tmp_path / "split")
    executor = HybridExecutor(OnnxModule.load(tmp_path / "split"))
    np.testing.assert_allclose(executor.run(X)[0], want, rtol=1e-5, atol=1e-6)


LISTED: dict[str, tuple[Any, str]] = {
    "its name": ({"com.acme::Wobble", "MatMul", "Gemm", "Relu"}, ""),
    "its domain": ({"operators": ["Gemm", "Relu"], "domains": ["com.acme"]}, ""),
    "what it is": (
        {"Relu": True, "com.acme::Wobble": {
            "attributes": {"gain": [1.5]}, "versions": [1], "ranks": {"0": [2]},
            "dtypes": ["float32"], "max_inputs": 1}}, ""),
    "another attribute": ({"com.acme::Wobble": {"attributes": {"gain": {"max": 1}}}}, "gain = 1.5"),
    "another version": ({"com.acme::Wobble": {"versions": [2]}}, "version 1"),
    "another rank": ({"com.acme::Wobble": {"ranks": [4]}}, "0 has rank 2"),
    "another dtype": ({"com.acme::Wobble": {"dtypes": ["float16"]}}, "0 is float32"),
    "a constant": ({"com.acme::Wobble": {"constant": ["0"]}}, "0 is no constant"),
    "nearly its name": (
        {"com.acne::Wobble", "Relu"}, "is not in the list. Did you mean com.acne::Wobble?"),
    "other names": ({"Relu"}, "is not in the list"),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_operator_of_another_domain_goes_into_a_region(
    name: str, reference: None, tmp_path: Any
) -> None:
    supported, why = LISTED[name]
    if isinstance(supported, dict) and "operators" not in supported:
        supported = {"operators": supported}
    model = onnx_net()
    report = Report()
    found = split(model, supported=supported, keep_unknown=True, report=report)
    kept = [node for node in found.partition.nodes if node.op == "serde.foreign"]
    assert [[gap.reason for gap in node.gaps] for node in kept] == [[why] if why else []]
    assert [gap.op for node in kept for gap in node.gaps] == ["com.acme::Wobble"] * bool(why)
    written = [n for r in found.module.imported_modules for n in r.proto().graph.node if n.domain]
    if why:
        assert written == []
        assert any(note.startswith("com.acne::Wobble: nothing") for note in report.notes) == (
            "acne" in str(supported)
        )
        return
    (node,) = written
    assert (node.domain, node.op_type) == ("com.acme", "Wobble")
    assert [(each.name, each.f) for each in node.attribute] == [("gain", 1.5)]
    for region in found.module.imported_modules:
        onnx.checker.check_model(region.proto(), full_check=True)
    (want,) = ReferenceEvaluator(model, new_ops=[Wobble]).run(None, {"x": X})
    executor = HybridExecutor(
        OnnxModule.load(found.module.save(tmp_path / "split")), runner="reference"
    )
    np.testing.assert_allclose(executor.run(X)[0], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("com.acme:Wobble", "'com.acme:Wobble' is no operator of ONNX; meant com.acme::Wobble?"),
        ("ai.onnx::Relu", "'ai.onnx::Relu' is no operator of ONNX; meant Relu?"),
        ("::Wobble", "'::Wobble' is no operator of ONNX"),
        ("com.acme::", "'com.acme::' is no operator of ONNX"),
    ],
)
def test_a_name_without_a_domain_is_one_line(given: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        split(onnx_net(), supported={given}, keep_unknown=True)
    assert "\n" not in str(caught.value)


def test_operators_of_other_frameworks_are_listed_by_theirs(tmp_path: Any) -> None:
    """As a domain of its own name each, which ONNX has no other word for."""
    x = relay.var("x", shape=(2, 5))
    own = relay.TensorType((2, 5), "float32")
    body = relay.nn.relu(Foreign(framework="mxnet", name="swish", results=(own,)).build([x]))
    body = Foreign(framework="torch", domain="mylib", name="wob", results=(own,)).build([body])
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    module = build(partition_for_onnx(mod, supported={"Relu", "mxnet::swish", "mylib::wob"}))
    (region,) = module.imported_modules
    nodes = [(node.domain, node.op_type) for node in region.proto().graph.node]
    assert nodes == [("mxnet", "swish"), ("", "Relu"), ("mylib", "wob")]
    assert {each.domain for each in region.proto().opset_import} == {"", "mxnet", "mylib"}


def test_what_no_runtime_has_is_told_by_the_runner() -> None:
    pytest.importorskip("onnxruntime")
    supported = {"com.acme::Wobble", "Relu", "Gemm"}
    found = split(onnx_net(), supported=supported, keep_unknown=True)
    with pytest.raises(CheckError, match=r"refuses region .*Wobble") as caught:
        HybridExecutor(found.module)
    assert "\n" not in str(caught.value)


def test_the_command_tells_of_a_kept_operator(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx_net(), tmp_path / "net.onnx")
    paths = [str(tmp_path / "net.onnx"), str(tmp_path / "split")]
    assert main(["partition", *paths, "--keep-unknown"]) == 1
    printed = capsys.readouterr().out
    assert "com.acme::Wobble wob: kept as onnx has it" in printed
