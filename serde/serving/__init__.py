"""Models put where inference servers find them: Triton's repositories, TorchServe's archives."""

from __future__ import annotations

from serde._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.serving.torchserve": "write_torchserve",
        "serde.serving.triton": "write_triton",
    },
)
