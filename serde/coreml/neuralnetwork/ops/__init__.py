"""Converters of the layers of NeuralNetworks, in the categories of :mod:`serde.relay.op`.

The tables load the modules, by ``index.json``.
"""

from __future__ import annotations

from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS

__all__ = ["DIRECT", "LAYERS"]
