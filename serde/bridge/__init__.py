"""The contract of a format, and the table of formats: what no folder of a format may know."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.bridge.contract": "AnyBridge Bridge ReadOnlyBridge WriteOnlyBridge",
        "serde.bridge.formats": (
            "FORMATS PIVOT format_names get_bridge source_bridge target_bridge"
        ),
        "serde.bridge.options": "ExportOptions ImportOptions bind_options",
        "serde.bridge.summary": "ModelSummary ServedFile TensorNames TensorSummary",
    },
)
