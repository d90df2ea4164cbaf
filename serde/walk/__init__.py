"""What every bridge shares: tables of converters, contexts, and both walks.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names
from serde.walk.homes import HOMES

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"{__name__}.{module}": names for module, names in HOMES.items()}
)
