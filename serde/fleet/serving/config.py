"""Triton's configuration of a model: made, written as text, and compared with one that is there.

The message is Triton's ``ModelConfig``, of which protobuf is told the fields that are written here
(https://github.com/triton-inference-server/common, model_config.proto); it writes the text, and
reads that of others, whose further fields it skips.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any as AnyValue, Final

from serde.bridge.summary import ServedFile
from serde.core.records import dataclass
from serde.errors import FormatError, OptionError

__all__ = [
    "Port", "config_text", "differences", "is_batched", "labelled", "make_config", "read_config",
]  # fmt: skip

_TYPES: Final = {
    "bool": "TYPE_BOOL", "uint8": "TYPE_UINT8", "uint16": "TYPE_UINT16", "uint32": "TYPE_UINT32",
    "uint64": "TYPE_UINT64", "int8": "TYPE_INT8", "int16": "TYPE_INT16", "int32": "TYPE_INT32",
    "int64": "TYPE_INT64", "float16": "TYPE_FP16", "float32": "TYPE_FP32",
    "float64": "TYPE_FP64", "bfloat16": "TYPE_BF16",
}  # fmt: skip
_LIST: Final = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)|(\b[A-Za-z_]\w*)\s*\[""", re.VERBOSE
)
"""A text or comment, or the name of a field and the beginning of its list."""

_NUMBERS: Final = (
    "TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64",
    "TYPE_INT8", "TYPE_INT16", "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64",
    "TYPE_STRING", "TYPE_BF16",
)  # fmt: skip
"""The values of Triton's ``DataType``, by their numbers."""

_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "ModelTensorReshape": {"shape": (1, "int64*")},
    "ModelInput": {
        "name": (1, "string"), "data_type": (2, "DataType"), "dims": (3, "int64*"),
        "reshape": (5, "ModelTensorReshape"),
    },
    "ModelOutput": {
        "name": (1, "string"), "data_type": (2, "DataType"), "dims": (3, "int64*"),
        "reshape": (5, "ModelTensorReshape"), "label_filename": (4, "string"),
    },
    "ModelDynamicBatching": {},
    "ModelConfig": {
        "name": (1, "string"), "platform": (2, "string"), "backend": (17, "string"),
        "max_batch_size": (4, "int32"), "input": (5, "ModelInput*"),
        "output": (6, "ModelOutput*"), "dynamic_batching": (11, "ModelDynamicBatching"),
    },
}  # fmt: skip
"""Fields by message: number and type, with a star where they repeat."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model.

    Attributes:
        name: Its name.
        shape: Lengths, names for those that are open; ``"?"`` for an open one without a name.
        dtype: Its dtype.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@cache
def _message(name: str) -> type[AnyValue]:
    """Return the class of one of Triton's messages, from a pool of its own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="serde/model_config.proto", package="inference", syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    enum = file.enum_type.add(name="DataType")
    for number, value in enumerate(_NUMBERS):
        enum.value.add(name=value, number=number)
    plain = {"string": kinds.TYPE_STRING, "int32": kinds.TYPE_INT32, "int64": kinds.TYPE_INT64}
    for title, members in _MESSAGES.items():
        message = file.message_type.add(name=title)
        for field_name, (number, type_) in members.items():
            kind = type_.removesuffix("*")
            field = message.field.add(name=field_name, number=number)
            field.label = kinds.LABEL_REPEATED if kind != type_ else kinds.LABEL_OPTIONAL
            named = kinds.TYPE_ENUM if kind == "DataType" else kinds.TYPE_MESSAGE
            field.type = plain.get(kind, named)
            if kind not in plain:
                field.type_name = f".inference.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"inference.{name}")
    return message_factory.GetMessageClass(found)


def is_batched(ports: Sequence[Port]) -> bool:
    """Whether the first axis of all inputs and outputs is one open length, which a batch is."""
    firsts = {port.shape[:1] for port in ports}
    if len(firsts) != 1:
        return False
    (first,) = firsts
    return bool(first) and isinstance(first[0], str) and first[0] != "?"


def make_config(
    name: str,
    served: ServedFile,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    *,
    max_batch_size: int,
    dynamic_batching: bool,
    labels: Mapping[str, str],
) -> AnyValue:
    """Return the configuration of a model.

    Args:
        name: What the model is called.
        served: What Triton calls the format.
        inputs: Its inputs.
        outputs: Its outputs.
        max_batch_size: Most rows of a batch; 0 where the model has no batch of Triton's kind.
        dynamic_batching: Whether the server gathers requests to batches.
        labels: Files of class labels by output.

    Raises:
        OptionError: Triton cannot say a type or a shape.
    """
    config = _message("ModelConfig")(
        name=name, backend=served.backend, platform=served.platform, max_batch_size=max_batch_size
    )
    for ports, made in ((inputs, config.input), (outputs, config.output)):
        for place, port in enumerate(ports):
            tensor = made.add(name=f"{port.name}__{place}" if served.by_place else port.name)
            _describe(tensor, port, batched=max_batch_size > 0)
            if port.name in labels and ports is outputs:
                tensor.label_filename = labels[port.name]
    if dynamic_batching:
        config.dynamic_batching.SetInParent()
    return config


def _describe(tensor: AnyValue, port: Port, *, batched: bool) -> None:
    if port.dtype not in _TYPES:
        raise OptionError(f"{port.name}: Triton has no tensors of {port.dtype}")
    if 0 in port.shape:
        raise OptionError(f"{port.name}: Triton has no tensors without elements ({port.shape})")
    tensor.data_type = _NUMBERS.index(_TYPES[port.dtype])
    dims = port.shape[1:] if batched else port.shape
    tensor.dims.extend(dim if isinstance(dim, int) else -1 for dim in dims)
    if not dims:
        # Requests have an axis at least; the model itself sees none.
        tensor.dims.append(1)
        tensor.reshape.SetInParent()


def labelled(outputs: Sequence[Port], count: int, *, batched: bool) -> list[str]:
    """Return the outputs that have a score for each of so many classes."""
    found = []
    for port in outputs:
        dims = port.shape[1:] if batched else port.shape
        if all(isinstance(dim, int) for dim in dims) and math.prod(map(int, dims)) == count:
            found.append(port.name)
    return found


def config_text(config: AnyValue) -> str:
    """Return a configuration as the text of ``config.pbtxt``."""
    from google.protobuf import text_format

    return text_format.MessageToString(config, use_short_repeated_primitives=True, as_utf8=True)


def read_config(text: str, path: str) -> AnyValue:
    """Return the configuration in a file, without the fields that are never written here.

    Raises:
        FormatError: It is none.
    """
    from google.protobuf import text_format

    found = _message("ModelConfig")()
    try:
        # The library takes lists of fields that it does not know only behind a colon.
        text = _LIST.sub(lambda each: each[1] or f"{each[2]}: [", text)
        return text_format.Parse(text, found, allow_unknown_field=True)
    except (text_format.ParseError, RecursionError) as error:
        raise FormatError(f"is no configuration of a model: {error}", path=path) from error


def differences(there: AnyValue, ours: AnyValue) -> list[str]:
    """Return in which fields a configuration does not say what a model is.

    What is left out there Triton completes from the model; the size of a batch is the user's.
    """
    found = []
    for field in ("name", "backend", "platform"):
        old, new = getattr(there, field), getattr(ours, field)
        if old and old != new and not (field == "platform" and not new):
            found.append(f"{field} is {old!r}, not {new!r}")
    if bool(there.max_batch_size) != bool(ours.max_batch_size):
        found.append(f"max_batch_size is {there.max_batch_size}, not {ours.max_batch_size}")
    for kind in ("input", "output"):
        old_ports = {each.name: each for each in getattr(there, kind)}
        new_ports = {each.name: each for each in getattr(ours, kind)}
        if old_ports and old_ports.keys() != new_ports.keys():
            names = ", ".join(sorted(old_ports))
            found.append(f"{kind}s are {names}, not {', '.join(sorted(new_ports))}")
            continue
        for name, old in old_ports.items():
            new = new_ports[name]
            for field in ("data_type", "dims", "reshape"):
                if getattr(old, field) != getattr(new, field):
                    values = [_value_text(each, field) for each in (old, new)]
                    found.append(f"{field} of {kind} {name} is {values[0]}, not {values[1]}")
    return found


def _value_text(tensor: AnyValue, field: str) -> str:
    if field == "data_type":
        known = tensor.data_type < len(_NUMBERS)
        return _NUMBERS[tensor.data_type] if known else str(tensor.data_type)
    if field == "dims":
        return str(list(tensor.dims))
    return str(list(tensor.reshape.shape)) if tensor.HasField("reshape") else "none"
