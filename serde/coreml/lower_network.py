"""From a Relay model to a NeuralNetwork: lowering, layers, and the model around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import numpy as np

from serde.coreml.builder import Value
from serde.coreml.layer_builder import MIL_VERSION, Layer, LayerBuilder, held_shape
from serde.coreml.layer_fit import has_layers
from serde.coreml.layer_messages import NetworkMessages
from serde.coreml.layers import DIRECT, LAYERS
from serde.coreml.lowering import as_floats, ask, declare, lowered, note_source, with_numbers
from serde.coreml.model import CoremlModel
from serde.coreml.ops.table import constants_hold
from serde.coreml.protos import message_class
from serde.coreml.versions import Target
from serde.coreml.walk import export_program
from serde.relay.expr import Call
from serde.relay.model import RelayModel
from serde.relay.types import TensorType
from serde.report import Issue, Report
from serde.weights import Weight

if TYPE_CHECKING:
    from serde.coreml.bridge import CoremlExportOptions

__all__ = ["network_from_relay"]

CONSENT = {
    "float64": "float64-as-float32",
    "int32": "integers-as-float32",
    "int64": "integers-as-float32",
    "uint32": "integers-as-float32",
    "uint64": "integers-as-float32",
}
"""Names of the steps that hold a dtype in float32, which holds 24 bits of a whole number."""

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

    model = as_floats(model, options.allow, report)
    model = lowered(model, DIRECT, supported, report)
    ask(model, CONSENT, options.allow, report)
    model = with_numbers(model, target)
    builder = LayerBuilder(LAYERS, target.number, has_layers)
    names = [builder.reserve(name) for name in model.meta.outputs]
    inputs, outputs = export_program(model, DIRECT, builder, report)
    report.raise_if_refused()
    named = _named(outputs, names, builder)
    builder.network.prune({value.name for value in named})
    report.facts |= {"minimum_deployment_target": target.name}
    return _model(model, target, builder, inputs, named, options, report)


def _named(outputs: Sequence[Value], names: Sequence[str], builder: LayerBuilder) -> list[Value]:
    """Give the outputs their names: a layer's result by renaming it, else by a copy."""
    produced = builder.made_here()
    renamed: dict[str, str] = {}
    found = []
    for value, name in zip(outputs, names, strict=True):
        own = builder.name_of(value)
        if own in produced and own not in renamed and not value.is_constant:
            renamed[own] = name
        else:
            builder.append(Layer("copy", name, [own], [name], {}))
        found.append(replace(value, name=name, data=None, weight=None))
    builder.network.rename(renamed)
    return found


def _model(
    model: RelayModel,
    target: Target,
    builder: LayerBuilder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    options: CoremlExportOptions,
    report: Report,
) -> CoremlModel:
    spec = message_class("Model.Model")()
    spec.specificationVersion = target.specification
    for value in inputs:
        _declare(spec.description.input.add(name=value.name), value)
    for value in outputs:
        _declare(spec.description.output.add(name=value.name), value, flexible=False)
    note_source(spec, model, builder.names)
    spec.neuralNetwork.arrayInputShapeMapping = _EXACT
    half = options.compute_precision == "float16"
    messages = NetworkMessages(half=half)
    messages.write(builder.network, spec.neuralNetwork, "neuralNetwork")
    if half:
        _note_overflows(model, report)
    return CoremlModel(spec, arrays=messages.arrays)


def _declare(feature: AnyValue, value: Value, *, flexible: bool = True) -> None:
    """Declare an input or output; a scalar has one axis."""
    type_ = TensorType(held_shape(value.type.shape), value.type.dtype)
    declare(feature, replace(value, type=type_), MIL_VERSION, flexible=flexible)


def _note_overflows(model: RelayModel, report: Report) -> None:
    """Tell which weights have values beyond the range of float16, in which they are stored."""
    for name, weight in model.params.items():
        if weight.dtype == "float32" and _overflows(weight):
            what = "has values beyond the range of float16, which become infinite"
            report.allowed.append(Issue("cast", name, what))


def _overflows(weight: Weight) -> bool:
    limit = float(np.finfo(np.float16).max)
    return any(
        bool((np.abs(weight.rows(start, stop)) > limit).any())
        for start, stop in weight.row_ranges()
    )
