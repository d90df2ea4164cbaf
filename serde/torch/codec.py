"""Files of PyTorch: which they are, and their programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import MAX_GRAPH_TEXT_BYTES
from serde.errors import FormatError, OptionError
from serde.io.zips import Archive, is_zip
from serde.torch.checkpoint.files import is_checkpoint, is_pipeline
from serde.torch.pt2.reader import MARKS, is_program, read_archive
from serde.torch.unread import describe_file, describe_pickle

if TYPE_CHECKING:
    from serde.torch.model import TorchModel
    from serde.torch.options import TorchImportOptions

__all__ = ["detect", "load"]

_WRITTEN: Final = ("model.py", "config.json", "model.safetensors")
"""What is in a folder that was written."""

_SCRIPT: Final = "constants.pkl"
_PICKLE: Final = "data.pkl"
"""Members of archives of ``torch.jit.save``, and of those of ``torch.save`` likewise."""


def detect(path: Path) -> bool:
    """Whether `path` is an archive of ``torch.export`` or TorchScript, or a written folder.

    So is what ``torch.save`` wrote, and safetensors, of which loading says why they are not read.
    """
    if path.is_dir():
        if is_checkpoint(path) or is_pipeline(path):
            return True
        return all((path / name).is_file() for name in _WRITTEN)
    if not path.is_file():
        return False
    if not is_zip(path):
        return is_checkpoint(path) or describe_file(path) is not None
    try:
        with Archive(path) as archive:
            return any(name in archive.members for name in (*MARKS, _SCRIPT, _PICKLE))
    except FormatError:
        return path.suffix in (".pt2", ".pt")


def load(source: AnyValue, options: TorchImportOptions) -> TorchModel:
    """Return the program of a file.

    Raises:
        FormatError: It is malformed, or holds no program.
        OptionError: It is no path.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"expected a path or a module, found {type(source).__name__}")
    path = Path(source)
    if is_checkpoint(path):
        from serde.torch.checkpoint.reader import load_checkpoint

        return load_checkpoint(path, options)
    if is_pipeline(path):
        from serde.torch.checkpoint.reader import load_component

        return load_component(path, options)
    if options.task is not None or options.raw_audio:
        raise OptionError(f"task, raw_audio: {path} is no checkpoint of Hugging Face")
    if path.is_dir():
        from serde.torch.source.reader import load_folder

        return load_folder(path)
    described = None if is_zip(path) else describe_file(path)
    if described is not None:
        raise FormatError(described, path=path)
    with Archive(path) as archive:
        if is_program(archive):
            return read_archive(archive)
        if _SCRIPT in archive.members:
            from serde.torch.script import check_archive, load_file

            check_archive(archive)
            return load_file(path, options)
        if _PICKLE in archive.members:
            raise archive.error(describe_pickle(archive.read(_PICKLE, MAX_GRAPH_TEXT_BYTES)))
        raise archive.error("expected an archive of torch.export or TorchScript")
