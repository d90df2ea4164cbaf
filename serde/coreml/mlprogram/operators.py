"""The operators of MIL and the layers of NeuralNetworks, and what of them is written.

From the registry of coremltools 9.0 (``SSAOpRegistry.core_ops``) and the message of a layer. What
is read stands in the tables of converters. What is written is here, for converters write several
and choose by target; the tests compare it with what all samples become.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.value import HELD_AS, Argument, Value
from serde.coreml.versions import CHANGES
from serde.errors import Unsupported
from serde.relay.ir.types import TensorType
from serde.walk.takes import dtypes

__all__ = [
    "CORE", "FLOATS", "GATHER_DTYPES", "HALVES", "INSTEAD", "LAYERS_INSTEAD",
    "LAYERS_NOT_WRITTEN", "LAYERS_WRITTEN", "LAYER_KINDS", "MOVE_DTYPES", "NOT_READ",
    "NOT_WRITTEN", "NUMBERS", "NUMBERS_OR_BOOL", "VERSION", "WRITTEN", "WRITTEN_UNTIL",
    "cast_to", "compute_dtype", "emit_in", "layer_remark", "remark",
]  # fmt: skip

VERSION: Final = "9.0"
"""Version of coremltools."""


def _split_names(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _since(names: Mapping[int, str]) -> Mapping[str, int]:
    return MappingProxyType({name: n for n, listed in names.items() for name in listed.split()})


CORE: Final = _split_names(
    "_const_symbolic abs acos add affine argsort asin atan atanh avg_pool band_part batch_norm "
    "batch_to_space cast ceil clamped_relu classify clip concat cond const "
    "constexpr_affine_dequantize constexpr_blockwise_shift_scale constexpr_cast "
    "constexpr_lut_to_dense constexpr_lut_to_sparse constexpr_sparse_blockwise_shift_scale "
    "constexpr_sparse_to_dense conv conv_quantized conv_transpose cos cosh crop crop_resize "
    "cumsum depth_to_space dequantize einsum elu equal erf exp exp2 expand_dims fill fill_like "
    "flatten2d floor floor_div gather gather_along_axis gather_nd gelu greater greater_equal "
    "gru identity instance_norm inverse l2_norm l2_pool layer_norm leaky_relu less less_equal "
    "linear linear_activation list_gather list_length list_read list_scatter list_write "
    "local_response_norm log logical_and logical_not logical_or logical_xor lstm make_list "
    "matmul max_pool maximum minimum mod mul non_maximum_suppression non_zero not_equal "
    "one_hot pad pixel_shuffle pixel_unshuffle pow prelu quantize random_bernoulli "
    "random_categorical random_normal random_uniform range_1d read_state real_div "
    "reduce_argmax reduce_argmin reduce_l1_norm reduce_l2_norm reduce_log_sum "
    "reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod reduce_sum "
    "reduce_sum_square relu relu6 resample reshape reshape_like resize resize_bilinear "
    "resize_nearest_neighbor reverse reverse_sequence rnn round rsqrt "
    "scaled_dot_product_attention scaled_tanh scatter scatter_along_axis scatter_nd select "
    "shape sigmoid sigmoid_hard sign silu sin sinh slice_by_index slice_by_size slice_update "
    "sliding_windows softmax softplus softplus_parametric softsign space_to_batch "
    "space_to_depth split sqrt square squeeze stack sub tan tanh threshold thresholded_relu "
    "tile topk transpose upsample_bilinear upsample_nearest_neighbor while_loop"
)
"""Operators of MIL's core."""

LAYER_KINDS: Final = _split_names(
    "acos acosh activation add addBroadcastable argMax argMin argSort asin asinh atan atanh "
    "average batchedMatmul batchnorm bias biDirectionalLSTM branch broadcastToDynamic "
    "broadcastToLike broadcastToStatic categoricalDistribution ceil clampedReLU clip concat "
    "concatND constantPad convolution convolution3d copy cos cosh crop cropResize cumSum "
    "custom divideBroadcastable dot embedding embeddingND equal erf exp2 expandDims "
    "fillDynamic fillLike fillStatic flatten flattenTo2D floor floorDivBroadcastable gather "
    "gatherAlongAxis gatherND gelu getShape globalPooling3d greaterEqual greaterThan gru "
    "innerProduct l2normalize layerNormalization lessEqual lessThan loadConstant "
    "loadConstantND logicalAnd logicalNot logicalOr logicalXor loop loopBreak loopContinue "
    "lowerTriangular lrn matrixBandPart max maxBroadcastable min minBroadcastable "
    "modBroadcastable multiply multiplyBroadcastable mvn NonMaximumSuppression notEqual oneHot "
    "padding permute pooling pooling3d powBroadcastable randomBernoulliDynamic "
    "randomBernoulliLike randomBernoulliStatic randomNormalDynamic randomNormalLike "
    "randomNormalStatic randomUniformDynamic randomUniformLike randomUniformStatic "
    "rangeDynamic rangeStatic rankPreservingReshape reduce reduceL1 reduceL2 reduceLogSum "
    "reduceLogSumExp reduceMax reduceMean reduceMin reduceProd reduceSum reduceSumSquare "
    "reorganizeData reshape reshapeDynamic reshapeLike reshapeStatic resizeBilinear reverse "
    "reverseSeq round scale scatter scatterAlongAxis scatterND sequenceRepeat sign "
    "simpleRecurrent sin sinh slice sliceBySize sliceDynamic sliceStatic slidingWindows "
    "softmax softmaxND split splitND squeeze stack subtractBroadcastable tan tanh tile topK "
    "transpose unary uniDirectionalLSTM upperTriangular upsample whereBroadcastable "
    "whereNonZero"
)
"""Kinds of layer of a NeuralNetwork."""

WRITTEN: Final = _since(
    {
        15: (
            "abs acos add argsort asin atan atanh avg_pool band_part batch_norm batch_to_space "
            "cast ceil classify clip concat cond const conv conv_transpose cos cosh crop_resize "
            "cumsum depth_to_space einsum elu equal erf exp expand_dims fill floor floor_div "
            "gather gather_along_axis gather_nd gelu greater greater_equal gru identity "
            "instance_norm l2_pool layer_norm leaky_relu less less_equal linear "
            "local_response_norm log logical_and logical_not logical_or logical_xor lstm matmul "
            "max_pool maximum minimum mod mul non_maximum_suppression non_zero not_equal pad "
            "pixel_shuffle pow prelu random_categorical random_normal random_uniform range_1d "
            "real_div reduce_argmax reduce_argmin reduce_l1_norm reduce_l2_norm reduce_log_sum "
            "reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod reduce_sum "
            "reduce_sum_square relu resample reshape resize_bilinear resize_nearest_neighbor "
            "reverse reverse_sequence rnn round rsqrt scatter_along_axis scatter_nd select shape "
            "sigmoid sigmoid_hard sign silu sin sinh slice_by_index slice_by_size sliding_windows "
            "softmax softplus softsign space_to_batch space_to_depth split sqrt squeeze stack sub "
            "tan tanh tile topk transpose upsample_bilinear upsample_nearest_neighbor while_loop"
        ),
        16: "constexpr_affine_dequantize constexpr_lut_to_dense constexpr_sparse_to_dense",
        17: ("dequantize quantize resize"),
        18: (
            "constexpr_blockwise_shift_scale constexpr_lut_to_sparse "
            "constexpr_sparse_blockwise_shift_scale read_state scaled_dot_product_attention "
            "slice_update write_state"
        ),
    }
)
"""Operators of MIL that are written, with the version of iOS from which on."""

LAYERS_WRITTEN: Final = _since(
    {
        13: (
            "acos acosh activation add addBroadcastable argMax argMin asin asinh atan atanh "
            "batchedMatmul batchnorm biDirectionalLSTM branch broadcastToDynamic broadcastToLike "
            "broadcastToStatic categoricalDistribution ceil clip concatND constantPad convolution "
            "copy cos cosh cropResize divideBroadcastable equal erf exp2 expandDims fillDynamic "
            "fillStatic floor floorDivBroadcastable gather gatherAlongAxis gatherND gelu getShape "
            "greaterEqual greaterThan gru innerProduct layerNormalization lessEqual lessThan "
            "loadConstantND logicalAnd logicalNot logicalOr logicalXor loop lowerTriangular lrn "
            "maxBroadcastable minBroadcastable modBroadcastable multiply multiplyBroadcastable "
            "NonMaximumSuppression notEqual padding pooling powBroadcastable randomNormalStatic "
            "randomUniformStatic rangeDynamic reduceL1 reduceL2 reduceLogSum reduceLogSumExp "
            "reduceMax reduceMean reduceMin reduceProd reduceSum reduceSumSquare reorganizeData "
            "reshapeDynamic reshapeStatic resizeBilinear reverse reverseSeq round scatterAlongAxis "
            "scatterND sign simpleRecurrent sin sinh sliceDynamic sliceStatic slidingWindows "
            "softmaxND splitND squeeze stack subtractBroadcastable tan tanh tile topK transpose "
            "unary uniDirectionalLSTM upperTriangular whereBroadcastable whereNonZero"
        ),
        14: ("argSort convolution3d cumSum pooling3d upsample"),
    }
)
"""Layers that are written, with the version of iOS from which on."""

WRITTEN_UNTIL: Final = MappingProxyType({"constexpr_affine_dequantize": 17})
"""Operators that newer systems have others for, with the last version of iOS they are for."""

INSTEAD: Final = MappingProxyType(
    {
        "affine": "matmul resample",
        "clamped_relu": "leaky_relu minimum",
        "crop": "slice_by_index",
        "exp2": "pow",
        "fill_like": "fill",
        "flatten2d": "reshape",
        "inverse": "add real_div",
        "l2_norm": "reduce_sum sqrt real_div",
        "linear_activation": "mul add",
        "list_gather": "gather",
        "list_read": "gather",
        "list_scatter": "scatter_nd",
        "list_write": "scatter_nd",
        "make_list": "fill",
        "one_hot": "equal select",
        "pixel_unshuffle": "reshape transpose",
        "random_bernoulli": "random_uniform less",
        "relu6": "clip",
        "reshape_like": "reshape",
        "scaled_tanh": "tanh mul",
        "scatter": "scatter_along_axis",
        "softplus_parametric": "softplus mul",
        "square": "mul",
        "threshold": "maximum",
        "thresholded_relu": "greater_equal select",
    }
)
"""Operators in place of which others are written."""

_WIDENED = "such weights are written as plain ones"

NOT_WRITTEN: Final = MappingProxyType(
    {
        "_const_symbolic": "only coremltools itself has it, while it converts",
        "constexpr_cast": _WIDENED,
        "conv_quantized": "its weights are written as constexpr_affine_dequantize or plain ones",
        "list_length": "lists that are read are tensors",
    }
)
"""Operators that are not written, by the reason."""

LAYERS_INSTEAD: Final = MappingProxyType(
    {
        "average": "addBroadcastable divideBroadcastable",
        "bias": "addBroadcastable",
        "clampedReLU": "activation minBroadcastable",
        "concat": "concatND",
        "crop": "sliceStatic",
        "dot": "multiplyBroadcastable reduceSum",
        "embedding": "gather",
        "embeddingND": "gather",
        "fillLike": "fillStatic",
        "flatten": "reshapeStatic",
        "flattenTo2D": "reshapeStatic",
        "globalPooling3d": "reduceMean reduceMax",
        "l2normalize": "reduceSum unary divideBroadcastable",
        "loadConstant": "loadConstantND",
        "loopBreak": "branch loop",
        "loopContinue": "branch loop",
        "matrixBandPart": "lowerTriangular upperTriangular",
        "max": "maxBroadcastable",
        "min": "minBroadcastable",
        "mvn": "reduceMean subtractBroadcastable divideBroadcastable",
        "oneHot": "equal whereBroadcastable",
        "permute": "transpose",
        "randomBernoulliDynamic": "randomUniformStatic lessThan",
        "randomBernoulliLike": "randomUniformStatic lessThan",
        "randomBernoulliStatic": "randomUniformStatic lessThan",
        "randomNormalDynamic": "randomNormalStatic",
        "randomNormalLike": "randomNormalStatic",
        "randomUniformDynamic": "randomUniformStatic",
        "randomUniformLike": "randomUniformStatic",
        "rangeStatic": "loadConstantND",
        "rankPreservingReshape": "reshapeStatic",
        "reduce": "reduceSum reduceMean reduceMax",
        "reshape": "reshapeStatic",
        "reshapeLike": "reshapeStatic",
        "scale": "multiplyBroadcastable addBroadcastable",
        "scatter": "scatterND",
        "sequenceRepeat": "tile",
        "slice": "sliceStatic",
        "sliceBySize": "sliceStatic sliceDynamic",
        "softmax": "softmaxND",
        "split": "splitND",
    }
)
"""Layers in place of which others are written."""

_CODE = "what it does is in the code of an app"

LAYERS_NOT_WRITTEN: Final = MappingProxyType({"custom": _CODE})
"""Layers that are not written, by the reason."""

NOT_READ: Final = MappingProxyType(
    {"_const_symbolic": NOT_WRITTEN["_const_symbolic"], "custom": _CODE}
)
"""Operators and layers that are not read, by the reason."""


def remark(op: str) -> str:
    """Return what becomes of an operator of MIL in both directions."""
    since = ", ".join(f"iOS{max(version, 15)}" for version in CHANGES.get(op, (1,)))
    read = f"not read: {NOT_READ[op]}" if op in NOT_READ else f"read, since {since}"
    until = f" to iOS{WRITTEN_UNTIL[op]}" if op in WRITTEN_UNTIL else ""
    return f"{read}; {_describe_export(op, WRITTEN, INSTEAD, NOT_WRITTEN)}{until}"


def layer_remark(kind: str) -> str:
    """Return what becomes of a layer in both directions."""
    read = f"not read: {NOT_READ[kind]}" if kind in NOT_READ else "read"
    return f"{read}; {_describe_export(kind, LAYERS_WRITTEN, LAYERS_INSTEAD, LAYERS_NOT_WRITTEN)}"


def _describe_export(
    name: str, since: Mapping[str, int], instead: Mapping[str, str], never: Mapping[str, str]
) -> str:
    if name in since:
        return f"written, from iOS{since[name]}"
    if name in instead:
        return f"written as {', '.join(instead[name].split())}"
    return f"not written: {never[name]}"


Domain = Mapping[int, frozenset[str]]
"""dtypes by the version of iOS from which on they are taken."""

_FLOATS = frozenset({"float16", "float32"})
_NUMBERS = _FLOATS | {"int32"}
_NARROW = frozenset({"int8", "int16", "uint8", "uint16"})

HALVES = dtypes("float16", "float32")
"""The floats of MIL."""

FLOATS: Domain = {1: _FLOATS}
NUMBERS: Domain = {1: _NUMBERS}
NUMBERS_OR_BOOL: Domain = {1: _NUMBERS | {"bool"}}
GATHER_DTYPES: Domain = {1: _NUMBERS, 17: _NUMBERS | _NARROW}
MOVE_DTYPES: Domain = {1: _NUMBERS | {"bool"}, 17: _NUMBERS | {"bool"} | _NARROW}


def compute_dtype(ctx: ExportContext, dtype: str, domain: Domain) -> str:
    """Return the dtype in which an operator is to compute: the same, or int32 for what it lacks.

    Raises:
        Unsupported: The operator has no integers.
    """
    known = domain[max(since for since in domain if since <= ctx.version)]
    if HELD_AS.get(dtype, dtype) in known:
        return dtype
    if "int32" not in known:
        raise Unsupported(f"no operator of MIL does this with {dtype}")
    return "int32"


def cast_to(ctx: ExportContext, x: Value, dtype: str) -> Value:
    """Return a value in another dtype."""
    return x if ctx.type(x).dtype == dtype else ctx.cast(x, dtype)


def emit_in(
    ctx: ExportContext, domain: Domain, op: str, tensors: Mapping[str, Value], **inputs: Argument
) -> Value:
    """Append an operation that gives the node's result, in dtypes that it takes.

    Args:
        ctx: The context of the converter.
        domain: Dtypes that the operator takes.
        op: The operator.
        tensors: Inputs of the one dtype that the operator computes in.
        inputs: Its other inputs.
    """
    dtype = ctx.type(next(iter(tensors.values()))).dtype
    work = compute_dtype(ctx, dtype, domain)
    given: dict[str, Argument] = {name: cast_to(ctx, x, work) for name, x in tensors.items()}
    result = ctx.result_type()
    found = ctx.emit(op, TensorType(result.shape, work), **given, **inputs)
    return cast_to(ctx, found, result.dtype)
