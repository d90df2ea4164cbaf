"""ONNX as a target: the function that partitions a module for it, under TVM's kind of path."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"serde.target.partition": "partition_for_onnx"}
)
