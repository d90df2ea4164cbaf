"""Folders of TVMScript and parameters, and live modules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde.errors import Unsupported
from serde.relax.loading import from_live
from serde.relax.model import RelaxModel

__all__ = ["PARAMS", "SCRIPT", "detect", "is_module", "load"]

SCRIPT: Final = "model.py"
"""The module in TVMScript."""

PARAMS: Final = "model.params"
"""The weights, as a parameter file of TVM's."""


def detect(path: Path) -> bool:
    """Whether `path` is a folder with a module in TVMScript and its parameters."""
    return path.is_dir() and (path / SCRIPT).is_file() and (path / PARAMS).is_file()


def is_module(source: object) -> bool:
    """Whether `source` is a ``tvm.IRModule``; nothing is imported for that."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(source, getattr(tvm, "IRModule", ()))


def load(source: AnyValue, params: AnyValue, function: str = "") -> RelaxModel:
    """Return the module of a folder, or a live one.

    Args:
        source: A path, or a ``tvm.IRModule``.
        params: Weights that the module does not hold; see
            :func:`serde.relax.loading.from_live`.
        function: What to read, if not ``main``.

    Raises:
        FormatError: The folder is not as serde or TVM writes it.
    """
    if is_module(source):
        return from_live(source, params, function)
    raise Unsupported("not read")
