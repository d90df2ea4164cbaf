"""What scripts use of ``tvm.testing``."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

__all__ = ["assert_allclose"]


def assert_allclose(
    actual: AnyValue, desired: AnyValue, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raise AssertionError unless two arrays have one shape and nearly the same values."""
    assert np.shape(actual) == np.shape(desired), f"{np.shape(actual)}, {np.shape(desired)}"
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol)
