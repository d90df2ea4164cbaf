"""Where two models begin to differ: their inner values, matched by name, on the same inputs.

Both models are run as Relay. A value of one belongs to a value of the other if what their
files call them is the same, but for what formats add to names. Not every value that differs is
at fault: a batch normalisation that was folded into a convolution changes the value in between.
At fault is a value that differs though what it is computed from agrees, and from which an
output that differs is reached without another value that agrees.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serde.checking.distance import deviation, distance, ratio
from serde.checking.matching import match_outputs
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError
from serde.relay import transform
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.leaves import leaves
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, post_order
from serde.relay.run.interpreter import run
from serde.weights import Array, numpy_dtype

__all__ = ["Bisection", "InnerValue", "bisect_models", "normalize_name"]

_NOISE = 1e-6
_NARROW = {"bfloat16": 8e-3, "float16": 1e-3}
"""Part of a value's deviation by which rounding alone moves it in most nets, the largest first."""

_SURELY, _MOST = 10.0, 0.1
"""Multiple of that noise up to which values agree in any case, and distance from which none do."""

_KEPT_BYTES = 2**28
"""Bytes of values that are compared at a time."""

_SUFFIX = re.compile(r"_output(\d*)$")


@dataclass(frozen=True, slots=True)
class InnerValue:
    """A value inside both models.

    Attributes:
        name: Name in the source.
        target: Name in the target.
        op: The Relay operator that yields it in the source.
        shape: Its shape in the source, for the inputs of the run.
        distance: Root mean square of the differences, in deviations of the source's value.
        agrees: Whether that is rounding.
        suspect: Whether it is at fault: it differs, and what it is computed from agrees.
    """

    name: str
    target: str
    op: str
    shape: tuple[int, ...]
    distance: float
    agrees: bool
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Bisection:
    """What comparing inner values has shown.

    Attributes:
        values: The values that both models have, in the source's order; outputs last.
        limit: Distance up to which values agree.
    """

    values: tuple[InnerValue, ...]
    limit: float

    def _repr_html_(self) -> str:
        """Return what was found for a notebook: the values that differ, those at fault first."""
        from serde.markup import escaped, figure, table

        differing = sorted((v for v in self.values if not v.agrees), key=lambda v: not v.suspect)
        rows = [
            (v.name, v.op, f"{v.distance:.2e}", "at fault" if v.suspect else "differs")
            for v in differing
        ]
        return figure(
            f"{len(self.values):,} values compared, {len(rows):,} differ",
            f"<p>{escaped(self.sentence)}</p>",
            table(("value", "operator", "distance", ""), rows, right={2}),
        )

    @property
    def first(self) -> InnerValue | None:
        """The first value at fault; None if no value is."""
        return next((value for value in self.values if value.suspect), None)

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        found, total = self.first, len(self.values)
        if found is not None:
            op = f" ({found.op})" if found.op else ""
            return (
                f"the models first differ at {found.name}{op}, in the target {found.target}: "
                f"by {found.distance:.1e} of its deviation"
            )
        if all(value.agrees for value in self.values):
            return f"all {total} values agree that both models have, run as Relay"
        return f"no value of {total} that both models have tells where they begin to differ"


def bisect_models(
    source: RelayModel,
    target: RelayModel,
    inputs: Mapping[str, Array],
    *,
    recorded: Sequence[str] | None = None,
) -> Bisection:
    """Return how the values inside two models compare.

    Args:
        source: The source as Relay, as its bridge gives it.
        target: The target, likewise.
        inputs: Values for the inputs by the source's names.
        recorded: Names of the outputs in the target, in the source's order, where known.

    Raises:
        CheckError: The models have no value in common, or one cannot be run.
    """
    left, right = _Inside(source), _Inside(target)
    places = match_outputs(left.outputs, right.outputs, recorded)
    pairs = [pair for pair in _pairs(left, right) if pair[0] not in left.outputs]
    ends = [
        (name, right.outputs[place])
        for name, place in zip(left.outputs, places, strict=True)
        if place is not None
    ]
    if not ends:
        raise CheckError("the models have no output in common")
    apart = {
        pair: figures
        for group in _groups(left, [*pairs, *ends])
        for pair, figures in zip(group, _compare(left, right, group, inputs), strict=True)
    }
    found = {pair: each for pair, each in apart.items() if each is not None}
    if not found:
        raise CheckError("the models have no value of the same shape in common")
    worst = max((found[pair][1] for pair in ends if pair in found), default=0.0)
    limit = _limit(worst, max(left.noise, right.noise))
    agreeing = {left.values[name]: far <= limit for (name, _), (_, far) in found.items()}
    suspects = _suspects(left, agreeing)
    return Bisection(
        tuple(
            InnerValue(
                name, other, left.operator(name), shape, far, far <= limit,
                left.values[name] in suspects,
            )
            for (name, other), (shape, far) in found.items()
        ),
        limit,
    )  # fmt: skip


def _limit(worst: float, noise: float) -> float:
    """Return the distance up to which values agree: between rounding and what outputs show."""
    return (
        min(max(math.sqrt(worst * noise), _SURELY * noise), _MOST)
        if math.isfinite(worst)
        else _MOST
    )


class _Inside:
    """A model and the values inside it by name.

    Attributes:
        model: The model, without lets.
        values: Its values that are tensors of numbers, by name, in order.
        outputs: Names of the outputs.
    """

    def __init__(self, model: RelayModel) -> None:
        self.model, named = transform.named_values(model)
        self._engine = RelayEngine(self.model)
        body = self.model.main.body
        self.outputs = tuple(self._engine.outputs)
        self.values: dict[str, Expr] = {}
        order = {node: place for place, node in enumerate(post_order(body))}
        known = sorted(named.items(), key=lambda item: order.get(item[1], -1))
        for name, value in known:
            if value in order and not isinstance(value, Var) and isinstance(value.type, TensorType):
                self.values[name] = value
        results = transform.results_of(self.model)
        self.values |= dict(zip(self.outputs, results, strict=True))

    @property
    def noise(self) -> float:
        """Part of a value's deviation that is rounding, by the dtypes in which is computed."""
        types = (node.type for node in post_order(self.model.main.body))
        dtypes = {type_.dtype for type_ in types if isinstance(type_, TensorType)}
        return next((noise for dtype, noise in _NARROW.items() if dtype in dtypes), _NOISE)

    def operator(self, name: str) -> str:
        """Return the operator that yields a value."""
        value = self.values[name]
        node = value.tuple_value if isinstance(value, TupleGetItem) else value
        return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""

    def run(self, names: Sequence[str], inputs: Mapping[str, Array]) -> list[Array]:
        """Return values by name."""
        wanted = Tuple([self.values[name] for name in names])
        main = self.model.main
        function = Function(
            main.params, wanted, None, type_params=main.type_params, attrs=main.attrs
        )
        return leaves(run(function, self._engine.arguments(inputs), mod=self.model.mod))


def _pairs(left: _Inside, right: _Inside) -> Iterator[tuple[str, str]]:
    """Yield the names of values that both models have, each once."""
    others: dict[str, str] = {}
    for name in right.values:
        others.setdefault(normalize_name(name), name)
    taken: set[Expr] = set()
    for name, value in left.values.items():
        other = others.get(normalize_name(name))
        if other is not None and value not in taken:
            taken.add(value)
            yield name, other


def normalize_name(name: str) -> str:
    """Return a name without what formats add, and with what they replace."""
    return re.sub(r"\W", "_", _SUFFIX.sub(lambda found: f":{found[1]}" if found[1] else "", name))


def _groups(left: _Inside, pairs: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield the pairs in groups whose values fit into memory together."""
    group: list[tuple[str, str]] = []
    size = 0
    for pair in pairs:
        group.append(pair)
        type_ = left.values[pair[0]].type
        lengths = type_.shape if isinstance(type_, TensorType) else ()
        # An open length counts as one that is usual in a check.
        count = math.prod(length if isinstance(length, int) else 64 for length in lengths)
        size += count * (numpy_dtype(type_.dtype).itemsize if isinstance(type_, TensorType) else 8)
        if size > _KEPT_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


Figures = tuple[tuple[int, ...], float]


def _compare(
    left: _Inside, right: _Inside, pairs: Sequence[tuple[str, str]], inputs: Mapping[str, Array]
) -> list[Figures | None]:
    """Return shape and distance of each pair; None where shapes or kinds are not the same."""
    ours = left.run([name for name, _ in pairs], inputs)
    theirs = right.run([other for _, other in pairs], inputs)
    return [_measure_distance(own, other) for own, other in zip(ours, theirs, strict=True)]


def _measure_distance(own: Array, other: Array) -> Figures | None:
    if own.shape != other.shape or (own.dtype.kind == "f") != (other.dtype.kind == "f"):
        return None
    exact = own.astype(np.float64) if own.dtype.kind == "f" else own
    return own.shape, ratio(distance(other, own).mean, deviation(exact))


def _suspects(inside: _Inside, agreeing: Mapping[Expr, bool]) -> set[Expr]:
    """Return the values at fault, by two walks over the source: down to outputs, and up.

    Args:
        inside: The source.
        agreeing: Whether each value that was compared agrees.
    """
    order = post_order(inside.model.main.body)
    clean: dict[Expr, bool] = {}
    candidates: set[Expr] = set()
    for node in order:
        above = all(clean[each] for each in children(node) if each in clean)
        known = agreeing.get(node)
        if known is False and above:
            candidates.add(node)
        clean[node] = above if known is None else known
    leading: set[Expr] = {
        value for name in inside.outputs if not agreeing.get(value := inside.values[name], True)
    }
    for node in reversed(order):
        if node in leading:
            leading.update(each for each in children(node) if agreeing.get(each) is not True)
    return candidates & leading
