"""Hypothesis strategies for calls of operators: shapes, dtypes and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from serde.relay.ir.registry import OpDef, Sample, TensorSpec

Draw = Callable[[Any], Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
NUMBERS = (*FLOATS, *INTEGERS)
EVERY = (*NUMBERS, "bool")


def shapes(least: int = 0, most: int = 5, *, empty: bool = True) -> st.SearchStrategy[Any]:
    """Shapes of some rank, with lengths of 1 and, if allowed, of 0."""
    lengths = st.sampled_from([0, 1, 1, 2, 3] if empty else [1, 1, 2, 3])
    return st.lists(lengths, min_size=least, max_size=most).map(tuple)


def broadcasting(draw: Draw, count: int) -> list[tuple[int, ...]]:
    """Draw shapes that broadcast: axes left out in front, and lengths of 1 in place of others."""
    whole = draw(shapes())
    found = []
    for _ in range(count):
        kept = whole[draw(st.integers(0, len(whole))) :]
        found.append(tuple(draw(st.sampled_from([dim, 1])) for dim in kept))
    return found


def axis_of(draw: Draw, rank: int) -> int:
    """Draw an axis, counted from either side."""
    return int(draw(st.integers(-rank, rank - 1)))


def axes_of(draw: Draw, rank: int) -> list[int] | None:
    """Draw some axes, counted from either side, or None."""
    chosen = draw(st.lists(st.integers(0, rank - 1), unique=True) if rank else st.just([]))
    signed = [axis - rank if draw(st.booleans()) else axis for axis in chosen]
    return draw(st.sampled_from([signed, None]))


def tensor(shape: tuple[int, ...], dtype: str, low: float = -2, high: float = 2) -> TensorSpec:
    """A random tensor; what is unsigned has no negative numbers."""
    return TensorSpec(shape, dtype, max(low, 0) if dtype.startswith("u") else low, high)


UNARY_RANGE = {
    "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 4.0),
    "log": (0.1, 4.0), "log2": (0.1, 4.0), "log10": (0.1, 4.0), "rsqrt": (0.1, 4.0),
    "sqrt": (0.0, 4.0), "tan": (-1.2, 1.2), "serde.erfinv": (-0.95, 0.95),
    "serde.lgamma": (0.1, 4.0), "serde.log1p": (-0.9, 4.0), "serde.tgamma": (0.1, 4.0),
}  # fmt: skip
DIVISIONS = frozenset(["divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod"])


def unary(name: str, dtypes: tuple[str, ...]) -> st.SearchStrategy[Sample]:
    """Calls of a function of one tensor."""

    @st.composite
    def calls(draw: Draw) -> Sample:
        dtype = draw(st.sampled_from(dtypes))
        attrs = {}
        if name == "clip":
            attrs = {"a_min": draw(st.sampled_from([-1.0, 0.0])), "a_max": 1.0}
        low, high = UNARY_RANGE.get(name, (-2, 2))
        return Sample((tensor(draw(shapes()), dtype, low, high),), attrs)

    return calls()


def binary(name: str, dtypes: tuple[str, ...]) -> st.SearchStrategy[Sample]:
    """Calls of a function of two tensors that broadcast."""

    @st.composite
    def calls(draw: Draw) -> Sample:
        dtype = draw(st.sampled_from(dtypes))
        left, right = broadcasting(draw, 2)
        if name in DIVISIONS:
            return Sample((tensor(left, dtype, -9, 9), tensor(right, dtype, 1, 4)), {})
        if name == "power":
            low = 0.1 if dtype in FLOATS else 0
            return Sample((tensor(left, dtype, low, 3), tensor(right, dtype, 0, 3)), {})
        high = 2 if dtype in FLOATS or name != "subtract" else 9
        first = tensor(left, dtype, 2 if dtype.startswith("u") else -2, high)
        return Sample((first, tensor(right, dtype)), {})

    return calls()


def reduction(name: str, dtypes: tuple[str, ...]) -> st.SearchStrategy[Sample]:
    """Calls of a reduction, over any axes named in any way."""

    @st.composite
    def calls(draw: Draw) -> Sample:
        shape = draw(shapes(empty=name in ("sum", "prod")))
        axis = axes_of(draw, len(shape))
        attrs: dict[str, Any] = {"axis": axis, "keepdims": draw(st.booleans())}
        if axis is not None:
            attrs["exclude"] = draw(st.booleans())
        return Sample((tensor(shape, draw(st.sampled_from(dtypes))),), attrs)

    return calls()


@st.composite
def where(draw: Draw) -> Sample:
    """Calls of ``where``."""
    a, b, c = broadcasting(draw, 3)
    dtype = draw(st.sampled_from(EVERY))
    return Sample((tensor(a, "bool"), tensor(b, dtype), tensor(c, dtype)), {})


@st.composite
def cast(draw: Draw) -> Sample:
    """Casts between all dtypes, of values that all of them hold."""
    source, target = (draw(st.sampled_from(EVERY)) for _ in range(2))
    return Sample((tensor(draw(shapes()), source, 0, 2),), {"dtype": target})


def moving(attrs_of: Callable[[Draw, tuple[int, ...]], dict[str, Any]], least: int = 0,
           *, empty: bool = True) -> st.SearchStrategy[Sample]:  # fmt: skip
    """Calls of what moves the elements of one tensor of any dtype."""

    @st.composite
    def calls(draw: Draw) -> Sample:
        shape = draw(shapes(least, empty=empty))
        operand = tensor(shape, draw(st.sampled_from(EVERY)))
        return Sample((operand,), attrs_of(draw, shape))

    return calls()


def _squeezed(draw: Draw, shape: tuple[int, ...]) -> dict[str, Any]:
    ones = [axis for axis, dim in enumerate(shape) if dim == 1]
    chosen = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return {"axis": draw(st.sampled_from([chosen, None]))}


def _sliced(draw: Draw, shape: tuple[int, ...]) -> dict[str, Any]:
    axis = axis_of(draw, len(shape))
    step = draw(st.sampled_from([1, 2, -1]))
    begin, end = draw(st.integers(-4, 4)), draw(st.integers(-4, 4))
    return {"begin": [begin], "end": [end], "strides": [step], "axes": [axis]}


MOVING: dict[str, st.SearchStrategy[Sample]] = {
    "transpose": moving(lambda draw, s: {
        "axes": draw(st.sampled_from([None, draw(st.permutations(range(len(s))))]))}, 1),
    "expand_dims": moving(lambda draw, s: {"axis": draw(st.integers(-len(s) - 1, len(s)))}),
    "squeeze": moving(_squeezed),
    "reshape": moving(lambda draw, s: {"newshape": draw(st.sampled_from([[-1], [-2]]))}, 1,
                      empty=False),
    "nn.batch_flatten": moving(lambda draw, s: {}, 1, empty=False),
    "reverse": moving(lambda draw, s: {"axis": axis_of(draw, len(s))}, 1),
    "repeat": moving(lambda draw, s: {"repeats": draw(st.integers(1, 3)),
                                      "axis": axis_of(draw, len(s))}, 1),
    "tile": moving(lambda draw, s: {
        "reps": draw(st.lists(st.integers(1, 2), min_size=1, max_size=5))}),
    "shape_of": moving(lambda draw, s: {"dtype": draw(st.sampled_from(["int32", "int64"]))}),
    "ndarray_size": moving(lambda draw, s: {"dtype": draw(st.sampled_from(["int32", "int64"]))}),
    "broadcast_to": moving(lambda draw, s: {
        "shape": [*draw(shapes(0, 1)), *[draw(st.sampled_from([d, 2])) if d == 1 else d for d in s]]
    }),
    "strided_slice": moving(_sliced, 1),
}  # fmt: skip
"""Operators that move elements, with their strategies."""


@st.composite
def _joined(draw: Draw, *, stack: bool = False) -> Sample:
    shape = draw(shapes(0 if stack else 1, 4))
    dtype, axis = draw(st.sampled_from(EVERY)), axis_of(draw, len(shape) + stack)
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        lengths = list(shape)
        if not stack:
            lengths[axis] = draw(st.integers(1, 3))
        parts.append(tensor(tuple(lengths), dtype))
    return Sample((parts,), {"axis": axis})


@st.composite
def _taken(draw: Draw) -> Sample:
    shape = draw(shapes(1, 3, empty=False))
    axis, mode = axis_of(draw, len(shape)), draw(st.sampled_from(["clip", "wrap"]))
    indices = TensorSpec(draw(shapes(0, 2)), draw(st.sampled_from(["int32", "int64"])), 0, 5)
    return Sample((tensor(shape, draw(st.sampled_from(EVERY))), indices),
                  {"axis": axis, "mode": mode})  # fmt: skip


@st.composite
def _gathered(draw: Draw) -> Sample:
    shape = draw(shapes(1, 4, empty=False))
    axis = axis_of(draw, len(shape))
    lengths = list(shape)
    lengths[axis] = draw(st.integers(1, 3))
    indices = TensorSpec(tuple(lengths), "int64", 0, shape[axis] - 1)
    return Sample((tensor(shape, draw(st.sampled_from(EVERY))), indices), {"axis": axis})


@st.composite
def _summed(draw: Draw) -> Sample:
    shape = draw(shapes(1, 4))
    dtype = draw(st.sampled_from(("float32", "float64", "int32", "int64")))
    attrs = {"axis": axis_of(draw, len(shape)), "exclusive": draw(st.booleans())}
    return Sample((tensor(shape, dtype),), attrs)


OTHERS = {
    "where": where(),
    "cast": cast(),
    "concatenate": _joined(),
    "stack": _joined(stack=True),
    "take": _taken(),
    "gather": _gathered(),
    "cumsum": _summed(),
    **MOVING,
}
"""Operators with a strategy of their own."""


def accepted(definition: OpDef, operands: int) -> tuple[str, ...]:
    """Return the dtypes that the type relation of an operator takes."""
    from serde.errors import TypeInferenceError
    from serde.relay.ir.types import TensorType

    found = []
    attrs = {"a_min": -1.0, "a_max": 1.0} if definition.name == "clip" else {}
    for dtype in EVERY:
        try:
            definition.infer(*[TensorType((2,), dtype)] * operands, **definition.bind(attrs))
        except TypeInferenceError:
            continue
        found.append(dtype)
    return tuple(found)


def strategy_of(definition: OpDef) -> st.SearchStrategy[Sample] | None:
    """Return the strategy of an operator, derived from its declaration where it can be."""
    if definition.name in OTHERS:
        return OTHERS[definition.name]
    family = definition.kernel.__module__.removeprefix("serde.relay.op.")
    kinds = [operand.variadic for operand in definition.operands]
    if family in ("elementwise.unary", "elementwise.rounding", "elementwise.special"):
        return unary(definition.name, accepted(definition, 1))
    if family == "elementwise.binary":
        return binary(definition.name, accepted(definition, 2))
    if family in ("reduce.plain", "reduce.norm") and kinds == [False]:
        return reduction(definition.name, accepted(definition, 1))
    return None


__all__ = ["Array", "strategy_of"]
Array = np.ndarray
