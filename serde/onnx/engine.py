"""ONNX Runtime and ONNX's reference implementation as engines of checks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import numpy as np

from serde._optional import is_installed, require
from serde.engine.base import Engine, first_line
from serde.engine.fitting import fit_inputs
from serde.engine.process import EngineEnded, ProcessEngine, can_start
from serde.errors import CheckError, MissingDependency
from serde.weights import Array, dtype_name

if TYPE_CHECKING:
    from serde.onnx.model import OnnxModel

__all__ = ["open_file", "open_model"]


def open_model(model: OnnxModel) -> Engine:
    """Return what runs a loaded model: it is written for that, and then removed."""
    from serde.onnx import codec

    with tempfile.TemporaryDirectory() as directory:
        path = codec.save(model, Path(directory) / "source.onnx")
        try:
            return open_file(path)
        except EngineEnded:
            raise
        except CheckError:
            return ReferenceEngine(path)


def open_file(path: Path) -> Engine:
    """Return what runs a file; of one that is refused, say what is malformed in it.

    Raises:
        CheckError: The engine refuses the file, or crashed.
        FormatError: The file is malformed.
    """
    from serde.onnx import codec

    try:
        return _open(path)
    except EngineEnded:
        raise
    except CheckError:
        codec.load(path)
        raise


def _open(path: Path) -> Engine:
    if not is_installed("onnxruntime"):
        return ReferenceEngine(path)
    try:
        if can_start():
            request = {"path": os.path.abspath(path)}
            return ProcessEngine("onnxruntime", answer_open, request)
        return RuntimeEngine(require("onnxruntime"), path)
    except MissingDependency:
        return ReferenceEngine(path)


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> RuntimeEngine:
    """Open ONNX Runtime in the process that was started for it."""
    return RuntimeEngine(require("onnxruntime"), request["path"])


class RuntimeEngine(Engine):
    """ONNX Runtime, on the CPU, with its graph optimisations."""

    def __init__(self, onnxruntime: AnyValue, path: str | os.PathLike[str]) -> None:
        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise CheckError(f"{self.name} refuses {path}: {first_line(error)}") from error
        self.outputs = [output.name for output in self._session.get_outputs()]
        self.inputs = {item.name: _DTYPES.get(item.type, "") for item in self._session.get_inputs()}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the session."""
        return list(self._session.run(None, fit_inputs(self.name, self.inputs, inputs)))


_DTYPES: Mapping[str, str] = {
    "tensor(bool)": "bool",
    "tensor(double)": "float64",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    **{
        f"tensor({name}{bits})": f"{name}{bits}"
        for name in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}
"""What ONNX Runtime calls the dtypes of the tensors that NumPy can hand it."""


class ReferenceEngine(Engine):
    """The reference implementation that comes with ONNX."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        try:
            self._evaluator = ReferenceEvaluator(os.fspath(path))
        except Exception as error:
            raise CheckError(f"{self.name} refuses {path}: {first_line(error)}") from error
        self.outputs = list(self._evaluator.output_names)
        types = zip(self._evaluator.input_names, self._evaluator.input_types, strict=True)
        self.inputs = {name: _reference_dtype(type_.tensor_type.elem_type) for name, type_ in types}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate the graph."""
        fed = fit_inputs(self.name, self.inputs, inputs)
        return [np.asarray(value) for value in self._evaluator.run(None, fed)]


def _reference_dtype(element: int) -> str:
    """Return the dtype of an ONNX element type; empty for what is no tensor of numbers."""
    import onnx

    if element in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return ""
    return dtype_name(onnx.helper.tensor_dtype_to_np_dtype(element))
