"""Relay's data model: types, expressions, modules, and what reads them.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names
from serde.relay.ir.homes import HOMES

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"{__name__}.{module}": names for module, names in HOMES.items()}
)
