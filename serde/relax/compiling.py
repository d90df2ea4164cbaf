"""Modules of Relax to machine code, in a process of its own.

TVM may crash where it should refuse; there a crash is an answer. Weights that become constants
go there piece by piece; those that stay beside the code stay where they are.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Array, Weight, dataclass, replace
from serde.engine.process import call_in_process, can_start
from serde.errors import CheckError, CompileError, OptionError
from serde.io.pairs import mark_of
from serde.relax.framework import Framework, load
from serde.relax.interface import Interface, interface_of, with_interface
from serde.relax.live import share
from serde.relax.model import RelaxModel
from serde.relax.pipeline import apply_pipeline, host_target, optimise

__all__ = ["CompilableModel", "build", "compile_library", "read_target"]
_MOST_BYTES: Final = 2**31 - 2**24
"""Of constants: what is farther away the code of a library cannot reach."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompilableModel:
    """A module and what it is to be compiled for.

    Attributes:
        module: The module and its weights, which are parameters of ``main``.
        target: What it is compiled for, as :func:`read_target` returned it; empty if that is left
            to where it runs.
        freeze_vars: Whether weights become constants of the code; ``main`` takes them behind the
            inputs otherwise.
        cc: What links the library: a C++ compiler; one that TVM finds if left out.
        pipeline: What the module goes through in place of serde's own, see
            :func:`~serde.relax.pipeline.apply_pipeline`.
        tuning: The folder of records of tuning.
        trials: How many measurements are to be made for them.
    """

    module: RelaxModel
    target: str = ""
    freeze_vars: bool = False
    cc: str | None = None
    pipeline: AnyValue = None
    tuning: str | None = None
    trials: int = 0

    @property
    def beside(self) -> Mapping[str, Weight]:
        """The weights that stay beside the code, by their names, in order."""
        names = self.module.names
        weights = {} if self.freeze_vars else self.module.weights
        return {names.get(own, own): weight for own, weight in weights.items()}


def read_target(target: AnyValue) -> str:
    """Return a target as text that TVM reads.

    Args:
        target: A kind or tag (``"llvm"``, ``"raspberry-pi/4b-aarch64"``), a mapping such as
            ``{"kind": "llvm", "mcpu": "skylake"}``, also as JSON, or a ``tvm.target.Target``;
            ``"host"`` is the processor at hand.

    Raises:
        MissingDependency: TVM is not installed.
        OptionError: TVM knows no such target.
    """
    framework = load()
    text = json.dumps(dict(target)) if isinstance(target, Mapping) else str(target)
    if text == "host":
        return host_target()
    try:
        framework.target(text)
    except Exception as error:
        known = f"TVM {framework.version} knows no target {text!r}"
        raise OptionError(f"{known}: {framework.last_line(error)}") from error
    return text


def build(framework: Framework, module: AnyValue, target: str) -> AnyValue:
    """Return the executable of a module.

    Raises:
        CheckError: TVM refuses the module.
    """
    try:
        return framework.tvm.compile(module, target=framework.target(target))
    except Exception as error:
        raise CheckError(_refusal(framework, error)) from error


def _refusal(framework: Framework, error: Exception) -> str:
    return f"tvm {framework.version} refuses the module: {framework.last_line(error)}"


def compile_library(model: CompilableModel, path: Path) -> Interface:
    """Compile a model to a library.

    Args:
        model: The model.
        path: The file to make.

    Raises:
        CompileError: TVM refuses the module, crashes, or cannot link.
        MissingDependency: It is not installed, or as a release that is not known.
    """
    framework = load()
    target = model.target or "llvm"
    interface = interface_of(model.module, target, freeze_vars=model.freeze_vars)
    frozen = model.module.weights if model.freeze_vars else {}
    size = sum(each.nbytes for each in frozen.values())
    if size > _MOST_BYTES:
        reason = f"{size} bytes of weights, and a library holds {_MOST_BYTES} as constants"
        raise CompileError(f"{reason}: leave freeze_vars out")
    module = model.module.module
    if model.pipeline is not None:
        module = apply_pipeline(module, model.pipeline, target)
    module = framework.tvm.ir.save_json(module)
    interface = replace(interface, mark=mark_of(module.encode()))
    request = {
        "module": module,
        "frozen": list(frozen),
        "interface": interface.as_text(),
        "target": target,
        "path": os.path.abspath(path),
        "cc": model.cc,
        "own": model.pipeline is None,
        "tuning": model.tuning and os.path.abspath(model.tuning),
        "trials": model.trials,
    }
    weights = list(frozen.values())
    try:
        if can_start():
            failed = call_in_process("tvm", answer_compile, request, weights, keep=True)
        else:
            failed = answer_compile(request, [each.array() for each in weights])
    except CheckError as error:
        raise CompileError(str(error)) from error
    for each in failed:
        _LOG.info("left as TVM has it: %s", each)
    return interface


def answer_compile(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> list[str]:
    """Compile and link a module in the process that was started for it.

    Returns:
        What could not be made faster, and why.

    Raises:
        CheckError: TVM refuses the module, or cannot link.
    """
    framework = load()
    module = framework.tvm.ir.load_json(request["module"])
    values = dict(zip(request["frozen"], (share(framework, each) for each in arrays), strict=True))
    if values:
        module = framework.relax.transform.BindParams("main", values)(module)
    module = with_interface(framework, module, request["interface"])
    executable, failed = _build_fast(framework, module, request)
    given = {} if request["cc"] is None else {"cc": request["cc"]}
    try:
        executable.export_library(request["path"], **given)
    except Exception as error:
        told = framework.last_line(error)
        raise CheckError(
            f"tvm {framework.version}: the library for {request['target']} cannot be linked: "
            f"{told} (cc names a C++ compiler for the target)"
        ) from error
    return failed


def _build_fast(
    framework: Framework, module: AnyValue, request: Mapping[str, AnyValue]
) -> tuple[AnyValue, list[str]]:
    """Return the executable, and what could not be made faster."""
    text = request["target"]
    if not request["own"]:
        return build(framework, module, text), []
    target = framework.target(text)
    try:
        made = optimise(framework, module, target, request["tuning"], request["trials"])
    except Exception as error:
        raise CheckError(_refusal(framework, error)) from error
    plain, better, failed = made
    functions = dict(plain.functions_items())
    try:
        return build(framework, framework.tvm.IRModule({**functions, **better}), text), failed
    except CheckError:
        for variable, function in better.items():
            alone = function.with_attr("global_symbol", variable.name_hint)
            try:
                framework.tvm.compile(framework.tvm.IRModule({variable: alone}), target=target)
                functions[variable] = function
            except Exception as error:
                failed.append(f"{variable.name_hint}: {framework.last_line(error)}")
        return build(framework, framework.tvm.IRModule(functions), text), failed
