"""The table of converters of the layers of NeuralNetworks, and what these work with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Final

from serde.coreml.mlprogram.operators import CORE, LAYER_KINDS
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.mlprogram.ops.table import emit_by_name
from serde.coreml.neuralnetwork.export_context import ExportContext as Export
from serde.coreml.neuralnetwork.import_context import ImportContext as Import
from serde.coreml.value import Value
from serde.coreml.versions import TARGETS
from serde.relay.ir.expr import Call
from serde.walk.converter import Converter
from serde.walk.table import ConverterTable

__all__ = ["DIRECT", "LAYERS", "DirectTable", "Export", "Import", "Value"]

HOME: Final = "serde.coreml.neuralnetwork.ops"

_OWN = frozenset({"acosh", "asinh", "broadcast", "broadcast_like", "global_pool", "trilu"})
"""What exporters emit that has a layer and is no operator of MIL."""

LAYERS = ConverterTable(
    "coreml-layer",
    changes=dict.fromkeys(LAYER_KINDS, (1,)),
    home=HOME,
    written=CORE | _OWN,
    targets={target.number for target in TARGETS.values()},
)
"""Converters of layers, in the categories of :mod:`serde.relay.op`.

Importers go by layer. Exporters go by operator of MIL, which most layers are an older form of:
what is written in MIL's operators can be written in layers, too.
"""


class DirectTable(ConverterTable):
    """Exporters of Relay's operators that have a layer and no operator of MIL, before MIL's own.

    Args:
        base: The exporters into MIL's operators.
    """

    def __init__(self, base: ConverterTable) -> None:
        super().__init__(
            "coreml-network", home=HOME, operands=("x", "y"), emit=emit_by_name, usual_layouts=True
        )
        self._base = base

    def can_export(self, node: Call, version: int) -> bool:
        """Whether a call can be written as it is."""
        return super().can_export(node, version) or self._base.can_export(node, version)

    def bind_export(self, node: Call, version: int) -> tuple[Converter, dict[str, AnyValue]]:
        """Find the exporter of a call and its keyword arguments."""
        if super().can_export(node, version):
            return super().bind_export(node, version)
        return self._base.bind_export(node, version)

    def expansion(self, name: str) -> Callable[..., AnyValue] | None:
        """Return what a Relay operator is made of where there is no layer for a call."""
        return self.own_expansion(name) or self._base.expansion(name)


DIRECT = DirectTable(TABLE)
"""Exporters of Relay's operators into those that :data:`LAYERS` makes layers of."""
