"""Packed parameters of quantised layers, taken apart."""

from __future__ import annotations

from serde.core.records import dataclass
from serde.relay.ir.expr import Expr

__all__ = ["PackedCell", "PackedParams"]


@dataclass(frozen=True, eq=False)
class PackedParams:
    """What a quantised layer of PyTorch packs into one object.

    Attributes:
        kind: ``"linear"``, ``"conv2d"`` (which one-dimensional convolutions use, too, with a
            second axis of length 1 in front), ``"conv3d"`` or ``"embedding"``.
        weight: Integers; floats where the layer is of float16.
        bias: Floats, if there are any.
        scale: Of the weight, or of each of its channels.
        zero_point: Likewise.
        axis: Along which the channels lie; None for one scale.
        stride: Of a convolution, like all that follows.
        padding: Likewise.
        output_padding: Likewise.
        dilation: Likewise.
        groups: Likewise.
        transpose: Whether it is a transposed convolution.
    """

    kind: str
    weight: Expr
    bias: Expr | None = None
    scale: float | Expr | None = None
    zero_point: int | Expr | None = None
    axis: int | None = None
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    output_padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    transpose: bool = False


@dataclass(frozen=True, eq=False)
class PackedCell:
    """One direction of one recurrent layer that is quantised dynamically.

    Attributes:
        layers: The dense layers of input and state.
        biases: Their biases.
        reduce_range: Whether data are quantised to seven bits.
    """

    layers: tuple[PackedParams, ...]
    biases: tuple[Expr, ...]
    reduce_range: bool
