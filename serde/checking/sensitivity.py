"""Which nodes of a model suffer most where its values are rounded, by one run in float64.

Operators are computed again on rounded operands. That tells what rounding takes of each value, and
how much of it an operator passes on; multiplied along the graph, about how far an output moves.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any as AnyValue

import numpy as np

from serde.checking.distance import deviation, distance, ratio
from serde.checking.yardstick import Measured
from serde.core import Array, Weight
from serde.relay.ir import Call, Expr, Float32, OpDef, RelayModel, TensorType, carried, trait_of
from serde.relay.ir.expr import Tuple, TupleGetItem
from serde.relay.ir.leaves import leaves, value_types
from serde.relay.run.arithmetic import Application, Exact, OperandsRounded, Rounded
from serde.relay.run.interpreter import run_with
from serde.relay.transform import InferType, ToGraphNormalForm

__all__ = ["fewest", "find_wide_nodes", "rank"]

_BEYOND, _ELEMENTS, _MOST, _RUNS, _NODES, _SECONDS = 65520.0, 2**16, 1e3, 32, 8, 30.0
"""What float16 does not hold, elements that are compared, the greatest error, how often a list is
made smaller, and the nodes and seconds of a verdict's proposal."""


def fewest(
    ranking: Sequence[frozenset[str]], enough: Callable[[frozenset[str]], bool]
) -> frozenset[str] | None:
    """Return a small set that is enough, the first group in it; None if not even all is."""
    steps = list(dict.fromkeys(accumulate(ranking, lambda names, more: names | more)))
    at = 0 if enough(steps[0]) else bisect_left(steps[:-1], True, key=enough)
    if not enough(steps[at]):
        return None
    order = dict.fromkeys(name for group in ranking[1:] for name in sorted(group & steps[at]))
    kept = [name for name in order if name not in ranking[0]]
    size, runs = -(-len(kept) // 2), 0
    while size:
        for end in range(len(kept), 0, -size):
            fewer, runs = kept[: max(end - size, 0)] + kept[end:], runs + 1
            if runs <= _RUNS and enough(ranking[0].union(fewer)):
                kept = fewer
        size //= 2
    return ranking[0].union(kept)


def rank(
    model: RelayModel, inputs: Mapping[str, Array], known: Collection[str] | None = None
) -> Sequence[frozenset[str]]:
    """Return how nodes in float32 suffer by float16, or those with a `known` name by int8.

    First are names around values that float16 does not hold, then value by value, and last all.
    """
    mod = InferType()(ToGraphNormalForm()(model.mod))
    felt = _Felt(_round_to_float16 if known is None else _round_to_8_bits)
    values = {**model.params, **inputs}
    given = [values[param.name_hint] for param in mod["main"].params]
    with np.errstate(all="ignore"):
        run_with(felt, mod["main"], given, mod=mod)
    return felt.ranking(known)


def find_wide_nodes(measured: Measured, at: int, enough: float) -> tuple[tuple[str, ...], float]:
    """Return few nodes with which in float32 an output is `enough` or less off, and how far."""
    exact, felt, end = measured.exact[at], _Felt(), time.monotonic() + _SECONDS
    found: dict[frozenset[str], float] = {}

    def near(names: frozenset[str]) -> bool:
        if time.monotonic() > end:
            return False
        output = measured.run(Rounded(names))[at]
        found[names] = ratio(distance(output, exact, np.isfinite(exact)).mean, deviation(exact))
        return found[names] <= enough

    with np.errstate(all="ignore"):
        measured.run(felt)
    names = fewest(felt.ranking(), near)
    few = names is not None and len(names) <= _NODES
    return (tuple(sorted(names)), found[names]) if names and few else ((), 0.0)


def _round_to_float16(value: Array) -> Array:
    """Return numbers of float16, its ends for what is beyond."""
    end = np.finfo(np.float16).max
    return np.where(np.isinf(value), value, np.clip(value, -end, end).astype(np.float16))


def _round_to_8_bits(value: Array) -> Array:
    """Return numbers in 255 steps between the least and the greatest of a row, or 0."""
    axes = tuple(range(1, value.ndim)) or None
    low, high = (f(value, axis=axes, keepdims=True, initial=0) for f in (np.min, np.max))
    step = np.where(high > low, high - low, 1) / 255
    return np.rint(value / step) * step


class _Felt(Exact):
    """The exact arithmetic, which notes what rounding does to each operator."""

    def __init__(self, narrow: Callable[[Array], Array] = _round_to_float16) -> None:
        self._narrow, self._rounded = narrow, OperandsRounded(narrow)
        self._errors: dict[Expr, float] = {}
        self._gains: dict[Call, float] = {}
        self._users: dict[Expr, dict[Call, None]] = {}
        self._beyond: dict[Expr, None] = {}

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields in float64."""
        exact, node, power, gain = super().apply(made), made.node, 0.0, 1.0
        if isinstance(exact, Generator):
            return exact
        for operand, given in zip(node.args, made.args, strict=True):
            for value, array in _floats(operand, given):
                power += self._note(value, array) ** 2
                self._users.setdefault(value, {})[node] = None
        if power:
            pairs = zip(leaves(self._rounded.apply(made)), leaves(exact), strict=True)
            gain = max((_apart(*pair) for pair in pairs), default=0.0) / math.sqrt(power)
        self._gains[node] = max(self._gains.get(node, 0.0), gain)
        for value, array in _floats(node, exact):
            self._note(value, array)
        return exact

    def _note(self, value: Expr, array: Array) -> float:
        """Note what rounding takes of a value, in its deviations, and return it."""
        if np.abs(array[np.isfinite(array)]).max(initial=0) >= _BEYOND:
            self._beyond[value] = None
        error = _apart(self._narrow(array), array)
        self._errors[value] = max(self._errors.get(value, 0.0), error)
        return error

    def ranking(self, known: Collection[str] | None = None) -> Sequence[frozenset[str]]:
        """Return what :func:`rank` does."""
        share: dict[Expr, float] = {}

        def effect(value: Expr) -> float:
            users = self._users.get(value, ())
            return min(max((self._gains[x] * share.get(x, 1.0) for x in users), default=1.0), _MOST)

        for node in reversed(self._gains):
            share[node] = effect(node)
        cost = {value: error * effect(value) for value, error in self._errors.items()}
        around = {
            value: frozenset(_name(x, known) for x in (value, *self._users.get(value, ()))) - {""}
            for value in sorted(cost, key=lambda value: -cost[value])
        }
        needed = [around[each] for each in self._beyond if known is None]
        groups = [names for value, names in around.items() if cost[value]]
        return [frozenset().union(*needed), *groups, frozenset().union(*around.values())]


def _floats(node: Expr, value: AnyValue) -> Iterator[tuple[Expr, Array]]:
    """Yield what is float32 of a value, by the call, variable or constant that it is of."""
    if isinstance(node, Tuple):
        for field, item in zip(node.fields, value, strict=True):
            yield from _floats(field, item)
        return
    types = value_types(node.type)
    while isinstance(node, TupleGetItem):
        node = node.tuple_value
    for type_, array in zip(types, leaves(value), strict=False):
        if isinstance(type_, TensorType) and type_.dtype == "float32":
            yield node, array.array() if isinstance(array, Weight) else array


def _apart(value: Array, exact: Array) -> float:
    """Return how far two arrays are apart, in deviations, by some of their elements."""
    if value.shape != exact.shape or not exact.size:
        return _MOST if exact.size else 0.0
    left, right = (x.reshape(-1)[:: -(-x.size // _ELEMENTS)] for x in (value, exact))
    return min(ratio(distance(left, right, np.isfinite(right)).mean, deviation(right)), _MOST)


def _name(node: Expr, known: Collection[str] | None) -> str:
    """Return what keeps a node as it is; nothing where that is so in any case, or nothing does."""
    name = "" if node.span is None else node.span.source_name
    name = "" if "," in name or name != name.strip() else name
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return ""
    if known is not None:
        return name if name in known else ""
    wide = trait_of(node, Float32)
    types = [each for x in (node, *node.args) for each in value_types(x.type)]
    floats = any(isinstance(x, TensorType) and x.dtype == "float32" for x in types)
    return "" if (wide and wide.default) or carried(node) or not floats else name or node.op.name
