"""Samples of operators as expressions with arrays, and with symbols in place of lengths."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from serde.relay import Function, Var
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.dims import Any as AnyDim, Dim, symbol
from serde.relay.ir.expr import Call, Constant, Expr, Tuple
from serde.relay.ir.registry import OpDef, Sample, SequenceSpec, TensorSpec, all_ops, infer_call
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type
from serde.relay.run.interpreter import apply_kernel

Array = np.ndarray
Naming = Callable[[int, int, int], Dim]
"""Gives the dimension for a variable's number, an axis, and its length."""


@dataclass(frozen=True)
class BuiltSample:
    """A sample as a call.

    Attributes:
        call: The call, with its inferred type.
        variables: Its variables.
        arrays: A value for each variable: an array or, for a sequence, a list of arrays.
        operands: What the kernel gets: an array, a tuple of arrays or None for each operand.
    """

    call: Call
    variables: tuple[Var, ...]
    arrays: tuple[Any, ...]
    operands: tuple[Any, ...]

    @property
    def function(self) -> Function:
        """The call as a function of its variables."""
        return Function(self.variables, self.call)

    def run(self) -> tuple[Any, ...]:
        """Return what the kernel computes: an array or, of a sequence, a list for each result."""
        op = self.call.op
        assert isinstance(op, OpDef)
        given = [() if value is None else value for value in self.operands]
        return as_arrays(apply_kernel(op, given, self.call.attrs))


def all_samples(*, one_first: bool = False) -> list[Any]:
    """Return a pytest parameter set for each sample of each operator, extensions included.

    Args:
        one_first: Whether all but the first sample of each operator are `wide`.
    """
    return [
        pytest.param(
            definition,
            given,
            id=f"{name}-{index}",
            marks=[pytest.mark.wide] if one_first and index else [],
        )
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
    ]


def each_array(value: Any) -> list[Array]:
    """Return the arrays of a sequence, or a single one."""
    return value if isinstance(value, list) else [value]


def as_arrays(result: Any) -> tuple[Any, ...]:
    """Return a kernel's result as a tuple."""
    return tuple(result) if isinstance(result, tuple) else (result,)


def as_tensor_types(type_: Type | None) -> tuple[TensorType, ...]:
    """Return a call's type as a tuple of tensor types; of a sequence, that of its elements."""
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    fields = tuple(each.element if isinstance(each, SequenceType) else each for each in fields)
    assert all(isinstance(field, TensorType) for field in fields)
    return fields  # type: ignore[return-value]


def build(definition: OpDef, given: Sample, name_dim: Naming | None = None) -> BuiltSample:
    """Return `given` as a call; its random values depend on the operator's name alone.

    Args:
        definition: The operator.
        given: One of its samples.
        name_dim: Dimensions of the variables' types; the lengths themselves if left out.
    """
    generator = np.random.default_rng(zlib.crc32(definition.name.encode()))
    variables: list[Var] = []
    arrays: list[Any] = []

    def operand(value: Any) -> tuple[Expr, Any]:
        if value is None:
            return Tuple(()), None
        if isinstance(value, list):
            parts = [operand(item) for item in value]
            return Tuple([expr for expr, _ in parts]), tuple(array for _, array in parts)
        if isinstance(value, SequenceSpec):
            return sequence(value)
        if not isinstance(value, TensorSpec):
            return Constant(value), np.asarray(value)
        array = value.array(generator)
        number = len(variables)
        shape = [
            name_dim(number, axis, length) if name_dim else length
            for axis, length in enumerate(value.shape)
        ]
        variables.append(Var(f"x{number}", TensorType(shape, value.dtype)))
        arrays.append(array)
        return variables[-1], array

    def sequence(value: SequenceSpec) -> tuple[Expr, Any]:
        number = len(variables)
        shape: list[Any] = []
        for axis, lengths in enumerate(zip(*(item.shape for item in value.items), strict=True)):
            length = lengths[0] if len(set(lengths)) == 1 else None
            named = length if length is None or not name_dim else name_dim(number, axis, length)
            shape.append(AnyDim() if named is None else named)
        arrays.append([item.array(generator) for item in value.items])
        element = TensorType(shape, value.items[0].dtype)
        variables.append(Var(f"x{number}", SequenceType(element)))
        return variables[-1], arrays[-1]

    absent = len(definition.operands) - len(given.operands)
    parts = [operand(value) for value in (*given.operands, *[None] * absent)]
    call = Call(definition, [expr for expr, _ in parts], definition.bind(given.attrs))
    call.type = infer_call(call)
    return BuiltSample(call, tuple(variables), tuple(arrays), tuple(value for _, value in parts))


def uses_sequences(function: Function) -> bool:
    """Whether a sequence is anywhere in a function that has types."""
    return any(isinstance(node.type, SequenceType) for node in all_nodes(function))


class Symbols:
    """Gives symbols and remembers their values.

    Args:
        shared: Whether equal lengths are one symbol; length 1 then stays as it is.
        kept: (variable, axis) pairs that stay integers.
    """

    def __init__(self, *, shared: bool, kept: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.shared = shared
        self.kept = kept
        self.values: dict[str, Dim] = {}

    def __call__(self, number: int, axis: int, length: int) -> Dim:
        """Return the dimension for one axis of a variable."""
        if (number, axis) in self.kept or (self.shared and length == 1):
            return length
        name = f"n{length}" if self.shared else f"x{number}_{axis}"
        self.values[name] = length
        return symbol(name)
