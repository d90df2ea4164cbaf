"""A model as files in memory, as it is mutated, run, shrunk and kept."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """The files of one model.

    Attributes:
        format: Name of the format that reads it.
        name: What it is called.
        files: Contents by path, relative to the folder that they are written to.
        main: The path that is given to the reader: a file, or a folder of them.
        options: What the reader has to be told, as JSON holds it.
    """

    format: str
    name: str
    files: Mapping[str, bytes]
    main: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, format: str, name: str, files: Mapping[str, bytes], **options: Any) -> Case:
        """Return the model that begins with the first of `files`."""
        return cls(format, name, dict(files), next(iter(files)).partition("/")[0], options)

    @classmethod
    def of_paths(cls, format: str, name: str, paths: Iterable[Path], **options: Any) -> Case:
        """Return the model that the first of some paths holds; folders are taken whole."""
        files: dict[str, bytes] = {}
        for path in paths:
            inside = sorted(path.rglob("*")) if path.is_dir() else [path]
            for each in inside:
                if each.is_file():
                    files[str(each.relative_to(path.parent))] = each.read_bytes()
        return cls.of(format, name, files, **options)

    @classmethod
    def unpack(cls, name: str, data: bytes) -> Case:
        """Return the case that :meth:`pack` made."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            told = json.loads(archive.comment)
            files = {each: archive.read(each) for each in archive.namelist()}
            return cls.of(told.pop("format"), name, files, **told)

    def pack(self) -> bytes:
        """Return all files as one archive, the main one first."""
        made = io.BytesIO()
        names = sorted(self.files, key=lambda each: each.partition("/")[0] != self.main)
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = json.dumps({"format": self.format, **self.options}).encode()
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), self.files[name], zipfile.ZIP_DEFLATED)
        return made.getvalue()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    @property
    def digest(self) -> str:
        """A short name for these very bytes."""
        found = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            found.update(f"{name}\0{len(content)}\0".encode() + content)
        return found.hexdigest()[:12]

    def with_file(self, name: str, content: bytes) -> Case:
        """Return the case with another content of one file."""
        return replace(self, files={**self.files, name: content})

    def without(self, name: str) -> Case:
        """Return the case without one of its files."""
        return replace(self, files={k: v for k, v in self.files.items() if k != name})

    def write(self, folder: Path) -> Path:
        """Write the files into a folder that is empty; return the path to be read."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / self.main
