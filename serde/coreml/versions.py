"""Versions of Core ML: deployment targets, specification versions and operator sets.

Source: coremltools 9.0, ``_SPECIFICATION_VERSION_*`` and the registry of MIL's operators.
"""

from __future__ import annotations

from types import MappingProxyType

from serde.core.records import dataclass

__all__ = ["BY_OPSET", "CHANGES", "NEWEST_SPECIFICATION", "TARGETS", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment target.

    Attributes:
        number: Version of iOS; the other systems of the year go by it too.
        specification: Version of the specification that it brought.
        opset: Operator set of its ML Programs; None before there were any.
    """

    number: int
    specification: int
    opset: str | None

    @property
    def name(self) -> str:
        """Its name, such as ``iOS15``."""
        return f"iOS{self.number}"


TARGETS = MappingProxyType(
    {
        target.name: target
        for target in (
            Target(11, 1, None),
            Target(12, 3, None),
            Target(13, 4, None),
            Target(14, 5, None),
            Target(15, 6, "CoreML5"),
            Target(16, 7, "CoreML6"),
            Target(17, 8, "CoreML7"),
            Target(18, 9, "CoreML8"),
            Target(26, 10, "CoreML9"),
        )
    }
)
"""Deployment targets by name, oldest first."""

BY_OPSET = MappingProxyType({each.opset: each for each in TARGETS.values() if each.opset})
"""Deployment targets by the operator set of their ML Programs."""

NEWEST_SPECIFICATION = max(target.specification for target in TARGETS.values())
"""Newest version of the specification that is read."""

_NEW = {
    16: (
        "constexpr_affine_dequantize constexpr_cast constexpr_lut_to_dense "
        "constexpr_sparse_to_dense fill_like pixel_unshuffle reshape_like"
    ),
    17: "dequantize quantize resize",
    18: (
        "constexpr_blockwise_shift_scale constexpr_lut_to_sparse "
        "constexpr_sparse_blockwise_shift_scale read_state scaled_dot_product_attention "
        "slice_update write_state"
    ),
}
"""Operators of MIL that came after iOS15, by the version of iOS."""

_CHANGED = {
    16: "crop_resize gather gather_along_axis gather_nd resample topk upsample_bilinear",
    17: (
        "batch_norm cast clamped_relu clip conv conv_transpose crop_resize elu expand_dims gather "
        "gather_along_axis gather_nd gru instance_norm inverse l2_norm layer_norm leaky_relu "
        "linear linear_activation local_response_norm log lstm matmul non_maximum_suppression "
        "prelu reduce_argmax reduce_argmin resample reshape reshape_like reverse "
        "reverse_sequence rnn rsqrt scaled_tanh scatter scatter_along_axis scatter_nd "
        "sigmoid_hard slice_by_index slice_by_size sliding_windows softplus_parametric squeeze "
        "thresholded_relu topk transpose"
    ),
    18: "constexpr_cast constexpr_lut_to_dense constexpr_sparse_to_dense gru",
}
"""Operators of MIL that were declared anew later, by the version of iOS."""


def _changes() -> dict[str, tuple[int, ...]]:
    first = {name: number for number, names in _NEW.items() for name in names.split()}
    found: dict[str, tuple[int, ...]] = {name: (number,) for name, number in first.items()}
    for number, names in _CHANGED.items():
        for name in names.split():
            found[name] = (*found.get(name, (1,)), number)
    return found


CHANGES = MappingProxyType(_changes())
"""Versions of iOS at which an operator of MIL came or changed; 1 stands for iOS15 and before."""
