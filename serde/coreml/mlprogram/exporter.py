"""From a Relay model to an ML Program: lowering, operations, and the model around them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.input_types import DEFAULT_RANGE
from serde.core import Report, Weight
from serde.core.lossy import FLOAT64_AS_FLOAT32, INT64_AS_INT32
from serde.coreml.interface.adapters import with_channels_first, with_images, with_numbers
from serde.coreml.interface.description import Classifier, Interface
from serde.coreml.interface.planning import plan
from serde.coreml.lowering import as_floats, ask, features, with_layers
from serde.coreml.mlprogram.builder import ProgramBuilder, set_text
from serde.coreml.mlprogram.classify import append_classify, is_softmax
from serde.coreml.mlprogram.decompression import (
    CompressionSupport,
    decompress_unsupported,
    describe_lost_compression,
)
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.mlprogram.ops.table import constants_hold
from serde.coreml.mlprogram.precision import to_float16, wide_names
from serde.coreml.mlprogram.states import (
    declare_states,
    plan_states,
    with_states_last,
    write_states,
)
from serde.coreml.model import CoremlModel, walk_blocks
from serde.coreml.protos import message_class
from serde.coreml.value import Builder, Value, check_rank, set_type
from serde.coreml.versions import Target
from serde.errors import OptionError, Unsupported, raise_if_refused
from serde.relay.ir import Call, Foreign, If, RelayModel, SequenceType, TensorType
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk, Known, name_outputs
from serde.walk.lowering import lower_to_static
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable, source_name

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = ["ProgramWalk", "program_from_relay"]

_CONSENT = {"float64": FLOAT64_AS_FLOAT32, "int64": INT64_AS_INT32}
"""Names of the steps that hold a dtype in a narrower one."""


def program_from_relay(
    model: RelayModel, target: Target, options: CoremlExportOptions, report: Report
) -> CoremlModel:
    """Return `model` as an ML Program.

    Raises:
        OptionError: The program is to be a regressor.
        UnsupportedModelError: Some of the model cannot be said there.
    """

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
    support = CompressionSupport(supported, target.number, half, half_scales=half)
    report.notes.extend(describe_lost_compression(model, support))
    model = decompress_unsupported(model, support, report)
    if half:
        model = to_float16(model, wide, options.allow, report)
    model = lower_to_static(model, TABLE, supported, report, share=False)
    model = with_numbers(with_images(model, interface), target)
    ask(model, _CONSENT, options.allow, report)
    spec = message_class("Model.Model")()
    function = spec.mlProgram.functions["main"]
    builder = ProgramBuilder(target.number, function.block_specializations[target.opset])
    classifier = interface.classifier
    if classifier is not None:
        ends = builder.reserve(classifier.feature), builder.reserve(classifier.probabilities)
        _tell_scores(model, classifier, report)
    names = [builder.reserve(name) for name in model.meta.outputs]
    fallback = ExportFallback.of("coreml", options)
    walk = ProgramWalk(model, TABLE, builder, report, states, fallback)
    walk.declare()
    inputs, outputs = walk.inputs, walk.write()
    raise_if_refused(report)
    _prune(builder.block, _names_of(outputs, model, builder, report))
    named = _name_outputs(outputs, names, builder)
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
    _declare(spec, model, interface, target, builder, inputs[:kept], named[:shown])
    texts = [interface.descriptions.get(name, "") for name in states]
    declare_states(function, spec.description, inputs[kept:], target, texts)
    return CoremlModel(spec, layout=builder.layout)


class ProgramWalk(ExportWalk[Value]):
    """The walk into operations of MIL, whose blocks see what is around them.

    Args:
        model: What is exported.
        table: The converters.
        builder: Where operations are added.
        report: Filled with gaps.
        states: Names of inputs that are states, which are read once.
        fallback: What is done with operators that nobody knows.

    Attributes:
        inputs: The inputs that are declared.
    """

    _context: ExportContext

    def __init__(
        self,
        model: RelayModel,
        table: ConverterTable,
        builder: Builder,
        report: Report,
        states: Collection[str] = (),
        fallback: ExportFallback | None = None,
    ) -> None:
        super().__init__(model, table, ExportContext(table, builder), report, fallback)
        self.inputs: list[Value] = []
        self._builder = builder
        self._states = states

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Declare an input; a weight is written where it is first read."""
        if not isinstance(type_, TensorType):
            raise Unsupported(f"Core ML has tensors, found {type_!r}")
        if weight is not None:
            return self._builder.weight(name, weight)
        value = Value(self._builder.reserve(name), type_)
        self.inputs.append(value)
        if name not in self._states:
            return value
        return self._builder.add("read_state", {"input": value}, [type_], f"{name}_before")[0]

    def note(self, values: Sequence[Value]) -> None:
        """Let symbols be read from the lengths of all values."""
        self._context.symbols.add(self._context.scope, values)

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Add a custom layer, or an operation of MIL as it was."""
        from serde.coreml.foreign import write_foreign

        return write_foreign(self._builder, self._context.source, node, operands)

    def branch_name(self, node: If) -> str:
        """Return what a conditional is called."""
        return source_name(node) or "cond"

    @contextmanager
    def branch(self, scope: Scope, values: Known[Value]) -> Iterator[Known[Value]]:
        """Add operations to a block of its own meanwhile."""
        scope.require_level(self._builder.max_level)
        with super().branch(scope, values) as seen, self._builder.inner_block():
            yield seen

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the block of a branch."""
        self._builder.end_block(results, source_name(node) or "branch")
        return self._builder.block

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Add a ``cond``."""
        types = self._context.result_types()
        return self._builder.add("cond", {"pred": condition}, types, name, branches)


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


def _names_of(
    outputs: Sequence[Value], model: RelayModel, builder: ProgramBuilder, report: Report
) -> set[str]:
    """Return the names of the outputs, of which constants are written now."""
    found = set()
    for value, name in zip(outputs, model.meta.outputs, strict=True):
        try:
            check_rank(value.type)
            found.add(builder.name_of(value))
        except Unsupported as error:
            report.add("output", name, error.reason, error.hint)
    raise_if_refused(report)
    return found


def _name_outputs(
    outputs: Sequence[Value], names: Sequence[str], builder: ProgramBuilder
) -> list[Value]:
    """Give the outputs their names: an operation's result by renaming it, else by an identity."""
    produced = {each.name for op in builder.block.operations for each in op.outputs}
    produced -= {each.name for op in _constants(builder.block) for each in op.outputs}

    def copy(value: Value, name: str) -> str:
        return builder.add("identity", {"x": value}, [value.type], name)[0].name

    renamed = name_outputs(outputs, names, _own_name, produced, copy)
    for block in walk_blocks(builder.block):
        _rename(block, renamed)
    return [replace(value, name=name) for value, name in zip(outputs, names, strict=True)]


def _own_name(value: Value) -> str:
    """Return the name of what an operation gives; constants have none before they are read."""
    return "" if value.is_constant else value.name


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


def _declare(
    spec: AnyValue,
    model: RelayModel,
    interface: Interface,
    target: Target,
    builder: ProgramBuilder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> None:
    """Fill Apple's message of a program around its one block: its interface and function."""
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
