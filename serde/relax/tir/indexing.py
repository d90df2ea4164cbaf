"""Index expressions as polynomials over axes, with floor divisions as atoms of them.

Their normal form proves what TVM's arithmetic says in many ways: that an index is an axis, that
several together count through a tensor, or that they stay inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from serde.relax.tir.stages import Axis, Node, post_order
from serde.relay.ir import Any, Dim, FloorDiv, symbol
from serde.relay.ir.dims import SymDim, product, substitute

__all__ = ["Frame", "flat_index"]


class Frame:
    """What expressions are computed over: the axes of a stage, or parts of them.

    Args:
        axes: What is iterated over, in order.
        values: What the axes of the stage are in terms of these, if not themselves.
        guarded: Whether loads may be outside of their buffers, where their value is not used.
        parts: The digits of axes of the frame that this one was split from.
    """

    def __init__(
        self, axes: Iterable[Axis], values: Mapping[Axis, Dim] | None = None,
        guarded: bool = False, parts: Mapping[Axis, Sequence[Axis]] | None = None,
    ) -> None:  # fmt: skip
        self.axes = tuple(axes)
        self.guarded = guarded
        self.parts = parts or {}
        self._values = dict(values or {each: symbol(each.name) for each in self.axes})
        self._named = {each.name: each for each in self.axes}
        self._indices: dict[Node, Dim] = {}
        self._bounds: dict[tuple[Dim, int], Dim] = {}

    def loosened(self) -> Frame:
        """Return the same where loads may be outside of their buffers."""
        return self if self.guarded else Frame(self.axes, self._values, True)

    def restricted(self, axis: Axis, start: Dim, step: int, extent: Dim) -> tuple[Frame, Axis]:
        """Return the frame of some values of an axis, and the axis that counts them."""
        part = Axis(f"{axis.name}_from", extent, axis.reduced)
        return self._replaced(axis, [part], symbol(part.name) * step + start), part

    def _replaced(self, axis: Axis, parts: Sequence[Axis], value: Dim) -> Frame:
        axes = [new for each in self.axes for new in (parts if each is axis else (each,))]
        values = {each: substitute(dim, {axis.name: value}) for each, dim in self._values.items()}
        return Frame(axes, values, self.guarded)

    def split(self, roots: Iterable[Node], indices: Iterable[Node] = ()) -> Frame:
        """Return the same with axes in digits where indices, or those of loads, divide them."""
        loads = [load for root in roots for load in post_order(root, "load")]
        indices = [*indices, *(each for load in loads for each in load.args)]
        points: dict[Axis, set[int]] = {}
        for atom in _quotients(map(self.index, indices)):
            by, numerator = atom.denominator, atom.numerator
            axis = self._named.get((isinstance(numerator, SymDim) and numerator.name) or "")
            if axis is not None and isinstance(by, int):
                points.setdefault(axis, set()).add(by)
        frame, known = self, dict[Axis, list[Axis]]()
        for axis, found in points.items():
            steps = [1, *sorted(found)]
            whole = axis.extent // steps[-1]
            if whole * steps[-1] != axis.extent or any(b % a for a, b in pairwise(steps)):
                continue
            lengths = [*(later // one for one, later in pairwise(steps)), whole]
            digits = [
                Axis(f"{axis.name}_{step}", length, axis.reduced)
                for step, length in zip(steps, lengths, strict=True)
            ]
            value: Dim = 0
            for step, digit in zip(steps, digits, strict=True):
                value = value + symbol(digit.name) * step
            known[axis] = digits[::-1]
            frame = frame._replaced(axis, known[axis], value)
        return Frame(frame.axes, frame._values, self.guarded, known) if known else self

    # Polynomials.

    def index(self, node: Node) -> Dim:
        """Return an index as a polynomial over axes and lengths, anonymous if it is none."""
        for each in post_order(node):
            if each not in self._indices:
                self._indices[each] = self._index(each)
        return self._indices[node]

    def _index(self, node: Node) -> Dim:
        if not node.dtype.startswith(("int", "uint", "bool")):
            return Any()
        args = [self._indices[each] for each in node.args]
        if node.op == "number":
            return int(node.held)
        if node.op == "axis":
            return self._values[node.held] if node.held.extent != 1 or node.held.reduced else 0
        if node.op in ("length", "cast"):
            return args[0] if args else node.held
        return self._combine(node.op, *args) if len(args) == 2 and node.op != "load" else Any()

    def _combine(self, op: str, one: Dim, other: Dim) -> Dim:
        if op in ("Add", "Sub"):
            return self._simplify(one + other if op == "Add" else one - other)
        if op == "Mul":
            return one * other
        if op in ("Max", "Min"):
            if self.is_at_most(other, one):
                return one if op == "Max" else other
            return (other if op == "Max" else one) if self.is_at_most(one, other) else Any()
        divides = op in ("FloorDiv", "FloorMod")
        divides = divides or (op in ("Div", "Mod") and self.is_at_most(0, one))
        if not divides or not self.is_at_most(1, other) or isinstance(one, Any):
            return Any()
        quotient = self._simplify(one // other)
        return quotient if op.endswith("Div") else self._simplify(one - other * quotient)

    def _simplify(self, dim: Dim) -> Dim:
        """Return a polynomial without quotients of what is less than the divisor."""
        total: Dim = 0
        for monomial, factor in _terms(dim):
            atoms = [atom for atom, _ in monomial if isinstance(atom, FloorDiv)]
            if not any(self.is_inside(atom.numerator, atom.denominator) for atom in atoms):
                total = total + (SymDim(((monomial, factor),)) if monomial else factor)
        return Any() if isinstance(dim, Any) else total

    # Bounds. Lengths are at least 1, as nothing is computed over others.

    def _bound(self, dim: Dim, sign: int) -> Dim:
        """Return the largest value of a polynomial, or the least, anonymous if it is not known."""
        key = dim, sign
        if key not in self._bounds:
            total: Dim = dim if isinstance(dim, Any) else 0
            for monomial, factor in _terms(dim):
                term: Dim = factor
                for atom in (atom for atom, power in monomial for _ in range(power)):
                    term = term * self._bound_of(atom, factor * sign > 0)
                total = total + term
            self._bounds[key] = total
        return self._bounds[key]

    def _bound_of(self, atom: str | FloorDiv, largest: bool) -> Dim:
        if isinstance(atom, FloorDiv):
            known = self.is_at_most(0, atom.numerator)
            most = self._bound(atom.numerator, 1) // atom.denominator if largest else 0
            return most if known else Any()
        axis = self._named.get(atom)
        return symbol(atom) if axis is None else axis.extent - 1 if largest else 0

    def is_at_most(self, one: Dim, other: Dim) -> bool:
        """Whether a polynomial is surely no more than another."""
        room = self._bound(other - one, -1)
        if isinstance(room, Any) or any(m and factor < 0 for m, factor in _terms(room)):
            return False
        sure = (f for m, f in _terms(room) if all(isinstance(atom, str) for atom, _ in m))
        return sum(sure) >= 0

    def is_inside(self, index: Dim, length: Dim) -> bool:
        """Whether an index is surely one of a length."""
        return self.is_at_most(0, index) and self.is_at_most(self._bound(index, 1), length - 1)

    # Forms.

    def axes_of(self, index: Dim) -> list[Axis]:
        """Return the axes that an index depends on."""
        names = index.symbols() if isinstance(index, SymDim) else ()
        return [each for each in self.axes if each.name in names]

    def affine(self, index: Dim) -> tuple[Dim, dict[Axis, Dim]] | None:
        """Return what an index is where all axes are 0, and the factor of each, None if none."""
        axes = self.axes_of(index)
        zeros: dict[str, Dim] = {each.name: 0 for each in axes}
        start = total = substitute(index, zeros)
        factors = {each: substitute(index, zeros | {each.name: 1}) - start for each in axes}
        for axis, factor in factors.items():
            total = total + symbol(axis.name) * factor
        return (start, factors) if total == index and not isinstance(index, Any) else None

    def digits(self, index: Dim, length: Dim) -> list[Axis] | None:
        """Return the axes that together count through a length, slowest first; None if none do."""
        found = self.affine(index)
        return None if found is None or found[0] != 0 else count_digits(found[1], length)


def count_digits(factors: Mapping[Axis, Dim], length: Dim) -> list[Axis] | None:
    """Return the axes of a sum that counts through a length; see :meth:`Frame.digits`."""
    ordered = [each for each in factors if each.extent == 1]
    rest = {each: factor for each, factor in factors.items() if each.extent != 1}
    size: Dim = 1
    while rest:
        axis = next((each for each, factor in rest.items() if factor == size), None)
        if axis is None:
            return None
        del rest[axis]
        ordered.insert(0, axis)
        size = size * axis.extent
    return ordered if size == length and not isinstance(size, Any) else None


def flat_index(indices: Sequence[Dim], lengths: Sequence[Dim]) -> Dim:
    """Return the place of an element in a tensor, its rows one after the other."""
    total: Dim = 0
    for axis, index in enumerate(indices):
        total = total + index * product(lengths[axis + 1 :])
    return total


_Monomial = tuple[tuple[str | FloorDiv, int], ...]


def _terms(dim: Dim) -> tuple[tuple[_Monomial, int], ...]:
    if isinstance(dim, SymDim):
        return dim.terms
    return (((), dim),) if isinstance(dim, int) else ()


def _quotients(indices: Iterable[Dim]) -> list[FloorDiv]:
    """Return the floor divisions in polynomials, those inside others too."""
    found, pending = list[FloorDiv](), list(indices)
    while pending:
        for monomial, _ in _terms(pending.pop()):
            atoms = [atom for atom, _ in monomial if isinstance(atom, FloorDiv)]
            found += atoms
            pending += [part for atom in atoms for part in (atom.numerator, atom.denominator)]
    return found
