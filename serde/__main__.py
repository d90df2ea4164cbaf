"""``python -m serde`` and the script ``serde``: the command line."""

from __future__ import annotations

import gc
import signal
from typing import Final

__all__ = ["main"]

_OBJECTS_BETWEEN_SEARCHES: Final = 50_000
"""New objects after which reference cycles are looked for: most are modules and nodes, and stay."""


def main() -> int:
    """Run the command line; an interrupt while it is imported ends the process without a word."""
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES)
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from serde.command.cli import main as run
    finally:
        signal.signal(signal.SIGINT, before)
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
