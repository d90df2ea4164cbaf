"""Operations of an ML Program that is being written, and its constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import Array, ArrayWeight, Weight, dtype_name
from serde.coreml.blobs import BlobLayout
from serde.coreml.elements import BY_DTYPE, UNSIGNED, Element
from serde.coreml.protos import message_class
from serde.coreml.value import (
    IN_BLOBS,
    Argument,
    Builder,
    Held,
    Value,
    check_rank,
    set_type,
    stored_dtype,
)
from serde.errors import Unsupported
from serde.relay import transform
from serde.relay.ir.types import TensorType

__all__ = ["ProgramBuilder", "set_text", "set_texts"]

WEIGHTS = "@model_path/weights/weight.bin"
_ENDLESS = 2.0**62
INLINE_ELEMENTS = 10
"""A constant of fewer elements lies in the program itself, as coremltools has it."""
_STRING = 2
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")


class ProgramBuilder(Builder):
    """Collects the operations of one program, under names that occur once.

    Args:
        version: Version of iOS whose operators are written.
        block: Where they are written, of Apple's message ``MIL.Block``.

    Attributes:
        layout: The constants that lie in ``weight.bin``.
    """

    max_level = 44

    def __init__(self, version: int, block: AnyValue) -> None:
        super().__init__(version, block)
        self.layout = BlobLayout()
        self._known: dict[object, str] = {}
        self._placed: dict[tuple[int, str], tuple[Weight, int]] = {}
        self._main = self.block
        blobs = [names for since, names in IN_BLOBS.items() if since <= version]
        self._in_blobs = blobs[-1]

    def plain(self, name: str) -> str:
        """Return a name of letters, digits and underscores."""
        plain = _NOT_A_NAME.sub("_", name) or "value"
        return plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}"

    def made_here(self) -> set[str]:
        """Return the names of what the operations of the present block give."""
        return {each.name for op in self.block.operations for each in op.outputs}

    def add(
        self,
        op: str,
        inputs: Mapping[str, Argument],
        types: Sequence[TensorType],
        source: str,
        blocks: Sequence[AnyValue] = (),
    ) -> tuple[Value, ...]:
        """Append an operation and return its outputs.

        Args:
            op: The operator.
            inputs: Its inputs by name; one that is None is left out.
            types: Types of its outputs.
            source: What the operation comes from, which names it.
            blocks: Blocks of the operation.
        """
        arguments = {
            name: self._names_of(given, f"{source}_{name}", types)
            for name, given in inputs.items()
            if given is not None
        }
        operation = self.block.operations.add(type=op)
        for name, names in arguments.items():
            argument = operation.inputs[name]
            for each in names:
                argument.arguments.add(name=each)
        values = []
        for type_ in types:
            check_rank(type_)
            value = Value(self.reserve(source), type_)
            output = operation.outputs.add(name=value.name)
            set_type(output.type, type_, self.version)
            values.append(value)
        operation.blocks.extend(blocks)
        set_text(operation.attributes["name"], values[0].name if values else source)
        return tuple(values)

    def add_custom(
        self,
        class_name: str,
        inputs: Mapping[str, AnyValue],
        parameters: Mapping[str, AnyValue],
        types: Sequence[TensorType],
        source: str,
        order: Sequence[str],
        description: str,
    ) -> tuple[Value, ...]:
        """Append a ``custom_layer``, as coremltools writes custom operators."""
        found = self.add("custom_layer", {**inputs, **parameters}, types, source)
        attributes = self.block.operations[-1].attributes
        set_text(attributes["class_name"], class_name)
        set_text(attributes["description"], description)
        set_texts(attributes["input_order"], [*order])
        set_texts(attributes["parameters"], [*parameters])
        set_texts(attributes["weights"], [])
        return found

    def add_unknown(
        self, op: str, inputs: Mapping[str, AnyValue], types: Sequence[TensorType], source: str
    ) -> tuple[Value, ...]:
        """Append an operation that is not known here, as it was read."""
        return self.add(op, inputs, types, source)

    def compress(
        self, op: str, given: Mapping[str, Value | str], type_: TensorType, source: str
    ) -> Value:
        """Append an operation that makes a weight of constants, which lie in it, and return that.

        Args:
            op: The operator.
            given: Its inputs by name, constants, weights or texts.
            type_: Type of the weight.
            source: What it comes from, which names it.
        """
        operation = self._main.operations.add(type=op)
        for name, value in given.items():
            if self.version >= 18:
                target = operation.inputs[name].arguments.add().value
            else:
                target = operation.attributes[name]
            if isinstance(value, str):
                set_text(target, value)
            else:
                self._write(target, value, f"{source}_{name}")
        output = operation.outputs.add(name=self.reserve(source))
        set_type(output.type, type_, self.version)
        set_text(operation.attributes["name"], output.name)
        return Value(output.name, type_, compressed=True)

    def constexpr(
        self,
        op: str,
        given: Mapping[str, Held],
        types: Sequence[tuple[TensorType, int | None]],
        source: str,
    ) -> tuple[Value, ...]:
        """Append an operation that unpacks a weight, and return what it gives.

        Args:
            op: The operator.
            given: Its inputs by name.
            types: Types of its outputs, with the bits of an element that is narrower.
            source: What it comes from, which names it.
        """
        operation = self._main.operations.add(type=op)
        for name, held in given.items():
            if held.value.compressed:
                operation.inputs[name].arguments.add(name=held.value.name)
            elif self.version >= 18:
                target = operation.inputs[name].arguments.add().value
                self._place(target, *held.stored(), f"{source}_{name}")
            else:
                self._place(operation.attributes[name], *held.stored(), f"{source}_{name}")
        values = []
        for type_, bits in types:
            output = operation.outputs.add(name=self.reserve(source))
            set_type(output.type, type_, self.version)
            if bits is not None:
                output.type.tensorType.dataType = UNSIGNED[bits].mil
            values.append(Value(output.name, type_, compressed=True))
        set_text(operation.attributes["name"], values[0].name)
        return tuple(values)

    def _place(self, target: AnyValue, weight: Weight, element: Element, name: str) -> None:
        """Write a weight into a message of a value, or into ``weight.bin``, once."""
        # Such operations hold what other ones of their system cannot.
        tensor = target.type.tensorType
        tensor.dataType, tensor.rank = element.mil, len(weight.shape)
        for length in weight.shape:
            tensor.dimensions.add().constant.size = length
        if weight.size < INLINE_ELEMENTS and element.bits >= 8:
            fill(target.immediateValue.tensor, weight.array())
            return
        key = id(weight), element.name
        if key not in self._placed:
            self._placed[key] = weight, self.layout.add(weight, element, name)
        target.blobFileValue.fileName = WEIGHTS
        target.blobFileValue.offset = self._placed[key][1]

    def _write(self, target: AnyValue, value: Value, name: str) -> None:
        """Write a constant or a weight into a message of a value, or into ``weight.bin``."""
        weight = value.weight
        if weight is None:
            weight = ArrayWeight(np.zeros(()) if value.data is None else value.data)
        set_type(target.type, TensorType(weight.shape, weight.dtype), self.version)
        element = BY_DTYPE[weight.dtype]
        large = weight.size >= INLINE_ELEMENTS or element.bits < 8
        if large and (weight.dtype in self._in_blobs or element.bits < 8):
            target.blobFileValue.fileName = WEIGHTS
            target.blobFileValue.offset = self.layout.add(weight, element, name)
        else:
            fill(target.immediateValue.tensor, weight.array())

    def new_block(self, inputs: Sequence[Value]) -> AnyValue:
        """Return a block without operations that takes `inputs`."""
        block = message_class("MIL.Block")()
        for value in inputs:
            set_type(block.inputs.add(name=value.name).type, value.type, self.version)
        return block

    def _names_of(self, given: Argument, name: str, types: Sequence[TensorType]) -> list[str]:
        """Return the names of the values that an input is bound to."""
        if isinstance(given, Value):
            return [self.name_of(given)]
        if isinstance(given, (tuple, list)) and given and isinstance(given[0], Value):
            return [self.name_of(each) for each in given if isinstance(each, Value)]
        if isinstance(given, str):
            return [self._text(given, name)]
        data = np.array(given)
        if data.dtype.kind == "i":
            data = data.astype(np.int32)
        elif data.dtype.kind == "f":
            # MIL wants the scalars of an operation in the dtype of its tensors.
            half = bool(types) and types[0].dtype == "float16"
            wide, data = data, transform.narrow_constant(data, "float16" if half else "float32")
            if not np.array_equal(np.isinf(wide), np.isinf(data)):
                raise Unsupported(
                    f"{name}: {given!r} is beyond the range of {data.dtype}",
                    hint="name the node in float32_ops (--float32-ops)" if half else None,
                )
        return [self._immediate(data, name)]

    def name_of(self, value: Value) -> str:
        """Return the name of a value; a constant is written now if nothing has read it yet.

        Raises:
            Unsupported: It is a constant beyond the range of the dtype that holds it.
        """
        if value.weight is not None:
            place = ("weight", value.name, value.weight.shape)
            return self._blob(value.weight, value.name, place)
        if value.data is None:
            return value.name
        data = self._to_storage_dtype(value.data)
        dtype = dtype_name(data.dtype)
        if data.size >= INLINE_ELEMENTS and dtype in self._in_blobs:
            data = np.ascontiguousarray(data)
            key = ("data", data.shape, dtype, data.tobytes())
            return self._blob(ArrayWeight(data), value.name, key)
        return self._immediate(data, value.name)

    def _to_storage_dtype(self, data: Array) -> Array:
        """Return a constant in the dtype that holds it."""
        dtype = dtype_name(data.dtype)
        held = stored_dtype(dtype, self.version, constant=True)
        if held == dtype:
            return data
        limits = np.iinfo(np.int32)
        if dtype == "int64" and data.size:
            # Ends of slices and the like: beyond every length there is.
            far = np.clip(data, limits.min, limits.max)
            beyond = far != data
            if np.any(beyond & (np.abs(data.astype(np.float64)) < _ENDLESS)):
                raise Unsupported(f"a constant of int64 beyond int32: {data[beyond].flat[0]}")
            data = far
        return data.astype(held)

    def _blob(self, weight: Weight, name: str, key: object) -> str:
        if key in self._known:
            return self._known[key]
        if weight.dtype not in self._in_blobs:
            weight = ArrayWeight(self._to_storage_dtype(weight.array()))
        if weight.dtype not in self._in_blobs or weight.size < INLINE_ELEMENTS:
            self._known[key] = self._immediate(weight.array(), name)
            return self._known[key]
        target = self._const(name, TensorType(weight.shape, weight.dtype))
        blob = target.attributes["val"].blobFileValue
        blob.fileName = WEIGHTS
        blob.offset = self.layout.add(weight, BY_DTYPE[weight.dtype], name)
        self._known[key] = target.outputs[0].name
        return self._known[key]

    def _immediate(self, data: Array, name: str) -> str:
        key = ("immediate", data.shape, data.dtype.str, data.tobytes())
        if key in self._known:
            return self._known[key]
        dtype = dtype_name(data.dtype)
        target = self._const(name, TensorType(data.shape, dtype))
        fill(target.attributes["val"].immediateValue.tensor, data)
        self._known[key] = target.outputs[0].name
        return self._known[key]

    def _text(self, text: str, name: str) -> str:
        key = ("text", text)
        if key not in self._known:
            target = self._main.operations.add(type="const")
            output = target.outputs.add(name=self.reserve(name))
            output.type.tensorType.dataType = _STRING
            set_text(target.attributes["val"], text)
            set_text(target.attributes["name"], output.name)
            self._known[key] = output.name
        return self._known[key]

    def _const(self, name: str, type_: TensorType) -> AnyValue:
        """Append a constant to the block of the whole, which all blocks see."""
        operation = self._main.operations.add(type="const")
        output = operation.outputs.add(name=self.reserve(name))
        set_type(output.type, type_, self.version, constant=True)
        set_type(operation.attributes["val"].type, type_, self.version, constant=True)
        set_text(operation.attributes["name"], output.name)
        return operation


def fill(tensor: AnyValue, data: Array) -> None:
    """Write an array into a message of a tensor's values."""
    dtype = dtype_name(data.dtype)
    if dtype == "float32":
        tensor.floats.values.extend(data.reshape(-1).tolist())
    elif dtype in ("int32", "int16", "uint16"):  # Core ML reads those of 16 bits there too
        tensor.ints.values.extend(data.reshape(-1).tolist())
    elif dtype == "bool":
        tensor.bools.values.extend(data.reshape(-1).tolist())
    else:
        tensor.bytes.values = np.ascontiguousarray(data).tobytes()


def set_text(value: AnyValue, text: str) -> None:
    """Make a constant of text."""
    value.Clear()
    value.type.tensorType.dataType = _STRING
    value.immediateValue.tensor.strings.values.append(text)


def set_texts(value: AnyValue, texts: Sequence[str]) -> None:
    """Make a constant of a list of texts."""
    value.Clear()
    value.type.listType.type.tensorType.dataType = _STRING
    value.type.listType.length.constant.size = len(texts)
    for each in texts:
        set_text(value.immediateValue.list.values.add(), each)
