"""Models of TFLite, built by hand with the classes of the package ``tflite``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

__all__ = ["Net", "Quantization"]

Quantization = tuple[Sequence[float], Sequence[int], int]
"""Scales, zero points, and the axis along which they are."""


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    buffer: int
    quantization: Quantization | None


@dataclass
class _Operator:
    code: int
    inputs: list[int]
    outputs: list[int]
    options: str | None
    attributes: Mapping[str, Any]


@dataclass
class Net:
    """A model of one graph.

    Attributes:
        inputs: Places of its inputs among its tensors.
    """

    inputs: list[int] = field(default_factory=list)
    _tensors: list[_Tensor] = field(default_factory=list)
    _buffers: list[bytes] = field(default_factory=lambda: [b""])
    _operators: list[_Operator] = field(default_factory=list)

    def input(
        self, shape: Sequence[int], dtype: str = "float32", quantization: Quantization | None = None
    ) -> int:
        """Return the place of a new input."""
        self.inputs.append(self._add(tuple(shape), dtype, 0, quantization))
        return self.inputs[-1]

    def const(self, data: Any, quantization: Quantization | None = None) -> int:
        """Return the place of a new constant."""
        data = np.asarray(data)
        self._buffers.append(data.tobytes())
        return self._add(data.shape, data.dtype.name, len(self._buffers) - 1, quantization)

    def call(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        dtype: str = "float32",
        *,
        quantization: Quantization | None = None,
        options: str | None = None,
        **attributes: Any,
    ) -> int:
        """Return the place of the result of a new operator.

        Args:
            op: Its name in ``tflite.BuiltinOperator``.
            inputs: Places of operands, -1 for one that is left out.
            shape: The shape of its result.
            dtype: The dtype of its result.
            quantization: How its result is quantised.
            options: The class of its attributes.
            **attributes: Those that are not by default.
        """
        found = self._add(tuple(shape), dtype, 0, quantization)
        code = getattr(tflite.BuiltinOperator, op)
        self._operators.append(_Operator(code, list(inputs), [found], options, attributes))
        return found

    def _add(
        self, shape: tuple[int, ...], dtype: str, buffer: int, quantization: Quantization | None
    ) -> int:
        name = f"t{len(self._tensors)}"
        self._tensors.append(_Tensor(name, shape, dtype, buffer, quantization))
        return len(self._tensors) - 1

    def declared(self) -> list[tuple[tuple[int, ...], str]]:
        """Return shape and dtype of each input."""
        tensors = [self._tensors[place] for place in self.inputs]
        return [(each.shape, each.dtype) for each in tensors]

    def model(self, *outputs: int) -> Any:
        """Return the ``tflite.Model``."""
        builder = flatbuffers.Builder(1024)
        codes = sorted({each.code for each in self._operators})
        kinds = [
            _table(builder, "OperatorCode", {"DeprecatedBuiltinCode": min(c, 127), "Version": 1,
                                             "BuiltinCode": c})
            for c in codes
        ]  # fmt: skip
        tensors = [self._write_tensor(builder, each) for each in self._tensors]
        operators = [self._write_operator(builder, each, codes) for each in self._operators]
        graph = _table(
            builder,
            "SubGraph",
            {
                "Tensors": _offsets(builder, tensors),
                "Inputs": builder.CreateNumpyVector(np.array(self.inputs, np.int32)),
                "Outputs": builder.CreateNumpyVector(np.array(outputs, np.int32)),
                "Operators": _offsets(builder, operators),
            },
        )
        buffers = []
        for each in self._buffers:
            given = {"Data": builder.CreateByteVector(each)} if each else {}
            buffers.append(_table(builder, "Buffer", given))
        made = _table(
            builder,
            "Model",
            {
                "Version": 3,
                "OperatorCodes": _offsets(builder, kinds),
                "Subgraphs": _offsets(builder, [graph]),
                "Buffers": _offsets(builder, buffers),
            },
        )
        builder.Finish(made, b"TFL3")
        return tflite.Model.GetRootAsModel(bytes(builder.Output()), 0)

    def _write_tensor(self, builder: Any, tensor: _Tensor) -> int:
        fields = {
            "Shape": builder.CreateNumpyVector(np.array(tensor.shape, np.int32)),
            "Type": getattr(tflite.TensorType, tensor.dtype.upper()),
            "Buffer": tensor.buffer,
            "Name": builder.CreateString(tensor.name),
        }
        if tensor.quantization is not None:
            scales, zeros, axis = tensor.quantization
            fields["Quantization"] = _table(
                builder,
                "QuantizationParameters",
                {
                    "Scale": builder.CreateNumpyVector(np.array(scales, np.float32)),
                    "ZeroPoint": builder.CreateNumpyVector(np.array(zeros, np.int64)),
                    "QuantizedDimension": axis,
                },
            )
        return _table(builder, "Tensor", fields)

    def _write_operator(self, builder: Any, operator: _Operator, codes: Sequence[int]) -> int:
        fields = {
            "OpcodeIndex": codes.index(operator.code),
            "Inputs": builder.CreateNumpyVector(np.array(operator.inputs, np.int32)),
            "Outputs": builder.CreateNumpyVector(np.array(operator.outputs, np.int32)),
        }
        if operator.options is not None:
            attributes = {
                name: builder.CreateNumpyVector(np.array(value, np.int32))
                if isinstance(value, (list, tuple))
                else value
                for name, value in operator.attributes.items()
            }
            fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, operator.options)
            fields["BuiltinOptions"] = _table(builder, operator.options, attributes)
        return _table(builder, "Operator", fields)


def _table(builder: Any, kind: str, fields: Mapping[str, Any]) -> int:
    """Write a table of which everything that it points at is written."""
    _function(f"{kind}Start")(builder)
    for name, value in fields.items():
        _function(f"{kind}Add{name}")(builder, value)
    found: int = _function(f"{kind}End")(builder)
    return found


def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(tflite, name)
    return found


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for each in reversed(offsets):
        builder.PrependUOffsetTRelative(each)
    found: int = builder.EndVector()
    return found
