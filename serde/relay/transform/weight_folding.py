"""Closed expressions over weights become weights, evaluated when they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final

from serde.core import ArrayWeight, FileWeight, Report, Weight, dataclass
from serde.core.limits import CHUNK_BYTES, MAX_WEIGHT_GROWTH, budget, current_limits
from serde.relay.ir import RelayModel, Reshape, TensorType, has_trait, is_call
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from serde.relay.ir.visit import children, free_vars, post_order, rewrite
from serde.relay.run.computed import ComputedWeight
from serde.relay.run.cost import fixed_bytes, work
from serde.relay.transform.evaluate_constants import EvaluateConstants
from serde.relay.transform.merge_equal_nodes import value_key
from serde.relay.transform.purity import closed_nodes

__all__ = ["fold_weights"]


_SUFFIX: Final = re.compile(r"(_folded[0-9]*)+\Z")
_SHARED_BYTES: Final = 2**16
"""Largest weight that is stored in each form in which it is used."""
_MOST_VAIN: Final = 100_000
"""Most nodes that are looked at for expressions that turn out to take too much."""


def fold_weights(
    model: RelayModel,
    *,
    report: Report | None = None,
    share: bool = True,
    packing: Collection[str] = (),
    in_place: bool = False,
) -> RelayModel:
    """Make every largest expression over weights and constants one weight.

    It takes the name of its largest source that is used nowhere else, and otherwise the name of
    its largest source with a suffix. Expressions of constants alone become constants. Weights
    that are not used any more are dropped; inputs stay. A weight in a file that is only reshaped
    stays a range of the file.

    Args:
        model: A model with inferred types.
        report: Notes are added for large weights that must be evaluated as one tensor.
        share: Whether a large weight that is used in several forms, the same elements in another
            order or shape, is stored once and rearranged in the graph.
        packing: Operators that take weights one behind the other in one vector. These stay
            weights of their own, under their own names, and are put together in the graph.
        in_place: Whether a large weight in a file stays as it lies there, and is rearranged in
            the graph.
    """
    mod = EvaluateConstants()(model.mod)
    main = mod["main"]
    weights = {p: model.params[p.name_hint] for p in main.params if p.name_hint in model.params}
    folds = _folds(main, weights, report=report, share=share, packing=packing, in_place=in_place)
    if not folds and mod is model.mod and _uses_all(main, weights):
        return model
    stay = _used_outside(main.body, {expr for fold in folds for expr in fold.exprs})
    _choose_names(folds, main, stay, weights)
    for fold in folds:
        _note(fold, report)
    memo: dict[Expr, Expr] = {expr: fold.variable for fold in folds for expr in fold.exprs}
    body = rewrite(main.body, lambda _node, new: new, memo)
    params = _params(main, body, folds, weights)
    function = main.evolve(params=params, body=body)
    values = {fold.variable.name_hint: fold.weight for fold in folds}
    kept = {p.name_hint: weights[p] for p in params if p in weights}
    by_name = {**kept, **values}
    ordered = {p.name_hint: by_name[p.name_hint] for p in params if p.name_hint in by_name}
    return model.evolve(mod=mod.with_main(function), params=ordered)


@dataclass
class _Fold:
    """Equal expressions that become one weight."""

    exprs: list[Expr]
    sources: dict[Var, Weight]
    weight: Weight
    variable: Var

    @property
    def largest(self) -> Var:
        """The source with the most bytes; of equals, the first."""
        return self._largest_of(self.sources)

    def _largest_of(self, variables: Iterable[Var]) -> Var:
        return max(variables, key=lambda variable: self.sources[variable].nbytes)

    def take_name(self, own: Collection[Var], taken: Collection[str]) -> None:
        """Name the new weight.

        Args:
            own: Its sources that nothing else uses.
            taken: Names that it must not have.
        """
        source = self._largest_of(own) if own else self.largest
        base = _SUFFIX.sub("", source.name_hint)
        names = {variable.name_hint for variable in own}
        name = source.name_hint if names - {base} == names else base
        count = 0
        while name in taken:
            count += 1
            name = f"{base}_folded{count if count > 1 else ''}"
        type_ = TensorType(self.weight.shape, self.weight.dtype)
        self.variable = Var(name, type_, source.span)


def _choose_names(
    folds: Sequence[_Fold], main: Function, stay: Collection[Expr], weights: Mapping[Var, Weight]
) -> None:
    """Name new weights; a suffix is never put behind another.

    Those that have a source of their own come first, since its name is theirs; then large ones.
    """
    taken = {param.name_hint for param in main.params if param in stay or param not in weights}
    users = Counter(variable for fold in folds for variable in fold.sources)
    owned = [[v for v in fold.sources if users[v] == 1 and v not in stay] for fold in folds]
    pairs = list(zip(folds, owned, strict=True))
    for fold, own in sorted(pairs, key=lambda pair: (not pair[1], -pair[0].weight.nbytes)):
        fold.take_name(own, taken)
        taken.add(fold.variable.name_hint)


def _folds(
    main: Function,
    weights: Mapping[Var, Weight],
    *,
    report: Report | None,
    share: bool,
    packing: Collection[str],
    in_place: bool,
) -> list[_Fold]:
    before = closed_nodes(main, {variable.name_hint for variable in weights})
    if not any(map(_folds_away, before)):
        return []
    order = post_order(main)[:-1]
    closed = _in_proportion(order, before - _find_packed(order, packing), weights)
    numbers = _numbers(node for node in order if node in closed)
    wanted = _find_wanted(main.body, order, closed)
    if share:
        wanted = _drop_shared(main.body, wanted, numbers, weights)
    if in_place:
        wanted = {node for node in wanted if not _moves_stored(node, weights)}
    found: dict[int, _Fold] = {}
    means = _Means(weights)
    for expr in (node for node in order if node in wanted):
        known = found.get(numbers[expr])
        if known is not None:
            known.exprs.append(expr)
        elif means.afford(expr):
            sources = {v: weights[v] for v in free_vars(expr) if v in weights}
            if sources:
                weight = _weight_of(expr, sources)
                found[numbers[expr]] = _Fold([expr], sources, weight, next(iter(sources)))
    if means.refused and report is not None:
        report.notes.append(
            f"{means.refused} values that weights tell stay to be computed by the model: they are "
            "larger than the weights, or take more elements, than the limits allow"
        )
    return list(found.values())


class _Means:
    """What there is to compute weights of weights with.

    Each is computed by itself, so that what several share is computed anew for each.

    Args:
        weights: All there are.

    Attributes:
        refused: How many expressions took more.
    """

    def __init__(self, weights: Mapping[Var, Weight]) -> None:
        self.refused = 0
        self._bytes = _most_bytes(weights)
        self._vain = _MOST_VAIN

    def afford(self, expr: Expr) -> bool:
        """Take what the weight that `expr` is takes; without it, it stays in the graph."""
        size = fixed_bytes(expr.type) or 0
        if size <= self._bytes and self._vain > 0 and self._afford_work(expr):
            self._bytes -= size
            return True
        self.refused += 1
        return False

    def _afford_work(self, expr: Expr) -> bool:
        left = budget()
        taken = 0
        seen = {expr}
        pending: list[Expr] = [expr]
        while pending:
            node = pending.pop()
            amount = work(node) if isinstance(node, Call) else 0
            if not left.affords("elements", amount):
                left.give_back("elements", taken)
                self._vain -= len(seen)
                return False
            taken += amount
            new = [child for child in children(node) if child not in seen]
            seen.update(new)
            pending.extend(new)
        return True


def _find_wanted(body: Expr, order: Sequence[Expr], closed: Collection[Expr]) -> set[Expr]:
    """Return the largest closed expressions: those that something not closed uses.

    A tuple is no weight, so its fields are wanted where it is.
    """
    wanted: set[Expr] = {body} if body in closed else set()
    for node in reversed(order):
        if node in closed and not (isinstance(node, Tuple) and node in wanted):
            continue
        wanted.update(child for child in children(node) if child in closed)
    return {node for node in wanted if _folds_away(node)}


def _find_packed(order: Sequence[Expr], packing: Collection[str]) -> set[Expr]:
    """Return what puts weights one behind the other for an operator among `packing`."""
    found: set[Expr] = set()
    for node in order:
        if not is_call(node, *packing):
            continue
        for vector in (each for each in children(node) if is_call(each, "concatenate")):
            (parts,) = children(vector)
            reshaped = (each for each in children(parts) if is_call(each, "reshape"))
            found |= {vector, parts, *reshaped}
    return found


def _drop_shared(
    body: Expr, wanted: set[Expr], numbers: Mapping[Expr, int], weights: Mapping[Var, Weight]
) -> set[Expr]:
    """Return `wanted` without what rearranges a large weight that is used in another form, too."""
    forms: dict[Var, set[int]] = {}
    moves: dict[Expr, Var] = {}
    for node in wanted:
        source = _strip_moves(node)
        if isinstance(source, Var) and weights[source].nbytes > _SHARED_BYTES:
            forms.setdefault(source, set()).add(numbers[node])
            moves[node] = source
    if not moves:
        return wanted
    direct = _used_outside(body, wanted)
    several = {source for source, each in forms.items() if source in direct or len(each) > 1}
    return {node for node in wanted if moves.get(node) not in several}


def _moves_stored(node: Expr, weights: Mapping[Var, Weight]) -> bool:
    """Whether `node` has the elements of a large weight in a file in another order."""
    source = _strip_moves(node)
    if not isinstance(source, Var) or weights[source].nbytes <= _SHARED_BYTES:
        return False
    while has_trait(node, Reshape):
        node = children(node)[0]
    return node is not source and weights[source].source is not None


def _strip_moves(node: Expr) -> Expr:
    """Return what `node` has the elements of, in another order or shape."""
    while has_trait(node, Reshape) or is_call(node, "transpose"):
        node = children(node)[0]
    return node


def _numbers(nodes: Iterable[Expr]) -> dict[Expr, int]:
    """Return a number for each of `nodes`, children first; equal ones have one number."""
    numbers: dict[Expr, int] = {}
    known: dict[Hashable, int] = {}
    for node in nodes:
        key = value_key(node, numbers.__getitem__)
        numbers[node] = known.setdefault(node if key is None else key, len(known))
    return numbers


def _in_proportion(
    order: Sequence[Expr], closed: Collection[Expr], weights: Mapping[Var, Weight]
) -> set[Expr]:
    """Return the closed nodes that need no value much larger than all weights are.

    What repeats weights beyond that, such as a tile, stays in the graph, and so do bytes in
    float64, which is where targets sum their products.
    """
    most = _most_bytes(weights)
    kept: set[Expr] = set()
    for node in order:
        fits = node in closed and (fixed_bytes(node.type) or 0) <= most and not _widens(node)
        if fits and all(child in kept for child in children(node)):
            kept.add(node)
    return kept


def _widens(node: Expr) -> bool:
    """Whether a node makes large bytes eight times as large."""
    if not is_call(node, "cast"):
        return False
    before, after = fixed_bytes(children(node)[0].type) or 0, fixed_bytes(node.type) or 0
    return after == 8 * before and after > _SHARED_BYTES


def _most_bytes(weights: Mapping[Var, Weight]) -> int:
    """Return the most bytes that weights made of others may have."""
    given = sum(each.nbytes for each in weights.values())
    return current_limits().constants + MAX_WEIGHT_GROWTH * given


def _folds_away(node: Expr) -> bool:
    if isinstance(node, (Var, Constant, Tuple)):
        return False
    return isinstance(node.type, TensorType) and node.type.concrete_shape is not None


def _weight_of(expr: Expr, sources: Mapping[Var, Weight]) -> Weight:
    """Return the weight of an expression; of a chain of reshapes, the source's bytes."""
    node = expr
    while has_trait(node, Reshape):
        node = children(node)[0]
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


def _used_outside(body: Expr, folded: Collection[Expr]) -> set[Expr]:
    """Return the variables that are used outside the expressions `folded`."""
    found: set[Expr] = set()
    visited: set[Expr] = set()
    pending: list[Expr] = [body]
    while pending:
        node = pending.pop()
        if node in visited or node in folded:
            continue
        visited.add(node)
        if isinstance(node, Var):
            found.add(node)
        pending.extend(children(node))
    return found


def _uses_all(main: Function, weights: Mapping[Var, Weight]) -> bool:
    used = {main.body}.union(*(node.below for node in post_order(main)[:-1]))
    return used.issuperset(weights)


def _params(
    main: Function, body: Expr, folds: Sequence[_Fold], weights: Mapping[Var, Weight]
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
