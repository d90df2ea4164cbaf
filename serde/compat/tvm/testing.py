"""What scripts use of ``tvm.testing``."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.compat.tvm.runtime import Device, cpu

__all__ = ["assert_allclose", "enabled_targets"]


def assert_allclose(
    actual: AnyValue, desired: AnyValue, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raise an AssertionError where arrays differ."""
    np.testing.assert_allclose(actual, desired, rtol, atol)


def enabled_targets() -> list[tuple[str, Device]]:
    """Return names of targets with their devices: the CPU's, where everything runs."""
    return [("llvm", cpu(0))]
