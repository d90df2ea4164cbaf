"""Where two models begin to differ: their inner values, matched by name, on the same inputs.

Both models are run as Relay, exactly: so what differs is what the files say, and not how they are
rounded. Where that does not differ, they are run again as their dtypes declare. A value of one
belongs to a value of the other if what their
files call them is the same, but for what formats add to names. Not every value that differs is
at fault: a batch normalisation that was folded into a convolution changes the value in between.
At fault is a value that differs though what it is computed from agrees, and from which an
output that differs is reached without another value that agrees.

What agrees is told by rounding: in the exact run by that of the weights to the narrower dtype of
both files, which is measured, in the other one by what dtypes do to most nets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from serde.checking.distance import deviation, distance, ratio
from serde.checking.judgement import fits
from serde.checking.outputs import match_outputs
from serde.core import Array, dataclass, numpy_dtype
from serde.engine.fitting import fit_inputs
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError
from serde.relay import transform
from serde.relay.ir import OpDef, RelayModel, TensorType, children, post_order
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.leaves import leaves
from serde.relay.run.arithmetic import Arithmetic, Exact, OperandsRounded
from serde.relay.run.interpreter import run_with

__all__ = [
    "Bisection", "InnerValue", "Inside", "bisect_models", "measured_limit", "normalize_name",
]  # fmt: skip

_WEIGHTS: Final = 1e-7
"""Part of a value's deviation by which the last bits of float32 weights move it."""

_NOISE: Final = 1e-6
_NARROW = {"bfloat16": 8e-3, "float16": 1e-3}
"""The same for rounding after every operator, in most nets; the largest first."""

_SURELY, _MEASURED, _MOST = 10.0, 4.0, 0.1
"""Multiple of that noise up to which values agree in any case, the same where it was measured,
and distance from which none do."""

_KEPT_BYTES = 2**28
"""Bytes of values that are compared at a time."""

_SUFFIX = re.compile(r"_output(\d*)$")


@dataclass(frozen=True, slots=True)
class InnerValue:
    """A value inside both models.

    Attributes:
        name: Name in the source.
        target: Name in the target; empty for an output that the target does not have.
        op: The Relay operator that yields it in the source.
        shape: Its shape in the source, for the inputs of the run.
        distance: Root mean square of the differences, in deviations of the source's value.
        agrees: Whether that is rounding.
        suspect: Whether it is at fault: it differs, and what it is computed from agrees.
        limit: Distance up to which it agrees.
        remark: Why its numbers do not count, such as ``its shape is 2x3, there 3x2``.
    """

    name: str
    target: str
    op: str
    shape: tuple[int, ...]
    distance: float
    agrees: bool
    suspect: bool = False
    limit: float = 0.0
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Bisection:
    """What comparing inner values has shown.

    Attributes:
        values: The values that both models have, in the source's order; outputs last.
    """

    values: tuple[InnerValue, ...]

    def _repr_html_(self) -> str:
        """Return what was found for a notebook: the values that differ, those at fault first."""
        from serde.core.markup import escaped, figure, table

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
    def agrees(self) -> bool:
        """Whether all values agree, and all outputs are there."""
        return all(value.agrees for value in self.values)

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
            how = found.remark or f"by {found.distance:.1e} of its deviation"
            return (
                f"the models first differ at {found.name}{op}, in the target {found.target}: {how}"
            )
        if self.agrees:
            return f"all {total} values agree that both models have, run as Relay"
        remarks = [f"{value.name}: {value.remark}" for value in self.values if value.remark]
        if remarks:
            return "; ".join(remarks)
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
    left, right = Inside(source), Inside(target)
    pairs = [*_inner_pairs(left, right), *_output_pairs(left, right, recorded)]
    if all(pair.other is None for pair in pairs if pair.is_output):
        raise CheckError("the models have no output in common")
    found = _compare(left, right, pairs, inputs, exactly=True)
    if all(value.agrees for value in found):
        found = _compare(left, right, pairs, inputs, exactly=False)
    return Bisection(tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A value of the source and the one of the target that belongs to it, if there is one."""

    name: str
    own: Expr
    target: str
    other: Expr | None
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class _Figures:
    """How the values of a pair compare: their distance, and one that rounding explains."""

    shape: tuple[int, ...]
    distance: float
    rounding: float
    remark: str = ""


class Inside:
    """A model and the values inside it by name.

    Attributes:
        model: The model, without lets.
        values: Its values that are tensors of numbers, by name, in order.
        outputs: Names and values of its outputs.
    """

    def __init__(self, model: RelayModel) -> None:
        self.model, named = transform.named_values(model)
        self._engine = RelayEngine(self.model)
        body = self.model.main.body
        results = transform.results_of(self.model)
        self.outputs = tuple(zip(self._engine.outputs, results, strict=True))
        self.values: dict[str, Expr] = {}
        order = {node: index for index, node in enumerate(post_order(body))}
        known = sorted(named.items(), key=lambda item: order.get(item[1], -1))
        for name, value in known:
            if value in order and not isinstance(value, Var) and isinstance(value.type, TensorType):
                self.values[name] = value
        self.values |= dict(reversed(self.outputs))

    @property
    def noise(self) -> float:
        """Part of a value's deviation that is rounding, by the dtypes in which is computed."""
        types = (node.type for node in post_order(self.model.main.body))
        dtypes = {type_.dtype for type_ in types if isinstance(type_, TensorType)}
        return next((noise for dtype, noise in _NARROW.items() if dtype in dtypes), _NOISE)

    @property
    def narrow_weights(self) -> list[str]:
        """The dtypes of weights that hold less than float32, the narrowest first."""
        dtypes = {weight.dtype for weight in self.model.params.values()}
        return [dtype for dtype in _NARROW if dtype in dtypes]

    @staticmethod
    def operator(value: Expr) -> str:
        """Return the operator that yields a value."""
        node = value.tuple_value if isinstance(value, TupleGetItem) else value
        return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""

    def run(
        self, wanted: Sequence[Expr], inputs: Mapping[str, Array], arithmetic: Arithmetic
    ) -> list[Array]:
        """Return some values."""
        model, main = self.model, self.model.main
        given = fit_inputs(self._engine.name, self._engine.inputs, inputs)
        names = [param.name_hint for param in main.params]
        function = Function(
            main.params, Tuple(wanted), None, type_params=main.type_params, attrs=main.attrs
        )
        arguments = [given[name] if name in given else model.params[name] for name in names]
        return leaves(run_with(arithmetic, function, arguments, mod=model.mod))


def measured_limit(noise: float, own: Array, exact: Array) -> float:
    """Return the distance up to which a value agrees, given what its own dtypes make of it."""
    return max(_SURELY * noise, _MEASURED * ratio(distance(own, exact).mean, deviation(exact)))


def _inner_pairs(left: Inside, right: Inside) -> Iterator[_Pair]:
    """Yield the values that both models have by name, each once, but for the source's outputs."""
    others: dict[str, str] = {}
    for name in right.values:
        others.setdefault(normalize_name(name), name)
    taken = {value for _, value in left.outputs}
    for name, value in left.values.items():
        other = others.get(normalize_name(name))
        if other is not None and value not in taken:
            taken.add(value)
            yield _Pair(name, value, other, right.values[other])


def _output_pairs(left: Inside, right: Inside, recorded: Sequence[str] | None) -> Iterator[_Pair]:
    """Yield the outputs of the source, each with the target's by its place."""
    names, others = ([name for name, _ in side.outputs] for side in (left, right))
    places = match_outputs(names, others, recorded)
    for (name, value), place in zip(left.outputs, places, strict=True):
        other, theirs = ("", None) if place is None else right.outputs[place]
        yield _Pair(name, value, other, theirs, is_output=True)


def normalize_name(name: str) -> str:
    """Return a name without what formats add, and with what they replace."""
    return re.sub(r"\W", "_", _SUFFIX.sub(lambda found: f":{found[1]}" if found[1] else "", name))


def _compare(
    left: Inside,
    right: Inside,
    pairs: Sequence[_Pair],
    inputs: Mapping[str, Array],
    *,
    exactly: bool,
) -> list[InnerValue]:
    """Return how pairs compare; values inside of another shape only where they are at fault."""
    apart: dict[_Pair, _Figures] = {}
    for group in _groups([pair for pair in pairs if pair.other is not None]):
        apart |= zip(group, _measure(left, right, group, inputs, exactly), strict=True)
    missing = _Figures((), math.inf, 0.0, "the target has no such output")
    worst = max(apart[pair].distance for pair in pairs if pair.is_output and pair in apart)
    limits = {pair: _limit(worst, figures.rounding) for pair, figures in apart.items()}
    agreeing: dict[Expr, bool] = {}
    unlike: dict[Expr, bool] = {}
    for pair, figures in apart.items():
        if figures.remark and not pair.is_output:
            unlike[pair.own] = False
        else:
            agrees = not figures.remark and figures.distance <= limits[pair]
            agreeing[pair.own] = agreeing.get(pair.own, True) and agrees
    suspects = _suspects(left, agreeing)
    if any(apart[p].remark and p.own in suspects for p in pairs if p in apart):
        suspects = _suspects(left, agreeing | unlike)
    found = []
    for pair in pairs:
        figures, own = apart.get(pair, missing), pair.own
        if figures.remark and not pair.is_output and own not in suspects:
            continue
        limit = limits.get(pair, 0.0)
        agrees = not figures.remark and figures.distance <= limit
        found.append(
            InnerValue(
                pair.name, pair.target, left.operator(own), figures.shape, figures.distance, agrees,
                own in suspects and not agrees, limit, figures.remark,
            )
        )  # fmt: skip
    return found


def _limit(worst: float, rounding: float) -> float:
    """Return the distance up to which values agree: between rounding and what outputs show."""
    between = math.sqrt(worst * rounding / _SURELY) if math.isfinite(worst) else _MOST
    return min(max(between, rounding), _MOST)


def _measure(
    left: Inside, right: Inside, pairs: Sequence[_Pair], inputs: Mapping[str, Array], exactly: bool
) -> list[_Figures]:
    """Return how far the values of each pair are apart, and how far rounding takes them."""
    arithmetic = Exact() if exactly else Arithmetic()
    values = [pair.own for pair in pairs]
    ours = left.run(values, inputs, arithmetic)
    theirs = right.run([pair.other for pair in pairs if pair.other is not None], inputs, arithmetic)
    least = _SURELY * (_WEIGHTS if exactly else max(left.noise, right.noise))
    roundings = [least] * len(pairs)
    narrow = [*right.narrow_weights, *left.narrow_weights]
    if exactly and narrow:
        dtype = numpy_dtype(narrow[0])
        as_held = OperandsRounded(lambda x: x.astype(dtype).astype("float64"), stored=True)
        rounded = left.run(values, inputs, as_held)
        roundings = [
            max(least, _MEASURED * ratio(distance(b, a).mean, deviation(a)))
            for a, b in zip(ours, rounded, strict=True)
        ]
    return [_figures(*each) for each in zip(pairs, ours, theirs, roundings, strict=True)]


def _figures(pair: _Pair, own: Array, other: Array, rounding: float) -> _Figures:
    if own.shape != other.shape:
        what = f"its shape is {_text(own.shape)}, there {_text(other.shape)}"
        return _Figures(own.shape, math.inf, rounding, what)
    far = ratio(distance(other, own).mean, deviation(own))
    ours, theirs = _dtype(pair.own), "" if pair.other is None else _dtype(pair.other)
    is_like = fits(ours, theirs, float16=True)
    alike = is_like if pair.is_output else own.dtype.kind == other.dtype.kind
    what = "" if alike else f"it is {ours}, there {theirs}"
    return _Figures(own.shape, far, rounding, what)


def _dtype(value: Expr) -> str:
    return value.type.dtype if isinstance(value.type, TensorType) else ""


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _groups(pairs: Sequence[_Pair]) -> Iterator[list[_Pair]]:
    """Yield the pairs in groups whose values fit into memory together."""
    group: list[_Pair] = []
    size = 0
    for pair in pairs:
        group.append(pair)
        type_ = pair.own.type
        lengths = type_.shape if isinstance(type_, TensorType) else ()
        # An open length counts as one that is usual in a check.
        size += 8 * math.prod(length if isinstance(length, int) else 64 for length in lengths)
        if size > _KEPT_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _suspects(inside: Inside, agreeing: Mapping[Expr, bool]) -> set[Expr]:
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
    leading = {value for _, value in inside.outputs if not agreeing.get(value, True)}
    for node in reversed(order):
        if node in leading:
            leading.update(each for each in children(node) if agreeing.get(each) is not True)
    return candidates & leading
