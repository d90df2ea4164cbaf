"""ONNX files: models read without their weights, and written with them.

Embedded weights go into the one ``graph`` field of the file, whose length is
known before the first byte is written. External ones go into a file beside it
(:mod:`serde.onnx.data_files`), of which the model notes a fingerprint: small tensors
stay in the model, the others start at multiples of 64 bytes, large ones at multiples of
a page. Those that are linked (:mod:`serde.onnx.links`) stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import onnx

from serde.core import MAX_PROTOBUF_BYTES, ArrayWeight, OpenFile, dataclass, expect, field
from serde.errors import FormatError, OptionError
from serde.io.atomic import atomic_group
from serde.io.contained import is_there
from serde.io.fingerprint import Fingerprint
from serde.io.messages import Payload, PieceWriter, Place, place_payloads
from serde.io.packed import stored_source
from serde.io.staging import sweep
from serde.io.wire import Piece, total_length
from serde.onnx.data_files import (
    data_name,
    external_locations,
    graph_digest,
    is_written,
    noted_data,
    outdated_data,
)
from serde.onnx.elements import LAYOUT
from serde.onnx.model import (
    DATA_PROPERTY,
    EMBEDDED_BYTES,
    LINKED_PROPERTY,
    LinkedFile,
    OnnxModel,
    weight_bytes,
    weight_chunks,
)
from serde.onnx.reader import detect, load

__all__ = ["OnnxModel", "detect", "external_locations", "load", "save", "source_paths"]

_PAGE = 4096
_LARGE = 2**16
_SMALL_ALIGNMENT = 64
_RAW_DATA = 9
_DATA_RANGES = 256
_NO_LINKS: Mapping[str, LinkedFile] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Layout:
    """A file that is ready to be written.

    Attributes:
        pieces: Pieces of the model.
        buffer: What spans of `pieces` refer to.
        data: Offset and bytes of each external tensor.
        data_name: Name of the file that these go into.
    """

    pieces: list[Piece]
    buffer: bytes
    data: list[tuple[int, Payload]] = field(default_factory=list)
    data_name: str | None = None


def save(
    model: OnnxModel,
    path: str | os.PathLike[str],
    *,
    force_external: bool = False,
    external_threshold: int | None = None,
    link_digest: Literal["sampled", "full"] = "sampled",
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
        link_digest: With "full", files that weights are linked to get a checksum of all bytes.
        sources: Files that may not be written over; those that weights lie in never are.
        before_commit: Called with the finished temporary file, which already has its final
            name and its data beside it; if it raises, nothing stays.

    Returns:
        The path.

    Raises:
        OptionError: The path or the model cannot be used, or weights cannot be linked from there.
        FormatError: A file that weights lie in changed.
        ConverterBug: A weight is not as long as it says.
    """
    target = Path(path)
    if external_threshold is not None and external_threshold < 0:
        raise OptionError(f"external threshold: expected 0 or more, found {external_threshold}")
    sweep(target.absolute().parent)  # Names depend on what is there.
    limit = MAX_PROTOBUF_BYTES
    if external_threshold is not None:
        limit = min(limit, external_threshold)
    links = _links(model, target, full=link_digest == "full")
    layout = _external_layout(model, target, links) if links else _layout(model, None)
    if not links and (force_external or total_length(layout.pieces) > limit):
        layout = _external_layout(model, target)
    _check_length(layout)
    data = [] if layout.data_name is None else [target.with_name(layout.data_name)]
    known = [*sources, *source_paths(model)]

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[-1])
        if not all(_is_free(path, target, model, links) for path in data):
            raise OptionError(f"{data[0]}: another run has written it meanwhile; run again")

    group = atomic_group(
        [*data, target],
        sources=known,
        outdated=partial(outdated_data, target, layout.data_name, known),
        before_commit=check,
    )
    with group as staged:
        if data:
            expect("bytes", sum(len(payload) for _, payload in layout.data))
            with PieceWriter.open(staged[0]) as writer:
                for offset, payload in layout.data:
                    writer.put(bytes(offset - writer.position))
                    writer.put_payload(payload)
            noted = _written_file(staged[0], target, layout)
            layout = _layout(model, layout.data_name, links, [noted])
            _check_length(layout)
        with PieceWriter.open(staged[-1]) as writer:
            writer.put_pieces(layout.pieces, layout.buffer)
    return target


def _links(model: OnnxModel, target: Path, *, full: bool) -> Mapping[str, LinkedFile]:
    """Return the files that weights stay in, by their paths."""
    if not model.to_link:
        return _NO_LINKS
    from serde.onnx.links import link_files

    linked = [weight for name, weight in model.weights.items() if name in model.to_link]
    return link_files(linked, target, full=full)


def _external_layout(
    model: OnnxModel, target: Path, links: Mapping[str, LinkedFile] = _NO_LINKS
) -> _Layout:
    """Arrange a model with its weights in a file that no other graph reads."""
    layout = _layout(model, data_name(target), links)
    if layout.data_name is None or _is_free(
        target.with_name(layout.data_name), target, model, links
    ):
        return layout
    digest = graph_digest(layout.pieces, layout.buffer)
    return _layout(model, data_name(target, digest), links)


def _is_free(data: Path, target: Path, model: OnnxModel, links: Mapping[str, LinkedFile]) -> bool:
    """Whether a data file may be put there: nothing is, or what is belongs to the same graph."""
    if not is_there(data) or data.name != data_name(target):
        return True
    layout = _layout(model, data.name, links, noted_data(target))
    return is_written(target, layout.pieces, layout.buffer)


def _written_file(path: Path, target: Path, layout: _Layout) -> LinkedFile:
    """Return what a model notes of the data that was just written."""
    ranges = [(offset, len(payload)) for offset, payload in layout.data]
    try:
        with OpenFile.open(path) as opened:
            return LinkedFile(path.name, Fingerprint.take(opened, ranges, _DATA_RANGES))
    except FormatError as error:  # Its place is hidden: the one that it will have is told.
        reason = str(error).removeprefix(f"{path}: ")
        raise FormatError(reason, path=target.with_name(path.name)) from error


def _check_length(layout: _Layout) -> None:
    if total_length(layout.pieces) > MAX_PROTOBUF_BYTES:
        raise OptionError(
            f"without its external data the model has {total_length(layout.pieces)} bytes, more "
            f"than the {MAX_PROTOBUF_BYTES} that protobuf reads; turn Constant nodes into "
            "initializers"
        )


def source_paths(model: OnnxModel) -> set[str]:
    """Return the files that weights of a model lie in."""
    ranges = (stored_source(weight) for weight in (*model.weights.values(), *model.nested.values()))
    return {range_.path for range_ in ranges if range_ is not None and range_.handle is None}


def _layout(
    model: OnnxModel,
    location: str | None,
    links: Mapping[str, LinkedFile] = _NO_LINKS,
    noted: Sequence[LinkedFile] = (),
) -> _Layout:
    """Arrange a model with its weights embedded, or in a file called `location`.

    Args:
        model: The model.
        location: Name of the file that weights go into which are neither small nor linked.
        links: Files that weights of ``model.to_link`` stay in, by their paths.
        noted: What is noted of the file called `location`.
    """
    skeleton = model.skeleton()
    places: list[Place] = []
    data: list[tuple[int, Payload]] = []
    end = 0
    main = set(model.weights)
    if links or noted:
        from serde.onnx.links import note_links

        for key, files in ((LINKED_PROPERTY, links.values()), (DATA_PROPERTY, noted)):
            if files:
                note_links(skeleton, files, key)
    for tensor, weight in model.fillings(skeleton):
        payload = Payload(
            tensor.name, weight_bytes(weight), partial(weight_chunks, weight), stored_source(weight)
        )
        is_main = tensor.name in main and model.weights[tensor.name] is weight
        source = payload.source if is_main and tensor.name in model.to_link else None
        if source is not None and source.path in links:
            if source.length != len(payload):
                raise payload.fault(source.length)
            link = links[source.path]
            _point_to(tensor, link.location, source.offset, len(payload), link.checksum)
            continue
        if location is None or not is_main or len(payload) < EMBEDDED_BYTES:
            if isinstance(weight, ArrayWeight) and len(payload) < EMBEDDED_BYTES:
                small = b"".join(payload.chunks())
                if len(small) == len(payload):  # Of another length it is refused below.
                    tensor.raw_data = small
                    continue
            mark = partial(setattr, tensor, "raw_data")
            places.append(Place(mark, _RAW_DATA, payload))
            continue
        alignment = _PAGE if len(payload) >= _LARGE else _SMALL_ALIGNMENT
        offset = -(-end // alignment) * alignment
        end = offset + len(payload)
        data.append((offset, payload))
        _point_to(tensor, location, offset, len(payload))
    pieces, buffer = place_payloads(skeleton, LAYOUT, places)
    return _Layout(pieces, buffer, data, location if data else None)


def _point_to(
    tensor: onnx.TensorProto, location: str, offset: int, length: int, checksum: str | None = None
) -> None:
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length, "checksum": checksum}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
