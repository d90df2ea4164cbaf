"""LiteRT's interpreter as what measures activations, in the process that was started for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import Array
from serde.engine.fitting import fit_inputs
from serde.engine.memory import peak_memory
from serde.tflite.engine import LitertEngine
from serde.tflite.interface import Interface

__all__ = ["RangeEngine", "answer_open"]


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> RangeEngine:
    """Open the interpreter in the process that was started for it."""
    own = {each.name: request[each.name] for each in fields(Interface)}
    return RangeEngine(request["path"], Interface(**own), request["tensors"])


class RangeEngine(LitertEngine):
    """Runs samples; its outputs are the least and greatest values of tensors so far, and memory.

    Args:
        path: The file.
        interface: What is run of it.
        tensors: Numbers of the tensors.
    """

    def __init__(self, path: str, interface: Interface, tensors: Sequence[int]) -> None:
        super().__init__(path, interface)
        self.outputs = ["low", "high", "peak"]
        self._interpreters.reverse()  # The optimised kernels are the faster ones.
        self._tensors = tensors
        self._low = np.full(len(tensors), np.inf)
        self._high = -self._low

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Take a sample, unless there are no inputs, and return the outputs."""
        if inputs:
            super().run(fit_inputs(self.name, self.inputs, inputs))
            for index, number in enumerate(self._tensors):
                value = self._interpreters[0].get_tensor(number)
                if value.size:
                    self._low[index] = np.minimum(self._low[index], value.min())
                    self._high[index] = np.maximum(self._high[index], value.max())
        return [self._low, self._high, np.array(peak_memory(), np.int64)]
