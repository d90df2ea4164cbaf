"""LiteRT's interpreter as the engine of checks, in a process of its own: some files crash it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

import numpy as np

from serde.core.optional import require, require_installed
from serde.core.weights import Array
from serde.engine.base import Engine, first_line
from serde.engine.process import ProcessEngine
from serde.errors import CheckError
from serde.tflite.interface import Interface, chosen_interface
from serde.tflite.model import TfliteModel

__all__ = ["answer_open", "open_file", "open_model"]


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
        return open_file(Path(model.path), interface)
    from serde.tflite import writer

    with tempfile.TemporaryDirectory() as directory:
        return open_file(writer.save(model, Path(directory) / "model.tflite"), interface)


def open_file(path: Path, interface: Interface) -> Engine:
    """Return what runs a file.

    Args:
        path: The file.
        interface: What is run of it.

    Raises:
        CheckError: LiteRT refuses it.
    """
    require_installed("ai_edge_litert")
    request = {
        "path": str(path.absolute()),
        "key": interface.key,
        "inputs": list(interface.inputs),
        "outputs": list(interface.outputs),
    }
    return ProcessEngine("litert", answer_open, request)


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> LitertEngine:
    """Open the interpreter in the process that was started for it."""
    return LitertEngine(request["path"], request["key"], request["inputs"], request["outputs"])


class LitertEngine(Engine):
    """LiteRT's interpreter with its reference kernels; the optimised ones where it lacks some."""

    def __init__(
        self, path: str, key: str | None, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self.name = "LiteRT"
        self._interpreter = _allocated(path)
        self._runner = None if key is None else self._interpreter.get_signature_runner(key)
        self._places = self._interpreter.get_input_details()
        self.outputs = list(outputs)
        details: Sequence[AnyValue] = self._places
        if self._runner is not None:
            told = self._runner.get_input_details()
            details = [told[name] for name in inputs]
        self.inputs = {
            name: np.dtype(each["dtype"]).name for name, each in zip(inputs, details, strict=True)
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs."""
        given = {name: np.asarray(inputs[name], dtype) for name, dtype in self.inputs.items()}
        if self._runner is not None:
            found = self._runner(**given)
            return [np.array(found[name]) for name in self.outputs]
        for each, value in zip(self._places, given.values(), strict=True):
            self._interpreter.resize_tensor_input(each["index"], value.shape)
        self._interpreter.allocate_tensors()
        for each, value in zip(self._places, given.values(), strict=True):
            self._interpreter.set_tensor(each["index"], value)
        self._interpreter.invoke()
        places = self._interpreter.get_output_details()
        return [self._interpreter.get_tensor(each["index"]).copy() for each in places]


def _allocated(path: str) -> AnyValue:
    """Return an interpreter that has all kernels of a file.

    Tensors keep their own memory: where RESHAPE shares that of its input, an operator behind it
    that works in place spoils what others still read (LiteRT 2.3, without XNNPACK).

    Raises:
        CheckError: There is none.
    """
    package = require("ai_edge_litert.interpreter")
    kinds = package.OpResolverType
    fault = ""
    for resolver in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            found = package.Interpreter(
                model_path=path,
                experimental_op_resolver_type=resolver,
                experimental_preserve_all_tensors=True,
            )
            found.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            fault = first_line(error)
        else:
            return found
    raise CheckError(f"LiteRT refuses the model: {fault}")
