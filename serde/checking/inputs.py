"""Seeded inputs for a check, within the ranges that the model can take.

Floats are drawn from the standard normal distribution, the scale of
normalised images. Integers, and floats that serve as indices or lengths (MXNet
has those as float32), are whole numbers of the range their consumers allow: an
index lies within its axis, a length between 1 and its axis. The pixels of an input that is an
image, as far as the model's facts say so, are those of eight bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import CheckError, OptionError
from serde.relay.dims import Dim, SymDim, substitute
from serde.relay.expr import Call, Constant, Expr, If, Let, Tuple, TupleGetItem, Var
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.types import TensorType
from serde.relay.visit import post_order
from serde.weights import Array, numpy_dtype

__all__ = ["input_ranges", "random_inputs", "resolve_dims"]

Range = tuple[int, int]

PIXELS = (0, 255)
"""Range of the pixels of an image."""

BATCH_LENGTH = 2
"""Length of a dynamic first axis: the least at which mixed-up batch entries show."""

OTHER_LENGTH = 64
"""Length of other dynamic axes: enough for the windows and strides of usual nets."""

_UNLIMITED = {
    "int2": (-2, 1),
    "int4": (-8, 7),
    "int8": (-128, 127),
    "uint2": (0, 3),
    "uint4": (0, 15),
    "uint8": (0, 255),
}
"""Range of integers that no consumer limits; 0 to 99 for the dtypes not named."""

_EXACT = {
    "bfloat16": 2**8,
    "float16": 2**11,
    "int16": 2**15 - 1,
    **{dtype: high for dtype, (_low, high) in _UNLIMITED.items()},
}
"""Greatest whole number up to which a narrow dtype holds all."""

_PASSED_ON = frozenset(
    {
        "annotation.stop_fusion", "broadcast_to", "broadcast_to_like", "cast", "cast_like", "ceil",
        "concatenate", "copy", "expand_dims", "floor", "layout_transform", "on_device", "repeat",
        "reshape", "reshape_like", "reverse", "round", "slice_like", "split", "squeeze", "stack",
        "strided_slice", "tile", "transpose", "trunc", "nn.batch_flatten",
    }
)  # fmt: skip
"""Operators whose results are values of their first operand."""


def resolve_dims(model: RelayModel, dims: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a length for every symbol in the shapes of the inputs.

    A symbol that is not given is 2 where it is the first axis of an input and 64 elsewhere.

    Raises:
        OptionError: `dims` names no symbol of the model, or a length is below 1.
    """
    given = dict(dims or {})
    lengths: dict[str, int] = {}
    for variable in model.inputs():
        for axis, dim in enumerate(_input_type(variable).shape):
            for name in sorted(dim.symbols()) if isinstance(dim, SymDim) else ():
                default = BATCH_LENGTH if axis == 0 else OTHER_LENGTH
                lengths.setdefault(name, given.get(name, default))
    unknown = sorted(set(given) - set(lengths))
    if unknown:
        known = ", ".join(lengths) or "none"
        raise OptionError(f"no dynamic dimension is called {unknown[0]} (there are: {known})")
    for name, length in lengths.items():
        if length < 1:
            raise OptionError(f"dynamic dimension {name}: expected 1 or more, found {length}")
    return lengths


def random_inputs(
    model: RelayModel,
    *,
    seed: int | Sequence[int],
    lengths: Mapping[str, int],
    float16: bool = False,
) -> dict[str, Array]:
    """Return a value for each input of a model; equal seeds give equal values.

    Args:
        model: The model.
        seed: Seed of NumPy's default generator.
        lengths: Length of each symbol, as :func:`resolve_dims` gives them. A dimension
            without a name has length 2 as first axis, 64 as another.
        float16: Whether float32 values are rounded to what float16 holds.

    Raises:
        CheckError: An input has no tensor type.
    """
    generator = np.random.default_rng(seed)
    ranges = input_ranges(model, lengths)
    values = {}
    for variable in model.inputs():
        type_ = _input_type(variable)
        shape = _lengths_of(type_.shape, lengths)
        value = _draw(generator, shape, type_.dtype, ranges.get(variable.name_hint))
        if float16 and type_.dtype == "float32":
            value = value.astype(np.float16).astype(np.float32)
        values[variable.name_hint] = value
    return values


def input_ranges(model: RelayModel, lengths: Mapping[str, int]) -> dict[str, Range]:
    """Return the least and greatest value of each input that is an index, a length or an image.

    Consumers are found through operators that keep values (casts, reshapes,
    slices, ...), tuples, lets, ifs and the addition of a constant, with one walk
    over ``main``; calls of other functions are not looked into.
    """
    order = post_order(model.main)
    binders: dict[Expr, list[Var]] = {}
    for node in order:
        if isinstance(node, Let):
            binders.setdefault(node.value, []).append(node.var)
    wanted: dict[Expr, Range] = {}
    for node in reversed(order):
        for variable in binders.get(node, ()):
            _narrow(wanted, node, wanted.get(variable))
        for operand, bounds in _demands(node, lengths):
            _narrow(wanted, operand, bounds)
        if node in wanted:
            for source, shift in _sources(node):
                low, high = wanted[node]
                _narrow(wanted, source, (low + shift, high + shift))
    facts = model.meta.extra
    for variable in model.inputs():
        space = facts.get(f"{variable.name_hint}.color_space", "FLOAT16")
        _narrow(wanted, variable, None if "FLOAT16" in space else PIXELS)
    return {v.name_hint: wanted[v] for v in model.inputs() if v in wanted}


def _narrow(wanted: dict[Expr, Range], node: Expr, bounds: Range | None) -> None:
    if bounds is None:
        return
    low, high = wanted.get(node, bounds)
    wanted[node] = (max(low, bounds[0]), min(high, bounds[1]))


def _sources(node: Expr) -> Iterable[tuple[Expr, int]]:
    """Yield the expressions whose values are the node's, but for the integer they exceed it by."""
    if isinstance(node, TupleGetItem):
        value = node.tuple_value
        return [(value.fields[node.index] if isinstance(value, Tuple) else value, 0)]
    if isinstance(node, Tuple):
        return [(field, 0) for field in node.fields]
    if isinstance(node, If):
        return [(node.true_branch, 0), (node.false_branch, 0)]
    if isinstance(node, Let):
        return [(node.body, 0)]
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return []
    if node.op.name in _PASSED_ON:
        return [(node.args[0], 0)]
    if node.op.name == "where":
        return [(node.args[1], 0), (node.args[2], 0)]
    if node.op.name in ("add", "subtract") and isinstance(node.args[1], Constant):
        offset = node.args[1].data
        if offset.size == 1 and float(offset.reshape(())) == int(offset.reshape(())):
            shift = int(offset.reshape(()))
            return [(node.args[0], -shift if node.op.name == "add" else shift)]
    return []


def _demands(node: Expr, lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
    """Return the operands of a call that are indices or lengths, with what they may be."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return []
    find = _CONSUMERS.get(node.op.name)
    return [] if find is None else find(node, lengths)


def _shape(node: Expr, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an operand; a length that is not known counts as 1, the safe bound."""
    type_ = node.type
    return _lengths_of(type_.shape, lengths, unknown=1) if isinstance(type_, TensorType) else ()


def _along(operand: int, attribute: str, *, least: int) -> AnyValue:
    """Return a rule: `operand` counts along an axis of operand 0 that an attribute names."""

    def find(node: Call, lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
        shape = _shape(node.args[0], lengths)
        axis = node.attrs[attribute]
        length = int(np.prod(shape)) if axis is None or not shape else shape[axis]
        return [(node.args[operand], (least, length if least else length - 1))]

    return find


def _coordinates(node: Call, lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
    """``gather_nd`` and ``scatter_nd``: the first axis of the indices counts axes of the data."""
    shape = _shape(node.args[0], lengths)
    first = node.attrs.get("batch_dims", 0)
    rank = (_shape(node.args[1], lengths) or (1,))[0]
    axes = shape[first : first + rank]
    return [(node.args[1], (0, min(axes) - 1))] if axes else []


def _one_hot(node: Call, _lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
    return [(node.args[0], (0, int(node.attrs["depth"]) - 1))]


def _advanced(node: Call, lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
    fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
    shape = _shape(fields[0], lengths) if fields else ()
    return [(index, (0, length - 1)) for index, length in zip(fields[1:], shape, strict=False)]


def _unravel(node: Call, _lengths: Mapping[str, int]) -> list[tuple[Expr, Range]]:
    shape = node.args[1]
    if not isinstance(shape, Constant):
        return []
    return [(node.args[0], (0, int(np.prod(shape.data)) - 1))]


_CONSUMERS: Mapping[str, Callable[[Call, Mapping[str, int]], list[tuple[Expr, Range]]]] = {
    "adv_index": _advanced,
    "gather": _along(1, "axis", least=0),
    "gather_nd": _coordinates,
    "one_hot": _one_hot,
    "reverse_sequence": _along(1, "seq_axis", least=1),
    "scatter_elements": _along(1, "axis", least=0),
    "scatter_nd": _coordinates,
    "sequence_mask": _along(1, "axis", least=1),
    "take": _along(1, "axis", least=0),
    "unravel_index": _unravel,
}
"""Operators with an operand of indices or lengths, and how its range is found."""


def _draw(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: str, bounds: Range | None
) -> Array:
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    whole = dtype.lstrip("u").startswith("int")
    if bounds is None and not whole:
        return np.asarray(generator.standard_normal(shape)).astype(kind)
    low, high = bounds if bounds is not None else _UNLIMITED.get(dtype, (0, 99))
    high = min(high, _EXACT.get(dtype, high))
    return np.asarray(generator.integers(low, max(low, high), shape, endpoint=True)).astype(kind)


def _input_type(variable: Var) -> TensorType:
    if isinstance(variable.type, TensorType):
        return variable.type
    raise CheckError(f"input {variable.name_hint}: expected a tensor, found {variable.type!r}")


def _lengths_of(
    shape: Sequence[Dim], lengths: Mapping[str, int], unknown: int | None = None
) -> tuple[int, ...]:
    found = []
    for axis, dim in enumerate(shape):
        length = substitute(dim, lengths)
        default = BATCH_LENGTH if axis == 0 else OTHER_LENGTH
        found.append(length if isinstance(length, int) else default if unknown is None else unknown)
    return tuple(found)
