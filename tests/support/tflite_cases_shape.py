"""Models of one TFLite operator: shapes and indices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from support.tflite_models import T, make_model
from support.tflite_parts import ANY, NUMBERS, Case, ints, seeded

__all__ = ["indices", "shapes"]


def shapes() -> Iterator[Case]:
    x = T((2, 3, 4))
    for dtype in ANY:
        y = T((2, 3, 4), dtype)
        yield (
            f"RESHAPE {dtype}",
            make_model("RESHAPE", [y, ints([4, -1])], [T((4, 6), dtype)], "ReshapeOptions"),
        )
        for perm in ((2, 0, 1), (1, 0, 2)):
            shape = tuple((2, 3, 4)[i] for i in perm)
            yield (
                f"TRANSPOSE {dtype} {perm}",
                make_model("TRANSPOSE", [y, ints(perm)], [T(shape, dtype)], "TransposeOptions"),
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
            make_model("TILE", [y, ints([2, 1, 3])], [T((4, 3, 12), dtype)], "TileOptions"),
        )
        yield (
            f"REVERSE_V2 {dtype}",
            make_model("REVERSE_V2", [y, ints([1])], [y], "ReverseV2Options"),
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
            make_model("EXPAND_DIMS", [y, ints(-2)], [T((2, 3, 1, 4), dtype)], "ExpandDimsOptions"),
        )
        yield (
            f"GATHER {dtype}",
            make_model(
                "GATHER",
                [y, ints([[2, 0], [1, 1]])],
                [T((2, 2, 2, 4), dtype)],
                "GatherOptions",
                axis=1,
            ),
        )
        yield (
            f"SLICE {dtype}",
            make_model(
                "SLICE",
                [y, ints([0, 1, 1]), ints([2, -1, 2])],
                [T((2, 2, 2), dtype)],
                "SliceOptions",
            ),
        )
        yield (
            f"STRIDED_SLICE {dtype}",
            make_model(
                "STRIDED_SLICE",
                [y, ints([0, 2, 0]), ints([2, 0, 4]), ints([1, -1, 2])],
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
            "STRIDED_SLICE", [x, *map(ints, parts)], [T(shape)], "StridedSliceOptions", **mask
        )
        yield f"STRIDED_SLICE {mask}", made
    for count in (2, 4):
        yield (
            f"SPLIT {count}",
            make_model(
                "SPLIT",
                [ints(2), x],
                [T((2, 3, 4 // count))] * count,
                "SplitOptions",
                numSplits=count,
            ),
        )
    yield (
        "SPLIT_V",
        make_model(
            "SPLIT_V",
            [x, ints([1, -1]), ints(1)],
            [T((2, 1, 4)), T((2, 2, 4))],
            "SplitVOptions",
            numSplits=2,
        ),
    )
    yield (
        "BROADCAST_TO",
        make_model(
            "BROADCAST_TO", [T((3, 1)), ints([2, 3, 4])], [T((2, 3, 4))], "BroadcastToOptions"
        ),
    )
    for dtype in NUMBERS:
        yield (
            f"FILL {dtype}",
            make_model("FILL", [ints([2, 3]), T((), dtype)], [T((2, 3), dtype)], "FillOptions"),
        )
    for dtype in ("float32", "int32"):
        parts = [ints(v, dtype) for v in (1, 8, 2)]
        yield f"RANGE {dtype}", make_model("RANGE", parts, [T((4,), dtype)], "RangeOptions")
    yield (
        "REVERSE_SEQUENCE",
        make_model(
            "REVERSE_SEQUENCE",
            [x, ints([2, 3])],
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
            [image, ints([2, 3]), ints([[0, 0], [1, 2]])],
            [T((12, 2, 3, 3))],
            "SpaceToBatchNDOptions",
        ),
    )
    yield (
        "BATCH_TO_SPACE_ND",
        make_model(
            "BATCH_TO_SPACE_ND",
            [T((12, 2, 3, 3)), ints([2, 3]), ints([[0, 0], [1, 2]])],
            [image],
            "BatchToSpaceNDOptions",
        ),
    )
    for dtype in ("float32", "int32", "int64"):
        y = T((2, 3), dtype)
        pads = ints([[1, 0], [2, 3]])
        yield f"PAD {dtype}", make_model("PAD", [y, pads], [T((3, 8), dtype)], "PadOptions")
        value = ints(7, dtype)
        yield (
            f"PADV2 {dtype}",
            make_model("PADV2", [y, pads, value], [T((3, 8), dtype)], "PadV2Options"),
        )
    for mode in (0, 1):
        yield (
            f"MIRROR_PAD {mode}",
            make_model(
                "MIRROR_PAD",
                [T((3, 4)), ints([[1, 2], [2, 0]])],
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
        make_model("DILATE", [T((2, 3)), ints([2, 3]), ints(5, "float32")], [T((3, 7))]),
    )


def indices() -> Iterator[Case]:
    x = T((3, 4))
    for dtype in ("float32", "int32"):
        y = T((3, 4), dtype)
        yield (
            f"GATHER_ND {dtype}",
            make_model(
                "GATHER_ND", [y, ints([[0, 1], [2, 3]])], [T((2,), dtype)], "GatherNdOptions"
            ),
        )
        yield (
            f"SCATTER_ND {dtype}",
            make_model(
                "SCATTER_ND",
                [ints([[1], [3], [1]]), T((3, 2), dtype), ints([4, 2])],
                [T((4, 2), dtype)],
                "ScatterNdOptions",
            ),
        )
        yield (
            f"TOPK_V2 {dtype}",
            make_model(
                "TOPK_V2", [y, ints(2)], [T((3, 2), dtype), T((3, 2), "int32")], "TopKV2Options"
            ),
        )
        for op, output in product(("ARG_MAX", "ARG_MIN"), ("int32", "int64")):
            kind = "ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions"
            number = 2 if output == "int32" else 4
            yield (
                f"{op} {dtype} {output}",
                make_model(op, [y, ints(1)], [T((3,), output)], kind, outputType=number),
            )
        for exclusive, reverse in product((False, True), (False, True)):
            yield (
                f"CUMSUM {dtype} {exclusive} {reverse}",
                make_model(
                    "CUMSUM",
                    [y, ints(1)],
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
                    [y, ints([2, 0, 2]), ints(4)],
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
                [ints([[0, 4, 7], [2, 1, -1]]), ints(5), ints(3, "float32"), ints(-1, "float32")],
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
                [T((2, 3, 4)), ints([[2, 0], [1, 1]])],
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
            [T((4, 5)), T((2, 3)), ints([3, -1])],
            [T((4, 5))],
            "DynamicUpdateSliceOptions",
        ),
    )
    table = T((4, 3), data=seeded("table").normal(size=(4, 3)))
    yield "EMBEDDING_LOOKUP", make_model("EMBEDDING_LOOKUP", [ints([2, 0, 3]), table], [T((3, 3))])
    yield (
        "SEGMENT_SUM",
        make_model("SEGMENT_SUM", [x, ints([0, 0, 2])], [T((3, 4))], "SegmentSumOptions"),
    )
    yield (
        "SPARSE_TO_DENSE",
        make_model(
            "SPARSE_TO_DENSE",
            [ints([[0, 1], [2, 2]]), ints([3, 4]), T((2,)), ints(-1, "float32")],
            [T((3, 4))],
            "SparseToDenseOptions",
        ),
    )
