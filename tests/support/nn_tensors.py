"""Layers of NeuralNetworks that multiply, reduce, reshape, look up and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.nn_elementwise import zeros_kept
from support.nn_table import LAYERS, Array, layer, weights


@layer("innerProduct")
def inner_product(xs: Sequence[Array], p: Any) -> Array:
    assert xs[0].ndim <= 3
    found = xs[0] @ weights(p.weights, (p.outputChannels, p.inputChannels)).T
    return found + weights(p.bias, (-1,)) if p.hasBias else found


@layer("batchedMatmul")
def batched_matmul(xs: Sequence[Array], p: Any) -> Array:
    if len(xs) == 1:
        rows, columns = p.weightMatrixFirstDimension, p.weightMatrixSecondDimension
        return xs[0] @ weights(p.weights, (columns, rows)).T
    a, b = xs
    a = a.swapaxes(-1, -2) if p.transposeA else a
    return a @ (b.swapaxes(-1, -2) if p.transposeB else b)


@layer("matrixBandPart")
def matrix_band_part(xs: Sequence[Array], p: Any) -> Array:
    rows, columns = np.indices(xs[0].shape[-2:])
    low = (p.numLower < 0) | (rows - columns <= p.numLower)
    high = (p.numUpper < 0) | (columns - rows <= p.numUpper)
    return np.where(low & high, xs[0], 0)


@layer("lowerTriangular")
def lower_triangular(xs: Sequence[Array], p: Any) -> Array:
    return np.tril(xs[0], p.k)


@layer("upperTriangular")
def upper_triangular(xs: Sequence[Array], p: Any) -> Array:
    return np.triu(xs[0], p.k)


@layer("broadcastToStatic")
def broadcast_to_static(xs: Sequence[Array], p: Any) -> Array:
    return np.broadcast_to(xs[0], list(p.targetShape))


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "reduceL1": lambda x, **k: np.abs(x).sum(**k),
    "reduceL2": lambda x, **k: np.sqrt(np.square(x).sum(**k)),
    "reduceLogSum": lambda x, **k: np.log(x.sum(**k)),
    "reduceLogSumExp": lambda x, **k: np.logaddexp.reduce(x.astype(np.float64), **k),
    "reduceMax": np.max, "reduceMean": np.mean, "reduceMin": np.min, "reduceProd": np.prod,
    "reduceSum": np.sum, "reduceSumSquare": lambda x, **k: np.square(x).sum(**k),
}  # fmt: skip


def reduced(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(xs: Sequence[Array], p: Any) -> Array:
        x = xs[0]
        axes = tuple(range(x.ndim)) if p.reduceAll else tuple(p.axes)
        if function is REDUCTIONS["reduceLogSumExp"]:
            shape = [1 if i in {a % x.ndim for a in axes} else n for i, n in enumerate(x.shape)]
            rest = [i for i in range(x.ndim) if i not in {a % x.ndim for a in axes}]
            rows = x.transpose(*rest, *[a % x.ndim for a in axes])
            flat = rows.reshape(*[x.shape[i] for i in rest], -1)
            found = np.logaddexp.reduce(flat.astype(np.float64), axis=-1)
            return found.reshape(shape) if p.keepDims else found
        return function(x, axis=axes, keepdims=bool(p.keepDims))

    return run


for _name, _reduction in REDUCTIONS.items():
    LAYERS[_name] = reduced(_reduction)


@layer("argMax")
def arg_max(xs: Sequence[Array], p: Any) -> Array:
    return np.argmax(xs[0], p.axis, keepdims=not p.removeDim)


@layer("argMin")
def arg_min(xs: Sequence[Array], p: Any) -> Array:
    return np.argmin(xs[0], p.axis, keepdims=not p.removeDim)


@layer("reshapeStatic")
def reshape_static(xs: Sequence[Array], p: Any) -> Array:
    assert 0 not in p.targetShape
    return xs[0].reshape(list(p.targetShape))


@layer("rankPreservingReshape")
def rank_preserving_reshape(xs: Sequence[Array], p: Any) -> Array:
    assert len(p.targetShape) == xs[0].ndim
    return xs[0].reshape(zeros_kept(xs[0], np.array(p.targetShape)))


@layer("transpose")
def transpose(xs: Sequence[Array], p: Any) -> Array:
    return xs[0].transpose(list(p.axes))


@layer("expandDims")
def expand_dims(xs: Sequence[Array], p: Any) -> Array:
    return np.expand_dims(xs[0], tuple(p.axes))


@layer("squeeze")
def squeeze(xs: Sequence[Array], p: Any) -> Array:
    return np.squeeze(xs[0], tuple(p.axes))


@layer("concatND")
def concat(xs: Sequence[Array], p: Any) -> Array:
    return np.concatenate(xs, p.axis)


@layer("stack")
def stack(xs: Sequence[Array], p: Any) -> Array:
    return np.stack(xs, p.axis)


@layer("splitND")
def split(xs: Sequence[Array], p: Any) -> list[Array]:
    cuts = np.cumsum(list(p.splitSizes))[:-1] if p.splitSizes else p.numSplits
    return np.split(xs[0], cuts if isinstance(cuts, int) else [int(c) for c in cuts], p.axis)


@layer("fillStatic")
def fill_static(xs: Sequence[Array], p: Any) -> Array:
    return np.full(list(p.targetShape), p.value)


@layer("fillDynamic")
def fill_dynamic(xs: Sequence[Array], p: Any) -> Array:
    return np.full(xs[0].astype(int), p.value)


@layer("tile")
def tile(xs: Sequence[Array], p: Any) -> Array:
    return np.tile(xs[0], list(p.reps) if len(xs) == 1 else xs[1].astype(int))


@layer("reverse")
def reverse(xs: Sequence[Array], p: Any) -> Array:
    return np.flip(xs[0], tuple(i for i, flag in enumerate(p.reverseDim) if flag))


@layer("reverseSeq")
def reverse_seq(xs: Sequence[Array], p: Any) -> Array:
    x, found = xs[0], xs[0].copy()
    moved = np.moveaxis(found, (p.batchAxis, p.sequenceAxis), (0, 1))
    given = np.moveaxis(x, (p.batchAxis, p.sequenceAxis), (0, 1))
    for row, length in enumerate(xs[1].astype(int)):
        moved[row, :length] = given[row, :length][::-1]
    return found


@layer("gather")
def gather(xs: Sequence[Array], p: Any) -> Array:
    return np.take(xs[0], xs[1].astype(int), p.axis)


@layer("gatherAlongAxis")
def gather_along_axis(xs: Sequence[Array], p: Any) -> Array:
    return np.take_along_axis(xs[0], xs[1].astype(int), p.axis)


def scattered(found: Array, places: Any, values: Array, mode: int) -> None:
    """Write values, where several meet in one place one after the other."""
    names = ("", "add", "subtract", "multiply", "divide", "maximum", "minimum")
    if mode:
        getattr(np, names[mode]).at(found, places, values)
    else:
        found[places] = values


@layer("scatterAlongAxis")
def scatter_along_axis(xs: Sequence[Array], p: Any) -> Array:
    found, index = xs[0].copy(), xs[1].astype(int)
    places = list(np.indices(index.shape))
    places[p.axis] = index
    scattered(found, tuple(places), xs[2], p.mode)
    return found


@layer("scatterND")
def scatter_nd(xs: Sequence[Array], p: Any) -> Array:
    found = xs[0].copy()
    scattered(found, tuple(np.moveaxis(xs[1].astype(int), -1, 0)), xs[2], p.mode)
    return found


def region(x: Array, begin: Any, end: Any, p: Any) -> Array:
    assert not any(p.squeezeMasks)
    parts = zip(begin, p.beginMasks, end, p.endMasks, p.strides, strict=True)
    return x[tuple(slice(None if bm else int(b), None if em else int(e), s)
                   for b, bm, e, em, s in parts)]  # fmt: skip


@layer("sliceStatic")
def slice_static(xs: Sequence[Array], p: Any) -> Array:
    return region(xs[0], p.beginIds, p.endIds, p)


@layer("sliceDynamic")
def slice_dynamic(xs: Sequence[Array], p: Any) -> Array:
    return region(xs[0], xs[1], xs[2], p)


@layer("slidingWindows")
def sliding_windows(xs: Sequence[Array], p: Any) -> Array:
    found = np.lib.stride_tricks.sliding_window_view(xs[0], p.windowSize, p.axis)
    steps = [slice(None)] * xs[0].ndim
    steps[p.axis] = slice(None, None, p.step)
    return np.moveaxis(found[tuple(steps)], -1, p.axis + 1)


def ordered(x: Array, axis: int, ascending: bool) -> Array:
    return np.argsort(x if ascending else -x, axis, kind="stable")


@layer("topK")
def top_k(xs: Sequence[Array], p: Any) -> list[Array]:
    order = ordered(xs[0], p.axis, p.useBottomK)
    order = np.take(order, np.arange(p.K), p.axis)
    return [np.take_along_axis(xs[0], order, p.axis), order]


@layer("argSort")
def arg_sort(xs: Sequence[Array], p: Any) -> Array:
    return ordered(xs[0], p.axis, not p.descending)


@layer("rangeDynamic")
def range_dynamic(xs: Sequence[Array], p: Any) -> Array:
    end, start, step = (x.reshape(()) for x in xs)
    return np.arange(start, end, step)
