"""Algebraic data types, where ``tvm.relay.adt`` has them."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.ir.adt": (
            "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar "
            "PatternWildcard TypeData"
        )
    },
)
