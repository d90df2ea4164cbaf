"""The table of converters of the layers of NeuralNetworks."""

from __future__ import annotations

from serde.converters import ConverterTable

__all__ = ["LAYERS"]

LAYERS = ConverterTable("coreml-layer")
"""Converters of layers, in the categories of :mod:`serde.relay.op`.

Importers go by layer. Exporters go by operator of MIL, which most layers are an older form of:
what is written in MIL's operators can be written in layers, too.
"""
