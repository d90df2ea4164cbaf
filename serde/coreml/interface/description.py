"""What apps see of a model that is written: inputs, outputs, labels and facts about it.

It is the same for ML Programs and NeuralNetworks.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde._version import __version__
from serde.bridge.input_types import COLORS, DEFAULT_RANGE, Image, Range
from serde.core.records import dataclass, field
from serde.coreml.interface.interface import ARRAY_DTYPES
from serde.errors import OptionError
from serde.relay.ir import Dim, SymDim, TensorType, substitute

__all__ = ["Classifier", "Feature", "Interface"]

SOURCE = "com.github.serde.source"
NAMES = "com.github.serde.names"
"""Keys of the user's metadata: what was converted, and the names that had to be changed."""

_CODES = {dtype: code for code, dtype in ARRAY_DTYPES.items()}
_MOST_SYMBOLS = 8
"""Symbols of a dimension of which all pairs of bounds are tried."""

_UNBOUNDED = -1


@dataclass(frozen=True, slots=True)
class Feature:
    """An input or output to be declared.

    Attributes:
        source: What the source calls it.
        name: What the model calls it.
        type: Its type, of a dtype that features have.
    """

    source: str
    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Classifier:
    """What makes a classifier of a model.

    Attributes:
        labels: Labels in the order of the scores, text or integers.
        output: Index of the output that holds the scores.
        feature: Name of the output with the label of the best class.
    """

    labels: tuple[str | int, ...]
    output: int
    feature: str

    @property
    def probabilities(self) -> str:
        """Name of the output with the scores by label."""
        return f"{self.feature}_probs"

    @property
    def has_text(self) -> bool:
        """Whether the labels are text, and not integers."""
        return isinstance(self.labels[0], str)


@dataclass(frozen=True)
class Interface:
    """What apps are to see of a model.

    Attributes:
        images: Inputs that are images, by their names in the source.
        output_images: Outputs that are images.
        shapes: Shapes that an input may have, the default one first.
        ranges: Lengths of flexible dimensions by symbol.
        assumed: Symbols of which nothing tells the lengths, so that they are the usual ones.
        classifier: What makes it a classifier, if it is one.
        regressor: Whether it is to be a regressor.
        descriptions: What inputs and outputs are, by their names in the source.
        facts: Texts about the model by the fields of Apple's ``Metadata``.
        metadata: What the owner of the model adds.
    """

    images: Mapping[str, Image] = field(default_factory=dict)
    output_images: Mapping[str, Image] = field(default_factory=dict)
    shapes: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    classifier: Classifier | None = None
    regressor: bool = False
    descriptions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    def fill(
        self,
        description: AnyValue,
        inputs: Sequence[Feature],
        outputs: Sequence[Feature],
        by_label: str | None = None,
    ) -> None:
        """Declare inputs and outputs in Apple's ``ModelDescription``.

        Args:
            description: The message.
            inputs: Inputs.
            outputs: All outputs of the network, the scores of a classifier among them.
            by_label: What the scores by label are called, which a NeuralNetwork calls as it does
                the scores; after the feature with the label if left out.
        """
        for feature in inputs:
            self._input(description.input.add(name=feature.name), feature)
        if self.classifier is not None:
            description.predictedFeatureName = self.classifier.feature
            description.predictedProbabilitiesName = by_label or self.classifier.probabilities
            self._label(description.output.add(name=self.classifier.feature), self.classifier)
        for index, feature in enumerate(outputs):
            if self.classifier is not None and index == self.classifier.output:
                name = description.predictedProbabilitiesName
                self._by_label(description.output.add(name=name), feature, self.classifier)
            else:
                self._output(description.output.add(name=feature.name), feature)
        if self.regressor:
            description.predictedFeatureName = outputs[0].name

    def prepare(self, network: AnyValue, inputs: Sequence[Feature]) -> None:
        """Let a NeuralNetwork scale and bias its images, which it does before its first layer.

        Args:
            network: Apple's message of the network.
            inputs: Its inputs.

        Raises:
            OptionError: The channels of an image are scaled by several factors.
        """
        for feature in inputs:
            image = self.images.get(feature.source)
            if image is None or image.is_plain:
                continue
            if len(set(image.scale)) > 1:
                raise OptionError(
                    f"images: {feature.source}: a NeuralNetwork scales all channels alike"
                )
            scaler = network.preprocessing.add(featureName=feature.name).scaler
            scaler.channelScale = image.scale[0]
            for color, bias in zip(COLORS[image.color_layout], image.bias, strict=True):
                setattr(scaler, f"{color}Bias", bias)

    def note(self, metadata: AnyValue, source_format: str, names: Mapping[str, str]) -> None:
        """Write the facts about the model into Apple's ``Metadata``.

        Args:
            metadata: The message.
            source_format: What format the model was.
            names: For each name that had to be changed the one in the source.
        """
        for name, text in self.facts.items():
            setattr(metadata, name, text)
        for name, text in self.metadata.items():
            metadata.userDefined[name] = text
        metadata.userDefined[SOURCE] = f"serde {__version__}, {source_format}"
        if names:
            changed = (f"{new}={old}" for new, old in sorted(names.items()))
            metadata.userDefined[NAMES] = ";".join(changed)

    def _input(self, message: AnyValue, feature: Feature) -> None:
        """Describe an input: an image or a tensor, and the shapes that it may have."""
        message.shortDescription = self.descriptions.get(feature.source, "")
        dims, shapes = feature.type.shape, self.shapes.get(feature.source, ())
        default = shapes[0] if shapes else tuple(self.bounds(dim).default for dim in dims)
        flexible = not all(isinstance(dim, int) for dim in dims)
        bounds = [self.bounds(dim) for dim in dims]
        if feature.source in self.images:
            image = message.type.imageType
            image.height, image.width = default[-2:]
            image.colorSpace = image.ColorSpace.Value(self.images[feature.source].color_layout)
            if shapes:
                for shape in shapes:
                    image.enumeratedSizes.sizes.add(height=shape[-2], width=shape[-1])
            elif flexible:
                ranges = image.imageSizeRange.heightRange, image.imageSizeRange.widthRange
                for target, each in zip(ranges, bounds[-2:], strict=True):
                    target.lowerBound, target.upperBound = each.lower, each.upper
            return
        array = message.type.multiArrayType
        array.dataType = _CODES[feature.type.dtype]
        array.shape.extend(default)
        if shapes:
            for shape in shapes:
                array.enumeratedShapes.shapes.add(shape=shape)
        elif flexible:
            for each in bounds:
                array.shapeRange.sizeRanges.add(lowerBound=each.lower, upperBound=each.upper)

    def _output(self, message: AnyValue, feature: Feature) -> None:
        message.shortDescription = self.descriptions.get(feature.source, "")
        dims = feature.type.shape
        fixed = all(isinstance(dim, int) for dim in dims)
        if feature.source not in self.output_images:
            array = message.type.multiArrayType
            array.dataType = _CODES[feature.type.dtype]
            if fixed:
                array.shape.extend(dims)
            return
        image = message.type.imageType
        image.colorSpace = image.ColorSpace.Value(self.output_images[feature.source].color_layout)
        image.height, image.width = dims[-2:] if fixed else (1, 1)
        if not fixed:
            # Core ML gives nothing for an image of flexible size whose bounds are any others.
            for target in (image.imageSizeRange.heightRange, image.imageSizeRange.widthRange):
                target.lowerBound, target.upperBound = 1, _UNBOUNDED

    def _label(self, message: AnyValue, classifier: Classifier) -> None:
        message.shortDescription = self.descriptions.get(message.name, "")
        type_ = message.type.stringType if classifier.has_text else message.type.int64Type
        type_.SetInParent()

    def _by_label(self, message: AnyValue, scores: Feature, classifier: Classifier) -> None:
        known = self.descriptions.get(scores.source, "")
        message.shortDescription = self.descriptions.get(message.name, known)
        keys = message.type.dictionaryType
        (keys.stringKeyType if classifier.has_text else keys.int64KeyType).SetInParent()

    def bounds(self, dim: Dim) -> Range:
        """Return the lengths that a dimension may have; what symbols make negative is none."""
        if isinstance(dim, int):
            return Range(dim, dim, dim)
        if not isinstance(dim, SymDim):
            return DEFAULT_RANGE
        ranges = {name: self.ranges.get(name, DEFAULT_RANGE) for name in dim.symbols()}
        if len(ranges) > _MOST_SYMBOLS:
            return DEFAULT_RANGE
        ends = itertools.product(*((each.lower, each.upper) for each in ranges.values()))
        lengths = [_length(dim, dict(zip(ranges, each, strict=True))) for each in ends]
        default = _length(dim, {name: each.default for name, each in ranges.items()})
        high = max(lengths)
        if high < 1:
            return DEFAULT_RANGE
        low = max(min(lengths), 0)
        return Range(low, high, min(max(default, low, 1), high))


def _length(dim: SymDim, lengths: Mapping[str, int]) -> int:
    found = substitute(dim, lengths)
    return found if isinstance(found, int) else 1
