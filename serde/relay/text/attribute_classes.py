"""The attribute classes of TVM's operators, and how TVM's JSON stores each of their fields.

A field is text in place, or the number of a node that stands for an object. Which it is follows
from the attribute as the operator declares it: what may be null, lists and dimensions are objects,
other numbers and element types stand in place, and so does text. The tables say what is otherwise.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any as AnyValue, Final

import numpy as np

from serde.errors import RelayError
from serde.relay.ir import OpDef
from serde.relay.ir.registry import Attribute

__all__ = [
    "OPERAND_ATTRIBUTES", "PREFIX", "UNSET_ATTRIBUTES", "attribute_class", "class_key",
    "dtype_text", "dtype_value", "is_boxed", "is_object", "place_text", "place_value", "storage",
]  # fmt: skip

PREFIX: Final = "relay.attrs."

OPERAND_ATTRIBUTES: Final = {"arange": {"start": 0, "stop": 1, "step": 2}}
"""Attributes of TVM that say an operand again, and which."""

UNSET_ATTRIBUTES: Final[dict[str, dict[str, str]]] = {
    "collapse_sum_to": {"shape": "None"},
    "dyn.broadcast_to": {"shape": "None"},
    "dyn.full": {"shape": "None"},
    "dyn.image.resize2d": {"size": "[]", "roi": "[]"},
    "dyn.nn.pad": {"pad_width": "[]"},
    "dyn.nn.upsampling": {"scale_h": "0f", "scale_w": "0f"},
    "dyn.nn.upsampling3d": {"scale_d": "0f", "scale_h": "0f", "scale_w": "0f"},
    "dyn.one_hot": {"depth": "1"},
    "dyn.ones": {"shape": "None"},
    "dyn.reshape": {"newshape": "[]"},
    "dyn.squeeze": {"axis": "[]"},
    "dyn.strided_slice": {"begin": "None", "end": "None", "strides": "None"},
    "dyn.tile": {"reps": "[]"},
    "dyn.topk": {"k": "None"},
    "dyn.zeros": {"shape": "None"},
    "nn.sparse_transpose": {},
    "vision.get_valid_counts": {"score_threshold": "None"},
}
"""Attributes of TVM that have no meaning beside the operand of that name, and how they are written.

TVM wants most of them, and does not look at them.
"""

_SHARED: Final = {
    "AdaptivePool1D": "nn.adaptive_avg_pool1d nn.adaptive_max_pool1d",
    "AdaptivePool2D": "nn.adaptive_avg_pool2d nn.adaptive_max_pool2d",
    "AdaptivePool3D": "nn.adaptive_avg_pool3d nn.adaptive_max_pool3d",
    "ArgReduce": "argmax argmin",
    "Argsort": "sort",
    "BatchToSpaceND": "nn.batch_to_space_nd",
    "Broadcast": "qnn.add qnn.mul qnn.subtract",
    "Cast": "reinterpret",
    "Conv2D": "nn.contrib_conv2d_NCHWc nn.contrib_depthwise_conv2d_NCHWc nn.conv2d_backward_weight",
    "DensePack": "nn.contrib_dense_pack qnn.contrib_dense_pack",
    "Dequantize": "qnn.simulated_dequantize",
    "FIFOBuffer": "nn.fifo_buffer",
    "GatherND": "gather_nd",
    "GlobalPool2D": "nn.global_avg_pool2d nn.global_max_pool2d",
    "InitOp": "broadcast_to dyn.broadcast_to dyn.full dyn.ones dyn.zeros full ones zeros",
    "LRN": "nn.lrn",
    "MultiBoxPrior": "vision.multibox_prior",
    "MultiBoxTransformLoc": "vision.multibox_transform_loc",
    "NLLLoss": "nn.nll_loss",
    "PRelu": "nn.prelu",
    "Reduce": "all any max mean min prod sum",
    "Reshape": "contrib_reverse_reshape",
    "SearchSorted": "searchsorted",
    "Softmax": "nn.fast_softmax nn.log_softmax",
    "SpaceToBatchND": "nn.space_to_batch_nd",
    "SparseDense": "nn.internal.sparse_dense_padded",
    "SubPixel": "nn.depth_to_space nn.space_to_depth",
    "UpSampling": "dyn.nn.upsampling nn.upsampling",
    "UpSampling3D": "dyn.nn.upsampling3d nn.upsampling3d",
}
"""Classes, without ``Attrs``, of operators that are not called as their class is."""

_OBJECTS: Final = {
    "axis": "ScatterElements Stack",
    "batch_axis": "ReverseSequence",
    "batch_dims": "GatherND Take",
    "data_layout": "Conv1D Conv2D Conv3D Conv3DTranspose",
    "equation": "Einsum",
    "exclusive": "Scanop",
    "inverse": "DFT",
    "kernel_layout": "Conv1D Conv2D Conv3D Conv3DTranspose",
    "layout": "AvgPool2D Correlation GlobalPool2D GridSample MaxPool2D UpSampling",
    "method": "GridSample UpSampling",
    "mode": "ScatterND Take",
    "out_layout": (
        "AdaptivePool1D AdaptivePool2D AdaptivePool3D AvgPool1D AvgPool2D AvgPool3D Conv1D Conv2D "
        "Conv3D Conv3DTranspose GlobalPool2D MaxPool1D MaxPool2D MaxPool3D"
    ),
    "num_samples": "Multinomial",
    "pad_mode": "Pad",
    "padding_mode": "GridSample",
    "reduction": "ScatterElements",
    "repeats": "Repeat",
    "seq_axis": "ReverseSequence",
    "slice_mode": "StridedSlice",
    "stride": "YoloReorg",
    "weight_layout": "DensePack",
}
"""Fields that are objects though their declaration does not say so, and of which classes."""

_DTYPES: Final = {"float8_e4m3fn": "e4m3_float8", "float8_e5m2": "e5m2_float8"}
"""Element types that TVM calls otherwise."""

_DTYPE: Final = re.compile(r"(u?int|b?float)\d+|bool|e\dm\d_float8")
_WORD: Final = re.compile(r"[A-Za-z_]+")
_NUMERIC: Final = frozenset({"int", "float", "bool", "Device", "Dim", "tuple"})


def class_key(name: str) -> str:
    """Return the class's name without the prefix of its type key."""
    return name.removeprefix(PREFIX)


@cache
def _class_of() -> dict[str, str]:
    return {op: name for name, listed in _SHARED.items() for op in listed.split()}


@cache
def attribute_class(definition: OpDef) -> str:
    """Return the type key of an operator's attributes; empty for one that has none."""
    if definition.meta_class is not None:
        return definition.meta_class
    if not definition.attributes and definition.name not in UNSET_ATTRIBUTES:
        return ""
    words = definition.name.rpartition(".")[2].split("_")
    plain = "".join(re.sub(r"(?<=\d)d$", "D", word[:1].upper() + word[1:]) for word in words)
    return f"{PREFIX}{_class_of().get(definition.name, plain)}Attrs"


@cache
def storage(annotation: str) -> str:
    """Return whether an attribute of this annotation is ``text``, ``dtype``, object or number."""
    words = set(_WORD.findall(annotation))
    if annotation.startswith("Literal") or not words & _NUMERIC:
        return "dtype" if "dtype" in words else "text"
    return "object" if words & {"None", "Device", "Dim", "tuple"} else "number"


def is_object(definition: OpDef, name: str) -> bool:
    """Whether TVM keeps an attribute as an object."""
    key = class_key(attribute_class(definition)).removesuffix("Attrs")
    if key in _OBJECTS.get(name, "").split():
        return True
    return storage(definition.attributes[name].annotation) == "object"


def is_boxed(definition: OpDef, name: str) -> bool:
    """Whether the numbers of an attribute are TVM's boxed run-time integers, as since 0.18."""
    return definition.name == "split" and name == "indices_or_sections"


def dtype_text(dtype: str) -> str:
    """Return what TVM calls an element type.

    Raises:
        RelayError: TVM has no such type.
    """
    name = _DTYPES.get(dtype, dtype)
    if _DTYPE.fullmatch(name) is None:
        raise RelayError(f"TVM has no element type {dtype}")
    return name


def dtype_value(name: str) -> str:
    """Return the element type that TVM calls `name`."""
    return next((dtype for dtype, known in _DTYPES.items() if known == name), name)


def place_text(value: AnyValue) -> str:
    """Return what stands in place for a number, a text, an element type or none."""
    if isinstance(value, float):
        return f"{value:.17g}"
    if isinstance(value, np.dtype):
        return dtype_text(value.name)
    return "" if value is None else str(int(value) if isinstance(value, bool) else value)


def place_value(text: AnyValue, attribute: Attribute) -> AnyValue:
    """Return the value that stands in place for an attribute; None for an empty element type.

    Raises:
        ValueError: It is none of the kind that is declared.
    """
    if not isinstance(text, str):
        raise ValueError(f"the attribute {attribute.name} is not written as text")
    kind, annotation = storage(attribute.annotation), attribute.annotation
    if kind == "dtype":
        return dtype_value(text) or (None if "None" in annotation else text)
    if kind == "text":
        return text
    if len(text) > 400:
        raise ValueError(f"expected a number, found {text[:40]!r}")
    if "bool" in annotation:
        if text not in ("0", "1"):
            raise ValueError(f"expected 0 or 1, found {text[:40]!r}")
        return text == "1"
    return float(text) if "float" in annotation else int(text)
