"""Models of one TFLite operator for each way that it can be used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from support.tflite_models import Node, T, make_graph, make_model

__all__ = ["CASES", "Case"]

Case = tuple[str, bytes]

FLOAT = ("float32",)
NUMBERS = ("float32", "int32", "int64")
ANY = ("float32", "int32", "int64", "int8", "uint8", "int16", "bool")


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(name.encode()))


def _unary() -> Iterator[Case]:
    kinds = {
        "ABS": ("AbsOptions", ("float32", "int32")),
        "CEIL": ("", FLOAT),
        "COS": ("CosOptions", FLOAT),
        "ELU": ("", FLOAT),
        "EXP": ("ExpOptions", FLOAT),
        "FLOOR": ("", FLOAT),
        "HARD_SWISH": ("HardSwishOptions", FLOAT),
        "LOGISTIC": ("", FLOAT),
        "LOG_SOFTMAX": ("LogSoftmaxOptions", FLOAT),
        "LOGICAL_NOT": ("LogicalNotOptions", ("bool",)),
        "NEG": ("NegOptions", NUMBERS),
        "RELU": ("", FLOAT),
        "RELU6": ("", FLOAT),
        "RELU_N1_TO_1": ("", FLOAT),
        "RELU_0_TO_1": ("", FLOAT),
        "ROUND": ("", FLOAT),
        "SIGN": ("SignOptions", ("float32", "int32")),
        "SIN": ("", FLOAT),
        "SQUARE": ("SquareOptions", FLOAT),
        "TANH": ("", FLOAT),
        "ZEROS_LIKE": ("ZerosLikeOptions", NUMBERS),
    }
    for op, (kind, dtypes) in kinds.items():
        for dtype in dtypes:
            for shape in ((2, 3, 4), (5,)):
                x = T(shape, dtype)
                yield f"{op} {dtype} {shape}", make_model(op, [x], [T(shape, dtype)], kind)
    for op in ("LOG", "SQRT", "RSQRT"):
        x = T((3, 4))
        yield f"{op} float32", make_model(op, [x], [T((3, 4))])
    for alpha in (0.1, 0.0, 1.5):
        yield (
            f"LEAKY_RELU {alpha}",
            make_model("LEAKY_RELU", [T((2, 5))], [T((2, 5))], "LeakyReluOptions", alpha=alpha),
        )
    for approximate in (False, True):
        yield (
            f"GELU {approximate}",
            make_model("GELU", [T((2, 5))], [T((2, 5))], "GeluOptions", approximate=approximate),
        )
    for beta in (1.0, 0.5):
        for shape in ((2, 5), (1, 2, 3, 4)):
            yield (
                f"SOFTMAX {beta} {shape}",
                make_model("SOFTMAX", [T(shape)], [T(shape)], "SoftmaxOptions", beta=beta),
            )
    for slope in ((4,), (3, 4), (1, 1, 4)):
        alpha = T(slope, data=_rng("prelu").normal(size=slope))
        yield f"PRELU {slope}", make_model("PRELU", [T((2, 3, 4)), alpha], [T((2, 3, 4))])


SHAPES = (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (2, 1, 4)), ((5,), ()))


def _binary() -> Iterator[Case]:
    arithmetic = {
        "ADD": ("AddOptions", NUMBERS),
        "SUB": ("SubOptions", NUMBERS),
        "MUL": ("MulOptions", NUMBERS),
        "DIV": ("DivOptions", ("float32", "int32")),
    }
    for op, (kind, dtypes) in arithmetic.items():
        for dtype, (left, right) in product(dtypes, SHAPES):
            for function in (0, 1, 2, 3) if dtype == "float32" else (0,):
                shape = np.broadcast_shapes(left, right)
                inputs = [T(left, dtype), _divisor(op, right, dtype)]
                made = make_model(
                    op, inputs, [T(shape, dtype)], kind, fusedActivationFunction=function
                )
                yield f"{op} {dtype} {left} {right} {function}", made
    others = {
        "MAXIMUM": ("MaximumMinimumOptions", NUMBERS, ""),
        "MINIMUM": ("MaximumMinimumOptions", NUMBERS, ""),
        "FLOOR_DIV": ("FloorDivOptions", ("float32", "int32"), ""),
        "FLOOR_MOD": ("FloorModOptions", ("float32", "int32", "int64"), ""),
        "POW": ("PowOptions", ("float32",), ""),
        "SQUARED_DIFFERENCE": ("SquaredDifferenceOptions", ("float32", "int32"), ""),
        "EQUAL": ("EqualOptions", NUMBERS, "bool"),
        "NOT_EQUAL": ("NotEqualOptions", NUMBERS, "bool"),
        "LESS": ("LessOptions", NUMBERS, "bool"),
        "LESS_EQUAL": ("LessEqualOptions", NUMBERS, "bool"),
        "GREATER": ("GreaterOptions", NUMBERS, "bool"),
        "GREATER_EQUAL": ("GreaterEqualOptions", NUMBERS, "bool"),
        "LOGICAL_AND": ("LogicalAndOptions", ("bool",), ""),
        "LOGICAL_OR": ("LogicalOrOptions", ("bool",), ""),
        "ATAN2": ("ATan2Options", FLOAT, ""),
        "BITWISE_XOR": ("BitwiseXorOptions", ("int32", "uint8"), ""),
        "RIGHT_SHIFT": ("RightShiftOptions", ("int32",), ""),
    }
    for op, (kind, dtypes, gives) in others.items():
        for dtype, (left, right) in product(dtypes, SHAPES[:1] if op == "ATAN2" else SHAPES[:3]):
            shape = np.broadcast_shapes(left, right)
            inputs = [T(left, dtype), _divisor(op, right, dtype)]
            made = make_model(op, inputs, [T(shape, gives or dtype)], kind)
            yield f"{op} {dtype} {left} {right}", made
    values = [T((2, 3)), T((2, 3)), T((2, 3))]
    yield "ADD_N", make_model("ADD_N", values, [T((2, 3))], "AddNOptions")


def _divisor(op: str, shape: tuple[int, ...], dtype: str) -> T:
    """What is divided by, or shifts, is a constant that can be."""
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        values = _rng(op).choice([-3, -2, 2, 3], shape)
        return T(shape, dtype, data=values)
    if op == "RIGHT_SHIFT":
        return T(shape, dtype, data=_rng(op).integers(0, 5, shape))
    if op == "POW":
        return T(shape, dtype, data=_rng(op).choice([2.0, 3.0, 1.0], shape))
    return T(shape, dtype)


def _casts() -> Iterator[Case]:
    for source, target in product(ANY, ANY):
        if source != target:
            made = make_model("CAST", [T((2, 3), source)], [T((2, 3), target)], "CastOptions")
            yield f"CAST {source} {target}", made
    for dtype in ("float32", "int32", "bool", "int8"):
        values = [T((2, 3), "bool"), T((2, 3), dtype), T((2, 3), dtype)]
        yield f"SELECT {dtype}", make_model("SELECT", values, [T((2, 3), dtype)], "SelectOptions")
        rows = [T((2,), "bool"), *values[1:]]
        yield (
            f"SELECT rows {dtype}",
            make_model("SELECT", rows, [T((2, 3), dtype)], "SelectOptions"),
        )
        wide = [T((2, 1), "bool"), T((3,), dtype), T((2, 3), dtype)]
        yield (
            f"SELECT_V2 {dtype}",
            make_model("SELECT_V2", wide, [T((2, 3), dtype)], "SelectV2Options"),
        )


def _ints(values: Any, dtype: str = "int32") -> T:
    array = np.asarray(values, dtype)
    return T(array.shape, dtype, data=array)


def _shapes() -> Iterator[Case]:
    x = T((2, 3, 4))
    for dtype in ANY:
        y = T((2, 3, 4), dtype)
        yield (
            f"RESHAPE {dtype}",
            make_model("RESHAPE", [y, _ints([4, -1])], [T((4, 6), dtype)], "ReshapeOptions"),
        )
        for perm in ((2, 0, 1), (1, 0, 2)):
            shape = tuple((2, 3, 4)[i] for i in perm)
            yield (
                f"TRANSPOSE {dtype} {perm}",
                make_model("TRANSPOSE", [y, _ints(perm)], [T(shape, dtype)], "TransposeOptions"),
            )
        yield (
            f"CONCATENATION {dtype}",
            make_model(
                "CONCATENATION",
                [y, y, T((2, 1, 4), dtype)],
                [T((2, 7, 4), dtype)],
                "ConcatenationOptions",
                axis=1,
            ),
        )
        yield (
            f"TILE {dtype}",
            make_model("TILE", [y, _ints([2, 1, 3])], [T((4, 3, 12), dtype)], "TileOptions"),
        )
        yield (
            f"REVERSE_V2 {dtype}",
            make_model("REVERSE_V2", [y, _ints([1])], [y], "ReverseV2Options"),
        )
        yield (
            f"SHAPE {dtype}",
            make_model("SHAPE", [y], [T((3,), "int32")], "ShapeOptions", outType=2),
        )
        yield f"RANK {dtype}", make_model("RANK", [y], [T((), "int32")], "RankOptions")
        yield (
            f"PACK {dtype}",
            make_model(
                "PACK", [y, y], [T((2, 2, 3, 4), dtype)], "PackOptions", axis=1, valuesCount=2
            ),
        )
        yield (
            f"UNPACK {dtype}",
            make_model("UNPACK", [y], [T((2, 4), dtype)] * 3, "UnpackOptions", axis=1, num=3),
        )
        yield (
            f"EXPAND_DIMS {dtype}",
            make_model(
                "EXPAND_DIMS", [y, _ints(-2)], [T((2, 3, 1, 4), dtype)], "ExpandDimsOptions"
            ),
        )
        yield (
            f"GATHER {dtype}",
            make_model(
                "GATHER",
                [y, _ints([[2, 0], [1, 1]])],
                [T((2, 2, 2, 4), dtype)],
                "GatherOptions",
                axis=1,
            ),
        )
        yield (
            f"SLICE {dtype}",
            make_model(
                "SLICE",
                [y, _ints([0, 1, 1]), _ints([2, -1, 2])],
                [T((2, 2, 2), dtype)],
                "SliceOptions",
            ),
        )
        yield (
            f"STRIDED_SLICE {dtype}",
            make_model(
                "STRIDED_SLICE",
                [y, _ints([0, 2, 0]), _ints([2, 0, 4]), _ints([1, -1, 2])],
                [T((2, 2, 2), dtype)],
                "StridedSliceOptions",
            ),
        )
    yield (
        "SQUEEZE some",
        make_model("SQUEEZE", [T((1, 3, 1, 4))], [T((3, 1, 4))], "SqueezeOptions", squeezeDims=[0]),
    )
    yield "SQUEEZE all", make_model("SQUEEZE", [T((1, 3, 1, 4))], [T((3, 4))], "SqueezeOptions")
    yield (
        "RESHAPE options",
        make_model("RESHAPE", [x], [T((6, 4))], "ReshapeOptions", newShape=[6, 4]),
    )
    masks = (
        {"beginMask": 1, "endMask": 6},
        {"shrinkAxisMask": 2},
        {"newAxisMask": 1},
        {"ellipsisMask": 1, "shrinkAxisMask": 4},
        {"ellipsisMask": 2},
    )
    shapes = ((2, 1, 4), (2, 2), (1, 2, 1, 4), (2, 3), (2, 3, 2))
    operands = (
        ([1, 1, 1], [2, 2, 2], [1, 1, 1]),
        ([0, 1, 1], [2, 2, 3], [1, 1, 1]),
        ([0, 0, 1], [0, 2, 2], [1, 1, 1]),
        ([0, 0, 1], [0, 0, 2], [1, 1, 1]),
        ([0, 0, 1], [2, 0, 3], [1, 1, 1]),
    )
    for mask, shape, parts in zip(masks, shapes, operands, strict=True):
        made = make_model(
            "STRIDED_SLICE", [x, *map(_ints, parts)], [T(shape)], "StridedSliceOptions", **mask
        )
        yield f"STRIDED_SLICE {mask}", made
    for count in (2, 4):
        yield (
            f"SPLIT {count}",
            make_model(
                "SPLIT",
                [_ints(2), x],
                [T((2, 3, 4 // count))] * count,
                "SplitOptions",
                numSplits=count,
            ),
        )
    yield (
        "SPLIT_V",
        make_model(
            "SPLIT_V",
            [x, _ints([1, -1]), _ints(1)],
            [T((2, 1, 4)), T((2, 2, 4))],
            "SplitVOptions",
            numSplits=2,
        ),
    )
    yield (
        "BROADCAST_TO",
        make_model(
            "BROADCAST_TO", [T((3, 1)), _ints([2, 3, 4])], [T((2, 3, 4))], "BroadcastToOptions"
        ),
    )
    for dtype in NUMBERS:
        yield (
            f"FILL {dtype}",
            make_model("FILL", [_ints([2, 3]), T((), dtype)], [T((2, 3), dtype)], "FillOptions"),
        )
    for dtype in ("float32", "int32"):
        parts = [_ints(v, dtype) for v in (1, 8, 2)]
        yield f"RANGE {dtype}", make_model("RANGE", parts, [T((4,), dtype)], "RangeOptions")
    yield (
        "REVERSE_SEQUENCE",
        make_model(
            "REVERSE_SEQUENCE",
            [x, _ints([2, 3])],
            [x],
            "ReverseSequenceOptions",
            seqDim=1,
            batchDim=0,
        ),
    )
    image = T((2, 4, 6, 3))
    yield (
        "SPACE_TO_DEPTH",
        make_model(
            "SPACE_TO_DEPTH", [image], [T((2, 2, 3, 12))], "SpaceToDepthOptions", blockSize=2
        ),
    )
    yield (
        "DEPTH_TO_SPACE",
        make_model(
            "DEPTH_TO_SPACE", [T((2, 2, 3, 12))], [image], "DepthToSpaceOptions", blockSize=2
        ),
    )
    yield (
        "SPACE_TO_BATCH_ND",
        make_model(
            "SPACE_TO_BATCH_ND",
            [image, _ints([2, 3]), _ints([[0, 0], [1, 2]])],
            [T((12, 2, 3, 3))],
            "SpaceToBatchNDOptions",
        ),
    )
    yield (
        "BATCH_TO_SPACE_ND",
        make_model(
            "BATCH_TO_SPACE_ND",
            [T((12, 2, 3, 3)), _ints([2, 3]), _ints([[0, 0], [1, 2]])],
            [image],
            "BatchToSpaceNDOptions",
        ),
    )
    for dtype in ("float32", "int32", "int64"):
        y = T((2, 3), dtype)
        pads = _ints([[1, 0], [2, 3]])
        yield f"PAD {dtype}", make_model("PAD", [y, pads], [T((3, 8), dtype)], "PadOptions")
        value = _ints(7, dtype)
        yield (
            f"PADV2 {dtype}",
            make_model("PADV2", [y, pads, value], [T((3, 8), dtype)], "PadV2Options"),
        )
    for mode in (0, 1):
        yield (
            f"MIRROR_PAD {mode}",
            make_model(
                "MIRROR_PAD",
                [T((3, 4)), _ints([[1, 2], [2, 0]])],
                [T((6, 6))],
                "MirrorPadOptions",
                mode=mode,
            ),
        )
    yield "MATRIX_DIAG", make_model("MATRIX_DIAG", [T((2, 3))], [T((2, 3, 3))], "MatrixDiagOptions")
    yield (
        "MATRIX_SET_DIAG",
        make_model(
            "MATRIX_SET_DIAG", [T((2, 3, 4)), T((2, 3))], [T((2, 3, 4))], "MatrixSetDiagOptions"
        ),
    )
    yield (
        "DILATE",
        make_model("DILATE", [T((2, 3)), _ints([2, 3]), _ints(5, "float32")], [T((3, 7))]),
    )


def _indices() -> Iterator[Case]:
    x = T((3, 4))
    for dtype in ("float32", "int32"):
        y = T((3, 4), dtype)
        yield (
            f"GATHER_ND {dtype}",
            make_model(
                "GATHER_ND", [y, _ints([[0, 1], [2, 3]])], [T((2,), dtype)], "GatherNdOptions"
            ),
        )
        yield (
            f"SCATTER_ND {dtype}",
            make_model(
                "SCATTER_ND",
                [_ints([[1], [3], [1]]), T((3, 2), dtype), _ints([4, 2])],
                [T((4, 2), dtype)],
                "ScatterNdOptions",
            ),
        )
        yield (
            f"TOPK_V2 {dtype}",
            make_model(
                "TOPK_V2", [y, _ints(2)], [T((3, 2), dtype), T((3, 2), "int32")], "TopKV2Options"
            ),
        )
        for op, output in product(("ARG_MAX", "ARG_MIN"), ("int32", "int64")):
            kind = "ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions"
            number = 2 if output == "int32" else 4
            yield (
                f"{op} {dtype} {output}",
                make_model(op, [y, _ints(1)], [T((3,), output)], kind, outputType=number),
            )
        for exclusive, reverse in product((False, True), (False, True)):
            yield (
                f"CUMSUM {dtype} {exclusive} {reverse}",
                make_model(
                    "CUMSUM",
                    [y, _ints(1)],
                    [y],
                    "CumsumOptions",
                    exclusive=exclusive,
                    reverse=reverse,
                ),
            )
        for op in ("SUM", "PROD", "MAX", "MIN"):
            yield (
                f"UNSORTED_SEGMENT_{op} {dtype}",
                make_model(
                    f"UNSORTED_SEGMENT_{op}",
                    [y, _ints([2, 0, 2]), _ints(4)],
                    [T((4, 4), dtype)],
                    f"UnsortedSegment{op.capitalize()}Options",
                ),
            )
    for axis in (-1, 0, 1):
        shape = [2, 3]
        shape.insert(axis if axis >= 0 else 2, 5)
        yield (
            f"ONE_HOT {axis}",
            make_model(
                "ONE_HOT",
                [
                    _ints([[0, 4, 7], [2, 1, -1]]),
                    _ints(5),
                    _ints(3, "float32"),
                    _ints(-1, "float32"),
                ],
                [T(tuple(shape))],
                "OneHotOptions",
                axis=axis,
            ),
        )
    for batch in (0, 1):
        shape = (2, 2, 3, 4) if batch == 0 else (2, 2, 4)
        yield (
            f"GATHER batch {batch}",
            make_model(
                "GATHER",
                [T((2, 3, 4)), _ints([[2, 0], [1, 1]])],
                [T((2, 2, 2, 4) if batch == 0 else shape)],
                "GatherOptions",
                axis=1,
                batchDims=batch,
            ),
        )
    yield "WHERE", make_model("WHERE", [T((2, 3), "bool")], [T((-1, 2), "int64")], "WhereOptions")
    yield (
        "UNIQUE",
        make_model(
            "UNIQUE",
            [T((6,), "int32")],
            [T((-1,), "int32"), T((6,), "int32")],
            "UniqueOptions",
            idxOutType=2,
        ),
    )
    yield (
        "BUCKETIZE",
        make_model(
            "BUCKETIZE", [x], [T((3, 4), "int32")], "BucketizeOptions", boundaries=[-1.0, 0.0, 1.0]
        ),
    )
    yield (
        "DYNAMIC_UPDATE_SLICE",
        make_model(
            "DYNAMIC_UPDATE_SLICE",
            [T((4, 5)), T((2, 3)), _ints([3, -1])],
            [T((4, 5))],
            "DynamicUpdateSliceOptions",
        ),
    )
    table = T((4, 3), data=_rng("table").normal(size=(4, 3)))
    yield "EMBEDDING_LOOKUP", make_model("EMBEDDING_LOOKUP", [_ints([2, 0, 3]), table], [T((3, 3))])
    yield (
        "SEGMENT_SUM",
        make_model("SEGMENT_SUM", [x, _ints([0, 0, 2])], [T((3, 4))], "SegmentSumOptions"),
    )
    yield (
        "SPARSE_TO_DENSE",
        make_model(
            "SPARSE_TO_DENSE",
            [_ints([[0, 1], [2, 2]]), _ints([3, 4]), T((2,)), _ints(-1, "float32")],
            [T((3, 4))],
            "SparseToDenseOptions",
        ),
    )


def _reductions() -> Iterator[Case]:
    for op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
        for dtype in ("float32", "int32") if op != "MEAN" else FLOAT:
            for axes, keep in product(([1], [0, -1], [0, 1, 2]), (False, True)):
                shape = np.zeros((2, 3, 4)).sum(tuple(axes), keepdims=keep).shape
                yield (
                    f"{op} {dtype} {axes} {keep}",
                    make_model(
                        op,
                        [T((2, 3, 4), dtype), _ints(axes)],
                        [T(shape, dtype)],
                        "ReducerOptions",
                        keepDims=keep,
                    ),
                )
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        yield (
            op,
            make_model(op, [T((2, 3), "bool"), _ints([1])], [T((2,), "bool")], "ReducerOptions"),
        )
    yield (
        "L2_NORMALIZATION",
        make_model("L2_NORMALIZATION", [T((2, 5))], [T((2, 5))], "L2NormOptions"),
    )


def _length(n: int, k: int, s: int, d: int, padding: int) -> int:
    return -(-n // s) if padding == 0 else (n - (k - 1) * d - 1) // s + 1


def _windows() -> Iterator[Case]:
    for padding, (sh, sw), (dh, dw), function in product(
        (0, 1), ((1, 1), (2, 3)), ((1, 1), (2, 1)), (0, 1, 3)
    ):
        if (sh, sw) != (1, 1) and (dh, dw) != (1, 1):
            continue
        options = {
            "padding": padding,
            "strideH": sh,
            "strideW": sw,
            "dilationHFactor": dh,
            "dilationWFactor": dw,
            "fusedActivationFunction": function,
        }
        oh, ow = _length(8, 3, sh, dh, padding), _length(9, 2, sw, dw, padding)
        rng = _rng("conv")
        bias = T((4,), data=rng.normal(size=4))
        for groups in (1, 2):
            weights = T((4, 3, 2, 6 // groups), data=rng.normal(size=(4, 3, 2, 6 // groups)))
            made = make_model(
                "CONV_2D",
                [T((1, 8, 9, 6)), weights, bias],
                [T((1, oh, ow, 4))],
                "Conv2DOptions",
                **options,
            )
            yield f"CONV_2D {options} {groups}", made
        depth = T((1, 3, 2, 12), data=rng.normal(size=(1, 3, 2, 12)))
        made = make_model(
            "DEPTHWISE_CONV_2D",
            [T((1, 8, 9, 6)), depth, T((12,), data=rng.normal(size=12))],
            [T((1, oh, ow, 12))],
            "DepthwiseConv2DOptions",
            depthMultiplier=2,
            **options,
        )
        yield f"DEPTHWISE_CONV_2D {options}", made
    for op, padding, stride, function in product(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), (0, 1), (1, 2), (0, 1)
    ):
        shape = (1, _length(7, 3, stride, 1, padding), _length(6, 2, stride, 1, padding), 3)
        made = make_model(
            op,
            [T((1, 7, 6, 3))],
            [T(shape)],
            "Pool2DOptions",
            padding=padding,
            strideH=stride,
            strideW=stride,
            filterHeight=3,
            filterWidth=2,
            fusedActivationFunction=function,
        )
        yield f"{op} {padding} {stride} {function}", made
    for padding, stride in product((0, 1), (1, 2, 3)):
        n = 4
        out = n * stride if padding == 0 else (n - 1) * stride + max(3, stride)
        rng = _rng("transposed")
        weights = T((2, 3, 3, 5), data=rng.normal(size=(2, 3, 3, 5)))
        made = make_model(
            "TRANSPOSE_CONV",
            [_ints([1, out, out, 2]), weights, T((1, n, n, 5))],
            [T((1, out, out, 2))],
            "TransposeConvOptions",
            padding=padding,
            strideH=stride,
            strideW=stride,
        )
        yield f"TRANSPOSE_CONV {padding} {stride}", made
    for padding, stride in product((0, 1), (1, 2)):
        length = _length(6, 3, stride, 1, padding)
        weights = T((3, 3, 3, 2, 4), data=_rng("3d").normal(size=(3, 3, 3, 2, 4)))
        made = make_model(
            "CONV_3D",
            [T((1, 6, 6, 6, 2)), weights],
            [T((1, length, length, length, 4))],
            "Conv3DOptions",
            padding=padding,
            strideD=stride,
            strideH=stride,
            strideW=stride,
        )
        yield f"CONV_3D {padding} {stride}", made
    for op, size, corners, centers in product(
        ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
        ((7, 9), (3, 2), (10, 12)),
        (False, True),
        (False, True),
    ):
        if corners and centers:
            continue
        kind = (
            "ResizeBilinearOptions" if op == "RESIZE_BILINEAR" else ("ResizeNearestNeighborOptions")
        )
        made = make_model(
            op,
            [T((1, 5, 6, 3)), _ints(size)],
            [T((1, *size, 3))],
            kind,
            alignCorners=corners,
            halfPixelCenters=centers,
        )
        yield f"{op} {size} {corners} {centers}", made
    yield (
        "LOCAL_RESPONSE_NORMALIZATION",
        make_model(
            "LOCAL_RESPONSE_NORMALIZATION",
            [T((1, 2, 3, 8))],
            [T((1, 2, 3, 8))],
            "LocalResponseNormalizationOptions",
            radius=2,
            bias=1.5,
            alpha=0.3,
            beta=0.7,
        ),
    )


def _products() -> Iterator[Case]:
    for shape, keep, function, with_bias in product(
        ((3, 4), (2, 3, 4), (2, 2, 2)), (False, True), (0, 1, 3), (False, True)
    ):
        columns = 4
        if shape[-1] != columns and keep:
            continue
        rows = int(np.prod(shape)) // columns
        made = (*shape[:-1], 5) if keep else (rows, 5)
        rng = _rng("fc")
        operands = [T(shape), T((5, columns), data=rng.normal(size=(5, columns)))]
        if with_bias:
            operands.append(T((5,), data=rng.normal(size=5)))
        yield (
            f"FULLY_CONNECTED {shape} {keep} {function} {with_bias}",
            make_model(
                "FULLY_CONNECTED",
                operands,
                [T(made)],
                "FullyConnectedOptions",
                keepNumDims=keep,
                fusedActivationFunction=function,
            ),
        )
    for adj_x, adj_y, batch in product((False, True), (False, True), ((2,), (2, 3), ())):
        left = (*batch, 4, 3) if adj_x else (*batch, 3, 4)
        right = (*batch[1:], 5, 4) if adj_y else (*batch[1:], 4, 5)
        yield (
            f"BATCH_MATMUL {adj_x} {adj_y} {batch}",
            make_model(
                "BATCH_MATMUL",
                [T(left), T(right)],
                [T((*batch, 3, 5))],
                "BatchMatMulOptions",
                adjX=adj_x,
                adjY=adj_y,
            ),
        )


CODES = (("int8", 0.05, 3), ("uint8", 0.04, 128), ("int16", 0.0005, 0))


def _quantised() -> Iterator[Case]:
    for dtype, scale, zero in CODES:
        x = T((2, 3, 4), dtype, scale=scale, zero=zero)
        wide = T((2, 3, 4), dtype, scale=scale * 1.7, zero=zero)
        for op in ("ADD", "SUB", "MUL"):
            for function in (0, 1, 3):
                yield (
                    f"{op} codes {dtype} {function}",
                    make_model(
                        op,
                        [x, T((4,), dtype, scale=scale * 0.6, zero=zero)],
                        [wide],
                        f"{op.capitalize()}Options",
                        fusedActivationFunction=function,
                        **({} if op == "MUL" else {"potScaleInt16": False}),
                    ),
                )
        for op, kind in (
            ("RELU", ""),
            ("RELU6", ""),
            ("LOGISTIC", ""),
            ("TANH", ""),
            ("SOFTMAX", "SoftmaxOptions"),
            ("LEAKY_RELU", "LeakyReluOptions"),
            ("HARD_SWISH", "HardSwishOptions"),
        ):
            made = wide
            if op in ("LOGISTIC", "SOFTMAX"):
                zeros = {"int8": -128, "uint8": 0, "int16": 0}[dtype]
                made = T(
                    (2, 3, 4), dtype, scale=1 / (32768 if dtype == "int16" else 256), zero=zeros
                )
            if op == "TANH":
                made = T(
                    (2, 3, 4),
                    dtype,
                    scale=1 / (32768 if dtype == "int16" else 128),
                    zero=128 if dtype == "uint8" else 0,
                )
            if dtype == "int16" and op in ("HARD_SWISH", "RELU", "RELU6"):
                continue
            options = {"beta": 1.0} if op == "SOFTMAX" else {}
            options = {"alpha": 0.3} if op == "LEAKY_RELU" else options
            yield f"{op} codes {dtype}", make_model(op, [x], [made], kind, **options)
        yield (f"QUANTIZE {dtype}", make_model("QUANTIZE", [T((2, 3, 4))], [x], "QuantizeOptions"))
        yield (
            f"DEQUANTIZE {dtype}",
            make_model("DEQUANTIZE", [x], [T((2, 3, 4))], "DequantizeOptions"),
        )
        yield f"QUANTIZE again {dtype}", make_model("QUANTIZE", [x], [wide], "QuantizeOptions")
        yield (
            f"MEAN codes {dtype}",
            make_model(
                "MEAN",
                [x, _ints([1])],
                [T((2, 4), dtype, scale=scale, zero=zero)],
                "ReducerOptions",
            ),
        )
        image = T((1, 6, 6, 4), dtype, scale=scale, zero=zero)
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield (
                f"{op} codes {dtype}",
                make_model(
                    op,
                    [image],
                    [T((1, 3, 3, 4), dtype, scale=scale, zero=zero)],
                    "Pool2DOptions",
                    padding=0,
                    strideH=2,
                    strideW=2,
                    filterHeight=3,
                    filterWidth=3,
                ),
            )
        rng = _rng(dtype)
        weight = "uint8" if dtype == "uint8" else "int8"
        base, zero_w = (128, 128) if weight == "uint8" else (0, 0)
        kernel = rng.integers(-99, 99, (4, 3, 3, 4)) + base
        many = weight == "int8"
        scales = rng.uniform(0.005, 0.02, 4) if many else 0.01
        bias_type = "int64" if dtype == "int16" else "int32"
        bias = T((4,), bias_type, data=rng.integers(-900, 900, 4), scale=scales)
        out = T((1, 6, 6, 4), dtype, scale=scale * 9, zero=zero)
        filters = T((4, 3, 3, 4), weight, data=kernel, scale=scales, zero=zero_w)
        for function in (0, 1, 3):
            yield (
                f"CONV_2D codes {dtype} {function}",
                make_model(
                    "CONV_2D",
                    [image, filters, bias],
                    [out],
                    "Conv2DOptions",
                    version=3,
                    padding=0,
                    strideH=1,
                    strideW=1,
                    fusedActivationFunction=function,
                ),
            )
        depth = rng.integers(-99, 99, (1, 3, 3, 4)) + base
        yield (
            f"DEPTHWISE_CONV_2D codes {dtype}",
            make_model(
                "DEPTHWISE_CONV_2D",
                [
                    image,
                    T((1, 3, 3, 4), weight, data=depth, scale=scales, zero=zero_w, axis=3),
                    bias,
                ],
                [out],
                "DepthwiseConv2DOptions",
                version=3,
                padding=0,
                strideH=1,
                strideW=1,
                depthMultiplier=1,
            ),
        )
        matrix = rng.integers(-99, 99, (5, 4)) + base
        yield (
            f"FULLY_CONNECTED codes {dtype}",
            make_model(
                "FULLY_CONNECTED",
                [
                    T((3, 4), dtype, scale=scale, zero=zero),
                    T((5, 4), weight, data=matrix, scale=0.01, zero=zero_w),
                    T((5,), bias_type, data=rng.integers(-900, 900, 5), scale=scale * 0.01),
                ],
                [T((3, 5), dtype, scale=scale * 3, zero=zero)],
                "FullyConnectedOptions",
                version=4,
            ),
        )


def _recurrent() -> Iterator[Case]:
    rng = _rng("recurrent")

    def weights(*shape: int) -> T:
        return T(shape, data=rng.normal(size=shape) * 0.5)

    batch, steps, inputs, hidden = 2, 5, 3, 4
    state = T((batch, hidden), is_variable=True)
    for function in (0, 1, 4):
        parts = [weights(hidden, inputs), weights(hidden, hidden), weights(hidden), state]
        yield (
            f"RNN {function}",
            make_model(
                "RNN",
                [T((batch, inputs)), *parts],
                [T((batch, hidden))],
                "RNNOptions",
                fusedActivationFunction=function,
            ),
        )
        for major in (False, True):
            shape = (steps, batch) if major else (batch, steps)
            yield (
                f"UNIDIRECTIONAL_SEQUENCE_RNN {function} {major}",
                make_model(
                    "UNIDIRECTIONAL_SEQUENCE_RNN",
                    [T((*shape, inputs)), *parts],
                    [T((*shape, hidden))],
                    "SequenceRNNOptions",
                    timeMajor=major,
                    fusedActivationFunction=function,
                ),
            )

    def gates(first: bool, size: int, width: int) -> list[T | None]:
        return [weights(size, width) if first or i else None for i in range(4)]

    for whole, peep, project, clip, major in product(
        (True, False), (False, True), (0, 3), (0.0, 0.7), (False, True)
    ):
        if peep and not whole:
            continue
        output = project or hidden
        holes = [weights(hidden) if peep else None for _ in range(3)]
        bias = [weights(hidden) if whole or i else None for i in range(4)]
        parts = [
            *gates(whole, hidden, inputs),
            *gates(whole, hidden, output),
            *holes,
            *bias,
            weights(project, hidden) if project else None,
            None,
            T((batch, output), is_variable=True),
            T((batch, hidden), is_variable=True),
        ]
        shape = (steps, batch) if major else (batch, steps)
        yield (
            f"UNIDIRECTIONAL_SEQUENCE_LSTM {whole} {peep} {project} {clip} {major}",
            make_model(
                "UNIDIRECTIONAL_SEQUENCE_LSTM",
                [T((*shape, inputs)), *parts, *[None] * 4],
                [T((*shape, output))],
                "UnidirectionalSequenceLSTMOptions",
                timeMajor=major,
                fusedActivationFunction=4,
                cellClip=clip,
            ),
        )
    for whole, normed, project, major in product(
        (True, False), (False, True), (0, 3), (False, True)
    ):
        output = project or hidden
        parts = [
            *gates(whole, hidden, inputs),
            *gates(whole, hidden, output),
            *(weights(hidden) if whole or i else None for i in range(3)),
            *(weights(hidden) if whole or i else None for i in range(4)),
            weights(project, hidden) if project else None,
            weights(project) if project else None,
            T((batch, output), is_variable=True),
            T((batch, hidden), is_variable=True),
            *(weights(hidden) if normed and (whole or i) else None for i in range(4)),
        ]
        shape = (steps, batch) if major else (batch, steps)
        yield (
            f"UNIDIRECTIONAL_SEQUENCE_LSTM spelled {whole} {normed} {project} {major}",
            make_model(
                "UNIDIRECTIONAL_SEQUENCE_LSTM",
                [T((*shape, inputs)), *parts],
                [T((*shape, output))],
                "UnidirectionalSequenceLSTMOptions",
                timeMajor=major,
                fusedActivationFunction=4,
                cellClip=0.9,
                projClip=0.5 if project else 0.0,
            ),
        )
    for merge in (False, True):
        parts = []
        for _ in range(2):
            parts += [*gates(True, hidden, inputs), *gates(True, hidden, hidden)]
            parts += [*[None] * 3, *(weights(hidden) for _ in range(4)), None, None]
        parts += [T((batch, hidden), is_variable=True) for _ in range(4)]
        given = [T((steps, batch, inputs)), *parts, *[None] * 9]
        made = [T((steps, batch, 2 * hidden))] if merge else [T((steps, batch, hidden))] * 2
        yield (
            f"BIDIRECTIONAL_SEQUENCE_LSTM {merge}",
            make_model(
                "BIDIRECTIONAL_SEQUENCE_LSTM",
                given,
                made,
                "BidirectionalSequenceLSTMOptions",
                timeMajor=True,
                mergeOutputs=merge,
                fusedActivationFunction=4,
            ),
        )
    for rank in (1, 2):
        filters, memory = 4 * rank, 6
        parts = [
            weights(filters, inputs),
            weights(filters, memory),
            weights(4),
            T((batch, filters * memory), is_variable=True),
        ]
        yield (
            f"SVDF {rank}",
            make_model(
                "SVDF",
                [T((batch, inputs)), *parts],
                [T((batch, 4))],
                "SVDFOptions",
                rank=rank,
                fusedActivationFunction=1,
            ),
        )


def _tables() -> Iterator[Case]:
    """Rows of tables, found by keys and by sparse indices."""
    rng = _rng("tables")
    keys = T((4,), "int32", [-3, 0, 2, 5])
    for tail in ((), (3,)):
        values = T((4, *tail), data=rng.normal(size=(4, *tail)))
        made = [T((6, *tail)), T((6,), "uint8")]
        yield (
            f"HASHTABLE_LOOKUP {tail}",
            make_model("HASHTABLE_LOOKUP", [T((6,), "int32"), keys, values], made),
        )
    for combiner in range(3):
        for cells, lead in (([[0, 0], [2, 1], [2, 0]], (3,)), ([[0, 1, 0], [0, 1, 1]], (2, 2))):
            shape = [*lead, 2]
            given = [
                T((len(cells),), "int32", [3, 0, 2][: len(cells)]),
                T(np.shape(cells), "int32", cells),
                T((len(shape),), "int32", shape),
                T((len(cells),), data=rng.uniform(0.5, 2, len(cells))),
                T((4, 5)),
            ]
            kind = "EmbeddingLookupSparseOptions"
            yield (
                f"EMBEDDING_LOOKUP_SPARSE {combiner} {lead}",
                make_model(
                    "EMBEDDING_LOOKUP_SPARSE", given, [T((*lead, 5))], kind, combiner=combiner
                ),
            )


def _spectra() -> Iterator[Case]:
    for parts, (height, width) in product(("REAL", "IMAG", "COMPLEX_ABS"), ((4, 8), (8, 4))):
        shape = (2, height, width // 2 + 1)
        tensors = [T((2, 5, 6)), T((2,), "int32", [height, width]), T(shape, "complex64"), T(shape)]
        nodes = [Node("RFFT2D", [0, 1], [2], {}, "Rfft2dOptions"), Node(parts, [2], [3])]
        yield f"{parts} RFFT2D {height} {width}", make_graph(tensors, nodes, [0], [3])


def _rounded() -> Iterator[Case]:
    for low, high, bits in ((-1, 1, 8), (-1.3, 0.7, 8), (0.0, 3, 4)):
        options = {"min": low, "max": high, "numBits": bits}
        yield (
            f"FAKE_QUANT {low} {high} {bits}",
            make_model("FAKE_QUANT", [T((3, 50))], [T((3, 50))], "FakeQuantOptions", **options),
        )
    for function in range(1, 5):
        rows = [T((2,), "int64", each) for each in ((2, 3), (1, 2), (2, 1))]
        given = [T((5, 8)), T((), data=0.5), *rows]
        kind = "ReduceWindowOptions"
        yield (
            f"REDUCE_WINDOW {function}",
            make_model("REDUCE_WINDOW", given, [T((3, 3))], kind, reduceFunction=function),
        )


def _all() -> dict[str, bytes]:
    families = (
        _unary, _binary, _casts, _shapes, _indices, _reductions, _windows, _products, _quantised,
        _recurrent, _tables, _spectra, _rounded,
    )  # fmt: skip
    return {name: data for family in families for name, data in family()}


CASES = _all()
"""Files by what they try."""
