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
        "serde.relay.transform.cse": "EliminateCommonSubexpr",
        "serde.relay.transform.cutting": "cut named_values results_of",
        "serde.relay.transform.dead_code": "DeadCodeElimination RemoveUnusedFunctions",
        "serde.relay.transform.decorators": "function_pass module_pass",
        "serde.relay.transform.fold_constant": "FoldConstant",
        "serde.relay.transform.fold_shape": "DynamicToStatic FoldShape",
        "serde.relay.transform.infer_type": "InferType",
        "serde.relay.transform.inline": "Inline ToGraphNormalForm",
        "serde.relay.transform.instrument": "instrument",
        "serde.relay.transform.legalize": "Legalize",
        "serde.relay.transform.quantized_as_float": "QuantizedAsFloat",
        "serde.relay.transform.quantized_as_linear": "QuantizedAsLinear",
        "serde.relay.transform.raise_box_nms": "box_nms_patterns",
        "serde.relay.transform.raise_layers": "RaiseLayers",
        "serde.relay.transform.raise_recursion": "RaiseRecursion",
        "serde.relay.transform.raise_slice_like": "RaiseSliceLike",
        "serde.relay.transform.renaming": "rename",
        "serde.relay.transform.result_flattening": "flatten_results",
        "serde.relay.transform.sequences_to_tuples": "SequencesToTuples",
        "serde.relay.transform.simplify_expr": "SimplifyExpr",
        "serde.relay.transform.simplify_inference": "SimplifyInference",
        "serde.relay.transform.to_float16": "ToFloat16 float16_overflows",
        "serde.relay.transform.tvm": (
            "BackwardFoldScaleAxis CanonicalizeCast CanonicalizeOps CombineParallelBatchMatmul "
            "CombineParallelConv2D CombineParallelDense DefuseOps FastMath FlattenAtrousConv "
            "FoldScaleAxis ForwardFoldScaleAxis FuseOps LambdaLift ToANormalForm "
            "extension_patterns"
        ),
        "serde.relay.transform.tvm.annotate_target": "AnnotateTarget",
        "serde.relay.transform.tvm.merge_compiler_regions": "MergeCompilerRegions",
        "serde.relay.transform.tvm.merge_composite": "MergeComposite",
        "serde.relay.transform.tvm.partition_graph": "PartitionGraph",
        "serde.relay.transform.weight_folding": "fold_weights",
    },
)
