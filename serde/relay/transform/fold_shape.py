"""Evaluation of shape arithmetic, symbols included, and static forms of what reads it.

A small integer tensor is followed as an array of dimensions. Where all of them
are integers the tensor becomes a constant; where they are symbols, an
operator that reads a shape takes them as its attribute instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import RelayError
from serde.relay.ir import Any, Dim, FloorDiv, Moves, OpDef, SymDim, call, get
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from serde.relay.ir.types import TensorType, TupleType, Type, accepts
from serde.relay.ir.visit import has_kind, post_order, rewrite
from serde.relay.run.interpreter import apply_kernel
from serde.relay.transform.base import FunctionPass

__all__ = ["MAX_VALUES", "FoldShape", "ShapeFolder", "shape_value", "static_form"]

MAX_VALUES = 1024
"""A tensor of more elements is not taken for shape arithmetic."""

DimArray = np.ndarray[AnyValue, np.dtype[AnyValue]]
Values = dict[Expr, DimArray]

_FIXED: dict[str, Callable[[AnyValue, AnyValue], AnyValue]] = {
    "floor_mod": operator.mod,
    "maximum": max,
    "minimum": min,
    "mod": lambda a, b: int(np.fmod(a, b)),
}
"""Operators followed on integers alone."""

_ORDERS: dict[str, tuple[int, ...]] = {
    "equal": (0,),
    "greater": (1,),
    "greater_equal": (0, 1),
    "less": (-1,),
    "less_equal": (-1, 0),
    "not_equal": (-1, 1),
}
"""For each comparison the signs of the difference for which it holds."""

_LOGIC: dict[str, Callable[..., AnyValue]] = {
    "logical_and": lambda a, b: a & b,
    "logical_not": lambda a: 1 - a,
    "logical_or": lambda a, b: a | b,
    "logical_xor": lambda a, b: a ^ b,
}
"""Operators on truth values, which are 1 and 0 here."""

_STATIC: dict[str, tuple[str, dict[str, str]]] = {
    "dyn.broadcast_to": ("broadcast_to", {"shape": "shape"}),
    "dyn.expand_dims": ("expand_dims", {"axis": "axis"}),
    "dyn.full": ("full", {"shape": "shape"}),
    "dyn.image.resize2d": ("image.resize2d", {"size": "size", "roi": "roi"}),
    "dyn.nn.pad": ("nn.pad", {"pad_width": "pad_width"}),
    "dyn.nn.upsampling": ("nn.upsampling", {"scale_h": "scale_h", "scale_w": "scale_w"}),
    "dyn.nn.upsampling3d": (
        "nn.upsampling3d",
        {"scale_d": "scale_d", "scale_h": "scale_h", "scale_w": "scale_w"},
    ),
    "dyn.one_hot": ("one_hot", {"depth": "depth"}),
    "dyn.ones": ("ones", {"shape": "shape"}),
    "dyn.reshape": ("reshape", {"newshape": "newshape"}),
    "dyn.sparse_to_dense": ("sparse_to_dense", {"output_shape": "output_shape"}),
    "dyn.squeeze": ("squeeze", {"axes": "axis"}),
    "dyn.strided_slice": ("strided_slice", {"begin": "begin", "end": "end", "strides": "strides"}),
    "dyn.tile": ("tile", {"reps": "reps"}),
    "dyn.topk": ("topk", {"k": "k"}),
    "dyn.zeros": ("zeros", {"shape": "shape"}),
}
"""For each dynamic operator its static form, and the attribute that each operand becomes."""


_OF_ONE = frozenset([
    "dyn.expand_dims", "dyn.nn.upsampling", "dyn.nn.upsampling3d", "dyn.one_hot", "dyn.topk",
])  # fmt: skip
"""Dynamic operators whose operand stands for a number and may be a vector of one."""


_LIKE = ("broadcast_to_like", "reshape_like", "slice_like")
"""Operators that take their result's shape from that of an operand."""

_INTEGERS = ("int", "uint", "bool")
"""What the dtypes of tensors begin with that are followed."""


class FoldShape(FunctionPass):
    """Make shape arithmetic constants, and operators that read shapes static.

    ``reshape_like``, ``broadcast_to_like`` and ``slice_like`` take their result's shape as an
    attribute where it is known by integers and symbols; so does every ``dyn.`` operator whose
    shape operand is known.
    """

    name: ClassVar[str] = "FoldShape"

    def concerns(self, function: Function) -> bool:
        """Whether there is an operator that reads a shape, or a tensor of integers or flags."""
        return has_kind(function, *_LIKE, *_STATIC) or any(
            isinstance(node.type, TensorType) and node.type.dtype.startswith(_INTEGERS)
            for node in post_order(function)
        )

    def transform(self, function: Function) -> Function:
        """Follow shapes bottom-up."""
        folder = ShapeFolder()
        result = rewrite(function, lambda _node, new: folder.fold(new))
        if not isinstance(result, Function) or result is function:
            return function
        if result.body.type in (None, result.ret_type) or result.ret_type is None:
            return result
        return result.evolve(ret_type=result.body.type)


class ShapeFolder:
    """Follows shape arithmetic node by node, children first."""

    def __init__(self) -> None:
        self._values: Values = {}

    def fold(self, node: Expr) -> Expr:
        """Return what stands for a node whose children are folded."""
        new = _static(node, self._values)
        known = _value(new, self._values)
        if known is None:
            return new
        constant = _as_constant(new, known)
        self._values[new] = self._values[constant] = known
        return constant

    def value(self, node: Expr) -> DimArray | None:
        """Return the dimensions that an integer tensor holds; None where they are not known."""
        return _look_up(node, self._values)

    def note(self, node: Expr, data: AnyValue) -> None:
        """Let an integer tensor, such as a weight, be known to hold `data`."""
        self._values[node] = _objects(data)


def shape_value(expr: Expr) -> tuple[Dim, ...] | None:
    """Return the elements of an integer vector as dimensions, or None where they are unknown.

    One element that is not known is an anonymous dimension.
    """
    values: Values = {}

    def note(_node: Expr, new: Expr) -> Expr:
        known = _value(new, values)
        if known is not None:
            values[new] = known
        return new

    result = values.get(rewrite(expr, note))
    return None if result is None else tuple(result.reshape(-1))


def _as_constant(node: Expr, known: DimArray) -> Expr:
    if isinstance(node, Constant) or not all(type(item) is int for item in known.flat):
        return node
    if not isinstance(node.type, TensorType):
        return node
    data = np.array(known.tolist(), dtype=numpy_dtype(node.type.dtype)).reshape(known.shape)
    return Constant(data, node.span)


def _value(node: Expr, values: Values) -> DimArray | None:
    """Return the dimensions that an integer tensor holds, given those below it."""
    if not _is_small_integer(node.type):
        return None
    if node in values or isinstance(node, Constant):
        return _look_up(node, values)
    if isinstance(node, TupleGetItem):
        return _split_field(node, values)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return None
    try:
        result = _call_value(node, node.op, values)
    except (ArithmeticError, ValueError, IndexError, TypeError, RelayError):
        return None
    if result is None or not isinstance(node.type, TensorType):
        return None
    low, high = _limits(node.type.dtype)
    whole = [item for item in result.flat if type(item) is int]
    return result if all(low <= item <= high for item in whole) else None


def _limits(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (
        (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
    )


def _look_up(node: Expr, values: Values) -> DimArray | None:
    """Return what was found for `node` already."""
    if isinstance(node, Constant) and node not in values and _is_small_integer(node.type):
        values[node] = _objects(node.data)
    return values.get(node)


def _is_small_integer(type_: Type | None) -> bool:
    if not isinstance(type_, TensorType):
        return False
    if not type_.dtype.startswith(_INTEGERS):
        return False
    # A tensor without elements may have long axes, which Python's lists would hold.
    shape = type_.concrete_shape
    return shape is not None and math.prod(max(length, 1) for length in shape) <= MAX_VALUES


def _objects(items: AnyValue) -> DimArray:
    data = np.asarray(items)
    result = np.empty(data.shape, object)
    result.reshape(-1)[:] = [int(item) for item in data.reshape(-1)]
    return result


def _call_value(node: Call, definition: OpDef, values: Values) -> DimArray | None:
    """Return the small integers that a call yields, over symbols; None if unknown."""
    name = definition.name
    if name in ("shape_of", "ndarray_size"):
        source = node.args[0].type
        if not isinstance(source, TensorType):
            return None
        return _dims(source.shape) if name == "shape_of" else _dims([source.size]).reshape(())
    if definition.has(Moves):
        return _rearrange(node, definition, values)
    operands = [_look_up(argument, values) for argument in node.args]
    known = [operand for operand in operands if operand is not None]
    if len(known) != len(operands) or not known:
        return None
    if name == "cast":
        # As a truth value, what is not zero becomes 1.
        if isinstance(node.type, TensorType) and node.type.dtype != "bool":
            return known[0]
        return _compare(known[0], _dims([0]).reshape(()), "not_equal")
    if name in _ORDERS:
        return _compare(known[0], known[1], name)
    if name in _LOGIC:
        return _combine_truths(known, name)
    if name == "where":
        return _select(*known)
    if name in ("add", "subtract", "multiply"):
        ufunc = getattr(np, name)
        return _array(ufunc(known[0], known[1]))
    if name in ("floor_divide", "divide"):
        return _quotient(known[0], known[1], floor=name == "floor_divide")
    if name in _FIXED and all(type(item) is int for value in known for item in value.flat):
        return _array(np.frompyfunc(_FIXED[name], 2, 1)(known[0], known[1]))
    if name in ("prod", "sum") and _reduces_all(node, known[0].ndim):
        fold = operator.mul if name == "prod" else operator.add
        total = reduce(fold, known[0].reshape(-1), int(name == "prod"))
        return _dims([total]).reshape((1,) * known[0].ndim if node.attrs["keepdims"] else ())
    return None


def _combine_truths(operands: Sequence[DimArray], name: str) -> DimArray | None:
    """Return 1 and 0; numbers that are not zero are true."""
    zero = _dims([0]).reshape(())
    truths = [_compare(operand, zero, "not_equal") for operand in operands]
    known = [truth for truth in truths if truth is not None]
    if len(known) < len(truths):
        return None
    return _array(np.frompyfunc(_LOGIC[name], len(known), 1)(*known))


def _reduces_all(node: Call, rank: int) -> bool:
    axes = node.attrs["axis"]
    if node.attrs["exclude"]:
        return False
    return axes is None or {axis % rank for axis in axes} == set(range(rank))


def _compare(left: DimArray, right: DimArray, name: str) -> DimArray | None:
    """Return 1 and 0; None where a symbol decides. No length is negative."""
    pairs = np.broadcast(left, right)
    found = []
    for a, b in pairs:
        signs = _signs(a, b)
        held = {sign in _ORDERS[name] for sign in signs}
        if len(held) != 1:
            return None
        found.append(int(held.pop()))
    return _dims(found).reshape(pairs.shape)


def _signs(a: Dim, b: Dim) -> tuple[int, ...]:
    """Return the signs that the difference of two dimensions may have."""
    difference = a - b
    if isinstance(difference, Any):
        return (-1, 0, 1)
    if not isinstance(difference, SymDim):
        return (-1,) if difference < 0 else (int(difference > 0),)
    constant = sum(count for monomial, count in difference.terms if not monomial)
    counts = [count for monomial, count in difference.terms if monomial]
    atoms = [atom for monomial, _ in difference.terms for atom, _ in monomial]
    if any(_is_negative_quotient(atom) for atom in atoms):
        return (-1, 0, 1)
    if all(count > 0 for count in counts) and constant >= 0:
        return (1,) if constant else (0, 1)
    if all(count < 0 for count in counts) and constant <= 0:
        return (-1,) if constant else (-1, 0)
    return (-1, 0, 1)


def _is_negative_quotient(atom: str | FloorDiv) -> bool:
    """Whether a part of a dimension may be below 0, as the floor of ``(n - 5) / 2``."""
    if isinstance(atom, str):
        return False
    return any(map(_may_be_negative, (atom.numerator, atom.denominator)))


def _select(condition: DimArray, left: DimArray, right: DimArray) -> DimArray | None:
    """Return what truth values choose; None where one is not known."""
    if any(type(which) is not int for which in condition.flat):
        return None
    items = [b if which else c for which, b, c in np.broadcast(condition, left, right)]
    return _dims(items).reshape(np.broadcast_shapes(condition.shape, left.shape, right.shape))


def _dims(items: Sequence[Dim]) -> DimArray:
    result = np.empty(len(items), object)
    result[:] = list(items)
    return result


def _array(value: AnyValue) -> DimArray:
    """Return what a NumPy function of objects gave; a single one comes without its array."""
    return value if isinstance(value, np.ndarray) else _dims([value]).reshape(())


def _quotient(left: DimArray, right: DimArray, *, floor: bool) -> DimArray | None:
    """Return quotients; one rounded towards zero only where no part can be negative."""
    parts = [*left.flat, *right.flat]
    if any(type(item) is int and item == 0 for item in right.flat):
        return None
    if not floor and any(_may_be_negative(part) for part in parts):
        return None
    return _array(np.floor_divide(left, right))


def _may_be_negative(dim: Dim) -> bool:
    if isinstance(dim, SymDim):
        return any(coefficient < 0 for _, coefficient in dim.terms)
    return not isinstance(dim, Any) and dim < 0


def _rearrange(node: Call, definition: OpDef, values: Values) -> DimArray | None:
    """Run the kernel on positions of elements in place of the elements."""
    pool: list[Dim] = []
    first = node.args[0]
    parts = first.fields if isinstance(first, Tuple) else (first,)
    numbered = []
    for part in parts:
        known = _look_up(part, values)
        if known is None:
            known = _unknown(part) if isinstance(first, Tuple) else None
        if known is None:
            return None
        start = len(pool)
        pool.extend(known.reshape(-1))
        numbered.append(np.arange(start, len(pool)).reshape(known.shape))
    args: list[AnyValue] = [tuple(numbered) if isinstance(first, Tuple) else numbered[0]]
    for argument in node.args[1:]:
        where = _look_up(argument, values)
        if where is None:
            return None
        args.append(where.astype(np.int64))
    moved = apply_kernel(definition, args, node.attrs)
    return _dims([pool[int(number)] for number in moved.reshape(-1)]).reshape(moved.shape)


def _unknown(part: Expr) -> DimArray | None:
    """Return a tensor of integers beside others, of which nothing is known but its shape."""
    if not _is_small_integer(part.type) or not isinstance(part.type, TensorType):
        return None
    shape = part.type.concrete_shape or ()
    return _dims([Any()] * math.prod(shape)).reshape(shape)


def _split_field(node: TupleGetItem, values: Values) -> DimArray | None:
    split = node.tuple_value
    if not isinstance(split, Call) or not isinstance(split.op, OpDef) or split.op.name != "split":
        return None
    known = _look_up(split.args[0], values)
    if known is None or not isinstance(split.type, TupleType):
        return None
    numbers = np.arange(known.size).reshape(known.shape)
    field = apply_kernel(split.op, [numbers], split.attrs)[node.index]
    flat = known.reshape(-1)
    return _dims([flat[int(number)] for number in field.reshape(-1)]).reshape(field.shape)


def _static(node: Expr, values: Values) -> Expr:
    """Return the static form of a call that reads a shape, or the node as it is."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    try:
        found = _like(node, node.op.name) or _undynamic(node, node.op, values)
    except RelayError:
        return node
    if found is None or found.type is None or node.type is None:
        return node
    return found if accepts(node.type, found.type) else node


def _like(node: Call, name: str) -> Call | None:
    type_ = node.type
    if not name.endswith("_like") or not isinstance(type_, TensorType):
        return None
    if any(isinstance(dim, Any) for dim in type_.shape):
        return None
    data = node.args[0] if node.args else None
    if name == "reshape_like" and 0 not in type_.shape:
        return call("reshape", data, newshape=type_.shape, span=node.span)
    if name == "broadcast_to_like":
        return call("broadcast_to", data, shape=type_.shape, span=node.span)
    if name == "slice_like" and type_.concrete_shape is not None:
        count = type_.rank
        return call(
            "strided_slice", data, begin=(0,) * count, end=type_.concrete_shape,
            strides=(1,) * count, axes=None, span=node.span,
        )  # fmt: skip
    return None


def static_form(node: Call) -> Call | None:
    """Return the static form of a call that reads its shape from constants; None if there is none.

    Raises:
        RelayError: The constants are none that the static form takes.
    """
    return _undynamic(node, node.op, {}) if isinstance(node.op, OpDef) else None


def _undynamic(node: Call, definition: OpDef, values: Values) -> Call | None:
    found = _STATIC.get(definition.name)
    if found is None:
        return None
    name, becomes = found
    static = get(name)
    attrs: dict[str, AnyValue] = {
        key: value for key, value in node.attrs.items() if key in static.attributes
    }
    operands: list[Expr] = []
    for operand, argument in zip(definition.operands, node.args, strict=True):
        if operand.name not in becomes:
            operands.append(argument)
            continue
        value = _attribute(argument, values)
        if value is None:
            return None
        if definition.name in _OF_ONE and isinstance(value, tuple):
            (value,) = value
        if operand.name == "size":
            value = tuple(map(_whole, value))
        attrs[becomes[operand.name]] = value
    return call(name, *operands, span=node.span, **attrs)


def _whole(number: AnyValue) -> AnyValue:
    """Return a float that is an integer as one; anything else as it is."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _attribute(argument: Expr, values: Values) -> AnyValue:
    """Return an operand's value in the form of an attribute: a number or nested tuples."""
    if isinstance(argument, Constant) and argument.data.dtype.kind == "f":
        return _tuples(argument.data.tolist())
    known = _look_up(argument, values)
    if known is None or any(isinstance(item, Any) for item in known.flat):
        return None
    return _tuples(known.tolist())


def _tuples(value: AnyValue) -> AnyValue:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
