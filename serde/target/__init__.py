"""ONNX as a target of Relay: what a toolchain takes, the parts that go to it, and their run."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.onnx.profile": "SupportedOperators profile_names read_supported",
        "serde.target.hybrid": "HostEngine HybridExecutor",
        "serde.target.module": "OnnxModule",
        "serde.target.onnx": "onnx",
        "serde.target.partition": "Partition partition_for_onnx partition_model",
        "serde.target.regions": "RegionModule register_runner runner_names",
    },
)
