"""What scripts use of ``tvm.testing``."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.compat.tvm.runtime import Device, cpu

__all__ = ["assert_allclose", "enabled_targets"]


def assert_allclose(
    actual: AnyValue, desired: AnyValue, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raise unless two arrays have one shape and nearly the same values.

    Raises:
        AssertionError: They differ.
    """
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    assert actual.shape == desired.shape, f"shapes {actual.shape} and {desired.shape}"
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def enabled_targets() -> list[tuple[str, Device]]:
    """Return the targets that programs run for: the CPU."""
    return [("llvm", cpu(0))]
