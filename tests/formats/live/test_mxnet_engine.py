"""MXNet as what runs a model in a check: what it says when it fails, and lengths of 0 inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.compat import import_mxnet
from serde.engine.base import first_line
from serde.mxnet.engine import MxnetEngine, MxnetProgram

DATA = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def mx() -> Any:
    return import_mxnet()


def engine(mx: Any, symbol: Any) -> MxnetEngine:
    return MxnetEngine(mx, MxnetProgram(symbol.tojson(), {}, {}, {"x": "float32"}, ("y",), False))


def test_a_length_of_0_inside_is_run_with_the_shapes_of_numpy(mx: Any) -> None:
    x = mx.sym.var("x")
    symbol = mx.sym.concat(mx.sym.zeros((0, 3)), x + 1, dim=0)
    np.testing.assert_array_equal(engine(mx, symbol).run({"x": DATA})[0], DATA + 1)


def test_what_fails_either_way_tells_the_first_error(mx: Any) -> None:
    symbol = mx.sym.dot(mx.sym.var("x"), mx.sym.var("x"))
    with pytest.raises(mx.MXNetError) as caught:
        engine(mx, symbol).run({"x": DATA})
    assert "dot shape error: [2,3] X [2,3]" in first_line(caught.value)


def test_the_message_stands_behind_the_traceback(mx: Any) -> None:
    with pytest.raises(mx.MXNetError) as caught:
        mx.sym.Custom(mx.sym.var("x"), op_type="nothing")
    assert "Traceback" in str(caught.value)
    said = first_line(caught.value)
    assert said.startswith("MXNetError: Check failed")
    assert said.endswith("Cannot find custom operator nothing")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Traceback (most recent call last):\n  File a, line 1\nValueError: x > 2\nmore", "x > 2"),
        ("ValueError: Traceback (most recent call last):\n  File a\n  File b\nx > 2", "x > 2"),
        ("x > 2\nTraceback (most recent call last):\n  File a", "x > 2"),
        ("Traceback (most recent call last):\n  File a", "Traceback (most recent call last)"),
        ("", ""),
    ],
)
def test_first_lines(message: str, expected: str) -> None:
    assert first_line(ValueError(message)) == f"ValueError: {expected}".rstrip(": ")
