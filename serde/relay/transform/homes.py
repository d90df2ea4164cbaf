"""Where the public names of passes are."""

from __future__ import annotations

from typing import Final

__all__ = ["HOMES"]

HOMES: Final = {
    "transform.base": "FunctionPass ModulePass Pass Sequential",
    "transform.compose": "Compose Match Pattern",
    "transform.context": "PassContext PassInfo",
    "transform.count_loops": "CountLoops",
    "transform.cutting": "cut find_values named_values results_of",
    "transform.decompose": "Decompose",
    "transform.editing": (
        "insert_cast merge_models normalize_input replace_pattern suppress_boxes"
    ),
    "tvm.passes.decorators": "function_pass module_pass",
    "transform.evaluate_constants": "EvaluateConstants",
    "transform.fixed_cache": "fix_cache with_batch",
    "transform.fold_batch_norm": "FoldBatchNorm",
    "transform.fold_shape": "FoldShape",
    "transform.infer_type": "InferType",
    "transform.inline_calls": "InlineCalls ToGraphNormalForm",
    "tvm.passes.instrument": "PrintIR instrument",
    "transform.lists_to_sequences": "ListsToSequences",
    "transform.merge_equal_nodes": "MergeEqualNodes",
    "transform.integer_widths": "magnitude narrow_integers",
    "transform.quantized_as_float": "QuantizedAsFloat",
    "transform.quantized_as_linear": "QuantizedAsLinear",
    "transform.raise_box_nms": "box_nms_patterns",
    "transform.raise_layers": "RaiseLayers",
    "transform.raise_recursion": "RaiseRecursion",
    "transform.raise_slice_like": "RaiseSliceLike",
    "transform.remove_dead_code": "RemoveDeadCode RemoveUnusedFunctions",
    "transform.remove_identities": "RemoveIdentities",
    "transform.renaming": "rename set_metadata",
    "transform.result_flattening": "flatten_results",
    "transform.sequences_to_tuples": "SequencesToTuples",
    "transform.softmax_masks": "saturate_masks",
    "transform.to_float16": "ToFloat16 float16_overflows narrow_constant weight_overflows",
    "transform.transpose_to_layout": "TransposeToLayout channels_first",
    "tvm.passes.annotate_target": "AnnotateTarget",
    "tvm.passes.canonicalize": "CanonicalizeOps",
    "tvm.passes.dead_code_elimination": "DeadCodeElimination",
    "tvm.passes.div_to_mul": "DivToMul",
    "tvm.passes.dynamic_to_static": "DynamicToStatic",
    "tvm.passes.eliminate_common_subexpr": "EliminateCommonSubexpr",
    "tvm.passes.extension_forms": "extension_patterns",
    "tvm.passes.fake_quantization": "FakeQuantizationToInteger",
    "tvm.passes.fake_quantization_to_integer": "fake_quantization_to_integer",
    "tvm.passes.flatten_atrous": "FlattenAtrousConv",
    "tvm.passes.fold_constant": "FoldConstant FoldConstantExpr",
    "tvm.passes.fold_explicit_padding": "FoldExplicitPadding",
    "tvm.passes.layout.passes": "AlterOpLayout ConvertLayout LayoutConfig",
    "tvm.passes.layout.inference": "InferCorrectLayoutOutput",
    "tvm.passes.legalize": "Legalize",
    "tvm.passes.merge_compiler_regions": "MergeCompilerRegions",
    "tvm.passes.merge_composite": "MergeComposite",
    "tvm.passes.partition_graph": "PartitionGraph",
    "tvm.passes.mixed_precision": "ToMixedPrecision mixed_precision",
    "tvm.passes.recast": "recast",
    "tvm.passes.simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "tvm.passes.simplify_inference": "SimplifyInference",
    "transform.weight_folding": "fold_weights",
    "tvm.programs": "InferTypeLocal",
}
"""Public names by the module of :mod:`serde.relay` that has them."""
