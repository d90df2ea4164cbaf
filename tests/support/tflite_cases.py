"""Models of one TFLite operator for each way that it can be used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from support.tflite_cases_codes import quantised
from support.tflite_cases_layers import products, recurrent, windows
from support.tflite_cases_shape import indices, shapes
from support.tflite_models import Node, T, make_graph, make_model
from support.tflite_parts import ANY, FLOAT, NUMBERS, Case, ints, seeded

__all__ = ["CASES"]


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
        alpha = T(slope, data=seeded("prelu").normal(size=slope))
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
        values = seeded(op).choice([-3, -2, 2, 3], shape)
        return T(shape, dtype, data=values)
    if op == "RIGHT_SHIFT":
        return T(shape, dtype, data=seeded(op).integers(0, 5, shape))
    if op == "POW":
        return T(shape, dtype, data=seeded(op).choice([2.0, 3.0, 1.0], shape))
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


def _reductions() -> Iterator[Case]:
    for op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
        for dtype in ("float32", "int32") if op != "MEAN" else FLOAT:
            for axes, keep in product(([1], [0, -1], [0, 1, 2]), (False, True)):
                shape = np.zeros((2, 3, 4)).sum(tuple(axes), keepdims=keep).shape
                yield (
                    f"{op} {dtype} {axes} {keep}",
                    make_model(
                        op,
                        [T((2, 3, 4), dtype), ints(axes)],
                        [T(shape, dtype)],
                        "ReducerOptions",
                        keepDims=keep,
                    ),
                )
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        yield (
            op,
            make_model(op, [T((2, 3), "bool"), ints([1])], [T((2,), "bool")], "ReducerOptions"),
        )
    yield (
        "L2_NORMALIZATION",
        make_model("L2_NORMALIZATION", [T((2, 5))], [T((2, 5))], "L2NormOptions"),
    )


def _tables() -> Iterator[Case]:
    """Rows of tables, found by keys and by sparse indices."""
    rng = seeded("tables")
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
        _unary, _binary, _casts, shapes, indices, _reductions, windows, products, quantised,
        recurrent, _tables, _spectra, _rounded,
    )  # fmt: skip
    return {name: data for family in families for name, data in family()}


CASES = _all()
"""Files by what they try."""
