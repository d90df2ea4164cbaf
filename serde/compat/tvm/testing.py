"""What scripts use of ``tvm.testing``."""

from __future__ import annotations

from functools import partial

import numpy as np

__all__ = ["assert_allclose"]

assert_allclose = partial(np.testing.assert_allclose, atol=1e-7)
