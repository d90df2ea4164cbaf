"""Written modules with open lengths go through ``torch.export`` again, at any length.

A size that took the way over a tensor would be a number that nobody knows beforehand.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

import support.torch_lengths as programs  # noqa: E402
from support.torch_functions import export  # noqa: E402

import serde  # noqa: E402

REFUSED = {
    "view swapped": "torch.export assumes that one length divides another",
    "maxima": "max_pool1d has a length of its own in the example",
    "upsample to a length": "interpolate takes the length of the example",
}
"""What torch.export of PyTorch 2.13 takes for a length of the example, and why."""


def load(folder: Path) -> Any:
    """Return the module that was written."""
    spec = importlib.util.spec_from_file_location("written", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model.from_pretrained(folder)


def survive(folder: Path, dims: dict[int, Any], inputs: Sequence[Any]) -> None:
    """Export the module at one length; it gives what it gave at all of them."""
    net = load(folder)
    expected = [net(each) for each in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(net, (inputs[0],), dynamic_shapes=(dims,)).module()
    for given, wanted in zip(inputs, expected, strict=True):
        torch.testing.assert_close(program(given), wanted)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([] if name in (*programs.FIRST, "positions") else [pytest.mark.wide]),
                *([pytest.mark.xfail(reason=REFUSED[name])] if name in REFUSED else []),
            ],
        )
        for name in programs.KEPT
    ],
)
def test_a_program_survives(name: str, tmp_path: Path) -> None:
    model = export(programs.KEPT[name], programs.EXAMPLE, programs.dims())
    serde.export_model(model, format="torch", path=tmp_path / "net_torch")
    survive(tmp_path / "net_torch", programs.dims(), [programs.EXAMPLE, *programs.OTHERS])


def test_positions_of_tokens_are_counted_to_a_size(tmp_path: Path) -> None:
    """As exporters to ONNX count them: Shape, Gather, Range, Expand."""
    proto = onnx.parser.parse_model(
        """<ir_version: 7, opset_import: ["" : 12]>
        g (int64[B, N] ids) => (float[B, N, 4] y) {
          zero = Constant <value = int64 {0}> ()
          one = Constant <value = int64 {1}> ()
          all = Shape (ids)
          n = Gather <axis = 0> (all, one)
          line = Range (zero, n, one)
          row = Unsqueeze <axes = [0]> (line)
          positions = Expand (row, all)
          y = Gather (table, positions)
        }"""
    )
    table = np.arange(64 * 4, dtype=np.float32).reshape(64, 4)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    onnx.save(proto, tmp_path / "net.onnx")
    serde.convert(tmp_path / "net.onnx", tmp_path / "net_torch", target_format="torch")
    text = (tmp_path / "net_torch" / "model.py").read_text(encoding="utf-8")
    assert "torch.arange(ids.shape[1]" in text
    dims = {axis: torch.export.Dim(name, min=2, max=64) for axis, name in ((0, "b"), (1, "n"))}
    ids = [torch.zeros(shape, dtype=torch.int64) for shape in ((2, 6), (3, 7))]
    survive(tmp_path / "net_torch", dims, ids)
    for each in ids:
        found = load(tmp_path / "net_torch")(each).detach().numpy()
        np.testing.assert_array_equal(found, np.stack([table[: each.shape[1]]] * len(each)))
