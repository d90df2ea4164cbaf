"""What targets would make of a model, told before anything is converted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
from serde.command.cli import main
from serde.core.lossy import lossy_steps
from serde.core.weights import OpenFile
from serde.errors import OptionError
from serde.onnx import profile

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def save(path: Path, op: str, dtype: int = FLOAT, to: int = 8, **weights: np.ndarray) -> Path:
    shapes = {"x": [2, 8], "y": [2, to]}
    ends = [helper.make_tensor_value_info(name, dtype, each) for name, each in shapes.items()]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    nodes = [helper.make_node(op, ["x", *weights], ["y"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("op", "dtype", "target", "said"),
    [
        ("Relu", FLOAT, "coreml", "keeps all operators"),
        ("Mish", FLOAT, "coreml", "says serde.mish 1 in other operators"),
        ("Neg", INT64, "coreml", "loses by int64-as-int32 3"),
        ("Erf", FLOAT, "tflite", "refuses erf 1"),
        ("Neg", INT64, "nnef", "refuses negative 1"),
    ],
)
def test_what_a_format_makes_of_an_operator(
    op: str, dtype: int, target: str, said: str, tmp_path: Path
) -> None:
    path = save(tmp_path / "m.onnx", op, dtype)
    (found,) = serde.route(path, targets=[target])
    assert (found.name, found.sentence) == (target, said)
    # What it tells is what a conversion does, with every loss allowed and without.
    if found.refused:
        with pytest.raises(serde.UnsupportedModelError):
            serde.export_model(path, format=target, allow=set(lossy_steps()))
    else:
        serde.export_model(path, format=target, allow=set(lossy_steps()))
    steps = {(each.hint or "").split("'")[1] for each in found.lost}
    assert steps == ({"int64-as-int32"} if "loses" in said else set())


def test_all_that_is_written_is_looked_at(tmp_path: Path) -> None:
    found = serde.route(save(tmp_path / "m.onnx", "Relu"))
    formats = {each.target for each in found if not each.profile}
    assert formats == {"coreml", "mxnet", "nnef", "onnx", "relax", "tflite", "torch"}
    assert {each.profile for each in found} - {""} == {*serde.target.profile_names()}
    assert all(each.is_open for each in found)


def test_a_runtime_leaves_what_it_does_not_take(tmp_path: Path) -> None:
    (found,) = serde.route(save(tmp_path / "m.onnx", "Selu"), profiles=["openvino"])
    assert found.sentence == "keeps all operators"
    (found,) = serde.route(save(tmp_path / "m.onnx", "Atan"), profiles=["webnn"])
    assert found.sentence == "leaves Atan 1 to the host"
    assert not found.is_open


def test_a_profile_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[Any] = []
    read = profile.read_supported
    monkeypatch.setattr(profile, "read_supported", lambda name: names.append(name) or read(name))
    serde.route(save(tmp_path / "m.onnx", "Relu"), profiles=["webnn"])
    assert names == ["webnn"]


def test_no_weight_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "m.onnx", "MatMul", w=np.ones((8, 2048), np.float32), to=2048)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)

    read = OpenFile.read_into

    def refuse(self: OpenFile, *args: Any) -> None:
        assert not self.path.endswith("w.bin")
        read(self, *args)

    monkeypatch.setattr(OpenFile, "read_into", refuse)
    assert all(each.is_open for each in serde.route(path))


@pytest.mark.parametrize("flags", [["--for", "webnn"], ["--opset", "auto"]])
def test_the_command_tries_versions(tmp_path: Path, flags: list[str]) -> None:
    path = str(save(tmp_path / "m.onnx", "Erf"))
    assert main(["convert", path, str(tmp_path / "made.onnx"), *flags]) == 0


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(tmp_path / "m.onnx", "Erf"))
    assert main(["route", path, "-q"]) == 0
    assert main(["route", path, "--to", "onnx", "--for", "webnn"]) == 0
    capsys.readouterr()
    assert main(["route", path, "--to", "tflite", "--for", "webnn", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["routes"]
    assert [(row["target"], row["profile"], row["nodes"]) for row in rows] == [
        ("tflite", "", 0), ("onnx", "webnn", 1),
    ]  # fmt: skip
    assert rows[0]["refused"] == [{"op": "erf", "node": "y", "reason": "no exporter", "hint": None}]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"targets": ["tvm"]}, "format tvm is not written by itself"),
        ({"targets": ["caffe"]}, "unknown format 'caffe'"),
        ({"profiles": ["web"]}, "web: expected a name ending in"),
    ],
)
def test_a_mistake_is_told(given: dict[str, list[str]], what: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=what):
        serde.route(save(tmp_path / "m.onnx", "Relu"), **given)


def test_a_page_has_the_table(tmp_path: Path) -> None:
    page = serde.view(save(tmp_path / "m.onnx", "Erf"), routes=True)
    assert '["tflite","refuses erf 1"]' in page.html
    assert '["onnx for webnn","keeps all operators"]' in page.html
