"""How a check is made, and what it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from serde.core.records import dataclass

if TYPE_CHECKING:
    from serde.checking.data import CheckData

__all__ = ["CheckOptions", "Tolerance"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a check accepts; a part that is None follows from the dtype of the output.

    Attributes:
        atol: Absolute tolerance, in the unit of the output.
        rtol: Tolerance relative to each element of the source's output; for floats alone.
    """

    atol: float | None = None
    rtol: float | None = None

    @property
    def given(self) -> bool:
        """Whether the caller decides."""
        return self.atol is not None or self.rtol is not None


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How a conversion is to be checked.

    Attributes:
        runs: How many sets of inputs are drawn; 0 for no check.
        tolerance: What is accepted; by dtype if None.
        dims: Lengths of dynamic dimensions; found if None.
        data: Inputs of a user instead of drawn ones, which also ask for the check.
        yardstick: Whether what does not agree at once is measured by the exact result.
    """

    runs: int = 0
    tolerance: Tolerance | None = None
    dims: Mapping[str, int] | None = None
    data: CheckData | None = None
    yardstick: bool = True

    @property
    def is_asked(self) -> bool:
        """Whether a check is wanted."""
        return bool(self.runs) or self.data is not None
