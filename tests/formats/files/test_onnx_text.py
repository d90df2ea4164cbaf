"""ONNX models in text: ONNX's syntax, protobuf's text form and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper, parser
from support.onnx_suite import interpret

import serde
from serde.errors import FormatError
from serde.onnx import text

SOUND = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[N,4] y) '
    "<float[4] b = {1, 2, 3, 4}> { y = Add (x, b) }"
)
FORMATS = {
    "textproto": (".textproto", ".txtpb", ".prototxt", ".pbtxt"),
    "json": (".json", ".onnxjson"),
    "onnxtxt": (".onnxtxt", ".onnxtext"),
}
PAIRS = [(name, suffix) for name, suffixes in FORMATS.items() for suffix in suffixes]
X = np.ones((2, 4), np.float32)
EXPECTED = X + np.array([1, 2, 3, 4], np.float32)


def write(path: Path, proto: onnx.ModelProto, name: str) -> Path:
    if name == "onnxtxt":
        path.write_text(onnx.printer.to_text(proto))
    else:
        onnx.save(proto, path, format=name)
    return path


@pytest.mark.parametrize(("name", "suffix"), PAIRS)
def test_a_model_in_text(tmp_path: Path, name: str, suffix: str) -> None:
    path = write(tmp_path / f"m{suffix}", parser.parse_model(SOUND), name)
    model = serde.to_relay(path)
    assert str(model.main.params[0].type) == "Tensor[(N, 4), float32]"
    np.testing.assert_array_equal(interpret(model, {"x": X})[0], EXPECTED)


@pytest.mark.parametrize("name", ["textproto", "json"])
def test_large_weights_and_external_ones(tmp_path: Path, name: str) -> None:
    value = np.arange(1000, dtype=np.float32)
    proto = parser.parse_model(SOUND.replace("4", "1000").replace("{1, 2, 3, 1000}", "{1}"))
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(value, "b"))
    path = write(tmp_path / f"m.{name}", proto, name)
    np.testing.assert_array_equal(serde.to_relay(path).params["b"].array(), value)
    tensor = TensorProto(name="b", data_type=1, dims=[1000], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="b.data")
    proto.graph.initializer[0].CopyFrom(tensor)
    write(path, proto, name)
    (tmp_path / "b.data").write_bytes(value[::-1].tobytes())
    np.testing.assert_array_equal(serde.to_relay(path).params["b"].array(), value[::-1])
    tensor.external_data[0].value = "../b.data"
    proto.graph.initializer[0].CopyFrom(tensor)
    with pytest.raises(FormatError, match="leaves the directory"):
        serde.to_relay(write(path, proto, name))


def test_a_symbol_is_not_taken_for_a_model(tmp_path: Path) -> None:
    path = tmp_path / "m-symbol.json"
    path.write_text(json.dumps({"nodes": [], "arg_nodes": [], "heads": [], "irVersions": "8"}))
    assert not text.detect_text(path)
    caffe = tmp_path / "net.prototxt"
    caffe.write_text('name: "ir_version: 8"\nlayer { }\n')
    assert not text.detect_text(caffe)


@pytest.mark.parametrize("suffix", sorted(text.SUFFIXES))
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"ir_version: 8 {",
        b'{"irVersion": "8"',
        b'{"irVersion": "8", "colour": 3}',
        b"<ir_version: 8> g (float[2 x) => () {}",
        b"ir_version: 99999999999999999999999",
        b'{"irVersion": 1e400, "graph": {}}',
        b"[" * 100_000,
        b"graph { node { attribute { g { " * 50_000,
        b"(" * 99,
        b'{"graph":' * 99,
    ],
    ids=range(12),
)
def test_bad_text(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    with pytest.raises(FormatError):
        serde.to_relay(path, format="onnx")


def test_brackets_in_strings_do_not_count(tmp_path: Path) -> None:
    proto = parser.parse_model(SOUND)
    proto.doc_string = "[{(" * 1000
    path = write(tmp_path / "m.json", proto, "json")
    assert serde.to_relay(path).meta.description == proto.doc_string


def test_text_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_ONNX_TEXT_BYTES", 100)
    path = tmp_path / "m.onnxtxt"
    path.write_text(SOUND)
    with pytest.raises(FormatError, match="at most 100 bytes"):
        serde.to_relay(path)


def test_convert_reads_text(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(SOUND)
    serde.convert(path, tmp_path / "m.onnx", opset=13)
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"))
