"""Facts about the operators of ONNX: every version at which one changed, and how.

The default operator set (``ai.onnx``), versions 1 to 28, after the operator
changelog of ONNX. The first entry of an operator is the version that brought it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

__all__ = [
    "CHANGES", "DEFAULT_TARGET", "FIRST_WITH_FUNCTIONS", "LOWEST_TARGET", "MICROSOFT_OPERATORS",
    "ML_CHANGES", "NEWEST", "NEWEST_IR", "RUNTIME_OPERATORS", "Change",
]  # fmt: skip


class Change(Enum):
    """What a new version of an operator altered."""

    NEW = "new"
    FORM = "form"
    """Names, order or number of inputs, outputs or attributes, or a default."""
    MEANING = "meaning"
    """The result for operands and attributes that were valid before."""
    TYPES = "types"
    """Element types, or the wording only."""
    REMOVED = "removed"


NEWEST: Final = 28
"""Newest version of the operator set known here."""

NEWEST_IR: Final = 14
"""Newest version of the file format itself known here."""

LOWEST_TARGET: Final = 11
"""Lowest version that is written."""

FIRST_WITH_FUNCTIONS: Final = 15
"""First version of the operator set with which a model may have local functions."""

DEFAULT_TARGET: Final = 17
"""Version that is written unless another is asked for."""

_NEW, _FORM, _MEANING = Change.NEW, Change.FORM, Change.MEANING
_TYPES, _REMOVED = Change.TYPES, Change.REMOVED

_SINCE_21: Final = {21: _TYPES, 23: _TYPES, 24: _TYPES, 25: _TYPES}
_SINCE_19: Final = {19: _TYPES, **_SINCE_21}
"""Versions that brought element types to what takes any."""

CHANGES: Final[Mapping[str, Mapping[int, Change]]] = MappingProxyType(
    {
        "Abs": {1: _NEW, 6: _FORM, 13: _TYPES},
        "Acos": {7: _NEW, 22: _TYPES},
        "Acosh": {9: _NEW, 22: _TYPES},
        "Add": {1: _NEW, 6: _FORM, 7: _FORM, 13: _TYPES, 14: _TYPES},
        "AffineGrid": {20: _NEW},
        "And": {1: _NEW, 7: _FORM},
        "ArgMax": {1: _NEW, 11: _TYPES, 12: _FORM, 13: _TYPES},
        "ArgMin": {1: _NEW, 11: _TYPES, 12: _FORM, 13: _TYPES},
        "Asin": {7: _NEW, 22: _TYPES},
        "Asinh": {9: _NEW, 22: _TYPES},
        "Atan": {7: _NEW, 22: _TYPES},
        "Atanh": {9: _NEW, 22: _TYPES},
        "Attention": {23: _NEW, 24: _FORM, 25: _FORM},
        "AveragePool": {1: _NEW, 7: _FORM, 10: _FORM, 11: _TYPES, 19: _MEANING, 22: _TYPES},
        "BatchNormalization": {1: _NEW, 6: _FORM, 7: _FORM, 9: _MEANING, 14: _FORM, 15: _TYPES},
        "Bernoulli": {15: _NEW, 22: _TYPES},
        "BitCast": {26: _NEW},
        "BitShift": {11: _NEW, 28: _TYPES},
        "BitwiseAnd": {18: _NEW},
        "BitwiseNot": {18: _NEW},
        "BitwiseOr": {18: _NEW},
        "BitwiseXor": {18: _NEW},
        "BlackmanWindow": {17: _NEW},
        "Cast": {
            1: _NEW,
            6: _FORM,
            9: _TYPES,
            13: _TYPES,
            19: _FORM,
            21: _TYPES,
            23: _TYPES,
            24: _FORM,
            25: _TYPES,
            28: _TYPES,
        },
        "CastLike": {15: _NEW, 19: _FORM, 21: _TYPES, 23: _TYPES, 24: _FORM, 25: _TYPES},
        "CausalConvWithState": {27: _NEW},
        "Ceil": {1: _NEW, 6: _FORM, 13: _TYPES},
        "Celu": {12: _NEW, 28: _TYPES},
        "CenterCropPad": {18: _NEW},
        "Clip": {1: _NEW, 6: _FORM, 11: _FORM, 12: _TYPES, 13: _TYPES},
        "Col2Im": {18: _NEW},
        "Compress": {9: _NEW, 11: _TYPES, 28: _TYPES},
        "Concat": {1: _NEW, 4: _FORM, 11: _TYPES, 13: _TYPES},
        "ConcatFromSequence": {11: _NEW},
        "Constant": {1: _NEW, 9: _TYPES, 11: _FORM, 12: _FORM, 13: _TYPES, **_SINCE_19},
        "ConstantOfShape": {9: _NEW, 20: _TYPES, **_SINCE_21},
        "Conv": {1: _NEW, 11: _TYPES, 22: _TYPES},
        "ConvInteger": {10: _NEW},
        "ConvTranspose": {1: _NEW, 11: _TYPES, 22: _TYPES},
        "Cos": {7: _NEW, 22: _TYPES},
        "Cosh": {9: _NEW, 22: _TYPES},
        "CumProd": {26: _NEW},
        "CumSum": {11: _NEW, 14: _TYPES},
        "DFT": {17: _NEW, 20: _FORM},
        "DeformConv": {19: _NEW, 22: _TYPES},
        "DepthToSpace": {1: _NEW, 11: _FORM, 13: _TYPES, 28: _TYPES},
        "DequantizeLinear": {
            10: _NEW,
            13: _FORM,
            19: _TYPES,
            21: _FORM,
            23: _FORM,
            24: _TYPES,
            25: _TYPES,
            28: _TYPES,
        },
        "Det": {11: _NEW, 22: _TYPES},
        "Div": {1: _NEW, 6: _FORM, 7: _FORM, 13: _TYPES, 14: _TYPES},
        "Dropout": {1: _NEW, 6: _FORM, 7: _FORM, 10: _TYPES, 12: _FORM, 13: _TYPES, 22: _TYPES},
        "DynamicQuantizeLinear": {11: _NEW},
        "Einsum": {12: _NEW, 28: _TYPES},
        "Elu": {1: _NEW, 6: _FORM, 22: _TYPES},
        "Equal": {1: _NEW, 7: _FORM, 11: _TYPES, 13: _TYPES, 19: _TYPES},
        "Erf": {9: _NEW, 13: _TYPES},
        "Exp": {1: _NEW, 6: _FORM, 13: _TYPES},
        "Expand": {8: _NEW, 13: _TYPES},
        "EyeLike": {9: _NEW, 22: _TYPES},
        "Flatten": {1: _NEW, 9: _TYPES, 11: _TYPES, 13: _TYPES, **_SINCE_21},
        "Floor": {1: _NEW, 6: _FORM, 13: _TYPES},
        "GRU": {1: _NEW, 3: _FORM, 7: _FORM, 14: _FORM, 22: _TYPES},
        "Gather": {1: _NEW, 11: _TYPES, 13: _TYPES},
        "GatherElements": {11: _NEW, 13: _TYPES},
        "GatherND": {11: _NEW, 12: _FORM, 13: _TYPES},
        "Gelu": {20: _NEW},
        "Gemm": {1: _NEW, 6: _TYPES, 7: _FORM, 9: _TYPES, 11: _FORM, 13: _TYPES},
        "GlobalAveragePool": {1: _NEW, 22: _TYPES},
        "GlobalLpPool": {1: _NEW, 2: _FORM, 22: _TYPES},
        "GlobalMaxPool": {1: _NEW, 22: _TYPES},
        "Greater": {1: _NEW, 7: _FORM, 9: _TYPES, 13: _TYPES},
        "GreaterOrEqual": {12: _NEW, 16: _TYPES},
        "GridSample": {16: _NEW, 20: _MEANING, 22: _TYPES},
        "GroupNormalization": {18: _REMOVED, 21: _MEANING},
        "HammingWindow": {17: _NEW},
        "HannWindow": {17: _NEW},
        "HardSigmoid": {1: _NEW, 6: _FORM, 22: _TYPES},
        "HardSwish": {14: _NEW, 22: _TYPES},
        "Hardmax": {1: _NEW, 11: _TYPES, 13: _MEANING},
        "Identity": {1: _NEW, 13: _TYPES, 14: _TYPES, 16: _TYPES, **_SINCE_19},
        "If": {1: _NEW, 11: _TYPES, 13: _TYPES, 16: _TYPES, **_SINCE_19},
        "ImageDecoder": {20: _NEW},
        "InstanceNormalization": {1: _NEW, 6: _FORM, 22: _TYPES},
        "IsInf": {10: _NEW, 20: _TYPES},
        "IsNaN": {9: _NEW, 13: _TYPES, 20: _TYPES},
        "LRN": {1: _NEW, 13: _TYPES},
        "LSTM": {1: _NEW, 7: _FORM, 14: _FORM, 22: _TYPES},
        "LayerNormalization": {17: _NEW},
        "LeakyRelu": {1: _NEW, 6: _FORM, 16: _TYPES},
        "Less": {1: _NEW, 7: _FORM, 9: _TYPES, 13: _TYPES},
        "LessOrEqual": {12: _NEW, 16: _TYPES},
        "LinearAttention": {27: _NEW},
        "Log": {1: _NEW, 6: _FORM, 13: _TYPES},
        "LogSoftmax": {1: _NEW, 11: _TYPES, 13: _MEANING},
        "Loop": {1: _NEW, 11: _TYPES, 13: _TYPES, 16: _TYPES, **_SINCE_19},
        "LpNormalization": {1: _NEW, 22: _TYPES},
        "LpPool": {1: _NEW, 2: _FORM, 11: _TYPES, 18: _FORM, 22: _TYPES},
        "MatMul": {1: _NEW, 9: _TYPES, 13: _TYPES},
        "MatMulInteger": {10: _NEW},
        "Max": {1: _NEW, 6: _FORM, 8: _TYPES, 12: _TYPES, 13: _TYPES},
        "MaxPool": {1: _NEW, 8: _FORM, 10: _FORM, 11: _TYPES, 12: _TYPES, 22: _TYPES},
        "MaxRoiPool": {1: _NEW, 22: _TYPES},
        "MaxUnpool": {9: _NEW, 11: _TYPES, 22: _TYPES},
        "Mean": {1: _NEW, 6: _FORM, 8: _TYPES, 13: _TYPES},
        "MeanVarianceNormalization": {9: _NEW, 13: _TYPES},
        "MelWeightMatrix": {17: _NEW},
        "Min": {1: _NEW, 6: _FORM, 8: _TYPES, 12: _TYPES, 13: _TYPES},
        "Mish": {18: _NEW, 22: _TYPES},
        "Mod": {10: _NEW, 13: _TYPES, 28: _TYPES},
        "Mul": {1: _NEW, 6: _FORM, 7: _FORM, 13: _TYPES, 14: _TYPES},
        "Multinomial": {7: _NEW, 22: _TYPES},
        "Neg": {1: _NEW, 6: _FORM, 13: _TYPES},
        "NegativeLogLikelihoodLoss": {12: _NEW, 13: _TYPES, 22: _TYPES},
        "NonMaxSuppression": {10: _NEW, 11: _TYPES},
        "NonZero": {9: _NEW, 13: _TYPES},
        "Not": {1: _NEW},
        "OneHot": {9: _NEW, 11: _TYPES, 28: _TYPES},
        "Optional": {15: _NEW, 28: _TYPES},
        "OptionalGetElement": {15: _NEW, 18: _TYPES, 28: _TYPES},
        "OptionalHasElement": {15: _NEW, 18: _FORM, 28: _TYPES},
        "Or": {1: _NEW, 7: _FORM},
        "PRelu": {1: _NEW, 6: _FORM, 7: _TYPES, 9: _TYPES, 16: _TYPES},
        "Pad": {1: _NEW, 2: _FORM, 11: _FORM, 13: _TYPES, 18: _FORM, **_SINCE_19},
        "Pow": {1: _NEW, 7: _FORM, 12: _TYPES, 13: _TYPES, 15: _TYPES},
        "QLinearConv": {10: _NEW},
        "QLinearMatMul": {10: _NEW, 21: _TYPES},
        "QuantizeLinear": {
            10: _NEW,
            13: _FORM,
            19: _FORM,
            21: _FORM,
            23: _FORM,
            24: _TYPES,
            25: _TYPES,
            28: _TYPES,
        },
        "RMSNormalization": {23: _NEW},
        "RNN": {1: _NEW, 7: _FORM, 14: _FORM, 22: _TYPES},
        "RandomNormal": {1: _NEW, 22: _TYPES},
        "RandomNormalLike": {1: _NEW, 22: _TYPES},
        "RandomUniform": {1: _NEW, 22: _TYPES},
        "RandomUniformLike": {1: _NEW, 22: _TYPES},
        "Range": {11: _NEW, 27: _FORM},
        "Reciprocal": {1: _NEW, 6: _FORM, 13: _TYPES},
        "ReduceL1": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM},
        "ReduceL2": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM},
        "ReduceLogSum": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM, 28: _TYPES},
        "ReduceLogSumExp": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM, 28: _TYPES},
        "ReduceMax": {1: _NEW, 11: _TYPES, 12: _TYPES, 13: _TYPES, 18: _FORM, 20: _TYPES},
        "ReduceMean": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM},
        "ReduceMin": {1: _NEW, 11: _TYPES, 12: _TYPES, 13: _TYPES, 18: _FORM, 20: _TYPES},
        "ReduceProd": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM},
        "ReduceSum": {1: _NEW, 11: _TYPES, 13: _FORM},
        "ReduceSumSquare": {1: _NEW, 11: _TYPES, 13: _TYPES, 18: _FORM},
        "RegexFullMatch": {20: _NEW},
        "Relu": {1: _NEW, 6: _FORM, 13: _TYPES, 14: _TYPES},
        "Reshape": {1: _NEW, 5: _FORM, 13: _TYPES, 14: _FORM, **_SINCE_19},
        "Resize": {10: _NEW, 11: _MEANING, 13: _FORM, 18: _FORM, 19: _TYPES},
        "ReverseSequence": {10: _NEW, 28: _TYPES},
        "RoiAlign": {10: _NEW, 16: _FORM, 22: _TYPES},
        "RotaryEmbedding": {23: _NEW},
        "Round": {11: _NEW, 22: _TYPES},
        "STFT": {17: _NEW},
        "Scan": {8: _NEW, 9: _MEANING, 11: _TYPES, 16: _TYPES, **_SINCE_19},
        "Scatter": {9: _NEW, 11: _REMOVED},
        "ScatterElements": {11: _NEW, 13: _TYPES, 16: _FORM, 18: _TYPES},
        "ScatterND": {11: _NEW, 13: _TYPES, 16: _FORM, 18: _TYPES},
        "Selu": {1: _NEW, 6: _FORM, 22: _TYPES},
        "SequenceAt": {11: _NEW},
        "SequenceConstruct": {11: _NEW},
        "SequenceEmpty": {11: _NEW},
        "SequenceErase": {11: _NEW},
        "SequenceInsert": {11: _NEW},
        "SequenceLength": {11: _NEW},
        "SequenceMap": {17: _NEW},
        "Shape": {1: _NEW, 13: _TYPES, 15: _FORM, **_SINCE_19},
        "Shrink": {9: _NEW},
        "Sigmoid": {1: _NEW, 6: _FORM, 13: _TYPES},
        "Sign": {9: _NEW, 13: _TYPES},
        "Sin": {7: _NEW, 22: _TYPES},
        "Sinh": {9: _NEW, 22: _TYPES},
        "Size": {1: _NEW, 13: _TYPES, **_SINCE_19},
        "Slice": {1: _NEW, 10: _FORM, 11: _TYPES, 13: _TYPES},
        "Softmax": {1: _NEW, 11: _TYPES, 13: _MEANING},
        "SoftmaxCrossEntropyLoss": {12: _NEW, 13: _TYPES},
        "Softplus": {1: _NEW, 22: _TYPES},
        "Softsign": {1: _NEW, 22: _TYPES},
        "SpaceToDepth": {1: _NEW, 13: _TYPES, 28: _FORM},
        "Split": {1: _NEW, 2: _FORM, 11: _TYPES, 13: _FORM, 18: _FORM},
        "SplitToSequence": {11: _NEW, 24: _TYPES},
        "Sqrt": {1: _NEW, 6: _FORM, 13: _TYPES},
        "Squeeze": {1: _NEW, 11: _TYPES, 13: _FORM, **_SINCE_21},
        "StringConcat": {20: _NEW},
        "StringNormalizer": {10: _NEW},
        "StringSplit": {20: _NEW},
        "Sub": {1: _NEW, 6: _FORM, 7: _FORM, 13: _TYPES, 14: _TYPES},
        "Sum": {1: _NEW, 6: _FORM, 8: _TYPES, 13: _TYPES},
        "SwiGLU": {28: _NEW},
        "Swish": {24: _NEW},
        "Tan": {7: _NEW, 22: _TYPES},
        "Tanh": {1: _NEW, 6: _FORM, 13: _TYPES},
        "TensorScatter": {24: _NEW},
        "TfIdfVectorizer": {9: _NEW},
        "ThresholdedRelu": {10: _NEW, 22: _TYPES},
        "Tile": {1: _NEW, 6: _FORM, 13: _TYPES},
        "TopK": {1: _NEW, 10: _FORM, 11: _FORM, 24: _TYPES},
        "Transpose": {1: _NEW, 13: _TYPES, **_SINCE_21},
        "Trilu": {14: _NEW},
        "Unique": {11: _NEW, 28: _TYPES},
        "Unsqueeze": {1: _NEW, 11: _TYPES, 13: _FORM, **_SINCE_21},
        "Upsample": {1: _NEW, 7: _FORM, 9: _FORM, 10: _REMOVED},
        "Where": {9: _NEW, 16: _TYPES},
        "Xor": {1: _NEW, 7: _FORM},
    }
)

_ML_ONCE: Final = (
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer",
    "FeatureVectorizer", "Imputer", "LinearClassifier", "LinearRegressor", "Normalizer",
    "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler", "ZipMap",
)  # fmt: skip

ML_CHANGES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(_ML_ONCE, (1,)),
        "LabelEncoder": (1, 2, 4),
        "TreeEnsemble": (5,),
        "TreeEnsembleClassifier": (1, 3, 5),
        "TreeEnsembleRegressor": (1, 3, 5),
    }
)
"""The versions of the operators of ``ai.onnx.ml``, at each of which one changed."""

MICROSOFT_OPERATORS: Final = frozenset({
    "Attention", "AttnLSTM", "BeamSearch", "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax",
    "BiasSplitGelu", "BifurcationDetector", "BitmaskBiasDropout", "BitmaskDropout",
    "BranchwiseRMSNorm", "CDist", "CausalConvWithState", "ComplexMul", "ComplexMulConj",
    "ConvStateReplay", "ConvTransposeWithDynamicPads", "CropAndResize", "DecoderAttention",
    "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "DequantizeBFP",
    "DequantizeLinear", "DequantizeWithOrder", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul",
    "DynamicSparseAttention", "DynamicTimeWarping", "EPContext", "EmbedLayerNormalization",
    "EngramGate", "ExpandDims", "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul",
    "FusedMatMulActivation", "GatedAdd", "GatedDeltaNet", "GatedDeltaNetStateReplay",
    "GatedRMSNorm", "GatedRelativePositionBias", "GatherBlockQuantized", "GatherND", "GatherPacked",
    "Gelu", "GemmFastGelu", "GemmFloat8", "GemmaRotaryEmbedding", "GreedySearch", "GridSample",
    "GroupNorm", "GroupQueryAttention", "HyperConnectionLowRankMix", "HyperConnectionPostMix",
    "HyperConnectionPreMix", "Inverse", "Irfft", "IsAllFinite", "LinearAttention",
    "LinearAttentionGate", "LongformerAttention", "MRotaryEmbedding", "Mamba2Verify",
    "MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", "MatMulBnb4", "MatMulFpQ4",
    "MatMulInteger16", "MatMulIntegerToFloat", "MatMulNBits", "MatMulNBitsMlp", "MatMulNBitsQLoRA",
    "MatMulNBitsQkv", "MatMulPacked", "MaxpoolWithMask", "MoE", "MoEGroupRouter", "MoEPacked",
    "MulInteger", "MultiHeadAttention", "MurmurHash3", "NGramHashMapping", "NGramRepeatBlock",
    "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "PackedAttention", "PackedMultiHeadAttention",
    "PackedSparseAttentionIndexer", "PackedSparseAttentionIndexerMerge", "Pad", "PagedAttention",
    "QAttention", "QEmbedLayerNormalization", "QGemm", "QLinearAdd", "QLinearAveragePool",
    "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul",
    "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QMoE",
    "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization",
    "QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeBFP", "QuantizeLinear",
    "QuantizeWithOrder", "QuickGelu", "RMSNormRotary", "Range", "ReduceSumInteger",
    "RelativePositionBias", "RemovePadding", "RestorePadding", "Rfft", "RotaryEmbedding",
    "RouterGateUpProj", "SampleOp", "Sampling", "ScaledSiLU", "SkipGroupNorm",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Snpe", "SparseAttention",
    "SparseAttentionIndexer", "SparsePagedAttention", "SparseToDenseMatMul",
    "SpeculativePrefixCommit", "SwiGLU", "Tokenizer", "TorchEmbedding", "TransposeMatMul", "Trilu",
    "UnfoldTensor", "Unique", "VarlenCausalConvWithState", "VarlenNGramHashMapping",
    "WhisperBeamSearch", "WordConvEmbedding",
})  # fmt: skip
"""The operators of ``com.microsoft``, all of version 1, as ONNX Runtime 1.32 has them."""

RUNTIME_OPERATORS: Final = frozenset({"SimplifiedLayerNormalization"})
"""Operators that ONNX Runtime adds to ONNX's own domain, of version 1."""
