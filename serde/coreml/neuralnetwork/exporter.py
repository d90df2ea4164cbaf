"""From a Relay model to a NeuralNetwork: lowering, layers, and the model around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from serde.core.lossy import FLOAT16_OVERFLOW, FLOAT64_AS_FLOAT32, INTEGERS_AS_FLOAT32
from serde.core.report import Report
from serde.coreml.interface.adapters import with_channels_first, with_images, with_numbers
from serde.coreml.interface.description import Feature, Interface
from serde.coreml.interface.planning import plan
from serde.coreml.lowering import as_floats, ask, features, with_layers
from serde.coreml.mlprogram.decompression import (
    CompressionSupport,
    decompress_unsupported,
    describe_lost_compression,
)
from serde.coreml.mlprogram.exporter import ProgramWalk
from serde.coreml.mlprogram.ops.table import constants_hold
from serde.coreml.model import CoremlModel
from serde.coreml.neuralnetwork.builder import MIL_VERSION, LayerBuilder
from serde.coreml.neuralnetwork.layer_messages import NetworkMessages
from serde.coreml.neuralnetwork.layer_support import has_layers
from serde.coreml.neuralnetwork.layers import Layer, held_shape
from serde.coreml.neuralnetwork.ops import DIRECT, LAYERS
from serde.coreml.protos import message_class
from serde.coreml.value import Value, check_rank
from serde.coreml.versions import Target
from serde.errors import Unsupported, raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, RelayModel, TensorType
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import name_outputs
from serde.walk.lowering import lower_to_static

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = ["network_from_relay"]

CONSENT = {
    "float64": FLOAT64_AS_FLOAT32,
    "int32": INTEGERS_AS_FLOAT32,
    "int64": INTEGERS_AS_FLOAT32,
    "uint32": INTEGERS_AS_FLOAT32,
    "uint64": INTEGERS_AS_FLOAT32,
}
"""Names of the steps that hold a dtype in float32, which holds 24 bits of a whole number."""

_BYTES = 16
"""Version of iOS whose programs keep of compressed weights what a network does: a byte a value."""

_EXACT = 1
"""Tensors have the axes that the model declares."""


def network_from_relay(
    model: RelayModel, target: Target, options: CoremlExportOptions, report: Report
) -> CoremlModel:
    """Return `model` as a NeuralNetwork.

    Raises:
        UnsupportedModelError: Some of the model cannot be said there.
    """

    def supported(node: Call) -> bool:
        said = DIRECT.can_export(node, MIL_VERSION) and constants_hold(node, model.params)
        return said and has_layers(node, target.number)

    interface = plan(model, options, target)
    model = as_floats(with_channels_first(model, interface.images), options.allow, report)
    half = options.compute_precision == "float16"
    support = CompressionSupport(lambda _node: False, _BYTES, half, half_scales=False)
    report.notes.extend(describe_lost_compression(model, support))
    model = decompress_unsupported(model, support, report)
    model = lower_to_static(with_layers(model, supported), DIRECT, supported, report, share=False)
    ask(model, CONSENT, options.allow, report)
    model = with_numbers(with_images(model, interface), target)
    builder = LayerBuilder(LAYERS, target.number, has_layers)
    names = [builder.reserve(name) for name in model.meta.outputs]
    fallback = ExportFallback.of("coreml", options)
    walk = ProgramWalk(model, DIRECT, builder, report, fallback=fallback)
    inputs, outputs = walk.declare(), walk.write()
    raise_if_refused(report)
    for value, name in zip(outputs, names, strict=True):
        try:
            check_rank(value.type)
        except Unsupported as error:
            report.add("output", name, error.reason, error.hint)
    raise_if_refused(report)
    named = _name_outputs(outputs, names, builder)
    builder.network.prune({value.name for value in named})
    report.facts |= {"minimum_deployment_target": target.name}
    return _model(model, interface, target, builder, inputs, named, options, report)


def _name_outputs(
    outputs: Sequence[Value], names: Sequence[str], builder: LayerBuilder
) -> list[Value]:
    """Give the outputs their names: a layer's result by renaming it, else by a copy."""
    produced = builder.made_here()

    def name_of(value: Value) -> str:
        own = builder.name_of(value)
        return "" if value.is_constant else own

    def copy(value: Value, name: str) -> str:
        builder.append(Layer("copy", name, [builder.name_of(value)], [name], {}))
        return name

    builder.network.rename(name_outputs(outputs, names, name_of, produced, copy))
    return [
        replace(value, name=name, data=None, weight=None)
        for value, name in zip(outputs, names, strict=True)
    ]


def _model(
    model: RelayModel,
    interface: Interface,
    target: Target,
    builder: LayerBuilder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    options: CoremlExportOptions,
    report: Report,
) -> CoremlModel:
    """Return the written network with its interface, labels and weights."""
    spec = message_class("Model.Model")()
    spec.specificationVersion = target.specification
    classifier = interface.classifier
    scores = None if classifier is None else outputs[classifier.output].name
    interface.fill(
        spec.description,
        _features([param.name_hint for param in model.inputs()], inputs),
        _features(model.meta.outputs, outputs),
        scores,
    )
    interface.note(spec.description.metadata, model.meta.source_format, builder.names)
    kind = "neuralNetworkRegressor" if interface.regressor else "neuralNetwork"
    kind = kind if classifier is None else "neuralNetworkClassifier"
    network = getattr(spec, kind)
    network.arrayInputShapeMapping = network.imageInputShapeMapping = _EXACT
    if classifier is not None:
        labels = network.stringClassLabels if classifier.has_text else network.int64ClassLabels
        labels.vector.extend(classifier.labels)
        network.labelProbabilityLayerName = scores
    half = options.compute_precision == "float16"
    messages = NetworkMessages(half=half)
    messages.write(builder.network, network, kind)
    if half:
        _ask_overflows(model, options.allow, report)
    return CoremlModel(spec, arrays=messages.arrays)


def _features(names: Sequence[str], values: Sequence[Value]) -> list[Feature]:
    """Return what is to be declared of inputs or outputs; a scalar has one axis."""
    found = features(names, values, MIL_VERSION)
    return [
        replace(each, type=TensorType(held_shape(each.type.shape), each.type.dtype))
        for each in found
    ]


def _ask_overflows(model: RelayModel, allow: frozenset[str], report: Report) -> None:
    """Record which weights have values beyond the range of float16, in which they are stored."""
    for name, weight in model.params.items():
        if transform.weight_overflows(weight):
            why = "has values beyond the range of float16, which become infinite"
            FLOAT16_OVERFLOW.record(report, allow, op="cast", node=f"weight {name}", reason=why)
    raise_if_refused(report)
