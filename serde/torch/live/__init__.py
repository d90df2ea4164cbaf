"""Live objects of PyTorch as programs: exported programs, script modules, modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any as AnyValue

from serde.errors import OptionError
from serde.torch.releases import release_notes
from serde.torch.script import from_script, is_script
from serde.torch.unread import ADVICE, holds_tensors

if TYPE_CHECKING:
    from serde.torch.model import TorchModel
    from serde.torch.options import TorchImportOptions

__all__ = ["is_live", "load"]


def is_live(source: object) -> bool:
    """Whether `source` is a module, a script module or an exported program; imports nothing.

    So is a dict of tensors, of which loading says why it is not read.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(source, torch.nn.Module) or holds_tensors(source, torch.Tensor):
        return True
    return is_script(source) or _is_program(source)


def load(source: AnyValue, options: TorchImportOptions) -> TorchModel:
    """Return the program of a live object.

    Raises:
        FormatError: It holds what is no program.
        OptionError: An option does not fit it, or it is a module of which nobody tells the inputs.
    """
    from serde.torch.checkpoint.reader import from_live
    from serde.torch.live.exported import from_exported_program
    from serde.torch.live.module import from_module

    if isinstance(source, Mapping):
        raise OptionError(f"{type(source).__name__} of tensors: {ADVICE}")
    if options.task is not None or options.raw_audio:
        found = from_live(source, options)
    elif _is_program(source):
        found = from_exported_program(source)
    else:
        read = from_script if is_script(source) else from_module
        found = read(source, options)
    return replace(found, notes=[*release_notes(), *found.notes])


def _is_program(source: object) -> bool:
    kind = type(source)
    return kind.__name__ == "ExportedProgram" and kind.__module__.startswith("torch.export")
