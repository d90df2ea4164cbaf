"""What is registered for targets that run parts of a program, and those that there are."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.op.contrib.onnx": "onnx",
        "serde.relay.op.contrib.register": (
            "get_pattern_table register register_pattern_table register_region_optimizer"
        ),
    },
)
