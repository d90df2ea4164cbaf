"""From a model to a file: its tables by LiteRT's schema, then the values one after the other.

A FlatBuffer refers forwards by 32 bits, from the field to the vector. So the tables are packed
with empty buffers, each buffer's field is set to where its vector will lie, and vectors are copied
behind the tables in bounded pieces. What would lie beyond two gigabytes is told by ``offset`` and
``size``, of 64 bits, as LiteRT has it.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Weight, expect, require
from serde.io.atomic import atomic_write, write_all, write_weight
from serde.io.packed import PackedBytes
from serde.tflite.facts import METADATA_NAME, metadata_bytes, write_labels
from serde.tflite.model import Operator, Signature, Subgraph, Tensor, TfliteModel
from serde.tflite.reader import IDENTIFIER
from serde.tflite.schema import camel_case, load_schema
from serde.tflite.versions import OPTIONS, least_runtime, version_of

__all__ = ["file_bytes", "save"]

_ALIGNMENT: Final = 16
_MOST: Final = 2**31 - 2**20
"""Bytes up to which values lie inside the FlatBuffer."""


def save(
    model: TfliteModel,
    path: Path,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a model; the same one always gives the same bytes."""
    weights = _weights(model)
    is_inside = 2**16 + sum(each.nbytes + _ALIGNMENT for each in weights) < _MOST
    head, places = _pack(model, len(weights), is_inside)
    at, gaps = len(head), list[int]()
    for fields, weight in zip(places, weights, strict=True):
        start = -(-(at + 4) // _ALIGNMENT) * _ALIGNMENT
        gaps.append(start - at)
        if is_inside:
            struct.pack_into("<I", head, fields[0], start - 4 - fields[0])
        else:
            struct.pack_into("<Q", head, fields[0], start)
            struct.pack_into("<Q", head, fields[1], weight.nbytes)
        at = start + weight.nbytes
    expect("bytes", at)
    with atomic_write(path, sources=sources, before_commit=before_commit) as file:
        fd = file.fileno()
        write_all(fd, head)
        for gap, weight in zip(gaps, weights, strict=True):
            length = struct.pack("<I", weight.nbytes) if is_inside else bytes(4)
            write_all(fd, bytes(gap - 4) + length)
            write_weight(weight, fd, "a buffer")
        write_labels(model.facts, file)
    return path


def file_bytes(model: TfliteModel) -> bytes:
    """Return what :func:`save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder) / "model.tflite").read_bytes()


def _weights(model: TfliteModel) -> list[Weight]:
    """Return what buffers hold, each once, as the bytes that lie in the file."""
    found = [each.values for graph in model.subgraphs for each in graph.tensors]
    once = {id(each): each for each in found if each is not None}
    return [_stored(each) for each in once.values()]


def _stored(weight: Weight) -> Weight:
    bits = {"int4": 4, "uint4": 4, "int2": 2}.get(weight.dtype)
    return weight if bits is None else PackedBytes(weight, bits)


def _pack(model: TfliteModel, count: int, is_inside: bool) -> tuple[bytearray, list[list[int]]]:
    """Return the tables, and where the fields of each buffer lie that tell its values."""
    schema = load_schema()
    flatbuffers = require("flatbuffers")
    made = schema.ModelT()
    made.version, made.description = 3, model.description or None
    made.buffers = [schema.BufferT()]
    for _ in range(count):
        buffer = schema.BufferT()
        if is_inside:
            buffer.data = np.empty(0, np.uint8)
        else:
            buffer.offset, buffer.size = 2, 1
        made.buffers.append(buffer)
    codes: dict[tuple[str, int], int] = {}
    numbers: dict[int, int] = {}
    made.subgraphs = [_subgraph(schema, each, codes, numbers) for each in model.subgraphs]
    made.operatorCodes = [_code(schema, *each) for each in codes]
    made.metadata = [_metadata(schema, made.buffers, *each) for each in _own(model, codes)]
    made.signatureDefs = [_signature(schema, each) for each in model.signatures]
    builder = flatbuffers.Builder(2**16)
    builder.Finish(made.Pack(builder), IDENTIFIER)
    head = bytearray(builder.Output())
    root = schema.Model.GetRootAs(head, 0)
    tables = [root.Buffers(i + 1)._tab for i in range(count)]
    slots = (4,) if is_inside else (6, 8)
    return head, [[each.Pos + int(each.Offset(slot)) for slot in slots] for each in tables]


def _own(model: TfliteModel, codes: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """Yield metadata by name; of the least runtime there are 16 bytes by rule."""
    yield "min_runtime_version", least_runtime(codes).encode().ljust(16, b"\0")
    if model.facts:
        main = model.subgraphs[0]
        names = ([main.tensors[i].name for i in row] for row in (main.inputs, main.outputs))
        yield METADATA_NAME, metadata_bytes(model.facts, *names)


def _metadata(schema: AnyValue, buffers: list[AnyValue], name: str, data: bytes) -> AnyValue:
    made, buffer = schema.MetadataT(), schema.BufferT()
    made.name, made.buffer = name, len(buffers)
    buffer.data = np.frombuffer(data, np.uint8)
    buffers.append(buffer)
    return made


def _code(schema: AnyValue, name: str, version: int) -> AnyValue:
    made = schema.OperatorCodeT()
    made.builtinCode = getattr(schema.BuiltinOperator, name)
    made.deprecatedBuiltinCode = min(made.builtinCode, 127)
    made.version = version
    return made


def _subgraph(
    schema: AnyValue, graph: Subgraph, codes: dict[tuple[str, int], int], numbers: dict[int, int]
) -> AnyValue:
    made = schema.SubGraphT()
    made.name = graph.name
    made.inputs, made.outputs = list(graph.inputs), list(graph.outputs)
    made.tensors = [_tensor(schema, each, numbers) for each in graph.tensors]
    made.operators = [_operator(schema, graph, each, codes) for each in graph.operators]
    return made


def _tensor(schema: AnyValue, tensor: Tensor, numbers: dict[int, int]) -> AnyValue:
    made = schema.TensorT()
    made.name, made.hasRank, made.isVariable = tensor.name, True, tensor.is_variable
    made.shape = [max(each, 1) if each < 0 else each for each in tensor.shape]
    if -1 in tensor.shape:
        made.shapeSignature = list(tensor.shape)
    made.type = getattr(schema.TensorType, tensor.dtype.upper())
    made.buffer = 0
    if tensor.values is not None:
        made.buffer = numbers.setdefault(id(tensor.values), len(numbers) + 1)
    if tensor.quantization is not None:
        found = schema.QuantizationParametersT()
        found.scale = tensor.quantization.scales.astype(np.float32)
        found.zeroPoint = tensor.quantization.zero_points.astype(np.int64)
        found.quantizedDimension = tensor.quantization.axis
        made.quantization = found
    return made


def _operator(
    schema: AnyValue, graph: Subgraph, operator: Operator, codes: dict[tuple[str, int], int]
) -> AnyValue:
    made = schema.OperatorT()
    key = operator.name, version_of(operator, graph)
    made.opcodeIndex = codes.setdefault(key, len(codes))
    made.inputs, made.outputs = list(operator.inputs), list(operator.outputs)
    kind = OPTIONS.get(operator.name)
    if kind is not None:
        made.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
        made.builtinOptions = getattr(schema, f"{kind}T")()
        for name, value in operator.options.items():
            setattr(made.builtinOptions, camel_case(name), value)
    return made


def _signature(schema: AnyValue, signature: Signature) -> AnyValue:
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = signature.key, signature.subgraph
    made.inputs = [_named(schema, *each) for each in signature.inputs.items()]
    made.outputs = [_named(schema, *each) for each in signature.outputs.items()]
    return made


def _named(schema: AnyValue, name: str, number: int) -> AnyValue:
    made = schema.TensorMapT()
    made.name, made.tensorIndex = name, number
    return made
