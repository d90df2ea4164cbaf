"""Functions of two tensors that broadcast against each other, and the choice between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Sample, TensorType, Traits, ranges, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast, is_float, require_same_dtype
from serde.relay.ir.traits import (
    Arithmetic,
    Cases,
    Commutative,
    Discontinuous,
    Elementwise,
    InRange,
    Truth,
    UsuallyInRange,
)

Relation = Callable[[TensorType, TensorType], TensorType]


def _any(lhs: TensorType, rhs: TensorType) -> TensorType:
    dtype = require_same_dtype(lhs, rhs)
    return TensorType(broadcast(lhs.shape, rhs.shape), dtype)


def _number(lhs: TensorType, rhs: TensorType) -> TensorType:
    result = _any(lhs, rhs)
    if result.dtype == "bool":
        raise TypeInferenceError("expected tensors of numbers, found bool")
    return result


def _number_or_bit(lhs: TensorType, rhs: TensorType) -> TensorType:
    """Return the type of a result; bool is an integer of one bit, as in TVM."""
    return _any(lhs, rhs)


def _bits(lhs: TensorType, rhs: TensorType) -> TensorType:
    result = _any(lhs, rhs)
    if is_float(result.dtype):
        raise TypeInferenceError(f"expected tensors of integers, found {result.dtype}")
    return result


def _shift(lhs: TensorType, rhs: TensorType) -> TensorType:
    return _bits(lhs, _number(lhs, rhs))


def _compare(lhs: TensorType, rhs: TensorType) -> TensorType:
    return TensorType(_any(lhs, rhs).shape, "bool")


def _binary(
    name: str,
    function: Callable[[Array, Array], Array],
    doc: str,
    *,
    infer: Relation,
    samples: Sequence[Sample],
    traits: Traits = (),
) -> None:
    """Declare `function` as the elementwise operator `name`, which gives no warnings."""

    def kernel(lhs: Array, rhs: Array) -> Array:
        with np.errstate(all="ignore"):
            result = np.asarray(function(lhs, rhs))
        # NumPy computes most functions of integers of 4 bits in int8.
        return result if infer is _compare else result.astype(lhs.dtype, copy=False)

    kernel.__doc__ = doc
    relay_op(name, infer=infer, samples=samples, traits=(Elementwise, *traits))(kernel)


def _declare_each(
    *rows: tuple[str, Callable[[Array, Array], Array], str],
    infer: Relation,
    samples: Sequence[Sample],
    traits: Traits,
) -> None:
    """Declare operators that have all but name, function and documentation in common."""
    for name, function, doc in rows:
        _binary(name, function, doc, infer=infer, samples=samples, traits=traits)


def _of_bits(
    function: Callable[[Array, Array], Array], bits: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    """Return `function`, with another one for bool: sums and products modulo 2."""
    return lambda lhs, rhs: (bits if lhs.dtype == np.bool_ else function)(lhs, rhs)


def _truncated_quotient(lhs: Array, rhs: Array) -> Array:
    """Return the quotient rounded towards zero; integers stay exact."""
    if is_float(lhs.dtype.name):
        return np.trunc(lhs / rhs)
    return (lhs - np.fmod(lhs, rhs)) // rhs


def _divide(lhs: Array, rhs: Array) -> Array:
    return lhs / rhs if is_float(lhs.dtype.name) else _truncated_quotient(lhs, rhs)


def _power(lhs: Array, rhs: Array) -> Array:
    """Return `lhs` to the power `rhs`; an integer to a negative power is truncated."""
    if not lhs.dtype.name.startswith("int"):
        return np.power(lhs, rhs)
    odd = np.where(rhs % 2 == 0, 1, lhs)
    inverse = np.where(np.abs(lhs) == 1, odd, 0)
    result = np.where(rhs < 0, inverse, np.power(lhs, np.maximum(rhs, 0)))
    return result.astype(lhs.dtype, copy=False)


def _logical(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Return `function` with its result in the dtype of the operands."""
    return lambda lhs, rhs: function(lhs, rhs).astype(lhs.dtype, copy=False)


_INTS = sample(tensor((2, 3), "int32", low=-9, high=9), tensor((3,), "int32", low=1, high=4))
_NEGATIVE = sample(tensor((3,), "int64", low=-9, high=9), tensor((2, 1), "int64", low=-5, high=-1))
_FLOATS = [
    sample((2, 3), (2, 3)),
    sample((2, 3, 4), (3, 1)),
    sample((1, 3), tensor((), low=0.5)),
    sample(tensor((2,), "float16"), tensor((2,), "float16", low=0.5)),
]
_NUMBERS = [*_FLOATS, _INTS]
_QUOTIENTS = [*_FLOATS, _INTS, _NEGATIVE]
_POWERS = [
    sample(tensor((2, 3), low=0.1), (3,)),
    sample(tensor((4,), "int32", low=1, high=4), tensor((4,), "int32")),
    sample(tensor((4,), "uint8", low=0, high=3), tensor((), "uint8", low=0, high=3)),
]
_ORDERED = [
    sample((2, 3), (3,)),
    sample(tensor((2, 1, 4), "int64"), tensor((3, 1), "int64")),
    sample(tensor((4,), "bool"), tensor((4,), "bool")),
]
_BITS = [
    sample(tensor((2, 3), "int32", low=-9, high=9), tensor((3,), "int32", low=-9, high=9)),
    sample(tensor((2, 1), "bool"), tensor((3,), "bool")),
]
_TRUTHS = [
    sample(tensor((2, 3), "bool"), tensor((3,), "bool")),
    sample(tensor((4,), "int32"), tensor((), "int32")),
]
_SHIFTS = [
    sample(tensor((2, 3), "int32", low=-99, high=99), tensor((3,), "int32", low=0, high=5)),
    sample(tensor((4,), "uint8", low=0, high=255), tensor((), "uint8", low=0, high=5)),
]

_binary(
    "add",
    _of_bits(np.add, np.logical_xor),
    "``y = lhs + rhs``; of bool, modulo 2.",
    infer=_number_or_bit,
    samples=_NUMBERS,
    traits=(Commutative, Arithmetic),
)
_binary(
    "subtract",
    _of_bits(np.subtract, np.logical_xor),
    "``y = lhs - rhs``; of bool, modulo 2.",
    infer=_number_or_bit,
    samples=_NUMBERS,
    traits=(Arithmetic,),
)
_binary(
    "multiply",
    _of_bits(np.multiply, np.logical_and),
    "``y = lhs * rhs``.",
    infer=_number_or_bit,
    samples=_NUMBERS,
    traits=(Commutative, Arithmetic, UsuallyInRange(ranges.mask_factor)),
)
_binary(
    "divide",
    _of_bits(_divide, np.logical_and),
    "``y = lhs / rhs``; of integers, rounded towards zero.",
    infer=_number_or_bit,
    samples=_QUOTIENTS,
    traits=(Arithmetic(bounded=True), InRange(ranges.integer_divisor)),
)
_declare_each(
    ("floor_divide", np.floor_divide, "``y = floor(lhs / rhs)``."),
    ("trunc_divide", _truncated_quotient, "``y = trunc(lhs / rhs)``."),
    ("mod", np.fmod, "``y = lhs - trunc(lhs / rhs) * rhs``, as fmod in C."),
    ("trunc_mod", np.fmod, "``y = lhs - trunc(lhs / rhs) * rhs``, as fmod in C."),
    ("floor_mod", np.mod, "``y = lhs - floor(lhs / rhs) * rhs``, as % in Python."),
    infer=_number,
    samples=_QUOTIENTS,
    traits=(Discontinuous, Arithmetic(bounded=True), InRange(ranges.integer_divisor)),
)
_binary(
    "power",
    _power,
    "``y = lhs ** rhs``.",
    infer=_number,
    samples=_POWERS,
    traits=(Arithmetic, InRange(ranges.integer_powers, exact=False)),
)
_declare_each(
    ("maximum", np.maximum, "``y = max(lhs, rhs)``."),
    ("minimum", np.minimum, "``y = min(lhs, rhs)``."),
    infer=_any,
    samples=_ORDERED,
    traits=(Commutative, Cases("clip", ranges.either_operand)),
)
_declare_each(
    ("equal", np.equal, "``y = lhs == rhs``."),
    ("not_equal", np.not_equal, "``y = lhs != rhs``."),
    infer=_compare,
    samples=_ORDERED,
    traits=(Commutative, Truth, UsuallyInRange(ranges.compared_truths)),
)
_declare_each(
    ("less", np.less, "``y = lhs < rhs``."),
    ("less_equal", np.less_equal, "``y = lhs <= rhs``."),
    ("greater", np.greater, "``y = lhs > rhs``."),
    ("greater_equal", np.greater_equal, "``y = lhs >= rhs``."),
    infer=_compare,
    samples=_ORDERED,
    traits=(Truth, UsuallyInRange(ranges.compared_lengths)),
)
_declare_each(
    ("logical_and", _logical(np.logical_and), "``y = lhs and rhs``."),
    ("logical_or", _logical(np.logical_or), "``y = lhs or rhs``."),
    ("logical_xor", _logical(np.logical_xor), "``y = lhs xor rhs``, of truth values."),
    infer=_any,
    samples=_TRUTHS,
    traits=(Commutative, Truth, UsuallyInRange(ranges.truth_values)),
)
_declare_each(
    ("bitwise_and", np.bitwise_and, "``y = lhs & rhs``: bits set in both."),
    ("bitwise_or", np.bitwise_or, "Bits set in ``lhs`` or in ``rhs``, or in both."),
    ("bitwise_xor", np.bitwise_xor, "``y = lhs ^ rhs``: bits set in exactly one."),
    infer=_bits,
    samples=_BITS,
    traits=(Commutative,),
)
_binary(
    "left_shift",
    np.left_shift,
    "``y = lhs << rhs``.",
    infer=_shift,
    samples=_SHIFTS,
    traits=(Arithmetic, InRange(ranges.within(1, (0, 7)))),
)
_binary(
    "right_shift",
    np.right_shift,
    "``y = lhs >> rhs``; the sign is kept.",
    infer=_shift,
    samples=_SHIFTS,
    traits=(Arithmetic(bounded=True), InRange(ranges.within(1, (0, 7)))),
)


def _where_type(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    dtype = require_same_dtype(x, y)
    return TensorType(broadcast(condition.shape, x.shape, y.shape), dtype)


@relay_op(
    "where",
    traits=(Elementwise, UsuallyInRange(ranges.condition)),
    infer=_where_type,
    samples=[
        sample(tensor((2, 1), "bool"), (2, 3), (3,)),
        sample(tensor((), "bool"), tensor((2,), "int64"), tensor((2,), "int64")),
        sample(tensor((3,), "int32"), (2, 1), ()),
    ],
)
def where(condition: Array, x: Array, y: Array) -> Array:
    """``x if condition else y``; a number is true if it is not zero."""
    return np.where(condition != 0, x, y)
