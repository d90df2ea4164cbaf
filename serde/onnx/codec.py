"""ONNX files: models read without their weights, and written with them.

Embedded weights go into the one ``graph`` field of the file, whose length is
known before the first byte is written. External ones go into
``<name>.onnx.data`` beside it: small tensors stay in the model, the others
start at multiples of 64 bytes, large ones at multiples of a page.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from serde.errors import OptionError
from serde.io.atomic import atomic_group, copy_range, write_all
from serde.limits import CHUNK_BYTES, MAX_PROTOBUF_BYTES
from serde.onnx.elements import PackedWeight
from serde.onnx.external import location_fault
from serde.onnx.model import OnnxModel, weight_bytes, weight_chunks, wrong_length
from serde.onnx.reader import detect, load
from serde.onnx.wire import Cut, Piece, Span, field_header, splice, total_length
from serde.weights import FileRange, Weight

__all__ = ["OnnxModel", "detect", "load", "save", "source_paths"]

EMBEDDED_BYTES = 1024
"""Tensors below this length stay in the model when the others become external."""

_PAGE = 4096
_LARGE = 2**16
_SMALL_ALIGNMENT = 64
_RAW_DATA = 9


@dataclass(frozen=True, slots=True)
class _WeightPayload:
    """The bytes of one weight, not yet moved."""

    name: str
    weight: Weight
    length: int

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True)
class _Layout:
    """A file that is ready to be written.

    Attributes:
        pieces: Pieces of the model.
        buffer: What spans of `pieces` refer to.
        data: Offset and bytes of each external tensor.
    """

    pieces: list[Piece]
    buffer: bytes
    data: list[tuple[int, _WeightPayload]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _BufferSource:
    buffer: bytes
    size: int
    path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        return self.buffer[start:stop]


def save(
    model: OnnxModel,
    path: str | os.PathLike[str],
    *,
    force_external: bool = False,
    external_threshold: int | None = None,
    sources: Iterable[str | os.PathLike[str]] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a model; the same model always gives the same bytes.

    Args:
        model: The model.
        path: The file to make or replace.
        force_external: Write tensors of 1 KiB and more to ``<path>.data`` in any case.
        external_threshold: Write them there if the file would exceed this many bytes;
            protobuf's limit, just below 2 GiB, if left out.
        sources: Files that may not be written over; those that weights lie in never are.
        before_commit: Called with the finished temporary file, which already has its final
            name and its data beside it; if it raises, nothing stays.

    Returns:
        The path.

    Raises:
        OptionError: The path or the model cannot be used.
        FormatError: A file that weights lie in changed.
        ConverterBug: A weight is not as long as it says.
    """
    target = Path(path)
    if external_threshold is not None and external_threshold < 0:
        raise OptionError(f"external threshold: expected 0 or more, found {external_threshold}")
    limit = MAX_PROTOBUF_BYTES
    if external_threshold is not None:
        limit = min(limit, external_threshold)
    layout = _layout(model, None)
    if force_external or total_length(layout.pieces) > limit:
        layout = _layout(model, _data_name(target))
    if total_length(layout.pieces) > MAX_PROTOBUF_BYTES:
        raise OptionError(
            f"without its external data the model has {total_length(layout.pieces)} bytes, more "
            f"than the {MAX_PROTOBUF_BYTES} that protobuf reads; turn Constant nodes into "
            "initializers"
        )
    targets = [target.with_name(_data_name(target)), target] if layout.data else [target]

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[-1])

    known = [*sources, *source_paths(model)]
    with atomic_group(targets, sources=known, before_commit=check) as staged:
        if layout.data:
            with _Writer.open(staged[0]) as writer:
                writer.write_data(layout.data)
        with _Writer.open(staged[-1]) as writer:
            writer.write_pieces(layout.pieces, layout.buffer)
    return target


def _data_name(target: Path) -> str:
    """Return the bare name of the file of external data.

    Raises:
        OptionError: The name cannot be written into a model.
    """
    name = f"{target.name}.data"
    fault = location_fault(name)
    if "/" in name or "\\" in name:
        fault = "contains a path separator"
    try:
        name.encode()
    except UnicodeEncodeError:
        fault = "is not UTF-8"
    if fault is not None:
        raise OptionError(f"{target}: cannot have external data: its name {fault}")
    return name


def source_paths(model: OnnxModel) -> set[str]:
    """Return the files that weights of a model lie in."""
    ranges = (_source(weight) for weight in (*model.weights.values(), *model.nested.values()))
    return {range_.path for range_ in ranges if range_ is not None and range_.handle is None}


def _source(weight: Weight) -> FileRange | None:
    """Return the file range that holds a weight as ONNX stores it, if there is one."""
    return weight.packed.source if isinstance(weight, PackedWeight) else weight.source


def _layout(model: OnnxModel, data_name: str | None) -> _Layout:
    """Arrange a model with its weights embedded, or in a file called `data_name`."""
    skeleton = model.skeleton()
    payloads: list[_WeightPayload] = []
    tensors: list[onnx.TensorProto] = []
    data: list[tuple[int, _WeightPayload]] = []
    end = 0
    main = set(model.weights)
    for tensor, weight in model.fillings(skeleton):
        payload = _WeightPayload(tensor.name, weight, weight_bytes(weight))
        is_main = tensor.name in main and model.weights[tensor.name] is weight
        if data_name is None or not is_main or len(payload) < EMBEDDED_BYTES:
            tensors.append(tensor)
            payloads.append(payload)
            continue
        alignment = _PAGE if len(payload) >= _LARGE else _SMALL_ALIGNMENT
        offset = -(-end // alignment) * alignment
        end = offset + len(payload)
        data.append((offset, payload))
        _point_to(tensor, data_name, offset, len(payload))
    return _spliced(skeleton, tensors, payloads, data)


def _point_to(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))


def _spliced(
    skeleton: onnx.ModelProto,
    tensors: Sequence[onnx.TensorProto],
    payloads: Sequence[_WeightPayload],
    data: list[tuple[int, _WeightPayload]],
) -> _Layout:
    """Serialise the skeleton and put the payloads where the data of `tensors` belongs.

    Each tensor first gets a few bytes that occur nowhere else, which are then found in the
    serialised model; so every field stands where protobuf itself would write it.
    """
    width = 12
    for salt in itertools.count():
        prefix = b"serde:%d:" % salt
        for index, tensor in enumerate(tensors):
            tensor.raw_data = prefix + b"%0*d" % (width, index)
        buffer = skeleton.SerializeToString(deterministic=True)
        if buffer.count(prefix) == len(tensors):
            break

    def replace(cut: Cut) -> Sequence[Piece] | None:
        if not buffer.startswith(prefix, cut.start):
            return None
        payload = payloads[int(buffer[cut.start + len(prefix) : cut.stop])]
        return [field_header(_RAW_DATA, len(payload)), payload]

    pieces = splice(
        _BufferSource(buffer, len(buffer)),
        enters=lambda start, stop: buffer.find(prefix, start, stop) >= 0,
        replace=replace,
    )
    return _Layout(pieces, buffer, data)


class _Writer:
    """Writes pieces one after the other; small ones are gathered."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = bytearray()
        self._position = 0

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[_Writer]:
        """Open a new file and close it when the body is done."""
        with path.open("xb", buffering=0) as file:
            writer = cls(file.fileno())
            yield writer
            writer._flush()

    def write_pieces(self, pieces: Sequence[Piece], buffer: bytes) -> None:
        """Write the pieces of a model, whose spans lie in `buffer`."""
        view = memoryview(buffer)
        for piece in pieces:
            if isinstance(piece, Span):
                self._put(view[piece.start : piece.stop])
            elif isinstance(piece, _WeightPayload):
                self._put_weight(piece)
            elif isinstance(piece, bytes):
                self._put(piece)

    def write_data(self, data: Sequence[tuple[int, _WeightPayload]]) -> None:
        """Write external tensors at their offsets, with zeros between them."""
        for offset, payload in data:
            self._put(bytes(offset - self._position))
            self._put_weight(payload)

    def _put(self, data: bytes | memoryview) -> None:
        self._position += len(data)
        if len(data) + len(self._pending) > CHUNK_BYTES:
            self._flush()
        if len(data) > CHUNK_BYTES // 16:
            self._flush()
            write_all(self._fd, data)
        else:
            self._pending += data

    def _put_weight(self, payload: _WeightPayload) -> None:
        source = _source(payload.weight)
        if source is not None:
            if source.length != len(payload):
                raise wrong_length(payload.name, payload.weight, source.length)
            self._flush()
            copy_range(source, self._fd)
            self._position += source.length
            return
        start = self._position
        for chunk in weight_chunks(payload.weight):
            self._put(chunk)
            if self._position - start > len(payload):
                break
        if self._position - start != len(payload):
            raise wrong_length(payload.name, payload.weight, self._position - start)

    def _flush(self) -> None:
        write_all(self._fd, self._pending)
        self._pending = bytearray()
