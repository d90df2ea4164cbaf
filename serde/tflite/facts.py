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
from typing import IO, Any as AnyValue, Final

import numpy as np

from serde.bridge.input_types import COLORS, Image
from serde.core import require
from serde.errors import FormatError
from serde.io.cursor import Cursor
from serde.io.zips import ZIP_FAULTS
from serde.tflite.flatbuffer import Table, root_table

__all__ = [
    "COLOR_SPACES", "METADATA_NAME", "Facts", "metadata_bytes", "read_facts", "write_labels",
]  # fmt: skip

METADATA_NAME: Final = "TFLITE_METADATA"
COLOR_SPACES: Final = {"RGB": 1, "GRAYSCALE": 2}
"""Colour layouts by their numbers in the schema."""

_IDENTIFIER: Final = b"M001"
_IMAGE, _NORMALIZATION, _AXIS_LABELS = 2, 1, 2
"""Kinds of content, of what is done to it, and of files."""

_TEXTS: Final = {"version": 2, "author": 4, "license": 5}
_TAIL_BYTES: Final = 2**22
"""Bytes at the end of a file in which labels are looked for, and of these."""


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


def read_facts(data: bytes, cursor: Cursor) -> Facts:
    """Return what metadata say, and the labels in files that they name.

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
    inputs, outputs = (graphs[0].tables(slot) if graphs else () for slot in (8, 10))
    images = {place: _image(each) for place, each in enumerate(inputs)}
    files = {place: _labels_file(each) for place, each in enumerate(outputs)}
    found = _members(cursor, set(files.values())) if any(files.values()) else {}
    texts = {name: root.text(4 + 2 * slot) for name, slot in _TEXTS.items()}
    return Facts(
        {place: image for place, image in images.items() if image is not None},
        {place: found[name] for place, name in files.items() if name in found},
        {name: text for name, text in texts.items() if text},
    )


def _image(tensor: Table) -> Image | None:
    content = tensor.table(10)
    properties = content.table(6) if content and content.number(4, "B") == _IMAGE else None
    color = 0 if properties is None else properties.number(4, "b")
    layout = next((name for name, number in COLOR_SPACES.items() if number == color), None)
    if layout is None:
        return None
    count = len(COLORS[layout])
    mean, std = np.zeros(count), np.ones(count)
    with np.errstate(all="ignore"):
        for unit in tensor.tables(12):
            options = unit.table(6) if unit.number(4, "B") == _NORMALIZATION else None
            if options is not None:
                pair = (np.float64(options.numbers(slot, "<f4")) for slot in (4, 6))
                mean, std = (np.resize(each, count) for each in pair)
        numbers = np.array([1 / std, -mean / std])
    if not np.isfinite(numbers).all():
        raise tensor.fault("an image whose numbers are divided by nothing")
    return Image(layout, *(tuple(map(float, each)) for each in numbers))


def _labels_file(tensor: Table) -> str:
    files = tensor.tables(16)
    return next((x.text(4) for x in files if x.number(8, "b") == _AXIS_LABELS), "")


def _members(cursor: Cursor, wanted: set[str]) -> dict[str, list[str]]:
    """Return the lines of files in the archive behind a model."""
    count = min(cursor.size, _TAIL_BYTES)
    cursor.at = cursor.size - count
    tail = cursor.take(count, "associated files")
    if b"PK\x05\x06" not in tail[-(2**16) :]:
        return {}
    found = {}
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
    images = [{0: name, **_told(facts.images.get(i))} for i, name in enumerate(inputs)]
    files = {place: [{0: name, 2: _AXIS_LABELS}] for place, name in _files(facts).items()}
    scores = [{0: name, **({6: files[i]} if i in files else {})} for i, name in enumerate(outputs)]
    texts = {slot: facts.texts[name] for name, slot in _TEXTS.items() if name in facts.texts}
    builder = require("flatbuffers").Builder(1024)
    root = _added(builder, {3: [{2: images, 3: scores}], 7: "1.0.0", **texts})
    builder.Finish(root, _IDENTIFIER)
    return bytes(builder.Output())


def _told(image: Image | None) -> dict[int, AnyValue]:
    """Return the fields of a tensor that say how pixels become its numbers."""
    if image is None:
        return {}
    scale, bias = np.broadcast_arrays(image.scale, image.bias)
    numbers = {0: np.float32(-bias / scale), 1: np.float32(1 / scale)}
    content = {0: _IMAGE, 1: {0: COLOR_SPACES[image.color_layout]}}
    return {3: content, 4: [{0: _NORMALIZATION, 1: numbers}]}


def _added(builder: AnyValue, value: AnyValue) -> int:
    """Return where a value lies: a text, numbers, several tables, or one by its fields."""
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, np.ndarray):
        return int(builder.CreateNumpyVector(value))
    if isinstance(value, list):
        tables = [_added(builder, each) for each in value]
        builder.StartVector(4, len(tables), 4)
        for each in reversed(tables):
            builder.PrependUOffsetTRelative(each)
        return int(builder.EndVector())
    places = {x: _added(builder, each) for x, each in value.items() if not isinstance(each, int)}
    builder.StartObject(8)
    for slot, each in value.items():
        if slot in places:
            builder.PrependUOffsetTRelativeSlot(slot, places[slot], 0)
        else:
            builder.PrependInt8Slot(slot, each, 0)
    return int(builder.EndObject())


def _files(facts: Facts) -> dict[int, str]:
    several = len(facts.labels) > 1
    return {x: f"labels_{x}.txt" if several else "labels.txt" for x in facts.labels}


def write_labels(facts: Facts, file: IO[bytes]) -> None:
    """Write the archive of the files that metadata name behind what is in a file."""
    if facts.labels:
        file.seek(0, 2)
        with zipfile.ZipFile(file, "w") as archive:
            for place, name in _files(facts).items():
                text = "".join(f"{each}\n" for each in facts.labels[place])
                archive.writestr(zipfile.ZipInfo(name), text)
