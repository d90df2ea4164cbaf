"""What quantised integers stand for.

Source: bodies of the quantising fragments in the NNEF 1.0 specification.
"""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.model import Quantization
from serde.relay.ir import Constant, Expr, call, tensor_type

__all__ = ["LinearCodes", "MinMaxCodes", "linear_axis", "stored_values"]

_CODES = ("int8", "uint8", "int16", "uint16", "int32")


@dataclass(frozen=True)
class LinearCodes:
    """Codes of ``zero_point_linear_quantize``.

    Attributes:
        low: The least code.
        high: The greatest.
    """

    low: float
    high: float

    @classmethod
    def of(cls, bits: int, signed: bool, symmetric: bool) -> LinearCodes:
        """Return the codes of so many bits."""
        high = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
        if not signed:
            return cls(0.0, high)
        return cls(-high if symmetric else -high - 1.0, high)

    def dtype(self) -> str | None:
        """Return the integers that end where the codes end, or None."""
        for name in ("int8", "uint8", "int16", "uint16"):
            limits = np.iinfo(name)
            if self.high == limits.max and self.low in (limits.min, -limits.max):
                return name
        return None


@dataclass(frozen=True)
class MinMaxCodes:
    """Codes of ``min_max_linear_quantize``.

    Attributes:
        steps: How many steps lie between the least and the greatest.
        shift: The least one, negated.
    """

    steps: float
    shift: float

    @classmethod
    def of(cls, bits: int, signed: bool, symmetric: bool) -> MinMaxCodes:
        """Return the codes of so many bits."""
        steps = 2**bits - 1 - int(signed and symmetric)
        return cls(float(steps), float(2 ** (bits - 1) - int(symmetric) if signed else 0))


def linear_axis(*parameters: Array) -> int | None:
    """Return the one axis along which parameters change; None where there are several.

    It is 0 where they do not change.
    """
    found = {
        axis for each in parameters for axis, length in enumerate(each.shape) if length != 1
    } or {0}
    return found.pop() if len(found) == 1 else None


def stored_values(entry: Quantization | None, codes: Expr, scalar: str) -> Expr:
    """Return the values of a variable that is stored as quantised integers.

    Parameters of several values belong to the leading axes, as operands of fragments do.

    Args:
        entry: What graph.quant says of it.
        codes: The integers.
        scalar: The dtype of the values.

    Raises:
        Unsupported: Nothing tells what the integers mean.
    """
    if entry is None:
        raise Unsupported(
            "its data are quantised integers, and nothing tells what they stand for",
            hint="name its quantisation in graph.quant",
        )
    given = entry.attributes
    if entry.op == "zero_point_linear_quantize":
        return _dequantize_linear(codes, given, scalar)
    if entry.op in ("min_max_linear_quantize", "linear_quantize"):
        return _dequantize_min_max(codes, given, scalar)
    raise Unsupported(f"the specification does not say how codes of {entry.op} are stored")


def _dequantize_linear(codes: Expr, given: AnyValue, scalar: str) -> Expr:
    type_ = tensor_type(codes)
    zero, scale = (np.asarray(given[name]) for name in ("zero_point", "scale"))
    axis = linear_axis(zero, scale)
    if axis is not None and type_.dtype in _CODES and scalar == "float32":
        limits = np.iinfo(type_.dtype)
        if limits.min <= zero.min() and zero.max() <= limits.max:
            shape = np.broadcast_shapes(zero.shape, scale.shape)
            flat = () if np.prod(shape) == 1 else (-1,)
            return call(
                "serde.dequantize_linear",
                codes,
                Constant(np.broadcast_to(scale.astype(np.float32), shape).reshape(flat)),
                Constant(np.broadcast_to(zero.astype(type_.dtype), shape).reshape(flat)),
                axis=axis,
            )
    level = relay.cast(codes, scalar)
    return relay.multiply(
        relay.subtract(level, _parameter(zero, type_.rank, scalar)),
        _parameter(scale, type_.rank, scalar),
    )


def _dequantize_min_max(codes: Expr, given: AnyValue, scalar: str) -> Expr:
    kind = MinMaxCodes.of(given["bits"], given.get("signed", False), given.get("symmetric", False))
    rank = tensor_type(codes).rank
    low, high = (_parameter(np.asarray(given[name]), rank, scalar) for name in ("min", "max"))
    step = relay.add(relay.cast(codes, scalar), relay.const(kind.shift, scalar))
    part = relay.divide(step, relay.const(kind.steps, scalar))
    return relay.add(relay.multiply(part, relay.subtract(high, low)), low)


def _parameter(values: Array, rank: int, scalar: str) -> Expr:
    """Return a parameter of the leading axes as a tensor that broadcasts."""
    shape = (*values.shape, *[1] * (rank - values.ndim if values.ndim else 0))
    return Constant(values.astype(numpy_dtype(scalar)).reshape(shape))
