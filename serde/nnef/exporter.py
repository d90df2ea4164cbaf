"""From a Relay model to a graph of NNEF: lowering, assignments, variables."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any as AnyValue, Final, NoReturn

from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import Unsupported, raise_if_refused
from serde.nnef.empty import SettleEmpty
from serde.nnef.export_context import ExportContext, Value, element_type, is_spoken
from serde.nnef.model import Block, NnefModel, rename_operation
from serde.nnef.names import Identifiers, rename_tensors
from serde.nnef.ops import TABLE
from serde.nnef.options import NnefExportOptions
from serde.nnef.quantized import annotate, lower_quantized, without_unread
from serde.nnef.windows import join_padding, join_pools
from serde.relay import transform
from serde.relay.ir import Call, Expr, Foreign, Function, If, OpDef, RelayModel, all_nodes, is_float
from serde.relay.ir.leaves import holds_values, leaves, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.ir.visit import free_vars
from serde.walk.export_context import Values
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk, name_outputs, source_name
from serde.walk.lowering import lower_to_static

__all__ = ["from_relay"]

_NAMING: Final = ("Composite", "PartitionedFromPattern", "Primitive")
"""Attributes that tell what a function is, or that it is to stay whole."""

_WHOLE: Final = ("serde.gelu", "serde.silu")
"""Layers of one fragment that models spell out."""


@pause_garbage_collection()
def from_relay(model: RelayModel, options: NnefExportOptions, report: Report) -> NnefModel:
    """Return `model` as a graph of NNEF.

    Raises:
        UnsupportedModelError: NNEF cannot say some of the model.
    """
    model = lower_quantized(model, options.allow, report)
    model = _lower(model, report, keep_functions=options.keeps_functions)
    scalar = _scalar_of(model)
    told = scalar == "float32" or any(each.dtype == scalar for each in model.params.values())
    context = ExportContext(TABLE, scalar, told=told)
    walk = _Walk(model, context, report, ExportFallback.of("nnef", options))
    inputs = walk.declare()
    outputs = [context.identifiers.claim(name, exact=True) for name in model.meta.outputs]
    results = walk.write()
    if all(each.name_hint in model.params for each in model.main.params):
        report.add("graph", "main", "a graph of NNEF has inputs, and this model has none")
    _check_outputs(context, results, model.meta.outputs, report)
    raise_if_refused(report)
    native = _finish(context, [each.name for each in inputs], results, outputs)
    native = annotate(without_unread(join_pools(without_unread(join_padding(native)))))
    nodes = set(map(source_name, all_nodes(model.main)))
    native = rename_tensors(native, nodes, context.constant_labels)
    native = replace(native, metadata=model.meta.metadata)
    _note_names(native, report)
    if context.scalar != "float32" and not any(is_float(w.dtype) for w in native.weights.values()):
        report.notes.append(f"no variable tells that scalars are {context.scalar}")
    return native


def _check_outputs(
    context: ExportContext, results: Sequence[Value], names: Sequence[str], report: Report
) -> None:
    """Tell which outputs NNEF cannot have: constants, that no operator of the model gives."""
    for value, name in zip(results, names, strict=False):
        try:
            context.require(context.type(value))
        except Unsupported as error:
            report.add("output", name, error.reason, error.hint)


def _note_names(native: NnefModel, report: Report) -> None:
    """Tell what inputs and outputs are called whose names are no identifiers."""
    for name in (*native.inputs, *native.outputs):
        if native.names[name] != name:
            report.notes.append(f"{native.names[name]!r} is called {name}")


def _scalar_of(model: RelayModel) -> str | None:
    """Return the dtype of the first floats of a model, its inputs before all else."""
    for node in (*model.main.params, *all_nodes(model.main)):
        for each in value_types(node.type) if holds_values(node.type) else ():
            if isinstance(each, TensorType) and is_float(each.dtype):
                return each.dtype
    return None


def _lower(model: RelayModel, report: Report, *, keep_functions: bool) -> RelayModel:
    """Return the model in operators that NNEF has."""
    supported = partial(TABLE.can_export, version=1)

    def whole(node: Call) -> bool:
        name = node.op.name if isinstance(node.op, OpDef) else ""
        if name == "nn.dense":
            return isinstance(node.type, TensorType) and node.type.rank == 2
        return name in _WHOLE and supported(node)

    layers = transform.RaiseLayers(whole, frozenset(model.params))
    # What is constant now may be what an expansion needs.
    again = [transform.EvaluateConstants(), transform.Decompose(supported, TABLE.expansion)]
    after = [transform.RemoveIdentities(), *again, SettleEmpty()]
    return lower_to_static(
        model, TABLE, supported, report, before=[layers], after=after, keep_functions=keep_functions
    )


def _finish(
    context: ExportContext, inputs: Sequence[str], results: Sequence[Value], outputs: Sequence[str]
) -> NnefModel:
    """Return the graph, whose results have the names of the outputs."""
    made = {name for each in context.operations for name in each.results()}

    def copy(value: Value, name: str) -> str:
        context.enter(name, context.type(value))
        kind = element_type(context.type(value).dtype)
        if value.data is not None and not value.data.ndim and is_spoken(value.data):
            return context.emit("constant", shape=[], value=[value.data.item()], dtype=kind).name
        return context.emit("copy", value, dtype=kind if value.data is not None else None).name

    def name_of(value: Value) -> str:
        return value.name if value.data is None and value.weight is None else ""

    renamed = name_outputs(results, outputs, name_of, made, copy)
    constants = sorted(context.constants, key=lambda each: each.op)
    declared = (*context.externals, *context.variables, *constants)
    operations = [rename_operation(each, renamed) for each in (*declared, *context.operations)]
    names = {name: context.identifiers.names[name] for name in (*inputs, *outputs)}
    labels = {each.results()[0]: each.attributes["label"] for each in context.variables}
    names |= {name: context.labels.names[label] for name, label in labels.items()}
    return NnefModel(
        name=Identifiers(context.declared).claim("network"),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        operations=operations,
        weights={label: context.weights[label] for label in labels.values()},
        quantization={renamed.get(name, name): each for name, each in context.quantization.items()},
        stored_quantized=frozenset(context.stored_quantized.intersection(labels.values())),
        names=names,
        definitions=tuple(context.declared.values()),
        sources=_sources(context, renamed),
        blocks=tuple(
            Block(each.name, each.start + len(declared), each.stop + len(declared))
            for each in context.blocks
        ),
    )


def _sources(context: ExportContext, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return what the model calls the nodes of which assignments were made."""
    first = [each.results()[0] for each in context.operations]
    return {renamed.get(name, name): context.identifiers.names[name] for name in first}


class _Walk(ExportWalk[Value]):
    """The walk into assignments; NNEF has neither conditionals nor loops."""

    _context: ExportContext

    def __init__(
        self, model: RelayModel, context: ExportContext, report: Report, fallback: ExportFallback
    ) -> None:
        super().__init__(model, TABLE, context, report, fallback)

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Declare an input; a variable is declared where a fragment takes it."""
        if not isinstance(type_, TensorType):
            raise Unsupported(f"NNEF has tensors only, found {type_!r}")
        self._context.require(type_)
        if weight is not None:
            return Value("", type_, weight=self._context.add_weight(name, weight))
        return self._context.external(name, type_)

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> NoReturn:
        """Refuse a conditional."""
        raise Unsupported("NNEF has no conditionals")

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Write the invocation of a fragment without a body."""
        from serde.nnef.foreign import write_foreign

        return write_foreign(self._context, node, operands)

    def local_call(
        self, node: Call, function: Function, name: str, given: Sequence[Values[Value]]
    ) -> Generator[AnyValue, AnyValue, Sequence[Value] | None] | None:
        """Write a function where it is called, and note that it was one."""
        names = [str(function.attrs[key]) for key in _NAMING if key in function.attrs]
        title = next(iter([*names, name]), "")
        return self._write_function(function, title, given) if title else None

    def _write_function(
        self, function: Function, title: str, given: Sequence[Values[Value]]
    ) -> Generator[AnyValue, AnyValue, Sequence[Value] | None]:
        context = self._context
        start = len(context.operations)
        variables = (*function.params, *free_vars(function))
        values: dict[Expr, Values[Value] | None] = dict(zip(variables, given, strict=True))
        result = yield self.function(function, context.scope, values, context.symbols)
        if result is None:
            return None
        context.blocks.append(Block(title, start, len(context.operations)))
        return leaves(result)
