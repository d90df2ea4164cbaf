"""Dimensions: integers, symbolic expressions, and the anonymous dimension.

A symbolic dimension is a polynomial with integer coefficients over named
symbols and floor divisions, kept in a normal form so that equal expressions
built in different ways are equal objects. What cannot be expressed is
:class:`Any`, which carries no identity, as in TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from serde.core.limits import current_limits
from serde.errors import RelayError, TypeInferenceError

__all__ = [
    "Any", "Dim", "DimLike", "FloorDiv", "SymDim", "as_dim", "product", "same_length",
    "same_shape", "substitute", "symbol",
]  # fmt: skip

_PARTS_PER_TERM: Final = 8
"""How many atoms a term has on average, at most, those inside floor divisions included."""

_MAX_HEIGHT: Final = 64
"""Most floor divisions inside each other."""

_MAX_LENGTH: Final = 2**63 - 1
"""The largest length and coefficient: no tensor is longer."""


class Any:
    """A dimension of which nothing is known; all are alike and none says the same length."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Any)

    def __hash__(self) -> int:
        return hash(Any)

    def __repr__(self) -> str:
        return "?"

    def _absorb(self, _other: object) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _absorb
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _absorb


class FloorDiv:
    """The floor of a quotient that has no simpler form; an atom of a :class:`SymDim`."""

    __slots__ = ("_hash", "denominator", "height", "numerator", "parts")

    def __init__(self, numerator: int | SymDim, denominator: int | SymDim) -> None:
        self.numerator = numerator
        self.denominator = denominator
        self.parts = _parts(numerator) + _parts(denominator)
        self.height = 1 + max(_height(numerator), _height(denominator))
        self._hash = hash((FloorDiv, numerator, denominator))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FloorDiv)
            and self.numerator == other.numerator
            and self.denominator == other.denominator
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"floordiv({self.numerator}, {self.denominator})"


Atom = str | FloorDiv
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, sorted by their text; the empty one is the constant."""


class SymDim:
    """A polynomial over symbols and floor divisions that is not a plain integer.

    Do not call: :func:`symbol` and arithmetic make these, and return an ``int``
    where the result is one. They return :class:`Any` where it would have more terms
    than the limit of that name, or be as long or as deep as no model's lengths are.

    Attributes:
        terms: Products of atoms with their coefficients, in a normal order.
        parts: How many atoms and terms its text has.
        height: How many floor divisions are inside each other.
    """

    __slots__ = ("_hash", "_text", "height", "parts", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self.parts = len(terms)
        self.height = 0
        for monomial, _ in terms:
            for atom, power in monomial:
                self.parts += power * (1 if isinstance(atom, str) else atom.parts)
                self.height = max(self.height, 0 if isinstance(atom, str) else atom.height)
        self._hash = hash(terms)
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymDim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, Any):
            return other
        total = dict(self.terms)
        for monomial, coefficient in _terms(other):
            total[monomial] = total.get(monomial, 0) + coefficient
        return _from_terms(total)

    __radd__ = __add__

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, Any):
            return other
        if (
            isinstance(other, SymDim)
            and len(self.terms) * len(other.terms) > current_limits().terms
        ):
            return Any()
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = _multiply_monomials(left, right)
                total[monomial] = total.get(monomial, 0) + a * b
        return _from_terms(total)

    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __floordiv__(self, other: Dim) -> Dim:
        return _floor_divide(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _floor_divide(other, self)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text_of(self.terms)
        return self._text

    __repr__ = __str__

    @property
    def name(self) -> str | None:
        """The symbol's name where this is one symbol and nothing else."""
        if len(self.terms) != 1 or self.terms[0][1] != 1:
            return None
        atoms = self.terms[0][0]
        if len(atoms) == 1 and atoms[0][1] == 1 and isinstance(atoms[0][0], str):
            return atoms[0][0]
        return None

    def symbols(self) -> set[str]:
        """Return the names of all symbols in the expression."""
        names: set[str] = set()
        pending = [self]
        while pending:
            for monomial, _ in pending.pop().terms:
                for atom, _power in monomial:
                    if isinstance(atom, str):
                        names.add(atom)
                    else:
                        parts = (atom.numerator, atom.denominator)
                        pending += [part for part in parts if isinstance(part, SymDim)]
        return names


Dim = int | SymDim | Any
DimLike = int | str | SymDim | Any


def symbol(name: str) -> SymDim:
    """Return the dimension called `name`; equal names are equal dimensions."""
    if not name:
        raise RelayError("a symbolic dimension needs a name")
    return SymDim((((((name, 1),)), 1),))


def as_dim(value: DimLike) -> Dim:
    """Return `value` as a dimension: a name becomes a symbol, ``"?"`` anonymous.

    Raises:
        RelayError: `value` is no dimension.
        TypeInferenceError: It is negative, or longer than any tensor.
    """
    if type(value) is int and 0 <= value <= _MAX_LENGTH:
        return value
    if isinstance(value, str):
        return Any() if value == "?" else symbol(value)
    if isinstance(value, (SymDim, Any)):
        return value
    try:
        length = value.__index__()
    except AttributeError:
        raise RelayError(f"expected a dimension, found {value!r}") from None
    if not 0 <= length <= _MAX_LENGTH:
        what = "of 0 or more" if length < 0 else f"of at most {_MAX_LENGTH}"
        raise TypeInferenceError(f"expected a dimension {what}, found {length}")
    return length


def same_length(one: Dim, other: Dim) -> bool:
    """Whether two lengths are surely one: of those of which nothing is known, none is another."""
    return one == other and not isinstance(one, Any)


def same_shape(one: Sequence[Dim], other: Sequence[Dim]) -> bool:
    """Whether two shapes are surely one."""
    return len(one) == len(other) and all(map(same_length, one, other))


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of `dims`; of none, 1."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols of `dim` by the dimensions that `values` gives them."""
    if not isinstance(dim, SymDim):
        return dim
    return _map_atoms(dim, lambda name: values.get(name, symbol(name)))


def _map_atoms(dim: int | SymDim, value_of: Callable[[str], Dim]) -> Dim:
    total: Dim = 0
    for monomial, coefficient in _terms(dim):
        term: Dim = coefficient
        for atom, power in monomial:
            if isinstance(atom, str):
                value = value_of(atom)
            else:
                value = _map_atoms(atom.numerator, value_of) // _map_atoms(
                    atom.denominator, value_of
                )
            for _ in range(power):
                term = term * value
        total = total + term
    return total


def _terms(dim: int | SymDim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, SymDim) else (((), int(dim)),)


def _parts(dim: int | SymDim) -> int:
    return dim.parts if isinstance(dim, SymDim) else 1


def _height(dim: int | SymDim) -> int:
    return dim.height if isinstance(dim, SymDim) else 0


def _bounded(dim: SymDim) -> Dim:
    """Return a dimension that is no larger than the terms that one may have allow."""
    most = current_limits().terms
    longest = max(dim.terms, key=lambda term: abs(term[1]))[1]
    if len(dim.terms) > most or dim.parts > _PARTS_PER_TERM * most:
        return Any()
    return Any() if dim.height > _MAX_HEIGHT or abs(longest) > _MAX_LENGTH else dim


def _from_terms(total: Mapping[Monomial, int]) -> Dim:
    if len(total) > 2 * current_limits().terms:
        return Any()
    kept = sorted(
        ((monomial, c) for monomial, c in total.items() if c),
        key=lambda term: (-sum(power for _, power in term[0]), _monomial_text(term[0])),
    )
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return _bounded(SymDim(tuple(kept)))


def _multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _divide_monomials(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Return the quotient of two monomials, or None where it is not exact."""
    powers = dict(monomial)
    for atom, power in divisor:
        rest = powers.get(atom, 0) - power
        if rest < 0:
            return None
        if rest:
            powers[atom] = rest
        else:
            powers.pop(atom, None)
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _floor_divide(left: Dim, right: Dim) -> Dim:
    """Return ``left // right``, with the terms that `right` divides taken out of the quotient.

    ``(4*N + 6) // 4`` is ``N + 1``, and ``(N + 6) // 4`` is ``1 + (N + 2) // 4``.
    """
    if isinstance(left, Any) or isinstance(right, Any):
        return Any()
    if right == 0:
        raise RelayError(f"a dimension of {left} divided by 0")
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if left == right:
        return 1
    divisor = _terms(right)
    if len(divisor) != 1:
        return _proportion(_terms(left), divisor) or _atom(left, right)
    (by, factor) = divisor[0]
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(left):
        quotient = _divide_monomials(monomial, by)
        if quotient is not None and coefficient % factor == 0:
            whole[quotient] = coefficient // factor
        elif not monomial and not by:
            whole[()] = coefficient // factor
            rest[()] = coefficient % factor
        else:
            rest[monomial] = coefficient
    remainder = _from_terms(rest)
    if isinstance(remainder, Any):
        return remainder
    if isinstance(remainder, int) and isinstance(right, int):
        return _from_terms(whole) + remainder // right
    if remainder == 0:
        return _from_terms(whole)
    return _from_terms(whole) + _atom(remainder, right)


def _proportion(
    left: tuple[tuple[Monomial, int], ...], right: tuple[tuple[Monomial, int], ...]
) -> Dim | None:
    """Return left / right where every term has the same integer ratio."""
    if len(left) != len(right):
        return None
    ratio: int | None = None
    for (a, ca), (b, cb) in zip(left, right, strict=True):
        if a != b or ca % cb or ratio not in (None, ca // cb):
            return None
        ratio = ca // cb
    return ratio


def _atom(numerator: int | SymDim, denominator: int | SymDim) -> Dim:
    """Return floor(numerator / denominator) as an atom, nested floors merged."""
    if isinstance(denominator, int) and abs(denominator) > _MAX_LENGTH:
        return Any()
    terms = _terms(numerator)
    if isinstance(denominator, int) and denominator > 0:
        floors = [m for m, c in terms if c == 1 and len(m) == 1 and isinstance(m[0][0], FloorDiv)]
        constants = [c for m, c in terms if not m]
        if len(floors) == 1 and len(terms) == 1 + len(constants) and floors[0][0][1] == 1:
            inner = floors[0][0][0]
            by = inner.denominator if isinstance(inner, FloorDiv) else 0
            if isinstance(inner, FloorDiv) and isinstance(by, int) and by > 0:
                return _floor_divide(inner.numerator + by * sum(constants), by * denominator)
    return _bounded(SymDim(((((FloorDiv(numerator, denominator), 1),), 1),)))


def _monomial_text(monomial: Monomial) -> str:
    return "*".join("*".join([str(atom)] * power) for atom, power in monomial)


def _text_of(terms: tuple[tuple[Monomial, int], ...]) -> str:
    text = ""
    for monomial, coefficient in terms:
        body = _monomial_text(monomial)
        size = abs(coefficient)
        part = str(size) if not body else body if size == 1 else f"{size}*{body}"
        if not text:
            text = part if coefficient > 0 else f"-{part}"
        else:
            text += f" + {part}" if coefficient > 0 else f" - {part}"
    return text
