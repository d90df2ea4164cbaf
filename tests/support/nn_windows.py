"""Layers of NeuralNetworks that move windows over images, norms, and images that are resized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.mil_layers import KERNELS
from support.nn_table import F32, Array, layer, weights


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
