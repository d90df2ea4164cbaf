"""LiteRT's interpreter as the engine of checks, in a process of its own: some files crash it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.optional import require, require_installed
from serde.core.weights import Array
from serde.engine.base import Engine, first_line
from serde.engine.process import ProcessEngine
from serde.errors import CheckError

__all__ = ["answer_open", "open_file"]


def open_file(path: str, key: str | None, names: Mapping[str, Sequence[str]]) -> Engine:
    """Return what runs a file.

    Args:
        path: The file.
        key: The signature that is run; None for the first graph.
        names: What its inputs and outputs are called, by ``"inputs"`` and ``"outputs"``.
    """
    require_installed("ai_edge_litert")
    request = {"path": os.path.abspath(path), "key": key, **{k: list(v) for k, v in names.items()}}
    return ProcessEngine("litert", answer_open, request)


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> LitertEngine:
    """Open the interpreter in the process that was started for it."""
    return LitertEngine(request["path"], request["key"], request["inputs"], request["outputs"])


class LitertEngine(Engine):
    """LiteRT's interpreter with its reference kernels; the optimised ones where it lacks some."""

    def __init__(
        self, path: str, key: str | None, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        package = require("ai_edge_litert.interpreter")
        self.name = "LiteRT"
        kinds = package.OpResolverType
        for resolver in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
            try:
                self._interpreter = package.Interpreter(
                    model_path=path, experimental_op_resolver_type=resolver
                )
                self._interpreter.allocate_tensors()
                break
            except (RuntimeError, ValueError) as error:
                fault = first_line(error)
        else:
            raise CheckError(f"{self.name} refuses the model: {fault}")
        self._names = list(inputs)
        details = self._interpreter.get_input_details()
        self.inputs = {
            name: np.dtype(each["dtype"]).name
            for name, each in zip(self._names, details, strict=True)
        }
        self.outputs = list(outputs)

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs."""
        details = self._interpreter.get_input_details()
        for each, name in zip(details, self._names, strict=True):
            if list(each["shape"]) != list(inputs[name].shape):
                self._interpreter.resize_tensor_input(each["index"], inputs[name].shape)
        self._interpreter.allocate_tensors()
        for each, name in zip(details, self._names, strict=True):
            self._interpreter.set_tensor(each["index"], np.asarray(inputs[name], each["dtype"]))
        self._interpreter.reset_all_variables()
        self._interpreter.invoke()
        return [
            self._interpreter.get_tensor(each["index"]).copy()
            for each in self._interpreter.get_output_details()
        ]
