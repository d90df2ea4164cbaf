"""What padding is made of where a target lacks it: NumPy's values, and lengths with their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.registry import call
from serde.relay.lowering.shape import continued
from serde.relay.transform.decompose import decompose

N, M = relay.symbol("n"), relay.symbol("m")
SHAPES = [(3, 4), (N, 4), (N, M), (relay.Any(), 4), (relay.Any(), relay.Any())]
WIDTHS = ((2, 1), (0, 3))
DATA = np.arange(12, dtype="float32").reshape(3, 4)


def evaluate(x: relay.Var, body: Any) -> Any:
    return relay.create_executor().evaluate(relay.Function([x], body))(DATA).numpy()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_borders_are_numpys_and_lengths_keep_their_names(mode: str, shape: Any) -> None:
    x = relay.var("x", relay.TensorType(shape, "float32"))
    if mode == "constant":
        padded = call("nn.pad", x, relay.const(1.5), pad_width=WIDTHS)
        found, expected = decompose(padded), np.pad(DATA, WIDTHS, constant_values=1.5)
    else:
        found, expected = continued(x, WIDTHS, mode), np.pad(DATA, WIDTHS, mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(evaluate(x, found), expected)
    same = call("nn.pad", x, relay.const(1.5), pad_width=WIDTHS)
    assert found.type == same.type


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_negative_widths_take_away_is_cut(shape: Any) -> None:
    x = relay.var("x", relay.TensorType(shape, "float32"))
    found = decompose(call("nn.pad", x, relay.const(0.5), pad_width=((-1, 2), (0, -2))))
    expected = np.pad(DATA[1:, :2], ((0, 2), (0, 0)), constant_values=0.5)
    np.testing.assert_array_equal(evaluate(x, found), expected)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_an_empty_axis_is_padded(dtype: str) -> None:
    data = np.zeros((3, 0), dtype)
    x = relay.var("x", relay.TensorType((N, 0), dtype))
    padded = call("nn.pad", x, relay.const(1, dtype), pad_width=WIDTHS)
    found = decompose(padded)
    assert found.type == padded.type
    result = relay.create_executor().evaluate(relay.Function([x], found))(data).numpy()
    np.testing.assert_array_equal(result, np.pad(data, WIDTHS, constant_values=1))
