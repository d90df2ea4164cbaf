"""ONNX models as serde holds them: the protobuf, and the weights beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from serde.core import MAX_PROTOBUF_BYTES, MAX_RANK, ArrayWeight, Weight, dataclass, field
from serde.errors import ConverterBug, FormatError, OptionError
from serde.io.packed import stored_chunks
from serde.io.sparse import SparseWeight
from serde.onnx.elements import CODES, ELEMENTS, MESSAGES, Element

if TYPE_CHECKING:
    from serde.io.fingerprint import Fingerprint

__all__ = [
    "DATA_PROPERTY", "EMBEDDED_BYTES", "LINKED_PROPERTY", "MARKER", "PRODUCER", "LinkedFile",
    "OnnxModel", "element_of", "inline_fault", "shape_fault", "tensors", "weight_bytes",
    "weight_chunks",
]  # fmt: skip

EMBEDDED_BYTES: Final = 1024
"""Tensors below this length stay in the model when the others become external."""

LINKED_PROPERTY: Final = "serde.linked"
"""Key of the metadata that tell of the files that weights stay in."""

DATA_PROPERTY: Final = "serde.data"
"""Key of the metadata that tell of the file of external data that was written with a model."""

MARKER = "serde.weight"
"""Key of the external data entry that names the weight of a nested tensor."""

PRODUCER = "serde"
"""What models that are written name as their producer."""

_MOST_ELEMENTS: Final = 2**58
"""NumPy has no array of more elements, be it one of which another length is 0."""

_TYPED_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A file that a model's weights stay in (:mod:`serde.onnx.links`).

    Attributes:
        location: Where it is, from the model's folder.
        fingerprint: What it was like when the model was written.
        checksum: SHA-1 of all of it, as external data may have one; None if not asked for.
    """

    location: str
    fingerprint: Fingerprint
    checksum: str | None = None


def tensors(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield every tensor of a model with its path, such as ``graph.node[3].attribute[0].t``.

    Tensors of subgraphs, functions, sparse tensors and training graphs are among them.
    """
    pending = [_parts("ModelProto", "", proto)]
    while pending:
        found = next(pending[-1], None)
        if found is None:
            pending.pop()
            continue
        kind, path, message = found
        if kind == "TensorProto":
            yield path, message
        else:
            pending.append(_parts(kind, f"{path}.", message))


def _parts(kind: str, prefix: str, message: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the messages directly in another that may lead to a tensor."""
    for name, child, repeats in MESSAGES[kind].values():
        value = getattr(message, name)
        if repeats:
            for index, each in enumerate(value):
                if child != "NodeProto" or each.attribute:  # Else it has no tensor.
                    yield child, f"{prefix}{name}[{index}]", each
        elif message.HasField(name):
            yield child, f"{prefix}{name}", value


def element_of(tensor: onnx.TensorProto) -> Element:
    """Return the element type of a tensor.

    Raises:
        FormatError: It is unknown, or that of strings.
    """
    element = ELEMENTS.get(tensor.data_type)
    if element is None:
        raise FormatError(f"tensor {tensor.name!r}: unknown data type {tensor.data_type}")
    return element


def shape_fault(dims: Sequence[int]) -> str | None:
    """Return what is wrong with the lengths of a tensor's axes."""
    if len(dims) > MAX_RANK:
        return f"expected at most {MAX_RANK} axes, found {len(dims)}"
    wrong = [dim for dim in dims if dim < 0]
    if wrong:
        return f"axis of length {wrong[0]}"
    if 0 in dims and prod(dim for dim in dims if dim) > _MOST_ELEMENTS:
        return f"no array has the lengths {list(dims)}"
    return None


def inline_fault(tensor: onnx.TensorProto) -> str | None:
    """Return what is wrong with a tensor that holds its own data."""
    message = shape_fault(tensor.dims)
    if message is not None:
        return message
    size = prod(tensor.dims)
    if tensor.HasField("segment"):
        return "segments of tensors are not supported"
    held = {descriptor.name: value for descriptor, value in tensor.ListFields()}
    present = [name for name in (*_TYPED_FIELDS, "string_data") if name in held]
    raw = held.get("raw_data")
    if len(present) + bool(raw) > 1:
        return f"more than one of {', '.join([*present, 'raw_data'] if raw else present)}"
    if tensor.data_type == onnx.TensorProto.STRING:
        name, wanted = "string_data", size
    elif tensor.data_type not in ELEMENTS:
        return f"unknown data type {tensor.data_type}"
    elif raw is not None and not present:
        wanted = ELEMENTS[tensor.data_type].nbytes(size)
        return None if len(raw) == wanted else f"expected {wanted} bytes, found {len(raw)}"
    else:
        name = ELEMENTS[tensor.data_type].field
        wanted = ELEMENTS[tensor.data_type].entries(size)
    if present and present != [name]:
        return f"expected {name} for data type {tensor.data_type}, found {present[0]}"
    found = len(held.get(name, ()))
    if found != wanted:
        return f"expected {wanted} entries of {name}, found {found}"
    return None


def weight_bytes(weight: Weight) -> int:
    """Return the length of a weight in ``raw_data``.

    Raises:
        OptionError: ONNX has no such element type.
    """
    return _element_named(weight.dtype).nbytes(weight.size)


def _element_named(dtype: str) -> Element:
    if dtype not in CODES:
        raise OptionError(f"ONNX has no element type {dtype}")
    return CODES[dtype]


@dataclass(slots=True)
class OnnxModel:
    """An ONNX model whose bulk is still where it came from.

    Attributes:
        proto: The model without the data of `weights`. An initializer that is in `weights`
            may be left out of ``proto.graph.initializer``, or stand there without data to
            keep its place, documentation and metadata.
        weights: Data of initializers of the main graph, by name, in order.
        nested: Data of large tensors elsewhere (node attributes, subgraphs, functions), by
            the key that the tensor's external data names; see :meth:`weight`.
        to_link: Names of those of `weights` that a file of the model refers to where they lie.
        links: Files that weights of a model stay in that was read.
        changed: How files of external data differ from those that the model was written with.
    """

    proto: onnx.ModelProto
    weights: dict[str, Weight]
    nested: dict[str, Weight] = field(default_factory=dict)
    to_link: frozenset[str] = frozenset()
    links: tuple[LinkedFile, ...] = ()
    changed: tuple[str, ...] = ()

    def weight(self, tensor: onnx.TensorProto) -> Weight:
        """Return the values of a tensor of `proto`, wherever they are.

        Raises:
            FormatError: It holds strings, or data that does not fit its type.
        """
        key = _nested_key(tensor)
        if key is not None:
            return self.nested[key]
        if tensor.name in self.weights and not _has_data(tensor):
            known = self.weights[tensor.name]
            if known.shape == tuple(tensor.dims):
                return known
        fault = inline_fault(tensor)
        if fault is not None:
            raise FormatError(f"tensor {tensor.name!r}: {fault}")
        element_of(tensor)
        if tensor.HasField("raw_data") and not tensor.raw_data:  # may stand beside a typed field
            stored, tensor = tensor, onnx.TensorProto()
            tensor.CopyFrom(stored)
            tensor.ClearField("raw_data")
        return ArrayWeight(np.asarray(onnx.numpy_helper.to_array(tensor)))

    def sparse_weight(self, tensor: onnx.SparseTensorProto, name: str) -> Weight:
        """Return the values of a sparse tensor of `proto`, filled up; `name` is for messages.

        Raises:
            FormatError: It is not sound.
        """
        fault = shape_fault(tensor.dims)
        if fault is not None:
            raise FormatError(f"sparse tensor {name!r}: {fault}")
        values, indices = self.weight(tensor.values), self.weight(tensor.indices)
        return SparseWeight(name, tuple(tensor.dims), values, indices)

    def skeleton(self) -> onnx.ModelProto:
        """Return a copy of `proto` in which every weight stands without data.

        Raises:
            OptionError: An entry of `proto` contradicts `weights`, or has no data at all.
        """
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        there = set()
        for tensor in proto.graph.initializer:
            if tensor.name not in self.weights:
                continue
            if tensor.name in there or _has_data(tensor):
                raise OptionError(f"initializer {tensor.name!r} is given twice")
            _check_entry(tensor, self.weights[tensor.name])
            there.add(tensor.name)
        for name, weight in self.weights.items():
            if name not in there:
                element = _element_named(weight.dtype)
                proto.graph.initializer.add(
                    name=name, data_type=element.code, dims=list(weight.shape)
                )
        return proto

    def fillings(self, skeleton: onnx.ModelProto) -> list[tuple[onnx.TensorProto, Weight]]:
        """Return the tensors of a copy that :meth:`skeleton` made that lack their data.

        Marks of nested tensors are removed from it.

        Raises:
            OptionError: A tensor has no data anywhere.
        """
        found = []
        main = "graph.initializer["
        for path, tensor in tensors(skeleton):
            key = _nested_key(tensor)
            if key is not None:
                if key not in self.nested:
                    raise OptionError(f"{path}: no weight is called {key!r}")
                _check_entry(tensor, self.nested[key])
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                found.append((tensor, self.nested[key]))
            elif path.startswith(main) and tensor.name in self.weights:
                found.append((tensor, self.weights[tensor.name]))
            else:
                fault = "its data is elsewhere" if _is_external(tensor) else inline_fault(tensor)
                if fault is not None:
                    raise OptionError(f"{path} ({tensor.name}): {fault}")
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all weights, as ONNX stores them."""
        return sum(map(weight_bytes, [*self.weights.values(), *self.nested.values()]))

    def complete(self) -> onnx.ModelProto:
        """Return the model as one protobuf message with all weights in it.

        Raises:
            OptionError: It would exceed what protobuf can hold, or is to refer to files.
        """
        if self.to_link:
            raise OptionError("link_weights: give a path beside the files that the weights lie in")
        proto = self.skeleton()
        missing = self.fillings(proto)
        # Tag and length of a field, and growth of the lengths around it.
        total = proto.ByteSize() + self.nbytes + 16 * len(missing)
        if total > MAX_PROTOBUF_BYTES:
            raise OptionError(
                f"the model has {total} bytes, more than the {MAX_PROTOBUF_BYTES} of a protobuf "
                "message; give a path to write it with external data"
            )
        for tensor, weight in missing:
            data = b"".join(weight_chunks(weight))
            if len(data) != weight_bytes(weight):
                raise _wrong_length(tensor.name, weight, len(data))
            tensor.raw_data = data
        return proto


def _wrong_length(name: str, weight: Weight, found: int) -> ConverterBug:
    """Return the error of a weight whose chunks are not as long as it says."""
    wanted = weight_bytes(weight)
    return ConverterBug(f"weight {name}: expected {wanted} bytes, its chunks have {found}")


def weight_chunks(weight: Weight) -> Iterator[memoryview | bytes]:
    """Yield the bytes of a weight as ONNX stores them, in pieces of bounded length."""
    return stored_chunks(weight, _element_named(weight.dtype).bits)


def _check_entry(tensor: onnx.TensorProto, weight: Weight) -> None:
    element = _element_named(weight.dtype)
    if tensor.data_type != element.code or tuple(tensor.dims) != weight.shape:
        raise OptionError(
            f"initializer {tensor.name!r} is declared as data type {tensor.data_type} "
            f"{list(tensor.dims)}, its weight is {weight.dtype}{list(weight.shape)}"
        )


def _has_data(tensor: onnx.TensorProto) -> bool:
    return (
        tensor.HasField("raw_data")
        or _is_external(tensor)
        or any(len(getattr(tensor, name)) for name in (*_TYPED_FIELDS, "string_data"))
    )


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _nested_key(tensor: onnx.TensorProto) -> str | None:
    """Return the key of a nested weight, if the tensor stands for one."""
    if not _is_external(tensor) or len(tensor.external_data) != 1:
        return None
    entry = tensor.external_data[0]
    return entry.value if entry.key == MARKER else None
