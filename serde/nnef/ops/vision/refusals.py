"""Why boxes are not chosen."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

__all__: list[str] = []


OPS.refuses_calls(
    "serde.box_nms",
    "serde.multibox_detection",
    "serde.non_max_suppression",
    "serde.scored_proposal",
    "vision.all_class_non_max_suppression",
    "vision.get_valid_counts",
    "vision.multibox_transform_loc",
    "vision.non_max_suppression",
    "vision.proposal",
    "vision.regular_non_max_suppression",
    reason="NNEF has no fragment that orders and suppresses boxes",
    hint="end the model before it (option outputs) and suppress boxes behind the network",
)
