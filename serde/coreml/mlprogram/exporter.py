"""From a Relay model to an ML Program: lowering, emission, and the model around it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from typing import Any as AnyValue

from serde.coreml.interface.description import Classifier, Interface
from serde.coreml.interface.ends import with_channels_first, with_images, with_numbers
from serde.coreml.interface.planning import plan
from serde.coreml.interface.requests import DEFAULT_RANGE
from serde.coreml.lowering import as_floats, ask, features, lowered, with_layers
from serde.coreml.mlprogram.builder import ProgramBuilder, set_text
from serde.coreml.mlprogram.classify import append_classify, is_softmax
from serde.coreml.mlprogram.export_walk import export_program
from serde.coreml.mlprogram.losses import Forms, lost_compression, with_plain_constants
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.mlprogram.ops.table import constants_hold
from serde.coreml.mlprogram.precision import narrowed, wide_names
from serde.coreml.mlprogram.states import (
    declare_states,
    plan_states,
    with_states_last,
    write_states,
)
from serde.coreml.model import CoremlModel, walk_blocks
from serde.coreml.neuralnetwork.exporter import network_from_relay
from serde.coreml.protos import message_class
from serde.coreml.value import Value, set_type
from serde.coreml.versions import TARGETS, Target
from serde.errors import OptionError
from serde.relay.ir.collection import without_collection
from serde.relay.ir.expr import Call
from serde.relay.ir.model import RelayModel
from serde.report import Report

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = ["from_relay"]

OLDEST = 13
"""Version of iOS of the oldest target, of whose layers tensors have the axes that they declare."""

_CONSENT = {"float64": "float64-as-float32", "int64": "int64-as-int32"}
"""Names of the steps that hold a dtype in a narrower one."""


@without_collection()
def from_relay(model: RelayModel, options: CoremlExportOptions, report: Report) -> CoremlModel:
    """Return `model` as an ML Program, or as a NeuralNetwork for systems that know no programs.

    Raises:
        OptionError: No models are written for the target.
        UnsupportedModelError: Some of the model cannot be said there.
    """
    target = TARGETS.get(options.minimum_deployment_target)
    if target is None or target.number < OLDEST:
        known = ", ".join(name for name, each in TARGETS.items() if each.number >= OLDEST)
        raise OptionError(
            f"minimum_deployment_target {options.minimum_deployment_target!r}: expected {known}"
        )
    if options.float32_ops and not (target.opset and options.computes_float16):
        raise OptionError("float32_ops: all of the model is computed in float32")
    if target.opset is None:
        return network_from_relay(model, target, options, report)

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, target.number) and constants_hold(node, model.params)

    states = plan_states(model, options, target, report)
    model = with_states_last(model, states)
    interface = plan(model, options, target)
    if interface.regressor:
        raise OptionError(
            "mode='regressor': an ML Program gives its numbers as they are, without a mode; "
            "only a NeuralNetwork can be a regressor"
        )
    if interface.assumed:
        report.notes.append(
            f"dynamic dimensions get lengths from {DEFAULT_RANGE.lower} to {DEFAULT_RANGE.upper}, "
            f"as ranges does not tell of them: {', '.join(interface.assumed)}"
        )
    model = as_floats(with_channels_first(model, interface.images), options.allow, report)
    half = options.compute_precision != "float32"
    wide = wide_names(model, options.float32_ops)
    model = with_layers(model, supported, wide)
    forms = Forms(supported, target.number, half, half_scales=half)
    report.notes.extend(lost_compression(model, forms))
    model = with_plain_constants(model, forms, report)
    if half:
        model = narrowed(model, wide, report)
    model = lowered(model, TABLE, supported, report)
    model = with_numbers(with_images(model, interface), target)
    ask(model, _CONSENT, options.allow, report)
    builder = ProgramBuilder(target.number)
    classifier = interface.classifier
    if classifier is not None:
        ends = builder.reserve(classifier.feature), builder.reserve(classifier.probabilities)
        _tell_scores(model, classifier, report)
    names = [builder.reserve(name) for name in model.meta.outputs]
    inputs, outputs = export_program(model, TABLE, builder, report, states=states)
    report.raise_if_refused()
    _prune(builder.block, {builder.name_of(value) for value in outputs})
    named = _named(outputs, names, builder)
    kept = len(inputs) - len(states)
    shown = len(named) - sum(to != name for name, to in states.items())
    write_states(builder, states, inputs[kept:], named[shown:])
    report.facts |= {"minimum_deployment_target": target.name, "opset": target.opset}
    results = [value.name for value in named[:shown]]
    if classifier is not None:
        append_classify(builder, named[classifier.output], classifier, *ends)
        results[classifier.output] = ends[1]
        results.insert(0, ends[0])
    builder.block.outputs.extend(results)
    spec = _spec(model, interface, target, builder, inputs[:kept], named[:shown])
    function = spec.mlProgram.functions["main"]
    texts = [interface.descriptions.get(name, "") for name in states]
    declare_states(function, spec.description, inputs[kept:], target, texts)
    return CoremlModel(spec, layout=builder.layout)


def _prune(block: AnyValue, wanted: set[str]) -> None:
    """Drop the operations of a block that nothing reads, such as results besides the one used."""
    live, kept = set(wanted), []
    for op in reversed(block.operations):
        if not any(output.name in live for output in op.outputs):
            continue
        kept.append(op)
        for inner in op.blocks:
            _prune(inner, set(inner.outputs))
        for reader in (op, *(each for inner in op.blocks for each in _all_operations(inner))):
            arguments = (each for given in reader.inputs.values() for each in given.arguments)
            live.update(each.name for each in arguments if each.WhichOneof("binding") == "name")
        live.update(name for inner in op.blocks for name in inner.outputs)
    if len(kept) < len(block.operations):
        kept = [copy.deepcopy(op) for op in reversed(kept)]
        del block.operations[:]
        block.operations.extend(kept)


def _all_operations(block: AnyValue) -> list[AnyValue]:
    return [op for inner in walk_blocks(block) for op in inner.operations]


def _named(outputs: Sequence[Value], names: Sequence[str], builder: ProgramBuilder) -> list[Value]:
    """Give the outputs their names: an operation's result by renaming it, else by an identity."""
    produced = {each.name for op in builder.block.operations for each in op.outputs}
    produced -= {each.name for op in _constants(builder.block) for each in op.outputs}
    renamed: dict[str, str] = {}
    found = []
    for value, name in zip(outputs, names, strict=True):
        if value.name in produced and value.name not in renamed and not value.is_constant:
            renamed[value.name] = name
        else:
            made = builder.add("identity", {"x": value}, [value.type], name)[0]
            renamed[made.name] = name
        found.append(replace(value, name=name))
    for block in walk_blocks(builder.block):
        _rename(block, renamed)
    return found


def _constants(block: AnyValue) -> list[AnyValue]:
    return [op for op in block.operations if op.type == "const"]


def _rename(block: AnyValue, renamed: Mapping[str, str]) -> None:
    for op in block.operations:
        for argument in op.inputs.values():
            for binding in argument.arguments:
                if binding.name in renamed:
                    binding.name = renamed[binding.name]
        for output in op.outputs:
            if output.name in renamed:
                output.name = renamed[output.name]
                set_text(op.attributes["name"], output.name)
    for index, name in enumerate(block.outputs):
        block.outputs[index] = renamed.get(name, name)


def _tell_scores(model: RelayModel, classifier: Classifier, report: Report) -> None:
    """Tell what the scores of a classifier are, where they are no probabilities."""
    if not is_softmax(model, classifier.output):
        name = model.meta.outputs[classifier.output]
        report.notes.append(
            f"the scores {name} come from no softmax: apps see them as they are, "
            "not as probabilities"
        )


def _spec(
    model: RelayModel,
    interface: Interface,
    target: Target,
    builder: ProgramBuilder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> AnyValue:
    spec = message_class("Model.Model")()
    spec.specificationVersion = target.specification
    interface.fill(
        spec.description,
        features(
            [param.name_hint for param in model.inputs()][: len(inputs)], inputs, target.number
        ),
        features(model.meta.outputs[: len(outputs)], outputs, target.number),
    )
    interface.note(spec.description.metadata, model.meta.source_format, builder.names)
    spec.mlProgram.version = 1
    function = spec.mlProgram.functions["main"]
    function.opset = target.opset
    for value in inputs:
        set_type(function.inputs.add(name=value.name).type, value.type, target.number)
    function.block_specializations[target.opset].CopyFrom(builder.block)
    return spec
