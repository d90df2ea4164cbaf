"""Inputs and outputs of Core ML models that are read: what they declare and is known of them.

What Relay has no place for goes into the model's facts by name: ``author``, ``license``,
``version``; ``<feature>.description`` and ``<feature>.color_space``; ``<symbol>.range``, the
lengths of a flexible dimension as ``lower:upper:default``; ``<input>.shapes``, the shapes that an
input may have, the default one first; ``predicted_feature``, ``predicted_probabilities`` and
``label_type`` of a classifier; and ``metadata.<name>``, what the model's owner added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.bridge.input_types import COLORS
from serde.bridge.summary import TensorSummary
from serde.coreml.mlprogram.constants import NonTensor, read_value
from serde.coreml.model import CoremlModel, operations
from serde.errors import Unsupported
from serde.relay.ir.dims import DimLike
from serde.relay.ir.model import METADATA, ModelMeta

__all__ = [
    "ARRAY_DTYPES", "class_labels", "color_space", "declared_dims", "description_of",
    "feature_facts", "feature_summary", "model_meta", "tensors_of",
]  # fmt: skip

OWN = ("com.github.serde.", "com.github.apple.coremltools.")
"""What the keys of metadata begin with that converters write themselves."""

ARRAY_DTYPES = {
    65552: "float16",
    65568: "float32",
    65600: "float64",
    131104: "int32",
    131080: "int8",
}
"""dtypes by ``ArrayDataType`` of FeatureTypes.proto."""


def declared_dims(type_: Any, name: str) -> list[DimLike]:
    """Return the dimensions of a tensor type; one that is flexible is called after its axis."""
    return [
        int(dim.constant.size) if dim.WhichOneof("dimension") == "constant" else f"{name}_{axis}"
        for axis, dim in enumerate(type_.dimensions)
    ]


def color_space(feature: Any) -> str:
    """Return the name of the colour space of an image.

    Raises:
        Unsupported: It has none.
    """
    name = _color(feature)
    if name not in COLORS:
        raise Unsupported("an image without a colour space")
    return name


def _color(feature: Any) -> str:
    image = feature.type.imageType
    members = image.DESCRIPTOR.fields_by_name["colorSpace"].enum_type.values_by_number
    return str(members[image.colorSpace].name) if image.colorSpace in members else ""


def tensors_of(description: Any) -> list[Any]:
    """Return the outputs of a model, without the label of the best class, which is no tensor."""
    label = description.predictedFeatureName
    kinds = ("stringType", "int64Type")
    return [
        each
        for each in description.output
        if each.name != label or each.type.WhichOneof("Type") not in kinds
    ]


def _is_image(feature: Any) -> bool:
    return bool(feature.type.WhichOneof("Type") == "imageType")


def description_of(spec: Any, function: str | None = None) -> Any:
    """Return the message that lists inputs and outputs: of a function of several, its own."""
    description = spec.description
    name = function or description.defaultFunctionName
    own = {each.name: each for each in description.functions}
    return own.get(name, description)


def model_meta(
    model: CoremlModel,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    function: str | None = None,
    labels: Sequence[str | int] = (),
    image_axes: tuple[str, str] = ("2", "3"),
) -> ModelMeta:
    """Return what a model says about itself.

    Args:
        model: The model.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
        function: The function of an ML Program that is read.
        labels: Labels of a classifier.
        image_axes: What the symbols of an image's height and width end in.
    """
    own, metadata = description_of(model.spec, function), model.spec.description.metadata
    extra = {
        "author": metadata.author,
        "license": metadata.license,
        "version": metadata.versionString,
    }
    for feature in (*own.input, *own.output, *own.state):
        extra[f"{feature.name}.description"] = feature.shortDescription
        if _is_image(feature):
            extra[f"{feature.name}.color_space"] = _color(feature)
    for feature in own.input:
        extra |= _flexible(feature, image_axes)
    if labels:
        extra["predicted_feature"] = own.predictedFeatureName
        extra["predicted_probabilities"] = own.predictedProbabilitiesName
        extra["label_type"] = "int64" if isinstance(labels[0], int) else ""
    extra |= {
        f"{METADATA}{name}": text
        for name, text in sorted(metadata.userDefined.items())
        if not name.startswith(OWN)
    }
    return ModelMeta(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        source_format="coreml",
        source_version=f"specification {model.spec.specificationVersion}",
        description=metadata.shortDescription,
        labels=tuple(map(str, labels)),
        extra={name: text for name, text in extra.items() if text},
    )


def _flexible(feature: Any, image_axes: tuple[str, str]) -> dict[str, str]:
    """Return the facts about the flexible lengths of an input."""
    shapes = _shapes(feature)
    if shapes:
        return {f"{feature.name}.shapes": ";".join(",".join(map(str, each)) for each in shapes)}
    kind = feature.type.WhichOneof("Type")
    if kind == "multiArrayType":
        array = feature.type.multiArrayType
        axes = list(map(str, range(len(array.shapeRange.sizeRanges))))
        bounds, defaults = array.shapeRange.sizeRanges, list(array.shape)
    elif kind == "imageType":
        image = feature.type.imageType
        has = image.WhichOneof("SizeFlexibility") == "imageSizeRange"
        axes = list(image_axes) if has else []
        bounds = [image.imageSizeRange.heightRange, image.imageSizeRange.widthRange]
        defaults = [image.height, image.width]
    else:
        return {}
    found = {}
    for index, axis in enumerate(axes):
        low, high = bounds[index].lowerBound, bounds[index].upperBound
        default = defaults[index] if index < len(defaults) else low
        if low != high:
            found[f"{feature.name}_{axis}.range"] = f"{low}:{high}:{default}"
    return found


def _shapes(feature: Any) -> list[tuple[int, ...]]:
    """Return the shapes that an input may have, the default one first; none if not enumerated."""
    kind = feature.type.WhichOneof("Type")
    if kind == "multiArrayType":
        array = feature.type.multiArrayType
        if array.WhichOneof("ShapeFlexibility") != "enumeratedShapes":
            return []
        default = tuple(map(int, array.shape))
        found = [tuple(map(int, each.shape)) for each in array.enumeratedShapes.shapes]
    elif kind == "imageType":
        image = feature.type.imageType
        if image.WhichOneof("SizeFlexibility") != "enumeratedSizes":
            return []
        channels = len(COLORS.get(_color(feature), ()))
        default = (1, channels, int(image.height), int(image.width))
        found = [
            (1, channels, int(each.height), int(each.width)) for each in image.enumeratedSizes.sizes
        ]
    else:
        return []
    return sorted(found, key=lambda shape: shape != default)


def class_labels(model: CoremlModel) -> tuple[str | int, ...]:
    """Return the class labels of a classifier, in order of its scores; none of other models."""
    if model.kind == "neuralNetworkClassifier":
        kind = model.network.WhichOneof("ClassLabels")
        return tuple(getattr(model.network, kind).vector) if kind else ()
    if model.kind != "mlProgram":
        return ()
    constants: dict[str, Any] = {}
    for op in operations(model.spec):
        if op.type == "const":
            constants[op.outputs[0].name] = op.attributes["val"]
        if op.type == "classify":
            (argument,) = op.inputs["classes"].arguments
            value = argument.value if argument.WhichOneof("binding") == "value" else None
            value = constants.get(argument.name) if value is None else value
            found = None if value is None else read_value(value, model.source)
            return found.value if isinstance(found, NonTensor) else ()
    return ()


def feature_summary(feature: Any) -> TensorSummary:
    """Return what a model declares of an input or output."""
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType" and not feature.type.imageType.WhichOneof("SizeFlexibility"):
        image, space = feature.type.imageType, _color(feature)
        shape = (1, len(COLORS.get(space, ())), int(image.height), int(image.width))
        return TensorSummary(feature.name, shape, "float16" if "FLOAT16" in space else "float32")
    if kind != "multiArrayType":
        return TensorSummary(feature.name)
    array = feature.type.multiArrayType
    dtype = ARRAY_DTYPES.get(array.dataType)
    if array.WhichOneof("ShapeFlexibility") == "shapeRange":
        dims: list[int | str] = [
            int(size.lowerBound) if size.lowerBound == size.upperBound else f"{feature.name}_{axis}"
            for axis, size in enumerate(array.shapeRange.sizeRanges)
        ]
        return TensorSummary(feature.name, tuple(dims), dtype)
    if array.WhichOneof("ShapeFlexibility") == "enumeratedShapes":
        return TensorSummary(feature.name, None, dtype)
    return TensorSummary(feature.name, tuple(map(int, array.shape)) or None, dtype)


def feature_facts(model: CoremlModel) -> dict[str, str]:
    """Return what is to be said to people of inputs, outputs and labels besides their types."""
    own = description_of(model.spec)
    facts = {}
    ports = [("input", each) for each in own.input] + [("output", each) for each in own.output]
    for port, feature in ports:
        parts = [f"{_color(feature)} image"] if _is_image(feature) else []
        lengths = _lengths_text(feature)
        parts += [lengths] if lengths and port == "input" else []
        parts += [feature.shortDescription] if feature.shortDescription else []
        if parts:
            facts[f"{port} {feature.name}"] = "; ".join(parts)
    labels = class_labels(model)
    if labels:
        shown = ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")
        facts["labels"] = f"{len(labels)}: {shown}"
        facts["predicts"] = f"{own.predictedFeatureName}, {own.predictedProbabilitiesName}"
    return facts


def _lengths_text(feature: Any) -> str:
    """Return which shapes or sizes an input may have; of a fixed tensor nothing."""
    shapes = _shapes(feature)
    image = _is_image(feature)
    if shapes:
        return " or ".join("x".join(map(str, each[2:] if image else each)) for each in shapes)
    if image:
        size = feature.type.imageType
        if not size.WhichOneof("SizeFlexibility"):
            return f"{size.height}x{size.width}"
        bounds = [size.imageSizeRange.heightRange, size.imageSizeRange.widthRange]
        default = f"{size.height}x{size.width}"
    else:
        array = feature.type.multiArrayType
        bounds = list(array.shapeRange.sizeRanges)
        default = "x".join(map(str, array.shape))
    lengths = [
        str(each.lowerBound)
        if each.lowerBound == each.upperBound
        else f"{each.lowerBound}..{each.upperBound if each.upperBound > 0 else ''}"
        for each in bounds
    ]
    return f"{' x '.join(lengths)}, by default {default}" if lengths else ""
