"""What a program that computes in float16 leaves in float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serde.errors import OptionError
from serde.relay import transform
from serde.relay.ir.expr import Call, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef, all_ops
from serde.relay.ir.visit import post_order
from serde.report import Issue, Report

__all__ = ["GROUPS", "NEEDED", "narrowed", "wide_names"]

NEEDED = frozenset([
    "arange", "cumprod", "cumsum", "dyn.image.resize2d", "dyn.nn.upsampling",
    "image.affine_grid", "image.crop_and_resize", "image.grid_sample", "nn.l2_normalize",
    "nn.lrn", "prod", "serde.box_nms", "serde.multibox_detection", "serde.multibox_target",
    "sum", "variance", "vision.all_class_non_max_suppression", "vision.get_valid_counts",
    "vision.multibox_prior", "vision.multibox_transform_loc", "vision.non_max_suppression",
    "vision.proposal", "vision.roi_align", "vision.roi_pool",
])  # fmt: skip
"""Operators that stay in float32 whatever is asked.

A sum or product of many elements is beyond the range of float16 where none of them is, and so
is a sum of squares: of 256 elements of 16 already. Numbers, places and lengths of an axis, corners
of boxes and grids need more than its eleven bits beyond 2048.

A mean lies within the range of what it is taken of; the norms of MIL and its resizing are
operators that sum and count inside as wide as they need, and give what float16 holds. Core ML's
own converter computes them in float16, too, and so does this one, unless asked otherwise.
"""

GROUPS = {
    "norms": frozenset(
        {"nn.batch_norm", "nn.group_norm", "nn.instance_norm", "nn.layer_norm", "serde.layer_norm"}
    ),
    "reductions": frozenset({"mean", "nn.log_softmax", "nn.softmax", "topk"}),
    "resizing": frozenset(
        {
            "image.resize1d", "image.resize2d", "image.resize3d", "nn.upsampling",
            "nn.upsampling3d", "serde.resize",
        }
    ),
}  # fmt: skip
"""Names for operators that the careful may leave in float32, too."""

_HALF = np.finfo(np.float16)


def narrowed(model: RelayModel, wide: frozenset[str], report: Report) -> RelayModel:
    """Return the model computing in float16, its ends as they were; what overflows is told.

    Args:
        model: The model.
        wide: Names of operators and nodes that stay float32 besides those that need to.
        report: Gets what overflows.
    """
    keep = NEEDED | wide | frozenset(_faint(model))
    for what in transform.float16_overflows(model, keep=keep, keep_io=True):
        issue = Issue("cast", what, "has values beyond the range of float16, which become infinite")
        report.allowed.append(issue)
    narrow = transform.ToFloat16(keep, True, frozenset(model.params))
    return transform.fold_weights(model.evolve(mod=narrow(model.mod)), report=report, share=False)


def wide_names(model: RelayModel, wide: frozenset[str]) -> frozenset[str]:
    """Return names of operators and nodes that stay float32.

    Args:
        model: The model with the nodes that its source has.
        wide: Operators, :data:`GROUPS` and nodes.

    Raises:
        OptionError: Nothing is called as something in `wide`.
    """
    plain = wide - GROUPS.keys()
    nodes = {node.span.source_name for node in post_order(model.main) if node.span is not None}
    unknown = sorted(plain - nodes - all_ops().keys())
    if unknown:
        raise OptionError(
            f"float32_ops: {unknown[0]} is no operator of Relay, no node, and none of "
            f"{', '.join(sorted(GROUPS))}"
        )
    return plain.union(*(GROUPS[name] for name in wide & GROUPS.keys()))


def _faint(model: RelayModel) -> Iterator[str]:
    """Yield the batch norms with variances that float16 does not hold with all its bits."""
    for node in post_order(model.main):
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.span is None:
            continue
        if node.op.name != "nn.batch_norm":
            continue
        variance = node.args[4]
        weight = model.params.get(variance.name_hint) if isinstance(variance, Var) else None
        if weight is not None:
            values = weight.array().astype(np.float64) + node.attrs["epsilon"]
            if values.min() < _HALF.smallest_normal or values.max() > _HALF.max:
                yield node.span.source_name
