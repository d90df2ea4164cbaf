"""Files that PyTorch's exporter writes from TorchScript, against PyTorch's numbers."""

from __future__ import annotations

import io
import warnings

import numpy as np
import onnxruntime
import pytest
from support.onnx_suite import interpret

import serde

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="torch.onnx imports it")


class Cell(torch.nn.Module):
    """A cell on the one frame that a convolution leaves, as in Silero's detector of speech."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 8, 4)
        self.cell = torch.nn.LSTMCell(8, 4)

    def forward(
        self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        frame = torch.relu(self.conv(x)).squeeze(-1)
        return self.cell(frame, (h, c))


class Turned(torch.nn.Module):
    """A channel that goes, and axes that are exchanged then."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.squeeze(1).transpose(1, 2), -1)


class Flat(torch.nn.Module):
    """A channel that goes or not, and all in one row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x.squeeze(1).reshape(-1))


class All(torch.nn.Module):
    """Every axis of length 1 goes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).squeeze()


CASES = {
    "cell": (
        Cell,
        ((3, 2, 4), (3, 4), (3, 4)),
        {"x": {0: "N", 2: "L"}, "h": {0: "N"}, "c": {0: "N"}},
    ),
    "turned": (Turned, ((3, 1, 5, 4),), {"x": {0: "N", 1: "C"}}),
    "flat": (Flat, ((3, 2, 4),), {"x": {0: "N", 1: "C"}}),
    "all": (All, ((3, 1, 4),), {"x": {0: "N"}}),
}


@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize(
    ("name", "script"),
    [("cell", True), ("turned", False), ("flat", False), ("flat", True), ("all", False)],
)
def test_squeeze_of_an_open_axis_torch(name: str, script: bool, opset: int) -> None:
    make, shapes, axes = CASES[name]
    torch.manual_seed(0)
    net = make().eval()
    inputs = [torch.randn(shape) for shape in shapes]
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            torch.jit.script(net) if script else net, tuple(inputs), stream, dynamo=False,
            opset_version=opset, input_names=list(axes), dynamic_axes=axes,
        )  # fmt: skip
        with torch.no_grad():
            wanted = net(*inputs)
    expected = [each.numpy() for each in (wanted if isinstance(wanted, tuple) else (wanted,))]
    given = {name: each.numpy() for name, each in zip(axes, inputs, strict=True)}
    model = serde.to_relay(stream.getvalue())
    written = serde.from_relay(model, format="onnx").SerializeToString()
    results = (interpret(model, given), onnxruntime.InferenceSession(written).run(None, given))
    for found in results:
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
