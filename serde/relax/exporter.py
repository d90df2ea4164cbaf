"""From a Relay model to a module of Relax: lowering, bindings, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue, Final

from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import Unsupported, raise_if_refused
from serde.relax.dataflow import with_dataflow
from serde.relax.export_context import Block, ExportContext, Value
from serde.relax.framework import Framework, load
from serde.relax.functions import outline
from serde.relax.model import INPUT_NAMES, OUTPUT_NAMES, WEIGHT_NAMES, RelaxModel
from serde.relax.ops import TABLE
from serde.relax.options import RelaxExportOptions
from serde.relax.values import require_tensor
from serde.relay import transform
from serde.relay.ir import Call, Foreign, If, RelayModel, called_name, output_names, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk
from serde.walk.lowering import lower_to_static
from serde.walk.placement import Scope

__all__ = ["from_relay"]

_WHOLE: Final = ("nn.layer_norm", "serde.attention", "serde.gelu", "serde.silu")
"""Layers that others spell out and Relax has."""

_MOST_BRANCHES: Final = 40
"""Conditionals inside each other that TVM's recursion takes."""


@pause_garbage_collection()
def from_relay(model: RelayModel, options: RelaxExportOptions, report: Report) -> RelaxModel:
    """Return `model` as a module of Relax.

    Raises:
        MissingDependency: TVM is not installed, or as a release that is not known.
        UnsupportedModelError: Relax cannot say some of the model.
    """
    framework = load()
    model = _lower(model, report)
    context = ExportContext(TABLE, framework)
    walk = _RelaxWalk(model, context, report, options)
    walk.declare()
    results = walk.write()
    raise_if_refused(report)
    outputs = tuple(output_names(model.meta.outputs, model.main.body.type))
    inputs = tuple(context.names.names[name] for name in walk.inputs)
    attributes = {
        "global_symbol": "main",
        "num_input": len(inputs),
        OUTPUT_NAMES: list(outputs),
        **_names_attribute(INPUT_NAMES, walk.inputs, inputs),
        **_names_attribute(
            WEIGHT_NAMES, walk.weights, [context.names.names[name] for name in walk.weights]
        ),
    }
    params = [*walk.inputs.values(), *(variable for variable, _ in walk.weights.values())]
    try:
        main = context.function(params, context.scope, results, attributes)
    except Unsupported as error:
        report.add("main", "main", error.reason, error.hint)
    raise_if_refused(report)
    return RelaxModel(
        _module(framework, context, main),
        inputs,
        outputs,
        {name: weight for name, (_, weight) in walk.weights.items()},
        {name: context.names.names[name] for name in (*walk.inputs, *walk.weights)},
    )


def _module(framework: Framework, context: ExportContext, main: AnyValue) -> AnyValue:
    """Return the module, whose bindings lie in dataflow blocks, as TVM's passes want them.

    What nothing uses is left out: converters write all results of an operator.
    """
    module = context.builder.get()
    module["main"] = main
    for variable, function in module.functions_items():
        if isinstance(function, framework.relax.Function):
            module[variable] = with_dataflow(framework, context.builder, function)
    return framework.relax.transform.DeadCodeElimination()(module)


def _names_attribute(key: str, own: Sequence[str] | AnyValue, names: Sequence[str]) -> AnyValue:
    """Return the attribute that tells names which variables cannot have."""
    return {key: list(names)} if list(own) != list(names) else {}


def _lower(model: RelayModel, report: Report) -> RelayModel:
    """Return the model in operators that are written."""
    supported = partial(TABLE.can_export, version=1)

    def whole(node: Call) -> bool:
        return called_name(node) in _WHOLE and supported(node)

    layers = transform.RaiseLayers(whole, frozenset(model.params))
    return lower_to_static(model, TABLE, supported, report, before=[layers])


class _RelaxWalk(ExportWalk[Value]):
    """The walk into bindings, whose branches see what is around them.

    Attributes:
        inputs: The variables of inputs by name.
        weights: Those of weights by name, with the weights.
    """

    takes_tuples = True
    _context: ExportContext

    def __init__(
        self, model: RelayModel, context: ExportContext, report: Report, options: RelaxExportOptions
    ) -> None:
        super().__init__(model, TABLE, context, report, ExportFallback.of("relax", options))
        self._freeze = options.freeze_vars
        self.inputs: dict[str, AnyValue] = {}
        self.weights: dict[str, tuple[AnyValue, Weight]] = {}
        for each in (each for param in model.main.params for each in value_types(param.type)):
            if isinstance(each, TensorType):  # A symbol may come behind what is made of it.
                context.symbols.expect(each.shape, context.scope)

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Declare an input or a weight; with ``freeze_vars`` a weight is a constant."""
        context = self._context
        type_ = require_tensor(type_)
        if weight is not None and self._freeze:
            constant = context.framework.relax.const(context.share_weight(weight), weight.dtype)
            return Value(constant, type_)
        own = context.names.claim(name)
        variable = context.framework.relax.Var(own, context.relax_type(type_, define=True))
        if weight is None:
            self.inputs[own] = variable
        else:
            self.weights[own] = variable, weight
        return Value(variable, type_)

    def foreign(self, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
        """Write the call of a function that is registered with TVM under the operator's name."""
        from serde.relax.foreign import write_foreign

        return write_foreign(self._context, node, operands)

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the branch as a sequence of bindings."""
        if not isinstance(scope, Block):
            raise TypeError(f"{scope!r} is no block")
        scope.require_level(_MOST_BRANCHES)
        return outline(self._context, scope, results)

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Write a conditional."""
        context = self._context
        made = context.framework.relax.If(context.expr(condition), *branches)
        outputs = len(value_types(node.type))
        if outputs == 1:
            return [context.bind(made, name)]
        return context.bind_tuple(made, outputs)
