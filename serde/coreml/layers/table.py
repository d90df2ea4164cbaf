"""The table of converters of the layers of NeuralNetworks."""

from __future__ import annotations

from serde.converters import ConverterTable

__all__ = ["LAYERS"]

LAYERS = ConverterTable("coreml-layer")
"""Converters of layers, in the categories of :mod:`serde.relay.op`."""
