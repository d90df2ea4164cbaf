"""Reading ONNX models: the graph becomes a protobuf, the weights stay where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from serde.core import MAX_NAME_BYTES, MAX_TENSORS, FileRange, FileWeight, OpenFile, Weight
from serde.core.records import dataclass, field
from serde.errors import FormatError, OptionError
from serde.io.messages import INLINE_BYTES, FileSource, MemorySource, cut_data
from serde.io.packed import PackedWeight
from serde.io.wire import LENGTH, VARINT, Cut, Scanner
from serde.onnx.elements import ELEMENTS, LAYOUT, Element
from serde.onnx.external import ExternalFiles
from serde.onnx.model import (
    DATA_PROPERTY,
    LINKED_PROPERTY,
    MARKER,
    LinkedFile,
    OnnxModel,
    inline_fault,
    shape_fault,
    tensors,
)
from serde.onnx.text import detect_text, is_text, read_text
from serde.onnx.versions import NEWEST_IR

__all__ = ["check_links", "detect", "detect_bytes", "load", "load_opened"]

_MAIN = "graph.initializer["
# The fields of ModelProto: those that are numbers, and the messages and strings.
_NUMBERS = frozenset({1, 5})
_LENGTHS = frozenset({2, 3, 4, 6, 7, 8, 14, 20, 25, 26})


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto,
    *,
    directory: str | os.PathLike[str] | None = None,
) -> OnnxModel:
    """Return the model in a file, in bytes or in a protobuf message.

    Data of 1 KiB and more is not read: it becomes ranges of the file, or views of the bytes.
    A message is not changed. Files of text, by their suffix, are read whole.

    Args:
        source: Where the model is.
        directory: Where external data lies; the directory of the file if left out.

    Raises:
        FormatError: It is not a sound ONNX model.
    """
    base = None if directory is None else os.path.abspath(os.fspath(directory))
    if isinstance(source, onnx.ModelProto):
        return _from_message(source, ExternalFiles(base))
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source).cast("B")
        return _from_bytes(MemorySource(view), ExternalFiles(base))
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"expected a path, bytes or a ModelProto, found {type(source).__name__}")
    path = os.path.abspath(os.fspath(source))
    if is_text(path):
        external = ExternalFiles(base or os.path.dirname(path), path)
        return _from_message(read_text(path), external)
    with OpenFile.open(path) as opened:
        external = ExternalFiles(base or os.path.dirname(path), path)
        return _from_bytes(FileSource(opened), external)


def load_opened(opened: OpenFile, open_data: Callable[[str], OpenFile]) -> OnnxModel:
    """Return the model in an open file; `open_data` opens its external data by its location."""
    return _from_bytes(FileSource(opened), ExternalFiles(open_data))


def check_links(path: str | os.PathLike[str]) -> bool:
    """Make sure that files which a model's weights were linked to are as they were then.

    Files with a checksum are read through.

    Args:
        path: The model.

    Returns:
        Whether there are such files; a file that is no model has none.

    Raises:
        FormatError: A file has changed, or cannot be read.
    """
    name = os.path.abspath(os.fspath(path))
    if not _has_links(name):
        return False
    with OpenFile.open(name) as opened:
        external = ExternalFiles(os.path.dirname(name), name)
        _from_bytes(FileSource(opened), external)
    external.check_checksums()
    return True


def _has_links(path: str) -> bool:
    proto = onnx.ModelProto()
    try:
        with OpenFile.open(path) as opened:
            proto.ParseFromString(cut_data(FileSource(opened), LAYOUT)[0])
        return any(entry.key == LINKED_PROPERTY for entry in proto.metadata_props)
    except (FormatError, DecodeError):
        return False


def detect(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds an ONNX model.

    It does if it is made of the fields of a ModelProto, an IR version and a graph among
    them; a file that is called ``.onnx`` is taken for one, so that its fault is told.
    """
    file = Path(path)
    if not file.is_file():
        return False
    if file.suffix == ".onnx":
        return True
    if is_text(str(file)):
        return detect_text(file)
    try:
        with OpenFile.open(file) as opened:
            return _has_fields(FileSource(opened))
    except FormatError:
        return False


def detect_bytes(data: bytes | bytearray | memoryview) -> bool:
    """Whether bytes hold an ONNX model, judged as :func:`detect` does."""
    return _has_fields(MemorySource(memoryview(data).cast("B")))


def _has_fields(source: FileSource | MemorySource) -> bool:
    """Whether the fields of a message are those of a model."""
    seen = set()
    try:
        for item in Scanner(source).fields(0, source.size):
            known = {VARINT: _NUMBERS, LENGTH: _LENGTHS}.get(item.wire, frozenset())
            if item.number not in known:
                return False
            seen.add(item.number)
    except FormatError:
        return False
    return {1, 7} <= seen


@dataclass(slots=True)
class _Skeleton:
    """A parsed model whose large data was cut out.

    Attributes:
        proto: What is left.
        cuts: The data that was cut out, by the path of its tensor.
        weight: Makes the weight of a range of the source.
        path: The file, if there is one.
    """

    proto: onnx.ModelProto
    path: str | None = None
    cuts: dict[str, Cut] = field(default_factory=dict)
    weight: Callable[[int, int, tuple[int, ...], str], Weight] | None = None


def _from_bytes(source: FileSource | MemorySource, external: ExternalFiles) -> OnnxModel:
    if not source.size:
        raise FormatError("expected an ONNX model, found nothing", path=source.path)
    skeleton, cuts = cut_data(source, LAYOUT)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(skeleton)
    except DecodeError as error:
        raise FormatError(
            f"expected an ONNX model; protobuf says: {error}", path=source.path
        ) from None
    return _attach(_Skeleton(proto, source.path, cuts, source.weight), external)


def _from_message(message: onnx.ModelProto, external: ExternalFiles) -> OnnxModel:
    """Copy a message field by field, leaving out the large data of its initializers."""
    proto = onnx.ModelProto()
    arrays: dict[str, bytes] = {}
    for descriptor, value in message.ListFields():
        if descriptor.name != "graph":
            _copy_field(descriptor, value, proto)
    if message.HasField("graph"):
        proto.graph.SetInParent()
    for descriptor, value in message.graph.ListFields():
        if descriptor.name != "initializer":
            _copy_field(descriptor, value, proto.graph)
    for index, tensor in enumerate(message.graph.initializer):
        entry = proto.graph.initializer.add()
        raw = tensor.raw_data if tensor.HasField("raw_data") else b""
        if len(raw) < INLINE_BYTES:
            entry.CopyFrom(tensor)
            continue
        for descriptor, value in tensor.ListFields():
            if descriptor.name != "raw_data":
                _copy_field(descriptor, value, entry)
        arrays[f"{_MAIN}{index}]"] = raw
    for path, tensor in tensors(proto):
        if not path.startswith(_MAIN) and len(tensor.raw_data) >= INLINE_BYTES:
            arrays[path] = tensor.raw_data
            tensor.ClearField("raw_data")
    return _attach(_in_memory(proto, arrays), external)


def _in_memory(proto: onnx.ModelProto, arrays: dict[str, bytes]) -> _Skeleton:
    data = list(arrays.values())
    cuts = {
        path: Cut(path, "raw_data", index, index + len(raw))
        for index, (path, raw) in enumerate(arrays.items())
    }

    def weight(start: int, stop: int, shape: tuple[int, ...], dtype: str) -> Weight:
        return MemorySource(memoryview(data[start])).weight(0, stop - start, shape, dtype)

    return _Skeleton(proto, None, cuts, weight)


def _copy_field(descriptor: FieldDescriptor, value: Any, target: Any) -> None:
    if isinstance(value, Message):
        getattr(target, descriptor.name).CopyFrom(value)
    elif isinstance(value, (str, bytes, int, float)):
        setattr(target, descriptor.name, value)
    else:
        getattr(target, descriptor.name).extend(value)


def _attach(skeleton: _Skeleton, external: ExternalFiles) -> OnnxModel:
    """Check the skeleton and give its tensors their weights."""
    proto, path = skeleton.proto, skeleton.path
    _check_text(proto, path)
    _check_header(proto, path)
    links, data = _take_links(proto, path)
    model = OnnxModel(proto, {}, links=links)
    external.expect(links, data)
    names: set[str] = set()
    for count, (where, tensor) in enumerate(tensors(proto)):
        if count >= MAX_TENSORS:
            raise FormatError(f"expected at most {MAX_TENSORS} tensors", path=path)
        weight = _tensor_weight(skeleton, where, tensor, external)
        is_main = where.startswith(_MAIN)
        if is_main:
            _check_name(tensor.name, names, where, path)
        if weight is not None:
            _detach(model, tensor, weight, None if is_main else where)
    if skeleton.cuts:
        where, cut = next(iter(skeleton.cuts.items()))
        raise FormatError(f"{where} is not a tensor of the model", path=path, offset=cut.start)
    external.check_overlaps()
    model.changed = tuple(external.changed)
    return model


def _take_links(
    proto: onnx.ModelProto, path: str | None
) -> tuple[tuple[LinkedFile, ...], tuple[LinkedFile, ...]]:
    """Remove from a model what it notes of files that its weights stay in, and return it.

    Returns:
        The files that weights were linked to, and those that were written with the model.
    """
    if not {LINKED_PROPERTY, DATA_PROPERTY} & {entry.key for entry in proto.metadata_props}:
        return (), ()
    from serde.onnx.links import drop_links, read_links

    found = read_links(proto, path), read_links(proto, path, DATA_PROPERTY)
    drop_links(proto)
    return found


def _detach(model: OnnxModel, tensor: onnx.TensorProto, weight: Weight, key: str | None) -> None:
    """Enter the weight of a tensor into its table; a nested tensor keeps a mark."""
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    if key is None:
        model.weights[tensor.name] = weight
        return
    model.nested[key] = weight
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key=MARKER, value=key)


def _tensor_weight(
    skeleton: _Skeleton, where: str, tensor: onnx.TensorProto, external: ExternalFiles
) -> Weight | None:
    """Return the weight of a tensor whose data is not in the skeleton."""
    cut = skeleton.cuts.pop(where, None)
    is_external = tensor.data_location == onnx.TensorProto.EXTERNAL
    label = f"{where} ({tensor.name})" if tensor.name else where

    def fault(message: str) -> FormatError:
        offset = None if cut is None else cut.start
        return FormatError(f"{label}: {message}", path=skeleton.path, offset=offset)

    if cut is None and not is_external:
        message = inline_fault(tensor)
        if message is not None:
            raise fault(message)
        return None
    if (cut is not None and is_external) or _holds_data(tensor):
        raise fault("has data in more than one place")
    element, shape, size = _typed_shape(tensor, fault)
    nbytes = element.nbytes(size)
    if is_external:
        return _range_weight(external.find(tensor, label, nbytes), shape, element)
    if cut is None or skeleton.weight is None:
        raise fault("has no data")
    if cut.field not in ("raw_data", element.field):
        raise fault(f"expected {element.field} for {element.dtype}, found {cut.field}")
    if cut.stop - cut.start != nbytes:
        raise fault(
            f"expected {nbytes} bytes for {element.dtype}{list(shape)}, "
            f"found {cut.stop - cut.start}"
        )
    if element.bits >= 8:
        return skeleton.weight(cut.start, cut.stop, shape, element.dtype)
    packed = skeleton.weight(cut.start, cut.stop, (nbytes,), "uint8")
    return PackedWeight(packed, shape, element.dtype, element.bits)


def _typed_shape(
    tensor: onnx.TensorProto, fault: Callable[[str], FormatError]
) -> tuple[Element, tuple[int, ...], int]:
    element = ELEMENTS.get(tensor.data_type)
    if element is None:
        raise fault(f"data type {tensor.data_type} has no values of a fixed width")
    shape = tuple(tensor.dims)
    message = shape_fault(shape)
    if message is not None:
        raise fault(message)
    return element, shape, prod(shape)


def _range_weight(range_: FileRange, shape: tuple[int, ...], element: Element) -> Weight:
    if element.bits >= 8:
        return FileWeight(range_, shape, element.dtype)
    return PackedWeight(
        FileWeight(range_, (range_.length,), "uint8"), shape, element.dtype, element.bits
    )


def _holds_data(tensor: onnx.TensorProto) -> bool:
    names = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
    return (
        tensor.HasField("segment")
        or (tensor.HasField("raw_data") and len(tensor.raw_data) > 0)
        or any(len(getattr(tensor, name)) for name in names)
    )


def _check_name(name: str, names: set[str], where: str, path: str | None) -> None:
    if not name:
        raise FormatError(f"{where}: an initializer needs a name", path=path)
    if len(name) > MAX_NAME_BYTES:
        raise FormatError(f"{where}: a name of {len(name)} characters is too long", path=path)
    if name in names:
        raise FormatError(f"{where}: a second initializer is called {name!r}", path=path)
    names.add(name)


def _check_header(proto: onnx.ModelProto, path: str | None) -> None:
    if not proto.HasField("graph") or proto.ir_version < 1:
        raise FormatError("expected an ONNX model: it has no graph or no IR version", path=path)
    if proto.ir_version > NEWEST_IR:
        raise FormatError(
            f"IR version {proto.ir_version}: expected 1 to {NEWEST_IR}, the newest", path=path
        )
    if proto.ir_version >= 3 and not proto.opset_import:
        raise FormatError("expected an operator set version, found none", path=path)


def _check_text(proto: onnx.ModelProto, path: str | None) -> None:
    """Refuse text that is not UTF-8, which protobuf hands out as bytes."""
    pending: list[Iterator[Any]] = [iter((proto,))]
    while pending:
        message = next(pending[-1], None)
        if message is None:
            pending.pop()
            continue
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                pending.append(iter((value,) if isinstance(value, Message) else value))
            elif descriptor.type == FieldDescriptor.TYPE_STRING:
                texts = (value,) if isinstance(value, (str, bytes)) else value
                if bytes in map(type, texts):
                    raise FormatError(
                        f"{message.DESCRIPTOR.name}.{descriptor.name}: expected UTF-8", path=path
                    )
