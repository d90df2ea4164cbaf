"""Composites and regions as ONNX: each function a local one, or inlined; and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import pytest
from support.exported import assert_close, export, interpreted, run_proto
from support.regions import supported
from support.runtime import newest_runtime_opset

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.errors import OptionError
from serde.relay.dataflow_pattern import is_op, wildcard
from serde.relay.ir.expr import Call, Expr, Function, Let, Tuple
from serde.relay.ir.module import IRModule
from serde.relay.ir.visit import post_order
from serde.relay.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    Sequential,
)

RNG = np.random.default_rng(11)
OPSETS = [*range(15, newest_runtime_opset() + 1)]


def _conv_net() -> IRModule:
    x = relay.var("x", shape=(1, 3, 8, 8))
    w, b = relay.var("w", shape=(4, 3, 3, 3)), relay.var("b", shape=(4,))
    v = relay.var("v", shape=(4, 4, 3, 3))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b))
    z = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(y, v, padding=(1, 1)), b))
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.add(y, z)))
    return _module([x, w, b, v], relay.nn.softmax(pooled))


def _dense_net() -> IRModule:
    x, w, b = relay.var("x", shape=(2, 6)), relay.var("w", shape=(6, 6)), relay.var("b", shape=(6,))
    y: Expr = x
    for _ in range(3):
        y = relay.tanh(relay.nn.bias_add(relay.nn.dense(y, w), b))
    return _module([x, w, b], y)


def _branches() -> IRModule:
    x = relay.var("x", shape=(2, 6))
    parts = relay.split(relay.exp(x), 3, axis=1)
    joined = relay.concatenate([relay.nn.relu(parts[0]), relay.sqrt(parts[2])], axis=1)
    return _module([x], Tuple([joined, relay.sum(parts[1], axis=1)]))


def _attention() -> IRModule:
    x, w = relay.var("x", shape=(2, 4, 6)), relay.var("w", shape=(6, 6))
    q = relay.nn.dense(x, w)
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, q) * relay.const(0.4))
    mixed = relay.nn.batch_matmul(scores, relay.transpose(q, (0, 2, 1)))
    mean = relay.mean(mixed, axis=-1, keepdims=True)
    return _module([x, w], relay.subtract(mixed, mean))


def _module(params: list[relay.Var], body: Expr) -> IRModule:
    return InferType()(IRModule.from_expr(Function(params, body)))


NETS: dict[str, Callable[[], IRModule]] = {
    "convolutions": _conv_net,
    "dense": _dense_net,
    "branches": _branches,
    "attention": _attention,
}


LAYER = (is_op("tanh") | is_op("nn.relu"))(
    is_op("nn.bias_add")(
        (is_op("nn.dense") | is_op("nn.conv2d"))(wildcard(), wildcard()), wildcard()
    )
)
COMPOSITES = MergeComposite(
    [
        ("chip.layer", LAYER),
        ("chip.softmax", is_op("nn.softmax")(wildcard())),
        ("chip.root", is_op("sqrt")(wildcard())),
    ]
)


def _arrays(mod: IRModule) -> list[np.ndarray]:
    shapes = [param.checked_type.concrete_shape for param in mod["main"].params]
    return [RNG.uniform(0.1, 0.6, shape).astype(np.float32) for shape in shapes]


def _check(mod: IRModule, opset: int) -> onnx.ModelProto:
    """Write with local functions; compare with the interpreter, inlined, and read again."""
    arrays = _arrays(mod)
    expected = interpreted(mod, arrays)
    proto = export(mod, opset, local_functions=True)
    assert proto.ir_version >= 8
    assert_close(run_proto(proto, arrays), expected)
    assert_close(run_proto(onnx.inliner.inline_local_functions(proto), arrays), expected)
    back = serde.to_relay(proto)
    assert_close(interpreted(back.mod, arrays), expected)
    again = export(mod, opset)
    assert not again.functions
    assert_close(run_proto(again, arrays), expected)
    return proto


def _composites(mod: IRModule) -> list[Function]:
    nodes = post_order(mod["main"])
    return [n for n in nodes if isinstance(n, Function) and n.attrs.get("Composite")]


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("net", NETS)
def test_composites_are_local_functions(net: str, opset: int) -> None:
    mod = COMPOSITES(NETS[net]())
    proto = _check(mod, opset)
    assert 0 < len(proto.functions) <= len(_composites(mod))
    assert {node.domain for node in proto.graph.node} <= {"", "serde"}
    for function in proto.functions:
        assert function.name.startswith("chip_")
        assert {each.domain: each.version for each in function.opset_import}[""] == opset


@pytest.mark.parametrize(
    ("net", "names", "calls"),
    [
        ("dense", ["chip_layer"], 3),
        ("convolutions", ["chip_layer", "chip_layer_1", "chip_softmax"], 3),
    ],
)
def test_composites_that_are_equal_are_one(net: str, names: list[str], calls: int) -> None:
    proto = export(COMPOSITES(NETS[net]()), local_functions=True)
    assert [function.name for function in proto.functions] == names
    assert len([node for node in proto.graph.node if node.domain == "serde"]) == calls


@pytest.mark.wide
@pytest.mark.parametrize("opset", [15, 17, 20, newest_runtime_opset()])
@pytest.mark.parametrize("net", NETS)
def test_regions_of_a_target_are_local_functions(net: str, opset: int) -> None:
    with supported(chip=["nn.conv2d", "nn.dense", "nn.bias_add", "nn.relu", "tanh", "exp", "add"]):
        passes = [AnnotateTarget("chip", False), MergeCompilerRegions(), PartitionGraph("net")]
        mod = Sequential(passes)(NETS[net]())
    names = [v.name_hint for v in mod.functions if v.name_hint != "main"]
    assert names
    proto = _check(mod, opset)
    assert {f.name for f in proto.functions} <= set(names)
    assert all(f.name.startswith("tvmgen_net_chip_main_") for f in proto.functions)


@pytest.mark.parametrize("opset", [15, 18, newest_runtime_opset()])
def test_composites_inside_regions_are_functions_of_functions(opset: int) -> None:
    layer = is_op("tanh")(
        is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard())
    )
    table = [("chip.dense_tanh", layer)]
    passes = [
        MergeComposite(table),
        AnnotateTarget("chip"),
        MergeCompilerRegions(),
        PartitionGraph(),
    ]
    mod = Sequential(passes)(_dense_net())
    proto = _check(mod, opset)
    inner, outer = proto.functions
    assert inner.name == "chip_dense_tanh"
    assert outer.name == "tvmgen_default_chip_main_0"
    assert [node.op_type for node in outer.node] == ["chip_dense_tanh"] * 3
    assert "serde" in {each.domain for each in outer.opset_import}
    assert [node.op_type for node in proto.graph.node] == [outer.name]


@pytest.mark.parametrize("opset", [15, 17, newest_runtime_opset()])
def test_a_function_takes_what_is_around_it_as_inputs(opset: int) -> None:
    x, scale, p = (relay.var(name, shape=(2, 3)) for name in ("x", "scale", "p"))
    inner = relay.exp(scale)
    layer = Function([p], relay.multiply(p, inner), attrs={"Composite": "chip.scale"})
    f = relay.var("f")
    body = Let(f, layer, relay.add(Call(f, [x]), Call(f, [relay.tanh(x)])))
    proto = _check(_module([x, scale], body), opset)
    assert [function.name for function in proto.functions] == ["chip_scale"]
    assert len(proto.functions[0].input) == 2


def test_a_literal_function_has_the_name_of_its_symbol() -> None:
    x, p = relay.var("x", shape=(2, 3)), relay.var("p", shape=(2, 3))
    attrs = {"Compiler": "chip", "global_symbol": "chip_7", "Primitive": 1}
    body = Call(Function([p], relay.exp(p), attrs=attrs), [x])
    proto = _check(_module([x], body), 17)
    assert [function.name for function in proto.functions] == ["chip_7"]


@pytest.mark.parametrize("local", [False, True])
def test_to_onnx_writes_functions_by_option(local: bool, tmp_path: Path) -> None:
    mod = COMPOSITES(_dense_net())
    weights = dict(zip("wb", _arrays(mod)[1:], strict=True))
    proto = relay.to_onnx(mod, weights, "net", local_functions=local)
    assert bool(proto.functions) is local
    path = tmp_path / "net.onnx"
    assert relay.to_onnx(mod, weights, "net", path=path, local_functions=local) == proto
    x = _arrays(mod)[0]
    assert_close(run_proto(proto, [x]), interpreted(mod, [x, weights["w"], weights["b"]]))


@pytest.mark.parametrize("opset", [11, 13, 14])
def test_functions_need_a_version_that_has_them(opset: int) -> None:
    mod = COMPOSITES(_dense_net())
    with pytest.raises(OptionError, match="opset 15"):
        relay.to_onnx(mod, {}, "net", opset, local_functions=True)
    assert not relay.to_onnx(mod, {}, "net", opset).functions


@pytest.mark.parametrize("local", [False, True])
def test_the_command_line_writes_functions_by_flag(local: bool, tmp_path: Path) -> None:
    mod = COMPOSITES(_dense_net())
    source, target = tmp_path / "net.relay", tmp_path / "net.onnx"
    source.write_text(mod.astext(strict=True))
    flags = ["--local-functions"] if local else []
    assert main(["convert", str(source), str(target), "--quiet", *flags]) == 0
    assert bool(onnx.load(target).functions) is local


@pytest.mark.parametrize("net", NETS)
def test_another_format_gets_the_nodes_of_functions(net: str, tmp_path: Path) -> None:
    mod = COMPOSITES(NETS[net]())
    arrays = _arrays(mod)
    path = serde.export_model((mod, {}), format="nnef", path=tmp_path / "net")
    assert_close(interpreted(serde.to_relay(path).mod, arrays), interpreted(mod, arrays))
