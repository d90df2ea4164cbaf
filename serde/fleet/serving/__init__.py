"""Models put where inference servers find them: Triton's repositories, TorchServe's archives."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.fleet.serving.torchserve": "write_torchserve",
        "serde.fleet.serving.triton": "write_triton",
    },
)
