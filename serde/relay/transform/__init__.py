"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Passes of TVM that no conversion runs have their names here, and stand in ``relay/tvm``.
"""

from __future__ import annotations

from typing import Final

from serde.core.lazy import lazy_names, refuse_names
from serde.relay.homes import GENERATES
from serde.relay.transform.homes import HOMES

_GONE: Final = {
    "AnnotateSpans BackwardFoldScaleAxis CanonicalizeCast CombineParallelBatchMatmul "
    "CombineParallelConv2D CombineParallelDense DefuseOps EtaExpand FastMath FoldScaleAxis "
    "ForwardFoldScaleAxis FuseOps Inline InlineCompilerFunctionsBoundTo LambdaLift "
    "MarkCompilerFunctionsAsExtern OutlineCompilerFunctionsWithExistingGlobalSymbols SplitArgs "
    "ToANormalForm ToBasicBlockNormalForm": f"it went with 1.1: {GENERATES}",
    "CapturePostDfsIndexInSpans CollagePartition Conv2dToSparse Conv2dToSparse2 DenseToSparse "
    "FlexibleShapeDispatch ManifestLifetimes PlanDevices SimplifyFCTranspose ToANormalFormExpr "
    "build_config mangle_module_name": GENERATES,
    "BatchingOps Defunctionalization FirstOrderGradient LazyGradientInit PartialEvaluate ToCPS "
    "gradient to_cps un_cps": "it trains, or serves what does",
    "ChangeBatch": "input_shapes of a conversion gives another batch",
}

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {f"serde.relay.{module}": names for module, names in HOMES.items()},
    refuse_names("relay.transform", _GONE),
)
