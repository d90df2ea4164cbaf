"""Engines: what can run a model on arrays, to compare two of them.

The source is run by its own framework where that is installed and by the Relay
interpreter otherwise; an ONNX file by ONNX Runtime where that is installed and
by ONNX's reference implementation otherwise; a file of another format is read
back and run by the Relay interpreter.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue
from typing import Protocol

import numpy as np

from serde._optional import require
from serde.bridge import get_bridge
from serde.errors import CheckError, MissingDependency
from serde.relay.leaves import output_names, value_types
from serde.relay.model import RelayModel
from serde.report import Report
from serde.weights import Array

__all__ = ["Engine", "engine_for_path", "engine_for_source", "run_engine"]


class Engine(Protocol):
    """Something that runs one model.

    Attributes:
        name: What runs it, with its version.
        outputs: Names of the outputs in the model's order; several may have one name.
    """

    name: str
    outputs: Sequence[str]

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order, for inputs by name."""
        ...


def run_engine(engine: Engine, inputs: Mapping[str, Array]) -> list[Array]:
    """Run an engine; its results are as many as its outputs.

    Raises:
        CheckError: The engine failed; it is named.
    """
    try:
        results = engine.run(inputs)
    except CheckError:
        raise
    except Exception as error:
        raise CheckError(f"{engine.name} failed: {_first_line(error)}") from error
    if len(results) != len(engine.outputs):
        raise CheckError(
            f"{engine.name}: expected {len(engine.outputs)} outputs, found {len(results)}"
        )
    return results


def engine_for_source(format_name: str, native: AnyValue, model: RelayModel) -> Engine:
    """Return what runs the source of a conversion.

    MXNet has no float16 matrix product on the CPU, so the Relay interpreter runs
    models with float16 weights.

    Args:
        format_name: Format of the source.
        native: The model as its bridge loaded it.
        model: The same as Relay.

    Raises:
        CheckError: The framework is there but refuses the model.
    """
    narrow = any(weight.dtype == "float16" for weight in model.params.values())
    if format_name == "onnx":
        return _onnx_engine(native)
    if format_name == "mxnet" and not narrow:
        try:
            mxnet = require("mxnet")
        except MissingDependency:
            return RelayEngine(model)
        return MxnetEngine(mxnet, native, model)
    return RelayEngine(model)


def engine_for_path(format_name: str, path: Path) -> Engine:
    """Return what runs a file.

    Raises:
        CheckError: No engine can run this format, or the engine refuses the file.
    """
    if format_name == "onnx":
        try:
            return OnnxRuntimeEngine(require("onnxruntime"), path)
        except MissingDependency:
            return OnnxReferenceEngine(path)
    bridge = get_bridge(format_name)
    if bridge.import_options is None:
        raise CheckError(f"no engine runs files of format {format_name}")
    options = bridge.import_options()
    native = bridge.load(path, None, options)
    model = bridge.to_relay(native, options, report=Report(f"{format_name} -> relay"))
    return engine_for_source(format_name, native, model)


def _onnx_engine(native: AnyValue) -> Engine:
    """Return what runs a loaded ONNX model: it is written for that, and then removed."""
    from serde.onnx import codec

    with tempfile.TemporaryDirectory() as directory:
        path = codec.save(native, Path(directory) / "source.onnx")
        try:
            return engine_for_path("onnx", path)
        except CheckError:
            return OnnxReferenceEngine(path)


class RelayEngine:
    """The Relay interpreter."""

    def __init__(self, model: RelayModel) -> None:
        self.name = "relay interpreter"
        self.outputs: Sequence[str] = _output_names(model)
        self._model = model

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate ``main``."""
        from serde.relay.interpreter import run

        model = self._model
        arguments = [
            inputs[name] if name in inputs else model.params[name].array()
            for name in (param.name_hint for param in model.main.params)
        ]
        return _flat(run(model.main, arguments, mod=model.mod))


def _output_names(model: RelayModel) -> Sequence[str]:
    """Return the names of the tensors that ``main`` gives, numbered where the model has none."""
    type_ = model.main.body.type
    if model.meta.outputs:
        return output_names(model.meta.outputs, type_)
    return tuple(f"output{i}" for i in range(len(value_types(type_))))


def _flat(result: AnyValue) -> list[Array]:
    """Return the arrays of a tuple of tuples, in order."""
    found: list[Array] = []
    pending = [result]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(reversed(item))
        else:
            found.append(item)
    return found


class MxnetEngine:
    """MXNet, on the CPU, in inference mode.

    Arguments that are neither inputs nor weights (labels of a loss head) are
    zeros of the shape that MXNet infers.
    """

    def __init__(self, mxnet: AnyValue, native: AnyValue, model: RelayModel) -> None:
        from serde.mxnet.symbol_json import symbol_text

        # Else MXNet logs a line on stderr for every graph that it binds.
        os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
        self.name = f"mxnet {mxnet.__version__}"
        self._mxnet = mxnet
        self._native = native
        self.outputs: Sequence[str] = model.meta.outputs
        try:
            self._symbol = mxnet.sym.load_json(symbol_text(native.graph))
        except mxnet.base.MXNetError as error:
            raise CheckError(f"{self.name} refuses the graph: {_first_line(error)}") from error

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Bind the symbol to weights and inputs, and run it forward."""
        weights = [*self._native.arg.values(), *self._native.aux.values()]
        shapes = [tensor.shape for tensor in (*inputs.values(), *weights)]
        marked = "is_np_shape" in self._native.graph.attrs
        # Without it, MXNet takes a length of 0 and a rank of 0 as not known.
        with self._mxnet.util.np_shape(marked or any(0 in s or not s for s in shapes)):
            return self._forward(inputs)

    def _forward(self, inputs: Mapping[str, Array]) -> list[Array]:
        symbol, native = self._symbol, self._native
        names = symbol.list_arguments()
        known = {
            name: self._array(inputs[name] if name in inputs else native.arg[name].array())
            for name in names
            if name in inputs or name in native.arg
        }
        aux = {n: self._array(native.aux[n].array()) for n in symbol.list_auxiliary_states()}
        executor = symbol.bind(
            self._mxnet.cpu(),
            args={**self._labels(known), **known},
            aux_states=aux,
            grad_req="null",
        )
        return [value.asnumpy() for value in executor.forward(is_train=False)]

    def _labels(self, known: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
        names = self._symbol.list_arguments()
        if len(known) == len(names):
            return {}
        given = {name: value.shape for name, value in known.items()}
        shapes = self._symbol.infer_shape_partial(**given)[0]
        return {
            name: self._mxnet.nd.zeros(shape)
            for name, shape in zip(names, shapes, strict=True)
            if name not in known
        }

    def _array(self, value: Array) -> AnyValue:
        return self._mxnet.nd.array(value, dtype=value.dtype)


class OnnxRuntimeEngine:
    """ONNX Runtime, on the CPU, with its graph optimisations."""

    def __init__(self, onnxruntime: AnyValue, path: Path) -> None:
        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise CheckError(f"{self.name} refuses {path}: {_first_line(error)}") from error
        self.outputs: Sequence[str] = [output.name for output in self._session.get_outputs()]
        self._inputs = {item.name: item.type for item in self._session.get_inputs()}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the session; float32 inputs are cast where it declares float16."""
        _expect_inputs(self.name, self._inputs, inputs)
        fed = {
            name: _narrowed(inputs[name], type_ == "tensor(float16)")
            for name, type_ in self._inputs.items()
        }
        return list(self._session.run(None, fed))


class OnnxReferenceEngine:
    """The reference implementation that comes with ONNX."""

    def __init__(self, path: Path) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        try:
            self._evaluator = ReferenceEvaluator(os.fspath(path))
        except Exception as error:
            raise CheckError(f"{self.name} refuses {path}: {_first_line(error)}") from error
        self.outputs: Sequence[str] = list(self._evaluator.output_names)
        self._float16 = {
            name
            for name, type_ in zip(
                self._evaluator.input_names, self._evaluator.input_types, strict=True
            )
            if type_.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate the graph; float32 inputs are cast where it declares float16."""
        names = self._evaluator.input_names
        _expect_inputs(self.name, names, inputs)
        fed = {name: _narrowed(inputs[name], name in self._float16) for name in names}
        return [np.asarray(value) for value in self._evaluator.run(None, fed)]


def _expect_inputs(engine: str, wanted: AnyValue, given: Mapping[str, Array]) -> None:
    missing = [name for name in wanted if name not in given]
    if missing:
        known = ", ".join(given) or "none"
        raise CheckError(f"{engine}: the source has no input {missing[0]} (there are: {known})")


def _narrowed(value: Array, to_float16: bool) -> Array:
    return value.astype(np.float16) if to_float16 and value.dtype == np.float32 else value


def _first_line(error: Exception) -> str:
    """Return the class of an error and the first line of its message."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")
