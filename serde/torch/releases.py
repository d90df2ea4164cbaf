"""What differs between releases of PyTorch."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from serde.core.optional import require

__all__ = ["NEWEST", "release_notes", "without_deprecations"]

NEWEST: Final = (2, 14)
"""The newest release that was tried."""


def release_notes() -> list[str]:
    """Return what a report says of a release that is newer than those that were tried."""
    version = str(require("torch").__version__)
    if tuple(int(each) for each in re.findall(r"\d+", version)[:2]) <= NEWEST:
        return []
    newest = ".".join(map(str, NEWEST))
    return [f"PyTorch {version} is newer than {newest}, the newest that was tried"]


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Keep quiet that TorchScript is old, which users who have such a model know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)  # Of PyTorch 2.14 on.
        yield
