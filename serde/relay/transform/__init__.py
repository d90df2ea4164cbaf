"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Those below ``tvm`` do what TVM's passes of their names do, and no conversion runs them.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names
from serde.relay.transform.homes import HOMES

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"{__name__}.{module}": names for module, names in HOMES.items()}
)
