"""Inputs of NeuralNetworks: how features of a model become tensors of its network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.bridge.input_types import COLORS
from serde.coreml.interface.interface import ARRAY_DTYPES, color_space
from serde.errors import OptionError, Unsupported
from serde.relay.ir import DimLike, Expr, Span, TensorType, Var

__all__ = ["input_variable", "preprocess", "to_five_axes"]


def input_variable(feature: AnyValue, given: Sequence[DimLike] | None, dtype: str | None) -> Var:
    """Return a variable for an input.

    An image is a batch of one, channels first, in the order of its colour space. Numbers of
    double precision are single ones, for a network computes in no other.

    Raises:
        OptionError: A shape was given that has another rank.
        Unsupported: It is no tensor and no image.
    """
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        shape = _image_shape(feature)
        declared = "float32"
    elif kind == "multiArrayType":
        shape = _array_shape(feature)
        declared = ARRAY_DTYPES.get(feature.type.multiArrayType.dataType, "float32")
    elif kind in ("doubleType", "int64Type"):
        shape, declared = [1], "float32"
    else:
        raise Unsupported(f"expected a tensor, an image or a number, found {kind}")
    if given is not None:
        if len(given) not in (len(shape), 5) or not shape:
            raise OptionError(
                f"input_shapes: {feature.name}: expected {len(shape)} axes, found {len(given)}"
            )
        shape = list(given)
    dtype = dtype or ("float32" if declared == "float64" else declared)
    return Var(feature.name, TensorType(shape, dtype), Span(feature.name))


def _array_shape(feature: AnyValue) -> list[DimLike]:
    array = feature.type.multiArrayType
    kind = array.WhichOneof("ShapeFlexibility")
    shape: list[DimLike] = [int(length) for length in array.shape]
    if kind == "shapeRange":
        return [
            int(each.lowerBound) if each.lowerBound == each.upperBound else f"{feature.name}_{axis}"
            for axis, each in enumerate(array.shapeRange.sizeRanges)
        ]
    if kind == "enumeratedShapes":
        shapes = [tuple(each.shape) for each in array.enumeratedShapes.shapes]
        if len({len(each) for each in shapes}) > 1:
            raise Unsupported("shapes of several ranks", hint="name one with input_shapes")
        lengths = [set(column) for column in zip(*shapes, strict=True)]
        return [
            int(min(each)) if len(each) == 1 else f"{feature.name}_{axis}"
            for axis, each in enumerate(lengths)
        ]
    return shape


def _image_shape(feature: AnyValue) -> list[DimLike]:
    """Return the shape of an image; a length that the model leaves open is a symbol."""
    image = feature.type.imageType
    color = color_space(feature)
    height: DimLike = int(image.height)
    width: DimLike = int(image.width)
    kind = image.WhichOneof("SizeFlexibility")
    if kind == "imageSizeRange":
        ranges = image.imageSizeRange.heightRange, image.imageSizeRange.widthRange
        fixed = [int(each.lowerBound) == int(each.upperBound) for each in ranges]
    elif kind == "enumeratedSizes":
        sizes = image.enumeratedSizes.sizes
        fixed = [
            len({each.height for each in sizes}) == 1,
            len({each.width for each in sizes}) == 1,
        ]
    else:
        fixed = [True, True]
    return [
        1,
        len(COLORS[color]),
        height if fixed[0] else f"{feature.name}_height",
        width if fixed[1] else f"{feature.name}_width",
    ]


def to_five_axes(x: Expr) -> Expr:
    """Return a vector, an image or a batch of images as (sequence, batch, channel, height, width).

    Raises:
        Unsupported: It has two axes, or more than five.
    """
    rank = x.type.rank if isinstance(x.type, TensorType) else 0
    if rank == 5:
        return x
    if rank == 1:
        x = relay.reshape(x, (1, -1, 1, 1))
    elif rank == 3:
        x = relay.expand_dims(x, axis=0)
    elif rank != 4:
        raise Unsupported(f"an input of {rank} axes in a network of five axes")
    return relay.expand_dims(x, axis=0)


def preprocess(x: Expr, feature: AnyValue, steps: Sequence[AnyValue]) -> Expr:
    """Return an image with what a network does to it before its first layer."""
    if not steps:
        return x
    if feature.type.WhichOneof("Type") != "imageType":
        raise Unsupported("only images are prepared")
    for step in steps:
        kind = step.WhichOneof("preprocessor")
        if kind == "scaler":
            x = relay.multiply(x, relay.const(np.float32(step.scaler.channelScale)))
            colors = COLORS[color_space(feature)]
            biases = np.array([getattr(step.scaler, f"{each}Bias") for each in colors], np.float32)
            x = relay.add(x, relay.Constant(biases.reshape(-1, 1, 1)))
        elif kind == "meanImage":
            shape = x.type.concrete_shape if isinstance(x.type, TensorType) else None
            mean = np.array(step.meanImage.meanImage, np.float32)
            if shape is None or mean.size != math.prod(shape):
                raise Unsupported(f"a mean image of {mean.size} values")
            x = relay.subtract(x, relay.Constant(mean.reshape(shape)))
    return x
