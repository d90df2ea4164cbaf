"""Folders of TVMScript and parameters, read and written whole, and live modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core.limits import MAX_SCRIPT_BYTES
from serde.core.weights import OpenFile, Weight
from serde.errors import FormatError, OptionError
from serde.io.directories import atomic_directory, check_directory
from serde.io.tvm_params import read_params, write_params
from serde.relax.loading import from_live
from serde.relax.model import RelaxModel
from serde.relax.text.reading import read_script
from serde.relay.text.containers import DLPACK_CODES

__all__ = [
    "PARAMS", "SCRIPT", "check_target", "detect", "is_folder", "is_module", "load",
    "read_folder", "save", "write_weights",
]  # fmt: skip

SCRIPT: Final = "model.py"
"""The module in TVMScript."""

PARAMS: Final = "model.params"
"""The weights, as a parameter file of TVM's, by the names of variables."""


def is_folder(path: Path) -> bool:
    """Whether a path is a folder with a module and its parameters, unless it may have none."""
    named = path.name.endswith("_relax") or (path / PARAMS).is_file()
    return named and path.is_dir() and (path / SCRIPT).is_file()


def read_folder(path: Path) -> tuple[AnyValue, dict[str, Weight]]:
    """Return the ``tvm.IRModule`` of a folder, and its weights, whose values are not read.

    Without a file of weights it has none.

    Raises:
        FormatError: The folder is not as serde or TVM writes it.
        MissingDependency: TVM is not installed, or as a release that is not known.
    """
    if not (path / SCRIPT).is_file():
        raise FormatError(f"expected a file {SCRIPT} in the folder, found none", path=path)
    weights: dict[str, Weight] = {}
    if (path / PARAMS).is_file():
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
    files = tuple(filter(Path.is_file, (path / SCRIPT, path / PARAMS)))
    if params is not None:
        return replace(from_live(module, params, function), files=files)
    try:
        return replace(from_live(module, weights, function), files=files)
    except OptionError as error:
        found = "" if len(files) == 2 else f"expected a file {PARAMS} in the folder, found none: "
        raise FormatError(f"{found}{error}", path=path) from error


def check_target(
    path: str | os.PathLike[str], sources: Sequence[Path] = (), _options: object = None
) -> None:
    """Refuse a path at which no folder can be written.

    Raises:
        OptionError: Something else is there, or it holds a source.
    """
    check_directory(path, sources=sources, is_package=is_replaceable)


def is_replaceable(path: Path) -> bool:
    """Whether a directory holds a module and its parameters, and nothing else."""
    return {each.name for each in path.iterdir()} == {SCRIPT, PARAMS}


def save(
    model: RelaxModel,
    path: Path,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a model; the same one always gives the same bytes."""
    with atomic_directory(
        path, sources=sources, is_package=is_replaceable, before_commit=before_commit
    ) as root:
        (root / SCRIPT).write_bytes(model.module.script(show_meta=True).encode())
        write_weights(model.weights, root)
    return path
