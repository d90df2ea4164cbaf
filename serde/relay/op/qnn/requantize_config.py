"""How requantisation rounds and computes where the operator does not say so."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final, Literal

from serde.errors import RelayError

__all__ = ["RequantizeConfig", "current_requantize_config", "requantize_config"]

_ROUNDINGS: Final = ("UPWARD", "TONEAREST")
_COMPUTE_DTYPES: Final = ("int64", "float32", "float64")


@dataclass(frozen=True)
class RequantizeConfig:
    """Rounding and arithmetic of ``qnn.requantize``; ``with requantize_config(...): ...``.

    Each thread has configurations of its own.

    Args:
        rounding: Halves go up (``UPWARD``) or away from zero (``TONEAREST``).
        compute_dtype: ``int64`` for fixed-point arithmetic, ``float32`` or ``float64``.

    Raises:
        RelayError: One is another.
    """

    rounding: Literal["UPWARD", "TONEAREST"] = "UPWARD"
    compute_dtype: Literal["int64", "float32", "float64"] = "int64"

    def __post_init__(self) -> None:
        if self.rounding not in _ROUNDINGS:
            raise RelayError(f"rounding: expected {', '.join(_ROUNDINGS)}, found {self.rounding!r}")
        if self.compute_dtype not in _COMPUTE_DTYPES:
            wanted = ", ".join(_COMPUTE_DTYPES)
            raise RelayError(f"compute_dtype: expected {wanted}, found {self.compute_dtype!r}")

    def __enter__(self) -> RequantizeConfig:
        _ENTERED.stack.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _ENTERED.stack.pop()


class _Entered(threading.local):
    def __init__(self) -> None:
        self.stack: list[RequantizeConfig] = []


_ENTERED = _Entered()


def current_requantize_config() -> RequantizeConfig:
    """Return the innermost configuration of this thread, or the defaults."""
    return _ENTERED.stack[-1] if _ENTERED.stack else RequantizeConfig()


requantize_config = RequantizeConfig
