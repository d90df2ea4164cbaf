"""Dimensions whose bounds a caller gives: what reads them, who keeps them, what contradicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.resized_nets import build

import serde
from serde.command.cli import main
from serde.errors import OptionError, UnsupportedModelError

TEXT = "(float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Softmax<axis = 1>(x) }"
NEW = {"N": ("N=1..8", 3, 8, 8), "x_0": ("1..8", 3, 8, 8), "input_0": (range(1, 9), 3, 8, 8)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    onnx.save(build(TEXT, {}), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.mark.parametrize("name", NEW)
def test_bounds_are_facts_of_the_model(name: str, source: Path) -> None:
    given: Any = {"x": NEW[name]} if name != "input_0" else NEW[name]
    model = serde.to_relay(source, input_shapes=given)
    assert str(model.inputs()[0].type) == f"Tensor[({name}, 3, 8, 8), float32]"
    assert model.meta.extra[f"{name}.range"] == "1:8:1"


def test_one_length_is_a_number(source: Path) -> None:
    model = serde.to_relay(source, input_shapes=("2..2", 3, 8, 8))
    assert str(model.inputs()[0].type) == "Tensor[(2, 3, 8, 8), float32]"


def test_the_ends_are_checked_and_told(source: Path, tmp_path: Path) -> None:
    report = serde.convert(
        source, tmp_path / "o.onnx", input_shapes=("N=1..8", 3, "H=8..12", 8), check=True
    )
    assert report.passed
    assert report.notes == [
        "lengths as they were given: H is 8 to 12; N is 1 to 8",
        "dynamic dimensions were checked at N=1, H=8; N=8, H=12; N=1, H=12; N=8, H=8",
    ]


def test_core_ml_has_the_range(source: Path, tmp_path: Path) -> None:
    coremltools = pytest.importorskip("coremltools")
    path = tmp_path / "Net.mlpackage"
    serde.convert(source, path, input_shapes=("2..8", 3, 8, 8))
    spec = coremltools.utils.load_spec(str(path))
    sizes = spec.description.input[0].type.multiArrayType.shapeRange.sizeRanges
    assert [(each.lowerBound, each.upperBound) for each in sizes] == [
        (2, 8),
        (3, 3),
        (8, 8),
        (8, 8),
    ]
    with pytest.raises(OptionError, match=r"axis 0 is 2\.\.8 in the source, found 1\.\.8"):
        serde.to_relay(path, input_shapes=("1..8", 3, 8, 8))
    with pytest.raises(OptionError, match=r"N is both 1\.\.16 and 1\.\.8"):
        serde.convert(source, path, input_shapes=("N=1..8", 3, 8, 8), ranges={"N": (1, 16)})


def test_torch_export_has_the_range(source: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "net.pt2"
    serde.convert(source, path, input_shapes=("N=2..8", 3, 8, 8))
    (limits,) = torch.export.load(path).range_constraints.values()
    assert (int(limits.lower), int(limits.upper)) == (2, 8)
    assert "2:8:0" in serde.to_relay(path).meta.extra.values()


def test_a_module_is_read_with_the_range() -> None:
    torch = pytest.importorskip("torch")
    model = serde.to_relay(torch.nn.ReLU(), input_shapes={"input": ("N=5..9", 3)})
    assert model.meta.extra == {"N.range": "5:9:5"}


def test_both_ends_must_fit() -> None:
    """Halves of 6 are joined with thirds of 6, which are as long for multiples of 6 alone."""
    proto = build(
        "(float[1,1,6] x) => (float[1,1,9] y) { a = MaxPool<kernel_shape = [2], strides = [2]>(x) "
        "b = Concat<axis = 2>(a, a) c = Add(b, x) y = Concat<axis = 2>(a, c) }",
        {},
    )
    assert serde.to_relay(proto, input_shapes=(1, 1, "S=6..8")).meta.extra["S.range"] == "6:8:6"
    with pytest.raises(UnsupportedModelError, match="do not broadcast"):
        serde.to_relay(proto, input_shapes=(1, 1, "S=6..9"))


@pytest.mark.parametrize(
    "given", ["8..1", "N=0..8", "N=1.8", "1..", range(1, 9, 2), range(4, 4)], ids=str
)
def test_what_is_no_range_is_refused(given: Any, source: Path) -> None:
    with pytest.raises(OptionError, match=r"expected the least and the greatest length, such as"):
        serde.to_relay(source, input_shapes=(given, 3, 8, 8))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["x:1..8,3,8,8", "x:16,3,8,8"], "--input-shape: x is given twice"),
        (["x:8..1,3,8,8"], "such as 1..8 or N=1..8, found '8..1'"),
        (["x:1..8,3,8"], "input_shapes: x: expected 4 axes, found 3"),
        (["z:1..8,3,8,8"], "no input is called z; inputs: x"),
        (["x:N=1..8,3,N=1..4,8"], "input_shapes: x: N is both 1..8 and 1..4"),
        (["x:3*H,3,8,8"], "input_shapes: x: 3*H cannot stand for a length of 1"),
    ],
    ids=["twice", "order", "rank", "name", "two ranges", "no multiple"],
)
def test_a_contradiction_is_one_line(
    shapes: list[str],
    message: str,
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = [word for each in shapes for word in ("--input-shape", each)]
    assert main(["convert", str(source), str(tmp_path / "o.onnx"), *flags]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("serde:")]
    assert len(lines) == 1
    assert lines[0].endswith(message)
    assert not (tmp_path / "o.onnx").exists()


def test_multiples_are_read_and_kept(tmp_path: Path) -> None:
    onnx.save(build(TEXT, {}), tmp_path / "net.onnx")
    flags = ["--input-shape", "x:1,3,4*H,2..8", "-q"]
    assert main(["convert", str(tmp_path / "net.onnx"), str(tmp_path / "o.onnx"), *flags]) == 0
    dims = onnx.load(tmp_path / "o.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == [1, 3, "4*H", "x_3"]
    assert np.prod([dim.dim_value for dim in dims[:2]]) == 3
