"""Converters of the layers of NeuralNetworks; importing this package fills the table."""

from __future__ import annotations

import importlib
import pkgutil

from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS

__all__ = ["DIRECT", "LAYERS"]

for _module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
