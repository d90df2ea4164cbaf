"""What the owner of a model added to it goes to every format that has a place, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

import serde
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.errors import MissingDependency

ADDED = {
    "names": "{0: 'person', 1: 'bicycle'}",
    "stride": "32",
    "license": 'a "quoted"\nline # and \\ more \u00e9\u4e2d',
    "graph x": "graph net( x )",
}


def source(**added: str) -> onnx.ModelProto:
    text = '<ir_version: 8, opset_import: ["" : 17]> m (float[2,3] x) => (float[2,3] y) '
    model = parser.parse_model(text + "{ y = Relu(x) }")
    onnx.helper.set_model_props(model, added)
    return model


def properties(model: onnx.ModelProto) -> dict[str, str]:
    found = {entry.key: entry.value for entry in model.metadata_props}
    return {key: text for key, text in found.items() if not key.startswith("source_")}


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".mlpackage", ".nnef", ".relay"])
def test_it_goes_there_and_back(suffix: str, tmp_path: Path) -> None:
    between = tmp_path / f"m{'-symbol' if suffix == '.json' else ''}{suffix}"
    report = serde.convert(source(**ADDED), between)
    assert not any("metadata" in note for note in report.notes)
    again: Any = (between, tmp_path / "m-0000.params") if suffix == ".json" else between
    assert properties(serde.export_model(again, format="onnx")) == ADDED


def test_a_folder_of_pytorch_tells_it(tmp_path: Path) -> None:
    serde.convert(source(**ADDED), tmp_path / "net", target_format="torch")
    config = json.loads((tmp_path / "net" / "config.json").read_text(encoding="utf-8"))
    assert config["metadata"] == ADDED
    serde.convert(source(), tmp_path / "net", target_format="torch")  # It is known as serde's own.
    config = json.loads((tmp_path / "net" / "config.json").read_text(encoding="utf-8"))
    assert "metadata" not in config


def test_an_archive_of_pytorch_has_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    serde.convert(source(**ADDED), tmp_path / "m.pt2")
    assert properties(serde.export_model(tmp_path / "m.pt2", format="onnx")) == ADDED


def test_what_coreml_calls_its_own(tmp_path: Path) -> None:
    coremltools = pytest.importorskip("coremltools")
    serde.convert(source(**ADDED), tmp_path / "m.mlpackage")
    spec = coremltools.utils.load_spec(str(tmp_path / "m.mlpackage"))
    found = dict(spec.description.metadata.userDefined)
    assert {key: found[key] for key in ADDED} == ADDED


@pytest.mark.wide
def test_mxnet_reads_a_symbol_with_it(tmp_path: Path) -> None:
    try:
        mx = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    serde.convert(source(**ADDED), tmp_path / "m-symbol.json")
    symbol = mx.sym.load(str(tmp_path / "m-symbol.json"))
    assert symbol.list_outputs() == ["y_output"]


def test_what_has_no_place_is_told_once() -> None:
    model = source(**ADDED)
    nodes = [*model.graph.node]
    for node in nodes:
        node.metadata_props.add(key="namespace", value="net/relu")
    report = Report()
    serde.export_model(model, format="onnx", report=report)
    found = [note for note in report.notes if "metadata" in note]
    assert found == ["metadata of 1 nodes or graphs has no place: namespace"]


def test_it_is_bounded() -> None:
    report = Report()
    model = serde.to_relay(source(a="x" * 2**21, b="y"), report=report)
    assert model.meta.metadata == {"b": "y"}
    assert any("a" in note for note in report.notes)
