"""The table of converters of Relax, both directions, and what these work with.

Importers have the names of operators (``relax.nn.relu``): their operands are positional, the
attributes of the call are keywords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Final, get_args

from serde.relax.export_context import ExportContext as Export, Value
from serde.relax.import_context import ImportContext as Import
from serde.relax.lengths import Scalar, Shape
from serde.walk.table import ConverterTable

__all__ = ["OPS", "Export", "Import", "Scalar", "Shape", "Value"]

_OWN: Final = {Shape, Scalar}
"""Annotations that are classes of ours: arguments of calls, which may be anything."""


def _decode(raw: AnyValue, hint: AnyValue) -> AnyValue:
    """Return an argument as it is."""
    hints = get_args(hint) or (hint,)
    classes = tuple(each for each in hints if isinstance(each, type))
    if _OWN.isdisjoint(hints) or isinstance(raw, classes):
        return raw
    several = raw if isinstance(raw, tuple) else [raw] if Scalar in hints else [None]
    if not all(isinstance(each, (bool, int, float, Scalar)) for each in several):
        raise TypeError
    return raw


def _emit(
    ctx: AnyValue, op: str, operands: Mapping[str, AnyValue], attributes: Mapping[str, AnyValue]
) -> AnyValue:
    """Write the call of a pair, which has the name of what is read."""
    return ctx.emit(op.removeprefix("relax."), *operands.values(), **attributes)


OPS = ConverterTable(
    "relax", decode=_decode, home="serde.relax.ops", emit=_emit, usual_layouts=True
)
