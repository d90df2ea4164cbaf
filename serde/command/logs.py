"""What the library logs, shown on stderr where ``-v`` or ``--log-level`` asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["LogLines"]


class LogLines(logging.Handler):
    """Prints what is logged under the name ``serde``, a line a record.

    Args:
        write: Prints a line.
        skip_stages: Whether the beginnings and ends of stages are left out, which the terminal
            shows by itself.
    """

    def __init__(self, write: Callable[[str], object], *, skip_stages: bool) -> None:
        super().__init__()
        self._write = write
        self._skip_stages = skip_stages
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        if not (self._skip_stages and hasattr(record, "stage")):
            self._write(self.format(record))

    @contextmanager
    def attached(self, level: str) -> Iterator[None]:
        """Print during the body of a ``with`` statement what is logged at a level and above."""
        logger = logging.getLogger("serde")
        before = logger.level
        logger.addHandler(self)
        logger.setLevel(level.upper())
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before)
