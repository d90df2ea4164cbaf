"""LiteRT's interpreter as the engine of checks, in a process of its own: some files crash it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, require, require_installed
from serde.engine.base import Engine, first_line
from serde.engine.process import ProcessEngine
from serde.errors import CheckError
from serde.tflite.interface import Interface, chosen_interface
from serde.tflite.model import Subgraph, TfliteModel
from serde.tflite.quantization import is_quantized
from serde.tflite.versions import MOVING_CODES

__all__ = ["answer_open", "open_file", "open_model"]

_AS_IT_IS: Final = MOVING_CODES | {"DEQUANTIZE", "QUANTIZE"}


def open_model(model: TfliteModel, inputs: Sequence[str], outputs: Sequence[str]) -> Engine:
    """Return what runs a loaded model: its file, or one that is written for that.

    Args:
        model: The model.
        inputs: Its inputs, by which the signature is found that was read.
        outputs: Its outputs.
    """
    keys = [None, *(each.key for each in model.signatures)]
    found = (chosen_interface(model, key) for key in keys)
    wanted = set(inputs), set(outputs)
    interface = next(each for each in found if (set(each.inputs), set(each.outputs)) == wanted)
    if model.path is not None:
        return open_file(Path(model.path), model, interface)
    from serde.tflite import writer

    with tempfile.TemporaryDirectory() as directory:
        path = writer.save(model, Path(directory) / "model.tflite")
        return open_file(path, model, interface)


def open_file(path: Path, model: TfliteModel, interface: Interface) -> Engine:
    """Return what runs a file.

    Args:
        path: The file.
        model: What it holds.
        interface: What is run of it.

    Raises:
        CheckError: LiteRT refuses it.
    """
    require_installed("ai_edge_litert")
    if interface.subgraph and interface.key is None:
        raise CheckError("LiteRT runs a graph besides the first by a signature of all its values")
    request = {"path": str(path.absolute()), **asdict(interface)}
    engine = ProcessEngine("litert", answer_open, request)
    engine.computes_on_codes = _yields_codes(model.subgraphs[interface.subgraph])
    return engine


def _yields_codes(graph: Subgraph) -> bool:
    """Whether an operator computes codes of numbers, other than by moving or by rounding them."""
    made = (
        graph.tensors[i]
        for each in graph.operators
        if each.name not in _AS_IT_IS
        for i in each.outputs
    )
    return any(is_quantized(tensor) for tensor in made)


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> LitertEngine:
    """Open the interpreter in the process that was started for it; ``tensors`` are measured."""
    own = {each.name: request[each.name] for each in fields(Interface)}
    made = _Ranges if "tensors" in request else LitertEngine
    return made(request["path"], Interface(**own), request.get("tensors", ()))


class LitertEngine(Engine):
    """LiteRT's interpreter with its reference kernels; the optimised ones where it lacks some.

    Whether it has all of them is known once the inputs have their shapes.

    Args:
        path: The file.
        interface: What is run of it.
        tensors: Numbers of tensors that are measured.

    Raises:
        CheckError: LiteRT does not open the file.
    """

    def __init__(self, path: str, interface: Interface, tensors: Sequence[int] = ()) -> None:
        self.name = "LiteRT"
        self.outputs = ["ranges"] if tensors else list(interface.outputs)
        self._tensors = tensors
        self._interface = interface
        self._interpreters = _opened(path)
        details = self._interpreters[0].get_tensor_details(interface.subgraph)
        dtypes = {each["index"]: np.dtype(each["dtype"]).name for each in details}
        self.inputs = {name: dtypes[index] for name, index in interface.inputs.items()}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs."""
        given = {name: np.asarray(inputs[name], dtype) for name, dtype in self.inputs.items()}
        run = self._run_signature if self._interface.subgraph else self._run
        while True:
            try:
                return run(self._interpreters[0], given)
            except (RuntimeError, ValueError) as error:
                if len(self._interpreters) == 1:
                    raise CheckError(f"LiteRT refuses the model: {first_line(error)}") from error
                del self._interpreters[0]

    def _run_signature(self, interpreter: AnyValue, given: Mapping[str, Array]) -> list[Array]:
        found = interpreter.get_signature_runner(self._interface.key)(**given)
        return [np.array(found[name]) for name in self.outputs]

    def _run(self, interpreter: AnyValue, given: Mapping[str, Array]) -> list[Array]:
        """Return the outputs of the first graph, which needs no names and may give empty ones."""
        own = self._interface
        for name, value in given.items():
            interpreter.resize_tensor_input(own.inputs[name], value.shape)
        interpreter.allocate_tensors()
        for name, value in given.items():
            interpreter.set_tensor(own.inputs[name], value)
        interpreter.invoke()
        details = {each["index"]: each for each in interpreter.get_output_details()}
        wanted = [details[index] for index in own.outputs.values()]
        return [
            np.array(interpreter.get_tensor(each["index"]))
            if each["shape"].all()
            else np.empty(each["shape"], each["dtype"])
            for each in wanted
        ]


class _Ranges(LitertEngine):
    """Runs samples; the output has of each tensor the least value, and the least negative one."""

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        super().run(inputs)
        values = map(self._interpreters[0].get_tensor, self._tensors)
        ends = [(x.min(), -x.max()) if x.size else (np.inf, np.inf) for x in values]
        return [np.array(ends, np.float64)]


def _opened(path: str) -> list[AnyValue]:
    """Return interpreters of a file, those to be tried first in front.

    Tensors keep their own memory: where RESHAPE shares that of its input, an operator behind it
    that works in place spoils what others still read (LiteRT 2.3, without XNNPACK).
    """
    package = require("ai_edge_litert.interpreter")
    kinds = package.OpResolverType
    fault, found = "", []
    for kind in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            one = package.Interpreter(
                model_path=path,
                experimental_op_resolver_type=kind,
                experimental_preserve_all_tensors=True,
            )
        except (RuntimeError, ValueError) as error:
            fault = first_line(error)
        else:
            found.append(one)
    if not found:
        raise CheckError(f"LiteRT refuses the model: {fault}")
    return found
