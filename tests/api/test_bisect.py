"""Where two models begin to differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
import serde.relay as relay
from serde.checking.bisection import bisect_models
from serde.command.cli import main
from serde.errors import CheckError
from serde.relay.ir.model import ModelMeta, RelayModel

RNG = np.random.default_rng(3)
SHAPE = (1, 3, 8, 8)


def network() -> onnx.ModelProto:
    """Convolution, normalisation and activation, twice, a branch around the second, two outputs."""
    values = {
        "w1": RNG.normal(0, 0.3, (4, 3, 3, 3)),
        "w2": RNG.normal(0, 0.3, (4, 4, 3, 3)),
        "w3": RNG.normal(0, 0.3, (5, 256)),
        **{f"scale{i}": RNG.uniform(0.5, 2, 4) for i in (1, 2)},
        **{f"bias{i}": RNG.normal(0, 1, 4) for i in (1, 2)},
        **{f"mean{i}": RNG.normal(0, 1, 4) for i in (1, 2)},
        **{f"var{i}": RNG.uniform(0.5, 2, 4) for i in (1, 2)},
    }
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["conv1"], "conv1", **pads),
        _normalized("conv1", 1),
        helper.make_node("Relu", ["norm1"], ["relu1"], "relu1"),
        helper.make_node("Conv", ["relu1", "w2"], ["conv2"], "conv2", **pads),
        _normalized("conv2", 2),
        helper.make_node("Add", ["norm2", "relu1"], ["sum"], "sum"),
        helper.make_node("Relu", ["sum"], ["relu2"], "relu2"),
        helper.make_node("Flatten", ["relu2"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "w3"], ["scores"], "scores", transB=1),
        helper.make_node("Softmax", ["scores"], ["y"], "y"),
        helper.make_node("Tanh", ["conv1"], ["z"], "z"),
    ]
    float_ = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", float_, SHAPE)],
        [
            helper.make_tensor_value_info("y", float_, (1, 5)),
            helper.make_tensor_value_info("z", float_, (1, 4, 8, 8)),
        ],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _normalized(x: str, i: int) -> onnx.NodeProto:
    inputs = [x, f"scale{i}", f"bias{i}", f"mean{i}", f"var{i}"]
    return helper.make_node("BatchNormalization", inputs, [f"norm{i}"], f"norm{i}")


NETWORK = network()


def negated(model: onnx.ModelProto, name: str) -> None:
    found = next(each for each in model.graph.initializer if each.name.startswith(name))
    found.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(found), found.name))


def shifted(model: onnx.ModelProto, name: str) -> None:
    node = next(each for each in model.graph.node if each.name.startswith(name))
    for attribute in node.attribute:
        if attribute.name == "pads":
            attribute.ints[:] = [2, 1, 0, 1]


def converted(change: Any, name: str, **options: Any) -> onnx.ModelProto:
    found = onnx.ModelProto()
    found.CopyFrom(serde.export_model(NETWORK, format="onnx", **options))
    change(found, name)
    return found


def bisected(tmp_path: Path, model: onnx.ModelProto) -> Any:
    onnx.save(model, tmp_path / "target.onnx")
    return serde.bisect(NETWORK, tmp_path / "target.onnx")


@pytest.mark.wide
@pytest.mark.parametrize(
    ("change", "name", "first"),
    [
        (negated, "w1", "conv1"),
        (shifted, "conv1", "conv1"),
        (negated, "w2", "conv2"),
        (shifted, "conv2", "conv2"),
        (negated, "w3", "scores"),
    ],
)
def test_the_node_at_fault_is_found(tmp_path: Path, change: Any, name: str, first: str) -> None:
    found = bisected(tmp_path, converted(change, name, simplify=False))
    assert found.first.name == first
    assert found.first.distance > 0.1
    assert f"first differ at {first} " in found.sentence
    agreeing = {value.name for value in found.values if value.agrees}
    assert ("conv1" in agreeing) == (first != "conv1")


def test_a_value_that_folding_changed_is_not_at_fault(tmp_path: Path) -> None:
    found = bisected(tmp_path, converted(negated, "w3"))
    assert found.first.name == "scores"


def test_models_that_agree(tmp_path: Path) -> None:
    onnx.save(serde.export_model(NETWORK, format="onnx"), tmp_path / "target.onnx")
    found = serde.bisect(NETWORK, tmp_path / "target.onnx")
    assert found.first is None
    assert {value.name for value in found.values} >= {"relu1", "sum", "scores", "y", "z"}
    assert "values agree" in found.sentence


def test_outputs_that_are_swapped(tmp_path: Path) -> None:
    model = converted(lambda found, name: None, "")
    first, second = model.graph.output
    both = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in (second, first)]
    model.graph.ClearField("output")
    model.graph.output.extend(both)
    found = bisected(tmp_path, model)
    assert found.first is None


@pytest.mark.wide
@pytest.mark.parametrize("target", ["t-symbol.json", "t.relay", "t.mlpackage"])
def test_every_format_can_be_compared(tmp_path: Path, target: str) -> None:
    source = tmp_path / "source.onnx"
    onnx.save(NETWORK, source)
    serde.convert(source, tmp_path / target)
    found = serde.bisect(source, tmp_path / target)
    assert found.first is None, found.sentence
    assert len(found.values) >= 2


def test_models_without_an_output_in_common(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["other"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, SHAPE)],
    )
    opsets = [helper.make_opsetid("", 17)]
    with pytest.raises(CheckError, match="no output in common"):
        bisected(tmp_path, helper.make_model(graph, opset_imports=opsets, ir_version=8))


@pytest.mark.wide
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(tmp_path / "source.onnx"), str(tmp_path / "target.onnx")
    onnx.save(NETWORK, source)
    onnx.save(converted(negated, "w2"), target)
    assert main(["bisect", source, target]) == 4
    assert "the models first differ at norm2" in capsys.readouterr().out
    assert main(["bisect", source, target, "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert next(value["name"] for value in found["values"] if value["suspect"]) == "norm2"
    serde.convert(source, target)
    assert main(["bisect", source, target]) == 0


def test_a_check_that_fails_names_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = str(tmp_path / "source.onnx"), str(tmp_path / "target.onnx")
    onnx.save(NETWORK, source)
    onnx.save(converted(negated, "w3"), target)
    report = serde.check(source, target)
    assert not report.passed
    assert any("first differ at scores" in note for note in report.notes)
    assert main(["check", source, target]) == 4
    assert "first differ at scores" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("is_narrow_first", [True, False])
def test_rounding_of_either_model_is_no_difference(
    tmp_path: Path, dtype: str, is_narrow_first: bool
) -> None:
    x = relay.var("x", shape=(2, 64))
    w = relay.var("w", shape=(8, 64))
    params = {"w": RNG.normal(0, 1, (8, 64)).astype("float32")}
    models = []
    for kind in (dtype, "float32"):
        product = relay.nn.dense(relay.cast(x, kind), relay.cast(w, kind))
        body = relay.tanh(relay.cast(product, "float32"))
        models.append((relay.IRModule.from_expr(relay.Function([x, w], body)), params))
    first, second = models if is_narrow_first else models[::-1]
    serde.from_relay(second, path=tmp_path / "second.relay")
    found = serde.bisect(first, tmp_path / "second.relay")
    assert found.first is None
    assert all(value.agrees for value in found.values)


def test_an_output_that_is_missing_tells_no_place(tmp_path: Path) -> None:
    model = converted(lambda found, name: None, "")
    del model.graph.output[1]
    onnx.save(model, tmp_path / "target.onnx")
    report = serde.check(NETWORK, tmp_path / "target.onnx")
    assert not report.passed
    assert not any("values" in note or "differ at" in note for note in report.notes)


def heads(*factors: float) -> RelayModel:
    """Outputs of one name, each a multiple of another function of the input."""
    x = relay.var("x", shape=(2, 8))
    made = (relay.tanh(x), relay.sigmoid(x), relay.exp(x))
    fields = [relay.multiply(y, relay.const(f)) for y, f in zip(made, factors, strict=True)]
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Tuple(fields)))
    return RelayModel(mod, {}, ModelMeta(outputs=("y",) * len(factors)))


@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_heads_that_share_a_name_are_told_by_their_places(wrong: int | None) -> None:
    factors = [1.0 if place != wrong else 1.5 for place in range(3)]
    inputs = {"x": RNG.normal(0, 1, (2, 8)).astype("float32")}
    found = bisect_models(heads(1.0, 1.0, 1.0), heads(*factors), inputs)
    outputs = found.values[-3:]
    assert [each.agrees for each in outputs] == [place != wrong for place in range(3)]
    assert [each.suspect for each in outputs] == [place == wrong for place in range(3)]


def transposed(perm: list[int], dtype: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
    """A transposition between two functions; its length, and so the output's, hangs on `perm`."""
    shape = [[2, 3, 4][axis] for axis in perm]
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"], "a"),
        helper.make_node("Transpose", ["a"], ["b"], "b", perm=perm),
        helper.make_node("Sigmoid", ["b"], ["c"], "c"),
        helper.make_node("Cast", ["c"], ["y"], "y", to=dtype),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", dtype, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("target", "first", "remark"),
    [
        (transposed([0, 2, 1]), "b", "its shape is 3x2x4, there 2x4x3"),
        (transposed([1, 0, 2], onnx.TensorProto.INT32), "y", "it is float32, there int32"),
    ],
)
def test_a_value_of_another_type_is_a_difference(
    tmp_path: Path, target: onnx.ModelProto, first: str, remark: str
) -> None:
    source, path = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(transposed([1, 0, 2]), source)
    onnx.save(target, path)
    found = serde.bisect(source, path)
    assert found.first.name == first
    assert found.first.remark == remark
    assert found.sentence.endswith(remark)
    assert main(["bisect", str(source), str(path)]) == main(["check", str(source), str(path)]) == 4


def test_an_output_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    model = converted(lambda found, name: None, "")
    del model.graph.output[1]
    found = bisected(tmp_path, model)
    assert found.first is None
    assert found.sentence == "z: the target has no such output"


HALF = {"float16": True, "keep_io_types": True}


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "by", "options", "first"),
    [
        ("w1", 5e-6, {}, "conv1"),
        ("w2", 5e-6, {}, "conv2"),
        ("w3", 5e-5, {}, "scores"),
        ("w1", 2e-2, HALF, "conv1"),
        ("w2", 2e-2, HALF, "conv2"),
    ],
)
def test_one_element_of_a_weight_is_located(
    tmp_path: Path, name: str, by: float, options: dict[str, Any], first: str
) -> None:
    """What roundings of its dtype would hide is told by exact runs."""

    def moved(model: onnx.ModelProto, name: str) -> None:
        weight = next(each for each in model.graph.initializer if each.name.startswith(name))
        values = numpy_helper.to_array(weight).copy()
        values.flat[5] += values.dtype.type(by)
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))

    assert bisected(tmp_path, converted(moved, name, simplify=False, **options)).first.name == first
