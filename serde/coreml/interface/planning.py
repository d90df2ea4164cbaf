"""What is asked of inputs, outputs and labels, checked against the model that is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.input_types import DEFAULT_RANGE, Image, Range, known_image
from serde.bridge.ranges import declared_ranges, integers_of, lengths_of
from serde.coreml.interface.description import Classifier, Interface
from serde.coreml.versions import Target
from serde.errors import OptionError
from serde.relay.ir import RelayModel, SymDim, TensorType, TupleType, substitute

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = ["layout_of", "plan"]

_SEVERAL_ENUMERATED = 18
"""Version of iOS from which on more than one input may have a list of shapes."""

_HALF_IMAGES = 16
"""Version of iOS from which on there are images of float16."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def plan(model: RelayModel, options: CoremlExportOptions, target: Target) -> Interface:
    """Return what apps are to see of a model; what its source says counts where nothing is asked.

    Raises:
        OptionError: What was asked does not fit the model or the target.
    """
    inputs = {each.name_hint: _tensor(each.type) for each in model.inputs()}
    result = model.main.body.type
    types = result.fields if isinstance(result, TupleType) else (result,)
    outputs = dict(zip(model.meta.outputs, map(_tensor, types), strict=False))
    extra = model.meta.extra
    shapes = _plan_enumerated_shapes(options, extra, inputs, target)
    symbols = _symbols(inputs)
    ranges = _ranges(options, extra, inputs, symbols, shapes)
    images = _images(options.images, "images", extra, inputs, target)
    for name, image in images.items():
        type_ = inputs[name]
        if name in shapes and type_ is not None and layout_of(image, type_) == "NHWC":
            shapes[name] = tuple((n, c, h, w) for n, h, w, c in shapes[name])
    output_images = _images(options.output_images, "output_images", extra, outputs, target)
    classifier = _classifier(model, options, outputs)
    if classifier is not None:
        output_images.pop(model.meta.outputs[classifier.output], None)
    meta = model.meta
    facts = {
        "author": _said(options.author, extra.get("author")),
        "license": _said(options.license, extra.get("license")),
        "versionString": _said(options.model_version, extra.get("version")),
        "shortDescription": _said(options.short_description, meta.description),
    }
    return Interface(
        images=images,
        output_images=output_images,
        shapes=shapes,
        ranges=ranges,
        assumed=tuple(name for name in symbols if name not in ranges),
        classifier=classifier,
        regressor=options.mode == "regressor",
        descriptions=_descriptions(options, extra, [*inputs, *outputs], classifier),
        facts={name: text for name, text in facts.items() if text},
        metadata={**meta.metadata, **options.metadata},
    )


def _said(asked: str | None, known: str | None) -> str:
    return (known or "") if asked is None else asked


def _tensor(type_: AnyValue) -> TensorType | None:
    return type_ if isinstance(type_, TensorType) else None


def _check_known(option: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        listed = ", ".join(known) or "none"
        raise OptionError(f"{option}: no {what} is called {unknown[0]!r}; there are: {listed}")


def _plan_enumerated_shapes(
    options: CoremlExportOptions,
    extra: Mapping[str, str],
    inputs: Mapping[str, TensorType | None],
    target: Target,
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the shapes that inputs may have."""
    asked = dict(options.enumerated_shapes)
    if "" in asked:
        if len(inputs) != 1:
            names = ", ".join(inputs)
            raise OptionError(f"enumerated_shapes: name the input; there are: {names}")
        asked[next(iter(inputs))] = asked.pop("")
    _check_known("enumerated_shapes", asked, inputs, "input")
    for name, shapes in asked.items():
        for shape in shapes:
            if _lengths(name, inputs, shape) is None:
                raise OptionError(
                    f"enumerated_shapes: {name}: {list(shape)} is no shape of {inputs[name]!r}; "
                    "input_shapes says which of its dimensions are dynamic"
                )
    for name, type_ in inputs.items():
        text = extra.get(f"{name}.shapes")
        if name in asked or text is None:
            continue
        listed = [integers_of(each, ",") for each in text.split(";")]
        fitting = tuple(shape for shape in listed if _lengths(name, inputs, shape) is not None)
        if len(fitting) == len(listed) and not _is_fixed(type_):
            asked[name] = fitting
    if target.number >= _SEVERAL_ENUMERATED:
        for name in [*asked]:
            asked = {**_shapes_beside(name, asked[name], inputs), **asked}
    elif len(asked) > 1:
        raise OptionError(
            f"enumerated_shapes: of {', '.join(asked)}: before iOS18 only one input may have them"
        )
    return asked


def _shapes_beside(
    name: str, shapes: Sequence[Sequence[int]], inputs: Mapping[str, TensorType | None]
) -> dict[str, tuple[AnyValue, ...]]:
    """Return shapes of further inputs that have the lengths of one with a list of them."""
    values = [_lengths(name, inputs, shape) or {} for shape in shapes]
    own = {x: {*_symbols({x: type_})} for x, type_ in inputs.items() if x != name}
    beside = [x for x, symbols in own.items() if symbols and symbols <= {*values[0]}]
    return {
        x: tuple(tuple(substitute(d, each) for d in type_.shape) for each in values)
        for x in beside if (type_ := inputs[x]) is not None
    }  # fmt: skip


def _lengths(
    name: str, inputs: Mapping[str, TensorType | None], shape: Sequence[int]
) -> dict[str, int] | None:
    type_ = inputs[name]
    return None if type_ is None else lengths_of(name, type_, shape)


def _is_fixed(type_: TensorType | None) -> bool:
    return type_ is not None and all(isinstance(dim, int) for dim in type_.shape)


def _symbols(inputs: Mapping[str, TensorType | None]) -> list[str]:
    """Return the names of the dynamic dimensions of inputs."""
    dims = [dim for type_ in inputs.values() if type_ is not None for dim in type_.shape]
    return sorted({name for dim in dims if isinstance(dim, SymDim) for name in dim.symbols()})


def _ranges(
    options: CoremlExportOptions,
    extra: Mapping[str, str],
    inputs: Mapping[str, TensorType | None],
    names: Sequence[str],
    shapes: Mapping[str, Sequence[Sequence[int]]],
) -> dict[str, Range]:
    """Return the lengths of the symbols in the shapes of the inputs, where they are known."""
    _check_known("ranges", options.ranges, names, "dynamic dimension")
    found = {}
    for name, (lower, upper, default) in declared_ranges(extra).items():
        if name in names:
            upper = upper or max(DEFAULT_RANGE.upper, lower, default)
            found[name] = Range(lower, upper, min(default or lower, upper))
    found |= options.ranges
    for input_, listed in shapes.items():
        columns = [_lengths(input_, inputs, shape) or {} for shape in listed]
        for name in names if columns else ():
            if name not in columns[0]:
                continue
            if name in options.ranges:
                raise OptionError(
                    f"ranges: {name}: its lengths are those of enumerated_shapes of {input_}"
                )
            lengths = [column[name] for column in columns]
            found[name] = Range(min(lengths), max(lengths), lengths[0])
    return found


def _images(
    asked: Mapping[str, Image],
    option: str,
    extra: Mapping[str, str],
    types: Mapping[str, TensorType | None],
    target: Target,
) -> dict[str, Image]:
    """Return which inputs or outputs are images; those of the source stay images."""
    _check_known(option, asked, types, "input" if option == "images" else "output")
    found = {}
    for name, type_ in types.items():
        image = asked.get(name, known_image(extra, name))
        if image is None:
            continue
        fault = _misfit(image, type_, target, option == "images")
        if fault and name in asked:
            raise OptionError(f"{option}: {name}: {fault}")
        if not fault:
            found[name] = image
    return found


def _misfit(image: Image, type_: TensorType | None, target: Target, taken: bool) -> str:
    """Return why a tensor is no such image, if it is none."""
    if image.dtype == "float16" and target.number < _HALF_IMAGES:
        return f"{image.color_layout} needs minimum_deployment_target=iOS{_HALF_IMAGES} or newer"
    shapes = f"[1, {image.channels}, H, W]" + (f" or [1, H, W, {image.channels}]" if taken else "")
    if type_ is None or type_.rank != 4 or type_.shape[0] != 1 or not layout_of(image, type_):
        return f"a {image.color_layout} image is a tensor of {shapes}, found {type_!r}"
    if not taken and layout_of(image, type_) != "NCHW":
        return f"a {image.color_layout} image that comes out is of {shapes}, found {type_!r}"
    if not image.is_plain and not type_.dtype.startswith("float"):
        return f"scale and bias would be rounded to {type_.dtype}"
    return ""


def layout_of(image: Image, type_: TensorType) -> str:
    """Return where the channels of an image are in a tensor of four axes, or nothing."""
    if type_.shape[1] == image.channels:
        return "NCHW"
    return "NHWC" if type_.shape[3] == image.channels else ""


def _classifier(
    model: RelayModel, options: CoremlExportOptions, outputs: Mapping[str, TensorType | None]
) -> Classifier | None:
    """Return what makes a classifier of a model, if it is to be one."""
    extra = model.meta.extra
    labels: tuple[str | int, ...] = model.meta.labels
    if extra.get("label_type") == "int64":
        labels = integers_of(",".join(model.meta.labels), ",") or model.meta.labels
    asked = options.class_labels is not None or options.mode == "classifier"
    if options.mode == "regressor":
        if options.class_labels is not None:
            raise OptionError("class_labels: a regressor has none; leave out mode='regressor'")
        if len(outputs) != 1:
            raise OptionError(f"mode='regressor': one output is expected, found {len(outputs)}")
        return None
    labels = labels if options.class_labels is None else options.class_labels
    if not labels:
        if options.mode == "classifier":
            raise OptionError("mode='classifier': class_labels are missing")
        return None
    scores = options.predicted_probabilities_output or extra.get("predicted_probabilities")
    if options.predicted_probabilities_output is not None:
        _check_known("predicted_probabilities_output", [str(scores)], outputs, "output")
    names = list(outputs)
    scores = names[0] if scores not in outputs and len(names) == 1 else scores
    fault = _why_no_scores(scores, outputs, labels)
    if fault:
        if asked:
            raise OptionError(f"class_labels: {fault}")
        return None
    feature = options.predicted_feature_name
    if feature is not None and not _NAME.fullmatch(feature):
        raise OptionError(
            f"predicted_feature_name: expected letters, digits and _, found {feature!r}"
        )
    known = extra.get("predicted_feature", "")
    feature = feature or (known if _NAME.fullmatch(known) else "classLabel")
    return Classifier(labels, names.index(str(scores)), feature)


def _why_no_scores(
    scores: str | None, outputs: Mapping[str, TensorType | None], labels: Sequence[str | int]
) -> str:
    """Return why an output cannot be that with the scores, if it cannot."""
    if scores is None or scores not in outputs:
        return f"predicted_probabilities_output must name one of {', '.join(outputs)}"
    type_ = outputs[scores]
    if type_ is None or not type_.dtype.startswith("float"):
        return f"the scores {scores} are {type_!r}, no floats"
    if not _is_fixed(type_):
        return f"the scores {scores} are {type_!r}: Core ML classifies one at a time, so fix them"
    count = 1
    for dim in type_.concrete_shape or ():
        count *= dim
    if count != len(labels):
        return f"{len(labels)} labels for the {count} scores {scores} of {type_!r}"
    return ""


def _descriptions(
    options: CoremlExportOptions,
    extra: Mapping[str, str],
    names: Sequence[str],
    classifier: Classifier | None,
) -> dict[str, str]:
    if classifier is not None:
        names = [*names, classifier.feature, classifier.probabilities]
    _check_known("descriptions", options.descriptions, names, "input or output")
    known = {name: extra.get(f"{name}.description", "") for name in names}
    return {name: text for name, text in {**known, **options.descriptions}.items() if text}
