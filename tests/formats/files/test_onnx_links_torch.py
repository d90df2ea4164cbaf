"""ONNX models whose weights stay in an exported program of PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")


class Block(torch.nn.Module):
    """An encoder of a transformer between an embedding and a tied projection."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(300, 128)
        self.layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.out = torch.nn.Linear(128, 300, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(self.table(x)))


def run(path: Path, x: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def test_all_large_weights_of_a_transformer_are_linked(tmp_path: Path) -> None:
    torch.manual_seed(1)
    block, x = Block().eval(), torch.randint(0, 300, (2, 9))
    source = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(block, (x,)), source)
    report = serde.convert(source, tmp_path / "m.onnx", link_weights=True)
    serde.convert(source, tmp_path / "p.onnx")
    lean = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    linked = [
        each
        for each in lean.graph.initializer
        for entry in each.external_data
        if (entry.key, entry.value) == ("location", source.name)
    ]
    assert len(linked) == report.facts["linked_weights"]
    assert report.facts["linked_bytes"] > 0.98 * sum(p.nbytes for p in set(block.parameters()))
    assert (tmp_path / "m.onnx").stat().st_size < 30_000
    values = {p.detach().numpy().tobytes() for p in block.parameters()}
    filled = onnx.load(tmp_path / "m.onnx").graph.initializer
    found = {each.name: numpy_helper.to_array(each).tobytes() for each in filled}
    assert all(found[each.name] in values for each in linked)
    one, other = (run(tmp_path / f"{name}.onnx", x.numpy()) for name in "mp")
    assert one.tobytes() == other.tobytes()
    np.testing.assert_allclose(one, block(x).detach().numpy(), rtol=1e-3, atol=1e-4)
