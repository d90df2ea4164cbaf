"""The ground, which knows no format and no graph: weights, limits, reports, texts, the system.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from __future__ import annotations

from serde.core.homes import HOMES
from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"{__name__}.{module}": names for module, names in HOMES.items()}
)
