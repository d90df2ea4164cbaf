"""OpenVINO as an engine of ONNX models, to see where it departs from them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

import numpy as np

from serde.core import Array, dtype_name, require, require_installed
from serde.engine.base import Engine, first_line
from serde.engine.fitting import fit_inputs
from serde.engine.process import ProcessEngine
from serde.errors import CheckError

if TYPE_CHECKING:
    from serde.onnx.model import OnnxModel

__all__ = ["open_model"]


def open_model(model: OnnxModel) -> Engine:
    """Return what runs a loaded model in a process of its own.

    Raises:
        CheckError: OpenVINO refuses the model, or crashed.
        MissingDependency: It is not installed.
    """
    from serde.onnx import codec

    require_installed("openvino")
    with tempfile.TemporaryDirectory() as directory:
        path = codec.save(model, Path(directory) / "source.onnx")
        return ProcessEngine("openvino", answer_open, {"path": os.fspath(path)})


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> OpenVinoEngine:
    """Open OpenVINO in the process that was started for it."""
    return OpenVinoEngine(require("openvino"), request["path"])


class OpenVinoEngine(Engine):
    """OpenVINO on the CPU, computing in float32 what is float32.

    Args:
        openvino: The package.
        path: The model.
    """

    def __init__(self, openvino: AnyValue, path: str) -> None:
        self.name = f"openvino {openvino.__version__.partition('-')[0]}"
        core = openvino.Core()
        try:
            model = core.read_model(path)
            # Else floats are bfloat16 on processors that have it.
            self._model = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        except Exception as error:
            raise CheckError(f"{self.name} refuses the model: {first_line(error)}") from error
        # Outputs in the order of the model; one that is another's copy has its names as well.
        self.outputs = [_name(port) for port in model.outputs]
        self.inputs = {
            _name(port): dtype_name(port.element_type.to_dtype()) for port in model.inputs
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the compiled model."""
        found = self._model(fit_inputs(self.name, self.inputs, inputs))
        return [np.array(found[index]) for index in range(len(self.outputs))]


def _name(port: AnyValue) -> str:
    return str(port.any_name)
