"""What the graph allows the inputs to be: ranges of indices, lengths and masks, places of regions.

Ranges go from the operands that need them against the flow of values to the
inputs: through operators that keep or rearrange values, arithmetic with values
whose range is known, tuples, lets, ifs, calls of functions and the bodies of
loops. Where two ranges exclude each other, the first stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from serde.core import Array, dataclass, field
from serde.relay.ir import Fractions, InRange, Moves, Reshape, Truth, UsuallyInRange, Values, traits
from serde.relay.ir.bodies import carried, inner_first
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    is_absent,
)
from serde.relay.ir.model import RelayModel
from serde.relay.ir.ranges import UNBOUNDED, shape_of
from serde.relay.ir.registry import has_trait, trait_of
from serde.relay.ir.traits import Range
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, post_order

__all__ = ["InputConstraints", "find_constraints"]

_MOST_CHANGES = 8
"""How often the range of one value is narrowed: what a loop counts up narrows without end."""

_DEPTH = 12
"""How far back the range of a value is looked for."""


@dataclass(frozen=True)
class Regions:
    """Regions of images: how many images there are, how high and wide, in units of the regions."""

    images: int | None
    height: float
    width: float


@dataclass
class InputConstraints:
    """What limits the inputs of a model, by name.

    Attributes:
        ranges: Least and greatest value.
        masks: Inputs that say what counts, by ones and zeros.
        fractions: Inputs between 0 and 1.
        regions: Inputs that hold regions of images.
    """

    ranges: dict[str, Range] = field(default_factory=dict)
    masks: set[str] = field(default_factory=set)
    fractions: set[str] = field(default_factory=set)
    regions: dict[str, Regions] = field(default_factory=dict)


def find_constraints(model: RelayModel, lengths: Mapping[str, int]) -> InputConstraints:
    """Return what the graph allows the inputs to be.

    Args:
        model: The model.
        lengths: Length of each symbol in the shapes of the inputs.
    """
    flow = _DataFlow(model, lengths)
    strict, usual = flow.ranges(InRange), flow.ranges(UsuallyInRange)
    found = InputConstraints()
    for variable in model.inputs():
        name, must, does = variable.name_hint, strict.get(variable), usual.get(variable)
        bounds = does if must is None else must
        if bounds is not None:
            found.ranges[name] = bounds
        if does == (0, 1) and bounds == does:
            found.masks.add(name)
        if variable in flow.fractions:
            found.fractions.add(name)
        regions = flow.regions.get(variable)
        if regions is not None:
            found.regions[name] = regions
    return found


class _DataFlow:
    """The flow of values through a module, against which ranges go."""

    def __init__(self, model: RelayModel, lengths: Mapping[str, int]) -> None:
        roots = list(model.mod.functions.values())
        functions = [*roots, *inner_first(*roots)]
        self._globals = {v.name_hint: f for v, f in model.mod.functions.items()}
        self._lengths = lengths
        self._nodes = list(dict.fromkeys(node for f in functions for node in post_order(f)))
        self._bound: dict[Var, Expr] = {n.var: n.value for n in self._nodes if isinstance(n, Let)}
        self._given: dict[Var, list[Expr]] = {}
        for node in self._nodes:
            if isinstance(node, Call):
                self._bind(node)
        self.regions: dict[Expr, Regions] = {}
        self.fractions: set[Expr] = set()
        for node in self._nodes:
            if isinstance(node, Call) and isinstance(node.op, Op):
                self._note_regions(node)
                said = trait_of(node, Fractions)
                operands = () if said is None else said.operands
                self.fractions |= {_origin(node.args[i]) for i in operands if i < len(node.args)}

    def ranges(self, kind: type[InRange] | type[UsuallyInRange]) -> dict[Expr, Range]:
        """Return the range of each value that a trait of operators limits."""
        wanted: dict[Expr, Range] = {}
        changes: dict[Expr, int] = {}
        pending = [d for node in self._nodes for d in _operands_in_range(node, kind, self._lengths)]
        pending.reverse()
        while pending:
            node, bounds = pending.pop()
            known = wanted.get(node, (-UNBOUNDED, UNBOUNDED))
            low, high = max(known[0], bounds[0]), min(known[1], bounds[1])
            if low > high or (low, high) == known or changes.get(node, 0) >= _MOST_CHANGES:
                continue
            wanted[node] = low, high
            changes[node] = changes.get(node, 0) + 1
            pending += self._sources(node, (low, high))
        return wanted

    def _callee(self, node: Call) -> Function | None:
        """Return the function that is called, where that is known."""
        target: Expr | None = node.op
        for _ in range(_DEPTH):
            if isinstance(target, Function):
                return target
            if isinstance(target, GlobalVar):
                return self._globals.get(target.name_hint)
            if isinstance(target, Let):
                target = target.body
            elif isinstance(target, Var):
                target = self._bound.get(target)
            else:
                break
        return None

    def _bind(self, node: Call) -> None:
        """Note what the parameters of a called function, or of a loop's body, are given."""
        function = self._callee(node)
        args: list[tuple[Expr, ...]]
        if function is not None:
            args = [(arg,) for arg in node.args]
        elif carried(node) and isinstance(node.op, Op):
            function = carried(node)[0]
            args = self._loop_arguments(node, function)
        else:
            return
        for param, values in zip(function.params, args, strict=False):
            self._given.setdefault(param, []).extend(values)

    def _loop_arguments(self, node: Call, body: Function) -> list[tuple[Expr, ...]]:
        """Return what the parameters of a loop's body are given, turn by turn."""
        groups = [_fields_of(arg) for arg in node.args]
        results = _fields_of(body.body)
        if getattr(node.op, "name", "") == "serde.loop":
            _limit, _going, state, captures = groups
            number: list[tuple[Expr, ...]] = [()]
            following = results[1 : 1 + len(state)]
        else:
            state, scanned, captures = groups
            number, following = [], results[: len(state)]
            captures = [*scanned, *captures]
        following = [*following, *state[len(following) :]]
        return [*number, *zip(state, following, strict=True), *((each,) for each in captures)]

    def _sources(self, node: Expr, bounds: Range) -> Iterator[tuple[Expr, Range]]:
        """Yield the expressions that a value is made of, each with what it may be."""
        if isinstance(node, Call) and isinstance(node.op, Op):
            yield from self._operands(node, bounds)
            return
        for source in self._aliases(node):
            yield source, bounds

    def _aliases(self, node: Expr) -> Iterable[Expr]:
        """Return the expressions whose values, or fields, are those of a node."""
        if isinstance(node, TupleGetItem):
            return self._field(node.tuple_value, node.index)
        if isinstance(node, Tuple):
            return node.fields
        if isinstance(node, If):
            return (node.true_branch, node.false_branch)
        if isinstance(node, Let):
            return (node.body,)
        if isinstance(node, Var):
            bound = [self._bound[node]] if node in self._bound else []
            return [*bound, *self._given.get(node, ())]
        function = self._callee(node) if isinstance(node, Call) else None
        return () if function is None else (function.body,)

    def _field(self, value: Expr, index: int) -> Iterator[Expr]:
        """Yield what a field of a tuple is made of."""
        pending, seen = [value], set()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, Tuple):
                yield node.fields[index]
            elif isinstance(node, Call) and isinstance(node.op, Op):
                yield from self._result(node, index)
            elif not isinstance(node, TupleGetItem):
                pending += self._aliases(node)

    def _result(self, node: Call, index: int) -> Iterator[Expr]:
        """Yield what one of the results of an operator is made of."""
        name = getattr(node.op, "name", "")
        if carried(node):
            at = 2 if name == "serde.loop" else 0
            state = _fields_of(node.args[at])
            results = _fields_of(carried(node)[0].body)[1 if name == "serde.loop" else 0 :]
            yield from state[index : index + 1]
            yield from results[index : index + 1]
        elif name == "meshgrid":
            yield from _fields_of(node.args[0])[index : index + 1]
        elif name == "split" or (index == 0 and _keeps_first_operand(node)):
            yield node.args[0]

    def _operands(self, node: Call, bounds: Range) -> Iterator[tuple[Expr, Range]]:
        name = getattr(node.op, "name", "")
        kept = _value_operands(node)
        if kept:
            yield from ((node.args[index], bounds) for index in kept)
        elif name == "where":
            yield from self._where_operands(node, bounds)
        elif name in _UNARY_INVERSES:
            yield from _UNARY_INVERSES[name](node, bounds)
        elif name in _BINARY_INVERSES and len(node.args) == 2:
            for place in (0, 1):
                other = self._interval(node.args[1 - place])
                found = _BINARY_INVERSES[name](bounds, other, place)
                if found is not None and not isinstance(node.args[place], Constant):
                    yield node.args[place], found

    def _where_operands(self, node: Call, bounds: Range) -> Iterator[tuple[Expr, Range]]:
        """Yield what the branches of ``where`` may be; one that tells a sign apart is one range.

        ``where(x < 0, x + n, x)`` counts negative indices from the end.
        """
        condition, first, second = node.args
        shift = self._shift(first, second)
        is_sign = isinstance(condition, Call) and getattr(condition.op, "name", "") == "less"
        if is_sign and shift is not None and _is_zero(condition):
            yield second, (min(bounds[0], bounds[0] - shift), bounds[1])
            return
        yield first, bounds
        yield second, bounds

    def _shift(self, node: Expr, base: Expr) -> int | None:
        """Return how much more than another value a node is, at least; None if it is not that."""
        if isinstance(node, Call) and getattr(node.op, "name", "") == "add":
            for one, other in (node.args, node.args[::-1]):
                known = self._interval(other) if one is base else None
                if known is not None:
                    return known[0]
        return None

    def _interval(self, node: Expr, depth: int = _DEPTH) -> Range | None:
        """Return the range of a value that does not depend on inputs; None if it is not known."""
        for _ in range(depth):
            if isinstance(node, Constant):
                return _constant_range(node)
            if isinstance(node, Var) and node in self._bound:
                node = self._bound[node]
                continue
            if not isinstance(node, Call) or not isinstance(node.op, Op):
                return None
            name = node.op.name
            if has_trait(node, Truth):
                return 0, 1
            if name == "shape_of":
                shape = shape_of(node.args[0], self._lengths)
                return (min(shape), max(shape)) if shape else None
            if name == "arange":
                return _arange_range(node)
            if name == "clip":
                return _integers_around(node.attrs["a_min"], node.attrs["a_max"])
            if not _keeps_first_operand(node):
                return None
            if name == "take" and isinstance(node.args[1], Constant):
                taken = self._range_of_lengths(node.args[0], node.args[1].data)
                if taken is not None:
                    return taken
            node = node.args[0]
        return None

    def _range_of_lengths(self, of: Expr, indices: Array) -> Range | None:
        """Return the range of the lengths that are taken of a shape."""
        if not isinstance(of, Call) or getattr(of.op, "name", "") != "shape_of":
            return None
        shape = shape_of(of.args[0], self._lengths)
        found = [shape[index] for index in indices.reshape(-1).tolist() if index < len(shape)]
        return (min(found), max(found)) if found else None

    def _note_regions(self, node: Call) -> None:
        """Note the input that holds the regions which an operator pools."""
        said = trait_of(node, traits.Regions)
        if said is None:
            return
        shape, origin = shape_of(node.args[0], self._lengths), _origin(node.args[1])
        if len(shape) == 4:
            scale = float(node.attrs["spatial_scale"]) or 1.0
            columns = [shape_of(each, self._lengths)[-1:] for each in (node.args[1], origin)]
            is_numbered = said.numbered or columns[0] < columns[1]
            images = shape[0] if is_numbered else None
            self.regions[origin] = Regions(images, shape[2] / scale, shape[3] / scale)


_BOUNDED = frozenset({"maximum", "minimum"})


def _value_operands(node: Call) -> tuple[int, ...]:
    """Return the operands whose values a result has, rounded, or filler."""
    said = trait_of(node, Values)
    if said is not None:
        return said.operands
    return (0,) if has_trait(node, Moves, Reshape) else ()


def _keeps_first_operand(node: Call) -> bool:
    return _value_operands(node) == (0,)


def _operands_in_range(
    node: Expr, kind: type[InRange] | type[UsuallyInRange], lengths: Mapping[str, int]
) -> Iterable[tuple[Expr, Range]]:
    """Yield the operands of a call that its operator gives a range."""
    said = trait_of(node, kind)
    if said is None or any(operand.type is None for operand in children(node)):
        return
    if isinstance(node, Call):
        for operand, bounds in said.rule(node, lengths):
            if not is_absent(operand):  # One that is left out.
                yield operand, bounds


def _origin(node: Expr) -> Expr:
    """Return what a value is but for its shape, for what is cut off, and for bounds."""
    while True:
        if isinstance(node, TupleGetItem):
            node = node.tuple_value
        name = getattr(node.op, "name", "") if isinstance(node, Call) else ""
        if not isinstance(node, Call):
            return node
        if name not in _BOUNDED and name != "clip" and not _keeps_first_operand(node):
            return node
        open_ = [each for each in node.args if not isinstance(each, Constant)]
        if name in _BOUNDED and len(open_) > 1:
            return node
        node = open_[0] if name in _BOUNDED and open_ else node.args[0]


def _fields_of(node: Expr) -> list[Expr]:
    """Return the fields of a tuple, below lets."""
    while isinstance(node, Let):
        node = node.body
    return list(node.fields) if isinstance(node, Tuple) else [node]


def _is_zero(condition: Expr) -> bool:
    other = condition.args[1] if isinstance(condition, Call) else None
    return isinstance(other, Constant) and other.data.size == 1 and not other.data.any()


def _constant_range(constant: Constant) -> Range | None:
    """Return the least and greatest number of a constant; None if it has none."""
    data = constant.data
    if not data.size or data.dtype.kind not in "iuf":
        return None
    return _integers_around(float(data.min()), float(data.max()))


def _integers_around(low: float, high: float) -> Range | None:
    """Return the whole numbers around a range; None where it has an open end."""
    if not -UNBOUNDED < low <= high < UNBOUNDED:
        return None
    return math.floor(low), math.ceil(high)


def _arange_range(node: Call) -> Range | None:
    """Return the range of the numbers that ``arange`` counts; None where nothing bounds it."""
    ends = [each.data for each in node.args if isinstance(each, Constant)]
    if len(ends) == 3 and int(ends[2]) == 1 and ends[1] > ends[0]:
        return int(ends[0]), int(ends[1]) - 1
    if isinstance(node.type, TensorType) and isinstance(node.type.shape[0], int):
        return 0, max(0, node.type.shape[0] - 1)
    return None


def _invert_add(bounds: Range, other: Range | None, _place: int) -> Range | None:
    """Where nothing is known of the other summand, each gets one half."""
    if other is None:
        return (min(bounds[0], 0), bounds[1] // 2) if bounds[0] <= 0 < bounds[1] else None
    return bounds[0] - other[0], bounds[1] - other[1]


def _invert_subtract(bounds: Range, other: Range | None, index: int) -> Range | None:
    if other is None:
        return None
    if index == 0:
        return bounds[0] + other[1], bounds[1] + other[0]
    return other[1] - bounds[1], other[0] - bounds[0]


def _invert_multiply(bounds: Range, other: Range | None, _place: int) -> Range | None:
    """Times a mask, a value may be what the product may."""
    if other is None:
        return None
    low, high = other
    if low == high < 0:
        return _invert_multiply((-bounds[1], -bounds[0]), (-high, -low), 0)
    if low < 0 or high == 0:
        return None
    if low == 0 and not bounds[0] <= 0 <= bounds[1]:
        return None
    return -(-bounds[0] // (high if bounds[0] <= 0 else low)), bounds[1] // high


def _invert_divide(bounds: Range, other: Range | None, index: int) -> Range | None:
    if other is None or index or other[0] != other[1] or other[0] < 1:
        return None
    return bounds[0] * other[0], bounds[1] * other[0] + other[0] - 1


def _invert_mod(bounds: Range, other: Range | None, index: int) -> Range | None:
    """A remainder that may be any needs no range, but that no value is negative."""
    if other is None or index or bounds[0] > 0 or other[1] - 1 > bounds[1]:
        return None
    return 0, UNBOUNDED


def _invert_maximum(bounds: Range, other: Range | None, _place: int) -> Range:
    return (-UNBOUNDED if other is not None and other[0] >= bounds[0] else bounds[0]), bounds[1]


def _invert_minimum(bounds: Range, other: Range | None, _place: int) -> Range:
    return bounds[0], (UNBOUNDED if other is not None and other[1] <= bounds[1] else bounds[1])


_BINARY_INVERSES: Mapping[str, Callable[[Range, Range | None, int], Range | None]] = {
    "add": _invert_add,
    "divide": _invert_divide,
    "floor_divide": _invert_divide,
    "floor_mod": _invert_mod,
    "maximum": _invert_maximum,
    "minimum": _invert_minimum,
    "mod": _invert_mod,
    "multiply": _invert_multiply,
    "subtract": _invert_subtract,
    "trunc_divide": _invert_divide,
    "trunc_mod": _invert_mod,
}
"""For operators of two operands: the range of one, given the result's and the other's."""


def _invert_negative(node: Call, bounds: Range) -> list[tuple[Expr, Range]]:
    return [(node.args[0], (-bounds[1], -bounds[0]))]


def _invert_abs(node: Call, bounds: Range) -> list[tuple[Expr, Range]]:
    low = bounds[0] if bounds[0] > 0 else -bounds[1]
    return [(node.args[0], (low, bounds[1]))]


def _invert_clip(node: Call, bounds: Range) -> list[tuple[Expr, Range]]:
    low = -UNBOUNDED if node.attrs["a_min"] >= bounds[0] else bounds[0]
    high = UNBOUNDED if node.attrs["a_max"] <= bounds[1] else bounds[1]
    return [(node.args[0], (low, high))]


_UNARY_INVERSES: Mapping[str, Callable[[Call, Range], list[tuple[Expr, Range]]]] = {
    "abs": _invert_abs,
    "clip": _invert_clip,
    "negative": _invert_negative,
}
"""For operators of one operand: its range, given that of the result."""
