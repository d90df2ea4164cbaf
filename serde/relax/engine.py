"""TVM as an engine of checks: compiled for the processor, run in a process of its own.

TVM may crash where it should refuse; there a crash is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.engine.base import Engine
from serde.engine.fitting import fit_inputs
from serde.engine.process import ProcessEngine, can_start
from serde.errors import CheckError
from serde.relax.framework import load
from serde.relax.model import RelaxModel
from serde.weights import Array

__all__ = ["RelaxEngine", "open_model"]


def open_model(model: RelaxModel) -> Engine:
    """Return what compiles and runs a module.

    Raises:
        CheckError: TVM refuses the module.
        MissingDependency: It is not installed, or as a release that is not known.
    """
    framework = load()
    request = {
        "module": framework.tvm.ir.save_json(model.module),
        "inputs": list(model.inputs),
        "outputs": list(model.outputs),
    }
    weights = list(model.weights.values())
    if can_start():
        return ProcessEngine("tvm", answer_open, request, weights)
    return answer_open(request, [each.array() for each in weights])


def answer_open(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> Engine:
    """Compile a module in the process that was started for it."""
    module = load().tvm.ir.load_json(request["module"])
    return RelaxEngine(module, request["inputs"], request["outputs"], arrays)


class RelaxEngine(Engine):
    """TVM's virtual machine.

    Args:
        module: A module whose ``main`` takes the inputs and then the weights.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        weights: The weights, in order.

    Raises:
        CheckError: TVM refuses the module.
    """

    def __init__(
        self,
        module: AnyValue,
        inputs: Sequence[str],
        outputs: Sequence[str],
        weights: Sequence[Array],
    ) -> None:
        framework = load()
        self._tvm = framework.tvm
        self.name = f"tvm {framework.version}"
        params = module["main"].params[: len(inputs)]
        types = [framework.type_of(each) for each in params]
        self.inputs = {name: str(each.dtype) for name, each in zip(inputs, types, strict=True)}
        self.outputs = outputs
        try:
            compiled = self._tvm.compile(module, target="llvm")
            self._machine = framework.relax.VirtualMachine(compiled, self._tvm.cpu())
        except Exception as error:
            lines = str(error).strip().splitlines()
            raise CheckError(f"{self.name} refuses the module: {lines[-1:] or error!r}") from error
        self._weights = [self._tvm.runtime.tensor(np.asarray(each, order="C")) for each in weights]

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run ``main``."""
        fed = fit_inputs(self.name, self.inputs, inputs)
        given = [self._tvm.runtime.tensor(np.asarray(each, order="C")) for each in fed.values()]
        found = self._machine["main"](*given, *self._weights)
        if not hasattr(found, "numpy"):
            return [each.numpy() for each in found]
        return [found.numpy()]
