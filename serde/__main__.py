"""``python -m serde`` and the script ``serde``: the command line."""

from __future__ import annotations

import signal
from typing import NoReturn

__all__ = ["main", "run"]


def main() -> int:
    """Run the command line; an interrupt while it is imported ends the process without a word."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from serde.command.cli import main as run_command
    finally:
        signal.signal(signal.SIGINT, before)
    return run_command()


def run() -> NoReturn:
    """Run the command line and end the process; what it holds in memory the system takes back.

    Python would count down the references to each object first, a tenth of the time of a small
    conversion. It does so where threads or a profiler are left.
    """
    import atexit
    import os
    import sys
    import threading

    code = main()
    is_watched = sys.getprofile() is not None or sys.gettrace() is not None
    if threading.active_count() == 1 and not is_watched:
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            raise SystemExit(code) from None
        os._exit(code)
    raise SystemExit(code)


if __name__ == "__main__":
    run()
