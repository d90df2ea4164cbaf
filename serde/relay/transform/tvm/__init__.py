"""Passes of TVM's library that no conversion runs."""

from __future__ import annotations

from serde.relay.transform.tvm.a_normal_form import ToANormalForm
from serde.relay.transform.tvm.canonicalize import CanonicalizeCast, CanonicalizeOps
from serde.relay.transform.tvm.combine_parallel import (
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
)
from serde.relay.transform.tvm.extension_forms import extension_patterns
from serde.relay.transform.tvm.fast_math import FastMath
from serde.relay.transform.tvm.flatten_atrous import FlattenAtrousConv
from serde.relay.transform.tvm.fold_scale_axis import (
    BackwardFoldScaleAxis,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
)
from serde.relay.transform.tvm.fuse_ops import DefuseOps, FuseOps
from serde.relay.transform.tvm.lambda_lift import LambdaLift

__all__ = [
    "BackwardFoldScaleAxis", "CanonicalizeCast", "CanonicalizeOps", "CombineParallelBatchMatmul",
    "CombineParallelConv2D", "CombineParallelDense", "DefuseOps", "FastMath", "FlattenAtrousConv",
    "FoldScaleAxis", "ForwardFoldScaleAxis", "FuseOps", "LambdaLift", "ToANormalForm",
    "extension_patterns",
]  # fmt: skip
