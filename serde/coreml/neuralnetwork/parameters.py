"""The weights of NeuralNetworks: places in the file, and what is computed of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.coreml.neuralnetwork.parts import Part
from serde.errors import FormatError
from serde.io.packed import HighFirstWeight
from serde.relay.ir.expr import Expr
from serde.weights import ArrayWeight, Weight

__all__ = ["read_parameter", "stored"]

Make = Callable[[Weight, str], Expr]


def stored(part: Part, arrays: dict[str, Weight], source: str | None) -> Weight | None:
    """Return the values of a ``WeightParams`` as they lie in the file; None where it has none."""
    found = arrays.get(part.path)
    if found is not None:
        return found
    message = part.message
    if len(message.floatValue):
        return ArrayWeight(np.array(message.floatValue, np.float32))
    for field, dtype in (
        ("float16Value", "float16"),
        ("rawValue", "uint8"),
        ("int8RawValue", "int8"),
    ):
        raw = getattr(message, field)
        if not raw:
            continue
        if len(raw) % np.dtype(dtype).itemsize:
            raise FormatError(
                f"{part.path}: {len(raw)} bytes are no values of {dtype}", path=source
            )
        return ArrayWeight(np.frombuffer(raw, dtype))
    return None


def read_parameter(
    part: Part,
    shape: tuple[int, ...],
    arrays: dict[str, Weight],
    source: str | None,
    make: Make,
    *,
    axis: int = 0,
) -> Expr:
    """Return the values of a ``WeightParams`` as a tensor of float32.

    Args:
        part: The message.
        shape: Lengths of the axes.
        arrays: Large values of the model by the path of their message.
        source: The file, for messages.
        make: Returns what stands in the graph for a weight.
        axis: The axis that scales of more than one element go along.

    Raises:
        FormatError: The values do not fill the shape.
    """
    weight = stored(part, arrays, source)
    size = math.prod(shape)
    if weight is None:
        weight = ArrayWeight(np.zeros(0, np.float32))
    if not part.message.HasField("quantization"):
        if weight.dtype in ("uint8", "int8") or weight.size != size:
            raise _fault(part, weight, shape, source)
        values = make(weight.reshaped(shape), part.path)
        return values if weight.dtype == "float32" else relay.cast(values, "float32")
    quantization = part.message.quantization
    bits = quantization.numberOfBits
    if not 1 <= bits <= 8 or weight.dtype not in ("uint8", "int8"):
        raise FormatError(f"{part.path}: {weight.dtype} in {bits} bits a value", path=source)
    if weight.size != -(-size * bits // 8):
        raise _fault(part, weight, shape, source)
    narrow = weight if bits == 8 else HighFirstWeight(weight, bits, size)
    codes = make(narrow.reshaped(shape), part.path)
    kind = quantization.WhichOneof("QuantizationType")
    if kind == "lookupTableQuantization":
        table = np.array(quantization.lookupTableQuantization.floatValue, np.float32)
        if len(table) != 2**bits:
            raise FormatError(
                f"{part.path}: expected {2**bits} entries of a table, found {len(table)}",
                path=source,
            )
        return relay.take(
            make(ArrayWeight(table), f"{part.path}.table"), relay.cast(codes, "int32")
        )
    linear = quantization.linearQuantization
    result = relay.cast(codes, "float32")
    for operation, values in ((relay.multiply, linear.scale), (relay.add, linear.bias)):
        if len(values):
            factors = _spread(part, np.array(values, np.float32), shape, axis, source)
            result = operation(result, factors)
    return result


def _spread(
    part: Part, values: AnyValue, shape: tuple[int, ...], axis: int, source: str | None
) -> Expr:
    if len(values) == 1:
        return relay.Constant(values.reshape(()))
    if len(values) != shape[axis]:
        raise FormatError(
            f"{part.path}: expected 1 or {shape[axis]} scales, found {len(values)}", path=source
        )
    lengths = [1] * len(shape)
    lengths[axis] = -1
    return relay.Constant(values.reshape(lengths))


def _fault(part: Part, weight: Weight, shape: tuple[int, ...], source: str | None) -> FormatError:
    return FormatError(
        f"{part.path}: expected values of {list(shape)}, found {weight.size} of {weight.dtype}",
        path=source,
    )
