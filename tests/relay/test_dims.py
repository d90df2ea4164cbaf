"""Arithmetic of symbolic dimensions stays small, whatever a model computes of its lengths."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from serde.core.limits import spending
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any, Dim, SymDim, as_dim, product, substitute, symbol

NAMES = [symbol(f"n{number}") for number in range(300)]


def folded(step: Callable[[Dim, SymDim], Dim]) -> list[Dim]:
    """Return the dimensions on the way when a step is taken with one symbol after the other."""
    found: list[Dim] = [NAMES[0]]
    for name in NAMES[1:]:
        found.append(step(found[-1], name))
    return found


GROWTH: dict[str, Callable[[Dim, SymDim], Dim]] = {
    "powers": lambda dim, _name: dim * dim,
    "coefficients": lambda dim, _name: dim * 2 * (dim * 2),
    "sums": lambda dim, name: dim + name,
    "products of sums": lambda dim, name: dim * (name + 1),
    "nested quotients": lambda dim, name: (dim + 1) // name,
    "nested products": lambda dim, name: (dim * dim + dim + 1) // name,
    "quotients by a number": lambda dim, _name: (dim * 3 + 1) // 2,
    "large divisors": lambda dim, _name: dim // 3,
}


@pytest.mark.parametrize("step", GROWTH.values(), ids=GROWTH)
def test_what_grows_becomes_anonymous(step: Callable[[Dim, SymDim], Dim]) -> None:
    dims = folded(step)
    assert dims[-1] == Any()
    assert isinstance(dims[3], SymDim)
    assert max(len(str(dim)) for dim in dims) < 5_000


def test_terms_are_as_many_as_the_limit_says() -> None:
    assert isinstance(sum(NAMES[:64], start=0), SymDim)
    assert sum(NAMES[:65], start=0) == Any()
    with spending({"terms": 65}):
        assert isinstance(sum(NAMES[:65], start=0), SymDim)


def test_what_models_compute_keeps_its_symbols() -> None:
    """Ten halvings, windows of seven and a product of both sides, as vision models have."""
    height, width = symbol("height"), symbol("width")
    sides = []
    for side in (height, width):
        for _ in range(10):
            side = (side + 2 - 3) // 2 + 1
        sides.append((side + 6) // 7 * 7)
    area = product(sides)
    assert isinstance(area, SymDim)
    assert substitute(area, {"height": 2048, "width": 1000}) == 7 * 7


def test_lengths_that_no_tensor_has_are_refused() -> None:
    assert as_dim(2**63 - 1) == 2**63 - 1
    for wrong in (-1, 2**63):
        with pytest.raises(TypeInferenceError, match="expected a dimension of"):
            as_dim(wrong)
