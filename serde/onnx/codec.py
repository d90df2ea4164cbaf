"""ONNX files: models read without their weights, and written with them.

Embedded weights go into the one ``graph`` field of the file, whose length is
known before the first byte is written. External ones go into
``<name>.onnx.data`` beside it: small tensors stay in the model, the others
start at multiples of 64 bytes, large ones at multiples of a page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import onnx

from serde.errors import OptionError
from serde.io.atomic import atomic_group
from serde.io.contained import location_fault
from serde.io.messages import Payload, PieceWriter, Place, place_payloads
from serde.io.packed import stored_source
from serde.io.wire import Piece, total_length
from serde.limits import MAX_PROTOBUF_BYTES
from serde.onnx.messages import LAYOUT
from serde.onnx.model import OnnxModel, weight_bytes, weight_chunks
from serde.onnx.reader import detect, load

__all__ = ["OnnxModel", "detect", "load", "save", "source_paths"]

EMBEDDED_BYTES = 1024
"""Tensors below this length stay in the model when the others become external."""

_PAGE = 4096
_LARGE = 2**16
_SMALL_ALIGNMENT = 64
_RAW_DATA = 9


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
    data: list[tuple[int, Payload]] = field(default_factory=list)


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
            with PieceWriter.open(staged[0]) as writer:
                for offset, payload in layout.data:
                    writer.put(bytes(offset - writer.position))
                    writer.put_payload(payload)
        with PieceWriter.open(staged[-1]) as writer:
            writer.put_pieces(layout.pieces, layout.buffer)
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
    ranges = (stored_source(weight) for weight in (*model.weights.values(), *model.nested.values()))
    return {range_.path for range_ in ranges if range_ is not None and range_.handle is None}


def _layout(model: OnnxModel, data_name: str | None) -> _Layout:
    """Arrange a model with its weights embedded, or in a file called `data_name`."""
    skeleton = model.skeleton()
    places: list[Place] = []
    data: list[tuple[int, Payload]] = []
    end = 0
    main = set(model.weights)
    for tensor, weight in model.fillings(skeleton):
        payload = Payload(
            tensor.name, weight_bytes(weight), partial(weight_chunks, weight), stored_source(weight)
        )
        is_main = tensor.name in main and model.weights[tensor.name] is weight
        if data_name is None or not is_main or len(payload) < EMBEDDED_BYTES:
            mark = partial(setattr, tensor, "raw_data")
            places.append(Place(mark, _RAW_DATA, payload))
            continue
        alignment = _PAGE if len(payload) >= _LARGE else _SMALL_ALIGNMENT
        offset = -(-end // alignment) * alignment
        end = offset + len(payload)
        data.append((offset, payload))
        _point_to(tensor, data_name, offset, len(payload))
    pieces, buffer = place_payloads(skeleton, LAYOUT, places)
    return _Layout(pieces, buffer, data)


def _point_to(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
