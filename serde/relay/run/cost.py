"""What it costs to evaluate a call, told by types before anything is computed."""

from __future__ import annotations

from math import prod
from typing import Final

from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, TensorType, TupleType, Type, Work, trait_of
from serde.relay.ir.work import elements

__all__ = ["STEP_WORK", "fixed_bytes", "temporary_bytes", "work"]


def fixed_bytes(type_: Type | None) -> int | None:
    """Return the bytes of a value; None where its type does not tell."""
    if isinstance(type_, TupleType):
        sizes = [fixed_bytes(field) for field in type_.fields]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        return None
    return prod(type_.concrete_shape) * numpy_dtype(type_.dtype).itemsize


_TEMPORARIES: Final = 16
"""Bytes that a kernel holds meanwhile for each element: two arrays of float64."""


def temporary_bytes(call: Call) -> int:
    """Return the bytes that a kernel may hold besides its operands and result while it runs."""
    return _TEMPORARIES * max(
        elements(type_) for type_ in (call.type, *(a.type for a in call.args))
    )


STEP_WORK: Final = 1000
"""What it takes to run any operator once, as a number of elements."""


def work(call: Call) -> int:
    """Return the elements that a call of fixed types computes or reads, whichever are more.

    An operator that computes more than its result and its operands have says so by
    :class:`~serde.relay.ir.traits.Work`.
    """
    plain = max(elements(type_) for type_ in (call.type, *(arg.type for arg in call.args)))
    trait = trait_of(call, Work)
    return STEP_WORK + (plain if trait is None else max(plain, trait.count(call)))
