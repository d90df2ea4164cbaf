"""What oneDNN's layers have in common: float weights quantised on the way, a function at the end.

MXNet multiplies by scales, the levels of a unit; a step is the inverse of a scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.model import Graph
from serde.mxnet.ops.qnn.parameters import (
    LEVELS,
    ONE,
    known,
    levels_in,
    number,
    real_of,
    scalar,
    step,
    whole,
)
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr

__all__ = [
    "Calibration", "Ending", "Weights", "activations", "levels_of", "quantized_weights",
    "real_result", "scale_of", "split_inputs",
]  # fmt: skip

_LARGEST_BIAS: Final = 2.0**30
"""MXNet keeps a bias below it by a smaller scale of the weight."""

_SMALLEST_WEIGHT: Final = 1e-30
"""Stands for zero where all weights of a channel are zero, so that no scale is infinite."""


def split_inputs(inputs: Sequence[Expr], counts: Sequence[int]) -> list[Sequence[Expr]]:
    """Return the inputs of a node in groups of so many."""
    if len(inputs) != sum(counts):
        raise Unsupported(f"expected {sum(counts)} inputs, found {len(inputs)}")
    ends = np.cumsum(counts)
    return [inputs[end - count : end] for end, count in zip(ends, counts, strict=True)]


def levels_of(ctx: Import, data: Expr) -> float:
    """Return the levels to the end of the range of a quantised tensor."""
    dtype = ctx.type(data).dtype
    if dtype not in LEVELS:
        raise Unsupported(f"expected data of int8 or uint8, found {dtype}")
    return LEVELS[dtype]


def scale_of(end: Expr, levels: float) -> Expr:
    """Return the levels of a unit, a scalar, from the end of a range."""
    return known(relay.squeeze(known(relay.divide(scalar(levels), end)), axis=[0]))


@dataclass(frozen=True)
class Weights:
    """Quantised weights of a layer.

    Attributes:
        weight: int8.
        bias: int32, in steps of weight times data.
        scale: The levels of a unit of the weight: a scalar, or one for each channel.
    """

    weight: Expr
    bias: Expr | None
    scale: Expr

    @property
    def step(self) -> Expr:
        """What one level of the weight stands for."""
        return relay.divide(ONE, self.scale)


def quantized_weights(
    ctx: Import,
    weight: Expr,
    bias: Expr | None,
    data_scale: Expr,
    *,
    channels: bool,
    groups: int = 1,
) -> Weights:
    """Return what MXNet makes of float weights when the layer first runs.

    Args:
        ctx: The context.
        weight: Its first axis is that of the channels.
        bias: One number for each channel.
        data_scale: The levels of a unit of the data.
        channels: Whether each channel has a scale of its own.
        groups: MXNet quantises all channels of a group by the scale of the channel whose number
            is that of the group, and yet takes each for quantised by its own.
    """
    rank = ctx.type(weight).rank
    axes = tuple(range(1, rank)) if channels else tuple(range(rank))
    end = relay.maximum(relay.max(relay.abs(weight), axis=axes), scalar(_SMALLEST_WEIGHT))
    scale = relay.divide(scalar(LEVELS["int8"]), end)
    if bias is not None and channels:
        most = relay.divide(scalar(_LARGEST_BIAS), relay.abs(bias))
        scale = relay.minimum(scale, relay.divide(most, data_scale))
    used = scale
    if channels:
        (count,) = ctx.static_shape(scale, 1)
        if 1 < groups < count:
            first = relay.strided_slice(scale, [0], [groups])
            used = relay.repeat(first, repeats=count // groups, axis=0)
        used = relay.expand_dims(used, axis=1, num_newaxis=rank - 1)
    narrow = levels_in(relay.multiply(weight, used), ONE, "int8")
    sums = None if bias is None else whole(relay.multiply(bias, relay.multiply(scale, data_scale)))
    return Weights(narrow, sums, scale)


Step = Callable[[Expr], Expr]


def activations(
    ctx: Import, layers: Sequence[str], names: Sequence[str]
) -> tuple[dict[str, dict[str, AnyValue]], list[tuple[str, Step]]]:
    """Return the attributes of the layers inside a node and the functions behind them.

    Args:
        ctx: The context.
        layers: The operators that are layers; each occurs at most once.
        names: The functions that may follow.
    """
    attributes: dict[str, dict[str, AnyValue]] = {}
    functions: list[tuple[str, Step]] = []
    for op, attrs in _operators(ctx.graph(0), ctx.version):
        if op in layers:
            attributes[op] = attrs
            continue
        if op == "elemwise_add":
            continue
        name = str(attrs.get("act_type", op))
        if name not in names:
            raise Unsupported(f"{op} of quantised numbers with {attrs}")
        functions.append((name, _step(ctx, op, attrs)))
    return attributes, functions


def layer_inside(layers: Mapping[str, dict[str, AnyValue]], op: str) -> dict[str, AnyValue]:
    """Return the attributes of one of the layers inside a node."""
    if op not in layers:
        raise Unsupported(f"no {op} is inside")
    return layers[op]


def _operators(graph: Graph, version: int) -> list[tuple[str, dict[str, AnyValue]]]:
    """Return the operators of a graph inside a node, each with all its attributes."""
    found = []
    for node in graph.nodes:
        if node.is_variable:
            continue
        op = canonical_name(node.op)
        converter = OPS.importer(op, version)
        if converter is None:
            raise Unsupported(f"{op} inside: no importer")
        bound, faults = converter.bind(node.attrs, decode_attribute)
        if faults:
            raise Unsupported(f"{op} inside: {faults[0]}")
        defaults = {name: each.default for name, each in converter.attributes.items()}
        found.append((op, {**defaults, **bound}))
    return found


def _step(ctx: Import, op: str, attrs: dict[str, AnyValue]) -> Step:
    converter = OPS.importer(op, ctx.version)
    if converter is None:
        raise Unsupported(f"{op} inside: no importer")
    return lambda x: converter.run(ctx, [x], attrs)


@dataclass(frozen=True)
class Ending:
    """How a layer ends in quantised numbers, by its calibrated range.

    Attributes:
        dtype: Of the result.
        step: What one level of the result stands for.
        ends: The range, as MXNet hands it on.
    """

    dtype: str
    step: Expr
    ends: tuple[Expr, Expr]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The range of a result; MXNet wants both ends of it or takes none."""

    min_calib_range: float | None = None
    max_calib_range: float | None = None

    @property
    def ends(self) -> tuple[Expr, Expr] | None:
        """The range, if there is one."""
        low, high = self.min_calib_range, self.max_calib_range
        return None if low is None or high is None else (number(low), number(high))

    def ending(self, dtype: str) -> Ending | None:
        """Return how a layer ends; None where it is not calibrated and ends in sums."""
        low, high = self.min_calib_range, self.max_calib_range
        if low is None or high is None:
            return None
        end = number(max(abs(low), abs(high)))
        return Ending(dtype, step(end, LEVELS[dtype]), (number(low), number(high)))


def real_result(sums: Expr, data_step: Expr, weights: Weights, axis: int) -> Expr:
    """Return sums of products of levels as real numbers; channels lie along `axis`."""
    return real_of(sums, known(relay.multiply(data_step, weights.step)), axis=axis)
