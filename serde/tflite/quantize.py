"""Smaller models: weights as codes of int8, activations too by ranges measured on samples.

The rules are those of LiteRT's own quantiser: a scale for each channel of a filter without zero
points, activations of one scale around ranges that hold zero, biases in steps of the products.
Operators become such on codes by what writes quantised graphs (:mod:`serde.tflite.codes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

import serde.relay as relay
from serde.core import Report, Weight, require_installed
from serde.engine.base import Samples
from serde.engine.process import ProcessEngine
from serde.errors import OptionError, raise_if_refused
from serde.relay.ir import Constant, TensorType, UniqueNames, Var
from serde.relay.run.computed import ComputedWeight
from serde.tflite.codec import load
from serde.tflite.codes import FILTERS, KEEPING_SCALES, compute_on_codes, data_places
from serde.tflite.engine import answer_open
from serde.tflite.interface import chosen_interface
from serde.tflite.model import Operator, Quantization, Subgraph, Tensor, TfliteModel
from serde.tflite.options import TfliteExportOptions
from serde.tflite.versions import FIXED_SCALES, HYBRID, MOVING_CODES

if TYPE_CHECKING:
    from serde.bridge.quantizing import QuantizeOptions

__all__ = ["check_compression", "compress"]

_TOOL: Final = "what quantises TFLite"
_LEAST: Final = 1024
"""Elements from which on weights alone are worth codes, as TensorFlow's converter has it."""

_WIDEST: Final = 2.0**20
"""What lies beyond stands for infinity, as in masks: codes of it would tell nothing else apart."""


def check_compression(wanted: QuantizeOptions, options: TfliteExportOptions) -> None:
    """Refuse what is not done.

    Raises:
        MissingDependency: LiteRT is not installed.
        OptionError: There is no such option, or calibration data are missing.
    """
    names = ("int4", "palettize", "sparsity", "calibration_method", "reduce_range")
    wanted.refuse(_TOOL, names, "it has int8, by least and greatest values")
    wanted.refuse(_TOOL, ("block_size", "zero_points"), "it has scales per channel")
    if wanted.weight_type == "uint8" or wanted.activation_type in ("uint8", "uint16"):
        raise OptionError(f"int8: {_TOOL} has int8 for weights, int8 and int16 for activations")
    if wanted.int8 in ("dynamic", "weights"):
        wanted.refuse(
            "weights as codes", ("activation_type", "symmetric"), "activations are floats"
        )
    elif wanted.calibration is None:
        raise OptionError(
            "int8: activations are measured on calibration data, which is missing; "
            "int8='dynamic' takes ranges at run time and needs none"
        )
    elif options.write_quantized == "exact":
        raise OptionError("int8: write_quantized='exact' keeps operators on numbers")
    require_installed("ai_edge_litert")


def compress(
    path: Path, wanted: QuantizeOptions, samples: Samples | None, _folder: Path, report: Report
) -> TfliteModel:
    """Return a model whose weights are codes, and whose operators compute on such where asked.

    Args:
        path: The model in floats.
        wanted: How.
        samples: Inputs on which activations are measured.
        report: Gets facts.

    Raises:
        CheckError: LiteRT failed or crashed.
        OptionError: An operator that is to stay does not exist, or weights are halves.
        UnsupportedModelError: There is nothing that is quantised.
    """
    original = load(path)
    tensors = [each for graph in original.subgraphs for each in graph.tensors]
    if any(each.dtype == "float16" for each in tensors):
        raise OptionError(f"int8: {_TOOL} takes models in float32, found weights in float16")
    for name in set(wanted.int8_exclude).difference(each.name for each in tensors):
        raise OptionError(f"int8_exclude: the model has no tensor {name}")
    is_static = wanted.int8 not in ("dynamic", "weights")
    ranges = _measure(path, original, samples or ()) if is_static else {}
    graphs = [
        _Coding(graph, wanted, {} if number else ranges).graph(report)
        for number, graph in enumerate(original.subgraphs)
    ]
    if not any(each.quantization for graph in graphs for each in graph.tensors):
        report.add("graph", "main", f"nothing in it is quantised by {_TOOL}")
        raise_if_refused(report)
    report.after = Counter(each.name for graph in graphs for each in graph.operators)
    later = " at run time" if wanted.int8 == "dynamic" else " stay floats"
    if is_static:
        later = f" {wanted.activation_type or 'int8'} by minmax of {len(samples or ())} samples"
    scales = "per channel" if wanted.per_channel else "per tensor"
    report.facts["quantized"] = f"weights int8 {scales}, activations{later}"
    report.facts["quantized_by"] = "serde"
    return replace(original, subgraphs=graphs, path=None)


def _measure(
    path: Path, model: TfliteModel, samples: Samples | tuple[()]
) -> dict[int, tuple[float, float]]:
    """Return the least and the greatest values of what the first graph computes."""
    graph = model.subgraphs[0]
    made = (i for each in graph.operators for i in each.outputs)
    numbers = [i for i in (*graph.inputs, *made) if graph.tensors[i].dtype == "float32"]
    interface = asdict(chosen_interface(model, None))
    request = {"path": str(path.absolute()), **interface, "tensors": numbers}
    found = [np.full((len(numbers), 2), np.inf)]
    with closing(ProcessEngine("litert", answer_open, request)) as engine:
        for inputs in samples:
            found = [np.minimum(found[0], engine.run(inputs)[0])]
    ends = zip(numbers, found[0], strict=True)
    return {number: (low, -less) for number, (low, less) in ends if _is_narrow(low, -less)}


def _is_narrow(low: float, high: float) -> bool:
    return -_WIDEST < low <= high < _WIDEST


class _Coding:
    """A graph while what is to be on codes is put between DEQUANTIZE and QUANTIZE."""

    def __init__(
        self, graph: Subgraph, wanted: QuantizeOptions, ranges: Mapping[int, tuple[float, float]]
    ) -> None:
        self._made: list[Operator] = []
        self._tensors = list(graph.tensors)
        self._graph = graph
        self._wanted = wanted
        self._dtype = wanted.activation_type or "int8"
        self._ranges = dict(ranges)
        self._coded: dict[int, Quantization] = {}
        self._again: dict[tuple[int, int | None], int] = {}
        self._names = UniqueNames(each.name for each in graph.tensors)

    def graph(self, report: Report) -> Subgraph:
        """Return the graph with operators on codes."""
        self._join()
        for each in self._graph.operators:
            kept = (self._tensors[i].is_variable for i in (*each.inputs, *each.outputs) if i >= 0)
            if any(kept) or self._tensors[each.outputs[0]].name in self._wanted.int8_exclude:
                self._made.append(each)
            else:
                self._add(each)
        made = compute_on_codes(self._made, self._tensors, self._graph.outputs, report)
        return replace(self._graph, tensors=self._tensors, operators=made).compact()

    def _join(self) -> None:
        """Give what is only put together the range of the whole, so that no code is rescaled."""
        uses = Counter(i for each in self._graph.operators for i in each.inputs)
        for each in reversed(self._graph.operators):
            if each.name in ("CONCATENATION", "PACK") and each.outputs[0] in self._ranges:
                alone = {i for i in each.inputs if uses[i] == 1 and i in self._ranges}
                self._ranges |= dict.fromkeys(alone, self._ranges[each.outputs[0]])

    def _add(self, each: Operator) -> None:
        places, inputs = data_places(each, self._dtype), list(each.inputs)
        if each.name in MOVING_CODES or not self._is_measured(each, places):
            inputs = self._with_stored(each)
            if each.name in MOVING_CODES and inputs[0] in self._graph.inputs:
                inputs[0] = self._code(inputs[0]) if inputs[0] in self._ranges else inputs[0]
            self._made.append(replace(each, inputs=tuple(inputs)))
            if each.name in MOVING_CODES and inputs[0] in self._coded:
                self._coded |= dict.fromkeys(each.outputs, self._coded[inputs[0]])
            return
        for place in places:
            inputs[place] = self._code(inputs[place])
        if each.name in FILTERS and self._weight(inputs[1]) is not None:
            inputs[1] = self._code(inputs[1], FILTERS[each.name])
        (target,) = each.outputs
        raw = self._new(self._tensors[target])
        self._made.append(replace(each, inputs=tuple(inputs), outputs=(raw,)))
        found = self._coded[target] = self._quantization(each, inputs[places[0]])
        codes = self._new(self._tensors[target], quantization=found, dtype=self._dtype)
        self._made.append(Operator("QUANTIZE", 1, (raw,), (codes,)))
        self._made.append(Operator("DEQUANTIZE", 1, (codes,), (target,)))

    def _is_measured(self, each: Operator, places: Sequence[int]) -> bool:
        """Whether the result and what it is computed of have ranges."""
        if not places or each.outputs[0] not in self._ranges:
            return False
        for number in (each.inputs[place] for place in places):
            weight = self._weight(number)
            if weight is not None and weight.size:
                values = weight.array()
                pair = float(values.min()), float(values.max())
                self._ranges |= {number: pair} if _is_narrow(*pair) else {}
            if number not in self._ranges and number not in self._coded:
                return False
        return True

    def _with_stored(self, each: Operator) -> list[int]:
        """Return the operands of an operator on floats, large weights stored as codes."""
        found, way = list(each.inputs), self._wanted.int8
        for place, number in enumerate(found):
            weight, is_filter = self._weight(number), place == 1 and each.name in FILTERS
            is_hybrid = way == "dynamic" and is_filter and each.name in HYBRID
            if weight is None or weight.size < _LEAST or len(weight.shape) < 2:
                continue
            if is_hybrid or way == "weights":
                axis = FILTERS[each.name] if is_filter else None
                found[place] = self._code(number, axis, is_read=is_hybrid)
        return found

    def _weight(self, number: int) -> Weight | None:
        tensor = self._tensors[number] if number >= 0 else None
        return tensor.values if tensor is not None and tensor.dtype == "float32" else None

    def _new(self, tensor: Tensor, **changes: object) -> int:
        name = tensor.name if changes.get("values") else self._names.reserve(tensor.name)
        self._tensors.append(replace(tensor, name=name, **changes))  # type: ignore[arg-type]
        return len(self._tensors) - 1

    def _quantization(self, each: Operator, data: int) -> Quantization:
        """Return what codes of a result stand for."""
        if each.name in KEEPING_SCALES:
            return self._coded[data]
        if each.name in FIXED_SCALES:
            steps, zero = FIXED_SCALES[each.name]
            return Quantization(np.array([1 / steps], np.float32), np.array([zero]))
        return self._around(*self._ranges[each.outputs[0]])

    def _around(self, low: float, high: float) -> Quantization:
        """Return what codes stand for that hold a range, and zero."""
        low, high, most = min(low, 0.0), max(high, 0.0), np.iinfo(self._dtype).max
        if self._wanted.symmetric or self._dtype == "int16":
            scale = np.float32(max(-low, high) / most or 1.0)
            return Quantization(np.array([scale]), np.zeros(1, np.int64))
        scale = np.float32((high - low) / 255 or 1.0)
        zero = np.clip(np.rint(-128 - low / scale), -128, 127)
        return Quantization(np.array([scale]), np.array([zero], np.int64))

    def _code(self, number: int, axis: int | None = None, *, is_read: bool = False) -> int:
        """Return the number of a tensor, or weight, after it was rounded to codes.

        Args:
            number: The tensor.
            axis: Of a filter, that of its channels.
            is_read: Whether the codes themselves are what is wanted.
        """
        key = number, axis
        if number in self._coded or key in self._again:
            return self._again.get(key, number)
        tensor, dtype, stored = self._tensors[number], self._dtype, self._weight(number)
        if stored is None or number in self._ranges:
            found = self._around(*self._ranges[number])
        else:
            dtype, found = "int8", _around_zero(stored, axis if self._wanted.per_channel else None)
        stored = stored and _codes(stored, found, dtype)
        codes = self._new(tensor, values=stored, quantization=found, dtype=dtype)
        if is_read:
            return self._again.setdefault(key, codes)
        if stored is None:
            self._made.append(Operator("QUANTIZE", 1, (number,), (codes,)))
        made = self._again[key] = self._new(tensor, values=None)
        self._coded[made] = found
        self._made.append(Operator("DEQUANTIZE", 1, (codes,), (made,)))
        return made


def _around_zero(weight: Weight, axis: int | None) -> Quantization:
    """Return what codes of a filter stand for, along an axis or of all of it."""
    array = np.abs(weight.array())
    most = array.max(tuple(i for i in range(array.ndim) if i != axis), initial=0.0)
    scale = np.where(most > 0, most / np.float32(127), np.float32(1)).astype(np.float32)
    return Quantization(scale.reshape(-1), np.zeros(scale.size, np.int64), axis or 0)


def _codes(weight: Weight, found: Quantization, dtype: str) -> Weight:
    """Return the codes of a weight, which are evaluated when they are written."""
    source = Var("x", TensorType(weight.shape, weight.dtype))
    several = len(found.scales) > 1
    scale, zero = (
        Constant(each if several else each.reshape(()))
        for each in (found.scales, found.zero_points.astype(np.int32))
    )
    codes = relay.qnn.op.quantize(source, scale, zero, found.axis if several else -1, dtype)
    return ComputedWeight(codes, {source: weight})
