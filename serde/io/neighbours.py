"""What else there is beside a file that was fetched, or taken out of an archive, alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Neighbours"]


class Neighbours(Protocol):
    """Files beside one that was fetched from where they all lie."""

    def names(self, start: str) -> Sequence[str]:
        """Return the names of files beside it that begin with `start`.

        Raises:
            StoreError: They cannot be listed.
        """

    def has(self, name: str) -> bool:
        """Whether there is a file of this name, relative to the folder."""
