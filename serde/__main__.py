"""``python -m serde`` and the script ``serde``: the command line."""

from __future__ import annotations

import signal

__all__ = ["main"]


def main() -> int:
    """Run the command line; an interrupt while it is imported ends the process without a word."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from serde.command.cli import main as run
    finally:
        signal.signal(signal.SIGINT, before)
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
