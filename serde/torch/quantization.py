"""What integers of quantised tensors stand for, and packed parameters of layers, taken apart."""

from __future__ import annotations

from typing import Final

from serde.core.records import dataclass
from serde.relay.ir.expr import Expr

__all__ = ["COPIES", "INTEGERS", "UNCHANGED", "PackedCell", "PackedParams", "Quantization"]

INTEGERS: Final = ("int8", "uint8", "int32")
"""What quantised numbers are stored as."""

COPIES: Final = frozenset(
    f"aten::{name}" for name in ("alias", "clone", "contiguous", "detach", "lift_fresh_copy")
)
"""Operators that leave every element where it is."""

UNCHANGED: Final = frozenset(
    f"aten::{name}"
    for name in (
        "_reshape_alias", "_unsafe_view", "alias", "channel_shuffle", "chunk", "clone",
        "contiguous", "detach", "expand", "expand_as", "flatten", "flip", "index_select",
        "lift_fresh_copy", "max_pool1d", "max_pool2d", "max_pool3d", "movedim", "narrow",
        "numpy_T", "permute", "pixel_shuffle", "pixel_unshuffle", "quantized_max_pool1d",
        "quantized_max_pool2d", "quantized_max_pool3d", "reflection_pad1d", "reflection_pad2d",
        "reflection_pad3d", "repeat", "replication_pad1d", "replication_pad2d",
        "replication_pad3d", "reshape", "select", "slice",
        "split", "split_with_sizes", "squeeze", "swapaxes", "swapdims", "t", "transpose",
        "unflatten", "unsqueeze", "upsample_nearest1d", "upsample_nearest2d",
        "upsample_nearest3d", "view", "view_as", "reshape_as", "max", "min", "amax", "amin",
        "sort", "topk", "gather", "unbind", "unfold",
    )
)  # fmt: skip
"""Operators that choose among elements: of integers as of what they stand for, one scale given."""


@dataclass(frozen=True, eq=False)
class Quantization:
    """The parameters of a quantised tensor: ``real = (integer - zero_point) * scale``.

    Attributes:
        scale: A number, or one for each channel.
        zero_point: Likewise.
        axis: Along which the channels lie; None for one scale.
    """

    scale: float | Expr
    zero_point: int | Expr
    axis: int | None = None


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
