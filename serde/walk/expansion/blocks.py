"""Blocks of pixels moved into channels or samples, and back, as plain moves."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType

__all__ = [
    "expand_depth_to_space",
    "expand_space_to_depth",
    "named_dims",
]


def named_dims(x: Expr) -> tuple[Dim, ...]:
    """Return the lengths of a tensor, of which at most one has no name.

    Raises:
        Unsupported: More have none.
    """
    type_ = x.checked_type
    if not isinstance(type_, TensorType) or any(isinstance(dim, Any) for dim in type_.shape):
        raise Unsupported(f"blocks of {type_!r}, whose lengths have no names")
    return type_.shape


def expand_depth_to_space(
    data: Expr, *, block_size: int, layout: str, mode: Literal["DCR", "CRD", ""]
) -> Expr:
    """Channels come first around it; integers are moved in plain steps."""
    if layout != "NCHW":
        planar = relay.transpose(data, axes=[layout.index(letter) for letter in "NCHW"])
        found = relay.nn.depth_to_space(planar, block_size, layout="NCHW", mode=mode)
        return relay.transpose(found, axes=["NCHW".index(letter) for letter in layout])
    n, c, h, w = named_dims(data)
    b, channels = block_size, c // (block_size * block_size)
    if mode == "CRD":
        parts = relay.reshape(data, [n, channels, b, b, h, w])
        moved = relay.transpose(parts, axes=[0, 1, 4, 2, 5, 3])
    else:
        parts = relay.reshape(data, [n, b, b, channels, h, w])
        moved = relay.transpose(parts, axes=[0, 3, 4, 1, 5, 2])
    return relay.reshape(moved, [n, channels, h * b, w * b])


def expand_space_to_depth(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    """Channels come first around it; integers are moved in plain steps."""
    if layout != "NCHW":
        planar = relay.transpose(data, axes=[layout.index(letter) for letter in "NCHW"])
        found = relay.nn.space_to_depth(planar, block_size, layout="NCHW")
        return relay.transpose(found, axes=["NCHW".index(letter) for letter in layout])
    n, c, h, w = named_dims(data)
    b = block_size
    parts = relay.reshape(data, [n, c, h // b, b, w // b, b])
    moved = relay.transpose(parts, axes=[0, 3, 5, 1, 2, 4])
    return relay.reshape(moved, [n, c * b * b, h // b, w // b])
