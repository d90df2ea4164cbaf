"""A ``.pt2`` archive as a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from serde.core.weights import Weight
from serde.errors import FormatError
from serde.io.zips import Archive
from serde.torch.model import NAMES, Input, TorchModel
from serde.torch.pt2.document import Document, read_document
from serde.torch.pt2.program import read_program, read_ranges
from serde.torch.pt2.versions import ARCHIVE_VERSION, NEWEST, NEWEST_MINOR, SCHEMA, release_of
from serde.torch.pt2.weights import Payloads, check_byte_order

__all__ = ["MARKS", "is_program", "load_archive", "read_archive"]

_FORMAT: Final = "archive_format"
_VERSION: Final = "archive_version"
_MODELS: Final = "models/"
_OLDER: Final = "serialized_exported_program.json"
"""The member of archives that PyTorch wrote before 2.8."""

MARKS: Final = (_FORMAT, _OLDER)
"""Members of which one is in every archive of ``torch.export.save``."""


def is_program(archive: Archive) -> bool:
    """Whether an archive is one of ``torch.export.save``, of whichever release."""
    return any(name in archive.members for name in MARKS)


def load_archive(path: str | os.PathLike[str]) -> TorchModel:
    """Return the program of an archive; its weights stay there.

    Raises:
        FormatError: It is damaged, holds no program or several, or what it holds is not read.
    """
    with Archive(path) as archive:
        return read_archive(archive)


def read_archive(archive: Archive) -> TorchModel:
    """Return the program of an archive that is open.

    Raises:
        FormatError: It is damaged, holds no program or several, or what it holds is not read.
    """
    _check_layout(archive)
    check_byte_order(archive)
    member = _program_member(archive)
    document = read_document(archive, member)
    version, notes = _read_schema(document)
    program = read_program(document)
    name = "" if member == _OLDER else member[len(_MODELS) : -len(".json")]
    payloads = Payloads(archive, name)
    weights: dict[str, Weight] = {}
    for name in program.graph.weights.values():
        weights[name] = payloads.weight(name, constant=name in program.constant)
    inputs, outputs = _named(archive, program.inputs, program.results.names)
    return TorchModel(
        program.graph, inputs, outputs, weights, "pt2", version, Path(archive.path),
        notes=[*notes, *program.results.notes], ranges=read_ranges(document),
        metadata=_metadata(archive),
    )  # fmt: skip


def _extra(archive: Archive) -> str:
    """Return the member in which serde tells more than PyTorch does."""
    return f"extra_files/{NAMES}" if _OLDER in archive.members else f"extra/{NAMES}"


def _metadata(archive: Archive) -> dict[str, str]:
    """Return what the owner of a model added to it before serde wrote the archive."""
    member = _extra(archive)
    if member not in archive.members:
        return {}
    found = read_document(archive, member).optional("metadata")
    return {} if found is None else {name: each.text() for name, each in found.entries()}


def _named(
    archive: Archive, inputs: Sequence[Input], outputs: Sequence[str]
) -> tuple[Sequence[Input], Sequence[str]]:
    """Return inputs and outputs under the names that an archive of serde's tells beside them."""
    member = _extra(archive)
    if member not in archive.members:
        return inputs, outputs
    document = read_document(archive, member)
    found = [[each.text() for each in document.field(key).items()] for key in ("inputs", "outputs")]
    for names, known in zip(found, (inputs, outputs), strict=True):
        if len(set(names)) != len(known) or len(names) != len(known):
            raise document.fault(f"expected {len(known)} different names, found {names[:10]}")
    return [replace(each, name=name) for each, name in zip(inputs, found[0], strict=True)], found[1]


def _check_layout(archive: Archive) -> None:
    """Raise unless the members are laid out as PyTorch 2.6 and newer do."""
    if _OLDER in archive.members:
        return
    found = archive.read(_FORMAT, 64)
    if found != b"pt2":
        raise archive.error(f"expected an archive of the format 'pt2', found {found[:40]!r}")
    version = archive.read(_VERSION, 64).decode("ascii", "replace")
    if version != ARCHIVE_VERSION:
        raise archive.error(f"an archive of version {version!r}, only {ARCHIVE_VERSION!r} is read")


def _program_member(archive: Archive) -> str:
    """Return the member that is the only program."""
    if _OLDER in archive.members:
        return _OLDER
    found = [
        name for name in archive.members if name.startswith(_MODELS) and name.endswith(".json")
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(name[len(_MODELS) : -len(".json")][:100] for name in sorted(found)[:10])
        raise archive.error(f"expected one program, found {len(found)}: {names}")
    compiled = any(name.startswith("data/aotinductor/") for name in archive.members)
    what = "only code that AOTInductor compiled" if compiled else "none"
    raise archive.error(f"expected a program of torch.export, found {what}")


def _read_schema(document: Document) -> tuple[str, list[str]]:
    """Return the version of the schema, and a note where it is newer than what is known of it."""
    version = document.field("schema_version")
    major, minor = (version.field(key).integer() for key in ("major", "minor"))
    if major != SCHEMA:
        raise FormatError(
            f"a program of schema {major}.{minor}{release_of(major)}; "
            f"{SCHEMA} up to {NEWEST} is read, as PyTorch 2.6 and newer save it",
            path=document.path,
        )
    notes = [
        f"schema {major}.{minor} is newer than {NEWEST}, the newest that is known; "
        "what it has added is not read"
    ]
    return f"{major}.{minor}", notes if minor > NEWEST_MINOR else []
