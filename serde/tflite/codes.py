"""Operators on numbers between DEQUANTIZE and QUANTIZE as operators on codes of int8 or int16.

LiteRT's kernels round once where numbers are rounded to codes, so that results are within a step
of those of the operators on numbers. What no kernel holds stays between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

import serde.relay as relay
from serde.core import ArrayWeight, Report
from serde.relay.ir import TensorType, UniqueNames, Var
from serde.relay.run.computed import ComputedWeight
from serde.tflite.model import Operator, Quantization, Tensor
from serde.tflite.versions import FIXED_SCALES, MOVING_CODES, POSITIONS

__all__ = ["FILTERS", "KEEPING_SCALES", "compute_on_codes", "data_places"]

_CODES: Final = ("int8", "uint8", "int16")
FILTERS: Final = {
    "CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0,
}  # fmt: skip
"""The axis of a filter that may have several scales: that of the channels of the result."""
_DATA: Final = {"int8": ("int8", "int16"), "uint8": ("uint8",)}
"""Types of data that kernels take with filters of a type."""
_ALL: Final = ("CONCATENATION", "MAXIMUM", "MINIMUM", "PACK")
_TWO: Final = ("ADD", "BATCH_MATMUL", "MUL", "PRELU", "SUB")
KEEPING_SCALES: Final = (
    "AVERAGE_POOL_2D", "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR",
)  # fmt: skip
"""Operators whose results have the scale of what they read."""
_BYTES: Final = ("ABS", "EXP", "GELU", "HARD_SWISH", "PRELU", *FIXED_SCALES)
"""Operators whose kernels are within a step for codes of 8 bits alone."""
_SIGNED: Final = ("ABS", "BATCH_MATMUL", "EXP")
"""Operators without a kernel for uint8."""
_ONE: Final = ("LEAKY_RELU", "MEAN", "RELU", "RELU6", *KEEPING_SCALES, *_BYTES)
_MOVING_BYTES: Final = ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")


def data_places(each: Operator, dtype: str) -> range:
    """Return which operands, besides filters, a kernel takes as codes; none if there is none."""
    excluded = {"int8": (), "int16": _BYTES, "uint8": _SIGNED}.get(dtype, (each.name,))
    if each.name in excluded:
        return range(0)
    if each.name in _ALL:
        return range(len(each.inputs))
    if each.name in _TWO:
        return range(2)
    first = POSITIONS.get(each.name, 0)
    return range(first, first + 1) if each.name in (*_ONE, *FILTERS) else range(0)


def compute_on_codes(
    operators: Sequence[Operator], tensors: list[Tensor], outputs: Collection[int], report: Report
) -> list[Operator]:
    """Return operators of a graph, on codes where LiteRT has kernels; tensors are added."""
    graph = _Graph(operators, tensors, outputs)
    for each in operators:
        if each.outputs[0] not in graph.converted:
            graph.convert(each)
    for number in outputs:
        graph.number_of(number)
    if graph.converted:
        count = len(graph.converted)
        kinds = sorted({tensors[i].dtype for i in graph.converted})
        words = " and ".join(kinds)
        report.notes.append(f"{count} operators are on {words}, each within a step of its result")
    return graph.made


class _Graph:
    """A graph while its operators are converted, in the order in which they run.

    Attributes:
        made: The operators so far.
        converted: Results of QUANTIZE that operators on codes give instead.
    """

    def __init__(
        self, operators: Sequence[Operator], tensors: list[Tensor], outputs: Collection[int]
    ) -> None:
        self.made: list[Operator] = []
        self.converted = set[int]()
        self._tensors = tensors
        self._names = UniqueNames(each.name for each in tensors)
        self._codes: dict[int, int] = {}
        self._numbers = set[int]()
        uses = Counter([*outputs, *(i for each in operators for i in each.inputs)])
        self._readers = {i: each for each in operators for i in each.inputs if uses[i] == 1}

    def convert(self, each: Operator) -> None:
        """Write an operator."""
        first, *rest = each.inputs or (-1,)
        if each.name == "DEQUANTIZE":
            self._codes[each.outputs[0]] = first
        elif each.name == "QUANTIZE" and self._has_codes(first):
            kinds = {self._tensors[i].dtype for i in (self._codes[first], each.outputs[0])}
            if kinds <= {"int8", "uint8"} or kinds == {"int16"}:
                first = self._codes[first]
            else:
                self.number_of(first)
            self.made.append(replace(each, inputs=(first, *rest)))
        elif not self._move(each) and not self._compute(each):
            self.made.append(replace(each, inputs=tuple(map(self.number_of, each.inputs))))

    def number_of(self, number: int) -> int:
        """Return the number of a tensor of numbers, which is there then."""
        if number in self._codes and number not in self._numbers:
            self._numbers.add(number)
            self.made.append(Operator("DEQUANTIZE", 1, (self._codes[number],), (number,)))
        return number

    def _has_codes(self, number: int) -> bool:
        """Whether numbers have codes of one scale."""
        found = self._tensors[self._codes[number]] if number in self._codes else None
        return found is not None and found.dtype in _CODES and len(_scales(found)) == 1

    def _reader(self, each: Operator, name: str = "QUANTIZE") -> Operator | None:
        """Return the operator that alone reads a result, of a name."""
        found = self._readers.get(each.outputs[0]) if len(each.outputs) == 1 else None
        return found if found is not None and found.name == name else None

    def _add(self, tensor: Tensor, like: Tensor | None = None) -> int:
        """Return the number of a new tensor, which has the codes that another has."""
        like = tensor if like is None else like
        made = replace(tensor, dtype=like.dtype, quantization=like.quantization)
        self._tensors.append(replace(made, name=self._names.reserve(tensor.name)))
        return len(self._tensors) - 1

    def _ints(self, number: int) -> list[int]:
        values = self._tensors[number].values
        return [] if values is None else [int(each) for each in values.array().reshape(-1)]

    def _move(self, each: Operator) -> bool:
        """Write an operator that moves elements on codes, if it is one."""
        number = each.inputs[0] if each.inputs else -1
        given = self._tensors[self._codes.get(number, number)]
        if number in self._codes and self._move_known(each, given):
            return True
        rest = self._border(each, given) if each.name == "PADV2" else each.inputs[1:]
        moves = each.name in (*MOVING_CODES, "PADV2")
        moves &= given.dtype != "int16" or each.name not in _MOVING_BYTES
        limited = each.options.get("fused_activation_function")
        if rest is None or not moves or limited or not self._has_codes(number):
            return False
        reader = self._reader(each)
        if reader is not None and _are_equal(given, self._tensors[reader.outputs[0]]):
            made = reader.outputs
            self.converted.update(made)
        else:
            made = tuple(self._add(self._tensors[i], given) for i in each.outputs)
            self._codes.update(zip(each.outputs, made, strict=True))
        self.made.append(replace(each, inputs=(self._codes[number], *rest), outputs=made))
        return True

    def _border(self, each: Operator, given: Tensor) -> tuple[int, ...] | None:
        """Return the least code for a border that a pool of greatest numbers leaves out."""
        reader, least = self._reader(each, "MAX_POOL_2D"), self._tensors[each.inputs[2]].values
        if reader is None or least is None or (least.array() != -np.inf).any():
            return None
        size = min(reader.options["filter_height"], reader.options["filter_width"])
        if max(self._ints(each.inputs[1]), default=size) >= size or given.dtype not in _CODES:
            return None
        values = ArrayWeight(np.array(np.iinfo(given.dtype).min, given.dtype))
        return each.inputs[1], self._add(replace(given, shape=(), values=values))

    def _move_known(self, each: Operator, given: Tensor) -> bool:
        """Move codes in the file, and the axis of their scales."""
        shape, quantized = self._tensors[each.outputs[0]].shape, given.quantization
        if each.name not in ("RESHAPE", "TRANSPOSE") or quantized is None or given.values is None:
            return False
        source = Var("x", TensorType(given.shape, given.dtype))
        if each.name == "TRANSPOSE":
            axes = self._ints(each.inputs[1])
            moved = relay.transpose(source, axes)
        else:
            ends = list(zip(np.cumprod(given.shape), given.shape, strict=True))
            wanted = zip(np.cumprod(shape), shape, strict=True)
            axes = [ends.index(each) if each in ends else -1 for each in wanted]
            moved = relay.reshape(source, shape)
        if len(quantized.scales) > 1:
            if quantized.axis not in axes:
                return False
            quantized = replace(quantized, axis=axes.index(quantized.axis))
        values = ComputedWeight(moved, {source: given.values})
        changed = replace(given, shape=shape, values=values, quantization=quantized)
        self._codes[each.outputs[0]] = self._add(changed)
        return True

    def _compute(self, each: Operator) -> bool:
        """Write an operator whose result is quantised on codes, if a kernel holds it."""
        reader = self._reader(each)
        target = -1 if reader is None else reader.outputs[0]
        inputs = None if reader is None else self._operands(each, self._tensors[target])
        if reader is None or inputs is None:
            return False
        made = wanted = self._tensors[target]
        if each.name in FIXED_SCALES:
            steps, zero = FIXED_SCALES[each.name]
            zero += 128 if wanted.dtype == "uint8" else 0
            fixed = Quantization(np.array([1 / steps], np.float32), np.array([zero]))
            made = replace(wanted, quantization=fixed)
        found = target if _are_equal(made, wanted) else self._add(made)
        self.converted.add(target)
        options = dict(each.options)
        if each.name in ("ADD", "SUB"):  # By default, scales of int16 are powers of two.
            options["pot_scale_int16"] = False
        self.made.append(replace(each, inputs=inputs, outputs=(found,), options=options))
        if found != target:
            self.made.append(replace(reader, inputs=(found,)))
        return True

    def _operands(self, each: Operator, made: Tensor) -> tuple[int, ...] | None:
        """Return the operands that a kernel of codes takes; None where there is none."""
        name, places = each.name, data_places(each, made.dtype)
        given = [each.inputs[place] for place in places]
        codes = [self._codes[i] for i in given if self._has_codes(i)]
        every = [made, *(self._tensors[i] for i in codes)]
        if not codes or len(codes) < len(given) or len({x.dtype for x in every}) > 1:
            return None
        to_scale, *scales = (_scales(x)[0] for x in every)
        if not 2.0**-24 < min(*scales, to_scale) <= max(*scales, to_scale) < 2.0**18 * to_scale:
            return None
        if name in KEEPING_SCALES and not _are_equal(every[1], made):
            return None
        if name in FIXED_SCALES and to_scale * FIXED_SCALES[name][0] < 0.99:
            return None
        if name in FILTERS:
            return self._with_filter(each, codes[0])
        if name in _ALL:
            codes = [self._rescale(i, made) for i in codes]
        return (*codes, *each.inputs[len(codes) :])

    def _rescale(self, codes: int, wanted: Tensor) -> int:
        """Return codes as those of the scale of another tensor."""
        given = self._tensors[codes]
        if _are_equal(given, wanted):
            return codes
        found = self._add(replace(given, values=None), wanted)
        self.made.append(Operator("QUANTIZE", 1, (codes,), (found,)))
        return found

    def _with_filter(self, each: Operator, codes: int) -> tuple[int, ...] | None:
        """Return operands of sums of products: a filter and a bias of integers.

        A filter of int8 has no zero points, and one of uint8 goes with data of uint8.
        """
        place = POSITIONS.get(each.name, 0)
        if len(each.inputs) != max(place, 1) + 2:
            return None
        filters, bias = each.inputs[1], each.inputs[-1]
        weight, given = self._tensors[self._codes.get(filters, filters)], self._tensors[bias]
        scales = weight.quantization
        kind = self._tensors[codes].dtype
        if scales is None or weight.values is None or kind not in _DATA.get(weight.dtype, ()):
            return None
        if len(scales.scales) > 1 and scales.axis != FILTERS[each.name]:
            return None
        if weight.dtype == "int8" and scales.zero_points.any():
            return None
        if given.values is None or given.dtype != "float32":
            return None
        joint = np.float32(_scales(self._tensors[codes])[0]) * scales.scales
        kind, bits = ("int64", 39) if kind == "int16" else ("int32", 31)
        with np.errstate(all="ignore"):
            steps = np.rint(given.values.array().astype(np.float64) / joint)
        if not (abs(steps) < 2.0**bits).all():
            return None
        quantized = Quantization(joint, np.zeros(joint.shape, np.int64))
        values = ArrayWeight(steps.astype(kind))
        changed = replace(given, dtype=kind, values=values, quantization=quantized)
        found = [*each.inputs[:-1], self._add(changed)]
        found[place], found[1] = codes, self._codes[filters]
        return tuple(found)


def _scales(tensor: Tensor) -> list[float]:
    return [] if tensor.quantization is None else list(map(float, tensor.quantization.scales))


def _are_equal(one: Tensor, other: Tensor) -> bool:
    if one.quantization is None or other.quantization is None or one.dtype != other.dtype:
        return False
    return one.quantization.key == other.quantization.key
