"""TVM as an engine of checks: compiled for the processor, run in a process of its own.

TVM may crash where it should refuse; there a crash is an answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core.weights import Array
from serde.engine.base import Engine
from serde.engine.fitting import fit_inputs
from serde.engine.process import ProcessEngine, can_start
from serde.errors import CheckError, FormatError, RelayError
from serde.relax.compiling import build
from serde.relax.framework import load
from serde.relax.live import from_results, share, to_argument
from serde.relax.model import RelaxModel
from serde.relax.runnable import Runnable

__all__ = ["LibraryEngine", "RelaxEngine", "open_file", "open_model"]

_TARGET: Final = "SERDE_TVM_TARGET"
"""Where the process of an engine finds the target that it compiles for; ``llvm`` if not set."""


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
        return ProcessEngine(
            "tvm",
            answer_open,
            request,
            weights,
            optimizer="LLVM's optimisations",
            unoptimized={_TARGET: json.dumps({"kind": "llvm", "opt-level": 0})},
        )
    return answer_open(request, [each.array() for each in weights])


def answer_open(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> Engine:
    """Compile a module in the process that was started for it."""
    module = load().tvm.ir.load_json(request["module"])
    target = os.environ.get(_TARGET, "llvm")
    return RelaxEngine(module, request["inputs"], request["outputs"], arrays, target=target)


def open_file(path: Path) -> Engine:
    """Return what runs a compiled library, in a process of its own.

    Raises:
        CheckError: TVM cannot load it.
    """
    request = {"path": os.fspath(path)}
    if can_start():
        return ProcessEngine("tvm", answer_open_file, request)
    return answer_open_file(request, ())


def answer_open_file(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> Engine:
    """Load a library in the process that was started for it."""
    return LibraryEngine(Path(request["path"]))


class RelaxEngine(Engine):
    """TVM's virtual machine.

    Args:
        module: A module whose ``main`` takes the inputs and then the weights.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        weights: The weights, in order; their memory is shared where it is aligned.
        target: What the module is compiled for.

    Raises:
        CheckError: TVM refuses the module.
    """

    def __init__(
        self,
        module: AnyValue,
        inputs: Sequence[str],
        outputs: Sequence[str],
        weights: Sequence[Array],
        *,
        target: str = "llvm",
    ) -> None:
        framework = load()
        self._framework = framework
        self.name = f"tvm {framework.version}"
        self._main = module["main"]
        params = self._main.params[: len(inputs)]
        self._types = [framework.type_of(each) for each in params]
        dtypes = [str(getattr(each, "dtype", "int64")) for each in self._types]
        self.inputs = dict(zip(inputs, dtypes, strict=True))
        self.outputs = outputs
        executable = build(framework, module, target)
        self._machine = framework.relax.VirtualMachine(executable, framework.tvm.cpu())
        self._weights = [share(framework, each) for each in weights]

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run ``main``."""
        fed = fit_inputs(self.name, self.inputs, inputs)
        try:
            pairs = zip(fed.values(), self._types, strict=True)
            given = [to_argument(self._framework, *each) for each in pairs]
            found = self._machine["main"](*given, *self._weights)
            return from_results(self._framework, found, self._main)
        except Exception as error:
            raise CheckError(f"{self.name} failed: {self._framework.last_line(error)}") from error


class LibraryEngine(Engine):
    """A compiled library.

    Args:
        path: Where it is.

    Raises:
        CheckError: TVM cannot load it.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._runnable = Runnable.load(path)
        except FormatError as error:
            raise CheckError(str(error)) from error
        interface = self._runnable.interface
        self.name = f"tvm {load().version}"
        self.inputs = {each.name: each.dtype or "" for each in interface.inputs}
        self.outputs = self._runnable.outputs

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run ``main``."""
        try:
            return self._runnable.run(fit_inputs(self.name, self.inputs, inputs))
        except RelayError as error:
            raise CheckError(str(error)) from error
