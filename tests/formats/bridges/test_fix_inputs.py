"""Inputs that a caller fixes, and branches that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import serde
from serde.core.report import Report
from serde.errors import FormatError, OptionError, UnsupportedModelError

onnxruntime = pytest.importorskip("onnxruntime")

RATES = """<ir_version: 8, opset_import: ["" : 16]> m (float[N,T] x, int64 sr) => (float[N,K] y)
<int64 rate = {16000}, int64[3] s = {1,4,128}, int64[3] s8 = {1,4,64}> {
  c = Equal(sr, rate)
  y = If(c) <
    then_branch = a () => (float[N,K] u) {
      p = Reshape(x, s)
      q = MatMul(p, w)
      u = ReduceMean<axes=[1], keepdims=0>(q)
    },
    else_branch = b () => (float[N,K] v) {
      p8 = Reshape(x, s8)
      q8 = MatMul(p8, w8)
      v = ReduceMean<axes=[1], keepdims=0>(q8)
    }>
}"""


def rates() -> onnx.ModelProto:
    """Return a net that takes 512 samples at one rate, and 256 at another."""
    model = parser.parse_model(RATES)
    rng = np.random.default_rng(0)
    for name, rows in (("w", 128), ("w8", 64)):
        weight = rng.normal(size=(rows, 3)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    return model


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


@pytest.mark.parametrize(("rate", "samples"), [(16000, 512), (8000, 256)])
def test_what_is_fixed_decides(rate: int, samples: int, tmp_path: Path) -> None:
    source = rates()
    onnx.save(source, tmp_path / "m.onnx")
    options: dict[str, Any] = {"fix_inputs": {"sr": rate}, "input_shapes": {"x": (1, samples)}}
    report = serde.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", check=True, **options)
    assert report.passed
    assert report.engines is not None
    assert "onnxruntime" in report.engines[0]
    target = onnx.load(tmp_path / "o.onnx")
    assert [each.name for each in target.graph.input] == ["x"]
    assert "If" not in {each.op_type for each in target.graph.node}
    x = np.random.default_rng(1).normal(size=(1, samples)).astype(np.float32)
    np.testing.assert_allclose(run(target, x=x), run(source, x=x, sr=np.array(rate)), rtol=1e-5)


@pytest.mark.parametrize("samples", [512, 256])
def test_a_branch_that_cannot_be_is_left(samples: int) -> None:
    report = Report()
    found = serde.export_model(
        rates(), format="onnx", input_shapes={"x": (1, samples)}, report=report
    )
    other = "else" if samples == 512 else "then"
    assert [note for note in report.notes if f"its {other} branch cannot have the given" in note]
    x = np.ones((1, samples), np.float32)
    sr = np.array(16000 if samples == 512 else 8000)
    np.testing.assert_allclose(run(found, x=x, sr=sr), run(rates(), x=x, sr=sr), rtol=1e-5)


def test_no_branch_can_be() -> None:
    with pytest.raises(UnsupportedModelError, match="cannot become") as caught:
        serde.export_model(rates(), format="onnx", input_shapes={"x": (1, 300)})
    assert len(caught.value.report.issues) == 2


SUM = '<ir_version: 8, opset_import: ["" : 17]> m (float[2,3] x, float[2,3] b) => (float[2,3] y) '


@pytest.mark.parametrize("suffix", [".onnx", "-symbol.json", ".mlpackage", ".nnef", ".relay"])
def test_every_format_fixes_inputs(suffix: str, tmp_path: Path) -> None:
    between = tmp_path / f"m{suffix}"
    serde.convert(parser.parse_model(SUM + "{ y = Add(x, b) }"), between)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "b.npy", value)
    source: Any = (between, tmp_path / "m-0000.params") if suffix[0] == "-" else between
    fixed = {"b": tmp_path / "b.npy"}
    found = serde.export_model(source, format="onnx", fix_inputs=fixed)
    assert [each.name for each in found.graph.input] == ["x"]
    np.testing.assert_allclose(run(found, x=value), value * 2)


def test_a_number_stands_for_a_tensor() -> None:
    found = serde.export_model(
        parser.parse_model(SUM + "{ y = Add(x, b) }"), format="onnx", fix_inputs={"b": 2.5}
    )
    np.testing.assert_allclose(run(found, x=np.ones((2, 3), np.float32)), np.full((2, 3), 3.5))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"c": 1}, "no input is called c"),
        ({"b": [1, 2]}, r"expected the shape \(2, 3\), found \(2,\)"),
        ({"b": "there/is/none.npy"}, "there is no such file"),
        ({"b": "word"}, "there is no such file"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        serde.to_relay(parser.parse_model(SUM + "{ y = Add(x, b) }"), fix_inputs=given)


@pytest.mark.parametrize(
    "data", [b"", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", b"PK\x03\x04", b"\x80\x04N."]
)
def test_a_file_that_is_no_array_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.npy").write_bytes(data)
    with pytest.raises((FormatError, OptionError)):
        serde.to_relay(
            parser.parse_model(SUM + "{ y = Add(x, b) }"), fix_inputs={"b": tmp_path / "b.npy"}
        )


def test_a_number_that_the_dtype_lacks_is_refused() -> None:
    with pytest.raises(OptionError, match="has a value that is none of int64"):
        serde.to_relay(rates(), fix_inputs={"sr": 1.5})
