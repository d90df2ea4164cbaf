"""Where the public names of passes are."""

from __future__ import annotations

from typing import Final

__all__ = ["HOMES"]

HOMES: Final = {
    "base": "FunctionPass ModulePass Pass Sequential",
    "compose": "Compose Match Pattern",
    "context": "PassContext PassInfo",
    "count_loops": "CountLoops",
    "cutting": "cut named_values results_of",
    "decompose": "Decompose",
    "decorators": "function_pass module_pass",
    "evaluate_constants": "EvaluateConstants",
    "fold_batch_norm": "FoldBatchNorm",
    "fold_shape": "FoldShape",
    "infer_type": "InferType",
    "inline_calls": "InlineCalls ToGraphNormalForm",
    "instrument": "instrument",
    "lists_to_sequences": "ListsToSequences",
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
    "to_float16": "ToFloat16 float16_overflows narrow_constant weight_overflows",
    "transpose_to_layout": "TransposeToLayout channels_first",
    "tvm.annotate_spans": "AnnotateSpans",
    "tvm.a_normal_form": "ToANormalForm",
    "tvm.annotate_target": "AnnotateTarget",
    "tvm.basic_block": "ToBasicBlockNormalForm",
    "tvm.canonicalize": "CanonicalizeCast CanonicalizeOps",
    "tvm.change_batch": "ChangeBatch",
    "tvm.combine_parallel": (
        "CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense"
    ),
    "tvm.dead_code_elimination": "DeadCodeElimination",
    "tvm.fast_math": "DivToMul FastMath",
    "tvm.dynamic_to_static": "DynamicToStatic",
    "tvm.compiler_functions": (
        "InlineCompilerFunctionsBoundTo MarkCompilerFunctionsAsExtern "
        "OutlineCompilerFunctionsWithExistingGlobalSymbols"
    ),
    "tvm.eliminate_common_subexpr": "EliminateCommonSubexpr",
    "tvm.eta_expand": "EtaExpand",
    "tvm.extension_forms": "extension_patterns",
    "tvm.fake_quantization": "FakeQuantizationToInteger",
    "tvm.fake_quantization_to_integer": "fake_quantization_to_integer",
    "tvm.flatten_atrous": "FlattenAtrousConv",
    "tvm.fold_constant": "FoldConstant FoldConstantExpr",
    "tvm.fold_explicit_padding": "FoldExplicitPadding",
    "tvm.fold_scale_axis": "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis",
    "tvm.fuse_ops": "DefuseOps FuseOps",
    "tvm.inline": "Inline",
    "tvm.layout.passes": "AlterOpLayout ConvertLayout LayoutConfig",
    "tvm.layout.inference": "InferCorrectLayoutOutput",
    "tvm.lambda_lift": "LambdaLift",
    "tvm.legalize": "Legalize",
    "tvm.merge_compiler_regions": "MergeCompilerRegions",
    "tvm.merge_composite": "MergeComposite",
    "tvm.normal_forms": "ToANormalForm ToBasicBlockNormalForm",
    "tvm.partition_graph": "PartitionGraph",
    "tvm.mixed_precision": "ToMixedPrecision mixed_precision",
    "tvm.simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "tvm.simplify_inference": "SimplifyInference",
    "tvm.split_args": "SplitArgs",
    "weight_folding": "fold_weights",
}
"""Public names by the module of :mod:`serde.relay.transform` that has them."""
