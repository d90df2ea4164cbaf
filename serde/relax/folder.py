"""Folders that hold a module in TVMScript and its weights in a parameter file of TVM's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde.core.limits import MAX_SCRIPT_BYTES
from serde.core.weights import OpenFile, Weight
from serde.errors import FormatError
from serde.io.tvm_params import read_params, write_params
from serde.relax.text.reading import read_script
from serde.relay.text.containers import DLPACK_CODES

__all__ = ["PARAMS", "SCRIPT", "is_folder", "read_folder", "write_weights"]

SCRIPT: Final = "model.py"
"""The module in TVMScript."""

PARAMS: Final = "model.params"
"""The weights, as a parameter file of TVM's, by the names of variables."""


def is_folder(path: Path) -> bool:
    """Whether a path is a folder with a module and its parameters."""
    return path.is_dir() and (path / SCRIPT).is_file() and (path / PARAMS).is_file()


def read_folder(path: Path) -> tuple[AnyValue, dict[str, Weight]]:
    """Return the ``tvm.IRModule`` of a folder, and its weights, whose values are not read.

    Raises:
        FormatError: The folder is not as serde or TVM writes it.
        MissingDependency: TVM is not installed, or as a release that is not known.
    """
    for name in (SCRIPT, PARAMS):
        if not (path / name).is_file():
            raise FormatError(f"expected a file {name} in the folder, found none", path=path)
    with OpenFile.open(path / PARAMS) as opened:
        weights = read_params(opened, DLPACK_CODES)
    try:
        return read_script(_read_text(path / SCRIPT)), weights
    except FormatError as error:
        raise FormatError(str(error), path=path / SCRIPT) from error


def _read_text(path: Path) -> str:
    with OpenFile.open(path) as opened:
        if opened.size > MAX_SCRIPT_BYTES:
            limit = MAX_SCRIPT_BYTES
            raise FormatError(f"a text of {opened.size} bytes, at most {limit} are read")
        content = bytearray(opened.size)
        opened.read_into(content, 0)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FormatError("a text that is not UTF-8", offset=error.start) from None


def write_weights(weights: Mapping[str, Weight], path: Path) -> None:
    """Write weights to the parameter file of a folder.

    Raises:
        RelayError: TVM's files cannot hold an element type.
    """
    write_params(weights, path / PARAMS, codes=DLPACK_CODES)
