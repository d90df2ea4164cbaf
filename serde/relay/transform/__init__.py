"""Passes: transformations of modules that keep their meaning."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from serde.relay.transform.base import FunctionPass, Pass, Sequential
from serde.relay.transform.compose import Compose, Match, Pattern
from serde.relay.transform.convert_layout import ConvertLayout, channels_first
from serde.relay.transform.count_loops import CountLoops
from serde.relay.transform.cse import EliminateCommonSubexpr
from serde.relay.transform.cut import cut, named_values, results_of
from serde.relay.transform.dead_code import DeadCodeElimination, RemoveUnusedFunctions
from serde.relay.transform.flatten_results import flatten_results
from serde.relay.transform.fold_constant import FoldConstant
from serde.relay.transform.fold_shape import DynamicToStatic, FoldShape
from serde.relay.transform.fold_weights import fold_weights
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline import Inline, ToGraphNormalForm
from serde.relay.transform.legalize import Legalize
from serde.relay.transform.quantized_as_float import QuantizedAsFloat
from serde.relay.transform.quantized_as_linear import QuantizedAsLinear
from serde.relay.transform.raise_box_nms import box_nms_patterns
from serde.relay.transform.raise_layers import RaiseLayers
from serde.relay.transform.raise_recursion import RaiseRecursion
from serde.relay.transform.raise_slice_like import RaiseSliceLike
from serde.relay.transform.rename import rename
from serde.relay.transform.sequences_to_tuples import SequencesToTuples
from serde.relay.transform.simplify_expr import SimplifyExpr
from serde.relay.transform.simplify_inference import SimplifyInference
from serde.relay.transform.to_float16 import ToFloat16, float16_overflows

if TYPE_CHECKING:
    from serde.relay.transform.tvm import (  # noqa: I001
        BackwardFoldScaleAxis, CanonicalizeCast, CanonicalizeOps, CombineParallelBatchMatmul,
        CombineParallelConv2D, CombineParallelDense, DefuseOps, FastMath, FlattenAtrousConv,
        FoldScaleAxis, ForwardFoldScaleAxis, FuseOps, LambdaLift, ToANormalForm, extension_patterns,
    )  # fmt: skip

__all__ = [
    "BackwardFoldScaleAxis", "CanonicalizeCast", "CanonicalizeOps",
    "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "Compose",
    "ConvertLayout", "CountLoops", "DeadCodeElimination", "DefuseOps", "DynamicToStatic",
    "EliminateCommonSubexpr", "FastMath", "FlattenAtrousConv", "FoldConstant", "FoldScaleAxis",
    "FoldShape", "ForwardFoldScaleAxis", "FunctionPass", "FuseOps", "InferType", "Inline",
    "LambdaLift", "Legalize", "Match", "Pass", "Pattern", "QuantizedAsFloat", "QuantizedAsLinear",
    "RaiseLayers", "RaiseRecursion", "RaiseSliceLike", "RemoveUnusedFunctions",
    "SequencesToTuples", "Sequential", "SimplifyExpr", "SimplifyInference", "ToANormalForm",
    "ToFloat16", "ToGraphNormalForm", "box_nms_patterns", "channels_first", "cut",
    "extension_patterns", "flatten_results", "float16_overflows", "fold_weights", "named_values",
    "rename", "results_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return one of TVM's passes, which no conversion runs and hence none loads."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("serde.relay.transform.tvm"), name)
