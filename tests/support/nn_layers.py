"""Layers of NeuralNetworks in NumPy: what a model computes, by Apple's documentation alone.

It reads Apple's message itself and shares nothing with the bridge; windows, recurrent layers and
images are the kernels of MIL that the tests of the importers judge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from support.mil_layers import KERNELS

Array = np.ndarray
F32 = np.float32
LAYERS: dict[str, Callable[[Sequence[Array], Any], Any]] = {}


def layer(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what layers do."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        LAYERS.update(dict.fromkeys(names, function))
        return function

    return register


def evaluate_network(model: Any, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a complete message of a model, its inputs being given."""
    values = {name: np.asarray(array, F32) for name, array in given.items()}
    run_layers(model.neuralNetwork, values)
    found = {}
    for each in model.description.output:
        whole = each.type.multiArrayType.dataType == 131104
        found[each.name] = values[each.name].astype(np.int32 if whole else F32)
    return found


def run_layers(network: Any, values: dict[str, Array]) -> None:
    """Add what layers give to the tensors that there are."""
    for each in network.layers:
        kind = each.WhichOneof("layer")
        params = getattr(each, kind)
        inputs = [values[name] for name in each.input]
        if kind == "branch":
            yes = abs(inputs[0].reshape(-1)[0]) > 1e-6
            run_layers(params.ifBranch if yes else params.elseBranch, values)
            continue
        if kind == "loop":
            run_loop(inputs, params, values)
            continue
        if kind in ("loopBreak", "loopContinue"):
            raise Break if kind == "loopBreak" else Continue
        with np.errstate(all="ignore"):
            result = LAYERS[kind](inputs, params)
        results = result if isinstance(result, (tuple, list)) else [result]
        for name, value in zip(each.output, results, strict=True):
            array = np.asarray(value, F32)
            values[name] = array if array.ndim else array.reshape(1)
            assert values[name].ndim <= 5, kind


class Break(Exception):
    """Ends a loop."""


class Continue(Exception):
    """Ends an iteration of a loop."""


def run_loop(inputs: Sequence[Array], params: Any, values: dict[str, Array]) -> None:
    """Run a network so many times, or as long as another says so, or both."""
    most = int(inputs[0].reshape(-1)[0]) if inputs else params.maxLoopIterations
    asks = bool(params.conditionNetwork.layers)
    turns = range(most) if most or inputs or not asks else itertools.count()

    def goes_on() -> bool:
        if not asks:
            return True
        run_layers(params.conditionNetwork, values)
        return bool(abs(values[params.conditionVar].reshape(-1)[0]) > 1e-6)

    going = goes_on()
    for _ in turns:
        if not going:
            return
        try:
            run_layers(params.bodyNetwork, values)
        except Continue:
            pass
        except Break:
            return
        going = goes_on()


def weights(message: Any, shape: Sequence[int]) -> Array:
    """Return the values of a ``WeightParams``; scales go along the first axis."""
    if message.floatValue:
        found = np.array(message.floatValue, F32)
    elif message.float16Value:
        found = np.frombuffer(message.float16Value, np.float16).astype(F32)
    else:
        found = np.frombuffer(message.rawValue, np.uint8).astype(F32)
        linear = message.quantization.linearQuantization
        rows = found.reshape(len(linear.scale), -1) if len(linear.scale) > 1 else found
        scale, bias = np.array(linear.scale, F32), np.array(linear.bias, F32)
        if len(scale) > 1:
            scale, bias = scale[:, None], bias[:, None]
        found = rows * scale + bias
    return found.reshape(shape)


def plain(names: Mapping[str, Callable[[Array], Array]]) -> None:
    """Register functions of one tensor."""
    for name, function in names.items():
        LAYERS[name] = lambda xs, p, f=function: f(xs[0])


def pairs(names: Mapping[str, Callable[[Array, Array], Array]]) -> None:
    """Register functions of two tensors."""
    for name, function in names.items():
        LAYERS[name] = lambda xs, p, f=function: f(*xs)


def compared(function: Callable[[Array, Any], Array]) -> Callable[..., Array]:
    """Return a comparison with a second tensor, or with a number."""
    return lambda xs, p: function(xs[0], xs[1] if len(xs) > 1 else F32(p.alpha))


def gauss(x: Array) -> Array:
    """The error function, by its series and its continued fraction in float64."""
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x.astype(np.float64)).astype(F32)


plain(
    {
        "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
        "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil,
        "copy": lambda x: x, "cos": np.cos, "cosh": np.cosh, "erf": gauss,
        "exp2": np.exp2, "floor": np.floor, "logicalNot": lambda x: x == 0, "round": np.rint,
        "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
        "getShape": lambda x: np.array(x.shape), "whereNonZero": np.argwhere,
    }
)  # fmt: skip
pairs(
    {
        "addBroadcastable": np.add, "divideBroadcastable": np.divide,
        "floorDivBroadcastable": lambda a, b: np.floor(a / b), "maxBroadcastable": np.maximum,
        "minBroadcastable": np.minimum, "modBroadcastable": np.mod,
        "multiplyBroadcastable": np.multiply, "powBroadcastable": np.power,
        "subtractBroadcastable": np.subtract,
        "logicalAnd": np.logical_and, "logicalOr": np.logical_or, "logicalXor": np.logical_xor,
        "broadcastToLike": lambda x, y: np.broadcast_to(x, y.shape),
        "broadcastToDynamic": lambda x, s: np.broadcast_to(x, s.astype(int)),
        "reshapeDynamic": lambda x, s: x.reshape(zeros_kept(x, s)),
        "gatherND": lambda x, i: x[tuple(np.moveaxis(i.astype(int), -1, 0))],
    }
)  # fmt: skip
for _name, _function in {
    "equal": np.equal, "notEqual": np.not_equal, "lessThan": np.less,
    "lessEqual": np.less_equal, "greaterThan": np.greater, "greaterEqual": np.greater_equal,
}.items():  # fmt: skip
    LAYERS[_name] = compared(_function)


def zeros_kept(x: Array, shape: Array) -> list[int]:
    """Return a shape, in which 0 stands for the length that there is."""
    return [x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape)]


@layer("add")
def add(xs: Sequence[Array], p: Any) -> Array:
    return xs[0] + F32(p.alpha) if len(xs) == 1 else sum(xs)


@layer("multiply")
def multiply(xs: Sequence[Array], p: Any) -> Array:
    return xs[0] * F32(p.alpha) if len(xs) == 1 else np.multiply(*xs)


@layer("unary")
def unary(xs: Sequence[Array], p: Any) -> Array:
    x = xs[0] * F32(p.scale or 1) + F32(p.shift)
    name = p.Operation.Name(p.type)
    table = {
        "SQRT": np.sqrt, "RSQRT": lambda v: 1 / np.sqrt(v + F32(p.epsilon or 1e-6)),
        "INVERSE": lambda v: 1 / (v + F32(p.epsilon or 1e-6)),
        "POWER": lambda v: np.power(v, F32(p.alpha)), "EXP": np.exp, "LOG": np.log,
        "ABS": np.abs, "THRESHOLD": lambda v: np.maximum(v, F32(p.alpha)),
    }  # fmt: skip
    return table[name](x)


@layer("clip")
def clip(xs: Sequence[Array], p: Any) -> Array:
    return np.clip(xs[0], F32(p.minVal), F32(p.maxVal))


@layer("activation")
def activation(xs: Sequence[Array], p: Any) -> Array:
    x, kind = xs[0], p.WhichOneof("NonlinearityType")
    own = getattr(p, kind)
    if kind == "PReLU":
        alpha = weights(own.alpha, (-1, 1, 1))
        return np.where(x >= 0, x, alpha * x)
    table = {
        "ReLU": lambda: np.maximum(x, 0), "leakyReLU": lambda: np.where(x >= 0, x, own.alpha * x),
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "sigmoidHard": lambda: np.clip(own.alpha * x + own.beta, 0, 1),
        "ELU": lambda: np.where(x > 0, x, own.alpha * np.expm1(x)),
        "softplus": lambda: np.logaddexp(x, 0), "softsign": lambda: x / (1 + np.abs(x)),
    }  # fmt: skip
    return table[kind]()


@layer("gelu")
def gelu(xs: Sequence[Array], p: Any) -> Array:
    x = xs[0]
    if p.mode == 1:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + gauss(x / np.sqrt(F32(2))))


@layer("softmaxND")
def softmax(xs: Sequence[Array], p: Any) -> Array:
    e = np.exp(xs[0] - xs[0].max(p.axis, keepdims=True))
    return e / e.sum(p.axis, keepdims=True)


@layer("whereBroadcastable")
def where(xs: Sequence[Array], p: Any) -> Array:
    return np.where(xs[0] != 0, xs[1], xs[2])


@layer("cumSum")
def cumsum(xs: Sequence[Array], p: Any) -> Array:
    x = np.flip(xs[0], p.axis) if p.reverse else xs[0]
    found = np.cumsum(x, p.axis)
    found = found - x if p.excludeFinalSum else found
    return np.flip(found, p.axis) if p.reverse else found


@layer("loadConstantND")
def load_constant(xs: Sequence[Array], p: Any) -> Array:
    return weights(p.data, list(p.shape))


def amounts(message: Any) -> list[int]:
    """Return amounts pair by pair, those of height first."""
    edges = message.borderAmounts
    return [n for e in edges for n in (e.startEdgeSize, e.endEdgeSize)] or [0] * 4


@layer("convolution")
def convolution(xs: Sequence[Array], p: Any) -> Array:
    assert xs[0].ndim == 4
    bias = weights(p.bias, (-1,)) if p.hasBias else None
    attrs = {
        "strides": list(p.stride), "pad_type": "custom", "groups": p.nGroups,
        "pad": amounts(p.valid.paddingAmounts), "bias": bias,
    }  # fmt: skip
    if p.isDeconvolution:
        shape = [p.kernelChannels, p.outputChannels // p.nGroups, *p.kernelSize]
        return KERNELS["conv_transpose"](xs[0], deconvolved(p, shape), **attrs)
    shape = [p.outputChannels, p.kernelChannels, *p.kernelSize]
    kernel = xs[1] if len(xs) > 1 else weights(p.weights, shape)
    return KERNELS["conv"](xs[0], kernel, dilations=list(p.dilationFactor), **attrs)


def deconvolved(p: Any, shape: Sequence[int]) -> Array:
    """Return the weight of a deconvolution, of which scales go along the second axis."""
    if not p.weights.rawValue:
        return weights(p.weights, shape)
    linear = p.weights.quantization.linearQuantization
    codes = np.frombuffer(p.weights.rawValue, np.uint8).astype(F32).reshape(shape)
    spread = [-1 if axis == 1 else 1 for axis in range(len(shape))]
    scale, bias = (np.array(v, F32) for v in (linear.scale, linear.bias))
    if len(scale) > 1:
        scale, bias = scale.reshape(spread), bias.reshape(spread)
    return codes * scale + bias


def volume(p: Any) -> dict[str, list[int]]:
    """Return steps, gaps and padding along three axes."""
    assert p.paddingType == 0
    ends = ("Front", "Back", "Top", "Bottom", "Left", "Right")
    axes = ("Depth", "Height", "Width")
    return {
        "strides": [getattr(p, f"stride{a}") for a in axes],
        "pad": [getattr(p, f"customPadding{e}") for e in ends],
        "kernel": [getattr(p, f"kernel{a}") for a in axes],
    }


@layer("convolution3d")
def convolution3d(xs: Sequence[Array], p: Any) -> Array:
    where_ = volume(p)
    kernel = where_.pop("kernel")
    bias = weights(p.bias, (-1,)) if p.hasBias else None
    attrs: dict[str, Any] = {**where_, "pad_type": "custom", "groups": p.nGroups, "bias": bias}
    if p.isDeconvolution:
        shape = [p.inputChannels, p.outputChannels // p.nGroups, *kernel]
        return KERNELS["conv_transpose"](xs[0], deconvolved(p, shape), **attrs)
    attrs["dilations"] = [p.dilationDepth, p.dilationHeight, p.dilationWidth]
    shape = [p.outputChannels, p.inputChannels // p.nGroups, *kernel]
    return KERNELS["conv"](xs[0], weights(p.weights, shape), **attrs)


POOLS = ("max_pool", "avg_pool", "l2_pool")


def pooled(x: Array, kind: int, kernel: Any, strides: Any, pad: Any, excludes: bool) -> Array:
    more = {"exclude_padding_from_average": excludes} if kind == 1 else {}
    return KERNELS[POOLS[kind]](x, kernel, "custom", strides, pad, **more)


@layer("pooling")
def pooling(xs: Sequence[Array], p: Any) -> Array:
    if p.globalPooling:
        axes = (2, 3)
        return (np.max, np.mean)[p.type](xs[0], axis=axes, keepdims=True)
    pad = amounts(p.valid.paddingAmounts)
    return pooled(xs[0], p.type, list(p.kernelSize), list(p.stride), pad, p.avgPoolExcludePadding)


@layer("pooling3d")
def pooling3d(xs: Sequence[Array], p: Any) -> Array:
    at = volume(p)
    return pooled(xs[0], p.type, at["kernel"], at["strides"], at["pad"], p.countExcludePadding)


@layer("batchnorm")
def batchnorm(xs: Sequence[Array], p: Any) -> Array:
    x, shape = xs[0], (-1, 1, 1)
    gamma, beta = weights(p.gamma, shape), weights(p.beta, shape)
    if p.computeMeanVar:
        assert p.instanceNormalization
        mean, variance = x.mean((-2, -1), keepdims=True), x.var((-2, -1), keepdims=True)
    else:
        mean, variance = weights(p.mean, shape), weights(p.variance, shape)
    return (x - mean) / np.sqrt(variance + F32(p.epsilon)) * gamma + beta


@layer("layerNormalization")
def layer_normalization(xs: Sequence[Array], p: Any) -> Array:
    x, shape = xs[0], list(p.normalizedShape)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    found = centred / np.sqrt(np.square(centred).mean(axes, keepdims=True) + F32(p.eps))
    return found * weights(p.gamma, shape) + weights(p.beta, shape)


@layer("lrn")
def lrn(xs: Sequence[Array], p: Any) -> Array:
    x, before = xs[0], (p.localSize - 1) // 2
    width = [(0, 0)] * x.ndim
    width[-3] = (before, p.localSize - 1 - before)
    squares = np.pad(np.square(x), width)
    channels = x.shape[-3]
    total = sum(np.take(squares, np.arange(i, i + channels), -3) for i in range(p.localSize))
    return x / (p.k + p.alpha / p.localSize * total) ** p.beta


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


@layer("constantPad")
def constant_pad(xs: Sequence[Array], p: Any) -> Array:
    widths = list(p.padAmounts) if len(xs) == 1 else xs[1].astype(int).reshape(-1).tolist()
    pairs_ = list(zip(widths[0::2], widths[1::2], strict=True))
    return np.pad(xs[0], pairs_, constant_values=p.value)


@layer("padding")
def padding(xs: Sequence[Array], p: Any) -> Array:
    assert xs[0].ndim >= 3
    ends = amounts(p.paddingAmounts)
    width = [(0, 0)] * (xs[0].ndim - 2) + [(ends[0], ends[1]), (ends[2], ends[3])]
    modes = {"reflection": "reflect", "replication": "edge"}
    return np.pad(xs[0], width, mode=modes[p.WhichOneof("PaddingType")])


@layer("reorganizeData")
def reorganize_data(xs: Sequence[Array], p: Any) -> Array:
    name = ("space_to_depth", "depth_to_space", "pixel_shuffle")[p.mode]
    return KERNELS[name](xs[0], p.blockSize)


@layer("upsample")
def upsample(xs: Sequence[Array], p: Any) -> Array:
    factors = list(p.fractionalScalingFactor) or list(p.scalingFactor)
    if p.mode == 0:
        return KERNELS["upsample_nearest_neighbor"](xs[0], *factors)
    return KERNELS["upsample_bilinear"](xs[0], *factors, align_corners=p.linearUpsampleMode == 1)


@layer("resizeBilinear")
def resize_bilinear(xs: Sequence[Array], p: Any) -> Array:
    modes = ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS")
    return KERNELS["resize_bilinear"](xs[0], *p.targetSize, modes[p.mode.samplingMethod])


@layer("cropResize")
def crop_resize(xs: Sequence[Array], p: Any) -> Array:
    modes = ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS")
    boxes = ("CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST",
             "CENTER_SIZE_WIDTH_FIRST")  # fmt: skip
    return KERNELS["crop_resize"](
        xs[0][0], roi=xs[1], target_height=p.targetSize[0], target_width=p.targetSize[1],
        normalized_coordinates=p.normalizedCoordinates, spatial_scale=p.spatialScale,
        box_coordinate_mode=boxes[p.boxIndicesMode.boxMode],
        sampling_mode=modes[p.mode.samplingMethod],
    )  # fmt: skip


@layer("NonMaximumSuppression")
def non_maximum_suppression(xs: Sequence[Array], p: Any) -> tuple[Array, ...]:
    return KERNELS["non_maximum_suppression"](
        xs[0], xs[1], p.iouThreshold, p.maxBoxes, p.scoreThreshold, p.perClassSuppression
    )


@layer("randomNormalStatic")
def random_normal(xs: Sequence[Array], p: Any) -> Array:
    return np.random.default_rng(0).normal(p.mean, p.stdDev, list(p.outputShape))


@layer("randomUniformStatic")
def random_uniform(xs: Sequence[Array], p: Any) -> Array:
    return np.random.default_rng(0).uniform(p.minVal, p.maxVal, list(p.outputShape))


@layer("categoricalDistribution")
def categorical(xs: Sequence[Array], p: Any) -> Array:
    assert p.isLogits
    assert p.temperature == 1
    rng = np.random.default_rng(0)
    chances = softmax([xs[0]], type("P", (), {"axis": -1}))
    return np.stack([rng.choice(len(row), p.numSamples, p=row / row.sum()) for row in chances])


GATES = ("input", "forget", "output", "block")


def function_name(p: Any) -> str:
    names = {"sigmoidHard": "hard_sigmoid"}
    kind = p.WhichOneof("NonlinearityType")
    return names.get(kind, kind)


def gate_weights(params: Any, message: Any, entering: int, size: int) -> dict[str, Any]:
    """Return the weights of one direction as MIL's kernel takes them."""

    def joined(what: str, shape: tuple[int, ...]) -> Array:
        names = [f"{g}{'Input' if g == 'block' else 'Gate'}{what}" for g in GATES]
        return np.concatenate([weights(getattr(message, name), shape) for name in names])

    found: dict[str, Any] = {
        "weight_ih": joined("WeightMatrix", (size, entering)),
        "weight_hh": joined("RecursionMatrix", (size, size)),
    }
    if params.hasBiasVectors:
        found["bias"] = joined("BiasVector", (size,))
    if params.hasPeepholeVectors:
        names = [f"{g}GatePeepholeVector" for g in GATES[:3]]
        found["peephole"] = np.concatenate([weights(getattr(message, n), (size,)) for n in names])
    return found


def five(x: Array, axis: int | None = None) -> Array:
    return x[..., None, None] if axis is None else x[None, ..., None, None]


@layer("uniDirectionalLSTM")
def uni_lstm(xs: Sequence[Array], p: Any) -> list[Array]:
    assert not p.reverseInput
    own = gate_weights(p.params, p.weightParams, p.inputVectorSize, p.outputVectorSize)
    kinds = [function_name(each) for each in p.activations]
    names = ("recurrent_activation", "cell_activation", "activation")
    found = KERNELS["lstm"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], xs[2][0, ..., 0, 0], **own,
        **dict(zip(names, kinds, strict=True)), output_sequence=True,
        clip=p.params.cellClipThreshold,
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0), five(found[2], 0)]


@layer("biDirectionalLSTM")
def bi_lstm(xs: Sequence[Array], p: Any) -> list[Array]:
    sizes = p.inputVectorSize, p.outputVectorSize
    one, two = (gate_weights(p.params, each, *sizes) for each in p.weightParams)
    kinds = [function_name(each) for each in p.activationsForwardLSTM]
    names = ("recurrent_activation", "cell_activation", "activation")
    states = [np.concatenate([xs[i][0, ..., 0, 0], xs[i + 2][0, ..., 0, 0]], 1) for i in (1, 2)]
    found = KERNELS["lstm"](
        xs[0][..., 0, 0], *states, **one, **{f"{name}_back": w for name, w in two.items()},
        **dict(zip(names, kinds, strict=True)), output_sequence=True, direction="bidirectional",
        clip=p.params.cellClipThreshold,
    )  # fmt: skip
    (h, h_back), (c, c_back) = (np.split(each, 2, 1) for each in found[1:])
    return [five(found[0]), *(five(each, 0) for each in (h, c, h_back, c_back))]


@layer("gru")
def gru(xs: Sequence[Array], p: Any) -> list[Array]:
    size, entering = p.outputVectorSize, p.inputVectorSize

    def joined(what: str, shape: tuple[int, ...]) -> Array:
        names = [f"{gate}Gate{what}" for gate in ("reset", "output", "update")]
        return np.concatenate([weights(getattr(p, name), shape) for name in names])

    found = KERNELS["gru"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], joined("WeightMatrix", (size, entering)),
        joined("RecursionMatrix", (size, size)),
        joined("BiasVector", (size,)) if p.hasBiasVectors else None, output_sequence=True,
        recurrent_activation=function_name(p.activations[0]),
        activation=function_name(p.activations[1]),
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0)]


@layer("simpleRecurrent")
def simple_recurrent(xs: Sequence[Array], p: Any) -> list[Array]:
    size, entering = p.outputVectorSize, p.inputVectorSize
    found = KERNELS["rnn"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], weights(p.weightMatrix, (size, entering)),
        weights(p.recursionMatrix, (size, size)),
        weights(p.biasVector, (size,)) if p.hasBiasVector else None, output_sequence=True,
        activation=function_name(p.activation),
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0)]
