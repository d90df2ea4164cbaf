"""The walk over a module of Relax into Relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, NamedTuple

from serde.core import Report, pause_garbage_collection
from serde.errors import Unsupported, raise_if_refused
from serde.relax.framework import load
from serde.relax.import_functions import FunctionWalk
from serde.relax.import_walk import Values, tensor_type
from serde.relax.lengths import Shape
from serde.relax.model import RelaxModel
from serde.relax.options import RelaxImportOptions
from serde.relax.reflection import handle_of
from serde.relay.ir import Any, Dim, DimLike, Expr, ModelMeta, RelayModel, Span, Var, as_dim
from serde.relay.ir.types import TensorType
from serde.walk.importer import Graph
from serde.walk.inputs import check_rank

__all__ = ["to_relay"]


@pause_garbage_collection()
def to_relay(model: RelaxModel, options: RelaxImportOptions, report: Report) -> RelayModel:
    """Return the module as Relay.

    Functions are read where they are called, those that call themselves as let-bound functions.

    Raises:
        OptionError: An option names no input.
        UnsupportedModelError: Some of the module cannot be converted.
    """
    walk = _Walk(model, options, report)
    scope = Values()
    main = model.module["main"]
    graph = walk.read(main, scope)
    params = main.params[: len(model.inputs)]
    entries = [_Input(name, each) for name, each in zip(model.inputs, params, strict=True)]
    walk.declare_lengths(entries, options)
    inputs = walk.inputs(
        entries,
        scope,
        options.input_shapes,
        options.input_dtypes,
        weights=list(model.weights),
        fixed=options.fix_inputs,
    )
    walk.read_numbers(entries, scope)
    results = walk.run(graph, scope)
    outputs = walk.leaves(results)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    meta = ModelMeta(
        inputs=tuple(each.name_hint for each in inputs),
        outputs=model.outputs,
        source_format="relax",
        source_version=load().version,
    )
    return walk.assembly.model(inputs, outputs, meta, walk.named)


class _Input(NamedTuple):
    """An input as the function declares it."""

    name: str
    variable: AnyValue


class _Walk(FunctionWalk):
    """The walk from the entry function on."""

    # Inputs.

    def declare_lengths(self, entries: Sequence[_Input], options: RelaxImportOptions) -> None:
        """Note the variables in shapes of inputs: as the caller gives them, else as symbols."""
        types = {each.name: self.framework.type_of(each.variable) for each in entries}
        shapes = dict(options.input_shapes)
        if "" in shapes and len(entries) == 1:
            shapes[entries[0].name] = shapes.pop("")
        tensors = {
            name: self.framework.lengths(type_) or ()
            for name, type_ in types.items()
            if isinstance(type_, self.framework.TensorType)
        }
        for name, given in shapes.items():
            for length, dim in zip(tensors.get(name, ()), given, strict=False):
                if self.lengths.is_variable(length) and not self.lengths.knows(length):
                    self.lengths.define(length, as_dim(dim), _not_shown)
        for lengths in tensors.values():
            for length in lengths:
                self.lengths.declare(length)

    def declare(
        self, entry: _Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Values
    ) -> Var | None:
        """Return the variable for an input, and define its name."""
        type_ = self.framework.type_of(entry.variable)
        if not isinstance(type_, self.framework.TensorType):
            wanted = self._type_of_numbers(type_)
            check_rank(entry.name, wanted.shape if shape is None else shape, wanted.shape)
            if dtype not in (None, wanted.dtype):
                raise Unsupported(f"a number of {wanted.dtype} cannot be one of {dtype}")
            scope.define(handle_of(entry.variable), Var(entry.name, wanted, Span(entry.name)))
            return scope.find(handle_of(entry.variable))
        declared = self._declared_shape(type_)
        if shape is not None and declared is not None:
            check_rank(entry.name, shape, declared)
        shape = declared if shape is None else shape
        found = dtype or (str(type_.dtype) if type_.dtype else None)
        if found is None:
            raise Unsupported(
                "nothing tells its dtype", hint=f"input_dtypes={{{entry.name!r}: ...}}"
            )
        if shape is None:
            return None
        variable = Var(entry.name, tensor_type(shape, found), Span(entry.name))
        for axis, length in enumerate(self.framework.lengths(type_) or ()):
            if self.lengths.is_variable(length):
                self.lengths.show(length, variable, axis)
        scope.define(handle_of(entry.variable), variable)
        return variable

    def _type_of_numbers(self, type_: AnyValue) -> TensorType:
        """Return the type of the tensor that an input is which is a number or a shape."""
        if isinstance(type_, self.framework.PrimType):
            return tensor_type((), str(type_.dtype))
        if isinstance(type_, self.framework.ShapeType) and type_.ndim >= 0:
            return tensor_type((type_.ndim,), "int64")
        raise Unsupported(f"Relay has tensors only, found {type_!s:.100}")

    def read_numbers(self, entries: Sequence[_Input], scope: Values) -> None:
        """Have inputs that are numbers or shapes stand for these, and for lengths."""
        for each in entries:
            handle, type_ = handle_of(each.variable), self.framework.type_of(each.variable)
            value = scope.find(handle)
            try:
                if isinstance(type_, self.framework.ShapeType):
                    value = self.cast(self.tensor_to_shape(value), type_)
                    if type_.values is not None:
                        value = Shape(tuple(map(self.lengths.read, type_.values)))
                scope.values[handle] = self.note(each.variable, value)
            except Unsupported as error:
                self.report.add("input", each.name, error.reason)
        raise_if_refused(self.report)

    def _declared_shape(self, type_: AnyValue) -> list[Dim] | None:
        """Return a shape as Relay's types have it, None where even the rank is not known."""
        values = self.framework.lengths(type_)
        if values is not None:
            return [self.lengths.known(self.lengths.read(each)) for each in values]
        return None if type_.ndim < 0 else [Any()] * type_.ndim

    def read(self, graph: AnyValue, scope: Values) -> Graph[AnyValue]:
        """Return ``main`` as the walk sees it, and define its weights."""
        weights = graph.params[len(self.model.inputs) :]
        for variable, (own, weight) in zip(weights, self.model.weights.items(), strict=True):
            name = self.model.names.get(own, own)
            scope.define(handle_of(variable), self.assembly.tensor(weight, name))
        return Graph([], self.nodes(graph.body), [graph.body])


def _not_shown() -> Expr:
    raise Unsupported("no input shows a length")
