"""What rounding does to the values of a model: which of them cost most, by one exact run.

Every operator is computed in float64, and a second time on operands as fewer bits hold them. The
first tells how much of a value rounding takes, and whether it is beyond what the bits hold; both
together what the operator makes of that. Multiplied along the graph, this is how far an output
moves for each value: an estimate, good for an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any as AnyValue, Final

import numpy as np

from serde.checking.distance import deviation, distance, ratio
from serde.core import Array, Weight, dataclass
from serde.relay.ir import Call, Expr, Float32, OpDef, RelayModel, TensorType, carried, trait_of
from serde.relay.ir.expr import Constant, Tuple, TupleGetItem, Var
from serde.relay.ir.leaves import leaves, value_types
from serde.relay.run.arithmetic import Application, Exact, OperandsRounded, round_to_float16
from serde.relay.run.interpreter import run_with
from serde.relay.transform import InferType, ToGraphNormalForm

__all__ = ["Ranking", "fewest", "rank_for_float16", "rank_for_int8"]

_BEYOND: Final = 65520.0
"""The smallest magnitude that rounds to infinity in float16."""

_ELEMENTS: Final = 2**16
"""Of a value that are compared."""

_MOST_GAIN: Final = 1e3
_RUNS: Final = 32
"""Runs after which a list is not made smaller."""


@dataclass(frozen=True)
class Ranking:
    """Names of nodes in the order in which rounding around them costs.

    Attributes:
        needed: Those at values that the bits do not hold.
        groups: Those at one value each, the node that yields it and those that read it.
        all: All nodes.
    """

    needed: frozenset[str]
    groups: Sequence[frozenset[str]]
    all: frozenset[str]


def rank_for_float16(model: RelayModel, inputs: Mapping[str, Array]) -> Ranking:
    """Return how nodes, or operators where nodes have no name, suffer by float16.

    Args:
        model: The model as it is before it becomes float16.
        inputs: Values of its inputs.
    """
    return _rank(model, inputs, _Felt(round_to_float16, _BEYOND), _name_in_float16)


def rank_for_int8(model: RelayModel, inputs: Mapping[str, Array], known: frozenset[str]) -> Ranking:
    """Return how nodes suffer by 8 bits between the least and the greatest number of a row.

    Args:
        model: The model in floats.
        inputs: Values of its inputs.
        known: Names of nodes that may stay floats.
    """

    def name(node: Call) -> str:
        return _name(node) if _name(node) in known else ""

    return _rank(model, inputs, _Felt(_round_to_8_bits, math.inf), name)


def fewest(ranking: Ranking, enough: Callable[[frozenset[str]], bool]) -> frozenset[str] | None:
    """Return a small set of names that is enough, from which none can be left out alone.

    Nodes are added as they are ranked, twice as many until there are enough, and then halved;
    then parts are left out, down to single names, while there are runs.

    Args:
        ranking: The names.
        enough: Whether a set is; called some dozen times.

    Returns:
        The set; None if not even all names are enough.
    """
    sets = accumulate(ranking.groups, frozenset.union, initial=ranking.needed)
    steps = list(dict.fromkeys([*sets, ranking.all]))
    below, at, runs = -1, 0, 1
    while not enough(steps[at]):
        if at == len(steps) - 1:
            return None
        below, at, runs = at, min(2 * at + 1, len(steps) - 1), runs + 1
    while at - below > 1:
        middle, runs = (below + at) // 2, runs + 1
        below, at = (below, middle) if enough(steps[middle]) else (middle, at)
    order = dict.fromkeys(
        name for group in (*ranking.groups, ranking.all) for name in sorted(group)
    )
    kept = [name for name in order if name in steps[at] - ranking.needed]
    size, needed = -(-len(kept) // 2) if at else 0, ranking.needed
    while size:
        end = len(kept)
        while end > 0 and runs < _RUNS:
            fewer, runs = kept[: max(end - size, 0)] + kept[end:], runs + 1
            kept = fewer if enough(needed.union(fewer)) else kept
            end -= size
        size //= 2
    return needed.union(kept)


def _rank(
    model: RelayModel, inputs: Mapping[str, Array], felt: _Felt, name: Callable[[Call], str]
) -> Ranking:
    mod = InferType()(ToGraphNormalForm()(model.mod))
    main = mod["main"]
    names = [param.name_hint for param in main.params]
    given = [inputs[each] if each in inputs else model.params[each] for each in names]
    with np.errstate(all="ignore"):
        run_with(felt, main, given, mod=mod)
    share: dict[Expr, float] = {}
    for node in reversed(felt.gains):
        share[node] = max(felt.effects(node, share), default=1.0)
    around = {value: _around(value, felt, name) for value in felt.errors}
    cost = {
        value: error * max(felt.effects(value, share), default=1.0)
        for value, error in felt.errors.items()
    }
    order = sorted((each for each in cost if around[each] and cost[each]), key=lambda x: -cost[x])
    needed = frozenset().union(*(around[each] for each in felt.beyond if each in around))
    everything = frozenset(filter(None, map(name, felt.gains)))
    return Ranking(needed, [around[each] for each in order], everything)


def _around(value: Expr, felt: _Felt, name: Callable[[Call], str]) -> frozenset[str]:
    nodes = [*felt.users.get(value, ()), *([value] if isinstance(value, Call) else [])]
    return frozenset(filter(None, map(name, nodes)))


class _Felt(Exact):
    """The exact arithmetic, and what rounding operands does to each operator.

    Args:
        narrow: Rounds an array of float32.
        beyond: Magnitude from which on a number is lost.

    Attributes:
        errors: What rounding takes of a value, in its deviations.
        gains: How much of that in its operands an operator passes on, in order of the run.
        users: The operators that read a value.
        beyond: Values with numbers that are lost.
    """

    def __init__(self, narrow: Callable[[AnyValue], AnyValue], beyond: float) -> None:
        self._narrow, self._end = narrow, beyond
        self._rounded = OperandsRounded(narrow)
        self.errors: dict[Expr, float] = {}
        self.gains: dict[Call, float] = {}
        self.users: dict[Expr, dict[Call, None]] = {}
        self.beyond: dict[Expr, None] = {}

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields in float64."""
        exact = super().apply(made)
        if isinstance(exact, Generator):
            return exact
        node, power = made.node, 0.0
        for value, array in _operands(made):
            error = self._look_at(value, array)
            self.users.setdefault(value, {})[node] = None
            power += error * error
        gain = 1.0
        if power:
            pairs = zip(leaves(exact), leaves(self._rounded.apply(made)), strict=True)
            gain = max((_apart(b, a) for a, b in pairs), default=0.0) / math.sqrt(power)
        self.gains[node] = max(self.gains.get(node, 0.0), min(gain, _MOST_GAIN))
        for array, type_ in zip(leaves(exact), value_types(node.type), strict=False):
            if _is_float32(type_):
                self._look_at(node, array)
        return exact

    def _look_at(self, value: Expr, array: Array) -> float:
        """Note what rounding takes of a value, and return it."""
        finite = np.abs(array[np.isfinite(array)])
        if finite.size and finite.max() >= self._end:
            self.beyond[value] = None
        error = _apart(self._narrow(array.astype(np.float32)), array)
        self.errors[value] = max(self.errors.get(value, 0.0), error)
        return error

    def effects(self, value: Expr, share: Mapping[Expr, float]) -> Iterator[float]:
        """Yield how far outputs move, by way of each operator that reads a value."""
        for user in self.users.get(value, ()):
            yield min(self.gains.get(user, 1.0) * share.get(user, 1.0), _MOST_GAIN)


def _operands(made: Application) -> Iterator[tuple[Expr, Array]]:
    """Yield what an operator reads in float32, by the call, variable or constant that it is of."""
    waiting = list(zip(made.node.args, made.args, strict=True))
    for operand, value in waiting:
        if isinstance(operand, Tuple):
            waiting.extend(zip(operand.fields, value, strict=True))
            continue
        is_float32 = _is_float32(operand.type)
        while isinstance(operand, TupleGetItem):
            operand = operand.tuple_value
        if is_float32 and isinstance(operand, (Call, Constant, Var)):
            yield operand, value.array() if isinstance(value, Weight) else value


def _is_float32(type_: AnyValue) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "float32"


def _apart(value: Array, exact: Array) -> float:
    """Return how far two arrays are apart, in deviations, by some of their elements."""
    if value.shape != exact.shape:
        return _MOST_GAIN
    step = -(-exact.size // _ELEMENTS) or 1
    left, right = value.reshape(-1)[::step], exact.reshape(-1)[::step]
    far = distance(left, right, np.isfinite(right)).mean
    return min(ratio(far, deviation(right)), _MOST_GAIN)


def _round_to_8_bits(value: AnyValue) -> AnyValue:
    if not isinstance(value, np.ndarray) or value.dtype != np.float32 or not value.size:
        return value
    axes = tuple(range(1, value.ndim)) or None
    low, high = (f(value, axis=axes, keepdims=True, initial=0) for f in (np.min, np.max))
    step = np.where(high > low, high - low, 1) / 255
    return (np.rint(value / step) * step).astype(np.float32)


def _name(node: Call) -> str:
    """Return the name of a node of a file, nothing where it has none that a list can hold."""
    name = "" if node.span is None else node.span.source_name
    return "" if "," in name or name != name.strip() else name


def _name_in_float16(node: Call) -> str:
    """Return what keeps a node in float32, nothing where it is that in any case."""
    wide = trait_of(node, Float32)
    types = [*value_types(node.type), *(t for each in node.args for t in value_types(each.type))]
    if not isinstance(node.op, OpDef) or carried(node) or not any(map(_is_float32, types)):
        return ""
    return "" if wide is not None and wide.default else _name(node) or node.op.name
