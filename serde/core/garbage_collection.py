"""Python's search for reference cycles, which costs more the larger a graph is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pause_garbage_collection"]


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Let Python not look for reference cycles while a block, or the function decorated, runs.

    Expressions refer to no one above them, so there are none to be found; but each search
    visits every node there is, and the more nodes are made, the more searches there are.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
