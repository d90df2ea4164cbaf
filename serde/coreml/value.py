"""Operations and values of an ML Program that is being written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any as AnyValue

from serde.core import Array, ArrayWeight, Weight, dataclass, dtype_name, field
from serde.coreml.elements import BY_DTYPE, UNSIGNED, Element
from serde.errors import Unsupported
from serde.io.packed import PackedBytes
from serde.relay.ir import Call, TensorType, UniqueNames

__all__ = [
    "HELD_AS", "IN_BLOBS", "MAX_RANK", "Argument", "Builder", "Held", "Value", "check_rank",
    "set_type", "stored_dtype",
]  # fmt: skip

"""From here on an integer stands for "to the end" in what makes models."""

HELD_AS = {"int64": "int32", "float64": "float32"}
"""dtypes that programs have not, by those that hold them."""

MAX_RANK = 5
"""Core ML computes no tensors of more axes."""

_COMPUTED = {15: {"bool", "float16", "float32", "int32", "int8", "uint8"}}
_COMPUTED[17] = _COMPUTED[15] | {"int16", "uint16"}
_COMPUTED[18] = _COMPUTED[17] | {"uint32", "int4", "uint4", "uint2"}
"""dtypes of values, by the version of iOS from which on."""

_CONSTANT = {15: set(), 17: {"uint32"}, 18: set()}
"""dtypes of constants beyond those, with which operators are told what to do."""

IN_BLOBS = {15: {"float16", "float32", "uint8", "int8"}}
IN_BLOBS[18] = IN_BLOBS[15] | {"int16", "uint16", "int32", "uint32"}
"""dtypes of constants in ``weight.bin``, by the version of iOS from which on."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the program.

    Attributes:
        name: Its name there; for a constant the one that it gets when something first reads it.
        type: Its Relay type.
        data: Its value, where it is a constant.
        weight: Where its values lie, if it is a weight.
        compressed: Whether it is a weight that an operation makes when the program is loaded.
    """

    name: str
    type: TensorType
    data: Array | None = field(default=None, compare=False)
    weight: Weight | None = field(default=None, compare=False)
    compressed: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether a program takes it where it wants constants."""
        return self.is_known or self.compressed

    @property
    def is_known(self) -> bool:
        """Whether it is a constant or a weight, whose values are at hand."""
        return self.data is not None or self.weight is not None


@dataclass(frozen=True, slots=True)
class Held:
    """What an operation that unpacks a weight is given.

    Attributes:
        value: A constant, a weight, or what another such operation gives.
        bits: Bits of an element, if it is narrower than its dtype.
        in_bytes: Whether it is written as the bytes that its elements are packed into.
    """

    value: Value
    bits: int | None = None
    in_bytes: bool = False

    def stored(self) -> tuple[Weight, Element]:
        """Return what is written, and its element type.

        Raises:
            Unsupported: The value is computed when the model runs.
        """
        weight = self.value.weight
        if weight is None and self.value.data is not None:
            weight = ArrayWeight(self.value.data)
        if weight is None:
            raise Unsupported("a compressed weight of values that are computed")
        if self.in_bytes:
            return PackedBytes(weight, self.bits or 8), BY_DTYPE["uint8"]
        return weight, BY_DTYPE[weight.dtype] if self.bits is None else UNSIGNED[self.bits]


Argument = Value | Sequence[Value] | bool | int | float | str | Sequence[int] | None
"""What an input of an operation may be given as; numbers and text become constants."""


def stored_dtype(dtype: str, version: int, *, constant: bool = False) -> str:
    """Return the dtype in which a program for a version of iOS holds values of a dtype.

    Integers of 64 bits are held in 32 and float64 in float32, for which the model's owner is
    asked where it matters; constants that do not fit are refused.

    Raises:
        Unsupported: ML Programs have no such dtype.
    """
    found = HELD_AS.get(dtype, dtype)
    known = max(since for since in _COMPUTED if since <= version)
    if found not in _COMPUTED[known] and not (constant and found in _CONSTANT[known]):
        first = next((each for each in _COMPUTED if found in _COMPUTED[each]), None)
        hint = None if first is None else f"use minimum_deployment_target=iOS{first}"
        raise Unsupported(f"ML Programs for iOS{version} hold no {dtype}", hint=hint)
    return found


def check_rank(type_: TensorType) -> None:
    """Refuse a tensor of more axes than Core ML has.

    Raises:
        Unsupported: It is one.
    """
    if type_.rank > MAX_RANK:
        raise Unsupported(f"a tensor of {type_.rank} axes; Core ML has {MAX_RANK} at most")


def set_type(target: AnyValue, type_: TensorType, version: int, *, constant: bool = False) -> None:
    """Write a tensor type into a message of a value's type.

    Raises:
        Unsupported: ML Programs have no such dtype.
    """
    element = BY_DTYPE[stored_dtype(type_.dtype, version, constant=constant)]
    tensor = target.tensorType
    tensor.dataType = element.mil
    tensor.rank = len(type_.shape)
    for dim in type_.shape:
        entry = tensor.dimensions.add()
        if isinstance(dim, int):
            entry.constant.size = dim
        else:
            entry.unknown.variadic = False


class Builder(ABC):
    """Collects what operations of MIL become in a model, in blocks one within another.

    Args:
        version: Version of iOS whose operators are written.
        block: Where operations are added first.

    Attributes:
        block: Where operations are added.
        names: For each name that had to be changed the one that it was made of.
        quantises: Whether weights may stay quantised.
        narrows: Whether values become integers of 8 and 16 bits.
        max_level: Blocks inside each other that protobuf, which reads 100 messages deep, leaves
            room for.
    """

    max_level: int

    def __init__(self, version: int, block: AnyValue) -> None:
        self.version = version
        self.block = block
        self.quantises = version >= 16
        self.narrows = version >= 17
        self.names: dict[str, str] = {}
        self._taken = UniqueNames()

    def reserve(self, name: str) -> str:
        """Take and return a name that the model allows, made of `name`."""
        unique = self._taken.reserve(self.plain(name))
        if unique != name:
            self.names[unique] = name
        return unique

    @abstractmethod
    def plain(self, name: str) -> str:
        """Return a name that the model allows, whether or not it is taken."""

    def weight(self, name: str, weight: Weight) -> Value:
        """Return a weight of the model; its constant is written where it is first read."""
        return Value(name, TensorType(weight.shape, weight.dtype), None, weight)

    def constant(self, data: Array) -> Value:
        """Return a constant of the model."""
        return Value("const", TensorType(data.shape, dtype_name(data.dtype)), data)

    @abstractmethod
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
        """Append a layer of a class that is in an app, and return its outputs.

        Args:
            class_name: The class.
            inputs: Tensors by name.
            parameters: All else that it is given.
            types: Types of its outputs.
            source: What it comes from, which names it.
            order: Names of inputs in the order in which the class takes them.
            description: What it is, for people.

        Raises:
            Unsupported: It cannot have such parameters.
        """

    @abstractmethod
    def add_unknown(
        self, op: str, inputs: Mapping[str, AnyValue], types: Sequence[TensorType], source: str
    ) -> tuple[Value, ...]:
        """Append an operation of MIL that is not known here, as it was read.

        Raises:
            Unsupported: The target has no operations.
        """

    @abstractmethod
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
            op: The operator of MIL.
            inputs: Its inputs by name; one that is None is left out.
            types: Types of its outputs.
            source: What the operation comes from, which names it.
            blocks: Blocks of the operation.
        """

    @abstractmethod
    def compress(
        self, op: str, given: Mapping[str, Value | str], type_: TensorType, source: str
    ) -> Value:
        """Append an operation that makes a weight of constants, which lie in it, and return that.

        Args:
            op: The operator of MIL.
            given: Its inputs by name, constants, weights or texts.
            type_: Type of the weight.
            source: What it comes from, which names it.
        """

    def constexpr(
        self,
        op: str,
        given: Mapping[str, Held],
        types: Sequence[tuple[TensorType, int | None]],
        source: str,
    ) -> tuple[Value, ...]:
        """Append an operation that unpacks a weight, which only ML Programs have."""
        raise Unsupported(f"{op} is of ML Programs alone")

    @abstractmethod
    def new_block(self, inputs: Sequence[Value]) -> AnyValue:
        """Return a block without operations that takes `inputs`; it has a list of ``outputs``."""

    @abstractmethod
    def name_of(self, value: Value) -> str:
        """Return the name of a value; a constant is written now if nothing has read it yet."""

    @contextmanager
    def inner_block(self, inputs: Sequence[Value] = ()) -> Iterator[AnyValue]:
        """Add operations to a block of its own meanwhile, which takes `inputs`."""
        outer, self.block = self.block, self.new_block(inputs)
        try:
            yield self.block
        finally:
            self.block = outer

    def end_block(self, results: Sequence[Value], source: str) -> None:
        """Let the present block give `results`; copies that it needs are named after `source`."""
        own = [self.own(each, source) for each in results]
        self.block.outputs.extend([self.name_of(each) for each in own])

    def says(self, node: Call) -> bool:
        """Whether the model says a call that an operator of MIL does."""
        return True

    @abstractmethod
    def made_here(self) -> set[str]:
        """Return the names of what the operations of the present block give."""

    def own(self, value: Value, source: str) -> Value:
        """Return a value that the present block makes itself, as MIL wants what a block gives."""
        if value.name in self.made_here() and not value.is_constant:
            return value
        return self.add("identity", {"x": value}, [value.type], source)[0]
