"""Passes: transformations of modules that keep their meaning."""

from __future__ import annotations

from serde.relay.transform.base import FunctionPass, Pass, Sequential
from serde.relay.transform.compose import Compose, Match, Pattern, extension_patterns
from serde.relay.transform.cse import EliminateCommonSubexpr
from serde.relay.transform.dead_code import DeadCodeElimination
from serde.relay.transform.fold_constant import FoldConstant
from serde.relay.transform.fold_shape import FoldShape
from serde.relay.transform.fold_weights import fold_weights
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline import Inline, ToGraphNormalForm
from serde.relay.transform.legalize import Legalize
from serde.relay.transform.quantized_as_float import QuantizedAsFloat
from serde.relay.transform.raise_recursion import RaiseRecursion
from serde.relay.transform.sequences_to_tuples import SequencesToTuples
from serde.relay.transform.simplify_expr import SimplifyExpr
from serde.relay.transform.simplify_inference import SimplifyInference
from serde.relay.transform.to_float16 import KEEP_FLOAT32, ToFloat16, float16_overflows

__all__ = [
    "KEEP_FLOAT32", "Compose", "DeadCodeElimination", "EliminateCommonSubexpr", "FoldConstant",
    "FoldShape", "FunctionPass", "InferType", "Inline", "Legalize", "Match", "Pass", "Pattern",
    "QuantizedAsFloat", "RaiseRecursion", "SequencesToTuples", "Sequential", "SimplifyExpr",
    "SimplifyInference", "ToFloat16", "ToGraphNormalForm", "extension_patterns",
    "float16_overflows", "fold_weights",
]  # fmt: skip
