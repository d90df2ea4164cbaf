"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Passes of TVM that no conversion runs have their names here, and stand in ``relay/tvm``.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names
from serde.relay.transform.homes import HOMES

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"serde.relay.{module}": names for module, names in HOMES.items()}
)
