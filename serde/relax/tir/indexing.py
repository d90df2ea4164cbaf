"""Index expressions as polynomials over axes, with floor divisions as atoms of them.

Their normal form proves what TVM's arithmetic says in many ways: that an index is an axis, that
several together count through a tensor, or that they stay inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from serde.relax.tir.stages import Apply, Axis, Length, Load, Node, Number, Position, post_order
from serde.relay.ir import Any, Dim, FloorDiv, symbol
from serde.relay.ir.dims import SymDim, product, substitute

__all__ = ["Affine", "Frame", "flat_index", "loads_of"]

_INTEGERS: Final = ("int", "uint", "bool")


class Affine(NamedTuple):
    """A sum of axes with factors.

    Attributes:
        start: What it is where all axes are 0.
        factors: What each axis is multiplied by, none by 0.
    """

    start: Dim
    factors: dict[Axis, int]


class Frame:
    """What expressions are computed over: the axes of a stage, or parts of them.

    Args:
        axes: What is iterated over, in order.
        values: What the axes of the stage are in terms of these, if not themselves.
        guarded: Whether loads may be outside of their buffers, where their value is not used.

    Attributes:
        parts: The digits of axes of the frame that this one was split from.
    """

    def __init__(
        self,
        axes: Iterable[Axis],
        values: Mapping[Axis, Dim] | None = None,
        *,
        guarded: bool = False,
    ) -> None:
        self.axes = tuple(axes)
        self.values = dict(values or {each: symbol(each.name) for each in self.axes})
        self.guarded = guarded
        self._named = {each.name: each for each in self.axes}
        self.parts: dict[Axis, list[Axis]] = {}
        self._indices: dict[Node, Dim] = {}
        self._bounds: dict[tuple[Dim, int], Dim] = {}

    def replaced(self, axis: Axis, parts: Sequence[Axis], value: Dim) -> Frame:
        """Return the same with an axis in terms of others, which stand in its place."""
        axes = [new for each in self.axes for new in (parts if each is axis else (each,))]
        values = {each: substitute(dim, {axis.name: value}) for each, dim in self.values.items()}
        return Frame(axes, values, guarded=self.guarded)

    def loosened(self) -> Frame:
        """Return the same where loads may be outside of their buffers."""
        return self if self.guarded else Frame(self.axes, self.values, guarded=True)

    # Polynomials.

    def index(self, node: Node) -> Dim:
        """Return an index as a polynomial over axes and lengths, anonymous if it is none."""
        for each in post_order(node):
            if each not in self._indices:
                self._indices[each] = self._index(each)
        return self._indices[node]

    def _index(self, node: Node) -> Dim:
        if not node.dtype.startswith(_INTEGERS):
            return Any()
        match node:
            case Number(_, value):
                return int(value)
            case Position(_, axis):
                return self.values[axis] if axis.extent != 1 or axis.reduced else 0
            case Length(_, dim):
                return dim
            case Apply(_, "cast", (value,)):
                return self._indices[value]
            case Apply(_, op, (one, other)):
                return self._combine(op, self._indices[one], self._indices[other])
        return Any()

    def _combine(self, op: str, one: Dim, other: Dim) -> Dim:
        if op == "Add":
            return self._simplify(one + other)
        if op == "Sub":
            return self._simplify(one - other)
        if op == "Mul":
            return one * other
        if op in ("Div", "Mod") and not _is_number(self.least(one)):
            return Any()
        if op in ("FloorDiv", "Div"):
            return self.floor_divide(one, other)
        if op in ("FloorMod", "Mod"):
            return self._simplify(one - other * self.floor_divide(one, other))
        if op in ("Max", "Min"):
            largest = op == "Max"
            if _is_number(self.least(one - other)):
                return one if largest else other
            if _is_number(self.least(other - one)):
                return other if largest else one
        return Any()

    def floor_divide(self, one: Dim, other: Dim) -> Dim:
        """Return a quotient, without parts that are 0 for all values of the axes."""
        if isinstance(one, Any) or isinstance(other, Any) or not _is_positive(other):
            return Any()
        return self._simplify(one // other)

    def _simplify(self, dim: Dim) -> Dim:
        """Return a polynomial without quotients of what is less than the divisor."""
        if not isinstance(dim, SymDim):
            return dim
        total: Dim = 0
        for monomial, factor in dim.terms:
            atoms = [atom for atom, _ in monomial if isinstance(atom, FloorDiv)]
            if not any(map(self._vanishes, atoms)):
                total = total + SymDim(((monomial, factor),)) if monomial else total + factor
        return total

    def _vanishes(self, atom: FloorDiv) -> bool:
        least = self.least(atom.numerator)
        most = self.most(atom.numerator)
        return _is_number(least) and _is_number(self.least(atom.denominator - 1 - most))

    # Bounds.

    def least(self, dim: Dim) -> Dim:
        """Return the least value of a polynomial, anonymous if it is not known."""
        return self._bound(dim, -1)

    def most(self, dim: Dim) -> Dim:
        """Return the largest value of a polynomial, anonymous if it is not known."""
        return self._bound(dim, 1)

    def _bound(self, dim: Dim, sign: int) -> Dim:
        """Return a bound; lengths are at least 1, as nothing is computed over others."""
        if not isinstance(dim, SymDim):
            return dim
        if (dim, sign) not in self._bounds:
            total: Dim = 0
            for monomial, factor in dim.terms:
                term: Dim = factor
                for atom, power in monomial:
                    for _ in range(power):
                        term = term * self._bound_of(atom, largest=factor * sign > 0)
                total = total + term
            self._bounds[dim, sign] = total
        return self._bounds[dim, sign]

    def _bound_of(self, atom: str | FloorDiv, *, largest: bool) -> Dim:
        if isinstance(atom, FloorDiv):
            if not _is_number(self.least(atom.numerator)):
                return Any()
            return self.most(atom.numerator) // atom.denominator if largest else 0
        axis = self._named.get(atom)
        if axis is None:
            return symbol(atom)
        return axis.extent - 1 if largest else 0

    def is_inside(self, index: Dim, length: Dim) -> bool:
        """Whether an index is surely one of a length."""
        behind = self.least(length - 1 - self.most(index))
        return _is_number(self.least(index)) and _is_number(behind)

    def is_at_most(self, one: Dim, other: Dim) -> bool:
        """Whether a polynomial is surely no more than another."""
        return _is_number(self.least(other - one))

    # Forms.

    def affine(self, index: Dim) -> Affine | None:
        """Return an index as a sum of axes, None if it is something else."""
        if isinstance(index, Any):
            return None
        start: Dim = 0
        factors = {}
        for monomial, factor in index.terms if isinstance(index, SymDim) else (((), index),):
            names = [atom if isinstance(atom, str) else "" for atom, _ in monomial]
            if len(monomial) == 1 and monomial[0][1] == 1 and names[0] in self._named:
                factors[self._named[names[0]]] = factor
            elif self.axes_of(SymDim(((monomial, factor),))) if monomial else False:
                return None
            else:
                start = start + (SymDim(((monomial, factor),)) if monomial else factor)
        return Affine(start, factors)

    def axes_of(self, index: Dim) -> set[Axis]:
        """Return the axes that an index depends on."""
        names = index.symbols() if isinstance(index, SymDim) else ()
        return {self._named[each] for each in names if each in self._named}

    def digits(self, index: Dim, length: Dim) -> list[Axis] | None:
        """Return the axes that together count through a length, slowest first; None if none do."""
        found = self.affine_with_lengths(index)
        return None if found is None else self.digits_of(found, length)

    def digits_of(self, found: Mapping[Axis, Dim], length: Dim) -> list[Axis] | None:
        """Return the same of factors of axes."""
        ordered = [each for each in found if each.extent == 1]
        rest = {each: factor for each, factor in found.items() if each.extent != 1}
        size: Dim = 1
        while rest:
            axis = next((each for each, factor in rest.items() if factor == size), None)
            if axis is None:
                return None
            del rest[axis]
            ordered.insert(0, axis)
            size = size * axis.extent
        return ordered if size == length and not isinstance(size, Any) else None

    def affine_with_lengths(self, index: Dim) -> dict[Axis, Dim] | None:
        """Return the factors of an index that is 0 at first, which may be lengths."""
        if isinstance(index, Any):
            return None
        factors: dict[Axis, Dim] = {}
        for monomial, factor in index.terms if isinstance(index, SymDim) else (((), index),):
            names = [atom for atom, _ in monomial if atom in self._named]
            others = [(atom, power) for atom, power in monomial if atom not in self._named]
            if not monomial and factor == 0:
                continue
            if len(names) != 1 or sum(power for _, power in monomial) != 1 + sum(
                power for _, power in others
            ):
                return None
            rest: Dim = SymDim(((tuple(others), factor),)) if others else factor
            if self.axes_of(rest):
                return None
            axis = self._named[str(names[0])]
            factors[axis] = factors.get(axis, 0) + rest
        return factors

    # Parts of axes.

    def split(self, indices: Iterable[Dim]) -> Frame:
        """Return the same with axes in digits where quotients of them are indices."""
        points: dict[Axis, set[int]] = {}
        for atom in _quotients(indices):
            by = atom.denominator
            name = atom.numerator.name if isinstance(atom.numerator, SymDim) else None
            axis = self._named.get(name or "")
            if axis is not None and isinstance(by, int):
                points.setdefault(axis, set()).add(by)
        frame = self
        for axis, found in points.items():
            steps = [1, *sorted(found)]
            divides = all(later % one == 0 for one, later in pairwise(steps))
            whole = axis.extent // steps[-1]
            if not divides or whole * steps[-1] != axis.extent:
                continue
            lengths = [later // one for one, later in pairwise(steps)]
            parts = [
                Axis(f"{axis.name}_{step}", length, axis.reduced)
                for step, length in zip(steps, [*lengths, whole], strict=True)
            ]
            value: Dim = 0
            for step, part in zip(steps, parts, strict=True):
                value = value + symbol(part.name) * step
            known = frame.parts | {axis: parts[::-1]}
            frame = frame.replaced(axis, parts[::-1], value)
            frame.parts = known
        return frame

    def restricted(self, axis: Axis, start: Dim, step: int, extent: Dim) -> tuple[Frame, Axis]:
        """Return the frame of some values of an axis, and the axis that counts them."""
        part = Axis(f"{axis.name}_from", extent, axis.reduced)
        return self.replaced(axis, [part], symbol(part.name) * step + start), part


def _quotients(indices: Iterable[Dim]) -> list[FloorDiv]:
    """Return the floor divisions in polynomials, those inside others too."""
    found, pending = list[FloorDiv](), list(indices)
    while pending:
        each = pending.pop()
        for monomial, _ in each.terms if isinstance(each, SymDim) else ():
            for atom, _ in monomial:
                if isinstance(atom, FloorDiv):
                    found.append(atom)
                    pending += [atom.numerator, atom.denominator]
    return found


def _is_number(bound: Dim) -> bool:
    """Whether a bound is known, and at least 0; lengths are."""
    if isinstance(bound, SymDim):
        return all(factor >= 0 for _, factor in bound.terms) and not isinstance(bound, Any)
    return isinstance(bound, int) and bound >= 0


def _is_positive(dim: Dim) -> bool:
    if isinstance(dim, int):
        return dim > 0
    return isinstance(dim, SymDim) and all(factor > 0 for _, factor in dim.terms)


def loads_of(*nodes: Node) -> list[Load]:
    """Return the loads in expressions."""
    return [each for each in post_order(*nodes) if isinstance(each, Load)]


def flat_index(indices: Sequence[Dim], lengths: Sequence[Dim]) -> Dim:
    """Return the place of an element in a tensor, its rows one after the other."""
    total: Dim = 0
    for axis, index in enumerate(indices):
        total = total + index * product(lengths[axis + 1 :])
    return total
