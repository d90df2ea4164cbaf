"""Where programs of TorchScript come from: archives, script modules and functions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import pause_garbage_collection, require
from serde.engine.base import first_line
from serde.errors import FormatError, OptionError
from serde.torch.model import TRAINING_NOTE, TorchModel
from serde.torch.releases import without_deprecations
from serde.torch.script.reader import Reader
from serde.torch.script.vetting import draw_calls

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["from_script", "is_script", "load_file"]

_REFUSALS: Final = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What exceptions of PyTorch's C++ become in Python."""


def is_script(source: object) -> bool:
    """Whether `source` is a script module or a script function; imports nothing."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(source, (torch.jit.ScriptModule, torch.jit.ScriptFunction))


def load_file(path: Path, options: TorchImportOptions) -> TorchModel:
    """Return the program of an archive of TorchScript.

    Raises:
        FormatError: PyTorch cannot load it.
        MissingDependency: PyTorch is not installed.
        OptionError: An option does not fit its inputs.
    """
    torch = require("torch")
    with without_deprecations():
        try:
            unit = torch._C.CompilationUnit()
            loaded = torch._C.import_ir_module(unit, str(path), torch.device("cpu"), {}, False)
            module = torch.jit._recursive.wrap_cpp_module(loaded)
            instances = sum(1 for _ in module.modules())
            entry = f"{loaded._type().qualified_name()}.forward"
            draw_calls(unit.find_function, entry, instances)
        except _REFUSALS as error:
            raise FormatError(f"PyTorch cannot load it: {first_line(error)}", path=path) from error
    trains = any(getattr(each, "training", False) for each in module.modules())
    try:
        found = from_script(module.eval(), options, path)
        if trains and _reads_mode(module):
            found.notes = [TRAINING_NOTE, *found.notes]
        return found
    except (
        RuntimeError,
        UnicodeDecodeError,
    ) as error:  # Of PyTorch's C++, which looks at much of it only when asked.
        raise FormatError(f"PyTorch cannot read it: {first_line(error)}", path=path) from error


@pause_garbage_collection()
def from_script(
    source: AnyValue, options: TorchImportOptions, path: Path | None = None
) -> TorchModel:
    """Return a script module or function, whose weights stay where they are.

    Args:
        source: A scripted or traced module, or such a function.
        options: Examples or shapes of inputs that are lists, and of optional ones that are given.
        path: The file that it was read from.

    Raises:
        FormatError: Its graph holds what no program does.
        OptionError: It has no method `forward`, or an option does not fit its inputs.
    """
    torch = require("torch")
    with without_deprecations():
        try:
            graph = source.inlined_graph
            schema = source.schema if _is_function(source) else source.forward.schema
        except (AttributeError, RuntimeError) as error:
            raise OptionError("a script module without a method forward is no model") from error
        torch._C._jit_pass_inline_fork_wait(graph)
        module = None if _is_function(source) else source._c
        return Reader(graph, schema, module, options).model(
            version=torch.__version__, path=path, live=source
        )


def _reads_mode(module: AnyValue) -> bool:
    """Whether a module asks for its mode; one that was traced is as it was then."""
    graph = module.inlined_graph  # Its nodes live as long as it does.
    return any(x.s("name") == "training" for x in graph.findAllNodes("prim::GetAttr", True))


def _is_function(source: AnyValue) -> bool:
    return isinstance(source, require("torch").jit.ScriptFunction)
