"""ONNX Runtime and ONNX's reference implementation as engines of checks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

import numpy as np

from serde.core import Array, dtype_name, is_installed, require
from serde.engine.base import Engine, first_line
from serde.engine.fitting import fit_inputs
from serde.engine.process import EngineEnded, ProcessEngine, can_start
from serde.errors import CheckError, MissingDependency
from serde.io.staging import final_directory
from serde.relay.ir.types import TensorType

if TYPE_CHECKING:
    import onnx

    from serde.onnx.model import OnnxModel
    from serde.relay.ir.model import RelayModel

__all__ = ["open_file", "open_model", "with_input_lengths"]


def with_input_lengths(model: OnnxModel, relay_model: RelayModel) -> OnnxModel:
    """Return a model whose inputs take the lengths that a caller gave where it has others."""
    opened = relay_model.meta.opened
    if opened is None or opened.rewritten:
        return model
    proto = type(model.proto)()
    proto.CopyFrom(model.proto)
    del proto.graph.value_info[:]
    given = {each.name_hint: each.type for each in relay_model.inputs()}
    for value in proto.graph.input:
        type_ = given.get(value.name)
        dims = value.type.tensor_type.shape.dim
        for dim, known in zip(
            dims, type_.shape if isinstance(type_, TensorType) else (), strict=False
        ):
            if known != dim.dim_value:
                dim.ClearField("dim_value")
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return replace(model, proto=proto)


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
        FormatError: The file is malformed, or a file that its weights were linked to has changed.
    """
    from serde.onnx import codec
    from serde.onnx.reader import check_links

    folder = final_directory(path) if check_links(path) else None
    try:
        return _open(path, folder)
    except EngineEnded:
        raise
    except CheckError:
        codec.load(path)
        raise


def _open(path: Path, folder: str | None) -> Engine:
    """Return what runs a file, whose external data may lie in the folder that it is made for."""
    if not is_installed("onnxruntime"):
        return ReferenceEngine(path, folder)
    try:
        if can_start():
            request = {"path": os.path.abspath(path), "folder": folder}
            return ProcessEngine("onnxruntime", answer_open, request)
        return RuntimeEngine(require("onnxruntime"), path, folder)
    except MissingDependency:
        return ReferenceEngine(path, folder)


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> RuntimeEngine:
    """Open ONNX Runtime in the process that was started for it."""
    return RuntimeEngine(require("onnxruntime"), request["path"], request["folder"])


class RuntimeEngine(Engine):
    """ONNX Runtime, on the CPU, with its graph optimisations.

    Args:
        onnxruntime: The package.
        path: The model.
        folder: Where its external data lies as well that is not beside it.
    """

    def __init__(
        self, onnxruntime: AnyValue, path: str | os.PathLike[str], folder: str | None = None
    ) -> None:
        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        threads = os.environ.get("OMP_NUM_THREADS", "")  # Else as many as the machine has cores.
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        # Else dequantised weights of 4 bits are multiplied with data as integers of 8 bits.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        model: str | bytes = os.fspath(path)
        if folder is not None:
            options.add_session_config_entry(_FOLDER_OF_DATA, folder)
            model = _moved_to(path, folder).SerializeToString()
        try:
            with _working_in(folder):
                self._session = onnxruntime.InferenceSession(
                    model, options, providers=["CPUExecutionProvider"]
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


_FOLDER_OF_DATA = "session.model_external_initializers_file_folder_path"
"""What ONNX Runtime calls the folder that external data of a model in memory lies in."""


@contextmanager
def _working_in(folder: str | None) -> Iterator[None]:
    """Work in a folder, where ONNX Runtime below 1.20 looks for such data; None for no other."""
    if folder is None:
        yield
        return
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _moved_to(path: str | os.PathLike[str], folder: str) -> onnx.ModelProto:
    """Return a model as it would be in a folder around its own, its external data where it is."""
    import onnx

    from serde.onnx.model import tensors

    proto = onnx.load(os.fspath(path), load_external_data=False)
    for _, tensor in tensors(proto):
        for entry in tensor.external_data:
            beside = os.path.join(os.path.dirname(path), entry.value)
            if entry.key == "location" and os.path.lexists(beside):
                entry.value = os.path.relpath(beside, folder).replace(os.sep, "/")
    return proto


class ReferenceEngine(Engine):
    """The reference implementation that comes with ONNX."""

    def __init__(self, path: str | os.PathLike[str], folder: str | None = None) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        try:
            model: AnyValue = os.fspath(path)
            if folder is not None:
                model = _moved_to(path, folder)
                onnx.load_external_data_for_model(model, folder)
            self._evaluator = ReferenceEvaluator(model)
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
