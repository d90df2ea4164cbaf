"""How much memory a process of its own has taken, for what the tools in it are told of."""

from __future__ import annotations

import sys

__all__ = ["peak_memory"]


def peak_memory() -> int:
    """Return the greatest memory that this process has had in bytes; 0 where it is not told."""
    try:
        import resource
    except ImportError:  # Windows.
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
