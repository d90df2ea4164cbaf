"""What apps see of a written model: images with their channels last, and class labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serde.bridge.input_types import Image, known_image
from serde.core.report import Report
from serde.errors import OptionError
from serde.relay.ir.expr import Span, Var
from serde.relay.ir.leaves import leaf_types
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType, Type
from serde.tflite.facts import COLOR_SPACES, Facts
from serde.tflite.options import TfliteExportOptions
from serde.walk.interface import Inner, rewrite_interface

__all__ = ["planned_facts", "with_channels_last"]

_FIRST_TO_LAST: Final = (0, 3, 1, 2)


def with_channels_last(model: RelayModel, options: TfliteExportOptions) -> RelayModel:
    """Return the model with images as [1, height, width, channels], as apps give them."""
    wanted = {name for name in options.images if _axis(options.images[name], model, name) == 1}

    def inner(param: Var, type_: TensorType) -> Inner | None:
        if param.name_hint not in wanted:
            return None
        batch, channels, height, width = type_.shape
        last = TensorType((batch, height, width, channels), type_.dtype)
        outside = Var(param.name_hint, last, param.span)
        span = Span(f"{param.name_hint}__first__")
        return outside, call("transpose", outside, axes=_FIRST_TO_LAST, span=span)

    return rewrite_interface(model, inner, lambda _index, x, _type: x)


def _axis(image: Image, model: RelayModel, name: str) -> int:
    """Return where the channels of an image are, 0 where it is none."""
    types = {each.name_hint: each.type for each in model.inputs()}
    found = types.get(name)
    if not isinstance(found, TensorType) or found.rank != 4:
        return 0
    return next((axis for axis in (3, 1) if found.shape[axis] == image.channels), 0)


def planned_facts(model: RelayModel, options: TfliteExportOptions, report: Report) -> Facts:
    """Return what is said to apps: what was asked, or else what the source says and fits.

    Raises:
        OptionError: What was asked does not fit.
    """
    names = [each.name_hint for each in model.inputs()]
    unknown = [name for name in options.images if name not in names]
    if unknown:
        raise OptionError(f"images: no input is called {unknown[0]!r}; there are: {names}")
    images = {}
    for place, name in enumerate(names):
        asked = options.images.get(name)
        image = known_image(model.meta.extra, name) if asked is None else asked
        if image is None:
            continue
        fault = _misfit(image, model, name)
        if fault and asked is not None:
            raise OptionError(f"images: {name}: {fault}")
        if fault:
            report.notes.append(f"{name}: not told to be an image, for {fault}")
        else:
            images[place] = image
    texts = {each: model.meta.extra.get(each, "") for each in ("author", "license", "version")}
    known = {name: text for name, text in texts.items() if text}
    return Facts(images, _labels(model, options, report), known)


def _misfit(image: Image, model: RelayModel, name: str) -> str:
    """Return why TFLite Metadata do not tell an image, if they do not."""
    if image.color_layout not in COLOR_SPACES:
        return f"TFLite Metadata have {' and '.join(COLOR_SPACES)}, found {image.color_layout}"
    if not all(image.scale):
        return "pixels times 0 are divided by nothing"
    if _axis(image, model, name) != 3:
        return f"it has not {image.channels} channels at its end"
    return ""


def _labels(
    model: RelayModel, options: TfliteExportOptions, report: Report
) -> dict[int, Sequence[str]]:
    """Return the labels of the output that has as many scores."""
    asked, type_ = options.class_labels, model.main.body.type
    labels = tuple(map(str, model.meta.labels if asked is None else asked))
    if not labels:
        return {}
    types: Sequence[Type | None] = leaf_types(type_)
    fits = [
        place
        for place, each in enumerate(types)
        if isinstance(each, TensorType) and each.shape and each.shape[-1] == len(labels)
    ]
    if len(fits) == 1:
        return {fits[0]: labels}
    fault = f"{len(fits) or 'no'} outputs have {len(labels)} scores in a row"
    if asked is not None:
        raise OptionError(f"class_labels: {fault}")
    report.notes.append(f"class labels are left out: {fault}")
    return {}
