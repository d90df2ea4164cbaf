"""What apps see of a written model: images with their channels last, and class labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from serde.bridge.input_types import Image, image_facts, known_image
from serde.core import Report
from serde.errors import OptionError
from serde.relay.ir import RelayModel, Span, TensorType, Type, Var, call, leaf_types
from serde.tflite.facts import COLOR_SPACES, Facts
from serde.tflite.options import TfliteExportOptions
from serde.walk.interface import Inner, rewrite_interface

__all__ = ["planned_facts", "with_channels_last"]

_FIRST: Final = (0, 3, 1, 2)


def with_channels_last(model: RelayModel, options: TfliteExportOptions) -> RelayModel:
    """Return the model with images as [1, height, width, channels], as apps give them."""

    def inner(param: Var, type_: TensorType) -> Inner | None:
        image = options.images.get(param.name_hint)
        if image is None or _channels_axis(image, type_) != 1:
            return None
        last = TensorType([type_.shape[axis] for axis in (0, 2, 3, 1)], type_.dtype)
        outside = Var(param.name_hint, last, param.span)
        return outside, call(
            "transpose", outside, axes=_FIRST, span=Span(f"{param.name_hint}/NCHW")
        )

    made = rewrite_interface(model, inner, lambda _index, x, _type: x)
    told = [image_facts(name, image) for name, image in options.images.items()]
    extra = {key: text for facts in (made.meta.extra, *told) for key, text in facts.items()}
    return made.evolve(meta=replace(made.meta, extra=extra))


def _channels_axis(image: Image, type_: Type | None) -> int:
    """Return which axis has the channels of an image, 0 where none has."""
    if not isinstance(type_, TensorType) or type_.rank != 4:
        return 0
    return next((axis for axis in (3, 1) if type_.shape[axis] == image.channels), 0)


def planned_facts(model: RelayModel, options: TfliteExportOptions, report: Report) -> Facts:
    """Return what is said to apps: what was asked, or else what the source says and fits.

    Raises:
        OptionError: What was asked does not fit.
    """
    extra, images = model.meta.extra, dict[int, Image]()
    for name in set(options.images).difference(each.name_hint for each in model.inputs()):
        raise OptionError(f"images: no input is called {name!r}")
    for place, param in enumerate(model.inputs()):
        image = known_image(extra, param.name_hint)
        fault = "" if image is None else _misfit(image, param.type)
        if image is not None and not fault:
            images[place] = image
        elif fault and param.name_hint in options.images:
            raise OptionError(f"images: {param.name_hint}: {fault}")
        elif fault:
            report.notes.append(f"{param.name_hint}: not told to be an image: {fault}")
    texts = {each: extra[each] for each in ("author", "license", "version") if extra.get(each)}
    return Facts(images, _labels(model, options, report), texts)


def _misfit(image: Image, type_: Type | None) -> str:
    """Return why TFLite Metadata do not tell an image, if they do not."""
    if image.color_layout not in COLOR_SPACES:
        return f"TFLite Metadata have {' and '.join(COLOR_SPACES)}, found {image.color_layout}"
    if not all(image.scale):
        return "pixels times 0 are divided by nothing"
    if _channels_axis(image, type_) != 3:
        return f"it has not {image.channels} channels at its end"
    return ""


def _labels(
    model: RelayModel, options: TfliteExportOptions, report: Report
) -> dict[int, Sequence[str]]:
    """Return the labels of the output that has as many scores."""
    asked, result = options.class_labels, model.main.body.type
    labels = tuple(map(str, model.meta.labels if asked is None else asked))
    types = [x.shape if isinstance(x, TensorType) else () for x in leaf_types(result)]
    fits = [place for place, shape in enumerate(types) if shape[-1:] == (len(labels),)]
    if labels and len(fits) == 1:
        return {fits[0]: labels}
    fault = f"class_labels: {len(fits) or 'no'} outputs have {len(labels)} scores in a row"
    if asked is not None:
        raise OptionError(fault)
    report.notes.extend([fault] if labels else [])
    return {}
