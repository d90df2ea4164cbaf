"""From a Relay model to a module of Python: lowering, statements, layers and weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

from serde.bridge.ranges import declared_ranges
from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, Foreign, If, OpDef, RelayModel, output_names, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.fold_shape import ShapeFolder
from serde.torch import program as tree
from serde.torch.blocks import Block
from serde.torch.export_context import ExportContext, Value
from serde.torch.model import Input
from serde.torch.ops import TABLE
from serde.torch.ops.recurrent.stack import MERGE_STACKS
from serde.torch.options import TorchExportOptions
from serde.torch.program import TorchProgram
from serde.torch.training import read_facts, read_heads
from serde.torch.written.tidy import drop_unused
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk
from serde.walk.lowering import lower_to_static
from serde.walk.placement import Scope

__all__ = ["from_relay"]

_WHOLE = ("nn.dense", "nn.layer_norm", "serde.attention", "serde.gelu", "serde.silu")
"""Layers that others spell out and PyTorch has."""


@pause_garbage_collection()
def from_relay(model: RelayModel, options: TorchExportOptions, report: Report) -> TorchProgram:
    """Return `model` as a module of Python.

    Raises:
        UnsupportedModelError: PyTorch cannot say some of the model.
    """
    model = _lower(model, options.training, report)
    context = ExportContext(TABLE, hop=options.control_flow == "hop")
    context.declare_weights(model.params)
    context.training = read_facts(model.meta)
    context.constants.update(name for name, each in model.params.items() if _is_filled(each))
    walk = _TorchWalk(model, context, report, ExportFallback.of("torch", options))
    inputs = walk.declare()
    outputs = walk.write()
    raise_if_refused(report)
    results = [context.term(each) for each in outputs]
    body = drop_unused(context.scope.statements, results)
    called, read = _used_by(body, results)
    called |= {
        n for n, each in context.layers.items() if not read.isdisjoint(each.weights.values())
    }
    held = {each for name in called for each in context.layers[name].weights.values()} | read
    return TorchProgram(
        inputs=[_input(walk.given[each.name], each) for each in inputs],
        outputs=output_names(model.meta.outputs, model.main.body.type),
        results=results,
        body=_with_types(body, context.types),
        layers={name: each for name, each in context.layers.items() if name in called},
        stored={name: place for name, place in context.stored.items() if name in read},
        weights={name: each for name, each in context.weights.items() if name in held},
        trained=frozenset(
            name
            for name, weight in context.weights.items()
            if name not in context.constants and _is_trained(weight)
        ),
        functions=context.functions,
        hop=context.hop,
        output_types=[
            each if isinstance(each, TensorType) else None
            for each in value_types(model.main.body.type)
        ],
        facts={
            "source": model.meta.source_format,
            "version": model.meta.source_version,
            "description": model.meta.description,
            "heads": read_heads(model.meta),
            "metadata": model.meta.metadata,
            "ranges": {
                name: (least, most)
                for name, (least, most, _) in declared_ranges(model.meta.extra).items()
                if most is not None
            },
        },
        labels=model.meta.labels,
    )


def _lower(model: RelayModel, training: bool, report: Report) -> RelayModel:
    """Return the model in operators that are written."""
    supported = partial(TABLE.can_export, version=1)

    def whole(node: Call) -> bool:
        return isinstance(node.op, OpDef) and node.op.name in _WHOLE and supported(node)

    layers = transform.RaiseLayers(whole, frozenset(model.params))
    return lower_to_static(
        model, TABLE, supported, report, before=[layers],
        after=[MERGE_STACKS, transform.RemoveIdentities(training)], keep_training=training,
    )  # fmt: skip


def _input(name: str, value: Value) -> Input:
    if isinstance(value.type, TensorType):
        return Input(name, value.name, value.type.shape, value.type.dtype)
    return Input(name, value.name)


def _is_filled(weight: Weight) -> bool:
    """Whether a weight only has the shape of what it is computed from, as a fixed gamma has."""
    expr = weight.expr if isinstance(weight, ComputedWeight) else None
    if not isinstance(expr, Call) or not isinstance(expr.op, OpDef):
        return False
    return expr.op.name in ("ones_like", "zeros_like")


def _is_trained(weight: Weight) -> bool:
    return weight.dtype.startswith(("float", "bfloat", "complex"))


def _used_by(
    body: Sequence[tree.Statement], results: Sequence[tree.Expression]
) -> tuple[set[str], set[str]]:
    """Return the layers that are called, and the weights that are read beside them."""
    pending = [
        *results,
        *(x for each in tree.statements_of(body) for x in tree.expressions_of(each)),
    ]
    called: set[str] = set()
    read: set[str] = set()
    while pending:
        each = pending.pop()
        if isinstance(each, tree.Submodule):
            called.add(each.name)
        elif isinstance(each, tree.Stored):
            read.add(each.name)
        pending.extend(tree.parts(each))
    return called, read


def _with_types(
    body: list[tree.Statement], types: dict[str, TensorType | SequenceType]
) -> list[tree.Statement]:
    """Note on each assignment the Relay types of its targets."""
    for each in tree.statements_of(body):
        if isinstance(each, tree.Assign):
            found = [types.get(name) for name in each.targets]
            each.types = tuple(x if isinstance(x, TensorType) else None for x in found)
    return body


class _TorchWalk(ExportWalk[Value]):
    """The walk into statements of Python, whose branches and loops see what is around them.

    Attributes:
        given: Names of the inputs by their variables.
    """

    takes_tuples = True
    _context: ExportContext

    def __init__(
        self, model: RelayModel, context: ExportContext, report: Report, fallback: ExportFallback
    ) -> None:
        super().__init__(model, TABLE, context, report, fallback)
        self.given: dict[str, str] = {}
        self._shapes = ShapeFolder()

    def _operator(self, placed: AnyValue, scope: Scope, values: AnyValue, node: Call) -> AnyValue:
        """Write a call, and note the lengths that it gives: numbers take no way over tensors."""
        self._shapes.fold(node)
        known = self._shapes.value(node)
        found = super()._operator(placed, scope, values, node)
        if known is not None and isinstance(found, Value):
            self._context.dims[found.name] = tuple(known.flat)
        return found

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Declare an input, or a weight that converters give a place."""
        element = type_.element if isinstance(type_, SequenceType) else type_
        self._context.dtype(element.dtype)
        if weight is not None:
            return Value(name, type_, weight=name)
        variable = self._context.variable()
        self.given[variable] = name
        return Value(variable, type_)

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Write the call of an operator of a library."""
        from serde.torch.foreign import write_foreign

        return write_foreign(self._context, node, operands)

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the branch as it is."""
        if not isinstance(scope, Block):
            raise TypeError(f"{scope!r} is no block")
        scope.require_python()
        return scope, results

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Write an ``if``, both branches of which assign the same variables."""
        context = self._context
        types = value_types(node.type)
        names = [context.variable() for _ in types]
        bodies = []
        for scope, results in branches:
            with context.inside(scope):
                assign_results(context, scope, names, results)
            bodies.append(scope.statements)
        asked = context.term(condition)
        context.scope.statements.append(tree.If(asked, bodies[0], bodies[1], tuple(names), name))
        return [Value(each, type_) for each, type_ in zip(names, types, strict=True)]


def assign_results(
    context: ExportContext, scope: Block, names: Sequence[str], results: Sequence[Value]
) -> None:
    """Assign variables what a branch gives: a variable of its own is renamed, the rest copied."""
    own = {each for s in scope.statements if isinstance(s, tree.Assign) for each in s.targets}
    renamed: dict[str, str] = {}
    hop = context.hop
    for name, value in zip(names, results, strict=True):
        own_value = value.name in own and not value.is_known and value.term is None
        if own_value and value.name not in renamed and not hop:
            renamed[value.name] = name
        else:
            # Higher-order operators give nothing that shares memory with what they are given.
            term = context.term(value)
            term = tree.Method(term, "clone") if hop else term
            scope.statements.append(tree.Assign((name,), term, (), context.source))
    tree.rename(scope.statements, renamed)
