"""Core ML as a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any as AnyValue
from typing import Literal

from serde.bridge import Bridge, ExportOptions, ImportOptions, ModelSummary, TensorNames
from serde.coreml.interface import requests
from serde.errors import OptionError
from serde.relay.ir.model import RelayModel
from serde.report import Report

__all__ = ["CoremlBridge", "CoremlExportOptions", "CoremlImportOptions"]

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
        author: Who made the model.
        license: Under which licence.
        model_version: Version of the model.
        short_description: What it does; what the source says of it if left out.
        descriptions: What inputs and outputs are, by name.
        metadata: Further facts that the model is to carry, texts by name.
    """

    minimum_deployment_target: str = field(
        default="iOS15", metadata={"help": "Oldest system that is to run the model."}
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
    images: Mapping[str, requests.Image] = field(
        default_factory=dict,
        metadata={
            "flag": "--image",
            "parse": requests.parse_images,
            "metavar": "NAME:LAYOUT,...",
            "help": "Input that is an image: data:BGR,scale=0.017,red_bias=-2.1 (RGB, BGR, "
            "GRAYSCALE, GRAYSCALE_FLOAT16; also bias for all channels).",
        },
    )
    output_images: Mapping[str, requests.Image] = field(
        default_factory=dict,
        metadata={
            "flag": "--output-image",
            "parse": requests.parse_layouts,
            "metavar": "NAME:LAYOUT",
            "help": "Output that is an image: mask:GRAYSCALE.",
        },
    )
    class_labels: tuple[str | int, ...] | None = field(
        default=None,
        metadata={
            "parse": requests.parse_file,
            "metavar": "FILE",
            "help": "File with a class label on each line; makes a classifier.",
        },
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
    ranges: Mapping[str, requests.Range] = field(
        default_factory=dict,
        metadata={
            "flag": "--range",
            "parse": requests.parse_ranges,
            "metavar": "NAME:FROM:TO[:DEFAULT]",
            "help": "Lengths of a dynamic dimension, N:1:8; 1 to 1024 if left out.",
        },
    )
    enumerated_shapes: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict,
        metadata={
            "flag": "--enumerated-shape",
            "parse": requests.parse_enumerated,
            "metavar": "NAME:SHAPE",
            "help": "A shape that an input may have; the first is the default.",
        },
    )
    states: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "flag": "--state",
            "parse": requests.parse_texts("--state"),
            "metavar": "INPUT=OUTPUT",
            "help": "Input that is a state and the output with its later value, from iOS18 on.",
        },
    )
    author: str | None = field(default=None, metadata={"help": "Who made the model."})
    license: str | None = field(default=None, metadata={"help": "Licence of the model."})
    model_version: str | None = field(default=None, metadata={"help": "Version of the model."})
    short_description: str | None = field(
        default=None, metadata={"help": "What the model does, for people."}
    )
    descriptions: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "flag": "--describe",
            "parse": requests.parse_texts("--describe"),
            "metavar": "NAME=TEXT",
            "help": "What an input or output is, for people.",
        },
    )
    metadata: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "parse": requests.parse_texts("--metadata"),
            "metavar": "NAME=TEXT",
            "help": "A further fact that the model is to carry.",
        },
    )

    def __post_init__(self) -> None:
        made = {
            "images": requests.images_from(self.images),
            "output_images": requests.output_images_from(self.output_images),
            "class_labels": requests.labels_from(self.class_labels),
            "ranges": requests.ranges_from(self.ranges),
            "enumerated_shapes": requests.enumerated_from(self.enumerated_shapes),
            "descriptions": requests.texts_from(self.descriptions, "descriptions"),
            "metadata": requests.texts_from(self.metadata, "metadata"),
            "states": requests.texts_from(self.states, "states"),
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


def _as_layers(version: int | None) -> str:
    """Return what a list of operators says of one that is written as layers, too."""
    return "" if version is None else f"; in layers, from iOS{max(version, 13)}"


def _kinds(model: AnyValue) -> list[str]:
    """Return the kinds of the models of a pipeline."""
    models = model.pipeline.models if model.is_pipeline else ()
    return [str(each.WhichOneof("Type")) for each in models]


class CoremlBridge(Bridge):
    """Reads and writes Core ML models."""

    name = "coreml"
    title = "Core ML"
    suffixes = (".mlpackage", ".mlmodel")
    import_options = CoremlImportOptions
    export_options = CoremlExportOptions

    def detect(self, path: Path) -> bool:
        """Whether `path` is a package or a file with a Core ML model."""
        from serde.coreml.reader import detect

        return detect(path)

    def accepts(self, source: object) -> bool:
        """Whether `source` is an ``MLModel`` of coremltools, or a message of one."""
        kind = type(source)
        descriptor = getattr(kind, "DESCRIPTOR", None)
        if getattr(descriptor, "full_name", None) == "CoreML.Specification.Model":
            return True
        return kind.__name__ == "MLModel" and kind.__module__.partition(".")[0] == "coremltools"

    def load(self, source: AnyValue, params: AnyValue, options: ImportOptions) -> AnyValue:
        """Return the model of a path, bytes or a live object; weights stay where they are."""
        from serde.coreml.reader import load

        if params is not None:
            raise OptionError("a Core ML model holds its weights; none can be given beside it")
        return load(source)

    def files(self, model: AnyValue) -> Sequence[Path]:
        """Return the files that the model and its weights lie in."""
        return [Path(name) for name in model.files]

    def to_relay(self, model: AnyValue, options: ImportOptions, *, report: Report) -> RelayModel:
        """Return the model as Relay."""
        from serde.coreml.pipeline import model_to_relay

        own = options if isinstance(options, CoremlImportOptions) else CoremlImportOptions()
        return model_to_relay(model, own, report)

    def from_relay(self, model: RelayModel, options: ExportOptions, *, report: Report) -> AnyValue:
        """Return the model as an ML Program or, for older systems, as a NeuralNetwork."""
        from serde.coreml.exporter import from_relay

        own = options if isinstance(options, CoremlExportOptions) else CoremlExportOptions()
        return from_relay(model, own, report)

    def expected(self, model: RelayModel, native: AnyValue, options: ExportOptions) -> RelayModel:
        """Return the model with pixels as image inputs, under the names that were written."""
        from serde.coreml.interface.ends import expected_of
        from serde.coreml.interface.planning import plan
        from serde.coreml.mlprogram.states import plan_states, with_states_last
        from serde.coreml.versions import TARGETS

        own = options if isinstance(options, CoremlExportOptions) else CoremlExportOptions()
        target = TARGETS[own.minimum_deployment_target]
        states = plan_states(model, own, target, Report())
        model = with_states_last(model, states)
        interface = plan(model, own, target)
        return expected_of(model, interface, native.spec.description, states)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path of another suffix than the target has, or one that cannot be written."""
        from serde.coreml.writer import check_target

        own = options if isinstance(options, CoremlExportOptions) else CoremlExportOptions()
        program = own.minimum_deployment_target not in NETWORK_TARGETS
        check_target(Path(path), program=program, sources=sources)

    def save(
        self,
        model: AnyValue,
        path: Path,
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model, its weights streamed from where they are."""
        from serde.coreml.writer import save

        return save(model, path, sources=sources, before_commit=before_commit)

    def complete(self, model: AnyValue) -> AnyValue:
        """Return the ``MLModel`` of coremltools, whose package lies in a temporary directory."""
        from serde.coreml.writer import complete

        return complete(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return MIL's operators, the layers of NeuralNetworks and what is written of Relay."""
        from serde.coreml.mlprogram.operators import CORE, LAYER_KINDS, layer_remark, remark
        from serde.coreml.mlprogram.ops import TABLE
        from serde.coreml.neuralnetwork.ops import LAYERS
        from serde.relay.ir.registry import all_ops

        layered = LAYERS.exported()
        read = {op for op, _version in TABLE.imported()}
        rows = [(op, remark(op) + _as_layers(layered.get(op))) for op in sorted(CORE | read)]
        rows += [(f"{kind} (layer)", layer_remark(kind)) for kind in sorted(LAYER_KINDS)]
        exported = TABLE.exported()
        for op, definition in sorted(all_ops().items()):
            if op in exported:
                rows.append((op, f"written, from iOS{max(exported[op], 15)}"))
            elif (TABLE.expansion(op) or definition.decompose) is not None:
                rows.append((op, "written as others"))
        return rows

    def coverage_summary(self) -> str:
        """Return how many of MIL's operators and of the layers are read and written."""
        from serde.coreml.mlprogram.operators import (
            CORE,
            LAYER_KINDS,
            LAYERS_WRITTEN,
            NOT_READ,
            VERSION,
            WRITTEN,
        )
        from serde.coreml.mlprogram.ops import TABLE
        from serde.coreml.neuralnetwork.ops import LAYERS

        # Constants are read and written by the walks themselves.
        read = CORE & {"const", *(op for op, _version in TABLE.imported())}
        layers = LAYER_KINDS & ({kind for kind, _version in LAYERS.imported()} - set(NOT_READ))
        return (
            f"{len(read)} of {len(CORE)} operators of MIL and {len(layers)} of {len(LAYER_KINDS)} "
            f"layers read, {len(CORE & set(WRITTEN))} and {len(LAYERS_WRITTEN)} written "
            f"(coremltools {VERSION})"
        )

    def operators(self, model: AnyValue) -> list[str]:
        """Return the operators of an ML Program or the layers of a NeuralNetwork."""
        from serde.coreml.model import layers, operations

        found = [op.type for op in operations(model.spec) if op.type != "const"]
        return found + [str(layer.WhichOneof("layer")) for layer in layers(model.spec)]

    def names(self, model: AnyValue) -> TensorNames:
        """Return the names of inputs, outputs, constants and operations or layers."""
        from serde.coreml.interface.interface import described, tensors_of
        from serde.coreml.mlprogram.states import state_names
        from serde.coreml.model import layers, operations

        description = described(model.spec)
        nodes: list[str] = []
        weights: list[str] = []
        states, later = state_names(model.spec)
        for op in operations(model.spec):
            known = nodes if op.type != "const" else weights
            known.extend(each.name for each in op.outputs)
        nodes += [layer.name for layer in layers(model.spec)]
        return TensorNames(
            inputs=(*(each.name for each in description.input), *states),
            outputs=(*(each.name for each in tensors_of(description)), *later),
            weights=tuple(weights),
            nodes=tuple(nodes),
        )

    def summary(self, model: AnyValue) -> ModelSummary:
        """Return the kind of the model, its inputs, outputs and weights."""
        from serde.coreml.interface.interface import described, feature_facts, feature_summary

        description = described(model.spec)
        weights = [*model.blobs.values(), *model.arrays.values()]
        metadata = model.spec.description.metadata
        functions = [each.name for each in model.spec.description.functions]
        facts = {
            "kind": model.kind,
            "models": ", ".join(_kinds(model)),
            "functions": ", ".join(functions),
            "author": metadata.author,
            "license": metadata.license,
            "model version": metadata.versionString,
            "description": metadata.shortDescription,
            **feature_facts(model),
        }
        return ModelSummary(
            version=f"specification {model.spec.specificationVersion}",
            inputs=tuple(feature_summary(each) for each in description.input),
            outputs=tuple(feature_summary(each) for each in description.output),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            facts={name: value for name, value in facts.items() if value},
        )
