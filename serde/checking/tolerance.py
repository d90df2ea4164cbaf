"""What a check accepts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tolerance"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a check accepts; a part that is None follows from the dtype of the output.

    Attributes:
        atol: Absolute tolerance, in the unit of the output.
        rtol: Tolerance relative to each element of the source's output.
    """

    atol: float | None = None
    rtol: float | None = None

    @property
    def given(self) -> bool:
        """Whether the caller decides."""
        return self.atol is not None or self.rtol is not None
