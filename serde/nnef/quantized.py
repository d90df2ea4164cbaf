"""Quantised tensors of a graph that is written: what graph.quant says instead of fragments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar, Final

import numpy as np

import serde.core.allocation as allocation
from serde.core import Issue, Report, dtype_name
from serde.core.lossy import QUANTISED_AS_FLOATS
from serde.nnef.model import NnefModel, Quantization, Ref, rename_operation
from serde.relay.ir import RelayModel, TensorType, all_nodes, call, called_name, rewrite_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple
from serde.relay.transform import FunctionPass
from serde.walk.lowering import quantized_as_floats

__all__ = ["annotate", "lower_quantized", "without_unread"]

_QUANTIZING: Final = frozenset(("zero_point_linear_quantize",))
_TARGETS: Final = ("int8", "uint8", "int16", "uint16")
_EXACT: Final = ("qnn.quantize", "qnn.dequantize")


def lower_quantized(model: RelayModel, allow: frozenset[str], report: Report) -> RelayModel:
    """Return the model without arithmetic of quantised integers, which NNEF has not.

    Raises:
        UnsupportedModelError: There is some, and the step is not allowed.
    """
    names = {called_name(node) for node in all_nodes(model.main.body)}
    if any(name.startswith("qnn.") and name not in _EXACT for name in names):
        model = quantized_as_floats(model, QUANTISED_AS_FLOATS, allow, report)
    if QUANTISED_AS_FLOATS.name not in allow:
        return model
    mod, changed = _RoundAway().run(model.mod)
    if changed:
        what = "values halfway between quantised ones are rounded away from zero"
        report.allowed.append(Issue("quantize_linear", "main", what, ""))
    return model.evolve(mod=mod)


class _RoundAway(FunctionPass):
    """Write quantisations that round halves to even as those that NNEF has."""

    name: ClassVar[str] = "RoundAway"

    def transform(self, function: Function) -> Function:
        """Rewrite each of them, where Relay has its codes."""
        return rewrite_function(function, lambda _old, new: _round_away(new) or new)


def _round_away(node: Expr) -> Expr | None:
    if called_name(node) != "serde.quantize_linear" or not isinstance(node, Call):
        return None
    data, scale, zero = node.args
    if not isinstance(scale, Constant) or scale.data.dtype != np.float32:
        return None
    if node.attrs["precision"] is not None or node.attrs["block_size"]:
        return None
    dtype = dtype_name(node.attrs["out_dtype"])
    if dtype not in _TARGETS or not isinstance(data.type, TensorType):
        return None
    if data.type.dtype != "float32":
        return None
    zeros = allocation.zeros(scale.data.shape, np.int32)
    if isinstance(zero, Constant):
        zeros = zero.data.astype(np.int32)
    elif not isinstance(zero, Tuple):
        return None
    attrs = {"out_dtype": dtype, "axis": node.attrs["axis"]}
    return call("qnn.quantize", data, scale, Constant(zeros), span=node.span, **attrs)


def without_unread(model: NnefModel) -> NnefModel:
    """Return the graph without assignments whose results nothing reads."""
    kept, read = set(), set(model.outputs)
    for place, each in reversed(list(enumerate(model.operations))):
        if each.op == "external" or read.intersection(each.results()):
            kept.add(place)
            read.update(operand.name for operand in each.operands() if isinstance(operand, Ref))
    return _keep(model, kept)


def _keep(model: NnefModel, kept: Collection[int]) -> NnefModel:
    """Return the graph with some of its assignments alone, by their places."""
    if len(kept) == len(model.operations):
        return model
    operations = [each for index, each in enumerate(model.operations) if index in kept]
    before = [0, *accumulate(index in kept for index in range(len(model.operations)))]
    left = {name for each in operations for name in each.results()}
    labels = {each.attributes["label"] for each in operations if each.op == "variable"}
    return replace(
        model,
        operations=operations,
        weights={label: each for label, each in model.weights.items() if label in labels},
        quantization={name: each for name, each in model.quantization.items() if name in left},
        stored_quantized=model.stored_quantized & labels,
        sources={name: each for name, each in model.sources.items() if name in left},
        blocks=tuple(
            replace(each, start=before[each.start], stop=before[each.stop]) for each in model.blocks
        ),
    )


def annotate(model: NnefModel) -> NnefModel:
    """Return the graph with graph.quant in place of fragments that quantise.

    That is where nothing else reads what such a fragment takes, which an operation computes. What
    external tensors and variables hold is quantised by fragments: readers of graph.quant take
    entries of these in more than one way.
    """
    reads = Counter(
        operand.name
        for each in model.operations
        for operand in each.operands()
        if isinstance(operand, Ref)
    )
    declared = {
        name
        for each in model.operations
        if each.op in ("external", "variable", "constant")
        for name in each.results()
    }
    fixed = declared | set(model.outputs) | set(model.quantization)
    entries: dict[str, Quantization] = {}
    renamed: dict[str, str] = {}
    for each in model.operations:
        source, *parameters = each.inputs.values() if each.op in _QUANTIZING else (None,)
        if not isinstance(source, Ref) or any(isinstance(given, Ref) for given in parameters):
            continue
        if reads[source.name] == 1 and source.name not in fixed and source.name not in entries:
            (result,) = each.results()
            renamed[source.name] = result
            given = dict(zip(list(each.inputs)[1:], parameters, strict=True))
            entries[result] = Quantization(each.op, {**given, **each.attributes})
    if not entries:
        return model
    gone = {
        index
        for index, each in enumerate(model.operations)
        if each.op in _QUANTIZING and entries.keys() & each.results()
    }
    model = _keep(model, set(range(len(model.operations))) - gone)
    return replace(
        model,
        operations=[rename_operation(each, renamed) for each in model.operations],
        quantization={**model.quantization, **entries},
        sources={renamed.get(name, name): each for name, each in model.sources.items()},
    )
