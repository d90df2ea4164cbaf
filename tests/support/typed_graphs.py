"""Random models over all operators of Relay: their samples, varied and joined to graphs.

Beside what :mod:`support.random_producers` and its like grow a graph by, any operator may come
with a sample of its own: lengths renamed, attributes changed, operands taken from what the graph
has so far wherever a cast, a reshape and a range make them fit. What jumps is kept off its jumps,
as in :mod:`support.random_graphs`, whoever declares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from support.random_graphs import Item, Maker, Rejected, _flat, _map, _widened
from support.varied_samples import (
    is_plain,
    require_in_range,
    with_other_attribute,
    with_other_lengths,
)

from serde.core.weights import ArrayWeight
from serde.errors import EvaluationError, RelayError
from serde.relay import Constant, Function, IRModule, Tuple, TupleGetItem, Var
from serde.relay.ir.dims import Dim, SymDim, symbol
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import OpDef, TensorSpec, all_ops
from serde.relay.ir.shapes import is_float
from serde.relay.ir.traits import Foreign, Moves, Ordering, Random, Reshape
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.binding import bind_dims, resolve_dims
from serde.relay.run.interpreter import apply_kernel
from serde.relay.transform import InferType

__all__ = ["Choice", "TypedGraph", "TypedMaker", "generate", "operators"]

Array = np.ndarray

SIGNS = frozenset(["serde.eig", "serde.eigh", "serde.lq", "serde.svd"])
"""Operators whose results are unique but for signs, which each library chooses."""

MARKS = frozenset(["annotation.compiler_begin", "annotation.compiler_end"])
"""Operators that only come in pairs around what goes to another compiler."""

COUNTED = frozenset([
    "nn.nll_loss", "serde.ctc_loss", "serde.dequantize_sparse", "serde.lut_to_dense",
    "serde.lut_to_sparse", "serde.scored_proposal", "serde.softmax_cross_entropy_loss",
    "vision.proposal",
])  # fmt: skip
"""Operators whose operands count something in each other, so that nothing may change alone."""

STEEP = 400.0
"""So many times as far as its operands are moved may a result move; beyond, it jumps."""


@cache
def operators() -> tuple[str, ...]:
    """Names of the operators whose results are told by their operands, and by nothing else."""
    return tuple(
        name
        for name, definition in all_ops().items()
        if not definition.has(Random, Foreign)
        and name not in SIGNS | MARKS
        and not name.startswith("random.")
    )


@dataclass(frozen=True)
class Choice:
    """What the outputs of a model may be drawn from.

    Attributes:
        outputs: The items that are outputs.
        model: The model.
        feeds: A value for each input.
    """

    outputs: tuple[Item, ...]
    model: RelayModel
    feeds: dict[str, Array]


@dataclass(frozen=True)
class TypedGraph:
    """A graph of which any nodes may be made the outputs.

    Attributes:
        seed: What it was made from.
        maker: What made it.
        items: Its nodes, in the order in which they came.
    """

    seed: int
    maker: TypedMaker
    items: tuple[Item, ...]

    def without(self, refused: frozenset[str], most: int = 4) -> Choice | None:
        """Return the model of the last nodes that no others read and that need no such operators.

        Args:
            refused: Names of operators.
            most: Outputs at most.
        """
        found = [
            item
            for item in self.items
            if not refused & operators_of(item.expr) and self.maker.is_told(item)
        ]
        read = {node for item in found for node in post_order(item.expr) if node is not item.expr}
        ends = [item for item in found if item.expr not in read][-most:]
        return self.maker.choice(ends) if ends else None

    def own_operators(self, item: Item) -> frozenset[str]:
        """Names of the operators of a node that none of the nodes it reads has."""
        inner = {node for node in post_order(item.expr) if node is not item.expr}
        before = [each for each in self.items if each.expr in inner]
        known = frozenset[str]().union(*(operators_of(each.expr) for each in before))
        return (operators_of(item.expr) - known) or operators_of(item.expr)


@cache
def operators_of(expr: Expr) -> frozenset[str]:
    """Names of the operators that a node needs, those in the bodies of functions included."""
    found: set[str] = set()
    pending: list[Expr] = [expr]
    seen: set[Expr] = set()
    while pending:
        for node in post_order(pending.pop()):
            if not isinstance(node, Call):
                continue
            if isinstance(node.op, OpDef):
                found.add(node.op.name)
            for value in (*node.attrs.values(), node.op):
                if isinstance(value, Function) and value not in seen:
                    seen.add(value)
                    pending.append(value.body)
    return frozenset(found)


def generate(seed: int, *, only: Sequence[str] | None = None) -> TypedGraph:
    """Return the graph that belongs to a seed.

    Args:
        seed: The seed.
        only: Operators whose samples are drawn; all if left out.
    """
    maker = TypedMaker(seed, only or operators())
    return maker.graph()


class TypedMaker(Maker):
    """Grows a graph over all operators.

    Attributes:
        names: Operators whose samples are drawn.
        open: Whether lengths are symbols.
        narrow: Whether new floats are float32.
        every: All that calls gave.
    """

    def __init__(self, seed: int, names: Sequence[str], rng: Any = None) -> None:
        control = frozenset(["let", "if", "loop", "scan"])
        super().__init__(seed, [17], control, rng)
        self.names = names
        self.every: list[Item] = []
        self.open = self.chance(0.12)
        self.narrow = self.chance(0.85)

    def is_wanted(self, name: str) -> bool:
        """Any operator may occur."""
        return True

    def producers(self) -> Sequence[tuple[float, Callable[[Any], None]]]:
        """Samples, as often as all else together."""
        from support.random_loops import PRODUCERS

        total = sum(weight for weight, _ in PRODUCERS)
        return [
            *PRODUCERS,
            (total, grow_by_sample),
            (0.06 * total, grow_by_sequence),
            (0.06 * total, grow_by_quantisation),
        ]

    def float_dtype(self) -> str:
        """Draw float32, but for graphs that mix dtypes."""
        return "float32" if self.narrow else super().float_dtype()

    def random_shape(self, rank: int | None = None) -> tuple[Dim, ...]:
        """Draw a shape without lengths of 0, which has symbols in open graphs alone."""
        shape = tuple(dim or 1 for dim in super().random_shape(rank))
        return shape if self.open else tuple(map(self._closed, shape))

    def _closed(self, dim: Dim) -> Dim:
        return self.length(dim) if isinstance(dim, SymDim) else dim

    def fresh(
        self,
        dtype: str,
        shape: Sequence[Dim],
        low: float = -2.0,
        high: float = 2.0,
        kind: str | None = None,
    ) -> Item:
        """Return a new tensor; an input has axes, as Core ML and others want."""
        dims = shape if self.open else tuple(map(self._closed, shape))
        if not dims and not self.closed:
            kind = "constant"
        return super().fresh(dtype, dims, low, high, kind)

    def given(self, value: Array, shape: Sequence[Dim]) -> Item:
        """Return a new input, weight or constant with a value."""
        symbolic = any(isinstance(dim, SymDim) for dim in shape)
        kind = self.one_of(["input", "input", "weight", "constant"])
        if symbolic:
            kind = "input"
        if self.closed or not shape:
            kind = "constant"
        if kind == "constant":
            if symbolic:
                raise Rejected
            return self.note(Constant(value), value)
        return self.parameter(kind, TensorType(shape, value.dtype.name), value)

    def graph(self) -> TypedGraph:
        """Grow, and return all that came of it."""
        for _ in range(self.integer(1, 2)):
            shape = self.random_shape(self.integer(1, 4))
            self.fresh(self.float_dtype(), shape, kind="input")
        self.grow(self.integer(2, 8))
        items = [item for item in self.scope if not isinstance(item.expr, (Var, Constant))]
        items = items or [self.add("copy", self.scope[0], exact=True)]
        return TypedGraph(self.seed, self, tuple(items))

    def choice(self, outputs: Sequence[Item]) -> Choice:
        """Return the model whose outputs are some items."""
        body = outputs[0].expr if len(outputs) == 1 else Tuple([item.expr for item in outputs])
        whole = self.with_lets(body)
        read = set(post_order(whole))
        kept = [(variable, value) for variable, value in self._params if variable in read]
        main = Function([variable for variable, _ in kept], whole)
        mod = InferType()(IRModule({"main": main, **self.functions}))
        params = {
            variable.name_hint: ArrayWeight(value)
            for variable, value in kept
            if variable.name_hint in self._weights
        }
        inputs = tuple(v.name_hint for v, _ in kept if v.name_hint not in params)
        meta = ModelMeta(inputs, self.output_names(len(outputs)))
        feeds = {v.name_hint: value for v, value in kept if v.name_hint in inputs}
        return Choice(tuple(outputs), RelayModel(mod, params, meta), feeds)

    def is_told(self, item: Item) -> bool:
        """Whether the inputs that a node reads tell the lengths which attributes name."""
        nodes = set(post_order(item.expr))
        held = {variable: value for variable, value in self._params if variable in nodes}
        lengths = bind_dims(list(held), list(held.values()))
        try:
            for node in nodes:
                resolve_dims(tuple(node.attrs.values()) if isinstance(node, Call) else (), lengths)
        except RelayError:
            return False
        return True

    def cut(self, item: Item) -> Choice | None:
        """Return the model of one call whose operands are inputs that hold their values."""
        node = item.expr.tuple_value if isinstance(item.expr, TupleGetItem) else item.expr
        if not isinstance(node, Call):
            return None
        known = {each.expr: each for each in self.every}
        params: list[tuple[Var, Array]] = []

        def input_of(operand: Expr) -> Expr:
            if isinstance(operand, Tuple):
                return Tuple([input_of(each) for each in operand.fields])
            held = known.get(operand)
            if held is None or isinstance(operand, (Constant, Var)) or not held.value.ndim:
                return operand
            params.append((Var(f"o{len(params)}", operand.type), held.value))
            return params[-1][0]

        call = Call(node.op, [input_of(each) for each in node.args], node.attrs)
        call.type = node.type
        whole = TupleGetItem(call, item.expr.index) if isinstance(item.expr, TupleGetItem) else call
        read = set(post_order(whole))
        kept = [*((v, value) for v, value in self._params if v in read), *params]
        mod = InferType()(IRModule({"main": Function([v for v, _ in kept], whole)}))
        names = tuple(variable.name_hint for variable, _ in kept)
        feeds = {variable.name_hint: value for variable, value in kept}
        model = RelayModel(mod, {}, ModelMeta(names, ("y0",)))
        return Choice((item,), model, feeds)

    def add(self, name: str, *operands: Any, **options: Any) -> Any:
        """Return a new call, and remember what it gives."""
        found = super().add(name, *operands, **options)
        self.every.extend(found if isinstance(found, list) else [found])
        return found

    def require_steady(self, definition: OpDef, operands: Sequence[Any], attrs: Any) -> None:
        """Reject a call that jumps, or is very steep, where its operands are.

        Floats are moved to either side by what many roundings come to; what is decided by order
        must not depend on it even where the operands are exact.
        """
        items = [item for item in _flat(operands) if item.is_float]
        orders = definition.has(Ordering)
        noise = max([item.noise for item in items], default=0.0)
        if orders:
            self._require_order(operands)
            noise = max(noise, 2.0**-24)
        if not items:
            return
        base = self._evaluate(definition, operands, attrs, lambda item: item.runs[0])
        narrow = self._evaluate(definition, operands, attrs, lambda item: item.value)
        self._require_near(base, narrow)
        if not any(is_float(each.dtype.name) for each in base):
            self._require_no_tie(definition, operands, attrs, base)
        if not noise:
            return
        margin = min(noise * 2.0**12, 0.02)
        for _ in range(3):
            moved = self._evaluate(
                definition, operands, attrs, lambda item: self._move(item, margin)
            )
            for before, after in zip(base, moved, strict=True):
                if before.shape != after.shape or before.dtype != after.dtype:
                    raise Rejected
                if not is_float(before.dtype.name):
                    if not np.array_equal(before, after):
                        raise Rejected
                    continue
                apart = np.abs(before - after)
                scale = 1 + np.abs(before)
                if not np.all(apart <= STEEP * margin * scale) or np.any(apart > 0.3 * scale):
                    raise Rejected

    def _require_near(self, base: Sequence[Array], narrow: Sequence[Array]) -> None:
        """Reject what jumps between float64 and the dtype of the graph."""
        for wide, own in zip(base, narrow, strict=True):
            if wide.shape != own.shape:
                raise Rejected
            if not is_float(wide.dtype.name):
                continue
            with np.errstate(invalid="ignore"):
                apart = np.abs(wide - own)
            if np.any(apart > 0.3 * (1 + np.abs(wide))):
                raise Rejected

    def _require_no_tie(
        self, definition: OpDef, operands: Sequence[Any], attrs: Any, base: Sequence[Array]
    ) -> None:
        """Reject what is rounded to integers from where a rounding of a scale decides."""
        for unit in (2.0**-18, -(2.0**-18)):
            moved = self._evaluate(
                definition,
                operands,
                attrs,
                lambda item: item.runs[0] * (1 + unit) if item.is_float else item.value,  # noqa: B023
            )
            if not all(map(np.array_equal, base, moved)):
                raise Rejected

    def _require_order(self, operands: Sequence[Any]) -> None:
        for item in _flat(operands):
            flat = item.value.reshape(-1)
            if item.value.dtype != bool and np.unique(flat).size < flat.size:
                raise Rejected

    def _move(self, item: Item, margin: float) -> Array:
        if not item.is_float:
            return item.value
        signs = self.rng.choice([-margin, margin], item.value.shape)
        return np.asarray(item.runs[0] + signs)

    def _evaluate(
        self,
        definition: OpDef,
        operands: Sequence[Any],
        attrs: Mapping[str, Any],
        of: Callable[[Item], Array],
    ) -> tuple[Array, ...]:
        absent = [()] * (len(definition.operands) - len(operands))
        values = [_map(operand, of, absent=()) for operand in operands]
        given = {name: _widened(resolve_dims(v, self.lengths)) for name, v in attrs.items()}
        try:
            with np.errstate(all="ignore"):
                result = apply_kernel(definition, [*values, *absent], given)
        except Exception:  # an operator of float32 alone need not take wider operands
            raise Rejected from None
        results = result if isinstance(result, tuple) else (result,)
        if any(isinstance(each, list) for each in results):
            raise Rejected  # a sequence
        return results


def grow_by_sample(maker: TypedMaker) -> None:
    """A sample of any operator, its operands taken from the graph where they fit."""
    definition = all_ops()[maker.one_of(maker.names)]
    sample = given = maker.one_of(definition.samples)
    if not is_plain(given):
        raise Rejected
    attrs = dict(given.attrs)
    if not maker.open and definition.name not in COUNTED:  # where symbols hide what does not fit
        if maker.chance(0.4):
            given = with_other_lengths(maker, given)
        if maker.chance(0.35):
            attrs = with_other_attribute(maker, definition, attrs)
    operands = [_meet(maker, each) for each in given.operands]
    try:
        node_attrs = definition.bind(attrs)
        if given is not sample or attrs != sample.attrs:
            require_in_range(definition, operands, attrs)
        maker.require_steady(definition, operands, node_attrs)
        exact = definition.has(Moves, Reshape)
        maker.add(definition.name, *operands, exact=exact, **attrs)
    except _KERNEL_ERRORS:
        raise Rejected from None


_KERNEL_ERRORS = (
    EvaluationError, ValueError, IndexError, TypeError, FloatingPointError, ZeroDivisionError,
)  # fmt: skip
"""What a kernel may raise of changed attributes, or of the wider operands of a second run."""


def _meet(maker: TypedMaker, operand: Any) -> Any:
    """Return items for an operand of a sample."""
    if operand is None:
        return None
    if isinstance(operand, list):
        return [_meet(maker, each) for each in operand]
    if not isinstance(operand, TensorSpec):
        value = np.asarray(operand)
        return maker.note(Constant(value), value)
    if maker.chance(0.6):
        try:
            return _fitted(maker, operand)
        except Rejected:
            pass
    value = operand.array(maker.rng)
    shape: list[Dim] = list(operand.shape)
    if maker.open and not maker.closed:
        shape = [_named(maker, n) if n > 1 and maker.chance(0.7) else n for n in shape]
    return maker.given(value, shape)


def _named(maker: TypedMaker, length: int) -> Dim:
    maker.lengths[f"d{length}"] = length
    return symbol(f"d{length}")


def _fitted(maker: TypedMaker, spec: TensorSpec) -> Item:
    """Return a node made of what the graph has: as long as wanted, and in the range."""
    size = int(np.prod(spec.shape))
    if not size:
        raise Rejected
    whole = not is_float(spec.dtype)
    item = maker.pick(
        lambda x: (
            x.value.size > 0 and x.dtype != "bool" and x.is_float is not whole
            and not any(isinstance(dim, SymDim) for dim in x.shape)
        )
    )  # fmt: skip
    if spec.dtype == "bool":
        raise Rejected
    if item.value.shape != spec.shape:
        item = maker.add("reshape", item, exact=True, keep=False, newshape=[-1])
        if item.value.size != size:
            indices = maker.constant(np.arange(size) % item.value.size, "int64")
            item = maker.add("take", item, indices, exact=True, keep=False, axis=0, mode="clip")
        item = maker.add("reshape", item, exact=True, keep=False, newshape=list(spec.shape))
    item = _ranged(maker, item, spec)
    if item.dtype != spec.dtype:
        item = maker.add("cast", item, keep=False, dtype=spec.dtype)
    if whole and (item.value.min() < int(spec.low) or item.value.max() > spec.high):
        raise Rejected
    return item


def _ranged(maker: TypedMaker, item: Item, spec: TensorSpec) -> Item:
    """Return a node in the range that a sample wants."""
    values = item.value.astype(np.float64)
    if not item.is_float:
        low, high = int(max(spec.low, 0) if spec.dtype[0] == "u" else spec.low), int(spec.high)
        if values.min() >= low and values.max() <= high:
            return item
        bounds = {"a_min": float(low), "a_max": float(high)}
        return maker.add("clip", item, exact=True, keep=False, **bounds)
    if values.min() >= spec.low and values.max() <= spec.high:
        return item
    squeezed = maker.add("sigmoid", item, keep=False)
    scale = maker.constant(spec.high - spec.low, item.dtype)
    scaled = maker.add("multiply", squeezed, scale, keep=False)
    return maker.add("add", scaled, maker.constant(spec.low, item.dtype), keep=False)


def grow_by_quantisation(maker: TypedMaker) -> None:
    """A float as integers and back, between which there may be an operator of integers."""
    x = maker.pick(lambda item: item.dtype == "float32" and item.rank > 0 and item.value.size > 0)
    scale, dtype = float(2.0 ** maker.integer(-6, -3)), maker.one_of(["int8", "uint8"])
    zero = maker.integer(-3, 3) if dtype == "int8" else maker.integer(100, 130)
    scales, zeros = maker.constant(scale, "float32"), maker.constant(zero, "int32")
    definition = all_ops()["qnn.quantize"]
    operands = [x, scales, zeros]
    maker.require_steady(definition, operands, definition.bind({"out_dtype": dtype}))
    quantised = maker.add("qnn.quantize", *operands, out_dtype=dtype)
    if maker.chance(0.4):
        axis = maker.integer(0, x.rank - 1)
        quantised = maker.add("reverse", quantised, exact=True, axis=axis)
    real = maker.add("qnn.dequantize", quantised, scales, zeros)
    if maker.chance(0.5):
        maker.add("nn.relu", real)


def grow_by_sequence(maker: TypedMaker) -> None:
    """Tensors as a sequence, from which some go, and which becomes a tensor again."""
    from serde.relay.ir.registry import call

    x = maker.pick(lambda item: item.rank > 0 and item.is_known and not maker.depth)
    if any(isinstance(dim, SymDim) for dim in x.shape):
        raise Rejected
    others = [
        maker.pick(lambda item: (item.dtype, item.shape) == (x.dtype, x.shape))
        for _ in range(maker.integer(0, 2))
    ]
    held = [x, *others]
    expr: Expr = call("serde.sequence_construct", tuple(item.expr for item in held))
    if maker.chance(0.5):
        place = maker.integer(0, len(held) - 1)
        expr = call("serde.sequence_insert", expr, x.expr, Constant(np.array(place, np.int64)))
        held.insert(place, x)
    if len(held) > 1 and maker.chance(0.4):
        place = maker.integer(0, len(held) - 1)
        expr = call("serde.sequence_erase", expr, Constant(np.array(place, np.int64)))
        del held[place]
    if maker.chance(0.5):
        place = maker.integer(-len(held), len(held) - 1)
        found = held[place]
        maker.put(found, call("serde.sequence_at", expr, Constant(np.array(place, np.int64))))
        return
    axis = maker.integer(0, x.rank - 1)
    joined = maker.add("concatenate", held, exact=True, keep=False, axis=axis)
    result = call("serde.sequence_concat", expr, axis=axis)
    if isinstance(result.type, TensorType) and result.type.rank == joined.rank:
        maker.put(joined, result)
