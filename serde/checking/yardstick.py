"""The exact result of a model: its Relay in float64, and the same with the rounding of its dtype.

The graph is the source's as its bridge gives it, before any pass, and every float in it is
64 bits wide: weights (read one at a time, where they are used), inputs, constants, what
operators yield. The distance of another run of the same graph from it is rounding alone.

Where a model decides by order (sorting, the k largest, suppression), rounding decides between
candidates that are nearly equal. The graph is therefore run in two parts: up to the first
decisions, and from there on. The second part is run again from values that are moved by the
rounding that was found in the first; what then comes out otherwise hangs on rounding.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any as AnyValue

import numpy as np

from serde.checking.distance import deviation, ratio
from serde.checking.observing import ObservedExact, has_cases
from serde.core import Array, counting, dataclass, expect, field, numpy_dtype
from serde.relay import transform
from serde.relay.ir import OpDef, RelayModel, all_nodes, carried, trait_of
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Op, Tuple, Var
from serde.relay.ir.leaves import leaves, value_types
from serde.relay.ir.traits import Discontinuous, Ordering, TypeOnly
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import children, post_order, rewrite
from serde.relay.run.arithmetic import Application, Arithmetic, Rounded, Stepped, Watched
from serde.relay.run.interpreter import run_with

__all__ = ["Measured", "Yardstick"]

_PERTURBATIONS = (0.5, 1.0, 2.0, 4.0)
"""Multiples of the rounding found by which values are moved in front of decisions.

ONNX Runtime differs from the exact result by up to four times as much as the interpreter in
float32 does (ICNet); a pair that another engine exchanges must be exchanged by some of the runs,
and one that is farther apart by none.
"""

_RUNS = 24
"""Number of runs behind the decisions; each near tie falls either way in some of them."""


_SECONDS = 60.0
"""Time after which no further run begins: behind the proposals of a detector may be a whole net."""

_FEW = 16
"""Elements below which a slice is no sample of its rounding."""

_CONSTANT = 1e-12
"""Deviation, as a part of the magnitude, of what is constant but for the rounding of float64."""


class Yardstick:
    """Runs a model's Relay exactly, and with rounding.

    Args:
        model: The source as Relay, as its bridge gives it.
        float16: Whether rounding is that of a target that computes in float16.
        codes: Whether it is that of one that computes codes of numbers by integers.
    """

    def __init__(self, model: RelayModel, *, float16: bool = False, codes: bool = False) -> None:
        self._given = model
        self._exact = ObservedExact()
        self._declared = Stepped() if codes else Arithmetic()
        self._rounding = Rounded() if float16 else self._declared
        self._parts: dict[bool, _Parts] = {}
        self._last: tuple[Mapping[str, Array], Measured] | None = None

    @cached_property
    def _model(self) -> RelayModel:
        mod = transform.InferType()(transform.ToGraphNormalForm()(self._given.mod))
        return self._given.evolve(mod=mod)

    def at(self, inputs: Mapping[str, Array]) -> Measured:
        """Return what the model yields for inputs by name; run when it is asked for."""
        if self._last is None or self._last[0] is not inputs:
            self._last = inputs, Measured(self, inputs)
        return self._last[1]

    @cached_property
    def has_cases(self) -> bool:
        """Whether the model has parts that inputs may not reach."""
        return has_cases(self._model.mod.functions.values())

    @property
    def observed(self) -> ObservedExact:
        """What the exact runs so far have reached."""
        return self._exact

    @property
    def missed(self) -> list[str]:
        """What of the model no exact run so far has reached."""
        parts = self._split_once(False)
        others = [each for each in self._model.mod.functions.values() if each != self._model.main]
        return self._exact.missed([*filter(None, [parts.head, parts.tail]), *others])

    def _split_once(self, steps: bool) -> _Parts:
        if steps not in self._parts:
            self._parts[steps] = _split_at_decisions(self._model, steps)
        return self._parts[steps]

    def _arguments(self, inputs: Mapping[str, Array]) -> list[AnyValue]:
        params = self._model.params
        names = [param.name_hint for param in self._model.main.params]
        return [inputs[name] if name in inputs else params[name] for name in names]

    def _run(
        self, arithmetic: Arithmetic, function: Function, arguments: Sequence[AnyValue]
    ) -> AnyValue:
        calls = sum(isinstance(node, Call) for node in post_order(function))
        expect("nodes", calls)
        return run_with(_Counted(arithmetic), function, arguments, mod=self._model.mod)


class _Counted(Watched):
    """Another arithmetic whose operators are counted as they are computed."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        super().__init__(arithmetic)
        self._count = counting("nodes")

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields."""
        self._count(1)
        return super().apply(made)


class Measured:
    """The results of one set of inputs, each run when it is first asked for."""

    def __init__(self, yardstick: Yardstick, inputs: Mapping[str, Array]) -> None:
        self._yardstick = yardstick
        self._arguments = yardstick._arguments(inputs)
        self._parts = yardstick._split_once(False)
        self._heads: dict[tuple[Arithmetic, bool], AnyValue] = {}

    @cached_property
    def exact(self) -> list[Array]:
        """The outputs in float64."""
        return self._run_whole(self._yardstick._exact)

    @cached_property
    def declared(self) -> list[Array]:
        """The outputs as the dtypes that are declared round them."""
        return self._run_whole(self._yardstick._declared)

    @cached_property
    def rounded(self) -> list[Array]:
        """The outputs as the target's dtypes round them: those declared, or float16."""
        if self._yardstick._rounding is self._yardstick._declared:
            return self.declared
        return self._run_whole(self._yardstick._rounding)

    def run(self, arithmetic: Arithmetic) -> list[Array]:
        """Return the outputs by another arithmetic, of which nothing is kept."""
        found = self._run_whole(arithmetic)
        self._heads.pop((arithmetic, True), None)
        return found

    @property
    def decided(self) -> tuple[bool, ...]:
        """Whether each output depends on a decision by order."""
        return self._parts.decided

    def run_perturbed(self, *, steps: bool = False) -> Iterator[tuple[list[list[Array]], float]]:
        """Yield outputs of runs whose decisions rounding has moved, and by how much it did.

        Each yields all runs so far; whoever has found enough need not wait for more. The second
        part is the rounding in front of the decisions, as a part of the deviation of what they
        read.

        Args:
            steps: Whether jumps at a number (a comparison, rounding to integers) count, too.
        """
        parts = self._yardstick._split_once(steps)
        if not parts.frontier:
            yield [self.rounded], 0.0
            return
        exact = self._run_head(self._yardstick._exact, parts)
        rounded = self._run_head(self._yardstick._rounding, parts)
        spreads = [
            _map_pairs(_rounding_of_elements, a, b) for a, b in zip(exact, rounded, strict=True)
        ]
        noise = max(
            (
                _relative_rounding(a, b)
                for a, b in _leaf_pairs(exact, rounded)
                if a.dtype.kind == "f"
            ),
            default=0.0,
        )
        generator = np.random.default_rng(0)
        found = [self.rounded]
        start = time.monotonic()
        for run in range(1, _RUNS + 1):
            size = _PERTURBATIONS[run % len(_PERTURBATIONS)]
            values = [
                _perturb(value, spread, size, generator, node.type)
                for value, spread, node in zip(exact, spreads, parts.frontier, strict=True)
            ]
            found.append(self._run_tail(self._yardstick._rounding, values, parts))
            late = time.monotonic() - start > _SECONDS
            if run % len(_PERTURBATIONS) == 0 or late:
                yield found, noise
            if late:
                return

    def _run_whole(self, arithmetic: Arithmetic) -> list[Array]:
        return self._run_tail(arithmetic, self._run_head(arithmetic, self._parts), self._parts)

    def _run_head(self, arithmetic: Arithmetic, parts: _Parts) -> Sequence[AnyValue]:
        key = (arithmetic, parts is self._parts)
        if key not in self._heads:
            values: Sequence[AnyValue] = ()
            if parts.head is not None:
                values = self._yardstick._run(arithmetic, parts.head, self._arguments)
            self._heads[key] = values
        return self._heads[key]

    def _run_tail(
        self, arithmetic: Arithmetic, values: Sequence[AnyValue], parts: _Parts
    ) -> list[Array]:
        result = self._yardstick._run(arithmetic, parts.tail, [*self._arguments, *values])
        return leaves(result)


@dataclass(frozen=True)
class _Parts:
    """A function up to its first decisions, and from there on.

    Attributes:
        tail: Takes the function's arguments and the values of the frontier.
        head: Takes the arguments and yields these values; None where nothing decides.
        frontier: What decisions, and all that depends on them, read of the rest.
        decided: Whether each output depends on a decision.
    """

    tail: Function
    head: Function | None = None
    frontier: Sequence[Expr] = ()
    decided: tuple[bool, ...] = field(default=())


def _split_at_decisions(model: RelayModel, steps: bool) -> _Parts:
    """Split ``main``; one with a let, which only recursions have left, stays whole."""
    main = model.main
    order = post_order(main.body)
    inside: set[Expr] = set()
    for node in reversed(order):  # outer functions first
        if isinstance(node, Function) and node not in inside:
            inside.update(each for each in post_order(node) if each is not node)
    outer = [node for node in order if node not in inside]
    depending: set[Expr] = set()
    for node in outer:
        below = () if isinstance(node, Function) else children(node)
        if _decides(node, steps) or any(child in depending for child in below):
            depending.add(node)
    decided = _find_decided(main.body, depending)
    if not depending or any(isinstance(node, Let) for node in outer):
        return _Parts(main, decided=decided)
    if main.body not in depending:
        return _Parts(main, decided=decided)
    frontier: dict[Expr, None] = {}
    for node in outer:
        if node in depending and not isinstance(node, Function):
            for child in children(node):
                _add_to_frontier(child, depending, frontier)
    variables = [Var(f"frontier{i}", node.type) for i, node in enumerate(frontier)]
    memo: dict[Expr, Expr] = dict(zip(frontier, variables, strict=True))
    body = rewrite(main.body, lambda _node, new: new, memo)
    head = Function(main.params, Tuple(tuple(frontier)))
    return _Parts(Function([*main.params, *variables], body), head, tuple(frontier), decided)


def _decides(node: Expr, steps: bool) -> bool:
    """Whether a call decides, or a function that it carries or that stands here does."""
    bodies = (node.body,) if isinstance(node, Function) else [f.body for f in carried(node)]
    return _decides_itself(node, steps) or (
        bool(bodies) and any(_decides_itself(each, steps) for each in all_nodes(*bodies))
    )


def _decides_itself(node: Expr, steps: bool) -> bool:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return False
    if node.op.has(Ordering):
        return True
    return steps and (node.op.has(Discontinuous) or _makes_integers(node))


def _makes_integers(node: Call) -> bool:
    """Whether integers or truths come of floats: a comparison, a cast, a quantisation."""
    said = trait_of(node, TypeOnly)
    if carried(node) or not node.args or (said is not None and 0 in said.operands):
        return False
    given, found = value_types(node.args[0].type), value_types(node.type)
    return any(map(_is_float, given)) and not all(map(_is_float, found))


def _is_float(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and "float" in type_.dtype


def _add_to_frontier(node: Expr, depending: set[Expr], frontier: dict[Expr, None]) -> None:
    """Enter what a node stands for; variables, constants and functions need no entry."""
    pending = [node]
    while pending:
        item = pending.pop()
        if item in depending or isinstance(item, (Constant, Function, GlobalVar, Op, Var)):
            continue
        if isinstance(item, Tuple):
            pending.extend(reversed(item.fields))
        else:
            frontier[item] = None


def _find_decided(body: Expr, depending: set[Expr]) -> tuple[bool, ...]:
    """Return, for each tensor of a result, whether it depends on a decision."""
    found: list[bool] = []
    for each in body.fields if isinstance(body, Tuple) else (body,):
        found += [each in depending] * len(value_types(each.type))
    return tuple(found)


def _leaf_pairs(left: AnyValue, right: AnyValue) -> list[tuple[Array, Array]]:
    """Return the arrays of two values of one structure, in order."""
    found: list[tuple[Array, Array]] = []
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, (tuple, list)):
            pending.extend(reversed(list(zip(a, b, strict=True))))
        else:
            found.append((a, b))
    return found


def _map_pairs(function: AnyValue, left: AnyValue, right: AnyValue) -> AnyValue:
    if isinstance(left, (tuple, list)):
        return tuple(_map_pairs(function, a, b) for a, b in zip(left, right, strict=True))
    return function(left, right)


def _relative_rounding(exact: Array, rounded: Array) -> float:
    """Return rounding as a part of the deviation, in the slice in which it is the largest part.

    Slices of a few elements, and those that are constant, do not count.
    """
    if exact.shape != rounded.shape or not exact.size:
        return 0.0
    wide = np.nan_to_num(exact, posinf=0.0, neginf=0.0)
    apart = np.nan_to_num(wide - rounded, posinf=0.0, neginf=0.0)
    found = [ratio(float(np.sqrt(np.square(apart).mean())), deviation(wide))]
    for axis in range(exact.ndim):
        others = tuple(i for i in range(exact.ndim) if i != axis)
        if exact.size // exact.shape[axis] < _FEW:
            continue
        spread, noise = wide.std(others), np.sqrt(np.square(apart).mean(others))
        varies = spread > _CONSTANT * np.abs(wide).max(others)
        found.append(float(np.max(noise[varies] / spread[varies], initial=0.0)))
    return max(found)


def _rounding_of_elements(exact: Array, rounded: Array) -> Array | float:
    """Return the rounding of each element: the least of the slices in which it lies.

    Tensors in front of decisions hold boxes beside scores, along whatever axis: one figure for
    the whole would drown the scores.
    """
    if exact.dtype.kind != "f" or exact.shape != rounded.shape or not exact.size:
        return 0.0
    apart = np.where(np.isfinite(exact), exact - rounded.astype(np.float64), 0.0)
    squares = np.square(np.nan_to_num(apart, posinf=0.0, neginf=0.0))
    spread = np.full(exact.shape, np.sqrt(squares.mean()))
    for axis in range(exact.ndim):
        others = tuple(i for i in range(exact.ndim) if i != axis)
        if others and exact.shape[axis] < exact.size:
            spread = np.minimum(spread, np.sqrt(squares.mean(others, keepdims=True)))
    return spread


def _perturb(
    value: AnyValue, spread: AnyValue, size: float, generator: np.random.Generator, type_: AnyValue
) -> AnyValue:
    """Return a value moved by random numbers of a deviation, in the dtype that is declared."""
    if isinstance(value, (tuple, list)):
        fields = type_.fields if isinstance(type_, TupleType) else (type_,) * len(value)
        pairs = zip(value, spread, fields, strict=True)
        return tuple(_perturb(v, s, size, generator, t) for v, s, t in pairs)
    if value.dtype.kind == "f":
        value = value + size * spread * generator.standard_normal(value.shape)
    wanted = type_.dtype if isinstance(type_, TensorType) else value.dtype.name
    return value.astype(numpy_dtype(wanted))
