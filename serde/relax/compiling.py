"""Modules of Relax to machine code, in a process of its own.

TVM may crash where it should refuse; there a crash is an answer. Weights that become constants
go there piece by piece; those that stay beside the code stay where they are.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Array, Weight, dataclass, replace
from serde.engine.process import call_in_process, can_start, start_ahead
from serde.errors import CheckError, CompileError, OptionError
from serde.io.pairs import mark_of
from serde.relax.framework import Framework, load
from serde.relax.interface import Interface, interface_of, with_interface
from serde.relax.live import share
from serde.relax.model import RelaxModel
from serde.relax.options import LibraryExportOptions
from serde.relax.pipeline import apply_pipeline, compile_fast, host_target

__all__ = ["CompilableModel", "build", "compile_library", "compile_soon", "read_target"]

_MOST_BYTES: Final = 2**31 - 2**24
"""Of constants: what is farther away the code of a library cannot reach."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompilableModel:
    """A module and what it is to be compiled for.

    Attributes:
        module: The module and its weights, which are parameters of ``main``.
        options: How it is compiled.
        target: What for, as :func:`read_target` returned it; None for what is usual.
    """

    module: RelaxModel
    options: LibraryExportOptions
    target: str | None

    @property
    def beside(self) -> Mapping[str, Weight]:
        """The weights that stay beside the code, by their names, in order."""
        names = self.module.names
        weights = {} if self.options.freeze_vars else self.module.weights
        return {names.get(own, own): weight for own, weight in weights.items()}


def read_target(target: AnyValue) -> str:
    """Return a target as text that TVM reads.

    Args:
        target: A kind or tag (``"llvm"``, ``"raspberry-pi/4b-aarch64"``), a mapping such as
            ``{"kind": "llvm", "mcpu": "skylake"}``, also as JSON, or a ``tvm.target.Target``;
            ``"host"`` is the processor at hand; None is any of its family.

    Raises:
        MissingDependency: TVM is not installed.
        OptionError: TVM knows no such target.
    """
    framework = load()
    target = "llvm" if target is None else target
    text = json.dumps(dict(target)) if isinstance(target, Mapping) else str(target)
    if text == "host":
        return host_target()
    try:
        framework.target(text)
    except Exception as error:
        known = f"TVM {framework.version} knows no target {text!r}"
        raise OptionError(f"{known}: {framework.last_line(error)}") from error
    return text


def build(
    framework: Framework, module: AnyValue, target: str, make: Callable[..., AnyValue] | None = None
) -> AnyValue:
    """Return the executable of a module, by TVM if nothing else makes it.

    Raises:
        CheckError: TVM refuses the module.
    """
    try:
        return (make or framework.tvm.compile)(module, target=framework.target(target))
    except Exception as error:
        told = framework.last_line(error)
        raise CheckError(f"tvm {framework.version} refuses the module: {told}") from error


def compile_soon() -> None:
    """Have the process that compiles import TVM while this one does, or converts the model."""
    if find_spec("tvm") is not None:
        start_ahead("tvm", load)


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
    target, options = read_target(model.target), model.options
    interface = interface_of(model.module, target, freeze_vars=options.freeze_vars)
    frozen = model.module.weights if options.freeze_vars else {}
    size = sum(each.nbytes for each in frozen.values())
    if size > _MOST_BYTES:
        reason = f"{size} bytes of weights, and a library holds {_MOST_BYTES} as constants"
        raise CompileError(f"{reason}: leave freeze_vars out")
    module = model.module.module
    if options.pipeline is not None:
        module = apply_pipeline(module, options.pipeline, target)
    module = framework.tvm.ir.save_json(module)
    interface = replace(interface, mark=mark_of(module.encode()))
    request = {
        "module": module,
        "frozen": list(frozen),
        "interface": interface.as_text(),
        "target": target,
        "path": os.path.abspath(path),
        "cc": options.cc,
        "own": options.pipeline is None,
        "tuning": options.tuning and os.path.abspath(options.tuning),
        "trials": options.trials,
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
    failed: list[str] = []
    make = partial(compile_fast, framework, failed, request["tuning"], request["trials"])
    executable = build(framework, module, request["target"], make if request["own"] else None)
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
