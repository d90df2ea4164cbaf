"""What lengths are in a module of Relax: expressions of TIR over variables, read as dimensions.

A length is a :data:`Dim` over names of its own here, one for each variable of TIR that a function
has. What such a name stands for is either a dimension that Relay's types know, or only known when
the model runs; both ways its value is a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import budget, dataclass
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.reflection import handle_of
from serde.relay.ir import Any, Constant, Dim, Expr, FloorDiv, TensorType, substitute, symbol
from serde.relay.ir.dims import SymDim
from serde.relay.ir.unique_names import UniqueNames

__all__ = ["Lengths", "Scalar", "Shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """A value of Relax that is a shape.

    Attributes:
        dims: Its lengths, in the names of :class:`Lengths`.
    """

    dims: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of Relax that is a number of TIR.

    Attributes:
        value: The number; of an integer that is not known a length, in the names of
            :class:`Lengths`, and of another number a scalar tensor.
        dtype: Its dtype.
    """

    value: float | bool | Dim | Expr
    dtype: str


class Lengths:
    """The variables of TIR in the functions that are read, and what they stand for.

    Args:
        framework: TVM.
        fold: Evaluates what does not depend on inputs.

    Attributes:
        names: Names of the variables that the function has that is being read, by the handle of
            the variable.
    """

    def __init__(self, framework: Framework, fold: Callable[[Expr], Expr]) -> None:
        self._tir = framework.tir
        self._fold = fold
        self.names: dict[int, str] = {}
        self._known: dict[str, Dim] = {}
        self._sources: dict[str, Callable[[], Expr] | None] = {}
        self._shown: dict[str, tuple[Expr, int]] = {}
        self._tensors: dict[str, Expr] = {}
        self._made: dict[object, Dim] = {}

    # Variables.

    def is_variable(self, length: AnyValue) -> bool:
        """Whether a length is one variable of TIR."""
        return isinstance(length, self._tir.Var)

    def knows(self, variable: AnyValue) -> bool:
        """Whether the function that is read has shown what a variable is."""
        return handle_of(variable) in self.names

    def define(self, variable: AnyValue, dim: Dim, source: Callable[[], Expr] | None) -> None:
        """Note what a variable is.

        Args:
            variable: A variable of TIR.
            dim: What Relay's types know of it.
            source: Gives its value, a scalar of int64; None where nothing does so far.
        """
        self.names[handle_of(variable)] = self._add(dim, source)

    def declare(self, length: AnyValue) -> None:
        """Note the variables in a length of an input as symbols of their names."""
        names = UniqueNames(str(known) for known in self._known.values())
        for each in self.variables(length):
            if not self.knows(each):
                unique = names.reserve(str(each.name) or "n")
                self.define(each, symbol(unique), None)

    def computed(self, number: Expr) -> Dim:
        """Return an integer that is only known when the model runs."""
        return symbol(self._add(Any(), lambda: relay.cast(number, "int64")))

    def same(self, variable: AnyValue, dim: Dim) -> None:
        """Note that a variable is an integer, or refuse it where it never is that."""
        if self.knows(variable) or not isinstance(dim, SymDim) or dim.name is None:
            self.match_length(variable, self.known(dim), partial(self.tensor, dim))
        else:
            self.names[handle_of(variable)] = dim.name

    def show(self, variable: AnyValue, tensor: Expr, axis: int) -> None:
        """Note that an axis of a tensor has a variable's length."""
        name = self.names[handle_of(variable)]
        self._shown.setdefault(name, (tensor, axis))

    def match(self, lengths: Sequence[AnyValue], tensor: Expr) -> None:
        """Note what the lengths of a tensor show of variables of which nothing is known yet.

        Raises:
            Unsupported: The tensor never has these lengths.
        """
        type_ = tensor.type
        if not isinstance(type_, TensorType) or type_.rank != len(lengths):
            raise Unsupported(f"expected a tensor of {len(lengths)} axes, found {type_!r}")
        for axis, (length, dim) in enumerate(zip(lengths, type_.shape, strict=True)):
            self.match_length(length, dim, partial(axis_length, tensor, axis))

    def match_length(self, length: AnyValue, dim: Dim, source: Callable[[], Expr]) -> None:
        """Note what a length shows of a variable of which nothing is known yet.

        Raises:
            Unsupported: It never is that.
        """
        if self.is_variable(length) and not self.knows(length):
            self.define(length, dim, source)
            return
        if self.is_variable(length):
            name = self.names[handle_of(length)]
            self._sources[name] = self._sources[name] or source
        if any(not self.knows(each) for each in self.variables(length)):
            return
        wanted = self.known(self.read(length))
        if isinstance(dim, int) and isinstance(wanted, int) and dim != wanted:
            raise Unsupported(f"a length of {dim} that has to be {wanted}")

    def _add(self, dim: Dim, source: Callable[[], Expr] | None) -> str:
        name = f"v{len(self._known)}"
        self._known[name] = dim
        self._sources[name] = source
        return name

    def variables(self, length: AnyValue) -> list[AnyValue]:
        """Return the variables in a length."""
        found: list[AnyValue] = []
        pending = [length]
        while pending:
            each = pending.pop()
            if self.is_variable(each):
                found.append(each)
            elif isinstance(each, self._pairs):
                pending += [each.b, each.a]
            elif isinstance(each, self._tir.Cast):
                pending.append(each.value)
        return found

    # Lengths.

    @property
    def _pairs(self) -> tuple[AnyValue, ...]:
        tir = self._tir
        return (
            tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod,
            tir.Max, tir.Min,
        )  # fmt: skip

    def read(self, length: AnyValue, *, signed: bool = False) -> Dim:
        """Return a length in names of its own.

        Args:
            length: The length.
            signed: Whether it is any number, which may be negative.

        Raises:
            Unsupported: It is made by something else than arithmetic of integers, or of a
                variable that nothing shows.
        """
        tir, read = self._tir, partial(self.read, signed=signed)
        if isinstance(length, int):
            return length
        if isinstance(length, tir.IntImm):
            return int(length.value)
        if self.is_variable(length):
            if not self.knows(length):
                raise Unsupported(f"nothing shows the length {length.name} before it is needed")
            return symbol(self.names[handle_of(length)])
        if isinstance(length, tir.Cast):
            return read(length.value)
        if isinstance(length, tir.Select) and isinstance(length.condition, tir.IntImm):
            chosen = length.true_value if length.condition.value else length.false_value
            return read(chosen)
        if not isinstance(length, self._pairs):
            raise Unsupported(f"a length that is {type(length).__name__} of TIR: {length!s:.100}")
        kind, one, other = type(length).__name__, read(length.a), read(length.b)
        if signed and kind in ("Div", "Mod") and not isinstance(self.known(one), int):
            raise Unsupported("a number that is rounded towards 0, which may be negative")
        return self._combine(kind, one, other)

    def _combine(self, kind: str, one: Dim, other: Dim) -> Dim:
        if kind == "Add":
            return one + other
        if kind == "Sub":
            return one - other
        if kind == "Mul":
            return one * other
        if kind in ("FloorDiv", "Div"):  # Lengths are not negative: both round down.
            return one // other
        if kind in ("FloorMod", "Mod"):
            return one - other * (one // other)
        largest = kind == "Max"
        if isinstance(one, int) and isinstance(other, int):
            return max(one, other) if largest else min(one, other)
        key = kind, one, other
        if key not in self._made:
            choose = relay.maximum if largest else relay.minimum
            first, second = self.known(one), self.known(other)
            dim: Dim = Any()
            if isinstance(first, int) and isinstance(second, int):
                dim = max(first, second) if largest else min(first, second)
            self._made[key] = symbol(
                self._add(dim, lambda: choose(self.tensor(one), self.tensor(other)))
            )
        return self._made[key]

    def axis(self, tensor: Expr, axis: int, dim: Dim) -> Dim:
        """Return the length of an axis, of which Relay's type knows `dim`."""
        if isinstance(dim, int):
            return dim
        return symbol(self._add(dim, partial(axis_length, tensor, axis)))

    def elements(self, vector: Expr, known: Sequence[Dim] | None) -> tuple[Dim, ...]:
        """Return the lengths that a vector of integers holds.

        Args:
            vector: The vector.
            known: What Relay knows of its elements.

        Raises:
            Unsupported: Nobody knows how many.
        """
        count = vector.type.shape[0] if isinstance(vector.type, TensorType) else Any()
        if known is None and not isinstance(count, int):
            raise Unsupported("a shape of a rank that is not known")
        if isinstance(count, int):
            budget().draw("nodes", count, "the elements of a shape")
        dims = [Any()] * int(count) if known is None else known  # type: ignore[arg-type]
        return tuple(
            dim
            if isinstance(dim, int)
            else symbol(self._add(dim, partial(_element, vector, index)))
            for index, dim in enumerate(dims)
        )

    def known(self, dim: Dim) -> Dim:
        """Return what Relay's types know of a length."""
        return substitute(dim, self._known)

    def all_known(self, dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
        """Return what Relay's types know of lengths, None where one is not known."""
        found = tuple(map(self.known, dims))
        return None if any(isinstance(each, Any) for each in found) else found

    # Their values.

    def tensor(self, dim: Dim) -> Expr:
        """Return a length as a scalar of int64.

        Raises:
            Unsupported: Nothing shows it.
        """
        known = self.known(dim)
        if isinstance(known, int):
            return _int64(known)
        if isinstance(dim, (int, Any)):
            raise Unsupported(f"a length that nothing shows: {dim}")
        total: Expr | None = None
        for monomial, coefficient in dim.terms:
            term: Expr | None = _int64(coefficient) if coefficient != 1 else None
            for atom, power in monomial:
                factor = self._factor(atom)
                for _ in range(power):
                    term = factor if term is None else relay.multiply(term, factor)
            term = _int64(1) if term is None else term
            total = term if total is None else relay.add(total, term)
        if total is None:
            return _int64(0)
        return self._fold(total)

    def _factor(self, atom: str | FloorDiv) -> Expr:
        if isinstance(atom, FloorDiv):
            return relay.floor_divide(self.tensor(atom.numerator), self.tensor(atom.denominator))
        if atom not in self._tensors:
            source = self._sources[atom]
            if atom in self._shown:
                source = partial(axis_length, *self._shown[atom])
            if source is None:
                raise Unsupported(f"no input shows the length {self._known[atom]}")
            self._tensors[atom] = self._fold(source())
        return self._tensors[atom]

    def vector(self, dims: Sequence[Dim]) -> Expr:
        """Return lengths as a vector of int64."""
        known = self.all_known(dims)
        if known is not None and all(isinstance(each, int) for each in known):
            return _int64(known)
        return self._fold(relay.stack([self.tensor(each) for each in dims], axis=0))


def _int64(value: AnyValue) -> Constant:
    return Constant(np.array(value, np.int64))


def axis_length(tensor: Expr, axis: int) -> Expr:
    """Return the length of an axis as a scalar of int64."""
    return _element(relay.shape_of(tensor, dtype="int64"), axis)


def _element(vector: Expr, index: int) -> Expr:
    return relay.cast(relay.take(vector, _int64(index), axis=0), "int64")
