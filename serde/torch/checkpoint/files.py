"""Folders of Hugging Face: the config, and the weights as ranges of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import FileWeight, Weight, dataclass
from serde.errors import FormatError
from serde.io.contained import location_fault, read_small
from serde.torch.checkpoint.gguf import is_gguf, read_gguf
from serde.torch.checkpoint.packed import read_packing, unpack_weights
from serde.torch.safetensors import read_document, read_safetensors

__all__ = [
    "CONFIG", "PIPELINE", "Checkpoint", "checkpoint_files", "is_checkpoint", "is_pipeline",
    "open_checkpoint", "read_config", "sidecars",
]  # fmt: skip

CONFIG: Final = "config.json"
PIPELINE: Final = "model_index.json"
"""What a folder of diffusers has, whose folders are the parts of a pipeline."""

_FAMILY: Final = "model_type"
_WEIGHTS: Final = ("model.safetensors", "diffusion_pytorch_model.safetensors")
_INDEX: Final = ".index.json"
_MAX_BYTES: Final = 2**26
"""Of a file of JSON."""

_SIDECARS: Final = (
    "added_tokens.json", "chat_template.jinja", CONFIG, "generation_config.json", "merges.txt",
    "normalizer.json", "preprocessor_config.json", "processor_config.json",
    "scheduler_config.json", "sentencepiece.bpe.model", "source.spm", "special_tokens_map.json",
    "spiece.model", "target.spm", "tokenizer.json", "tokenizer.model", "tokenizer_config.json",
    "vocab.json", "vocab.txt",
)  # fmt: skip
"""What runtimes read beside a model."""

_REMOTE: Final = "auto_map"
_QUANTIZED: Final = "quantization_config"


@dataclass(frozen=True)
class Checkpoint:
    """A folder that was read.

    Attributes:
        path: The folder.
        config: What ``config.json`` holds.
        weights: All tensors by their names on disk.
        unpack: Makes weights of a module, without values, and of a dtype, where they are packed.
    """

    path: Path
    config: Mapping[str, AnyValue]
    weights: Mapping[str, FileWeight]
    unpack: Callable[[AnyValue, str | None], Mapping[str, Weight]] | None = None


def is_checkpoint(path: Path) -> bool:
    """Whether a path is a folder with a config and weights in safetensors, or a file of GGUF."""
    if not (path / CONFIG).is_file() or (path / "model.py").is_file():
        return is_gguf(path)
    plain = _WEIGHTS[0]
    return any((path / name).is_file() for name in (plain, f"{plain}{_INDEX}"))


def is_pipeline(path: Path) -> bool:
    """Whether a path is a folder of diffusers, with a folder for each part of a pipeline."""
    return (path / PIPELINE).is_file()


def open_checkpoint(path: Path, kind: str = _FAMILY) -> Checkpoint:
    """Return what is in a folder, of which nothing is run.

    Args:
        path: The folder.
        kind: What its config calls the kind of a model: ``"_class_name"`` that of diffusers.

    Raises:
        FormatError: It asks for code of its own, or its files are not read or do not fit together.
    """
    if path.is_file():
        return Checkpoint(path, {}, {}, read_gguf(path).unpack)
    config = read_config(path, CONFIG)
    if not isinstance(config.get(kind), str):
        raise FormatError(f"{CONFIG}: expected a {kind}", path=path)
    if _REMOTE in config:
        raise FormatError(
            f"{CONFIG}: {_REMOTE} asks for code that is not part of transformers, which is never "
            f"run; without {_REMOTE}, {config[kind]} is read by transformers' own class",
            path=path,
        )
    if config.get(_QUANTIZED) and kind != _FAMILY:
        raise FormatError(f"{CONFIG}: {_QUANTIZED}: quantised weights are not read", path=path)
    packing = read_packing(config[_QUANTIZED], path) if config.get(_QUANTIZED) else None
    names = _shards(path)
    weights: dict[str, FileWeight] = {}
    for name, wanted in names.items():
        found = read_safetensors(_member(path, name))
        again = sorted(weights.keys() & found.keys())
        if again:
            raise FormatError(f"{again[0][:200]} is in {name} and in another shard", path=path)
        missing = sorted(wanted - found.keys())
        if missing:
            raise FormatError(
                f"{name} lacks {missing[0][:200]}, which the index of shards names", path=path
            )
        weights |= found
    unpack = None if packing is None else partial(unpack_weights, weights, packing, path)
    return Checkpoint(path, config, weights, unpack)


def checkpoint_files(path: Path) -> list[Path]:
    """Return the files of a folder that a model is read from."""
    folder = path.is_dir()
    return [path / CONFIG, *(path / name for name in _shards(path))] if folder else [path]


def sidecars(path: Path) -> Mapping[str, Path | str]:
    """Return the files of tokenizers and the like in a folder, by name."""
    if path.is_file():
        return read_gguf(path).tokenizer()
    there = [name for name in _SIDECARS if (path / name).is_file()]
    return {name: Path(_member(path, name)) for name in there}


def _shards(path: Path) -> dict[str, set[str]]:
    """Return the files of weights, with the tensors that the index names in each."""
    whole = next((name for name in _WEIGHTS if (path / name).is_file()), None)
    if whole is not None:
        return {whole: set()}
    indices = [f"{name}{_INDEX}" for name in _WEIGHTS]
    chosen = next((name for name in indices if (path / name).is_file()), None)
    if chosen is None:
        raise FormatError(f"expected {' or '.join(_WEIGHTS)}, or an index of shards", path=path)
    index = read_config(path, chosen).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(x, str) for x in index.values()):
        raise FormatError(f"{chosen}: expected a weight_map of names of files", path=path)
    found: dict[str, set[str]] = {}
    for tensor, name in index.items():
        found.setdefault(name, set()).add(tensor)
    return dict(sorted(found.items()))


def _member(path: Path, name: str) -> str:
    """Return the path of a file of the folder; links lead to it or to the blobs of a cache."""
    fault = location_fault(name)
    if fault is not None or os.path.basename(name) != name:
        raise FormatError(f"{name[:200]!r} {fault or 'is in another folder'}", path=path)
    found, root = os.path.realpath(path / name), os.path.realpath(path)
    homes, above = [root], os.path.dirname(root)
    if os.path.basename(above) != "snapshots":  # A part of a pipeline lies one folder deeper.
        above = os.path.dirname(above)
    if os.path.basename(above) == "snapshots":
        homes.append(os.path.join(above, "..", "blobs"))
    if os.path.dirname(found) not in map(os.path.realpath, homes):
        raise FormatError(f"{name[:200]!r} leads out of the folder", path=path)
    if not os.path.exists(found):
        raise FormatError(f"the shard {name[:200]} is missing", path=path)
    return found


def read_config(path: Path, name: str) -> dict[str, AnyValue]:
    """Return a file of JSON of a folder, which holds an object."""
    document = read_document(read_small(_member(path, name), _MAX_BYTES), name, path)
    return {key: each.value for key, each in document.entries()}
