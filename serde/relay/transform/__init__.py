"""Passes: transformations of modules that keep their meaning; each is loaded when it is used."""

from __future__ import annotations

from serde._lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.transform.base": "FunctionPass ModulePass Pass Sequential",
        "serde.relay.transform.compose": "Compose Match Pattern",
        "serde.relay.transform.context": "PassContext PassInfo",
        "serde.relay.transform.convert_layout": "ConvertLayout channels_first",
        "serde.relay.transform.count_loops": "CountLoops",
        "serde.relay.transform.cutting": "cut named_values results_of",
        "serde.relay.transform.decorators": "function_pass module_pass",
        "serde.relay.transform.evaluate_constants": "EvaluateConstants",
        "serde.relay.transform.fold_batch_norm": "FoldBatchNorm",
        "serde.relay.transform.fold_shape": "DynamicToStatic FoldShape",
        "serde.relay.transform.infer_type": "InferType",
        "serde.relay.transform.inline_calls": "InlineCalls ToGraphNormalForm",
        "serde.relay.transform.instrument": "instrument",
        "serde.relay.transform.legalize": "Legalize",
        "serde.relay.transform.merge_equal_nodes": "MergeEqualNodes",
        "serde.relay.transform.quantized_as_float": "QuantizedAsFloat",
        "serde.relay.transform.quantized_as_linear": "QuantizedAsLinear",
        "serde.relay.transform.raise_box_nms": "box_nms_patterns",
        "serde.relay.transform.raise_layers": "RaiseLayers",
        "serde.relay.transform.raise_recursion": "RaiseRecursion",
        "serde.relay.transform.raise_slice_like": "RaiseSliceLike",
        "serde.relay.transform.remove_dead_code": "RemoveDeadCode RemoveUnusedFunctions",
        "serde.relay.transform.remove_identities": "RemoveIdentities",
        "serde.relay.transform.renaming": "rename",
        "serde.relay.transform.result_flattening": "flatten_results",
        "serde.relay.transform.sequences_to_tuples": "SequencesToTuples",
        "serde.relay.transform.to_float16": "ToFloat16 float16_overflows",
        "serde.relay.transform.tvm.a_normal_form": "ToANormalForm",
        "serde.relay.transform.tvm.canonicalize": "CanonicalizeCast CanonicalizeOps",
        "serde.relay.transform.tvm.combine_parallel": (
            "CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense"
        ),
        "serde.relay.transform.tvm.eliminate_common_subexpr": "EliminateCommonSubexpr",
        "serde.relay.transform.tvm.extension_forms": "extension_patterns",
        "serde.relay.transform.tvm.fast_math": "FastMath",
        "serde.relay.transform.tvm.flatten_atrous": "FlattenAtrousConv",
        "serde.relay.transform.tvm.fold_constant": "FoldConstant FoldConstantExpr",
        "serde.relay.transform.tvm.fold_explicit_padding": "FoldExplicitPadding",
        "serde.relay.transform.tvm.fold_scale_axis": (
            "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis"
        ),
        "serde.relay.transform.tvm.fuse_ops": "DefuseOps FuseOps",
        "serde.relay.transform.tvm.inline": "Inline",
        "serde.relay.transform.tvm.lambda_lift": "LambdaLift",
        "serde.relay.transform.tvm.simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
        "serde.relay.transform.tvm.simplify_inference": "SimplifyInference",
        "serde.relay.transform.weight_folding": "fold_weights",
    },
)
