"""The walk over an ML Program into Relay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import ArrayWeight, Report, dtype_name, pause_garbage_collection
from serde.coreml.foreign import (
    bind_inputs,
    custom_name,
    input_order,
    is_binding,
    mil_node,
    parameter_names,
)
from serde.coreml.interface.interface import declared_dims, model_meta
from serde.coreml.mlprogram.constants import NonTensor, element_of, read_value
from serde.coreml.mlprogram.import_context import Facts, ImportContext, Scope, Value
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.mlprogram.states import FACT, later_names
from serde.coreml.model import CoremlModel, by_name
from serde.coreml.versions import BY_OPSET
from serde.errors import FormatError, OptionError, Unsupported, raise_if_refused
from serde.relay.ir import Constant, DimLike, Expr, RelayModel, Span, TensorType, Var, is_float
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback, with_lengths
from serde.walk.holes import Hole
from serde.walk.importer import Graph, ImportWalk, Node
from serde.walk.inputs import check_rank
from serde.walk.user_converters import UserConverter

if TYPE_CHECKING:
    from serde.coreml.options import CoremlImportOptions

__all__ = ["to_relay"]


@pause_garbage_collection()
def to_relay(model: CoremlModel, options: CoremlImportOptions, report: Report) -> RelayModel:
    """Return a function of an ML Program as Relay.

    Its states become inputs and outputs.

    Raises:
        FormatError: The program is not sound.
        OptionError: An option names no function or no input.
        UnsupportedModelError: Some operations cannot be converted.
    """
    name, function = _function(model, options.function)
    version, block = _block(function, model.source)
    walk = _Walk(model, report, version, ImportFallback.of("coreml", options))
    scope = Scope(source=model.source)
    inputs = walk.inputs(
        function.inputs, scope, options.input_shapes, options.input_dtypes, fixed=options.fix_inputs
    )
    outputs = walk.run(walk.read(block, scope), scope)
    facts = walk.facts
    states = [facts.states[state] for state in facts.written]
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    given = [each.name_hint for each in inputs]
    names = [each for each in block.outputs if not isinstance(scope.find(each), NonTensor)]
    later = later_names(facts.written, [*given, *names])
    meta = model_meta(model, given, [*names, *later], function=name, labels=facts.labels)
    becomes = dict(zip(facts.written, later, strict=True))
    kept = {f"{state}{FACT}": becomes.get(state, state) for state in facts.states}
    meta = replace(meta, extra={**meta.extra, **kept})
    return walk.assembly.model(inputs, [*outputs, *states], meta, scope.expressions())


def _function(model: CoremlModel, wanted: str | None) -> tuple[str, AnyValue]:
    """Return the function asked for, else the one that the model runs by default."""
    functions = model.spec.mlProgram.functions
    known = sorted(functions)
    name = wanted or model.spec.description.defaultFunctionName
    if not name and len(known) == 1:
        name = known[0]
    name = name or "main"
    if name in functions:
        return name, functions[name]
    if wanted is not None:
        raise OptionError(f"no function is called {wanted!r}; functions: {', '.join(known)}")
    raise FormatError(
        f"expected a function {name!r}, found {', '.join(known) or 'none'}", path=model.source
    )


def _block(function: AnyValue, source: str | None) -> tuple[int, AnyValue]:
    """Return version and block of a function, of the operator set that it names."""
    target = BY_OPSET.get(function.opset)
    if target is None:
        newest = list(BY_OPSET)[-1]
        raise FormatError(
            f"operator set {function.opset!r}: expected one up to {newest}, the newest", path=source
        )
    if function.opset not in function.block_specializations:
        raise FormatError(f"no block for its operator set {function.opset}", path=source)
    return target.number, function.block_specializations[function.opset]


class _Walk(ImportWalk[AnyValue, AnyValue, Scope]):
    """State of one conversion.

    Attributes:
        facts: What is known of the program.
    """

    def __init__(
        self, model: CoremlModel, report: Report, version: int, fallback: ImportFallback
    ) -> None:
        super().__init__(report, Assembly(), fallback)
        self.facts = Facts()
        self._model = model
        self._version = version
        report.nodes = 0

    def declare(
        self, entry: AnyValue, shape: Sequence[DimLike] | None, dtype: str | None, scope: Scope
    ) -> Var:
        """Return the variable for an input or a state; of a state, its name is text."""
        kind = entry.type.WhichOneof("type")
        type_ = entry.type.stateType.wrappedType if kind == "stateType" else entry.type
        if type_.WhichOneof("type") != "tensorType":
            raise Unsupported(f"expected a tensor, found {kind}")
        dtype = dtype or element_of(type_.tensorType.dataType).dtype
        declared = declared_dims(type_.tensorType, entry.name)
        if shape is not None:
            check_rank(entry.name, shape, declared)
        type_ = TensorType(declared if shape is None else shape, dtype)
        variable = Var(entry.name, type_, Span(entry.name))
        if kind == "stateType":
            self.facts.states[entry.name] = variable
        scope.define(entry.name, NonTensor(entry.name) if kind == "stateType" else variable)
        return variable

    def read(self, graph: AnyValue, scope: Scope) -> Graph[AnyValue]:
        """Return a block as the walk sees it."""
        return Graph([each.name for each in graph.inputs], self._nodes(graph), graph.outputs)

    def _nodes(self, block: AnyValue) -> Iterator[Node[AnyValue]]:
        for op in block.operations:
            self.report.nodes += op.type != "const"
            names = [each.name for each in op.outputs]
            yield Node(op.type, names[0] if names else op.type, names, op)

    def run(self, graph: Graph[AnyValue], scope: Scope) -> list[Expr]:
        """Convert the operations of a block and return its outputs, without those of text."""
        return [each for each in super().run(graph, scope) if not isinstance(each, NonTensor)]

    def convert(self, node: Node[AnyValue], scope: Scope, label: str) -> Sequence[Value]:
        """Return what an operation gives."""
        op = node.source
        if op.type == "const":
            return [self._constant(op.attributes["val"], op, label)]
        names = (custom_name(op) or op.type,)
        own = self.fallback.converter(*names)
        converter = TABLE.importer(op.type, self._version) if own is None else own.converter
        inputs: dict[str, list[Value]] = {}
        for name, argument in by_name(op.inputs):
            inputs[name] = [self._argument(each, op, scope, label) for each in argument.arguments]
        for name, value in by_name(op.attributes):
            if not is_binding(op, name):
                inputs[name] = [self._constant(value, op, f"{label}_{name}")]
        known = converter.attributes if converter is not None else {}
        operands = converter.operands if converter is not None else ()
        ctx = ImportContext(self._version, label, op, self, scope, self.facts)
        if converter is None and self.fallback.keep:
            return self._keep(op, ctx, inputs)
        if own is not None:
            return self._call_own(own, op, ctx, inputs)
        attributes, arguments, rest = {}, dict[str, list[Expr]](), []
        for name, found in inputs.items():
            if name in known or (converter is not None and name in converter.ignored):
                attributes[name] = self._attribute(found, ctx, op, name)
            elif name in operands or converter is None:
                arguments[name] = [each for each in found if isinstance(each, Expr)]
            else:
                rest.append(name)
        for name in rest:
            self.report.add(op.type, label, f"unknown input {name}")
        if rest:
            return [Hole() for _ in op.outputs]
        given = self._order_operands(
            operands, arguments, converter is None or converter.accepted is None
        )
        results = self.call(TABLE, ctx, op.type, given, attributes)
        # What a classifier names is text; the scores that it names it by are its result.
        return [NonTensor(self.facts.labels), *results] if op.type == "classify" else results

    def _keep(
        self, op: AnyValue, ctx: ImportContext, inputs: Mapping[str, Sequence[Value]]
    ) -> Sequence[Value]:
        """Return the results of an operation that is kept as it is."""
        if any(isinstance(each, Hole) for found in inputs.values() for each in found):
            return [Hole() for _ in op.outputs]
        try:
            node, operands = mil_node(
                op, inputs, lambda found, name: self._attribute(found, ctx, op, name)
            )
        except Unsupported as error:
            self.report.add(op.type, ctx.node, error.reason, error.hint)
            return [Hole() for _ in op.outputs]
        node = replace(node, results=self._settled(node.results))
        return self.keep(ctx, lambda: node, operands, [each.name for each in op.outputs])

    def _settled(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return tuple(each for each in with_lengths(types, {}) if each is not None)

    def _call_own(
        self,
        own: UserConverter,
        op: AnyValue,
        ctx: ImportContext,
        inputs: Mapping[str, Sequence[Value]],
    ) -> Sequence[Value]:
        """Return what a user's function makes of an operation."""
        if any(isinstance(each, Hole) for found in inputs.values() for each in found):
            return [Hole() for _ in op.outputs]
        converter = own.converter
        operands, named = bind_inputs(
            converter.operands,
            converter.attributes,
            inputs,
            input_order(op),
            parameter_names(op),
            variadic=converter.accepted is None,
        )
        attributes = {name: self._attribute(each, ctx, op, name) for name, each in named.items()}
        return self.call(TABLE, ctx, op.type, operands, attributes, names=(own.name,))

    def _order_operands(
        self, operands: Sequence[str], found: Mapping[str, list[Expr]], variadic: bool
    ) -> list[Expr | None]:
        """Return the tensors in the order of the converter's parameters."""
        given: list[Expr | None] = []
        for index, name in enumerate(operands):
            if variadic and index == len(operands) - 1:
                given.extend(found.get(name, []))
            else:
                given.append(found[name][0] if found.get(name) else None)
        while given and given[-1] is None:
            given.pop()
        return given

    def _argument(self, binding: AnyValue, op: AnyValue, scope: Scope, label: str) -> Value:
        if binding.WhichOneof("binding") == "value":
            return self._constant(binding.value, op, label)
        value = scope.find(binding.name)
        if value is None:
            message = f"{label} ({op.type}): no value is called {binding.name!r}"
            raise FormatError(message, path=scope.source)
        return value

    def _attribute(
        self, found: Sequence[Value], ctx: ImportContext, op: AnyValue, name: str
    ) -> AnyValue:
        """Return the value of a constant input: a number, text, or a tuple of them."""
        values = []
        for each in found:
            if isinstance(each, NonTensor):
                values.append(each.value)
                continue
            if isinstance(each, Hole):
                continue
            try:
                data = ctx.constant(each)
            except Unsupported as error:
                self.report.add(op.type, ctx.node, f"{name}: {error.reason}")
                continue
            values.append(data.item() if not data.shape else tuple(data.reshape(-1).tolist()))
        return values[0] if len(values) == 1 else tuple(values)

    def _constant(self, value: AnyValue, op: AnyValue, label: str) -> Value:
        """Return a constant of the program: small ones as they are, large ones as a weight."""
        try:
            if value.WhichOneof("value") == "blobFileValue":
                blob = value.blobFileValue
                return self.assembly.tensor(self._model.blobs[blob.fileName, blob.offset], label)
            data = read_value(value, self._model.source)
        except Unsupported as error:
            self.report.add(op.type, label, error.reason, error.hint)
            return Hole()
        if isinstance(data, NonTensor):
            return data
        if is_float(dtype_name(data.dtype)) and data.size > 1:
            return self.assembly.tensor(ArrayWeight(data), label)
        return Constant(data, Span(label))
