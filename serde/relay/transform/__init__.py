"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Those below ``tvm`` do what TVM's passes of their names do, and no conversion runs them.
"""

from __future__ import annotations

from serde._lazy import lazy_names

_HOMES = {
    "base": "FunctionPass ModulePass Pass Sequential",
    "compose": "Compose Match Pattern",
    "context": "PassContext PassInfo",
    "convert_layout": "ConvertLayout channels_first",
    "count_loops": "CountLoops",
    "cutting": "cut named_values results_of",
    "decorators": "function_pass module_pass",
    "evaluate_constants": "EvaluateConstants",
    "fold_batch_norm": "FoldBatchNorm",
    "fold_shape": "DynamicToStatic FoldShape",
    "infer_type": "InferType",
    "inline_calls": "InlineCalls ToGraphNormalForm",
    "instrument": "instrument",
    "legalize": "Legalize",
    "merge_equal_nodes": "MergeEqualNodes",
    "quantized_as_float": "QuantizedAsFloat",
    "quantized_as_linear": "QuantizedAsLinear",
    "raise_box_nms": "box_nms_patterns",
    "raise_layers": "RaiseLayers",
    "raise_recursion": "RaiseRecursion",
    "raise_slice_like": "RaiseSliceLike",
    "remove_dead_code": "RemoveDeadCode RemoveUnusedFunctions",
    "remove_identities": "RemoveIdentities",
    "renaming": "rename",
    "result_flattening": "flatten_results",
    "sequences_to_tuples": "SequencesToTuples",
    "to_float16": "ToFloat16 float16_overflows",
    "tvm.a_normal_form": "ToANormalForm",
    "tvm.canonicalize": "CanonicalizeCast CanonicalizeOps",
    "tvm.combine_parallel": (
        "CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense"
    ),
    "tvm.eliminate_common_subexpr": "EliminateCommonSubexpr",
    "tvm.extension_forms": "extension_patterns",
    "tvm.fast_math": "FastMath",
    "tvm.flatten_atrous": "FlattenAtrousConv",
    "tvm.fold_constant": "FoldConstant FoldConstantExpr",
    "tvm.fold_explicit_padding": "FoldExplicitPadding",
    "tvm.fold_scale_axis": "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis",
    "tvm.fuse_ops": "DefuseOps FuseOps",
    "tvm.inline": "Inline",
    "tvm.lambda_lift": "LambdaLift",
    "tvm.simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "tvm.simplify_inference": "SimplifyInference",
    "weight_folding": "fold_weights",
}
"""Public names by the module of this package that has them."""

__getattr__, __all__ = lazy_names(
    __name__, {f"{__name__}.{module}": names for module, names in _HOMES.items()}
)
