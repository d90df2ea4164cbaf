"""Where what runs a model departs from its exact result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.bridge.formats import get_bridge
from serde.checking.departing import Departure, find_departure
from serde.command.cli import main
from serde.core import Report
from serde.errors import CheckError, OptionError

pytest.importorskip("onnxruntime")

BLOCKS = 24
SWAPPED = {"Tanh": "Sigmoid", "Relu": "Abs", "Add": "Sub"}
"""Kernels that compute something else."""


def net() -> onnx.ModelProto:
    """Matrix products and activations, with a way around each pair of them."""
    rng, nodes, weights, x = np.random.default_rng(0), [], [], "x"
    for index in range(BLOCKS):
        product, made, total = (f"{name}{index}" for name in ("product", "made", "total"))
        values = (rng.standard_normal((16, 16)) / 16).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{index}"))
        nodes += [
            helper.make_node("MatMul", [x, f"w{index}"], [product], f"matmul_{index}"),
            helper.make_node(("Tanh", "Relu")[index % 2], [product], [made], f"act_{index}"),
            helper.make_node("Add", [made, x], [total], f"add_{index}"),
        ]
        x = total
    nodes.append(helper.make_node("Tanh", [x], ["y"], "last"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 16)) for name in "xy"]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(net(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def swap(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A model of which one node computes something else."""
    found = onnx.ModelProto()
    found.CopyFrom(proto)
    (node,) = (each for each in found.graph.node if each.name == name)
    node.op_type = SWAPPED[node.op_type]
    return found


def depart(path: Path, change: Any) -> Departure:
    """Where a changed model departs from what the file says."""
    bridge = get_bridge("onnx")
    native = bridge.load(path, None, bridge.bind_import({}))
    model = bridge.to_relay(native, bridge.bind_import({}), report=Report())
    inputs = {"x": np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)}
    return find_departure(bridge, change(native), model, inputs)


@pytest.mark.parametrize(
    "name",
    [
        "act_0", "act_7", "add_12", "act_22", "last",
        *(pytest.param(name, marks=pytest.mark.wide) for name in ("add_0", "act_13", "add_23")),
    ],
)  # fmt: skip
def test_a_kernel_that_is_wrong_is_found_in_a_few_runs(path: Path, name: str) -> None:
    found = depart(path, lambda native: replace(native, proto=swap(native.proto, name)))
    assert found.first is not None
    (node,) = (each for each in net().graph.node if each.name == name)
    assert node.output[0] in (found.first.name, found.first.target)
    assert sum(value.suspect for value in found.values) == 1
    assert found.runs <= 4
    assert "first departs from the exact result at" in found.sentence
    weights = {each.name for each in net().graph.initializer}
    assert {*found.given} == {each for each in node.input if each not in weights}


def test_a_value_is_followed_once_however_often_it_is_read(tmp_path: Path) -> None:
    """Below the node at fault each of 60 values without a name is read twice by the next."""
    adds = [helper.make_node("Add", [f"d{i}", f"d{i}"], [f"d{i + 1}"]) for i in range(60)]
    doubled = helper.make_function(
        "own", "Doubled", ["d0"], ["d60"], adds, [helper.make_opsetid("", 17)]
    )
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 16)) for name in "xy"]
    scale = numpy_helper.from_array(np.float32(2.0**-60), "scale")
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["small"]),
        helper.make_node("Doubled", ["small"], ["large"], domain="own"),
        helper.make_node("Tanh", ["large"], ["y"], "last"),
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], [scale])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    proto = helper.make_model(graph, opset_imports=domains, functions=[doubled], ir_version=8)
    onnx.save(proto, tmp_path / "doubled.onnx")
    wrong = onnx.ModelProto()
    wrong.CopyFrom(proto)
    wrong.functions[0].node[-1].op_type = "Sub"
    found = depart(tmp_path / "doubled.onnx", lambda native: replace(native, proto=wrong))
    assert found.first is not None
    assert found.first.name == "large"
    assert {*found.given} == {"small"}


def test_an_optimiser_that_errs_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that is wrong as it is, and right as soon as one value inside is asked for."""
    bridge = get_bridge("onnx")
    opened = type(bridge).engine

    def engine(self: Any, model: Any, relay: Any) -> Any:
        names = {each.name for each in model.proto.graph.output}
        asked = {int(name.removeprefix("total")) for name in names if name.startswith("total")}
        fused = model if max(asked, default=0) > 5 else swapped(model)
        return opened(self, fused, relay)

    def swapped(model: Any) -> Any:
        return replace(model, proto=swap(model.proto, "act_9"))

    monkeypatch.setattr(type(bridge), "engine", engine)
    found = depart(path, lambda native: native)
    assert found.first is None
    assert not found.agrees
    assert int(found.mended_by.removeprefix("total")) > 5
    assert "its optimisations are at fault there" in found.sentence


def test_a_runtime_that_is_right_agrees(path: Path) -> None:
    found = serde.bisect(path, runtime=True)
    assert found.agrees
    assert found.runs == 1
    assert found.sentence.startswith("onnxruntime ")


def test_litert_is_asked_for_inner_values(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    serde.convert(path, tmp_path / "net.tflite")
    bridge = get_bridge("tflite")
    native = bridge.load(tmp_path / "net.tflite", None, bridge.bind_import({}))
    model = bridge.to_relay(native, bridge.bind_import({}), report=Report())
    inputs = {"x": np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)}
    graph = native.subgraphs[0]
    at = [index for index, each in enumerate(graph.operators) if each.name == "TANH"][5]
    operators = list(graph.operators)
    operators[at] = replace(operators[at], name="LOGISTIC")
    changed = replace(native, subgraphs=[replace(graph, operators=operators)], path=None)
    found = find_departure(bridge, changed, model, inputs)
    assert found.first is not None
    assert graph.tensors[operators[at].outputs[0]].name in (found.first.name, found.first.target)


def wide_integers(tmp_path: Path) -> Path:
    """Products beyond 32 bits, which the next operator brings back."""
    ends = [("x", TensorProto.INT64), ("z", TensorProto.FLOAT)]
    x, z = (helper.make_tensor_value_info(name, kind, [4]) for name, kind in ends)
    nodes = [
        helper.make_node("Mul", ["x", "large"], ["product"]),
        helper.make_node("Div", ["product", "large"], ["again"]),
        helper.make_node("Cast", ["again"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Relu", ["float"], ["z"]),
    ]
    large = numpy_helper.from_array(np.array(2**40), "large")
    graph = helper.make_graph(nodes, "wide", [x], [z], [large])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "wide.onnx")
    return tmp_path / "wide.onnx"


def test_openvino_drops_what_32_bits_do_not_hold(path: Path, tmp_path: Path) -> None:
    """As it says of itself: int64 is computed as int32; floats are right in it."""
    pytest.importorskip("openvino")
    wide = wide_integers(tmp_path)
    found = serde.bisect(wide, runtime=True, engine="openvino")
    assert isinstance(found, Departure)
    assert found.first is not None
    assert found.first.name == "product"
    assert found.engine.startswith("openvino ")
    assert serde.bisect(wide, runtime=True).agrees
    assert serde.bisect(path, runtime=True, engine="openvino").agrees


def test_an_engine_goes_with_a_runtime(path: Path) -> None:
    with pytest.raises(OptionError, match="format onnx has no engine 'tensorrt'"):
        serde.bisect(path, runtime=True, engine="tensorrt")
    with pytest.raises(OptionError, match="a target, or else runtime=True and its engine"):
        serde.bisect(path, path, engine="openvino")
    assert main(["bisect", str(path), str(path), "--engine", "openvino"]) == 2


def test_the_part_that_departs_is_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a runtime whose Tanh is wrong, in this file and in the part of it."""
    bridge = get_bridge("onnx")
    opened = type(bridge).engine

    def engine(self: Any, model: Any, relay: Any) -> Any:
        proto = onnx.ModelProto()
        proto.CopyFrom(model.proto)
        for node in proto.graph.node:
            node.op_type = "Erf" if node.op_type == "Tanh" else node.op_type
        return opened(self, replace(model, proto=proto), relay)

    monkeypatch.setattr(type(bridge), "engine", engine)
    part = tmp_path / "bug.onnx"
    assert main(["bisect", str(path), "--runtime", "--shrink", str(part), "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told["values"] if each["suspect"]] == ["made0"]
    assert [node.op_type for node in onnx.load(part).graph.node] == ["Tanh"]
    data = str(part.with_suffix(".npz"))
    assert main(["bisect", str(part), "--runtime", "--check-data", data]) == 4
    assert "first departs" in capsys.readouterr().out


def test_what_cannot_be_asked(path: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="a target, or else runtime=True"):
        serde.bisect(path)
    with pytest.raises(OptionError, match="a target, or else runtime=True"):
        serde.bisect(path, path, runtime=True)
    assert main(["bisect", str(path), "--shrink", str(tmp_path / "bug.onnx")]) == 2
    assert main(["bisect", "--runtime"]) == 2


def test_a_format_without_inner_values_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = get_bridge("onnx")
    monkeypatch.setattr(type(bridge), "with_outputs", lambda *_: None)
    with pytest.raises(CheckError, match="inner values cannot be asked for"):
        depart(path, lambda native: replace(native, proto=swap(native.proto, "act_3")))
