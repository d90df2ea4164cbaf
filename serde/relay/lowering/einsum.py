"""Einstein sums as products of stacks of matrices."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
from serde.errors import Unsupported
from serde.relay.ir import Constant, Dim, Expr, call, product, tensor_type
from serde.relay.lowering.lengths import permuted

__all__ = ["decompose_einsum"]


def decompose_einsum(data: tuple[Expr, ...], *, equation: str) -> Expr:
    """Operands join one after the other, each time as products of stacks of matrices."""
    terms, wanted = _parse_equation(equation, [len(tensor_type(x).shape) for x in data])
    pairs = [_diagonal(x, term) for x, term in zip(data, terms, strict=True)]
    pairs = _without_broadcast(pairs)
    data, terms = tuple(x for x, _ in pairs), [term for _, term in pairs]
    lengths: dict[str, Dim] = {}
    for term, x in zip(terms, data, strict=True):
        lengths |= dict(zip(term, tensor_type(x).shape, strict=True))
    found, axes = data[0], terms[0]
    for index, (term, x) in enumerate(zip(terms[1:], data[1:], strict=True), start=2):
        later = "".join(terms[index:]) + wanted
        found, axes = _contract(found, axes, x, term, later, lengths)
    gone = [axis for axis, letter in enumerate(axes) if letter not in wanted]
    if gone:
        found = call("sum", found, axis=tuple(gone))
        axes = "".join(letter for letter in axes if letter in wanted)
    return permuted(found, [axes.index(letter) for letter in wanted])


def _parse_equation(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, the dots as letters of their own."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    unused = [each for each in map(chr, range(0x3B1, 0x3CA)) if each not in equation]
    spans = [rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "." in term]
    dots = "".join(unused[: max(spans, default=0)])
    if not arrow:
        letters = given.replace(",", "").replace(".", "")
        wanted = "..." * bool(spans)
        wanted += "".join(sorted(each for each in set(letters) if letters.count(each) == 1))
    found = []
    for term, rank in zip(terms, ranks, strict=True):
        span = rank - len(term) + 3
        found.append(term.replace("...", dots[len(dots) - span :] if span else ""))
    return found, wanted.replace("...", dots)


def _diagonal(x: Expr, term: str) -> tuple[Expr, str]:
    """Return an operand with one axis for each letter: of two that are one, their diagonal."""
    while len(set(term)) < len(term):
        first = next(a for a, letter in enumerate(term) if letter in term[a + 1 :])
        second = term.index(term[first], first + 1)
        shape = tensor_type(x).shape
        length = shape[first]
        if not isinstance(length, int):
            raise Unsupported("a diagonal whose length is not fixed")
        kept = [a for a in range(len(term)) if a not in (first, second)]
        moved = permuted(x, [first, second, *kept])
        places = np.stack([allocation.positions(length)] * 2).astype(np.int32)
        x = call("gather_nd", moved, Constant(places), batch_dims=0)
        term = term[first] + "".join(term[a] for a in kept)
    return x, term


def _without_broadcast(pairs: list[tuple[Expr, str]]) -> list[tuple[Expr, str]]:
    """Return operands without the axes of one element that stand for longer ones of others."""
    lengths: dict[str, set[Dim]] = {}
    for x, term in pairs:
        for letter, dim in zip(term, tensor_type(x).shape, strict=True):
            lengths.setdefault(letter, set()).add(dim)
    found = []
    for x, term in pairs:
        shape = tensor_type(x).shape
        gone = [a for a, letter in enumerate(term) if shape[a] == 1 and len(lengths[letter]) > 1]
        kept = "".join(letter for a, letter in enumerate(term) if a not in gone)
        found.append((call("squeeze", x, axis=tuple(gone)) if gone else x, kept))
    return found


def _contract(
    x: Expr, left: str, y: Expr, right: str, later: str, lengths: dict[str, Dim]
) -> tuple[Expr, str]:
    """Return the sum of products of two operands over what nothing needs later, and its axes."""
    sides = []
    for value, term, other in ((x, left, right), (y, right, left)):
        alone = [a for a, letter in enumerate(term) if letter not in other and letter not in later]
        value = call("sum", value, axis=tuple(alone)) if alone else value
        sides.append((value, "".join(e for a, e in enumerate(term) if a not in alone)))
    (x, left), (y, right) = sides
    batch = [each for each in left if each in right and each in later]
    summed = [each for each in left if each in right and each not in later]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]

    def group_axes(value: Expr, term: str, *groups: list[str]) -> Expr:
        order = [term.index(letter) for group in groups for letter in group]
        dims = [product(lengths[letter] for letter in group) for group in groups]
        return call("reshape", permuted(value, order), newshape=tuple(dims))

    stacks = group_axes(x, left, batch, rows, summed), group_axes(y, right, batch, summed, columns)
    made = call("nn.batch_matmul", *stacks, transpose_b=False)
    kept = [*batch, *rows, *columns]
    shape = tuple(lengths[letter] for letter in kept)
    return call("reshape", made, newshape=shape), "".join(kept)
