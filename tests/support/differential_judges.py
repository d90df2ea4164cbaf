"""What runs the files of each format, sharing no code with its bridge.

ONNX Runtime, MXNet, PyTorch, TVM, LiteRT, the executor of ML Programs, that of layers of Core ML's
NeuralNetworks, and NNEF's specification in NumPy over the graph that Khronos' parser reads.
"""

from __future__ import annotations

import contextlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.random_checks import has_double
from support.runtime import open_session

import serde
from serde.core.optional import is_installed
from serde.mxnet.operators import DYNAMIC
from serde.relay import Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import all_ops
from serde.relay.ir.traits import Rescales
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run

__all__ = ["JUDGES", "Judge", "NoJudge", "available", "evaluate", "fitting", "is_open", "summarize"]

Array = np.ndarray


class NoJudge(Exception):
    """Nothing that can be relied on runs a model."""


class Judge(ABC):
    """Writes a model in a format, and runs what was written.

    Attributes:
        name: Name of the format, or of a form of it.
        format: Name of the format.
        package: What is needed to run it.
        suffix: End of the name of a file.
        options: Options of writing.
    """

    name: str
    format: str
    package: str
    suffix: str
    options: Mapping[str, Any] = {}

    @property
    def inexact(self) -> frozenset[str]:
        """Names of operators that are computed less exactly than elsewhere, with consent."""
        return frozenset()

    @abstractmethod
    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Return what a file gives, for inputs in the order of the model that it was written of."""

    def write(self, model: RelayModel, folder: Path) -> Path:
        """Write a model, and return the file."""
        path = folder / f"{self.name}{self.suffix}"
        serde.from_relay(model, format=self.format, path=path, overwrite=True, **self.options)
        return path

    def read(self, path: Path, model: RelayModel) -> RelayModel:
        """Return what a file that was written of a model is read as."""
        return serde.to_relay(path)


class OnnxJudge(Judge):
    """ONNX Runtime, or ONNX's reference where that has no kernel."""

    name = format = "onnx"
    package = "onnxruntime"
    suffix = ".onnx"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a file."""
        import onnx
        import onnxruntime

        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        given = dict(zip([each.name for each in proto.graph.input], feeds, strict=True))
        if any(node.op_type == "MeanVarianceNormalization" for node in proto.graph.node):
            # ONNX Runtime takes the mean of squares less the square of the mean: NaN if constant.
            return self._by_reference(proto, given)
        try:
            session = open_session(path, fuse=not has_double(proto))
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            return self._by_reference(proto, given)
        return list(session.run(None, given))

    def _by_reference(self, proto: Any, given: Mapping[str, Array]) -> list[Array]:
        """Run by ONNX's reference, which lacks some operators.

        It stacks what a loop yields wrongly, and runs sequences of all lengths to their end.
        """
        from onnx.reference import ReferenceEvaluator

        for node in proto.graph.node:
            if node.op_type in ("Loop", "Scan"):
                raise NoJudge("ONNX's reference stacks what a loop yields wrongly")
            if node.op_type in ("GRU", "LSTM", "RNN") and "".join(node.input[4:5]):
                raise NoJudge("ONNX's reference looks at no lengths of sequences")
            if node.op_type in ("GRU", "LSTM", "RNN") and _is_unusual(node):
                raise NoJudge("ONNX's reference has no other functions than the usual, nor bounds")
            if node.op_type == "MaxPool" and len(node.output) > 1:
                raise NoJudge("ONNX's reference counts places of maxima otherwise")
            if node.op_type == "AveragePool" and any(
                each.name == "ceil_mode" for each in node.attribute
            ):
                raise NoJudge(
                    "ONNX's reference leaves out some of a window that goes beyond the end"
                )
            if node.op_type == "GlobalMaxPool":
                raise NoJudge("ONNX's reference takes the maximum over two axes of any number")
            if node.op_type == "LRN":
                raise NoJudge("ONNX's reference normalises as many channels as there are images")
            if node.op_type == "LpNormalization" and any(each.i == 1 for each in node.attribute):
                raise NoJudge("ONNX's reference adds elements up with their signs")
        try:
            return list(ReferenceEvaluator(proto).run(None, dict(given)))
        except Exception as error:  # it raises what NumPy does
            raise NoJudge(f"ONNX's reference fails: {summarize(error)}") from error


def _is_unusual(node: Any) -> bool:
    """Whether a recurrent layer of ONNX names its functions, bounds or couples its gates."""
    return any(each.name in ("activations", "clip", "input_forget") for each in node.attribute)


class MxnetJudge(Judge):
    """MXNet 1.9: an executor or, where values decide shapes, what runs Gluon's blocks."""

    name = format = "mxnet"
    package = "mxnet"
    suffix = "-symbol.json"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a file."""
        from serde.compat import import_mxnet

        mx = import_mxnet()
        symbol = mx.sym.load(str(path))
        params = path.with_name(path.name.replace("-symbol.json", "-0000.params"))
        text = path.read_text()
        held = _load_params(mx, params) if params.exists() else {}
        with mx.util.np_shape('"is_np_shape"' in text):
            values = {name.partition(":")[2]: array for name, array in dict(held).items()}
            names = [each for each in symbol.list_inputs() if each not in values]
            given = dict(zip(model.meta.inputs, feeds, strict=True))
            for name in names:
                if name not in given:
                    given[name] = given[""]  # What has no name is called otherwise.
            values |= {name: mx.nd.array(given[name], dtype=given[name].dtype) for name in names}
            if any(node["op"] in DYNAMIC for node in json.loads(text)["nodes"]):
                with contextlib.suppress(mx.MXNetError):
                    return _run_block(mx, symbol, values)
                with contextlib.suppress(mx.MXNetError), mx.util.np_shape(True):
                    return _run_block(mx, symbol, values)
            try:
                return _run_executor(mx, symbol, values)
            except mx.MXNetError as error:
                if is_open(model) and "delay_alloc" in str(error):
                    raise NoJudge("MXNet's oneDNN fails on what turns out to be empty") from error
                raise

    def read(self, path: Path, model: RelayModel) -> RelayModel:
        """Read a file, which names no inputs whose values count for nothing."""
        nodes = json.loads(path.read_text())["nodes"]
        named = {each["name"] for each in nodes if each["op"] == "null"}
        inputs = [each for each in model.inputs() if each.name_hint in named]
        return serde.to_relay(
            path,
            input_shapes={each.name_hint: tuple(each.type.shape) for each in inputs},
            input_dtypes={each.name_hint: each.type.dtype for each in inputs},
            widen_weights=False,
        )


def is_open(model: RelayModel) -> bool:
    types = [each.type for each in model.inputs()]
    return any(isinstance(each, TensorType) and each.concrete_shape is None for each in types)


def _run_executor(mx: Any, symbol: Any, values: Mapping[str, Any]) -> list[Array]:
    """Return what an executor gives."""
    executor = symbol.bind(
        mx.cpu(),
        args={name: values[name] for name in symbol.list_arguments()},
        aux_states={name: values[name] for name in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    return [each.asnumpy() for each in executor.forward(is_train=False)]


def _run_block(mx: Any, symbol: Any, values: Mapping[str, Any]) -> list[Array]:
    """Return what a symbol gives as Gluon runs it."""
    found = mx.nd.CachedOp(symbol)(*[values[each] for each in symbol.list_inputs()])
    return [each.asnumpy() for each in (found if isinstance(found, list) else [found])]


def _load_params(mx: Any, path: Path) -> Any:
    """Return the arrays of a file, which MXNet loads in the semantics of shapes it was saved in."""
    try:
        return mx.nd.load(str(path))
    except mx.base.MXNetError:
        with mx.util.np_shape(True):
            return mx.nd.load(str(path))


class TorchJudge(Judge):
    """PyTorch, operator by operator; files are programs of ``torch.export``."""

    name = format = "torch"
    package = "torch"
    suffix = ".pt2"

    def write(self, model: RelayModel, folder: Path) -> Path:
        """Write the folder that is run."""
        path = folder / "torch-model"
        serde.from_relay(model, format="torch", path=path, overwrite=True)
        return path

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run the folder's module."""
        import torch

        from serde.torch.engine import _open_folder

        engine = _open_folder(path)
        with torch.no_grad():
            return list(engine.run(dict(zip(engine.inputs, feeds, strict=True))))

    def read(self, path: Path, model: RelayModel) -> RelayModel:
        """Write and read a program."""
        program = path.with_name("torch.pt2")
        with contextlib.redirect_stdout(io.StringIO()):  # torch.export prints the graph it refuses
            serde.from_relay(model, format="torch", path=program, overwrite=True)
        return serde.to_relay(program)


class RelaxJudge(Judge):
    """TVM, compiled without optimisations."""

    name = format = "relax"
    package = "tvm"
    suffix = ".json"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Compile and run a file."""
        from serde.bridge.formats import get_bridge
        from serde.relax.engine import RelaxEngine

        bridge = get_bridge("relax")
        native = bridge.load(path, None, bridge.import_options())
        weights = [each.array() for each in native.weights.values()]
        target = '{"kind": "llvm", "opt-level": 0}'
        engine = RelaxEngine(native.module, native.inputs, native.outputs, weights, target=target)
        return engine.run(dict(zip(native.inputs, feeds, strict=True)))


class RelayJudge(Judge):
    """Relay's own text, run by the interpreter, which other formats judge."""

    name = format = "relay"
    package = "serde"
    suffix = ".relay"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a file."""
        return evaluate(serde.to_relay(path), dict(zip(model.meta.inputs, feeds, strict=True)))


class NnefJudge(Judge):
    """NNEF's specification in NumPy, over the graph that Khronos' parser reads."""

    name = format = "nnef"
    package = "nnef"
    suffix = ".nnef"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a folder."""
        import nnef
        from support.nnef_reference import run as run_graph

        graph = nnef.load_graph(str(path), stdlib="", lowered=[])
        nnef.infer_shapes(graph)
        found = run_graph(graph, dict(zip(graph.inputs, feeds, strict=True)))
        return [found[name] for name in graph.outputs]


class ProgramJudge(Judge):
    """The tests' executor of ML Programs."""

    name = format = "coreml"
    package = "coremltools"
    suffix = ".mlpackage"
    options: Mapping[str, Any] = {
        "minimum_deployment_target": "iOS18",
        "compute_precision": "float32",
        "allow": {"int64-as-int32", "float64-as-float32"},
    }

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a package."""
        from support.coreml_models import tools
        from support.mil_executor import execute

        inputs = tools().utils.load_spec(str(path)).description.input
        given = {
            each.name: np.atleast_1d(value).astype(_held(value.dtype.name))
            for each, value in zip(inputs, feeds, strict=True)
        }
        return execute(path, given)


class NetworkJudge(Judge):
    """The tests' executor of layers of NeuralNetworks."""

    name = "mlmodel"
    format = "coreml"
    package = "coremltools"
    suffix = ".mlmodel"
    options: Mapping[str, Any] = {
        "minimum_deployment_target": "iOS14",
        "allow": {"integers-as-float32", "float64-as-float32"},
    }

    @property
    def inexact(self) -> frozenset[str]:
        """Integers of 64 bits are floats, of 24."""
        rescaling = frozenset(name for name, each in all_ops().items() if each.has(Rescales))
        return rescaling | {"fixed_point_multiply", "fixed_point_multiply_per_axis"}

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a file."""
        from support.coreml_networks import message_of
        from support.nn_layers import evaluate_network

        message = message_of(path)
        names = [each.name for each in message.description.input]
        given = {name: np.atleast_1d(each) for name, each in zip(names, feeds, strict=True)}
        found = evaluate_network(message, given)
        return [found[each.name] for each in message.description.output]


class TfliteJudge(Judge):
    """LiteRT's reference kernels, which on int8 may be a step off."""

    name = format = "tflite"
    options: Mapping[str, Any] = {"write_quantized": "exact"}
    package = "ai_edge_litert"
    suffix = ".tflite"

    def run(self, path: Path, model: RelayModel, feeds: Sequence[Array]) -> list[Array]:
        """Run a file."""
        from serde.tflite.engine import LitertEngine
        from serde.tflite.interface import chosen_interface
        from serde.tflite.reader import read_file

        engine = LitertEngine(str(path), chosen_interface(read_file(str(path)), None))
        return engine.run(dict(zip(engine.inputs, feeds, strict=True)))


def _held(dtype: str) -> str:
    """Return the dtype of Core ML's inputs that stands for one of Relay's."""
    integers = ("bool", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")
    return "int32" if dtype in integers else "float32" if dtype == "float64" else dtype


JUDGES: Mapping[str, Judge] = {
    each.name: each
    for each in (
        RelayJudge(), OnnxJudge(), MxnetJudge(), TorchJudge(), RelaxJudge(), NnefJudge(),
        ProgramJudge(), NetworkJudge(), TfliteJudge(),
    )
}  # fmt: skip
"""Judges by the names of formats."""


def available() -> list[str]:
    """Names of the judges whose packages are installed."""
    return [name for name, each in JUDGES.items() if is_installed(each.package)]


def evaluate(model: RelayModel, feeds: Mapping[str, Array]) -> list[Array]:
    """Return what Relay's interpreter gives for inputs by name, in the dtypes of the model's."""
    values: dict[str, Any] = {name: weight.array() for name, weight in model.params.items()}
    for variable in model.inputs():
        values[variable.name_hint] = fitting(feeds[variable.name_hint], variable)
    result = run(model.main, [values[each.name_hint] for each in model.main.params], mod=model.mod)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def fitting(value: Array, variable: Var) -> Array:
    """Return a value in the dtype of an input, and with an axis where formats add one."""
    type_ = variable.type
    assert isinstance(type_, TensorType)
    array = np.asarray(value).astype(type_.dtype)
    return array.reshape(1) if type_.rank == 1 and array.ndim == 0 else array


def summarize(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
