"""The attribute classes that TVM prints as metadata, and how each field is stored there.

These operators have attributes but declare no attribute class, so that TVM's
parser could not build one from ``key=value``. The kind of a field follows its
type in TVM: a plain number or string is written in place, an object gets a
node of its own.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FIELDS", "PREFIX", "class_key"]

PREFIX: Final = "relay.attrs."

FIELDS: Final[dict[str, dict[str, str]]] = {
    "AllClassNonMaximumSuppressionAttrs": {"output_format": "String"},
    "CompilerAttrs": {"compiler": "String"},
    "DFTAttrs": {"inverse": "Bool"},
    "DilateAttrs": {"strides": "ints", "dilation_value": "double"},
    "DynExpandDimsAttrs": {"num_newaxis": "int"},
    "GetValidCountsAttrs": {"score_threshold": "Float", "id_index": "int", "score_index": "int"},
    "InitOpAttrs": {"shape": "ints", "dtype": "dtype"},
    "NonMaximumSuppressionAttrs": {
        "force_suppress": "bool",
        "top_k": "int",
        "coord_start": "int",
        "score_index": "int",
        "id_index": "int",
        "return_indices": "bool",
        "invalid_to_bottom": "bool",
    },
    "ProposalAttrs": {
        "scales": "floats",
        "ratios": "floats",
        "feature_stride": "int",
        "threshold": "double",
        "rpn_pre_nms_top_n": "int",
        "rpn_post_nms_top_n": "int",
        "rpn_min_size": "int",
        "iou_loss": "bool",
    },
    "ROIAlignAttrs": {
        "pooled_size": "ints",
        "spatial_scale": "double",
        "sample_ratio": "int",
        "layout": "string",
        "mode": "string",
    },
    "ROIPoolAttrs": {"pooled_size": "ints", "spatial_scale": "double", "layout": "string"},
    "RegularNonMaximumSuppressionAttrs": {
        "max_detections_per_class": "int",
        "max_detections": "int",
        "num_classes": "int",
        "iou_threshold": "double",
        "score_threshold": "double",
    },
    "ScanopAttrs": {"axis": "Int", "dtype": "dtype", "exclusive": "Bool"},
    "ScatterElementsAttrs": {"axis": "Int", "reduction": "String"},
    "ScatterNDAttrs": {"mode": "String"},
    "StftAttrs": {
        "n_fft": "int",
        "hop_length": "int",
        "win_length": "int",
        "normalized": "bool",
        "onesided": "bool",
    },
    "TriluAttrs": {"upper": "bool"},
    "UniqueAttrs": {"sorted": "bool", "return_counts": "bool"},
}
"""Class to its fields in order of declaration; a kind with a capital is a node of its own."""


def class_key(name: str) -> str:
    """Return the class's name without the prefix of its type key."""
    return name.removeprefix(PREFIX)
