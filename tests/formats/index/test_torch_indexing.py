"""Advanced indexing of PyTorch: reading, writing and accumulating, masks and gaps among indices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.torch_functions import assert_equal_results, flatten, run, sequences, trace  # noqa: E402

SHAPE = (4, 3, 5, 2)
(X,) = sequences(SHAPE)

KINDS = ("none", "scalar", "vector", "column", "negative", "mask")


def index_of(kind: str, length: int) -> Any:
    """Return an index of an axis, of a shape that broadcasts with the others."""
    values = {
        "none": None,
        "scalar": torch.tensor(length - 1),
        "vector": torch.tensor([0, length - 1, 1]),
        "column": torch.tensor([[1], [0]]),
        "negative": torch.tensor([-1, 0, -length]),
        "mask": torch.tensor([place != 1 for place in range(length)][:length]),
    }
    return values[kind]


def fits(kinds: Sequence[str]) -> bool:
    """Whether indices broadcast: a mask marks 3 of 4, 2 of 3, 4 of 5 or 1 of 2."""
    counts = [3 if each in ("vector", "negative") else 1 for each in kinds]
    masks = [length - 1 for each, length in zip(kinds, SHAPE, strict=False) if each == "mask"]
    return len({each for each in (*counts, *masks) if each > 1}) < 2 and set(kinds) != {"none"}


PATTERNS = [
    kinds
    for rank in (1, 2, 3, 4)
    for kinds in itertools.product(KINDS, repeat=rank)
    if fits(kinds) and kinds[-1] != "none"
]
READ = PATTERNS[:: len(PATTERNS) // 60]
WRITTEN = PATTERNS[5 :: len(PATTERNS) // 60]


def indices_of(kinds: Sequence[str]) -> list[Any]:
    return [index_of(kind, length) for kind, length in zip(kinds, SHAPE, strict=False)]


def cases(patterns: Sequence[Sequence[str]]) -> list[Any]:
    return [
        pytest.param(each, id="-".join(each), marks=[pytest.mark.wide] if place % 6 else [])
        for place, each in enumerate(patterns)
    ]


@pytest.mark.parametrize("kinds", cases(READ))
@pytest.mark.parametrize("known", [True, False])
def test_reading(kinds: Sequence[str], known: bool) -> None:
    """Indices are constants of the program, or come when it runs."""
    indices = indices_of(kinds)
    given = [each for each in indices if each is not None]

    def constant(x):
        return torch.ops.aten.index(x, indices)

    def computed(x, *tensors):
        rest = iter(tensors)
        return torch.ops.aten.index(x, [None if each is None else next(rest) for each in indices])

    function, tensors = (constant, [X]) if known else (computed, [X, *given])
    assert_equal_results(trace(function, *tensors), function, *tensors)


@pytest.mark.parametrize("kinds", cases(WRITTEN))
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("spread", [False, True])
def test_writing(kinds: Sequence[str], accumulate: bool, spread: bool) -> None:
    """Values for each place, or one for all of them."""
    indices = indices_of(kinds)
    shape = () if spread else tuple(torch.ops.aten.index(X, indices).shape)
    (values,) = sequences(shape)

    def write(x, values):
        return torch.ops.aten.index_put(x, indices, values, accumulate)

    assert_equal_results(trace(write, X, values), write, X, values)


MASKS = {
    "whole": lambda x: x[x > 0],
    "two axes": lambda x: x[x[:, :, 0, 0] > 0],
    "in the middle": lambda x: x[:, x[0, :, :, 0] > 0],
    "with an index": lambda x: x[torch.tensor([True, False, True, False]), :, torch.tensor([1, 4])],
    "beside a mask": lambda x: x[
        torch.tensor([True, False, True, False]), torch.tensor([True, True, False])
    ],
    "no element": lambda x: x[x > 100],
    "assigned": lambda x: x.masked_fill(x > 0, 0).index_put((x > 1,), torch.tensor(7.0)),
    "assigned rows": lambda x: x.index_put((x[:, 0, 0, 0] > 0,), torch.ones(3, 5, 2)),
    "added": lambda x: x.index_put((x > 0,), torch.tensor(7.0), accumulate=True),
}


@pytest.mark.parametrize("function", MASKS.values(), ids=MASKS)
def test_masks(function: Any) -> None:
    assert_equal_results(trace(function, X), function, X)


ORDERS = {
    "sort": lambda x, axis: torch.sort(x, axis),
    "sort descending": lambda x, axis: torch.sort(x, axis, descending=True),
    "topk": lambda x, axis: torch.topk(x, 2, axis),
    "topk smallest": lambda x, axis: torch.topk(x, 2, axis, largest=False),
}


@pytest.mark.parametrize("function", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "int16", "float32"])
def test_order_of_equal_elements(function: Any, axis: int, dtype: str) -> None:
    """Which of equal elements comes first is open; its place has an element that is equal."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(0, 4, (5, 6), generator=generator).to(getattr(torch, dtype))

    def call(x):
        return tuple(function(x, axis))

    expected = flatten(call(x))[0].numpy()
    values, places = run(trace(call, x), x)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(np.take_along_axis(x.numpy(), places, axis), expected)
    for line in np.moveaxis(places, axis, 0).reshape(places.shape[axis], -1).T:
        assert len(set(line.tolist())) == len(line)
