"""Why there are no sequences."""

from __future__ import annotations

from typing import Any as AnyValue, NoReturn

from serde.errors import Unsupported
from serde.relax.ops.table import OPS


@OPS.expands(
    "serde.sequence_at",
    "serde.sequence_concat",
    "serde.sequence_construct",
    "serde.sequence_empty",
    "serde.sequence_erase",
    "serde.sequence_insert",
    "serde.sequence_length",
    "serde.sequence_split",
)
def refuse_sequence(*_operands: AnyValue, **_attributes: AnyValue) -> NoReturn:
    raise Unsupported("Relax has no sequences of tensors that are known only when the model runs")
