"""What TorchScript computes beside tensors, known and unknown, against Python itself."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.runtime import open_session  # noqa: E402
from support.torch_numbers import LISTS, NUMBERS  # noqa: E402

import serde  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.relay.ir.model import RelayModel  # noqa: E402

VALUES = [
    (7, 2, 1.5, -0.25),
    (-7, 2, -1.5, 0.75),
    (7, -3, 2.5, 3.0),
    (-8, -3, -2.5, -1.25),
    (2, 7, 0.5, 0.5),
    (3, 3, -0.5, 2.0),
]
NAMES = ("a", "b", "x", "y")


def script(function: Callable[..., Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(function)


@functools.cache
def model(index: int) -> RelayModel:
    return serde.to_relay(script(NUMBERS[index]), input_shapes=dict.fromkeys(NAMES, ()))


@functools.cache
def session(index: int) -> Any:
    return open_session(serde.from_relay(model(index), format="onnx").SerializeToString())


def feed(index: int, values: tuple[Any, ...]) -> dict[str, np.ndarray]:
    kinds = (np.int64, np.int64, np.float64, np.float64)
    return {n: np.array(v, k) for n, v, k in zip(NAMES, values, kinds, strict=True)}


def compare(found: list[np.ndarray], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == ()
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("index", range(len(NUMBERS)), ids=lambda i: NUMBERS[i].__name__)
def test_numbers_that_are_computed(index: int, values: tuple[Any, ...]) -> None:
    found = RelayEngine(model(index)).run(feed(index, values))
    compare(found, NUMBERS[index](*values))


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("index", range(len(NUMBERS)), ids=lambda i: NUMBERS[i].__name__)
def test_numbers_that_are_computed_by_onnx_runtime(index: int, values: tuple[Any, ...]) -> None:
    opened = session(index)
    known = {each.name for each in opened.get_inputs()}
    given = {key: value for key, value in feed(index, values).items() if key in known}
    compare(opened.run(None, given), NUMBERS[index](*values))


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("index", range(len(NUMBERS)), ids=lambda i: NUMBERS[i].__name__)
def test_numbers_that_are_known(index: int, values: tuple[Any, ...]) -> None:
    class Known(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.x, self.y = values
            self.function = script(NUMBERS[index])

        def forward(self):
            return self.function(self.a, self.b, self.x, self.y)

    found = serde.to_relay(script(Known()))
    assert not found.meta.inputs
    compare(RelayEngine(found).run({}), NUMBERS[index](*values))


@pytest.mark.parametrize("function", LISTS, ids=lambda each: each.__name__)
def test_lists_dicts_and_texts(function: Callable[[], list[int]]) -> None:
    found = serde.to_relay(script(function))
    assert [int(each) for each in RelayEngine(found).run({})] == function()
