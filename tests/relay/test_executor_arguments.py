"""Arguments of another type than their parameter: which kinds of executors cast them, and when."""

from __future__ import annotations

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import SerdeError


def _run(kind: str, dtype: str, value: np.ndarray) -> np.ndarray:
    x = relay.var("x", shape=value.shape, dtype=dtype)
    mod = relay.IRModule.from_expr(relay.copy(x))
    return relay.create_executor(kind, mod=mod).evaluate()(value).numpy()


@pytest.mark.parametrize("kind", ["graph", "aot"])
@pytest.mark.parametrize(
    ("dtype", "values", "given"),
    [
        ("uint8", [0, 255, 9], "int64"),
        ("int8", [-128, 127], "int32"),
        ("float32", [0.5, 2.0], "float64"),
        ("float32", [1, 2, 3], "int64"),
        ("int32", [1.0, 2.0], "float32"),
        ("bool", [0, 1], "int8"),
        ("float16", [1 / 3], "float32"),
    ],
)
def test_casts_that_keep_numbers(kind: str, dtype: str, values: list[float], given: str) -> None:
    found = _run(kind, dtype, np.array(values, given))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array(values, given).astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "values", "given"),
    [("uint8", [256], "int64"), ("uint8", [-1], "int8"), ("int32", [0.5], "float32"),
     ("bool", [2], "int8"), ("float32", [2**24 + 1], "int64")],
)  # fmt: skip
def test_casts_that_change_numbers_are_refused(dtype: str, values: list[float], given: str) -> None:
    with pytest.raises(SerdeError, match="argument x: expected"):
        _run("graph", dtype, np.array(values, given))


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_other_executors_cast_nothing(kind: str) -> None:
    with pytest.raises(SerdeError, match="argument x: expected"):
        _run(kind, "uint8", np.array([1, 2], "int64"))
