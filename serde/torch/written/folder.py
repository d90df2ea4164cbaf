"""The folder that a written module is: source, weights and facts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Weight, expect, parse_json
from serde.errors import FormatError, Unsupported
from serde.io.atomic import write_all, write_weight
from serde.io.contained import read_small
from serde.io.directories import atomic_directory, check_directory
from serde.torch.options import TorchExportOptions
from serde.torch.program import TorchProgram
from serde.torch.safetensors import DTYPES
from serde.torch.written.archive import save_archive
from serde.torch.written.source import Module, module_of, write_source

__all__ = ["CONFIG", "SOURCE", "WEIGHTS", "check_folder", "is_folder", "save"]

SOURCE: Final = "model.py"
WEIGHTS: Final = "model.safetensors"
CONFIG: Final = "config.json"

_CONFIG_BYTES: Final = 2**24
_OWN: Final = frozenset((SOURCE, WEIGHTS, CONFIG, "__pycache__"))
_FACTS: Final = frozenset(("source", "inputs", "outputs", "labels", "weights"))
"""What a config.json holds; metadata, too, where there are any."""

_ORDER: Final = (
    "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16", "BF16", "I32", "U32", "F32",
    "C64", "F64", "I64", "U64",
)  # fmt: skip
"""Dtypes in the library's order; the last of them comes first in a file."""


def is_folder(path: Path) -> bool:
    """Whether a directory is one that was written here."""
    if not path.is_dir():
        return False
    there = set(os.listdir(path))
    if not there <= _OWN or not {SOURCE, WEIGHTS, CONFIG} <= there:
        return False
    try:
        config = parse_json(read_small(path / CONFIG, _CONFIG_BYTES).decode("utf-8"))
    except (FormatError, ValueError):
        return False
    # Others have files of these names, too.
    return isinstance(config, dict) and set(config) - {"metadata"} == _FACTS


def check_folder(
    path: str | os.PathLike[str], *, sources: Sequence[Path] = (), overwrite: bool = False
) -> None:
    """Refuse a path at which no folder can be written.

    Raises:
        OptionError: Something else is there, or it holds a source.
    """
    check_directory(path, sources=sources, is_package=is_folder)


def save(
    program: TorchProgram,
    path: Path,
    options: TorchExportOptions,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a folder, or for ``.pt2`` and ``.pt`` an archive of the live module.

    The same program always gives the same bytes.

    Raises:
        OptionError: The path cannot be used.
        FormatError: A file that weights lie in changed.
        Unsupported: PyTorch does not take the module for an archive.
    """
    if path.suffix in (".pt2", ".pt"):
        return save_archive(program, path, sources, before_commit)
    module = module_of(program)
    made = atomic_directory(
        path, sources=sources, is_package=is_folder, before_commit=before_commit
    )
    with made as root:
        write_weights(
            root / WEIGHTS, {module.places[name]: each for name, each in program.weights.items()}
        )
        # Half of a surrogate pair, as JSON of a source may have it, is escaped as JSON has it.
        (root / CONFIG).write_bytes(_config(program, module).encode("utf-8", "backslashreplace"))
        (root / SOURCE).write_text(write_source(program, module), encoding="utf-8")
    return path


def write_weights(path: Path, weights: Mapping[str, Weight]) -> None:
    """Write a file of safetensors, in pieces; the largest dtypes first, so that all are aligned.

    Raises:
        Unsupported: Safetensors has not the dtype of one.
        FormatError: A file that one lies in changed.
    """
    codes = {name: _code(name, each) for name, each in weights.items()}
    ordered = sorted(weights, key=lambda name: (-_ORDER.index(codes[name]), name))
    header: dict[str, AnyValue] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name in ordered:
        stop = start + weights[name].nbytes
        header[name] = {
            "dtype": codes[name], "shape": list(weights[name].shape), "data_offsets": [start, stop]
        }  # fmt: skip
        start = stop
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    expect("bytes", start)
    with path.open("xb", buffering=0) as file:
        write_all(file.fileno(), memoryview(len(text).to_bytes(8, "little") + text))
        for name in ordered:
            write_weight(weights[name], file.fileno(), name)


def _code(name: str, weight: Weight) -> str:
    code = DTYPES.get(weight.dtype)
    if code is None:
        raise Unsupported(f"{name}: safetensors has no {weight.dtype}")
    return code


def _config(program: TorchProgram, module: Module) -> str:
    """Return the facts of a program as JSON."""
    names = module.inputs
    types = program.output_types or [None] * len(program.outputs)
    config = {
        "source": {
            key: program.facts[key] for key in ("source", "version") if program.facts.get(key)
        },
        "inputs": [
            {
                "name": each.name,
                "argument": names[each.value],
                "shape": None if each.shape is None else list(map(_length, each.shape)),
                "dtype": each.dtype,
            }
            for each in program.inputs
        ],
        "outputs": [
            {
                "name": name,
                "shape": None if type_ is None else list(map(_length, type_.shape)),
                "dtype": None if type_ is None else type_.dtype,
            }
            for name, type_ in zip(program.outputs, types, strict=True)
        ],
        "labels": list(program.labels),
        "weights": {name: module.places[name] for name in program.weights},
    }
    if program.facts.get("metadata"):
        config["metadata"] = program.facts["metadata"]
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def _length(dim: AnyValue) -> int | str:
    return dim if isinstance(dim, int) else str(dim)
