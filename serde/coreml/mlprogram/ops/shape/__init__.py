"""Shapes: joining, cutting, spreading, padding and arranging."""

from serde.coreml.mlprogram.ops.shape import (  # noqa: F401
    arrange,
    blocks,
    broadcast,
    create,
    join,
    matrix,
    pad,
    reshape,
    window,
)
