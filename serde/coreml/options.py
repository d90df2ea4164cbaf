"""Options of reading and writing Core ML models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from serde.bridge import input_types
from serde.bridge.options import ExportOptions, ImportOptions
from serde.core.records import dataclass, field
from serde.errors import OptionError

__all__ = ["NETWORK_TARGETS", "CoremlExportOptions", "CoremlImportOptions"]

_TEXTS = (
    "author",
    "license",
    "model_version",
    "predicted_feature_name",
    "predicted_probabilities_output",
    "short_description",
)
"""Options that are text, or left out."""


NETWORK_TARGETS = ("iOS13", "iOS14")
"""Targets that know no ML Programs."""


@dataclass(frozen=True, kw_only=True)
class CoremlImportOptions(ImportOptions):
    """Options of reading Core ML models.

    Attributes:
        function: Which function of an ML Program to read; the one it runs by default if left
            out.
        pipeline_model: Which model of a pipeline to read alone, by its name or its number from 0;
            all of them, one after the other, if left out.
        optional_inputs: Whether the thresholds of a pipeline that may be left out are ``inputs``
            of what is read, or have their ``defaults`` always.
    """

    function: str | None = field(
        default=None, metadata={"help": "Function of an ML Program to read."}
    )
    pipeline_model: str | None = field(
        default=None, metadata={"help": "Model of a pipeline to read alone: its number or name."}
    )
    optional_inputs: Literal["inputs", "defaults"] = field(
        default="inputs",
        metadata={"help": "Thresholds of a pipeline that may be left out: inputs, or defaults."},
    )


_ONCE: Final = "Core ML gives scores by label, so that one of them would be lost"


@dataclass(frozen=True, kw_only=True)
class CoremlExportOptions(ExportOptions):
    """Options of writing Core ML models.

    Attributes:
        minimum_deployment_target: Oldest system that is to run the model: ``iOS15`` to ``iOS26``
            for ML Programs, ``iOS13`` or ``iOS14`` for NeuralNetworks.
        compute_precision: What a program computes in, float16 if left out; its inputs and outputs
            stay as they are. Of a NeuralNetwork what its weights are stored in, float32 if left
            out.
        float32_ops: What a program in float16 computes in float32 besides what leaves the range
            or the precision of float16: operators of Relay, names of nodes, or the groups
            ``norms``, ``reductions`` and ``resizing``.
        images: Inputs that are images, by name: a colour layout (``RGB``, ``BGR``,
            ``GRAYSCALE``, from iOS16 on ``GRAYSCALE_FLOAT16``), or a mapping of
            ``color_layout``, ``scale`` and ``bias`` (one number, or one for each channel in the
            order of the layout; also ``red_bias`` and the like). The network gets
            ``scale * pixels + bias``. A list of names stands for RGB images as they are.
        output_images: Outputs that are images, by name, with a colour layout.
        class_labels: Class labels of a classifier in the order of its scores, text or
            integers, or a file with one on each line; those of the source if left out.
        mode: ``classifier``, or ``regressor`` for a network that gives numbers. Without it, a
            model with class labels is a classifier.
        predicted_feature_name: What the output with the label of the best class is called; that
            with all scores has ``_probs`` behind it; ``classLabel`` if left out.
        predicted_probabilities_output: The output that holds the scores of the classes, where
            there are several outputs.
        ranges: Lengths that a dynamic dimension may have, by its name: (lower, upper), or
            (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes: Shapes that an input may have, by name; the first is the default.
        states: Outputs that are later values of inputs, by input, which Core ML keeps as states
            from iOS18 on; those of the source if left out. They are float16.
        cache: Whether what a decoder keeps between calls is ``states`` or ``inputs`` and outputs;
            if left out, states from iOS18 on where the program computes in float16.
        author: Who made the model.
        license: Under which licence.
        model_version: Version of the model.
        short_description: What it does; what the source says of it if left out.
        descriptions: What inputs and outputs are, by name.
        metadata: Further facts that the model is to carry, texts by name.
    """

    write_packages = ("coremltools",)

    minimum_deployment_target: str = field(
        default="iOS15", metadata={"help": "Oldest system that is to run the model.", "first": True}
    )
    compute_precision: Literal["float16", "float32"] | None = field(
        default=None, metadata={"help": "What a program computes in, or weights are stored in."}
    )
    float32_ops: frozenset[str] = field(
        default=frozenset(),
        metadata={
            "help": "What a float16 program computes in float32 besides: Relay operators, nodes, "
            "or norms, reductions, resizing."
        },
    )
    images: Mapping[str, input_types.Image] = field(
        default_factory=dict, metadata=input_types.IMAGES
    )
    output_images: Mapping[str, input_types.Image] = field(
        default_factory=dict,
        metadata={
            "accepts": Mapping[str, input_types.Image | str] | Sequence[str],
            "flag": "--output-image",
            "parse": input_types.parse_layouts,
            "metavar": "NAME:LAYOUT",
            "help": "Output that is an image: mask:GRAYSCALE.",
        },
    )
    class_labels: tuple[str | int, ...] | None = field(
        default=None, metadata=input_types.CLASS_LABELS
    )
    mode: Literal["classifier", "regressor"] | None = field(
        default=None, metadata={"help": "What the model is to apps, besides a function."}
    )
    predicted_feature_name: str | None = field(
        default=None, metadata={"help": "Output of a classifier with the best label: classLabel."}
    )
    predicted_probabilities_output: str | None = field(
        default=None, metadata={"help": "Output with the scores of a classifier, of several."}
    )
    ranges: Mapping[str, input_types.Range] = field(
        default_factory=dict,
        metadata={
            "accepts": Mapping[str, input_types.Range | Sequence[int]],
            "flag": "--range",
            "parse": input_types.parse_ranges,
            "metavar": "NAME:FROM:TO[:DEFAULT]",
            "help": "Lengths of a dynamic dimension, N:1:8; 1 to 1024 if left out.",
        },
    )
    enumerated_shapes: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict,
        metadata={
            "accepts": Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]],
            "flag": "--enumerated-shape",
            "parse": input_types.parse_enumerated,
            "metavar": "NAME:SHAPE",
            "help": "A shape that an input may have; the first is the default.",
        },
    )
    states: Mapping[str, str] = input_types.texts_option(
        "--state",
        "Input that is a state and the output with its later value, from iOS18 on.",
        metavar="INPUT=OUTPUT",
    )
    cache: Literal["states", "inputs"] | None = field(
        default=None, metadata={"help": "What a decoder keeps: states, or inputs and outputs."}
    )
    author: str | None = field(default=None, metadata={"help": "Who made the model."})
    license: str | None = field(default=None, metadata={"help": "Licence of the model."})
    model_version: str | None = field(default=None, metadata={"help": "Version of the model."})
    short_description: str | None = field(
        default=None, metadata={"help": "What the model does, for people."}
    )
    descriptions: Mapping[str, str] = input_types.texts_option(
        "--describe", "What an input or output is, for people."
    )
    metadata: Mapping[str, str] = input_types.texts_option(
        "--metadata", "A further fact that the model is to carry."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        made = {
            "images": input_types.images_from(self.images),
            "output_images": input_types.output_images_from(self.output_images),
            "class_labels": input_types.labels_from(self.class_labels, once=_ONCE),
            "ranges": input_types.ranges_from(self.ranges),
            "enumerated_shapes": input_types.enumerated_from(self.enumerated_shapes),
            "descriptions": input_types.texts_from(self.descriptions, "descriptions"),
            "metadata": input_types.texts_from(self.metadata, "metadata"),
            "states": input_types.texts_from(self.states, "states"),
        }
        for name in _TEXTS:
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise OptionError(f"{name}: expected text, found {given!r}")
        if self.mode not in (None, "classifier", "regressor"):
            raise OptionError(f"mode: expected 'classifier' or 'regressor', found {self.mode!r}")
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def computes_float16(self) -> bool:
        """Whether what is written computes in float16 whatever the model does."""
        if self.minimum_deployment_target in NETWORK_TARGETS:
            return self.compute_precision == "float16"
        return self.compute_precision != "float32"
