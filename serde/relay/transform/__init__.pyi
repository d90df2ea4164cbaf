"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Passes of TVM that no conversion runs have their names here, and stand in ``relay/tvm``.
"""

from serde.relay.transform.base import (
    FunctionPass as FunctionPass,
    ModulePass as ModulePass,
    Pass as Pass,
    Sequential as Sequential,
)
from serde.relay.transform.compose import Compose as Compose, Match as Match, Pattern as Pattern
from serde.relay.transform.context import PassContext as PassContext, PassInfo as PassInfo
from serde.relay.transform.count_loops import CountLoops as CountLoops
from serde.relay.transform.cutting import (
    cut as cut,
    find_values as find_values,
    named_values as named_values,
    results_of as results_of,
)
from serde.relay.transform.decompose import Decompose as Decompose
from serde.relay.transform.editing import (
    insert_cast as insert_cast,
    merge_models as merge_models,
    normalize_input as normalize_input,
    replace_pattern as replace_pattern,
    suppress_boxes as suppress_boxes,
)
from serde.relay.transform.evaluate_constants import EvaluateConstants as EvaluateConstants
from serde.relay.transform.fixed_cache import fix_cache as fix_cache, with_batch as with_batch
from serde.relay.transform.fold_batch_norm import FoldBatchNorm as FoldBatchNorm
from serde.relay.transform.fold_shape import FoldShape as FoldShape
from serde.relay.transform.infer_type import InferType as InferType
from serde.relay.transform.inline_calls import (
    InlineCalls as InlineCalls,
    ToGraphNormalForm as ToGraphNormalForm,
)
from serde.relay.transform.integer_widths import (
    magnitude as magnitude,
    narrow_integers as narrow_integers,
)
from serde.relay.transform.lists_to_sequences import ListsToSequences as ListsToSequences
from serde.relay.transform.merge_equal_nodes import MergeEqualNodes as MergeEqualNodes
from serde.relay.transform.quantized_as_float import QuantizedAsFloat as QuantizedAsFloat
from serde.relay.transform.quantized_as_linear import QuantizedAsLinear as QuantizedAsLinear
from serde.relay.transform.raise_box_nms import box_nms_patterns as box_nms_patterns
from serde.relay.transform.raise_layers import RaiseLayers as RaiseLayers
from serde.relay.transform.raise_recursion import RaiseRecursion as RaiseRecursion
from serde.relay.transform.raise_slice_like import RaiseSliceLike as RaiseSliceLike
from serde.relay.transform.remove_dead_code import (
    RemoveDeadCode as RemoveDeadCode,
    RemoveUnusedFunctions as RemoveUnusedFunctions,
)
from serde.relay.transform.remove_identities import RemoveIdentities as RemoveIdentities
from serde.relay.transform.renaming import rename as rename, set_metadata as set_metadata
from serde.relay.transform.result_flattening import flatten_results as flatten_results
from serde.relay.transform.sequences_to_tuples import SequencesToTuples as SequencesToTuples
from serde.relay.transform.softmax_masks import saturate_masks as saturate_masks
from serde.relay.transform.to_float16 import (
    ToFloat16 as ToFloat16,
    float16_overflows as float16_overflows,
    narrow_constant as narrow_constant,
    weight_overflows as weight_overflows,
)
from serde.relay.transform.transpose_to_layout import (
    TransposeToLayout as TransposeToLayout,
    channels_first as channels_first,
)
from serde.relay.transform.weight_folding import fold_weights as fold_weights
from serde.relay.tvm.passes import (
    fake_quantization_to_integer as fake_quantization_to_integer,
    instrument as instrument,
    mixed_precision as mixed_precision,
)
from serde.relay.tvm.passes.annotate_target import AnnotateTarget as AnnotateTarget
from serde.relay.tvm.passes.canonicalize import CanonicalizeOps as CanonicalizeOps
from serde.relay.tvm.passes.dead_code_elimination import DeadCodeElimination as DeadCodeElimination
from serde.relay.tvm.passes.decorators import (
    function_pass as function_pass,
    module_pass as module_pass,
)
from serde.relay.tvm.passes.div_to_mul import DivToMul as DivToMul
from serde.relay.tvm.passes.dynamic_to_static import DynamicToStatic as DynamicToStatic
from serde.relay.tvm.passes.eliminate_common_subexpr import (
    EliminateCommonSubexpr as EliminateCommonSubexpr,
)
from serde.relay.tvm.passes.extension_forms import extension_patterns as extension_patterns
from serde.relay.tvm.passes.fake_quantization import (
    FakeQuantizationToInteger as FakeQuantizationToInteger,
)
from serde.relay.tvm.passes.flatten_atrous import FlattenAtrousConv as FlattenAtrousConv
from serde.relay.tvm.passes.fold_constant import (
    FoldConstant as FoldConstant,
    FoldConstantExpr as FoldConstantExpr,
)
from serde.relay.tvm.passes.fold_explicit_padding import FoldExplicitPadding as FoldExplicitPadding
from serde.relay.tvm.passes.instrument import PrintIR as PrintIR
from serde.relay.tvm.passes.layout.inference import (
    InferCorrectLayoutOutput as InferCorrectLayoutOutput,
)
from serde.relay.tvm.passes.layout.passes import (
    AlterOpLayout as AlterOpLayout,
    ConvertLayout as ConvertLayout,
    LayoutConfig as LayoutConfig,
)
from serde.relay.tvm.passes.legalize import Legalize as Legalize
from serde.relay.tvm.passes.merge_compiler_regions import (
    MergeCompilerRegions as MergeCompilerRegions,
)
from serde.relay.tvm.passes.merge_composite import MergeComposite as MergeComposite
from serde.relay.tvm.passes.mixed_precision import ToMixedPrecision as ToMixedPrecision
from serde.relay.tvm.passes.partition_graph import PartitionGraph as PartitionGraph
from serde.relay.tvm.passes.recast import recast as recast
from serde.relay.tvm.passes.simplify_expr import (
    SimplifyExpr as SimplifyExpr,
    SimplifyExprPostAlterOp as SimplifyExprPostAlterOp,
)
from serde.relay.tvm.passes.simplify_inference import SimplifyInference as SimplifyInference
from serde.relay.tvm.programs import InferTypeLocal as InferTypeLocal
