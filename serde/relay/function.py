"""Functions, where ``tvm.relay.function`` has them."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"serde.relay.ir.copies": "FunctionWithFields", "serde.relay.ir.expr": "Function"}
)
