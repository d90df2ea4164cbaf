"""Rounding with ties to the even neighbour."""

from __future__ import annotations

import numpy as np

from serde.relay.ir import Expr, const, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample
from serde.relay.ir.shapes import float_type
from serde.relay.ir.traits import Discontinuous, Elementwise, SameType, Values

__all__ = ["round_even_of"]


def round_even_of(data: Expr) -> Expr:
    """Return `data` rounded to the nearest integer, halves to even, in plain Relay.

    Relay rounds a half away from zero. Of a half the even neighbour is twice the rounded half
    of it, for that one ends in a quarter or three quarters and is never a tie itself.
    """
    type_ = tensor_type(data)
    half = const(0.5, type_.dtype)
    rest = call("abs", call("subtract", data, call("trunc", data)))
    even = call("round", call("multiply", data, half))
    even = call("multiply", even, const(2.0, type_.dtype))
    return call("where", call("equal", rest, half), even, call("round", data))


_TIES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 1.4, -1.6, 8388609.0, np.inf])


@relay_op(
    "serde.round_even",
    traits=(Elementwise, SameType, Values(0), Discontinuous),
    infer=float_type,
    decompose=round_even_of,
    samples=[
        sample((2, 3)),
        sample(_TIES.astype(np.float32)),
        sample(_TIES[:6].astype(np.float64)),
        sample(_TIES[:6].astype(np.float16)),
    ],
)
def round_even(data: Array) -> Array:
    """``y = rint(x)``: the nearest integer, of two as near the even one (IEEE 754's default)."""
    return np.rint(widen(data)).astype(data.dtype, copy=False)
