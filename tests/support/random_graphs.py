"""Random Relay models that run: a seed gives a graph, its inputs, and how exact its results are.

A graph grows node by node. Each new node is evaluated at once, so that what would leave a
sane range (infinities, integers that overflow, a comparison of two floats that are almost
equal) is thrown away instead of built. Beside its value, every node is evaluated in float64
three times: as it is, and twice with operands and result moved by a rounding of their dtype.
How far these are apart tells how much two correct implementations may differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from support.unlucky_names import Names

from serde.core.weights import ArrayWeight, numpy_dtype
from serde.errors import TypeInferenceError
from serde.onnx.ops import TABLE
from serde.relay import Constant, Function, GlobalVar, IRModule, Tuple, TupleGetItem, Var
from serde.relay.ir.dims import Any as AnyDim, Dim, SymDim, substitute, symbol
from serde.relay.ir.expr import Call, Expr, Let, Span
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import OpDef, all_ops, call
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.run.binding import resolve_dims
from serde.relay.run.interpreter import apply_kernel
from serde.relay.transform import InferType

Array = np.ndarray
Operand = Any
"""An item, a list of items, or None for an operand that is absent."""

RUNS = 3
LARGEST = {"float16": 30.0, "float32": 100.0, "float64": 100.0}
LARGEST_INT = 10_000
MOST_ELEMENTS = 4000
MOST_AXES = 5
ROUNDINGS = 2.0**13
"""So many roundings must lie between a float and the next jump of a function of it."""

ARITHMETIC = frozenset(
    ["abs", "add", "cumsum", "multiply", "negative", "power", "prod", "subtract", "sum"]
)
"""Operators on integers that may overflow."""


class Rejected(Exception):
    """A node that is not to be built; the graph goes on without it."""


class Mistyped(AssertionError):
    """The value of a node is not of the type that was inferred."""


@dataclass(frozen=True)
class Item:
    """A node of the graph with what it evaluates to.

    Attributes:
        expr: The node.
        value: Its value by the kernels.
        runs: Its value in float64, as it is and moved by roundings.
        noise: Unit of rounding of the coarsest dtype that went into it; 0 where it is exact.
    """

    expr: Expr
    value: Array
    runs: tuple[Array, ...]
    noise: float

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The inferred shape."""
        assert isinstance(self.expr.type, TensorType)
        return self.expr.type.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return self.value.ndim

    @property
    def dtype(self) -> str:
        """Name of the dtype."""
        return self.value.dtype.name

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return is_float(self.dtype)

    @property
    def is_known(self) -> bool:
        """Whether no dimension is anonymous."""
        return not any(isinstance(dim, AnyDim) for dim in self.shape)

    @property
    def margin(self) -> float:
        """How far a value must be from a jump of a function of it."""
        return self.noise * ROUNDINGS

    @property
    def tolerance(self) -> Array:
        """How far another implementation may be from the first run; 0 where it is exact."""
        if not self.noise:
            return np.zeros(self.value.shape)
        spread = np.max([np.abs(run - self.runs[0]) for run in self.runs[1:]], axis=0)
        widest = spread.max(initial=0)
        return 8 * spread + 8 * widest + 8 * self.noise * np.maximum(1, np.abs(self.runs[0]))


@dataclass(frozen=True)
class RandomGraph:
    """A model, values of its inputs, and what it must give.

    Attributes:
        seed: What it was made from.
        opset: Version of ONNX that can say all of it.
        model: The model.
        feeds: A value for each input.
        outputs: The results.
    """

    seed: int
    opset: int
    model: RelayModel
    feeds: dict[str, Array]
    outputs: tuple[Item, ...]


def generate(
    seed: int, opsets: Sequence[int], control: frozenset[str] = frozenset()
) -> RandomGraph:
    """Return the graph that belongs to a seed.

    Args:
        seed: The seed.
        opsets: Versions of ONNX to draw one from; all of the graph can be said at that.
        control: Which of ``let``, ``if``, ``loop`` and ``scan`` may occur.
    """
    maker = Maker(seed, opsets, control)
    for _ in range(int(maker.rng.integers(1, 4))):
        maker.fresh(maker.float_dtype(), maker.random_shape(), kind="input")
    maker.grow(int(maker.rng.integers(4, 18)))
    return maker.finish()


class Maker:
    """Grows a graph.

    Attributes:
        rng: The source of all choices.
        opset: Version of ONNX that must be able to say all of the graph.
        lengths: Value of each symbolic dimension.
        scope: What a new node may use.
        shown: Symbols that the parameters in force tell the value of.
    """

    def __init__(
        self, seed: int, opsets: Sequence[int], control: frozenset[str], rng: Any = None
    ) -> None:
        self.seed = seed
        self.control = control
        self.rng = np.random.default_rng(seed) if rng is None else rng
        self.opset = int(self.rng.choice(opsets))
        self.lengths = {name: int(self.rng.integers(1, 5)) for name in ("n", "m", "batch")}
        self.scope: list[Item] = []
        self.shown: frozenset[str] = frozenset()
        self.closed = False
        self.depth = 0
        self.functions: dict[GlobalVar, Function] = {}
        chance = random.Random(f"names {seed}")
        self._names = Names(chance) if chance.random() < 0.7 else None
        self._params: list[tuple[Var, Array]] = []
        self._weights: set[str] = set()
        self._lets: list[tuple[Var, Expr]] = []

    def is_wanted(self, name: str) -> bool:
        """Whether an operator may occur: ONNX can say it, or what it is made of."""
        made = TABLE.expansion(name) or all_ops()[name].decompose
        return TABLE.exporter(name, self.opset) is not None or made is not None

    def producers(self) -> Sequence[tuple[float, Callable[[Any], None]]]:
        """What the graph may grow by, each with its weight."""
        from support.random_loops import PRODUCERS

        return PRODUCERS

    def chance(self, probability: float) -> bool:
        """Draw whether something happens."""
        return bool(self.rng.random() < probability)

    def one_of(self, choices: Sequence[Any]) -> Any:
        """Draw one of some things."""
        if not choices:
            raise Rejected
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def float_dtype(self) -> str:
        """Draw a floating-point dtype, mostly float32."""
        return str(self.rng.choice(["float32", "float64", "float16"], p=[0.8, 0.12, 0.08]))

    def random_shape(self, rank: int | None = None) -> tuple[Dim, ...]:
        """Draw a shape with symbols, ones, and now and then a length of 0."""
        count = self.integer(0, 4) if rank is None else rank
        dims: list[Dim] = [1, 2, 3, 4, symbol("n"), symbol("m"), symbol("batch")]
        shape = [self.one_of(dims) for _ in range(count)]
        if shape and self.chance(0.02):
            shape[self.integer(0, count - 1)] = 0
        return tuple(shape)

    def pick(self, accept: Callable[[Item], bool] = lambda item: True) -> Item:
        """Draw what exists and fits, later nodes more often than earlier ones."""
        found = [item for item in self.scope if item.is_known and accept(item)]
        if not found:
            raise Rejected
        chances = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.rng.choice(len(found), p=chances / chances.sum()))]

    def length(self, dim: Dim) -> int:
        """Return the length that a dimension has in this run."""
        found = substitute(dim, self.lengths)
        if not isinstance(found, int):
            raise Rejected
        return found

    def fresh(
        self,
        dtype: str,
        shape: Sequence[Dim],
        low: float = -2.0,
        high: float = 2.0,
        kind: str | None = None,
    ) -> Item:
        """Return a new input, weight or constant of a shape; constants only inside functions."""
        lengths = [self.length(dim) for dim in shape]
        value = self._random(dtype, lengths, low, high)
        symbolic = any(isinstance(dim, SymDim) for dim in shape)
        if self.closed:
            kind = "constant"
        elif kind is None:
            kind = self.one_of(["input"] if symbolic else ["constant", "weight", "input"])
        if symbolic and kind != "input":
            raise Rejected
        if kind == "constant":
            if not lengths and value.dtype.kind == "f":  # TVM's text shows six digits
                value = np.asarray(np.round(value * 8) / 8, value.dtype)
            return self.note(Constant(value), value)
        return self.parameter(kind, TensorType(shape, dtype), value)

    def parameter(self, kind: str, type_: TensorType, value: Array) -> Item:
        """Return a new input or weight that holds a value; most graphs have unlucky names."""
        plain = f"w{len(self._weights)}" if kind == "weight" else f"x{len(self._params)}"
        variable = Var(self._names.new() if self._names else plain, type_)
        self._params.append((variable, value))
        self.shown |= _plain_symbols(type_.shape)
        if kind == "weight":
            self._weights.add(variable.name_hint)
        return self.note(variable, value, keep=True)

    def output_names(self, count: int) -> tuple[str, ...]:
        """Return names of outputs, the same for the same number; no parameter has them."""
        if self._names is None:
            return tuple(f"y{index}" for index in range(count))
        names = Names(random.Random(f"outputs {self.seed}"))
        names.given.update(dict.fromkeys(variable.name_hint for variable, _ in self._params))
        return tuple(names.new() for _ in range(count))

    def constant(self, value: Any, dtype: str) -> Item:
        """Return a constant."""
        data = np.array(value, numpy_dtype(dtype))
        return self.note(Constant(data), data)

    def _random(self, dtype: str, lengths: Sequence[int], low: float, high: float) -> Array:
        if dtype == "bool":
            return self.rng.integers(0, 2, lengths).astype(bool)
        if not is_float(dtype):
            least = max(low, 0) if dtype.startswith("u") else low
            return self.rng.integers(int(least), int(high) + 1, lengths).astype(dtype)
        values = self.rng.uniform(low, high, lengths)
        if self.chance(0.2):
            values = np.round(values * 4) / 4
        return np.asarray(values).astype(dtype)

    def note(self, expr: Expr, value: Array, *, keep: bool = False) -> Item:
        """Return an exact item; `keep` puts it into the scope."""
        wide = value.astype(np.float64) if is_float(value.dtype.name) else value
        item = Item(expr, value, (wide,) * RUNS, 0.0)
        if keep:
            self.scope.append(item)
        return item

    def add(
        self, name: str, *operands: Operand, exact: bool = False, keep: bool = True, **attrs: Any
    ) -> Any:
        """Return a new call, one item for each of its results.

        Args:
            name: The operator.
            operands: Its operands.
            exact: Whether it only moves or chooses values, so that nothing is rounded.
            keep: Whether later nodes may use it.
            attrs: Its attributes.

        Raises:
            Rejected: It does not type, cannot be exported, or its value is out of range.
        """
        definition = all_ops()[name]
        if not self.is_wanted(name):
            raise Rejected
        try:
            span = Span(self._names.any()) if self._names else None
            node = call(name, *[_map(operand, lambda item: item.expr) for operand in operands],
                        span=span, **attrs)  # fmt: skip
        except TypeInferenceError:
            raise Rejected from None
        if not all(_symbols_of(value) <= self.shown for value in node.attrs.values()):
            raise Rejected
        resolved = {key: resolve_dims(value, self.lengths) for key, value in node.attrs.items()}
        absent = [()] * (len(definition.operands) - len(operands))

        def evaluate(of: Callable[[Item], Array], given: dict[str, Any]) -> tuple[Array, ...]:
            values = [_map(operand, of, absent=()) for operand in operands]
            with np.errstate(all="ignore"):
                result = apply_kernel(definition, [*values, *absent], given)
            return result if isinstance(result, tuple) else (result,)

        try:
            values = evaluate(lambda item: item.value, resolved)
        except TypeInferenceError:  # a symbol stands for less than a window needs
            raise Rejected from None
        for value in values:
            if isinstance(value, list):
                raise Rejected  # a sequence
            _require_sane(value)
        if name in ARITHMETIC and not is_float(values[0].dtype.name):
            wide = evaluate(lambda item: item.value.astype(np.int64), resolved)
            if not np.array_equal(wide[0], values[0]):
                raise Rejected
        used = list(_flat(operands))
        floats = any(is_float(value.dtype.name) for value in values)
        noise = max([item.noise for item in used], default=0.0) if floats else 0.0
        runs = [values] * RUNS
        if floats:
            noise = max([noise] if exact else [noise, *map(_rounding, values)])
            attrs64 = {key: _widened(value) for key, value in resolved.items()}
            runs = [
                evaluate(lambda item, k=k: self._moved(item, k, exact), attrs64)
                for k in range(RUNS)
            ]
            if any(r.shape != v.shape for run in runs for r, v in zip(run, values, strict=True)):
                raise Rejected  # rounding decides on a length
            runs = [
                tuple(
                    self._disturbed(r, v.dtype, k, exact) for r, v in zip(run, values, strict=True)
                )
                for k, run in enumerate(runs)
            ]
        items = []
        for index, value in enumerate(values):
            several = isinstance(node.type, TupleType)
            expr: Expr = TupleGetItem(node, index) if several else node
            self._require_type(expr, value)
            outcome = tuple(run[index] for run in runs)
            items.append(Item(expr, value, outcome, noise if is_float(value.dtype.name) else 0.0))
        if keep:
            self.scope.extend(items)
        return items if isinstance(node.type, TupleType) else items[0]

    def _moved(self, item: Item, run: int, exact: bool) -> Array:
        return self._disturbed(item.runs[run], item.value.dtype, run, exact)

    def _disturbed(self, values: Array, dtype: np.dtype[Any], run: int, exact: bool) -> Array:
        unit = _unit(dtype.name)
        if run == 0 or exact or not unit or not is_float(values.dtype.name):
            return values
        signs = self.rng.choice([-unit, unit], values.shape)
        return np.asarray(values * (1 + signs))

    def _require_type(self, expr: Expr, value: Array) -> None:
        type_ = expr.type
        assert isinstance(type_, TensorType)
        dims = [substitute(dim, self.lengths) for dim in type_.shape]
        fits = type_.dtype == value.dtype.name and len(dims) == value.ndim
        if not fits or not all(
            isinstance(dim, AnyDim) or dim == length
            for dim, length in zip(dims, value.shape, strict=True)
        ):
            found = f"{value.dtype.name}{value.shape}"
            raise Mistyped(f"{_shown(expr)} of {type_!r} gives {found}")

    def put(self, item: Item, expr: Expr) -> Item:
        """Note another expression with the value of `item`, and return it."""
        known = replace(item, expr=expr)
        self._require_type(expr, item.value)
        self.scope.append(known)
        return known

    @contextmanager
    def inside(self, items: Sequence[Item], *, closed: bool) -> Iterator[None]:
        """Grow a body that sees `items`; nothing made there is seen outside."""
        before = self.scope, self.closed, self._lets
        self.scope, self.closed, self._lets = list(items), closed or self.closed, []
        shown = self.shown
        if closed:
            self.shown = frozenset().union(*[_plain_symbols(item.shape) for item in items])
        self.depth += 1
        try:
            yield
        finally:
            self.scope, self.closed, self._lets = before
            self.shown = shown if closed else self.shown
            self.depth -= 1

    def grow(self, count: int) -> None:
        """Add up to `count` nodes or groups of nodes."""
        producers = self.producers()
        weights = np.array([weight for weight, _ in producers], float)
        chances = weights / weights.sum()
        for _ in range(4 * count):
            before, lets = len(self.scope), len(self._lets)
            produce = producers[int(self.rng.choice(len(producers), p=chances))][1]
            try:
                produce(self)
            except Rejected:
                del self.scope[before:], self._lets[lets:]
                continue
            count -= 1
            if count <= 0:
                return

    def let(self, variable: Var, item: Item) -> None:
        """Bind the value of `item` to a variable around the whole body."""
        self._lets.append((variable, item.expr))

    def with_lets(self, body: Expr) -> Expr:
        """Return a body with the lets that were made while it grew around it."""
        for variable, value in reversed(self._lets):
            body = Let(variable, value, body)
        return body

    def renamed(self, item: Item, variable: Var) -> Item:
        """Return what a variable that holds the value of an item is inside a function."""
        return replace(item, expr=variable)

    def finish(self) -> RandomGraph:
        """Return the graph: outputs are drawn from all nodes, the last one included."""
        made = [item for item in self.scope if not isinstance(item.expr, Var)]
        made = made or [self.add("copy", self.scope[0], exact=True)]
        count = min(len(made), self.integer(1, 4))
        chosen = self.rng.choice(len(made) - 1, count - 1, replace=False) if count > 1 else []
        outputs = [*[made[int(index)] for index in chosen], made[-1]]
        single = len(outputs) == 1 and self.chance(0.8)
        body = outputs[0].expr if single else Tuple([item.expr for item in outputs])
        main = Function([variable for variable, _ in self._params], self.with_lets(body))
        mod = InferType()(IRModule({"main": main, **self.functions}))
        names = [variable.name_hint for variable, _ in self._params]
        params = {
            variable.name_hint: ArrayWeight(value)
            for variable, value in self._params
            if variable.name_hint in self._weights
        }
        inputs = tuple(name for name in names if name not in params)
        meta = ModelMeta(inputs, self.output_names(len(outputs)))
        feeds = {v.name_hint: value for v, value in self._params if v.name_hint in inputs}
        model = RelayModel(mod, params, meta)
        return RandomGraph(self.seed, self.opset, model, feeds, tuple(outputs))


def _shown(expr: Expr) -> str:
    node = expr.tuple_value if isinstance(expr, TupleGetItem) else expr
    if not isinstance(node, Call):
        return type(node).__name__
    operands = ", ".join(repr(each.type) for each in node.args)
    attrs = ", ".join(f"{name}={value!r}" for name, value in node.attrs.items())
    return f"{node.op.name if isinstance(node.op, OpDef) else 'a function'}({operands}; {attrs})"


def _plain_symbols(shape: Sequence[Dim]) -> frozenset[str]:
    """Return the symbols that are the length of an axis, and so are known where it is."""
    return frozenset(dim.name for dim in shape if isinstance(dim, SymDim) and dim.name is not None)


def _symbols_of(value: Any) -> frozenset[str]:
    """Return the symbols in an attribute."""
    if isinstance(value, tuple):
        return frozenset().union(*map(_symbols_of, value))
    return frozenset(value.symbols()) if isinstance(value, SymDim) else frozenset()


def _map(operand: Operand, of: Callable[[Item], Any], absent: Any = None) -> Any:
    if operand is None:
        return absent
    if isinstance(operand, list):
        return tuple(of(item) for item in operand)
    return of(operand)


def _flat(operands: Sequence[Operand]) -> Iterator[Item]:
    for operand in operands:
        if isinstance(operand, list):
            yield from operand
        elif operand is not None:
            yield operand


def _unit(dtype: str) -> float:
    return float(np.finfo(dtype).eps) / 2 if is_float(dtype) else 0.0


def _rounding(value: Array) -> float:
    return _unit(value.dtype.name)


def _widened(value: Any) -> Any:
    is_narrow = isinstance(value, np.dtype) and is_float(value.name)
    return np.dtype(np.float64) if is_narrow else value


def _require_sane(value: Array) -> None:
    if value.size > MOST_ELEMENTS or value.ndim > MOST_AXES:
        raise Rejected
    if value.dtype == bool:
        return
    limit = LARGEST.get(value.dtype.name, LARGEST_INT)
    if not np.all(np.isfinite(value)) or np.any(np.abs(value.astype(np.float64)) > limit):
        raise Rejected
