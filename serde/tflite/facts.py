"""TFLite Metadata: what a model says to apps of images and class labels, beside its graph.

A FlatBuffer of its own among the metadata tells how pixels become numbers, and names files that
lie in a zip archive behind the model. Its tables are those of ``metadata_schema.fbs`` (1.0) of
tflite-support, by the numbers of their fields.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.input_types import COLORS, Image
from serde.core.optional import require
from serde.errors import FormatError
from serde.io.cursor import Cursor
from serde.io.zips import ZIP_FAULTS
from serde.tflite.flatbuffer import Table, root_table

__all__ = [
    "COLOR_SPACES", "METADATA_NAME", "Facts", "associated_files", "metadata_bytes", "read_facts",
]  # fmt: skip

METADATA_NAME: Final = "TFLITE_METADATA"
_IDENTIFIER: Final = b"M001"
COLOR_SPACES: Final = {"RGB": 1, "GRAYSCALE": 2}
"""Colour layouts by their numbers in the schema."""
_IMAGE: Final = 2
"""The kind of content that an image is."""
_NORMALIZATION: Final = 1
_AXIS_LABELS: Final = 2
_LABELS_FILE: Final = "labels.txt"
_TAIL_BYTES: Final = 2**22
"""Bytes at the end of a file in which associated files are looked for, and of one of these."""


@dataclass(frozen=True)
class Facts:
    """What a model says to apps.

    Attributes:
        images: Inputs that are images, and how these become numbers, by their places.
        labels: Class labels of outputs by their places.
        texts: Author, licence and version.
    """

    images: Mapping[int, Image] = field(default_factory=dict)
    labels: Mapping[int, Sequence[str]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.images or self.labels or self.texts)


_TEXTS: Final = {"version": 8, "author": 12, "license": 14}
"""The fields of a model that are texts."""


def read_facts(data: bytes, cursor: Cursor) -> Facts:
    """Return what metadata say, and the files that they name.

    Args:
        data: The metadata.
        cursor: The file of the model.

    Raises:
        FormatError: They are not sound.
    """
    if data[4:8] != _IDENTIFIER:
        raise FormatError(f"{METADATA_NAME}: expected M001 at byte 4", path=cursor.path)
    root = root_table(Cursor(data))
    graphs = root.tables(10)
    if not graphs:
        return Facts()
    inputs, outputs = graphs[0].tables(8), graphs[0].tables(10)
    images = {place: _image(each) for place, each in enumerate(inputs)}
    files = {place: _labels_file(each) for place, each in enumerate(outputs)}
    named = {place: name for place, name in files.items() if name}
    found = _members(cursor, set(named.values())) if named else {}
    return Facts(
        {place: image for place, image in images.items() if image is not None},
        {place: found[name] for place, name in named.items() if name in found},
        {name: root.text(slot) for name, slot in _TEXTS.items() if root.text(slot)},
    )


def _image(tensor: Table) -> Image | None:
    content = tensor.table(10)
    properties = content.table(6) if content and content.number(4, "B") == _IMAGE else None
    if properties is None:
        return None
    numbers = {number: layout for layout, number in COLOR_SPACES.items()}
    layout = numbers.get(properties.number(4, "b"))
    if layout is None:
        return None
    count = len(COLORS[layout])
    mean, std = np.zeros(count), np.ones(count)
    for unit in tensor.tables(12):
        options = unit.table(6) if unit.number(4, "B") == _NORMALIZATION else None
        if options is not None:
            mean, std = (
                np.resize(options.numbers(slot, "<f4").astype(np.float64), count) for slot in (4, 6)
            )
    if not np.isfinite((mean, std)).all() or not std.all():
        raise tensor.fault("an image whose numbers are divided by nothing")
    return Image(layout, tuple(map(float, 1 / std)), tuple(map(float, -mean / std)))


def _labels_file(tensor: Table) -> str:
    files = tensor.tables(16)
    return next((x.text(4) for x in files if x.number(8, "b") == _AXIS_LABELS), "")


def _members(cursor: Cursor, wanted: set[str]) -> dict[str, list[str]]:
    """Return the lines of files in the archive behind a model."""
    count = min(cursor.size, _TAIL_BYTES)
    cursor.at = cursor.size - count
    tail = cursor.take(count, "associated files")
    found = {}
    if b"PK\x05\x06" not in tail[-(2**16) :]:
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(tail)) as archive:
            for name in wanted.intersection(archive.namelist()):
                with archive.open(name) as member:
                    text = member.read(_TAIL_BYTES).decode("utf-8")
                found[name] = text.removesuffix("\n").split("\n")
    except ZIP_FAULTS as error:
        raise FormatError(f"associated files: {error}", path=cursor.path) from None
    return found


def metadata_bytes(facts: Facts, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """Return the metadata of a model with inputs and outputs of some names."""
    make = _Maker(require("flatbuffers").Builder(1024))
    sides = [
        make.vector(
            make.tensor(name, facts.images.get(place) if side == 0 else None, labels.get(place))
            for place, name in enumerate(names)
        )
        for side, (names, labels) in enumerate(
            ((inputs, dict[int, str]()), (outputs, _label_files(facts)))
        )
    ]
    graph = make.table(8, {2: sides[0], 3: sides[1]})
    texts = {(slot - 4) // 2: make.text(facts.texts.get(name)) for name, slot in _TEXTS.items()}
    root = make.table(8, {3: make.vector([graph]), 7: make.text("1.0.0"), **texts})
    make.builder.Finish(root, _IDENTIFIER)
    return bytes(make.builder.Output())


def _label_files(facts: Facts) -> dict[int, str]:
    several = len(facts.labels) > 1
    return {x: f"labels_{x}.txt" if several else _LABELS_FILE for x in facts.labels}


def associated_files(facts: Facts, start: int) -> bytes:
    """Return the archive of the files that metadata name, which is to lie at a position."""
    if not facts.labels:
        return b""
    file = _Behind(start)
    with zipfile.ZipFile(file, "w") as archive:
        for place, name in _label_files(facts).items():
            text = "".join(f"{each}\n" for each in facts.labels[place])
            archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


class _Behind(io.BytesIO):
    """A stream whose positions are those of a file behind others."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        return super().tell() + self._start

    def seek(self, offset: int, whence: int = 0) -> int:
        return super().seek(offset - (self._start if whence == 0 else 0), whence) + self._start


class _Maker:
    """Makes tables of a FlatBuffer by the numbers of their fields."""

    def __init__(self, builder: AnyValue) -> None:
        self.builder = builder

    def text(self, value: str | None) -> int:
        return int(self.builder.CreateString(value)) if value else 0

    def table(
        self, count: int, fields: Mapping[int, int], kinds: Mapping[int, int] | None = None
    ) -> int:
        self.builder.StartObject(count)
        for slot, position in fields.items():
            self.builder.PrependUOffsetTRelativeSlot(slot, position, 0)
        for slot, kind in (kinds or {}).items():
            self.builder.PrependInt8Slot(slot, kind, 0)
        return int(self.builder.EndObject())

    def vector(self, tables: AnyValue) -> int:
        found = list(tables)
        self.builder.StartVector(4, len(found), 4)
        for each in reversed(found):
            self.builder.PrependUOffsetTRelative(each)
        return int(self.builder.EndVector())

    def floats(self, values: AnyValue) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(values, np.float32)))

    def tensor(self, name: str, image: Image | None, labels: str | None) -> int:
        fields = {0: self.text(name)}
        if image is not None:
            scale, bias = np.broadcast_arrays(image.scale, image.bias)
            pair = {0: self.floats(-bias / scale), 1: self.floats(1 / scale)}
            unit = self.table(2, {1: self.table(2, pair)}, {0: _NORMALIZATION})
            properties = self.table(2, {}, {0: COLOR_SPACES[image.color_layout]})
            fields[3] = self.table(3, {1: properties}, {0: _IMAGE})
            fields[4] = self.vector([unit])
        if labels is not None:
            file = self.table(5, {0: self.text(labels)}, {2: _AXIS_LABELS})
            fields[6] = self.vector([file])
        return self.table(7, fields)
