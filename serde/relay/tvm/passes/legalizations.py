"""What TVM registers as ``FTVMLegalize`` for every target.

Source: the functions registered under that name in TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

from serde.relay.ir import Call, Expr, OpDef, TensorType, Type, limits, registration

__all__ = ["register_legalize"]

register_legalize = registration("FTVMLegalize")


def legalize_clip(
    attrs: Mapping[str, AnyValue], inputs: list[Expr], types: list[Type | None]
) -> Expr | None:
    """Leave out a clip of requantised numbers to the range of their type."""
    data, type_ = inputs[0], types[0]
    if not isinstance(data, Call) or not isinstance(data.op, OpDef):
        return None
    if data.op.name != "qnn.requantize" or not isinstance(type_, TensorType):
        return None
    info = limits(type_.dtype)
    return data if (info.min, info.max) == (attrs["a_min"], attrs["a_max"]) else None


register_legalize("clip", legalize_clip)
