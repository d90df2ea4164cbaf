"""What PyTorch tells on each use of TorchScript."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_deprecations"]


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Keep quiet that TorchScript is old, which users who have such a model know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)  # Of PyTorch 2.14 on.
        yield
