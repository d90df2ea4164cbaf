"""Sources from files: what a call may leave to them, and that nothing replaces them.

A target is refused that a source was found in, under whatever name it was given.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx.numpy_helper import to_array
from support.params_layout import listing, v2

from serde.api import convert, export_model, to_relay
from serde.errors import LimitError, OptionError, UnsupportedModelError

SHAPES = {"data": (1, 3)}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a dense layer as ``m-symbol.json`` and ``m-0000.params``."""
    names = ["data", "fc_weight", "fc_bias"]
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    attrs = {"num_hidden": "2"}
    inputs = [[i, 0, 0] for i in range(3)]
    nodes.append({"op": "FullyConnected", "name": "fc", "attrs": attrs, "inputs": inputs})
    graph = {"nodes": nodes, "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0]]}
    arrays = [v2(np.arange(6, dtype=np.float32).reshape(2, 3)), v2(np.ones(2, np.float32))]
    (tmp_path / "m-symbol.json").write_text(json.dumps(graph))
    (tmp_path / "m-0000.params").write_bytes(listing(arrays, ["arg:fc_weight", "arg:fc_bias"]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("float16", [False, True])
@pytest.mark.parametrize("target", ["m-symbol.json", "m-0000.params"])
@pytest.mark.parametrize("source", ["m", "m-symbol.json", "m-0000.params", "."])
def test_a_file_found_beside_the_source_is_no_target(
    work: Path, source: str, target: str, float16: bool
) -> None:
    before = (work / target).read_bytes()
    with pytest.raises(OptionError, match=f"{target}: is the same file as the source"):
        convert(source, target, target_format="onnx", input_shapes=SHAPES, float16=float16)
    with pytest.raises(OptionError, match=f"{target}: is the same file as the source"):
        export_model(source, format="onnx", path=target, input_shapes=SHAPES, float16=float16)
    assert (work / target).read_bytes() == before


def test_one_input_needs_no_name(work: Path) -> None:
    model = to_relay("m", input_shapes=("N", 3), input_dtypes=np.float32)
    data = model.main.params[0].type_annotation
    assert ([str(dim) for dim in data.shape], data.dtype) == (["N", "3"], "float32")
    with pytest.raises(UnsupportedModelError, match="dtypes differ: float64, float32"):
        to_relay("m", input_shapes=("N", 3), input_dtypes="float64")


def test_bytes_of_both_files(work: Path) -> None:
    files = [(work / name).read_bytes() for name in ("m-symbol.json", "m-0000.params")]
    proto = export_model(*files, format="onnx", input_shapes=SHAPES)
    weights = {tensor.name: to_array(tensor) for tensor in proto.graph.initializer}
    np.testing.assert_array_equal(weights["fc_weight"], np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("attrs", [{"num_hidden": "9" * 5000}, {"x" * 5000: "(" * 5000}])
def test_a_long_value_does_not_fill_the_screen(work: Path, attrs: dict[str, str]) -> None:
    graph = json.loads(Path("m-symbol.json").read_text())
    graph["nodes"][-1]["attrs"] |= attrs
    Path("m-symbol.json").write_text(json.dumps(graph))
    with pytest.raises(UnsupportedModelError, match="characters") as caught:
        to_relay("m", input_shapes=SHAPES)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("op", "attrs", "shape"),
    [
        ("one_hot", {"depth": "1000000000"}, (3,)),
        ("_contrib_AdaptiveAvgPooling2D", {"output_size": "(1000000000, 3)"}, (1, 2, 5, 5)),
    ],
)
def test_attributes_that_ask_for_much_are_refused_at_once(
    op: str, attrs: dict[str, str], shape: tuple[int, ...]
) -> None:
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": op, "name": "big", "attrs": attrs, "inputs": [[0, 0, 0]]},
    ]
    graph = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    with pytest.raises(LimitError, match=r"big: .* would take 8,000,000,000 constants"):
        export_model(graph, format="onnx", input_shapes=shape)
