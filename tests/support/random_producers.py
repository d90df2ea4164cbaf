"""What a random graph may grow by: each producer adds a node, or some that belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.random_graphs import Item, Maker, Rejected

from serde.relay.ir.dims import Dim, SymDim, symbol

Producer = Callable[[Maker], None]
PRODUCERS: list[tuple[float, Producer]] = []
"""Each with its weight; the modules of producers fill it when they are imported."""


def producer(weight: float = 1.0) -> Callable[[Producer], Producer]:
    """Register a producer."""

    def register(function: Producer) -> Producer:
        PRODUCERS.append((weight, function))
        return function

    return register


SMOOTH = [
    "tanh", "sigmoid", "sin", "cos", "atan", "asinh", "erf", "exp", "sinh", "cosh",
    "serde.softplus", "serde.softsign", "serde.elu", "serde.selu", "serde.gelu", "serde.silu",
    "serde.mish", "serde.hard_swish", "serde.hard_sigmoid", "serde.log_sigmoid",
]  # fmt: skip
SINGLE_ONLY = frozenset([
    "erf", "serde.gelu", "serde.hard_swish", "serde.softsign", "serde.mish", "atan", "asinh",
    "sinh", "cosh", "tan", "acos", "asin", "atanh", "acosh",
])  # fmt: skip
"""What ONNX Runtime computes in float32 whatever the dtype, or has no kernel of float64 for.

ONNX's reference stands in where there is no kernel, but of what a Loop yields it stacks vectors
only: scalars come out as a column, and anything else is joined along its first axis.
"""
DOMAINS = {
    "sqrt": (0.05, np.inf), "rsqrt": (0.1, np.inf), "log": (0.05, np.inf), "log2": (0.05, np.inf),
    "log10": (0.05, np.inf), "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.1, np.inf), "tan": (-1.3, 1.3),
}  # fmt: skip
NUMBERS = ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]


def is_float(item: Item) -> bool:
    """Whether an item holds floats."""
    return item.is_float


def is_number(item: Item) -> bool:
    """Whether an item holds what ONNX's arithmetic takes at every version."""
    return item.dtype in ("float16", "float32", "float64", "int32", "int64")


def is_truth(item: Item) -> bool:
    """Whether an item holds truth values."""
    return item.dtype == "bool"


def has_axes(count: int) -> Callable[[Item], bool]:
    """Return whether an item has at least so many axes."""
    return lambda item: item.rank >= count


def some_axis(maker: Maker, item: Item) -> int:
    """Draw an axis, counted from either side."""
    if not item.rank:
        raise Rejected
    return maker.integer(-item.rank, item.rank - 1)


def clear_of(item: Item, points: Any) -> None:
    """Reject what is within a few roundings of points where a function jumps."""
    if item.noise and np.any(np.abs(item.value.astype(np.float64) - points) <= item.margin):
        raise Rejected


@producer(4)
def smooth(maker: Maker) -> None:
    x, name = maker.pick(is_float), maker.one_of(SMOOTH)
    if x.dtype == "float64" and name in SINGLE_ONLY:
        raise Rejected
    maker.add(name, x)


@producer(1)
def on_domain(maker: Maker) -> None:
    """A function that is defined, and tame, on an interval only."""
    name = maker.one_of(list(DOMAINS))
    low, high = DOMAINS[name]
    if name in SINGLE_ONLY:
        inside = maker.pick(
            lambda x: x.dtype == "float32" and bool(np.all((x.value >= low) & (x.value <= high)))
        )
        maker.add(name, inside)
        return
    inside = maker.pick(lambda x: x.is_float and bool(np.all((x.value >= low) & (x.value <= high))))
    maker.add(name, inside)


@producer(1)
def guarded(maker: Maker) -> None:
    """A root or logarithm of what is made positive first."""
    x = maker.pick(is_float)
    positive = maker.add("add", maker.add("abs", x), maker.constant(0.5, x.dtype))
    maker.add(maker.one_of(["sqrt", "log", "rsqrt", "log2"]), positive)


@producer(2)
def kinked(maker: Maker) -> None:
    name = maker.one_of(["nn.relu", "abs", "negative", "nn.leaky_relu", "clip", "copy"])
    x = maker.pick(is_float if name.startswith("nn.") else is_number)
    attrs: dict[str, Any] = {}
    if name == "clip":
        attrs = {"a_min": -1.0, "a_max": maker.one_of([0.5, 3.0, 6.0])}
    maker.add(name, x, exact=name != "nn.leaky_relu", **attrs)


@producer(1)
def rounded(maker: Maker) -> None:
    x = maker.pick(is_number)
    name = maker.one_of(["floor", "ceil", "trunc", "round", "sign"])
    scaled = x.value.astype(np.float64) * (2 if name == "round" else 1)
    nearest = 0.0 if name == "sign" else np.round(scaled) / (2 if name == "round" else 1)
    if x.is_float:
        clear_of(x, nearest)
    result = maker.add(name, x, exact=True, keep=False)
    maker.scope.append(_settled(result))


def _settled(item: Item) -> Item:
    """Return an item whose value is certain, as it came out of a jump kept clear of."""
    wide = item.value.astype(np.float64) if item.is_float else item.value
    return Item(item.expr, item.value, (wide,) * len(item.runs), 0.0)


def broadcast(x: Item, y: Item) -> bool:
    """Whether two items broadcast whatever lengths their symbols stand for."""
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def partner(maker: Maker, x: Item, low: float = -2.0, high: float = 2.0) -> Item:
    """Draw what broadcasts with an item: something that exists, or a new tensor."""
    if maker.chance(0.5):
        return maker.pick(lambda other: other.dtype == x.dtype and broadcast(x, other))
    shape = list(x.shape[maker.integer(0, x.rank) :])
    for axis in range(len(shape)):
        if maker.chance(0.3):
            shape[axis] = 1
    if maker.chance(0.1) and x.rank < 4:
        shape = [maker.integer(1, 3), *[1] * (x.rank - len(shape)), *shape]
    return maker.fresh(x.dtype, shape, low, high)


@producer(5)
def arithmetic(maker: Maker) -> None:
    x = maker.pick(is_number)
    name = maker.one_of(["add", "subtract", "multiply", "maximum", "minimum"])
    pair = [x, partner(maker, x)]
    if maker.chance(0.5):
        pair.reverse()
    maker.add(name, *pair, exact=name in ("maximum", "minimum"))


@producer(1.5)
def quotient(maker: Maker) -> None:
    """A quotient or remainder by what is not near zero; jumps are kept clear of."""
    x = maker.pick(is_number)
    if x.is_float:
        y = partner(maker, x, 0.5, 3.0)
        if np.any(np.abs(y.value) < 0.3):
            raise Rejected
        maker.add("divide", x, y)
        return
    y = partner(maker, x, 1, 5)
    names = ["divide", "floor_divide", "floor_mod", "trunc_divide", "trunc_mod", "mod"]
    if np.any(y.value == 0):
        raise Rejected
    maker.add(maker.one_of(names), x, y)


@producer(0.5)
def powers(maker: Maker) -> None:
    x = maker.pick(is_number)
    if x.is_float and np.any(x.value < 0.1):
        raise Rejected
    exponent = partner(maker, x, *((-1.5, 2.0) if x.is_float else (0, 3)))
    if not x.is_float and np.any(exponent.value < 0):
        raise Rejected
    maker.add("power", x, exponent)


@producer(2)
def comparison(maker: Maker) -> None:
    x = maker.pick(is_number)
    y = partner(maker, x)
    names = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
    noise = max(x.noise, y.noise) * 2.0**13
    apart = np.abs(x.value.astype(np.float64) - y.value.astype(np.float64))
    if noise and np.any(apart <= noise):
        raise Rejected
    maker.add(maker.one_of(names), x, y)


@producer(1)
def truth(maker: Maker) -> None:
    x = maker.pick(is_truth)
    if maker.chance(0.3):
        maker.add("logical_not", x)
        return
    maker.add(maker.one_of(["logical_and", "logical_or", "logical_xor"]), x, partner(maker, x))


@producer(1)
def choice(maker: Maker) -> None:
    x = maker.pick(is_number)
    y = partner(maker, x)
    condition = maker.pick(lambda c: is_truth(c) and broadcast(c, x) and broadcast(c, y))
    maker.add("where", condition, x, y, exact=True)


@producer(2)
def conversion(maker: Maker) -> None:
    """A cast; of floats to integers only where no value is near the next integer."""
    x = maker.pick()
    dtype = maker.one_of([*NUMBERS, "bool"])
    whole = not dtype.startswith("float")
    value = x.value.astype(np.float64)
    if x.is_float and whole:
        clear_of(x, 0.0 if dtype == "bool" else np.round(value))
    if whole and dtype != "bool":
        limits = np.iinfo(dtype)
        if np.any((np.trunc(value) < limits.min) | (np.trunc(value) > limits.max)):
            raise Rejected
    wider = np.can_cast(x.value.dtype, dtype)
    result = maker.add("cast", x, exact=whole or wider, keep=False, dtype=dtype)
    maker.scope.append(result)


@producer(3)
def reduction(maker: Maker) -> None:
    name = maker.one_of(["sum", "mean", "max", "min", "prod"])
    x = maker.pick(is_float if name in ("mean", "prod") else is_number)
    axes = [axis for axis in range(x.rank) if maker.chance(0.5)]
    axes = [axis - x.rank if maker.chance(0.3) else axis for axis in axes]
    attrs = {"axis": axes or None, "keepdims": maker.chance(0.5), "exclude": maker.chance(0.1)}
    if not axes:
        attrs["exclude"] = False
    if name in ("max", "min", "mean") and x.value.size == 0:
        raise Rejected
    maker.add(name, x, exact=name in ("max", "min"), **attrs)


@producer(0.7)
def variance(maker: Maker) -> None:
    x = maker.pick(lambda item: item.is_float and item.rank > 0 and item.value.size > 0)
    axis = [some_axis(maker, x)]
    mean = maker.add("mean", x, axis=axis, keepdims=True)
    maker.add("variance", x, mean, axis=axis, keepdims=maker.chance(0.5))


@producer(0.7)
def truth_reduction(maker: Maker) -> None:
    x = maker.pick(is_truth)
    axis = [some_axis(maker, x)] if x.rank and maker.chance(0.5) else None
    if x.value.size == 0:
        raise Rejected
    maker.add(maker.one_of(["all", "any"]), x, axis=axis, keepdims=maker.chance(0.5))


@producer(1)
def place_of_extreme(maker: Maker) -> None:
    x = maker.pick(lambda item: is_number(item) and item.rank > 0 and item.value.size > 0)
    axis = some_axis(maker, x)
    ordered = np.sort(x.value.astype(np.float64), axis)
    if x.noise and np.any(np.diff(ordered, axis=axis) <= x.margin):
        raise Rejected
    maker.add(maker.one_of(["argmax", "argmin"]), x, axis=[axis], keepdims=maker.chance(0.5))


@producer(1)
def lengths(maker: Maker) -> None:
    """Shapes as values, which shape arithmetic folds or carries into the graph."""
    dtype = maker.one_of(["int32", "int64"])
    maker.add(maker.one_of(["shape_of", "ndarray_size"]), maker.pick(), dtype=dtype)


@producer(1)
def running_sum(maker: Maker) -> None:
    x = maker.pick(lambda item: is_number(item) and item.dtype != "float16" and item.rank > 0)
    maker.add("cumsum", x, axis=some_axis(maker, x), exclusive=maker.chance(0.3))


@producer(1.5)
def looked_up(maker: Maker) -> None:
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    axis = some_axis(maker, x)
    length = x.value.shape[axis]
    dtype = maker.one_of(["int32", "int64"])
    if maker.chance(0.3):
        indices = maker.pick(lambda item: item.dtype in ("int32", "int64"))
        maker.add("take", x, indices, exact=True, axis=axis, mode=maker.one_of(["clip", "wrap"]))
        return
    shape = maker.random_shape(maker.integer(0, 2))
    indices = maker.fresh(dtype, shape, 0, length - 1)
    maker.add("take", x, indices, exact=True, axis=axis, mode=maker.one_of(["clip", "fast"]))


@producer(0.7)
def gathered(maker: Maker) -> None:
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    axis = some_axis(maker, x)
    shape = list(x.shape)
    shape[axis] = maker.integer(1, 3)
    indices = maker.fresh("int64", shape, 0, x.value.shape[axis] - 1)
    maker.add("gather", x, indices, exact=True, axis=axis)


@producer(0.4)
def gathered_tuples(maker: Maker) -> None:
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    count = maker.integer(1, x.rank)
    shape = [count, *maker.random_shape(maker.integer(0, 2))]
    indices = maker.fresh("int64", shape, 0, min(x.value.shape[:count]) - 1)
    maker.add("gather_nd", x, indices, exact=True)


@producer(0.5)
def classes(maker: Maker) -> None:
    indices = maker.pick(lambda item: item.dtype in ("int32", "int64") and item.rank < 4)
    dtype = maker.one_of(["float32", "int32"])
    on, off = maker.constant(2, dtype), maker.constant(-1, dtype)
    axis = maker.integer(-1, indices.rank)
    maker.add("one_hot", indices, on, off, depth=maker.integer(1, 4), axis=axis, dtype=dtype)


def drawn_permutation(maker: Maker, rank: int) -> list[int]:
    """Draw an order of axes."""
    return [int(axis) for axis in maker.rng.permutation(rank)]


@producer(2)
def transposed(maker: Maker) -> None:
    x = maker.pick(has_axes(1))
    axes = None if maker.chance(0.2) else drawn_permutation(maker, x.rank)
    maker.add("transpose", x, exact=True, axes=axes)


def dimension_product(dims: Any) -> Dim:
    """Return the number of elements of some axes."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


@producer(3)
def reshaped(maker: Maker) -> None:
    """Axes joined, a length left to be inferred, or codes of Relay."""
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    kind = maker.integer(0, 4)
    at = maker.integer(0, x.rank - 1)
    if kind == 0:
        newshape: list[Dim] = [-1]
    elif kind == 1:
        newshape = [*[0] * at, -1]
    elif kind == 2:
        newshape = [*x.shape[:at], dimension_product(x.shape[at:])]
    elif kind == 3 and x.rank > 1:
        at = min(at, x.rank - 2)
        newshape = [*[0] * at, -3, -2] if at + 2 < x.rank else [*[0] * at, -3]
    else:
        newshape = [-2] if maker.chance(0.5) else [1, *x.shape]
    maker.add("reshape", x, exact=True, newshape=newshape)


@producer(0.7)
def split_axis(maker: Maker) -> None:
    """An axis taken apart in two, the other half of joining."""
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    at = maker.integer(0, x.rank - 1)
    dim = x.shape[at]
    if isinstance(dim, int):
        factor = maker.one_of([f for f in range(1, dim + 1) if dim % f == 0])
        parts = [factor, dim // factor]
    else:
        parts = maker.one_of([[1, dim], [dim, 1]])
    maker.add("reshape", x, exact=True, newshape=[*x.shape[:at], *parts, *x.shape[at + 1 :]])


@producer(1.5)
def unit_axes(maker: Maker) -> None:
    x = maker.pick()
    if maker.chance(0.5):
        axis = maker.integer(-x.rank - 1, x.rank)
        count = maker.integer(1, 2) if axis >= 0 else 1
        maker.add("expand_dims", x, exact=True, axis=axis, num_newaxis=count)
        return
    ones = [axis for axis, dim in enumerate(x.shape) if isinstance(dim, int) and dim == 1]
    maker.add("squeeze", x, exact=True, axis=[maker.one_of(ones)])


@producer(2)
def joined(maker: Maker) -> None:
    x = maker.pick(has_axes(1))
    axis = some_axis(maker, x)
    if maker.chance(0.3):
        others = [maker.pick(lambda item: (item.dtype, item.shape) == (x.dtype, x.shape))]
        name = maker.one_of(["stack", "concatenate"])
        maker.add(name, [x, *others], exact=True, axis=axis)
        return

    def fits(item: Item) -> bool:
        place = axis % x.rank
        same = all(
            a == b or i == place for i, (a, b) in enumerate(zip(item.shape, x.shape, strict=False))
        )
        return item.dtype == x.dtype and item.rank == x.rank and same

    parts = [x, maker.pick(fits)]
    if maker.chance(0.5):
        shape = list(x.shape)
        shape[axis] = maker.one_of([1, 2, symbol("n"), symbol("m")])
        parts.append(maker.fresh(x.dtype, shape))
    if maker.chance(0.5):
        parts.reverse()
    maker.add("concatenate", parts, exact=True, axis=axis)


@producer(2)
def parts(maker: Maker) -> None:
    x = maker.pick(lambda item: item.rank > 0 and item.value.size > 0)
    axis = some_axis(maker, x)
    dim = x.shape[axis]
    if not isinstance(dim, int) or dim < 2:
        raise Rejected
    if dim % 2 == 0 and maker.chance(0.5):
        maker.add("split", x, exact=True, indices_or_sections=2, axis=axis)
        return
    places = sorted({maker.integer(1, dim - 1) for _ in range(2)})
    maker.add("split", x, exact=True, indices_or_sections=places, axis=axis)


@producer(2.5)
def sliced(maker: Maker) -> None:
    x = maker.pick(has_axes(1))
    axis = some_axis(maker, x)
    stride = maker.one_of([1, 1, 1, 2, 3, -1])
    begin, end = maker.integer(0, 2), maker.one_of([1, 2, 4, 1000, -1])
    if stride < 0:
        begin, end = -1, -1000
    length = x.value.shape[axis]
    stop = length if end == 1000 else length + end if end < 0 else end
    if isinstance(x.shape[axis], SymDim) and stride > 0 and not begin <= stop <= length:
        raise Rejected  # inference takes a symbol to be as long as the places named in it
    attrs = {"begin": [begin], "end": [end], "strides": [stride], "axes": [axis]}
    maker.add("strided_slice", x, exact=True, **attrs)


@producer(1.5)
def padded(maker: Maker) -> None:
    x = maker.pick(lambda item: item.is_float and item.rank > 0)
    widths = [(maker.integer(0, 2), maker.integer(0, 1)) for _ in range(x.rank)]
    mode = maker.one_of(["constant", "constant", "edge", "reflect"])
    if mode != "constant" and min(x.value.shape) < 3:
        raise Rejected
    filler = maker.constant(maker.one_of([0.0, 1.5]), x.dtype)
    maker.add("nn.pad", x, filler, exact=True, pad_width=widths, pad_mode=mode)


@producer(1)
def repeated(maker: Maker) -> None:
    x = maker.pick(is_number)
    if maker.chance(0.5) and x.rank:
        count = maker.integer(1, 3)
        maker.add("repeat", x, exact=True, repeats=count, axis=some_axis(maker, x))
        return
    reps = [maker.integer(1, 2) for _ in range(maker.integer(1, max(1, x.rank)))]
    maker.add("tile", x, exact=True, reps=reps)


@producer(1)
def spread(maker: Maker) -> None:
    x = maker.pick(is_number)
    wanted = [
        maker.one_of([2, 3, symbol("n")]) if isinstance(dim, int) and dim == 1 else dim
        for dim in x.shape
    ]
    if maker.chance(0.5):
        wanted = [maker.one_of([1, 2, symbol("m")]), *wanted]
    maker.add("broadcast_to", x, exact=True, shape=wanted)


@producer(0.7)
def turned(maker: Maker) -> None:
    x = maker.pick(has_axes(1))
    maker.add("reverse", x, exact=True, axis=some_axis(maker, x))


@producer(0.5)
def filled(maker: Maker) -> None:
    shape, dtype = maker.random_shape(), maker.one_of(["float32", "int64", "bool"])
    if maker.closed and any(isinstance(dim, SymDim) for dim in shape):
        raise Rejected
    if maker.chance(0.5):
        maker.add(maker.one_of(["zeros", "ones"]), exact=True, shape=shape, dtype=dtype)
        return
    maker.add("full", maker.constant(1, dtype), exact=True, shape=shape, dtype=dtype)


@producer(0.7)
def like(maker: Maker) -> None:
    x = maker.pick()
    name = maker.one_of(["zeros_like", "ones_like", "broadcast_to_like"])
    if name == "broadcast_to_like":
        maker.add(name, maker.constant(2, x.dtype), x, exact=True)
        return
    maker.add(name, x, exact=True)


@producer(0.5)
def cut_to(maker: Maker) -> None:
    x = maker.pick(has_axes(1))
    other = maker.pick(
        lambda item: (
            item.rank == x.rank
            and all(a <= b for a, b in zip(item.value.shape, x.value.shape, strict=True))
        )
    )
    maker.add("slice_like", x, other, exact=True, axes=[some_axis(maker, x)])
