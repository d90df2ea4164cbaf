"""The walk over a TFLite model into Relay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.bridge.input_types import image_facts
from serde.core import Report, dataclass, numpy_dtype, pause_garbage_collection, replace
from serde.core.limits import MAX_MANIFEST_BYTES
from serde.errors import OptionError, TypeInferenceError, Unsupported, raise_if_refused
from serde.relay.ir import Foreign, ModelMeta, RelayModel, TensorType, UniqueNames, is_float
from serde.relay.ir.dims import Dim, DimLike, as_dim
from serde.relay.ir.expr import Constant, Expr, Span, Var
from serde.tflite.import_context import ImportContext
from serde.tflite.interface import NO_NUMBERS, Interface, chosen_interface, declared_type
from serde.tflite.model import Operator, Subgraph, Tensor, TfliteModel
from serde.tflite.ops import TABLE
from serde.tflite.ops.table import CODES, HANDLES, INTEGERS
from serde.tflite.options import TfliteImportOptions
from serde.tflite.quantization import is_quantized, to_codes, to_numbers, with_bias_scale
from serde.tflite.states import Handle, State, declared_states, init_graphs
from serde.walk import Hole, Placeholder, Scope as BaseScope
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.holes import Holes
from serde.walk.importer import Graph, ImportWalk, Node
from serde.walk.inputs import check_rank

__all__ = ["to_relay"]


class Scope(BaseScope[int, Expr]):
    """The values of a graph by the numbers of tensors; graphs see nothing of one another."""

    def inner(self, label: str, **changes: AnyValue) -> Scope:
        """Return a new scope for a graph that this one uses."""
        return super().inner(label, **{**changes, "parent": None})


@pause_garbage_collection()
def to_relay(model: TfliteModel, options: TfliteImportOptions, report: Report) -> RelayModel:
    """Return a model as Relay.

    Raises:
        OptionError: An option names no input, or no signature.
        UnsupportedModelError: Some operators cannot be converted.
    """
    interface = chosen_interface(model, options.signature)
    walk = _Walk(model, report, ImportFallback.of("tflite", options), interface)
    walk.is_exact = options.read_quantized == "exact"
    scope = Scope(source=model.path)
    graph = model.subgraphs[interface.subgraph]
    report.nodes = len(graph.operators)
    entries = [
        _Input(name, graph.tensors[index], index) for name, index in interface.inputs.items()
    ]
    walk.initialize(graph, scope)
    found = walk.read(interface.subgraph, scope)
    given = options.input_shapes, options.input_dtypes
    entries += walk.state_entries(graph)
    inputs = walk.inputs(entries, scope, *given, fixed=options.fix_inputs)
    order = list(interface.outputs.values())
    outputs = walk.run(Graph(found.inputs, found.nodes, order), scope)
    for name, each in zip(interface.outputs, outputs, strict=True):
        if isinstance(each, Placeholder) and not isinstance(each, Hole):
            report.add("output", name, "complex numbers or a resource")
    raise_if_refused(report)
    later = walk.later_values()
    outputs += later.values()
    walk.fallback.note_unused(report)
    meta = ModelMeta(
        inputs=tuple(each.name_hint for each in inputs),
        outputs=(*interface.outputs, *later),
        source_format="tflite",
        source_version="3",
        description=model.description,
        labels=tuple(model.facts.labels.get(0, ())),
        extra={
            **model.facts.texts,
            **_images(model, graph, interface),
            **{f"{name}.state": to for name, to in zip(walk.states, later, strict=True)},
        },
    )
    names = {graph.tensors[index].name: value for index, value in scope.expressions().items()}
    return walk.assembly.model(inputs, outputs, meta, names)


def _images(model: TfliteModel, graph: Subgraph, interface: Interface) -> dict[str, str]:
    """Return facts about the inputs of the first graph that are images."""
    names = {index: name for name, index in interface.inputs.items()}
    found: dict[str, str] = {}
    for place, image in model.facts.images.items():
        if interface.subgraph == 0 and place < len(graph.inputs):
            found |= image_facts(names[graph.inputs[place]], image)
    return found


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    tensor: Tensor
    index: int | None


class _Walk(ImportWalk[int, Operator, Scope]):
    """State of one conversion; graphs go by their numbers.

    Attributes:
        states: What is kept from one run to the next, by the name of its input.
        is_exact: Whether operators on codes have arithmetic of their own.
    """

    def __init__(
        self, model: TfliteModel, report: Report, fallback: ImportFallback, interface: Interface
    ) -> None:
        super().__init__(report, Assembly([*interface.inputs, *interface.outputs]), fallback)
        self._model = model
        self._graphs: dict[Scope, Subgraph] = {}
        self._names = UniqueNames([*interface.inputs, *interface.outputs])
        self._resources: dict[str, Expr] = {}
        self._count = 0
        self._is_hybrid = False
        self.is_exact = True
        self.states: dict[str, State] = {}

    def declare(
        self, entry: _Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Scope
    ) -> Var:
        """Return the variable for an input, and define its number."""
        declared = declared_type(entry.tensor)
        lengths = [each if isinstance(each, int) else self._open() for each in declared.shape]
        declared = TensorType(lengths, declared.dtype)
        if shape is not None:
            check_rank(entry.name, shape, declared.shape)
        if dtype is not None and dtype != declared.dtype:
            raise OptionError(f"input_dtypes: {entry.name} is {declared.dtype}, not {dtype}")
        type_ = TensorType(declared.shape if shape is None else shape, declared.dtype)
        variable = Var(entry.name, type_, Span(entry.name))
        if entry.index is None:
            self._resources[self.states[entry.name].name] = variable
        else:
            scope.define(entry.index, variable)
        return variable

    def _open(self) -> Dim:
        """Return a length of its own: the file has no names for them."""
        self._count += 1
        return as_dim(f"n{self._count}")

    def initialize(self, graph: Subgraph, scope: Scope) -> None:
        """Run the graphs that give resources their first values."""
        for number in init_graphs(graph):
            self.evaluate(number, scope.inner(f"CALL_ONCE/{number}"), [])

    def state_entries(self, graph: Subgraph) -> list[_Input]:
        """Return what is kept as inputs; the report tells the first values."""
        for each in declared_states(graph):
            name = self._names.reserve(each.name)
            self.states[name] = each
            tensor = each.tensor
            first = "zeros" if tensor.values is None else f"the data of {tensor.name!r}"
            if each.index is None:
                first = self._first_value(each)
            self.report.notes.append(f"{name} is a state: an input, at first {first}")
        return [_Input(name, each.tensor, each.index) for name, each in self.states.items()]

    def _first_value(self, state: State) -> str:
        """Return what a resource is at first, for people, and note its lengths."""
        found = self._resources.get(state.name)
        if found is None or not isinstance(found.type, TensorType):
            return "what nothing tells"
        state.tensor = replace(state.tensor, shape=found.type.concrete_shape or state.tensor.shape)
        weight = self.assembly.weight(found)
        small = weight is not None and 0 < weight.nbytes <= MAX_MANIFEST_BYTES
        values = weight.array() if weight is not None and small else self.assembly.known(found)
        if values is not None and values.size and (values == values.flat[0]).all():
            return f"{values.flat[0]} everywhere"
        return f"the data of {found.name_hint!r}" if isinstance(found, Var) else "computed"

    def later_values(self) -> dict[str, Expr]:
        """Return the values that states have behind a run, by the names of outputs."""
        (scope,) = (each for each in self._graphs if each.depth == 0)
        return {
            self._names.reserve(f"{name}.next"): self._resources[each.name]
            if each.index is None
            else scope.values[each.index]
            for name, each in self.states.items()
        }

    def update(self, scope: Scope, index: int, value: Expr) -> None:
        """Give a variable tensor another value."""
        scope.values[index] = self._coded(value, self._graphs[scope].tensors[index])

    def resource(self, handle: Expr) -> Expr:
        """Return the value of a resource."""
        found = self._resources.get(handle.name) if isinstance(handle, Handle) else None
        if found is None:
            raise Unsupported("a resource that nothing is assigned to")
        return found

    def assign(self, handle: Expr, value: Expr) -> None:
        """Give a resource another value."""
        if not isinstance(handle, Handle):
            raise Unsupported("a resource that is no variable")
        self._resources[handle.name] = value

    def read(self, graph: int, scope: Scope) -> Graph[Operator]:
        """Return a graph as the walk sees it, and define the tensors that have values."""
        if not 0 <= graph < len(self._model.subgraphs):
            raise scope.fault(f"there is no subgraph {graph}")
        found = self._model.subgraphs[graph]
        self._graphs[scope] = found
        given = {i for each in found.operators for i in each.outputs}.union(found.inputs)
        for index, tensor in enumerate(found.tensors):
            if tensor.dtype in NO_NUMBERS or tensor.is_variable:
                continue
            if tensor.values is not None:
                weight = self.assembly.tensor(tensor.values, tensor.name or f"t{index}")
                scope.define(index, self._of_blocks(weight, tensor, found))
            elif 0 in tensor.shape and index not in given:
                scope.define(index, Constant(np.empty(tensor.shape, numpy_dtype(tensor.dtype))))
        return Graph(found.inputs, self._nodes(found), found.outputs)

    def _of_blocks(self, codes: Expr, tensor: Tensor, graph: Subgraph) -> Expr:
        """Return the numbers of codes whose scales, of blocks along the last axis, are a tensor."""
        block = None if tensor.quantization is None else tensor.quantization.block
        if block is None or max(block[1:]) >= len(graph.tensors) or block[1] < 0:
            return codes
        scale, zero = (graph.tensors[number] for number in block[1:])
        *rows, columns = tensor.shape
        pointed = block[2] > 0 and (zero.values is None or zero.values.array().any())
        if scale.values is None or pointed or scale.shape != (*rows, columns / block[0]):
            return codes
        factors = relay.cast(self.assembly.tensor(scale.values, scale.name), "float32")
        parts = relay.reshape(relay.cast(codes, "float32"), (*scale.shape, block[0]))
        return relay.reshape(relay.multiply(parts, relay.expand_dims(factors, -1)), tensor.shape)

    def _nodes(self, graph: Subgraph) -> Iterator[Node[Operator]]:
        for number, each in enumerate(graph.operators):
            first = graph.tensors[each.outputs[0]].name if each.outputs else ""
            yield Node(each.name, first or f"{each.name}_{number}", each.outputs, each)

    def convert(self, node: Node[Operator], scope: Scope, label: str) -> Sequence[Expr]:
        """Return what an operator gives, or holes where its codes stand for no numbers."""
        try:
            return self._made_by(node.source, scope, label)
        except (Unsupported, TypeInferenceError) as error:
            self.report.add(node.op, label, str(error))
            return Holes(len(node.outputs))

    def _made_by(self, operator: Operator, scope: Scope, label: str) -> Sequence[Expr]:
        graph = self._graphs[scope]
        given = [None if i < 0 else graph.tensors[i] for i in operator.inputs]
        made = [None if i < 0 else graph.tensors[i] for i in operator.outputs]
        inputs = [self._value(i, label, scope) for i in operator.inputs]
        if operator.name not in HANDLES and any(isinstance(x, Placeholder) for x in inputs):
            raise Unsupported("complex numbers or resources where there are to be numbers")
        ctx = ImportContext(label, operator, given, made, self, scope)
        if self._is_exact(operator, given, made):
            return self.call(INTEGERS, ctx, operator.name, inputs, operator.options)
        known = not operator.is_custom or TABLE.importer(operator.name, 1) is not None
        if operator.name not in CODES and known:
            self._note_hybrid(given, made)
            inputs = [
                each and to_numbers(each, tensor, stay_codes=not self.is_exact)
                for each, tensor in zip(inputs, with_bias_scale(given), strict=True)
            ]
        if operator.is_custom:
            return self.call(
                TABLE, ctx, operator.name, inputs, {}, foreign=lambda: _foreign_node(operator, made)
            )
        found = self.call(TABLE, ctx, operator.name, inputs, operator.options)
        if operator.name in CODES:
            return found
        return [self._coded(each, tensor) for each, tensor in zip(found, made, strict=False)]

    def _note_hybrid(self, given: Sequence[Tensor | None], made: Sequence[Tensor | None]) -> None:
        """Tell once of products of floats by quantised weights, which are computed on floats."""
        hybrid = made and made[0] is not None and is_float(made[0].dtype)
        if hybrid and not self._is_hybrid and _has_codes(given):
            self._is_hybrid = True
            self.report.notes.append(
                "weights are quantised and activations are not: computed on floats, where LiteRT "
                "quantises each row of the activations as it runs"
            )

    def _is_exact(
        self, operator: Operator, given: Sequence[Tensor | None], made: Sequence[Tensor | None]
    ) -> bool:
        """Whether an operator is one on codes, by arithmetic of their own."""
        quantized = any(map(is_quantized, given)) and any(map(is_quantized, made))
        return self.is_exact and quantized and INTEGERS.importer(operator.name, 1) is not None

    def _coded(self, x: Expr, tensor: Tensor | None) -> Expr:
        """Return the codes of what an operator on numbers gives."""
        if tensor is None or not isinstance(x.type, TensorType) or tensor.quantization is None:
            return x
        if not is_float(x.type.dtype) or is_float(tensor.dtype):
            return x
        return self.assembly.fold(to_codes(x, tensor))

    def _value(self, index: int, label: str, scope: Scope) -> Expr | None:
        if index < 0:
            return None
        found = scope.find(index)
        if found is None:
            raise scope.fault(f"tensor {index} is read before anything gives it", label)
        return found


def _has_codes(tensors: Sequence[Tensor | None]) -> bool:
    """Whether some weights are quantised."""
    return any(x is not None and x.values is not None and is_quantized(x) for x in tensors)


def _foreign_node(operator: Operator, made: Sequence[Tensor | None]) -> Foreign:
    """Return what an operator of a user's own is."""
    types = [declared_type(each) for each in made if each is not None]
    attributes = {_OPTIONS: operator.custom.hex()} if operator.custom else {}
    return Foreign(
        framework="tflite",
        name=operator.name,
        version=operator.version,
        attributes=attributes,
        results=tuple(types),
    )


_OPTIONS = "custom_options"
"""Attribute with the bytes of a custom operator's options, as hexadecimal digits."""
