"""Passes: transformations of modules that keep their meaning."""

from __future__ import annotations

from serde.relay.transform.base import FunctionPass, Pass, Sequential
from serde.relay.transform.infer_type import InferType

__all__ = ["FunctionPass", "InferType", "Pass", "Sequential"]
