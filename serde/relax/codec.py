"""Folders of TVMScript and parameters, and live modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relax.folder import PARAMS, SCRIPT, is_folder, read_folder
from serde.relax.model import RelaxModel
from serde.relax.signature import describe

__all__ = ["detect", "is_module", "load"]


def detect(path: Path) -> bool:
    """Whether `path` is a folder with a module in TVMScript and its parameters."""
    return is_folder(path)


def is_module(source: object) -> bool:
    """Whether `source` is a ``tvm.IRModule``; nothing is imported for that."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(source, getattr(tvm, "IRModule", ()))


def load(source: AnyValue, params: Mapping[str, AnyValue] | None) -> RelaxModel:
    """Return the module of a folder, or a live one.

    Raises:
        FormatError: The folder is not as serde or TVM writes it.
    """
    if is_module(source):
        raise Unsupported("not read")
    path = Path(source)
    module, weights = read_folder(path)
    return describe(module, weights, [path / SCRIPT, path / PARAMS])
