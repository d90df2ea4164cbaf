"""The walk over Relay into an ML Program."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from serde.coreml.mlprogram.export_context import ExportContext, Values, Written, typed
from serde.coreml.value import Builder, Value
from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.ir.visit import use_counts
from serde.report import Report
from serde.walk.biases import fused_biases
from serde.walk.emission import structural, with_types
from serde.walk.placement import Scope, place
from serde.walk.table import ConverterTable

__all__ = ["export_program"]


def export_program(
    model: RelayModel,
    table: ConverterTable,
    builder: Builder,
    report: Report,
    *,
    states: Collection[str] = (),
) -> tuple[list[Value], list[Value]]:
    """Emit the operations of ``main``; return its inputs and outputs. Gaps go into `report`.

    Args:
        model: The model.
        table: Converters of its operators.
        builder: Where operations are added.
        report: Gets what cannot be written.
        states: Names of inputs that are states, which are read once.
    """
    values: Values = {}
    inputs = []
    for param in model.main.params:
        if not isinstance(param.type, TensorType):
            report.add("input", param.name_hint, f"Core ML has tensors, found {param.type!r}")
            continue
        weight = model.params.get(param.name_hint)
        if weight is not None:
            values[param] = builder.weight(param.name_hint, weight)
            continue
        value = Value(builder.reserve(param.name_hint), param.type)
        inputs.append(value)
        if param.name_hint in states:
            name = f"{param.name_hint}_before"
            (value,) = builder.add("read_state", {"input": value}, [param.type], name)
        values[param] = value
        builder.note(value)
    if report.issues:
        return inputs, []
    walk = _Walk(table, builder, report)
    root = model.main.body
    result = walk.scope(place(root), root, values)
    if result is None or report.issues:
        return inputs, []
    return inputs, list(result) if isinstance(result, tuple) else [result]


class _Walk:
    """State of one export."""

    def __init__(self, table: ConverterTable, builder: Builder, report: Report) -> None:
        self._table = table
        self._builder = builder
        self._report = report
        self._context = ExportContext(builder, table, self._body)
        self._outer: list[Values] = []

    def scope(self, scope: Scope, root: Expr, values: Values) -> Written | None:
        """Export what lies in a scope and return the values of `root`."""
        biases = fused_biases(use_counts(root), dense_rank=None)
        skipped = {call for call, _bias in biases.values()}
        self._outer.append(values)
        for node in scope.nodes:
            if node in values or node in skipped or isinstance(node, (OpDef, Var)):
                continue
            if isinstance(node, If):
                values[node] = self._choice(node, scope.branches[node], values)
            else:
                values[node] = self._node(node, values, biases)
        self._outer.pop()
        return values[root]

    def _body(self, function: Function, args: Sequence[Value]) -> list[Value]:
        values: Values = {**self._outer[-1], **dict(zip(function.params, args, strict=True))}
        for value in args:
            self._builder.note(value)
        found = self.scope(place(function.body), function.body, values)
        if found is None:
            raise Unsupported("its body cannot be written")
        return list(found) if isinstance(found, tuple) else [found]

    def _choice(self, node: If, branches: tuple[Scope, Scope], values: Values) -> Written | None:
        """Emit a conditional: each branch becomes a block, which sees the values around it."""
        condition = values[node.cond]
        name = node.span.source_name if node.span is not None else ""
        if not isinstance(condition, Value) or node.type is None:
            return None
        blocks = []
        for scope, root in zip(branches, (node.true_branch, node.false_branch), strict=True):
            found: list[Written | None] = []

            def write(
                scope: Scope = scope, root: Expr = root, found: list[Written | None] = found
            ) -> Sequence[Value]:
                result = self.scope(scope, root, values)
                found.append(result)
                if result is None:
                    return []
                flat = result if isinstance(result, tuple) else (result,)
                return [self._builder.own(each, name or "branch") for each in flat]

            blocks.append(self._builder.inner_block(write))
            if found[0] is None:
                return None
        types = node.type.fields if isinstance(node.type, TupleType) else (node.type,)
        kinds = [each for each in types if isinstance(each, TensorType)]
        results = self._builder.add("cond", {"pred": condition}, kinds, name or "cond", blocks)
        return results if isinstance(node.type, TupleType) else results[0]

    def _node(
        self, node: Expr, values: Values, biases: Mapping[Expr, tuple[Call, Expr]]
    ) -> Written | None:
        """Return the values of one expression, or None where it could not be exported."""
        if isinstance(node, (Constant, Tuple, TupleGetItem)):
            return structural(node, values, self._context.const)
        name = node.span.source_name if node.span is not None else ""
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            kind = type(node).__name__ if not isinstance(node, Call) else "call of a function"
            self._report.add(kind, name, "has no counterpart in Core ML")
            return None
        call, extra = (node, ()) if node not in biases else (biases[node][0], (biases[node][1],))
        operands = [values[argument] for argument in (*call.args, *extra)]
        if not isinstance(call.op, OpDef) or node.type is None:
            raise ConverterBug(f"{name}: {node!r} is not typed")
        label = call.op.name
        try:
            if any(operand is None for operand in operands):
                self._table.bind_export(call, self._builder.version)
                return None
            self._context.enter(name or label.rsplit(".", 1)[-1], node.type)
            result = self._table.run_export(self._context, call, operands, self._builder.version)
        except (Unsupported, TypeInferenceError) as error:
            hint = error.hint if isinstance(error, Unsupported) else None
            self._report.add(label, name or label, str(error), hint)
            return None
        written = with_types(result, node.type, typed)
        for value in written if isinstance(written, tuple) else (written,):
            self._builder.note(value)
        return written
