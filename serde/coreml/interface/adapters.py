"""Inputs and outputs of a model in the forms that Core ML declares them in.

A Core ML model takes and gives images, float16 (from iOS16 on), float32, int32 and, from
iOS26 on, int8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.input_types import Image
from serde.core.weights import numpy_dtype
from serde.coreml.interface.description import Interface
from serde.coreml.interface.interface import tensors_of
from serde.coreml.interface.planning import layout_of
from serde.coreml.mlprogram.states import later_names
from serde.coreml.versions import Target
from serde.relay.ir import Constant, Expr, RelayModel, Span, TensorType, Var, call
from serde.walk.interface import Inner, rewrite_interface, uncast

__all__ = ["expected_of", "with_channels_first", "with_images", "with_numbers"]

_INT8: Final = 26
"""Version of iOS from which on arrays of apps hold int8."""


def _as_dtype(x: Expr, dtype: str) -> Expr:
    if isinstance(x.type, TensorType) and x.type.dtype == dtype:
        return x
    made = call("cast", x, dtype=dtype)
    short = uncast(made)
    return made if short is None else short


def with_numbers(model: RelayModel, target: Target) -> RelayModel:
    """Return the model with inputs and outputs of dtypes that a Core ML model can declare.

    Truth values and narrow integers become int32 there, before iOS26 those of int8, too, and
    before iOS16 float16 becomes float32.
    """
    held = dict.fromkeys(("bool", "int16", "uint8", "uint16"), "int32")
    held |= {"float16": "float32"} if target.number < 16 else {}
    held |= {"int8": "int32"} if target.number < _INT8 else {}

    def inner(param: Var, type_: TensorType) -> Inner | None:
        if type_.dtype not in held:
            return None
        outside = Var(param.name_hint, TensorType(type_.shape, held[type_.dtype]), param.span)
        return outside, call("cast", outside, dtype=type_.dtype)

    def outer(_index: int, x: Expr, type_: TensorType) -> Expr:
        return call("cast", x, dtype=held[type_.dtype]) if type_.dtype in held else x

    return rewrite_interface(model, inner, outer)


def with_channels_first(model: RelayModel, images: Mapping[str, Image]) -> RelayModel:
    """Return the model with image inputs whose channels are the second axis, as Core ML has it."""

    def inner(param: Var, type_: TensorType) -> Inner | None:
        image = images.get(param.name_hint)
        if image is None or layout_of(image, type_) != "NHWC":
            return None
        batch, height, width, channels = type_.shape
        first = TensorType((batch, channels, height, width), type_.dtype)
        outside = Var(param.name_hint, first, param.span)
        return outside, call("transpose", outside, axes=(0, 2, 3, 1))

    return rewrite_interface(model, inner, lambda _index, x, _type: x)


def with_images(model: RelayModel, interface: Interface) -> RelayModel:
    """Return the model with pixels as its image inputs, which it scales and biases itself.

    Images that come out, and the scores of a classifier, get the dtype that Core ML wants.
    """
    names = model.meta.outputs
    wanted = {names.index(name): each.dtype for name, each in interface.output_images.items()}
    if interface.classifier is not None:
        wanted[interface.classifier.output] = "float32"

    def inner(param: Var, type_: TensorType) -> Inner | None:
        image = interface.images.get(param.name_hint)
        if image is None:
            return None
        outside = Var(param.name_hint, TensorType(type_.shape, image.dtype), param.span)
        inside = _as_dtype(_scale_image(outside, image), type_.dtype)
        return None if inside is outside and type_.dtype == image.dtype else (outside, inside)

    def outer(index: int, x: Expr, _type: TensorType) -> Expr:
        return _as_dtype(x, wanted[index]) if index in wanted else x

    return rewrite_interface(model, inner, outer)


def _scale_image(x: Var, image: Image) -> Expr:
    """Return an image times its scale plus its bias."""
    scaled: Expr = x
    if set(image.scale) != {1.0}:
        span = Span(f"{x.name_hint}__scaled__")
        scaled = call("multiply", scaled, _by_channel(image.scale, image), span=span)
    if any(image.bias):
        span = Span(f"{x.name_hint}__biased__")
        scaled = call("add", scaled, _by_channel(image.bias, image), span=span)
    return scaled


def _by_channel(values: Sequence[float], image: Image) -> Expr:
    """Return a number, or one for each channel."""
    shape = () if len(values) == 1 else (1, len(values), 1, 1)
    return Constant(np.array(values, numpy_dtype(image.dtype)).reshape(shape))


def expected_of(
    model: RelayModel, interface: Interface, description: AnyValue, states: Mapping[str, str]
) -> RelayModel:
    """Return a model as it is to be found once it is written, for comparison.

    Args:
        model: The model, states last.
        interface: What apps see of it.
        description: Apple's description of what was written.
        states: The outputs that its states become, by input.
    """
    if interface.images or interface.output_images or interface.classifier is not None:
        model = with_images(with_channels_first(model, interface.images), interface)
    kept = [each.name for each in description.state]
    changed = [a for a, (b, to) in zip(kept, states.items(), strict=True) if to != b]
    inputs = [*(each.name for each in description.input), *kept]
    outputs = [each.name for each in tensors_of(description)]
    outputs += later_names(changed, [*inputs, *outputs])
    names = {param.name_hint: name for param, name in zip(model.inputs(), inputs, strict=True)}
    facts = dict[str, str]()
    for name, image in interface.images.items():
        facts |= {f"{names[name]}.color_space": image.color_layout, f"{names[name]}.scale": ""}
    facts |= {
        f"{symbol}.range": f"{each.lower}:{each.upper}:{each.default}"
        for symbol, each in interface.ranges.items()
    }
    facts |= {
        f"{names[name]}.shapes": ";".join(",".join(map(str, shape)) for shape in shapes)
        for name, shapes in interface.shapes.items()
    }

    def inner(param: Var, type_: TensorType) -> Inner | None:
        name = names[param.name_hint]
        if name == param.name_hint:
            return None
        outside = Var(name, type_, param.span)
        return outside, outside

    model = rewrite_interface(model, inner, lambda _index, x, _type: x)
    meta = replace(
        model.meta,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        extra={**model.meta.extra, **facts},
    )
    return model.evolve(meta=meta)
