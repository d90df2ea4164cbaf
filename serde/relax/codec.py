"""Folders of TVMScript and parameters, and live modules."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any as AnyValue

from serde.errors import FormatError, OptionError
from serde.relax.folder import PARAMS, SCRIPT, is_folder, read_folder
from serde.relax.loading import from_live
from serde.relax.model import RelaxModel

__all__ = ["detect", "is_module", "load"]


def detect(path: Path) -> bool:
    """Whether `path` is a folder with a module in TVMScript and its parameters."""
    return is_folder(path)


def is_module(source: object) -> bool:
    """Whether `source` is a ``tvm.IRModule``; nothing is imported for that."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(source, getattr(tvm, "IRModule", ()))


def load(source: AnyValue, params: AnyValue, function: str | None = None) -> RelaxModel:
    """Return the module of a folder, or a live one.

    Args:
        source: A path, or a ``tvm.IRModule``.
        params: Weights that the module does not hold; see
            :func:`serde.relax.loading.from_live`.
        function: What to read, if not ``main``.

    Raises:
        FormatError: The folder is not as serde or TVM writes it.
        OptionError: `source` is nothing of the kind, or `params` are not those of the module.
    """
    if is_module(source):
        return from_live(source, params, function)
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"expected a folder or a tvm.IRModule, found {type(source).__name__}")
    path = Path(source)
    module, weights = read_folder(path)
    files = path / SCRIPT, path / PARAMS
    if params is not None:
        return replace(from_live(module, params, function), files=files)
    try:
        return replace(from_live(module, weights, function), files=files)
    except OptionError as error:
        raise FormatError(str(error), path=path) from error
