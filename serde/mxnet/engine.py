"""MXNet as an engine of checks: it runs what the bridge has loaded, in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import Array, ArrayWeight, Weight, dataclass, is_installed, require
from serde.engine.base import Engine, first_line
from serde.engine.fitting import fit_inputs
from serde.engine.process import ProcessEngine, can_start
from serde.errors import CheckError, MissingDependency

if TYPE_CHECKING:
    from serde.mxnet.model import MxnetModel
    from serde.relay.ir.model import RelayModel

__all__ = ["MxnetEngine", "MxnetProgram", "mxnet_program", "open_engine", "open_process"]

_WITHOUT_ONEDNN = {"MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_MKLDNN_ENABLED": "0"}
"""Environment in which MXNet computes without oneDNN: some of its fused layers are wrong."""

_CRASHES = tuple(
    name for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV") if hasattr(signal, name)
)
"""Signals that a process gets for what it did itself, where the system has them."""


def open_engine(native: MxnetModel, model: RelayModel) -> Engine:
    """Return what runs a loaded model: MXNet where it is installed, else Relay's interpreter.

    MXNet has no float16 matrix product on the CPU, so the interpreter runs models with float16
    weights too.

    Args:
        native: The model as the bridge loaded it.
        model: The same as Relay.

    Raises:
        CheckError: MXNet is there but refuses the model.
    """
    from serde.engine.interpreter import RelayEngine

    narrow = any(weight.dtype == "float16" for weight in model.params.values())
    if narrow or not is_installed("mxnet"):
        return RelayEngine(model)
    # Another process would not have what a user registered in this one.
    if any(node.op == "Custom" for node in native.graph.nodes):
        return RelayEngine(model)
    program = mxnet_program(native, model)
    try:
        return open_process(program) if can_start() else MxnetEngine(require("mxnet"), program)
    except MissingDependency:
        return RelayEngine(model)


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
        dynamic: Whether values decide shapes, which MXNet's executors cannot compute with.
    """

    text: str
    arg: Mapping[str, Weight]
    aux: Mapping[str, Weight]
    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    np_shape: bool
    dynamic: bool = False


def mxnet_program(native: MxnetModel, model: RelayModel) -> MxnetProgram:
    """Return what MXNet needs to run a loaded model.

    Args:
        native: The model as the bridge loaded it.
        model: The same as Relay.
    """
    from serde.engine.interpreter import declared_dtypes
    from serde.mxnet.operators import is_dynamic
    from serde.mxnet.symbol_json import symbol_text

    return MxnetProgram(
        text=symbol_text(native.graph),
        arg=native.arg,
        aux=native.aux,
        inputs=declared_dtypes(model),
        outputs=model.meta.outputs,
        np_shape="is_np_shape" in native.graph.attrs,
        dynamic=is_dynamic(native.graph),
    )


class MxnetEngine(Engine):
    """MXNet, on the CPU, in inference mode.

    Arguments that are neither inputs nor weights (labels of a loss head) are
    zeros of the shape that MXNet infers.
    """

    def __init__(self, mxnet: AnyValue, program: MxnetProgram) -> None:
        # Else MXNet logs a line on stderr for every graph that it binds.
        os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
        self.name = f"mxnet {mxnet.__version__}"
        self.inputs = program.inputs
        self.outputs = program.outputs
        self._mxnet = mxnet
        self._dynamic = program.dynamic
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
        """Bind the symbol to weights and inputs, and run it forward.

        What fails is run again with NumPy's shapes, of which a value inside may have one: without
        them one of no axis, or with a length of 0, is not known.
        """
        given = fit_inputs(self.name, self.inputs, inputs)
        np_shape = self._np_shape or any(map(_needs_np_shape, given.values()))
        util = self._mxnet.util
        try:
            with util.np_shape(np_shape):
                return self._forward(given, np_shape)
        except self._mxnet.MXNetError:
            if np_shape:
                raise
            with suppress(self._mxnet.MXNetError), util.np_shape(True):
                return self._forward(given, True)
            raise

    def _forward(self, inputs: Mapping[str, Array], np_shape: bool) -> list[Array]:
        """Run the symbol by an executor or, where values decide shapes, as Gluon does."""
        symbol = self._symbol
        known = {
            name: self._array(inputs[name]) if name in inputs else self._arg[name]
            for name in symbol.list_arguments()
            if name in inputs or name in self._arg
        }
        args = {**self._labels(known), **known}
        aux_states = {name: self._aux[name] for name in symbol.list_auxiliary_states()}
        if self._dynamic:
            values = {**args, **aux_states}
            found = self._run_block([values[name] for name in symbol.list_inputs()], np_shape)
            if found is not None:
                return found
        executor = symbol.bind(self._mxnet.cpu(), args=args, aux_states=aux_states, grad_req="null")
        return [value.asnumpy() for value in executor.forward(is_train=False)]

    def _run_block(self, values: Sequence[AnyValue], np_shape: bool) -> list[Array] | None:
        """Return the results of what runs Gluon's blocks, or None if an executor may have them.

        Of what values may leave empty only NumPy's shapes tell. Of operators without a gradient
        MXNet makes no block.
        """
        for semantics in (True,) if np_shape else (False, True):
            try:
                with self._mxnet.util.np_shape(semantics):
                    found = self._mxnet.nd.CachedOp(self._symbol)(*values)
                    return [
                        each.asnumpy() for each in (found if isinstance(found, list) else [found])
                    ]
            except self._mxnet.MXNetError:
                if np_shape:
                    raise
        return None

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


def open_process(program: MxnetProgram) -> ProcessEngine:
    """Return MXNet with a symbol and its weights, in a process of its own.

    Raises:
        CheckError: MXNet refuses the graph, or crashed.
        MissingDependency: It cannot be imported.
    """
    request = {
        "text": program.text,
        "arg": list(program.arg),
        "aux": list(program.aux),
        "inputs": dict(program.inputs),
        "outputs": list(program.outputs),
        "np_shape": program.np_shape,
        "dynamic": program.dynamic,
    }
    weights = [*program.arg.values(), *program.aux.values()]
    return ProcessEngine(
        "mxnet", answer_open, request, weights, optimizer="oneDNN", unoptimized=_WITHOUT_ONEDNN
    )


def answer_open(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> MxnetEngine:
    """Open MXNet in the process that was started for it."""
    weights = [ArrayWeight(value) for value in arrays]
    arg, aux = request["arg"], request["aux"]
    program = MxnetProgram(
        text=request["text"],
        arg=dict(zip(arg, weights[: len(arg)], strict=True)),
        aux=dict(zip(aux, weights[len(arg) :], strict=True)),
        inputs=request["inputs"],
        outputs=tuple(request["outputs"]),
        np_shape=request["np_shape"],
        dynamic=request["dynamic"],
    )
    mxnet = require("mxnet")
    for name in _CRASHES:  # MXNet takes them at import, and makes an exit of them.
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    return MxnetEngine(mxnet, program)


def _needs_np_shape(tensor: Weight | Array) -> bool:
    """Whether MXNet would take a shape, with a length of 0 or no axis, for one not known."""
    return 0 in tensor.shape or not tensor.shape
