"""Sums of products that NNEF has no fragment for."""

from __future__ import annotations

from serde.nnef.ops.table import OPS
from serde.walk.expansion.einsum import expand_einsum

__all__: list[str] = []

OPS.expands("einsum")(expand_einsum)
