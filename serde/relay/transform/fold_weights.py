"""Closed expressions over weights become weights, evaluated when they are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from serde.limits import CHUNK_BYTES, MAX_INLINE_BYTES, MAX_WEIGHT_GROWTH
from serde.relay.computed import ComputedWeight
from serde.relay.expr import Call, Constant, Expr, Function, Tuple, Var
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.rows import RESHAPES
from serde.relay.transform.closed import closed_nodes
from serde.relay.transform.fold_constant import FoldConstant
from serde.relay.types import TensorType, TupleType
from serde.relay.visit import children, free_vars, post_order, rewrite
from serde.report import Report
from serde.weights import ArrayWeight, FileWeight, Weight, numpy_dtype

__all__ = ["fold_weights"]


def fold_weights(model: RelayModel, *, report: Report | None = None) -> RelayModel:
    """Make every largest expression over weights and constants one weight.

    It takes the name of its largest source if that is used nowhere else, and otherwise that
    name with a suffix. Expressions of constants alone become constants. Weights that are not
    used any more are dropped; inputs stay. A weight in a file that is only reshaped stays a
    range of the file.

    Args:
        model: A model with inferred types.
        report: Notes are added for large weights that must be evaluated as one tensor.
    """
    mod = FoldConstant()(model.mod)
    main = mod["main"]
    weights = {p: model.params[p.name_hint] for p in main.params if p.name_hint in model.params}
    folds = _folds(main, weights)
    taken = {variable.name_hint for variable in _used_elsewhere(main, folds)}
    taken.update(param.name_hint for param in main.params if param not in weights)
    for fold in folds:
        fold.choose_name(taken)
        taken.add(fold.variable.name_hint)
        _note(fold, report)
    if not folds and mod is model.mod and not _unused(main, weights):
        return model
    memo: dict[Expr, Expr] = {fold.expr: fold.variable for fold in folds}
    body = rewrite(main.body, lambda _node, new: new, memo)
    params = _params(main, body, folds, weights)
    function = Function(params, body, main.ret_type, main.attrs, main.span)
    functions = {v: function if f is main else f for v, f in mod.functions.items()}
    values = {fold.variable.name_hint: fold.weight for fold in folds}
    kept = {p.name_hint: weights[p] for p in params if p in weights}
    by_name = {**kept, **values}
    ordered = {p.name_hint: by_name[p.name_hint] for p in params if p.name_hint in by_name}
    return model.evolve(mod=mod.with_functions(functions), params=ordered)


@dataclass
class _Fold:
    """An expression that becomes a weight."""

    expr: Expr
    sources: dict[Var, Weight]
    weight: Weight
    variable: Var

    @property
    def largest(self) -> Var:
        """The source with the most bytes; of equals, the first."""
        return max(self.sources, key=lambda variable: self.sources[variable].nbytes)

    def choose_name(self, taken: set[str]) -> None:
        """Name the new weight after its largest source."""
        name = base = self.largest.name_hint
        count = 0
        while name in taken:
            count += 1
            name = f"{base}_folded{count if count > 1 else ''}"
        type_ = TensorType(self.weight.shape, self.weight.dtype)
        self.variable = Var(name, type_, self.largest.span)


def _folds(main: Function, weights: Mapping[Var, Weight]) -> list[_Fold]:
    closed = _in_proportion(
        main.body, closed_nodes(main, {variable.name_hint for variable in weights}), weights
    )
    found: dict[Expr, None] = {}
    for node in post_order(main.body):
        if node in closed and not isinstance(node, Tuple):
            continue
        for child in children(node):
            if child in closed and _folds_away(child):
                found[child] = None
    if main.body in closed and _folds_away(main.body):
        found[main.body] = None
    result = []
    for expr in found:
        sources = {v: weights[v] for v in free_vars(expr) if v in weights}
        if sources:
            result.append(_Fold(expr, sources, _weight_of(expr, sources), next(iter(sources))))
    return result


def _in_proportion(
    body: Expr, closed: Collection[Expr], weights: Mapping[Var, Weight]
) -> set[Expr]:
    """Return the closed nodes that need no value much larger than all weights are.

    What repeats weights beyond that, such as a tile, stays in the graph.
    """
    most = MAX_INLINE_BYTES + MAX_WEIGHT_GROWTH * sum(each.nbytes for each in weights.values())
    kept: set[Expr] = set()
    for node in post_order(body):
        if node in closed and _bytes_of(node) <= most and all(c in kept for c in children(node)):
            kept.add(node)
    return kept


def _bytes_of(node: Expr) -> int:
    """Return the size of a value; of one whose length is not fixed, 0."""
    type_ = node.type
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    sizes = (
        prod(field.concrete_shape or (0,)) * numpy_dtype(field.dtype).itemsize
        for field in fields
        if isinstance(field, TensorType) and field.concrete_shape is not None
    )
    return sum(sizes)


def _folds_away(node: Expr) -> bool:
    if isinstance(node, (Var, Constant, Tuple)):
        return False
    return isinstance(node.type, TensorType) and node.type.concrete_shape is not None


def _weight_of(expr: Expr, sources: Mapping[Var, Weight]) -> Weight:
    """Return the weight of an expression; of a chain of reshapes, the source's bytes."""
    node = expr
    while isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in RESHAPES:
        node = node.args[0]
    type_ = expr.type
    if not isinstance(node, Var) or not isinstance(type_, TensorType):
        return ComputedWeight(expr, sources)
    shape, source = type_.concrete_shape, sources[node]
    if shape is None:
        return ComputedWeight(expr, sources)
    if source.source is not None:
        return FileWeight(source.source, shape, source.dtype)
    if isinstance(source, ArrayWeight):
        return ArrayWeight(source.rows(0, source.shape[0] if source.shape else 1).reshape(shape))
    return ComputedWeight(expr, sources)


def _used_elsewhere(main: Function, folds: list[_Fold]) -> set[Var]:
    """Return the weights that stay in the graph or feed several folds."""
    folded: set[Expr] = {fold.expr for fold in folds}
    remaining: set[Var] = set()
    visited: set[Expr] = set()
    pending: list[Expr] = [main.body]
    while pending:
        node = pending.pop()
        if node in visited or node in folded:
            continue
        visited.add(node)
        if isinstance(node, Var):
            remaining.add(node)
        pending.extend(children(node))
    seen: set[Var] = set()
    for fold in folds:
        for variable in fold.sources:
            if variable in seen:
                remaining.add(variable)
            seen.add(variable)
    return remaining


def _unused(main: Function, weights: Mapping[Var, Weight]) -> bool:
    used = set(free_vars(main.body))
    return any(variable not in used for variable in weights)


def _params(
    main: Function, body: Expr, folds: list[_Fold], weights: Mapping[Var, Weight]
) -> list[Var]:
    """Return inputs, weights still used, and new weights where their largest source was."""
    used = set(free_vars(body))
    added: dict[Var, list[Var]] = {}
    for fold in folds:
        added.setdefault(fold.largest, []).append(fold.variable)
    params: list[Var] = []
    for param in main.params:
        if param not in weights or param in used:
            params.append(param)
        params.extend(added.get(param, ()))
    return params


def _note(fold: _Fold, report: Report | None) -> None:
    weight = fold.weight
    if report is None or not isinstance(weight, ComputedWeight) or weight.nbytes <= CHUNK_BYTES:
        return
    if weight.whole:
        name = fold.variable.name_hint
        report.notes.append(f"{name}: computed as one tensor of {weight.nbytes} bytes")
