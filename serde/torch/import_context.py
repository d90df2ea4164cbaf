"""What a converter from PyTorch may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Protocol, TypeAlias

import numpy as np

import serde.relay as relay
from serde.core import Report, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Any, Constant, Dim, Expr, Span, normalize_axis
from serde.torch.aliases import Storage, Values
from serde.torch.changes import Changes
from serde.torch.dimensions import Range, bounds
from serde.torch.model import Graph, Node
from serde.torch.promotion import category, promote
from serde.torch.quantization import Quantization
from serde.torch.sequences import PackedSequences
from serde.walk import Hole, Scope
from serde.walk.import_context import GraphImporter, ImportContext as BaseContext

__all__ = ["ImportContext", "Scalar", "SymInt", "Unread"]

SymInt: TypeAlias = int | Expr
"""A length: an integer, or a scalar of int64 that is computed (of which the symbol is known)."""

Scalar: TypeAlias = bool | int | float | complex | Expr
"""A number of Python's, or one that is computed."""


class Walk(GraphImporter, Protocol):
    """The walk, as far as contexts reach it."""

    numbers: set[Expr]
    quantized: dict[Expr, Quantization]
    complex: set[Expr]
    packed: dict[Expr, PackedSequences]
    default_dtype: str
    changes: Changes
    report: Report
    ranges: Mapping[str, Range]

    def as_operand(self, value: Scalar) -> Expr:
        """Return a number of Python's as a scalar that counts as one."""

    def outputs(
        self,
        graph: Graph,
        scope: Values,
        args: Sequence[AnyValue],
        origins: Sequence[AnyValue] | None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph inside a node."""

    def hold(self, value: AnyValue, name: str, scope: Values) -> AnyValue:
        """Return values of which those that are tensors are held by their memory."""


class Unread(Hole):
    """Stands for a result that is left out, and says why if a model gives it."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class ImportContext(BaseContext):
    """What an importer of a node may reach.

    Attributes:
        default_dtype: The dtype of numbers with a fraction.
        where: First line of source code in the stack trace of the node.
        source: The node.
    """

    _walk: Walk

    def __init__(
        self, node: Node, label: str, outputs: int, walk: Walk, scope: Scope[str, AnyValue]
    ) -> None:
        super().__init__(1, label, outputs, walk, scope)
        self.default_dtype = walk.default_dtype
        self.where = node.where
        self.source = node

    # Graphs inside the node.

    @property
    def blocks(self) -> Sequence[Graph]:
        """Graphs inside the node, where the format has them beside its arguments."""
        return self.source.blocks

    def enter(
        self, label: str, *, function: bool = False, carried: Mapping[Storage, Expr] | None = None
    ) -> Values:
        """Return a scope for a graph inside the node.

        Args:
            label: What the node calls it, for messages.
            function: Whether it becomes a function, with parameters for what it takes from around.
            carried: What tensors from around it hold when it begins, where that is not what they
                hold around it.
        """
        scope: Values = self._values.inner(self._path(label), captures={} if function else None)
        for storage, value in (carried or {}).items():
            scope.begin(storage, value)
        return scope

    def run(
        self,
        graph: Graph,
        scope: Values,
        args: Sequence[AnyValue] = (),
        origins: Sequence[AnyValue] | None = None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph inside the node.

        What it wrote of tensors around it, ``scope.written()``, has to become results of the node
        which :meth:`write_back` is given.

        Args:
            graph: The graph.
            scope: What :meth:`enter` made for it.
            args: A value for each of its inputs.
            origins: Values around the node that the arguments stand for, such as those with which
                a loop begins; they themselves if left out.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        return self._walk.outputs(graph, scope, args, origins)

    def take(self, scope: Values, values: Sequence[AnyValue]) -> list[AnyValue]:
        """Return values from around a graph inside the node as the graph has them."""
        return [scope.lift(each, self._values, "captured") for each in values]

    def current(self, storage: Storage) -> Expr:
        """Return what a tensor that a graph inside the node writes holds around it.

        Raises:
            Unsupported: It is not known.
        """
        return self._values.whole(storage)

    def write_back(self, storage: Storage, value: Expr) -> None:
        """Say what a tensor that a graph inside the node wrote holds behind the node."""
        self._values.put(storage, self.fold(value))

    @property
    def changes(self) -> Changes:
        """What the program changes in place beside tensors."""
        return self._walk.changes

    def hold(self, value: AnyValue) -> AnyValue:
        """Return values that go into a list of the program, tensors with memory of their own."""
        return self._walk.hold(value, self.node, self._values)

    def note(self, text: str) -> None:
        """Say in the report what users should know, once."""
        if text not in self._walk.report.notes:
            self._walk.report.notes.append(text)

    @property
    def _values(self) -> Values:
        assert isinstance(self._scope, Values)
        return self._scope

    # Numbers.

    def is_number(self, x: Expr) -> bool:
        """Whether a scalar stands for a number of Python's, which does not widen tensors."""
        return x in self._walk.numbers

    def number(self, value: Scalar) -> Expr:
        """Return a number of Python's as an operand; it stays one for promotion."""
        return self._walk.as_operand(value)

    def as_number(self, x: Expr) -> Scalar:
        """Return a scalar as a number of Python's: itself where it is not known."""
        found = self.fold(x)
        known = self.known(found)
        if known is not None and known.size == 1:
            number: Scalar = known.item()
            return number
        self._walk.numbers.add(found)
        return found

    def scalar(self, value: Scalar, dtype: str) -> Expr:
        """Return a number as a scalar tensor of a dtype."""
        if isinstance(value, Expr):
            return self.cast(value, dtype)
        if category(dtype) == category("int64"):
            value = _whole(value)
        try:
            return Constant(np.array(value).astype(numpy_dtype(dtype)))
        except OverflowError:
            raise Unsupported(f"{value} is beyond {dtype}") from None

    def unread(self, reason: str = "is a result that only training reads") -> Expr:
        """Return what stands for a result that hardly anything reads; else `reason` is said."""
        found = Unread(reason)
        found.span = Span(self.node)
        return found

    # Packed sequences.

    @property
    def packed(self) -> dict[Expr, PackedSequences]:
        """What stands beside sequences that are packed without padding."""
        return self._walk.packed

    # Quantised tensors.

    def quantization(self, x: Expr) -> Quantization:
        """Return what the integers of a quantised tensor stand for.

        Raises:
            Unsupported: It is no quantised tensor.
        """
        found = self._walk.quantized.get(x)
        if found is None:
            raise Unsupported(f"expected a quantised tensor, found {self.type(x)!r}")
        return found

    def is_quantized(self, x: Expr) -> bool:
        """Whether a tensor is a quantised one."""
        return x in self._walk.quantized

    def quantized(self, integers: Expr, quantization: Quantization) -> Expr:
        """Return integers as a quantised tensor."""
        found = self.fold(integers)
        self._walk.quantized[found] = quantization
        return found

    # Complex tensors, in Relay real ones with the parts along one more axis, the last.

    def is_complex(self, x: Expr) -> bool:
        """Whether a tensor stands for a complex one."""
        return x in self._walk.complex

    def as_complex(self, parts: Expr) -> Expr:
        """Return real and imaginary parts along the last axis as a complex tensor."""
        found = self.fold(relay.copy(parts))
        self._walk.complex.add(found)
        return found

    # Dtypes.

    def dtype(self, x: Expr) -> str:
        """Return the dtype of a tensor."""
        return self.type(x).dtype

    def cast(self, x: Expr, dtype: str) -> Expr:
        """Return a tensor in a dtype; itself where it has it."""
        return x if self.dtype(x) == dtype else self.fold(relay.cast(x, dtype))

    def result_dtype(self, *operands: Expr) -> str:
        """Return the dtype to which PyTorch promotes operands, numbers of Python's among them."""
        groups: tuple[list[str], list[str], list[str]] = ([], [], [])
        for x in operands:
            place = 2 if self.is_number(x) else int(self.type(x).rank == 0)
            groups[place].append(self.dtype(x))
        return promote(*groups, default=self.default_dtype)

    def promote(self, *operands: Expr) -> list[Expr]:
        """Return operands in the dtype to which PyTorch promotes them."""
        dtype = self.result_dtype(*operands)
        return [self.cast(x, dtype) for x in operands]

    def promote_to_float(self, *operands: Expr) -> list[Expr]:
        """Return operands promoted, integers and booleans as floats of the default dtype."""
        dtype = self.result_dtype(*operands)
        if category(dtype) < category("float32"):
            dtype = self.default_dtype
        return [self.cast(x, dtype) for x in operands]

    # Lengths.

    def require_rank(self, x: Expr, least: int, most: int | None = None) -> None:
        """Refuse a tensor that has fewer axes, or more.

        Raises:
            Unsupported: It is so.
        """
        type_ = self.type(x)
        if type_.rank < least or (most is not None and type_.rank > most):
            wanted = str(least) if least == most else f"{least} or more"
            wanted = wanted if most in (None, least) else f"{least} to {most}"
            raise Unsupported(f"needs a tensor of {wanted} axes, found {type_!r}")

    def last_lengths(self, x: Expr, count: int) -> tuple[Dim, ...]:
        """Return the lengths of the last axes.

        Raises:
            Unsupported: There are fewer.
        """
        self.require_rank(x, count)
        return self.type(x).shape[-count:]

    def dim(self, value: SymInt) -> Dim:
        """Return a length as a dimension: an integer, a symbol, or an anonymous one."""
        if not isinstance(value, Expr):
            return value
        found = self.dims(value)
        return Any() if found is None else found[0]

    def fixed(self, value: SymInt) -> int:
        """Return a length, or another number, that must be fixed.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        found = self.dim(value)
        if not isinstance(found, int):
            raise Unsupported(f"needs a fixed number, found {found}")
        return found

    def size(self, x: Expr, axis: int) -> SymInt:
        """Return the length of an axis, computed where it is not fixed.

        Raises:
            TypeInferenceError: There is no such axis.
        """
        length = self.dim_at(x, axis)
        if isinstance(length, int):
            return length
        index = relay.const(axis % self.type(x).rank, "int64")
        found = self.fold(relay.take(relay.shape_of(x, "int64"), index, axis=0))
        self._walk.numbers.add(found)
        return found

    def at_least(self, dim: Dim, least: int) -> bool:
        """Whether a dimension is at least some number, whatever its symbols stand for."""
        low, _high = bounds(dim, self._walk.ranges)
        return low is not None and low >= least

    def shape_vector(self, dims: Sequence[SymInt]) -> Expr:
        """Return lengths as a vector of int64."""
        parts = [
            relay.reshape(each, newshape=(1,))
            if isinstance(each, Expr)
            else Constant(np.array([_whole(each)], np.int64))
            for each in dims
        ]
        if not parts:
            return Constant(np.zeros(0, np.int64))
        return self.fold(parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=0))

    def axis(self, x: Expr, axis: int) -> int:
        """Return an axis counted from the front; a scalar has one axis for PyTorch.

        Raises:
            TypeInferenceError: There is no such axis.
        """
        return normalize_axis(axis, max(self.type(x).rank, 1))

    def axes(self, x: Expr, axes: AnyValue) -> tuple[int, ...]:
        """Return axes counted from the front, ascending; all of them for none.

        Raises:
            Unsupported: There is no such axis, or one is named twice.
        """
        if axes is None or axes == ():
            return tuple(range(self.type(x).rank))
        given = (axes,) if isinstance(axes, int) else axes
        found = sorted(self.axis(x, each) for each in given)
        if len(set(found)) < len(found):
            raise Unsupported(f"axes {list(given)} name one twice")
        return tuple(found) if self.type(x).rank else ()


def _whole(value: AnyValue) -> int:
    """Return a number as one of 64 bits."""
    try:
        found = int(value.real if isinstance(value, complex) else value)
    except (OverflowError, ValueError):
        raise Unsupported(f"{value} as a whole number") from None
    if not -(2**63) <= found < 2**63:
        raise Unsupported(f"{found} is beyond 64 bits")
    return found
