"""Nets of torchvision as folders of NNEF, by NNEF-Tools' converter from ONNX and by ours.

NNEF-Tools' interpreter runs what either converter wrote; so does ONNX Runtime what our reader
makes of it. Both are compared with PyTorch.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from support import nnef_peer
from support.accuracy import distance
from support.nnef_judges import run_torch
from support.runtime import open_session
from support.torch_programs import Program, calibrate, declare_torchvision, spread

import serde

__all__ = ["BOUND", "COLUMNS", "NETS", "UNKNOWN_TO_NNEF_TOOLS", "Row", "judge"]

NETS = (
    "alexnet", "resnet18", "resnet50", "vgg11_bn", "mobilenet_v2", "mobilenet_v3_small",
    "densenet121", "squeezenet1_1", "googlenet", "mnasnet0_5",
)  # fmt: skip

UNKNOWN_TO_NNEF_TOOLS = ("mobilenet_v3_small",)
"""Nets that NNEF-Tools does not convert: it does not know ONNX's HardSigmoid."""

SIDE = 224

BOUND = 1e-4
"""Largest difference from PyTorch, in deviations of the output."""

COLUMNS = (
    "net",
    "NNEF-Tools, interpreted",
    "NNEF-Tools, read by serde",
    "serde, interpreted",
    "serde, read by serde",
)


@dataclass
class Row:
    """What is found of a net.

    Attributes:
        name: The net.
        errors: Difference from PyTorch by the column of the table.
        faults: What is wrong, by the column.
    """

    name: str
    errors: dict[str, float] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """The row of the table."""
        found = [
            self.faults.get(each) or f"{self.errors.get(each, np.nan):.1e}" for each in COLUMNS[1:]
        ]
        return [self.name, *found]


def judge(name: str) -> Row:
    """Convert a net in both ways, and run both folders in two ways."""
    row, program = Row(name), build(name)
    with torch.no_grad():
        expected = program.module(*program.inputs).numpy()
    given = [each.numpy() for each in program.inputs]
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "net.onnx"
        export(program, source)
        folders = {"NNEF-Tools": Path(directory) / "peer", "serde": Path(directory) / "own_nnef"}
        writers: dict[str, Callable[[Path, Path], object]] = {
            "NNEF-Tools": nnef_peer.convert,
            "serde": serde.convert,
        }
        for way, folder in folders.items():
            runs = {f"{way}, interpreted": run_torch, f"{way}, read by serde": read}
            try:
                writers[way](source, folder)
            except Exception as error:  # whatever goes wrong is a cell of the table
                row.faults.update(dict.fromkeys(runs, _line(error)))
                continue
            for column, run in runs.items():
                try:
                    row.errors[column] = max(distance(run(folder, given), [expected]))
                except Exception as error:  # likewise
                    row.faults[column] = _line(error)
                    continue
                if not row.errors[column] <= BOUND:
                    row.faults[column] = f"{row.errors[column]:.1e} is too much"
    return row


def build(name: str) -> Program:
    """Build a net with weights that say something, and an image of the size it is made for."""
    declare_torchvision()
    import torchvision

    torch.manual_seed(sum(map(ord, name)))
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    module = torchvision.models.get_model(name, weights=None, **options)
    inputs = (torch.randn(1, 3, SIDE, SIDE),)
    spread(module)
    calibrate(module, inputs)
    return Program(module.eval(), inputs)


def export(program: Program, path: Path) -> None:
    """Write a net as ONNX."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            program.module,
            program.inputs,
            os.fspath(path),
            input_names=["x"],
            output_names=["y"],
            dynamo=False,
            opset_version=13,
        )


def read(folder: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime makes of a folder that our reader takes."""
    model = serde.to_relay(folder)
    session = open_session(serde.from_relay(model, format="onnx").SerializeToString())
    return session.run(None, dict(zip(model.meta.inputs, inputs, strict=True)))


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
