"""The weights of NeuralNetworks: places in the file, and what is computed of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import Array, ArrayWeight, Weight, numpy_dtype
from serde.coreml.model import CoremlModel
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.errors import FormatError
from serde.io.packed import HighFirstWeight
from serde.relay.ir import Expr, TensorType, Var
from serde.relay.run.computed import ComputedWeight

__all__ = ["Parameters", "QuantizedWeight"]


class Parameters:
    """The weights of a model's layers, and what stands for them in the graph.

    Args:
        model: The model.
        make: Returns what stands in the graph for a weight of a name.
    """

    def __init__(self, model: CoremlModel, make: Callable[[Weight, str], Expr]) -> None:
        self._model = model
        self._make = make
        self._known: dict[tuple[str, tuple[int, ...], int], Expr] = {}

    def length(self, part: MessageView) -> int:
        """Return how many values a ``WeightParams`` has."""
        found = self._read_stored(part)
        return 0 if found is None else found.size

    def flat(self, part: MessageView) -> Expr:
        """Return values in the order in which they are stored, as a vector."""
        return self.read(part, (self.length(part),))

    def read(self, part: MessageView, shape: tuple[int, ...], axis: int = 0) -> Expr:
        """Return the values of a ``WeightParams`` as a tensor of float32.

        The same ones are the same expression.

        Args:
            part: The message.
            shape: Lengths of the axes.
            axis: The axis that scales of more than one element go along.

        Raises:
            FormatError: The values do not fill the shape.
        """
        key = part.path, shape, axis
        if key not in self._known:
            self._known[key] = self._read_weight(part, shape, axis)
        return self._known[key]

    def _read_weight(self, part: MessageView, shape: tuple[int, ...], axis: int) -> Expr:
        """Return a weight in float32, dequantised as its message says."""
        weight = self._read_stored(part)
        size = math.prod(shape)
        if weight is None:
            weight = ArrayWeight(np.zeros(0, np.float32))
        if not part.message.HasField("quantization"):
            if weight.dtype in ("uint8", "int8") or weight.size != size:
                raise self._fault(part, shape, weight)
            values = self._tensor(weight.reshaped(shape), part.path)
            return values if weight.dtype == "float32" else relay.cast(values, "float32")
        quantization = part.message.quantization
        bits = quantization.numberOfBits
        source = self._model.source
        if not 1 <= bits <= 8 or weight.dtype not in ("uint8", "int8"):
            raise FormatError(f"{part.path}: {weight.dtype} in {bits} bits a value", path=source)
        if weight.size != -(-size * bits // 8):
            raise self._fault(part, shape, weight)
        narrow = weight if bits == 8 else HighFirstWeight(weight, bits, size)
        codes = self._tensor(narrow.reshaped(shape), part.path)
        kind = quantization.WhichOneof("QuantizationType")
        if kind == "lookupTableQuantization":
            table = np.array(quantization.lookupTableQuantization.floatValue, np.float32)
            if len(table) != 2**bits:
                raise FormatError(
                    f"{part.path}: expected {2**bits} entries of a table, found {len(table)}",
                    path=source,
                )
            entries = self._tensor(ArrayWeight(table), f"{part.path}.table")
            return relay.take(entries, relay.cast(codes, "int32"))
        linear = quantization.linearQuantization
        result = relay.cast(codes, "float32")
        for operation, values in ((relay.multiply, linear.scale), (relay.add, linear.bias)):
            if len(values):
                factors = _broadcast(part, np.array(values, np.float32), shape, axis, source)
                result = operation(result, factors)
        return result

    def _read_stored(self, part: MessageView) -> Weight | None:
        """Return the values as they lie in the file; None where there are none."""
        found = self._model.arrays.get(part.path)
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
                    f"{part.path}: {len(raw)} bytes are no values of {dtype}",
                    path=self._model.source,
                )
            return ArrayWeight(np.frombuffer(raw, dtype))
        return None

    def _tensor(self, weight: Weight, path: str) -> Expr:
        return self._make(weight, self._name(path))

    def _name(self, path: str) -> str:
        """Return a name for a weight: that of its layer and that of its field."""
        node: AnyValue = self._model.spec
        names = []
        for step in path.split("."):
            field_name, _, index = step.partition("[")
            node = getattr(node, field_name, None)
            if index and node is not None:
                node = node[int(index[:-1])]
            if field_name == "layers" and node is not None:
                names.append(node.name or f"layer{index[:-1]}")
        return "_".join([*names, path.rsplit(".", 1)[-1]])

    def _fault(self, part: MessageView, shape: tuple[int, ...], weight: Weight) -> FormatError:
        return FormatError(
            f"{part.path}: expected values of {list(shape)}, found {weight.size} of {weight.dtype}",
            path=self._model.source,
        )


def _broadcast(
    part: MessageView, values: AnyValue, shape: tuple[int, ...], axis: int, source: str | None
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


class QuantizedWeight(Weight):
    """Floats that are integers of 8 bits less a zero point, times a scale.

    Args:
        codes: The integers, of dtype ``int8`` or ``uint8``.
        scale: One scale, or one for each entry of `axis`.
        zero: One zero point, or one for each entry of `axis`.
        axis: The axis that scales go along.
        dtype: Name of the type of the floats.
    """

    def __init__(self, codes: Weight, scale: Array, zero: Array, axis: int, dtype: str) -> None:
        self.shape = codes.shape
        self.dtype = dtype
        self.codes = codes
        self.scale = scale
        self.zero = zero
        self.axis = axis

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0 as floats."""
        codes = self.codes.rows(start, stop).astype(np.float32)
        scale, zero = (self._along(each, start, stop) for each in (self.scale, self.zero))
        return ((codes - zero) * scale).astype(numpy_dtype(self.dtype))

    def _along(self, values: Array, start: int, stop: int) -> Array:
        values = values.astype(np.float32)
        if values.size == 1:
            return values.reshape(())
        if self.axis == 0:
            values = values[start:stop]
        return values.reshape([-1 if axis == self.axis else 1 for axis in range(len(self.shape))])

    def linear(self, axis: int) -> tuple[Array, Array] | None:
        """Return the scales and offsets of the codes as bytes without a sign.

        Args:
            axis: The axis that several scales may go along.

        Returns:
            Scales and offsets of float32, or None where several go along another axis.
        """
        if self.scale.size != 1 and self.axis != axis:
            return None
        scale = self.scale.astype(np.float32).reshape(-1)
        lift = 128 if self.codes.dtype == "int8" else 0
        zero = self.zero.astype(np.float32).reshape(-1) + np.float32(lift)
        return scale, (-zero * scale).astype(np.float32)

    def bytes_without_sign(self) -> Weight:
        """Return the codes as bytes; those with a sign lifted by 128."""
        if self.codes.dtype == "uint8":
            return self.codes
        codes = Var("codes", TensorType(self.codes.shape, "int8"))
        lifted = relay.add(relay.cast(codes, "int16"), relay.const(np.int16(128)))
        return ComputedWeight(relay.cast(lifted, "uint8"), {codes: self.codes})
