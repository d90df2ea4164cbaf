"""Models of one TFLite operator: windows, products and recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from support.tflite_models import T, make_model
from support.tflite_parts import Case, ints, seeded

__all__ = ["products", "recurrent", "windows"]


def _length(n: int, k: int, s: int, d: int, padding: int) -> int:
    return -(-n // s) if padding == 0 else (n - (k - 1) * d - 1) // s + 1


def windows() -> Iterator[Case]:
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
        rng = seeded("conv")
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
        rng = seeded("transposed")
        weights = T((2, 3, 3, 5), data=rng.normal(size=(2, 3, 3, 5)))
        made = make_model(
            "TRANSPOSE_CONV",
            [ints([1, out, out, 2]), weights, T((1, n, n, 5))],
            [T((1, out, out, 2))],
            "TransposeConvOptions",
            padding=padding,
            strideH=stride,
            strideW=stride,
        )
        yield f"TRANSPOSE_CONV {padding} {stride}", made
    for padding, stride in product((0, 1), (1, 2)):
        length = _length(6, 3, stride, 1, padding)
        weights = T((3, 3, 3, 2, 4), data=seeded("3d").normal(size=(3, 3, 3, 2, 4)))
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
            [T((1, 5, 6, 3)), ints(size)],
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


def products() -> Iterator[Case]:
    for shape, keep, function, with_bias in product(
        ((3, 4), (2, 3, 4), (2, 2, 2)), (False, True), (0, 1, 3), (False, True)
    ):
        columns = 4
        if shape[-1] != columns and keep:
            continue
        rows = int(np.prod(shape)) // columns
        made = (*shape[:-1], 5) if keep else (rows, 5)
        rng = seeded("fc")
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


def recurrent() -> Iterator[Case]:
    rng = seeded("recurrent")

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
