"""Positions of tokens, as exporters of several years count them: ONNX Runtime judges.

Where lengths are known they are folded; where not, they stay and mean the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import serde

RANGE = """
  all = Shape (ids)
  n = Gather <axis = 0> (all, one)
  line = Range (zero, n, one)
  row = Unsqueeze <axes = [0]> (line)
  positions = Expand (row, all)
"""
NONZERO = """
  all = Shape (ids)
  n = Gather <axis = 0> (all, one)
  size = Unsqueeze <axes = [0]> (n)
  filled = ConstantOfShape <value = int64[1] {1}> (size)
  where = NonZero (filled)
  columns = Transpose <perm = [1, 0]> (where)
  line = Squeeze <axes = [1]> (columns)
  positions = Unsqueeze <axes = [0]> (line)
"""
FORMS = {"range": RANGE, "nonzero": NONZERO}


def write(form: str, shape: str, path: Path) -> None:
    """Write embeddings of words and positions, as of opset 12."""
    proto = parser.parse_model(
        f"""<ir_version: 7, opset_import: ["" : 12]>
        g (int64[{shape}] ids) => (float[B, N, 4] y) <float[9, 4] words, float[64, 4] places> {{
          zero = Constant <value = int64 {{0}}> ()
          one = Constant <value = int64 {{1}}> ()
          {FORMS[form]}
          word = Gather (words, ids)
          place = Gather (places, positions)
          y = Add (word, place)
        }}"""
    )
    draw = np.random.default_rng(0)
    del proto.graph.initializer[:]
    for name, rows in (("words", 9), ("places", 64)):
        weight = draw.normal(size=(rows, 4)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(proto, path)


def run(path: Path, ids: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(path).run(None, {"ids": ids})[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", [None, (2, 48)])
def test_positions_of_known_lengths_are_folded(
    form: str, given: tuple[int, int] | None, tmp_path: Path
) -> None:
    write(form, "B, N" if given else "2, 48", tmp_path / "net.onnx")
    shapes = {"input_shapes": {"ids": given}} if given else {}
    serde.convert(tmp_path / "net.onnx", tmp_path / "out.onnx", **shapes)
    found = [each.op_type for each in onnx.load(tmp_path / "out.onnx").graph.node]
    assert found == ["Gather", "Add"]
    ids = np.random.default_rng(1).integers(0, 9, (2, 48))
    np.testing.assert_allclose(
        run(tmp_path / "out.onnx", ids), run(tmp_path / "net.onnx", ids), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("form", FORMS)
def test_positions_of_open_lengths_are_counted(form: str, tmp_path: Path) -> None:
    write(form, "B, N", tmp_path / "net.onnx")
    serde.convert(tmp_path / "net.onnx", tmp_path / "out.onnx")
    for shape in ((2, 48), (3, 5), (1, 1)):
        ids = np.random.default_rng(1).integers(0, 9, shape)
        np.testing.assert_allclose(
            run(tmp_path / "out.onnx", ids), run(tmp_path / "net.onnx", ids), rtol=1e-6, atol=1e-6
        )
