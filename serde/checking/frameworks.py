"""What runs models: MXNet, ONNX Runtime, ONNX's reference implementation, Relay's interpreter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import numpy as np

from serde.checking.fitting import fit_inputs
from serde.errors import CheckError
from serde.weights import Array, Weight, dtype_name

if TYPE_CHECKING:
    from serde.relay.ir.model import RelayModel

__all__ = [
    "MxnetEngine",
    "MxnetProgram",
    "OnnxReferenceEngine",
    "OnnxRuntimeEngine",
    "RelayEngine",
    "first_line",
    "flat_values",
    "mxnet_program",
]


class RelayEngine:
    """The Relay interpreter."""

    def __init__(self, model: RelayModel) -> None:
        self.name = "relay interpreter"
        self.inputs: Mapping[str, str] = declared_dtypes(model)
        self.outputs: Sequence[str] = _output_names(model)
        self._model = model

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate ``main``."""
        from serde.relay.run.interpreter import run

        model = self._model
        return flat_values(run(model.main, self.arguments(inputs), mod=model.mod))

    def arguments(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the arguments of ``main``: inputs by name or else by place, and the weights."""
        values = fit_inputs(self.name, self.inputs, inputs)
        params = self._model.params
        return [
            values[name] if name in values else params[name].array()
            for name in (param.name_hint for param in self._model.main.params)
        ]

    @property
    def computes_float16(self) -> bool:
        """Whether products of the model, or its weights, are float16."""
        from serde.relay.ir.bodies import all_nodes
        from serde.relay.ir.expr import Call

        if any(weight.dtype == "float16" for weight in self._model.params.values()):
            return True
        nodes = all_nodes(self._model.main.body)
        return any(isinstance(n, Call) and getattr(n.type, "dtype", "") == "float16" for n in nodes)

    def close(self) -> None:
        """Do nothing: it holds nothing."""


def declared_dtypes(model: RelayModel) -> dict[str, str]:
    """Return the dtype of each input by name; empty where it is no tensor."""
    return {v.name_hint: getattr(v.type, "dtype", "") for v in model.inputs()}


def _output_names(model: RelayModel) -> Sequence[str]:
    """Return the names of the tensors that ``main`` gives, numbered where the model has none."""
    from serde.relay.ir.leaves import output_names, value_types

    type_ = model.main.body.type
    if model.meta.outputs:
        return output_names(model.meta.outputs, type_)
    return tuple(f"output{i}" for i in range(len(value_types(type_))))


def flat_values(result: AnyValue) -> list[Array]:
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


@dataclass(frozen=True)
class MxnetProgram:
    """A symbol and its weights, as MXNet itself takes them.

    Attributes:
        text: The symbol as JSON.
        arg: Weights by name.
        aux: Auxiliary states by name.
        inputs: dtype of each input by name.
        outputs: Names of the outputs.
        np_shape: Whether a length of 0 and a rank of 0 are shapes, or such as are not known.
    """

    text: str
    arg: Mapping[str, Weight]
    aux: Mapping[str, Weight]
    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    np_shape: bool


def mxnet_program(native: AnyValue, model: RelayModel) -> MxnetProgram:
    """Return what MXNet needs to run a loaded model.

    Args:
        native: The model as the bridge loaded it.
        model: The same as Relay.
    """
    from serde.mxnet.symbol_json import symbol_text

    return MxnetProgram(
        text=symbol_text(native.graph),
        arg=native.arg,
        aux=native.aux,
        inputs=declared_dtypes(model),
        outputs=model.meta.outputs,
        np_shape="is_np_shape" in native.graph.attrs,
    )


class MxnetEngine:
    """MXNet, on the CPU, in inference mode.

    Arguments that are neither inputs nor weights (labels of a loss head) are
    zeros of the shape that MXNet infers.
    """

    def __init__(self, mxnet: AnyValue, program: MxnetProgram) -> None:
        # Else MXNet logs a line on stderr for every graph that it binds.
        os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
        self.name = f"mxnet {mxnet.__version__}"
        self.inputs: Mapping[str, str] = program.inputs
        self.outputs: Sequence[str] = program.outputs
        self._mxnet = mxnet
        try:
            self._symbol = mxnet.sym.load_json(program.text)
        except mxnet.base.MXNetError as error:
            raise CheckError(f"{self.name} refuses the graph: {first_line(error)}") from error
        weights = [*program.arg.values(), *program.aux.values()]
        self._np_shape = program.np_shape or any(map(_needs_np_shape, weights))
        with mxnet.util.np_shape(self._np_shape):
            self._arg = self._arrays(program.arg)
            self._aux = self._arrays(program.aux)

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Bind the symbol to weights and inputs, and run it forward."""
        given = fit_inputs(self.name, self.inputs, inputs)
        np_shape = self._np_shape or any(map(_needs_np_shape, given.values()))
        with self._mxnet.util.np_shape(np_shape):
            return self._forward(given)

    def close(self) -> None:
        """Do nothing: MXNet frees what it holds with the engine."""

    def _forward(self, inputs: Mapping[str, Array]) -> list[Array]:
        symbol = self._symbol
        known = {
            name: self._array(inputs[name]) if name in inputs else self._arg[name]
            for name in symbol.list_arguments()
            if name in inputs or name in self._arg
        }
        executor = symbol.bind(
            self._mxnet.cpu(),
            args={**self._labels(known), **known},
            aux_states={name: self._aux[name] for name in symbol.list_auxiliary_states()},
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

    def _arrays(self, weights: Mapping[str, Weight]) -> dict[str, AnyValue]:
        return {name: self._array(weight.array()) for name, weight in weights.items()}

    def _array(self, value: Array) -> AnyValue:
        return self._mxnet.nd.array(value, dtype=value.dtype)


def _needs_np_shape(tensor: Weight | Array) -> bool:
    """Whether MXNet would take a shape, with a length of 0 or no axis, for one not known."""
    return 0 in tensor.shape or not tensor.shape


class OnnxRuntimeEngine:
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
        self.outputs: Sequence[str] = [output.name for output in self._session.get_outputs()]
        self.inputs: Mapping[str, str] = {
            item.name: _DTYPES.get(item.type, "") for item in self._session.get_inputs()
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the session."""
        return list(self._session.run(None, fit_inputs(self.name, self.inputs, inputs)))

    def close(self) -> None:
        """Do nothing: the session ends with the engine."""


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


class OnnxReferenceEngine:
    """The reference implementation that comes with ONNX."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        try:
            self._evaluator = ReferenceEvaluator(os.fspath(path))
        except Exception as error:
            raise CheckError(f"{self.name} refuses {path}: {first_line(error)}") from error
        self.outputs: Sequence[str] = list(self._evaluator.output_names)
        types = zip(self._evaluator.input_names, self._evaluator.input_types, strict=True)
        self.inputs: Mapping[str, str] = {
            name: _reference_dtype(type_.tensor_type.elem_type) for name, type_ in types
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate the graph."""
        fed = fit_inputs(self.name, self.inputs, inputs)
        return [np.asarray(value) for value in self._evaluator.run(None, fed)]

    def close(self) -> None:
        """Do nothing: it holds nothing."""


def _reference_dtype(element: int) -> str:
    """Return the dtype of an ONNX element type; empty for what is no tensor of numbers."""
    import onnx

    if element in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return ""
    return dtype_name(onnx.helper.tensor_dtype_to_np_dtype(element))


def first_line(error: Exception) -> str:
    """Return the class of an error and the first line of its message."""
    name, text = type(error).__name__, str(error).strip().splitlines()
    said = text[0].removeprefix(f"{name}: ") if text else ""
    return f"{name}: {said}".rstrip(": ")
