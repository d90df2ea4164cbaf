"""A split model as one file: an archive with the files of its folder, unpacked when it is loaded."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from serde.io.atomic import atomic_write
from serde.io.zips import zip_copy
from serde.target.storage import Stored, save_folder

__all__ = ["save_archive", "unpack"]

_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Of every member, so that the same model gives the same bytes."""


def save_archive(stored: Stored, path: str | os.PathLike[str]) -> Path:
    """Write the archive, whole or not at all; its members are not compressed.

    Raises:
        OptionError: The path cannot be written.
    """
    final = Path(path)
    with atomic_write(final) as file, tempfile.TemporaryDirectory() as hidden:
        folder = save_folder(stored, Path(hidden) / "split")
        with zipfile.ZipFile(file, "w") as archive:
            for member in sorted(folder.iterdir()):
                info = zipfile.ZipInfo(member.name, _DATE)
                with member.open("rb") as source, archive.open(info, "w", force_zip64=True) as to:
                    shutil.copyfileobj(source, to)
    return final


def unpack(path: str | os.PathLike[str]) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder with the files of an archive; it goes when nothing holds it.

    Raises:
        FormatError: It is no sound archive.
    """
    folder = tempfile.TemporaryDirectory(prefix="serde-split-")

    def place(name: str, _size: int) -> Path | None:
        return None if "/" in name or "\\" in name else Path(folder.name) / name

    zip_copy(path, place)
    return folder
