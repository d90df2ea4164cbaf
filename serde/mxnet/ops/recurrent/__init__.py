"""Recurrent layers, and MXNet's stack of them."""

from __future__ import annotations

from serde.mxnet.ops.recurrent import ctc, hawkes, layers
from serde.mxnet.ops.recurrent.stack import MergeStacks

__all__ = ["MergeStacks", "ctc", "hawkes", "layers"]
