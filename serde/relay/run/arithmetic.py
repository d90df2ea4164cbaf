"""The arithmetic of a run: the numbers that kernels are given, and those that they leave.

The interpreter computes as the types declare. A yardstick for its results, or for those of
another engine, needs the same program in other numbers, without another program: what is in
float64 here is the arithmetic alone, kernels and graph are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core import Weight, dataclass, dtype_name, numpy_dtype, replace
from serde.relay.ir import BitLevel, Call, Constant, Float32, Quantized, TensorType, TupleType, Type
from serde.relay.ir.registry import OpDef
from serde.relay.ir.schema import Array

__all__ = ["Application", "Arithmetic", "Exact", "OperandsRounded", "Rounded", "Stepped", "Watched"]

KernelRun = Callable[[OpDef, Sequence[AnyValue], Mapping[str, AnyValue]], AnyValue]

_FLOATS = frozenset({"bfloat16", "float16", "float32"})
"""Floats that hold numbers; those of fewer bits are codes of quantised ones."""


@dataclass(frozen=True, slots=True)
class Application:
    """A call of an operator on values.

    Attributes:
        node: The call.
        definition: Its operator.
        args: Values of the operands; weights among them are read where they are used.
        attrs: All attributes, without symbols.
        run: Runs the kernel.
    """

    node: Call
    definition: OpDef
    args: Sequence[AnyValue]
    attrs: Mapping[str, AnyValue]
    run: KernelRun


class Arithmetic:
    """Computes in the dtypes that the program declares."""

    def apply(self, made: Application) -> AnyValue:
        """Return what an operator yields: arrays, or the generator of a kernel with functions."""
        return made.run(made.definition, [_map(_load, arg) for arg in made.args], made.attrs)

    def result(self, value: AnyValue) -> AnyValue:
        """Return what a loop or a program leaves."""
        return _map(_load, value)


class Exact(Arithmetic):
    """Computes in float64 what is declared in fewer bits; casts between floats do nothing.

    Random numbers and bits of floats come as declared: elsewhere they would be others.
    """

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields in float64."""
        if made.definition.has(BitLevel):
            pairs = zip(made.args, made.node.args, strict=True)
            args = [_as_declared(_map(_load, value), arg.type) for value, arg in pairs]
            attrs = made.attrs
        else:
            args = [_map(_widen, arg) for arg in made.args]
            attrs = {name: _wide_dtype(value) for name, value in made.attrs.items()}
        value = made.run(made.definition, args, attrs)
        return value if isinstance(value, Generator) else _map(_widen, value)

    def result(self, value: AnyValue) -> AnyValue:
        """Return floats as float64."""
        return _map(_widen, value)


class Watched(Arithmetic):
    """Another arithmetic, of which each result is shown to :meth:`see`."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields."""
        value = self._arithmetic.apply(made)
        self.see(made.node, value)
        return value

    def see(self, node: Call, value: AnyValue) -> None:
        """Look at what a call yields."""

    def result(self, value: AnyValue) -> AnyValue:
        """Return what a loop or a program leaves."""
        return self._arithmetic.result(value)


@dataclass(frozen=True)
class OperandsRounded(Exact):
    """Computes in float64 on operands as fewer bits hold them.

    Attributes:
        narrow: Gives what is left of an array of float64.
        stored: Whether weights and constants alone are rounded.
    """

    narrow: Callable[[Array], Array]
    stored: bool = False

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields in float64."""
        rounded = [
            _map(partial(self._round, constant=isinstance(operand, Constant)), value)
            for operand, value in zip(made.node.args, made.args, strict=True)
        ]
        return super().apply(replace(made, args=rounded))

    def _round(self, value: AnyValue, *, constant: bool) -> AnyValue:
        if self.stored and not constant and not isinstance(value, Weight):
            return value
        wide = _widen(value)
        if not isinstance(wide, np.ndarray) or wide.dtype != np.float64:
            return wide
        return self.narrow(wide)


@dataclass(frozen=True)
class Rounded(Arithmetic):
    """Rounds to float16 what each operator reads and yields, as a target in float16 does.

    Sums are taken in float32 within an operator. Values stay float32 arrays. What leaves the
    range of float16 keeps its largest number, so that the run tells of rounding alone. Operators
    that a conversion leaves in float32 read and yield that.

    Attributes:
        keep: Names of operators, or of nodes, that stay float32 besides.
    """

    keep: frozenset[str] = frozenset()

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields, rounded."""
        wide, span = made.definition.trait(Float32), made.node.span
        names = ("" if span is None else span.source_name, made.definition.name)
        if (wide is not None and wide.default) or not self.keep.isdisjoint(names):
            return super().apply(made)
        value = made.run(made.definition, [_map(_round, arg) for arg in made.args], made.attrs)
        return value if isinstance(value, Generator) else _map(_round, value)


class Stepped(Arithmetic):
    """Moves the codes that quantised operators yield by a step, or none, as integer kernels may."""

    def __init__(self) -> None:
        self._draw = np.random.default_rng(0)

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields."""
        value = super().apply(made)
        if not made.definition.has(Quantized) or not isinstance(value, np.ndarray):
            return value
        if value.dtype.name not in ("int8", "uint8", "int16", "uint16"):
            return value
        limits = np.iinfo(value.dtype)
        moved = value + self._draw.integers(-1, 2, value.shape)
        return np.clip(moved, limits.min, limits.max).astype(value.dtype)


def _map(function: Callable[[AnyValue], AnyValue], value: AnyValue) -> AnyValue:
    """Apply `function` to the arrays of tuples and lists."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(partial(_map, function), value))
    return function(value)


def _load(value: AnyValue) -> AnyValue:
    return value.array() if isinstance(value, Weight) else value


def _widen(value: AnyValue) -> AnyValue:
    value = _load(value)
    if isinstance(value, np.ndarray) and dtype_name(value.dtype) in _FLOATS:
        return value.astype(np.float64)
    return value


def _wide_dtype(value: AnyValue) -> AnyValue:
    if isinstance(value, np.dtype) and dtype_name(value) in _FLOATS:
        return np.dtype(np.float64)
    return value


def _round(value: AnyValue) -> AnyValue:
    value = _load(value)
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    largest = np.finfo(np.float16).max
    narrow = np.clip(value, -largest, largest).astype(np.float16).astype(np.float32)
    return np.where(np.isinf(value), value, narrow)


def _as_declared(value: AnyValue, type_: Type | None) -> AnyValue:
    if isinstance(type_, TupleType) and isinstance(value, tuple):
        pairs = zip(value, type_.fields, strict=True)
        return tuple(_as_declared(item, field) for item, field in pairs)
    if isinstance(type_, TensorType) and isinstance(value, np.ndarray):
        return _narrow(value, type_)
    return value


def _narrow(value: Array, type_: TensorType) -> Array:
    dtype = numpy_dtype(type_.dtype)
    return value.astype(dtype) if value.dtype != dtype else value
