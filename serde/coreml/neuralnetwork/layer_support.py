"""Calls of Relay that MIL says in one operator and layers do not: they are decomposed."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.image.resize import sampling_of
from serde.relay.ir import Call, OpDef, TensorType

__all__ = ["has_layers"]

WITHOUT = frozenset(
    {"image.grid_sample", "nn.batch_to_space_nd", "nn.space_to_batch_nd", "serde.grid_sample"}
)
"""Operators that no layers say."""

BOUNDED = frozenset({"hard_sigmoid", "sigmoid", "tanh"})
"""Functions that a layer's bound on what they are applied to does not change."""

RECURRENT = frozenset({"serde.gru", "serde.lstm", "serde.rnn"})
RESIZES = frozenset({"image.resize1d", "image.resize2d"})


def has_layers(node: Call, target: int) -> bool:
    """Whether layers of a target say what one operator of MIL does.

    Args:
        node: A call of an operator of Relay that MIL has.
        target: Version of iOS.
    """
    name = node.op.name if isinstance(node.op, OpDef) else ""
    if name in RECURRENT:
        return set(node.attrs["activations"]) <= BOUNDED
    if name in RESIZES:
        return _resizes(node, target)
    if name == "nn.depth_to_space":
        return node.attrs["mode"] != "CRD" or target >= 14
    return name not in WITHOUT


def _resizes(node: Call, target: int) -> bool:
    """Whether a layer reads an image at the same places."""
    type_, result = node.args[0].type, node.type
    if not isinstance(type_, TensorType) or not isinstance(result, TensorType):
        return False
    sampling = sampling_of(type_, node.attrs)
    if sampling not in ("centres", "corners", "UNALIGN_CORNERS"):
        return sampling is not None
    pairs = list(zip(type_.shape[2:], result.shape[2:], strict=True))
    whole = all(
        isinstance(before, int) and isinstance(after, int) and after % before == 0
        for before, after in pairs
    )
    if sampling == "UNALIGN_CORNERS":
        return whole and target >= 14
    return sampling == "corners" and (whole or target >= 14)
