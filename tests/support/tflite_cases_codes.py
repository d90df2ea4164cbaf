"""Models of one TFLite operator: on integers of quantised tensors."""

from __future__ import annotations

from collections.abc import Iterator

from support.tflite_models import T, make_model
from support.tflite_parts import Case, ints, seeded

__all__ = ["quantised"]


CODES = (("int8", 0.05, 3), ("uint8", 0.04, 128), ("int16", 0.0005, 0))


def quantised() -> Iterator[Case]:
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
                "MEAN", [x, ints([1])], [T((2, 4), dtype, scale=scale, zero=zero)], "ReducerOptions"
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
        rng = seeded(dtype)
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
