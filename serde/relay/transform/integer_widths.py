"""Integers of 64 bits held in 32 where every one of them fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Report, Weight
from serde.errors import TypeInferenceError
from serde.relay.ir import (
    Arithmetic,
    Call,
    Constant,
    Expr,
    Function,
    If,
    InRange,
    Linear,
    Moves,
    OpDef,
    RelayModel,
    Reshape,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Values,
    Var,
    call,
    called_name,
    carried,
    children,
    has_trait,
    post_order,
    rebuild,
    tensor_type,
    trait_of,
    value_types,
)
from serde.relay.ir.leaves import field_dtypes
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.weight_folding import fold_weights

__all__ = ["LEAST_LARGE", "magnitude", "narrow_integers"]

LEAST_LARGE: Final = 2**31
"""The least magnitude that 32 bits do not hold."""

_LONGEST: Final = 2.0**30
"""No axis is longer: positions and lengths are less."""

_WIDE, _NARROW = "int64", "int32"


def magnitude(node: Expr, known: Mapping[Expr, float]) -> float:
    """Return what no element of a tensor is larger than; infinity where that is not known.

    Numbers of what is true, or among constants, are known: so positions are counted.

    Args:
        node: What gives the tensor.
        known: The same of what it is computed from.
    """
    if isinstance(node, Constant):
        return float(np.abs(node.data.astype(np.float64)).max(initial=0))
    if isinstance(node.type, TensorType) and node.type.dtype == "bool":
        return 1
    if isinstance(node, Tuple):
        return max((known.get(each, math.inf) for each in node.fields), default=0)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or not node.args:
        return known.get(node, math.inf)
    given = [known.get(each, math.inf) for each in node.args]
    if node.op.name in _GROWTH:
        return _GROWTH[node.op.name](given)
    if node.op.name in ("cumsum", "serde.cumsum", "sum"):
        return given[0] * math.prod(tensor_type(node.args[0]).concrete_shape or (math.inf,))
    if has_trait(node, Moves) or has_trait(node, Reshape):
        return given[0]
    values = trait_of(node, Values)
    return max(given[each] for each in values.operands) if values is not None else math.inf


_GROWTH: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "add": sum, "arange": lambda given: max(given[:2]), "maximum": max, "minimum": max,
    "multiply": math.prod, "subtract": sum,
}  # fmt: skip


def narrow_integers(model: RelayModel, report: Report) -> RelayModel:
    """Return a model that holds integers of 64 bits in 32 where that changes no number.

    Inputs become int32, which is what a caller hands over then. Positions and lengths fit, and so
    does what is an index of a table, as any other would be an error, with the sums and products
    that it is made of; of all else the magnitude must be known. What does not fit, and bodies of
    loops, stay int64, with casts around them.

    Args:
        model: The model; only its ``main`` is looked at.
        report: Gets a note of the inputs and outputs that are int32 now.
    """
    main = model.main
    if not any(_WIDE in field_dtypes(node.type) for node in post_order(main)):
        return model
    narrowing = _Narrowing(model)
    body = narrowing.run(main.body)
    params = [narrowing.inputs.get(each, each) for each in main.params]
    function = Function(params, body, None, type_params=main.type_params, attrs=main.attrs)
    mod = InferType()(model.mod.with_main(function, checked=False))
    narrowed = fold_weights(model.evolve(mod=mod), report=report)
    names = [each.name_hint for each in narrowing.inputs.values()]
    results = (value_types(each.main.body.type) for each in (model, narrowed))
    names += [x for x, old, new in zip(model.meta.outputs, *results, strict=True) if old != new]
    if names:
        report.notes.append(f"int32 instead of int64: {', '.join(names)}")
    return narrowed


class _Narrowing:
    """A walk that holds integers of 64 bits in 32.

    Attributes:
        inputs: Inputs of 32 bits by those that they stand for.
        weights: Likewise weights, where all their numbers fit.
    """

    def __init__(self, model: RelayModel) -> None:
        self.inputs: dict[Expr, Var] = {}
        self.weights: dict[Expr, Expr] = {}
        self._sizes: dict[Expr, float] = {}
        indices = _indices(model.main.body)
        for param in model.main.params:
            if field_dtypes(param.type) != {_WIDE} or not isinstance(param.type, TensorType):
                continue
            weight = model.params.get(param.name_hint)
            if weight is None:
                self.inputs[param] = Var(param.name_hint, TensorType(param.type.shape, _NARROW))
                self._sizes[param] = _LONGEST if param in indices else LEAST_LARGE - 1
                continue
            self._sizes[param] = _largest(weight)
            if self._sizes[param] < LEAST_LARGE:
                self.weights[param] = call("cast", param, dtype=_NARROW)
        for node in post_order(model.main.body):
            if node not in self._sizes:
                self._sizes[node] = self._size(node)
            if node in indices and not isinstance(node, Constant):
                self._sizes[node] = min(self._sizes[node], _LONGEST)
        self._modular = _modular(model.main.body, indices)

    def _size(self, node: Expr) -> float:
        """Return the magnitude of a value; positions, which operators make, are known."""
        found = magnitude(node, self._sizes)
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or math.isfinite(found):
            return found
        arithmetic = trait_of(node, Arithmetic)
        if arithmetic is not None:
            return self._sizes[node.args[0]] if arithmetic.bounded else found
        counts = not any(_WIDE in field_dtypes(each.type) for each in node.args)
        is_cast = has_trait(node, Values) or has_trait(node, Linear)
        return _LONGEST if counts and not is_cast else found

    def run(self, root: Expr) -> Expr:
        """Return an expression whose integers are of 32 bits where they fit."""
        done: dict[Expr, Expr] = {**self.inputs, **self.weights}
        for node in post_order(root):
            if node not in done:
                done[node] = self._replace(node, [done[each] for each in children(node)])
        return done[root]

    def _replace(self, node: Expr, parts: Sequence[Expr]) -> Expr:
        """Return what stands for a value whose operands may be of 32 bits now."""
        small = node in self._modular or self._sizes[node] < LEAST_LARGE
        fits = _is_wide(node) and small
        if isinstance(node, Constant):
            return Constant(node.data.astype(_NARROW), node.span) if fits else node
        if isinstance(node, Tuple):
            return Tuple(parts, node.span)
        if isinstance(node, TupleGetItem):
            return TupleGetItem(parts[0], node.index, node.span)
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or carried(node):
            return rebuild(node, _widened(children(node), parts))
        if fits and called_name(node) == "cast" and parts[0].type == _narrow_type(node.type):
            return parts[0]
        if fits or _WIDE not in field_dtypes(node.type):
            narrow = _narrow_call(node, parts)
            if narrow is not None:
                return narrow
        wide = rebuild(node, _widened(children(node), parts))
        return call("cast", wide, dtype=_NARROW) if fits else wide


def _is_wide(node: Expr) -> bool:
    return isinstance(node.type, TensorType) and node.type.dtype == _WIDE


def _largest(weight: Weight) -> float:
    """Return the largest magnitude of a weight, read in pieces."""
    pieces = (np.frombuffer(piece, np.int64) for piece in weight.chunks())
    return max(
        (float(np.abs(each.astype(np.float64)).max(initial=0)) for each in pieces), default=0
    )


def _indices(root: Expr) -> set[Expr]:
    """Return what any run needs as an index of an axis, and what that has its numbers from."""
    found: set[Expr] = set()
    for node in _always(root):
        rule = trait_of(node, InRange)
        if rule is None or not rule.exact or not isinstance(node, Call):
            continue
        if node.attrs.get("mode") not in ("clip", "wrap"):
            found |= {x for x, (_, most) in rule.rule(node, {}) if most < LEAST_LARGE}
    waiting = [*found]
    while waiting:
        node = waiting.pop()
        if has_trait(node, Moves) or has_trait(node, Reshape) or called_name(node) == "cast":
            source = node.args[0] if isinstance(node, Call) else node
            if _is_wide(source) and source not in found:
                found.add(source)
                waiting.append(source)
    return found


_RING: Final = frozenset(
    ("add", "cumsum", "multiply", "negative", "serde.cumsum", "subtract", "sum")
)


def _modular(root: Expr, indices: set[Expr]) -> set[Expr]:
    """Return what only counts modulo 2^32: what becomes an index by sums and products alone.

    The index fits, and sums and products of 32 bits are those of 64 in their last 32.
    """
    users: dict[Expr, list[Expr]] = {}
    order = post_order(root)
    for node in order:
        for each in children(node):
            users.setdefault(each, []).append(node)
    found: set[Expr] = set()
    for node in reversed(order):
        if node in indices and not isinstance(node, Constant):
            found.add(node)
        elif _is_wide(node) and node in users and _is_sum(node):
            passed = (each in found and _passes(node, each) for each in users[node])
            found.update([node] if all(passed) else [])
    return found


def _is_sum(node: Expr) -> bool:
    moves = has_trait(node, Moves) or has_trait(node, Reshape)
    return moves or called_name(node) in _RING


def _passes(node: Expr, user: Expr) -> bool:
    """Whether all that a user makes of a value are sums, products and other places."""
    if called_name(user) in _RING:
        return True
    return _is_sum(user) and children(user)[0] is node and node not in children(user)[1:]


def _always(root: Expr) -> Iterator[Expr]:
    """Yield what every run computes: not what only one branch does."""
    seen, waiting = {root}, [root]
    while waiting:
        node = waiting.pop()
        yield node
        below = (node.cond,) if isinstance(node, If) else children(node)
        waiting += [each for each in below if each not in seen]
        seen.update(below)


def _narrow_call(node: Call, parts: Sequence[Expr]) -> Expr | None:
    """Return a call of 32 bits, with attributes that ask for these; None where there is none."""
    assert isinstance(node.op, OpDef)
    if any(_WIDE in field_dtypes(each.type) for each in parts):
        return None
    makes = _WIDE in field_dtypes(node.type)
    attrs: dict[str, AnyValue] = {
        name: np.dtype(_NARROW)
        if makes and isinstance(value, np.dtype) and value == _WIDE
        else value
        for name, value in node.attrs.items()
    }
    try:
        found = call(node.op.name, *parts, span=node.span, **attrs)
    except TypeInferenceError:
        return None
    return found if found.type == _narrow_type(node.type) else None


def _narrow_type(type_: AnyValue) -> AnyValue:
    if isinstance(type_, TupleType):
        return TupleType(map(_narrow_type, type_.fields))
    is_wide = isinstance(type_, TensorType) and type_.dtype == _WIDE
    return TensorType(type_.shape, _NARROW) if is_wide else type_


def _widened(before: Sequence[Expr], now: Sequence[Expr]) -> list[Expr]:
    """Return values as they were before they were narrowed."""
    return [_as_wide(new, old.type) for old, new in zip(before, now, strict=True)]


def _as_wide(node: Expr, type_: Type | None) -> Expr:
    if node.type == type_:
        return node
    if isinstance(type_, TupleType):
        fields: Sequence[Expr] = (
            node.fields
            if isinstance(node, Tuple)
            else [TupleGetItem(node, index) for index in range(len(type_.fields))]
        )
        return Tuple([_as_wide(x, each) for x, each in zip(fields, type_.fields, strict=True)])
    return call("cast", node, dtype=_WIDE)
